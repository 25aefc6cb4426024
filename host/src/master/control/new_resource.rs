//! The records that a resource begins with.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::super::reconcile::assignment_txn;
use super::*;
use crate::master::placement::{self, Wish};
use crate::model::node::Role;
use crate::model::resource::{ShardId, ShardRecord};
use crate::store::catalog::encode;
use crate::store::{Guard, Revision};

/// Creates a resource with its shards, each assigned at once where a worker takes it; with the records
/// it writes.
pub(super) fn new_resource_txn(
    catalog: &Catalog,
    mut resource: Resource,
    candidates: &Candidates,
) -> (Txn, Resource, BTreeMap<ShardId, ShardRecord>) {
    let keys = catalog.keys();
    let key = keys.resource(&resource.spec.name);
    // A copy of what a thousand workers have is made for those shards only that others come after.
    let mut candidates = Cow::Borrowed(candidates);
    let mut txn = Txn::new();
    let mut records = BTreeMap::new();
    let mut ids = resource.shard_ids().peekable();
    while let Some(id) = ids.next() {
        let shard = ShardRecord::new(resource.spec.name.clone());
        let wish = Wish::of(id, &resource);
        let node = match &resource.pinned {
            Some(_) => placement::place(&wish, &candidates).ok().cloned(),
            None => None,
        };
        let record = match node {
            Some(node) => {
                if ids.peek().is_some() {
                    candidates.to_mut().take(&node.id, &wish);
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

/// A record that was not there before.
pub(super) fn created<T>(value: T) -> Versioned<T> {
    Versioned {
        value,
        revision: Revision(0),
        created: Revision(0),
    }
}
