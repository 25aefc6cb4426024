//! Records of a new resource.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::placement::{self, Candidates, PlacementRequest, Strategy};
use crate::reconcile::assignment_txn;
use crawler_model::event::{Event, EventKind};
use crawler_model::node::Role;
use crawler_model::resource::{Resource, ShardId, ShardRecord};
use crawler_store::catalog::{Catalog, Versioned, encode};
use crawler_store::{Guard, Revision, Txn};

/// Returns the transaction that creates a resource with its shards, and the records that it writes. Each shard
/// is assigned at once if a worker takes it.
pub(super) fn new_resource_txn(
    catalog: &Catalog,
    mut resource: Resource,
    candidates: &Candidates,
) -> (Txn, Resource, BTreeMap<ShardId, ShardRecord>) {
    let keys = catalog.keys();
    let key = keys.resource(&resource.spec.name);
    // The candidates are copied, which is costly with a thousand workers, only if another shard follows.
    let mut candidates = Cow::Borrowed(candidates);
    let mut txn = Txn::new();
    let mut records = BTreeMap::new();
    let mut ids = resource.shard_ids().peekable();
    while let Some(id) = ids.next() {
        let shard = ShardRecord::new(resource.spec.name.clone());
        let placement_request = PlacementRequest::of(id, &resource);
        let node = match &resource.pinned {
            Some(_) => placement::place(&placement_request, &candidates)
                .ok()
                .cloned(),
            None => None,
        };
        let record = match node {
            Some(node) => {
                if ids.peek().is_some() {
                    candidates.to_mut().take(&node.id, &placement_request);
                }
                let (present, shard) = (created(resource.clone()), created(shard));
                let (assigned, named, record) = assignment_txn(keys, &present, (id, &shard), &node);
                let changes = assigned.changes.into_iter();
                txn.changes
                    .extend(changes.filter(|change| change.key() != key));
                let guard = Guard::Exists(keys.node(Role::Worker, &node.id));
                if !txn.guards.contains(&guard) {
                    txn.guards.push(guard);
                }
                resource = named;
                record
            }
            None => {
                txn = txn.put(keys.shard(id), encode(&shard));
                shard
            }
        };
        records.insert(id, record);
    }
    let txn = txn
        .guard(Guard::Absent(key.clone()))
        .put(key, encode(&resource));
    (txn, resource, records)
}

/// Returns the events that shards of a new resource are assigned.
pub(super) fn placed(
    shards: &BTreeMap<ShardId, ShardRecord>,
    resource: &Resource,
    strategy: Strategy,
) -> impl Iterator<Item = Event> {
    shards.iter().filter_map(move |(id, shard)| {
        let owner = shard.owner.as_ref()?;
        let event = Event::of(EventKind::Placed, resource.run);
        Some(Event {
            shard: Some(id.shard),
            worker: Some(owner.node.clone()),
            ..event.because(format_args!("strategy {strategy}"))
        })
    })
}

/// Wraps a record that did not exist before.
pub(super) fn created<T>(value: T) -> Versioned<T> {
    Versioned {
        value,
        revision: Revision(0),
        created: Revision(0),
    }
}
