//! Resources of a cluster that has run for a while, as records in the store, written by the program's own types.

use crawler_model::crawl::Counts;
use crawler_model::id::{Epoch, Generation, Incarnation, NodeId, ResourceId, ResourceName, Run};
use crawler_model::node::{CallToken, Node, Role};
use crawler_model::plugin::PluginRecord;
use crawler_model::resource::{
    Assignment, CrawlSettings, Order, Owner, PinnedPlugin, Resource, ResourceSpec, ShardId,
    ShardRecord, ShardState,
};
use crawler_store::catalog::encode;
use crawler_store::keys::Keys;
use etcd_client::{Client, PutOptions, Txn, TxnOp};
use futures::StreamExt as _;

/// Number of resources in a transaction: each has three records, and etcd takes 128 changes at once.
const RESOURCES_PER_TXN: u64 = 40;
const TXNS_AT_ONCE: usize = 16;

/// Values that the records of resources share.
pub(crate) struct Seeds {
    pub(crate) keys: Keys,
    pub(crate) plugin: PluginRecord,
    pub(crate) n_workers: u64,
}

pub(crate) fn node_id(n: u64) -> NodeId {
    let id = format!("worker-{}", n + 1);
    id.parse().expect("a good id")
}

/// Returns a worker as it registers.
pub(crate) fn node(n: u64) -> Node {
    Node {
        id: node_id(n),
        role: Role::Worker,
        address: "127.0.0.1:1".to_owned(),
        http: String::new(),
        pprof: String::new(),
        incarnation: Incarnation(n + 1),
        labels: [("zone".to_owned(), format!("z{}", n % 3))].into(),
        capacity: 10_000,
        version: "0.1.0".to_owned(),
        interface: "0.1.0".to_owned(),
        draining: false,
        started_at: 1_700_000_000_000,
        call_token: CallToken::default(),
        shares_turns: false,
        tls: false,
    }
}

impl Seeds {
    /// Writes `n_resources` resources, evenly over the workers.
    pub(crate) async fn write(&self, client: &Client, n_resources: u64) {
        let starts = (0..n_resources).step_by(usize::try_from(RESOURCES_PER_TXN).expect("a few"));
        let txns = starts.map(|start| {
            let end = (start + RESOURCES_PER_TXN).min(n_resources);
            let puts: Vec<TxnOp> = (start..end).flat_map(|n| self.resource(n)).collect();
            let mut client = client.clone();
            async move {
                let done = client.txn(Txn::new().and_then(puts)).await;
                done.unwrap_or_else(|e| panic!("resource {start} and the next: {e}"));
            }
        });
        let mut txns = futures::stream::iter(txns).buffer_unordered(TXNS_AT_ONCE);
        while txns.next().await.is_some() {}
    }

    /// Returns a resource without an owner, as an addition leaves it if no worker fits.
    pub(crate) fn unplaced(&self, name: &str, id: u64) -> Vec<TxnOp> {
        let name: ResourceName = name.parse().expect("a good name");
        let resource = self.record(name.clone(), id, String::new());
        let shard = ShardRecord::new(name.clone());
        let put = |key: String, value: bytes::Bytes| TxnOp::put(key, value, None::<PutOptions>);
        vec![
            put(self.keys.resource(&name), encode(&resource)),
            put(self.keys.shard(ShardId::only(resource.id)), encode(&shard)),
        ]
    }

    fn resource(&self, n: u64) -> Vec<TxnOp> {
        let worker = n % self.n_workers;
        let name: ResourceName = format!("seed-{n:06}").parse().expect("a good name");
        let owner = node(worker);
        let assigned = format!("{}|{}", owner.id, owner.address);
        let resource = self.record(name.clone(), n + 1, assigned);
        let id = ShardId::only(resource.id);
        let shard = ShardRecord {
            owner: Some(Owner {
                node: owner.id.clone(),
                incarnation: owner.incarnation,
            }),
            epoch: Epoch(1),
            state: ShardState::Assigned,
            created: true,
            counts: Counts::default(),
            ..ShardRecord::new(name.clone())
        };
        let mirror = Assignment::of(&resource, shard.epoch, owner.incarnation, Order::Crawl);
        let put = |key: String, value: bytes::Bytes| TxnOp::put(key, value, None::<PutOptions>);
        vec![
            put(self.keys.resource(&name), encode(&resource)),
            put(self.keys.shard(id), encode(&shard)),
            put(self.keys.assignment(&owner.id, id), encode(&mirror)),
        ]
    }

    fn record(&self, name: ResourceName, id: u64, assigned_node: String) -> Resource {
        let start = format!("http://{name}.example/start?page=1");
        let plugin = self.plugin.name.as_str().parse().expect("a plugin's name");
        Resource {
            id: ResourceId(id),
            assigned_node,
            creation_time: 1_700_000_000_000_000_000,
            generation: Generation(1),
            run: Run(1),
            resharded_at: Run(1),
            run_started_at: Some(1_700_000_000_000),
            pinned: Some(PinnedPlugin {
                version: self.plugin.version.clone(),
                digest: self.plugin.digest,
                interface: self.plugin.interface.clone(),
            }),
            paused: false,
            requests: Vec::new(),
            spec: ResourceSpec {
                name,
                plugin,
                params: [("start".to_owned(), start)].into(),
                limits: Default::default(),
                crawl: CrawlSettings {
                    delay_ms: Some(1_000),
                    max_pages: Some(100_000),
                    ..CrawlSettings::default()
                },
                placement: Default::default(),
                labels: Default::default(),
            },
        }
    }
}
