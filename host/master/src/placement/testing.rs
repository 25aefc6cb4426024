//! Workers and resources for tests of what places them.

use std::collections::BTreeMap;

use crawler_model::id::{Digest, Epoch, Generation, Incarnation, ResourceId, Run};
use crawler_model::node::{CallToken, Node, Role};
use crawler_model::resource::{
    Assignment, Order, PinnedPlugin, PlacementSpec, Resource, ResourceSpec,
};

/// Creates a worker with room for this many shards.
pub fn worker(id: &str, capacity: u32, labels: &[(&str, &str)]) -> Node {
    Node {
        id: id.parse().unwrap(),
        role: Role::Worker,
        address: format!("{id}.test:9090"),
        http: String::new(),
        pprof: String::new(),
        incarnation: Incarnation(1),
        labels: labels
            .iter()
            .map(|(k, v)| ((*k).into(), (*v).into()))
            .collect(),
        capacity,
        version: "0".into(),
        interface: "0.1.0".into(),
        draining: false,
        started_at: 0,
        call_token: CallToken::default(),
        shares_turns: false,
        tls: false,
    }
}

/// Creates a resource whose name ends with its id.
pub fn resource(id: u64, placement: PlacementSpec) -> Resource {
    Resource {
        requests: Vec::new(),
        id: ResourceId(id),
        assigned_node: String::new(),
        creation_time: 0,
        generation: Generation(1),
        run: Run(1),
        resharded_at: Run(1),
        run_started_at: None,
        paused: false,
        pinned: Some(PinnedPlugin {
            version: "1.0.0".parse().unwrap(),
            digest: Digest::of(b""),
            interface: "0.1.0".into(),
        }),
        spec: ResourceSpec {
            name: format!("r{id}").parse().unwrap(),
            plugin: "p".parse().unwrap(),
            params: BTreeMap::new(),
            limits: Default::default(),
            crawl: Default::default(),
            placement,
            labels: BTreeMap::new(),
        },
    }
}

/// Returns the record of an assignment of the resource.
pub fn assignment(resource: &Resource) -> Assignment {
    Assignment::of(resource, Epoch(1), Incarnation(1), Order::Crawl)
}
