//! Everything that masters decide by, as the store said it at one moment.

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};
use serde::de::DeserializeOwned;

use super::placement::{Candidates, Strategy};
use crate::model::id::{NodeId, PluginRef, ResourceId, ResourceName};
use crate::model::node::Node;
use crate::model::plugin::PluginRecord;
use crate::model::resource::{
    Assignment, Deleting, Owner, Resource, ShardId, ShardRecord, ShardState,
};
use crate::store::catalog::{Catalog, Versioned, decode};
use crate::store::keys::{Keys, Subject};
use crate::store::{Entry, Revision, StoreError};
use crate::telemetry;

type AssignmentMap = OrdMap<(NodeId, ShardId), Option<Arc<Assignment>>>;

/// The whole state at one moment. Guards catch what has changed since. Cheap to clone, however much it
/// is, and to keep up to date.
#[derive(Debug, Clone, Default)]
pub(super) struct Observed {
    /// As of this write.
    pub(super) revision: Revision,
    /// So many times something was otherwise that decisions are made by.
    pub(super) n_changes: u64,
    /// So many of them were about workers.
    pub(super) n_of_workers: u64,
    /// And so many about deletions.
    pub(super) n_of_deletions: u64,
    /// As they register.
    registered: OrdMap<NodeId, Node>,
    /// Those that somebody has told to drain.
    draining: OrdSet<NodeId>,
    pub(super) workers: OrdMap<NodeId, Node>,
    /// By their keys.
    pub(super) plugins: OrdMap<String, PluginRecord>,
    pub(super) resources: OrdMap<ResourceName, Arc<Versioned<Resource>>>,
    pub(super) shards: OrdMap<ShardId, Arc<Versioned<ShardRecord>>>,
    /// Those that their owners are to give back, with the writes that say so.
    pub(super) revoking: OrdMap<ShardId, Revision>,
    /// By whom shards are crawled, there or not, and how many.
    owners: OrdMap<NodeId, u32>,
    /// Shards whose record does not decode: somebody who knows more may have them.
    pub(super) unreadable: OrdSet<ShardId>,
    /// None: the record does not decode.
    pub(super) assignments: AssignmentMap,
    pub(super) deleting: OrdMap<ResourceId, Arc<Versioned<Deleting>>>,
    /// The workers with their loads.
    pub(super) candidates: Candidates,
}

impl Observed {
    /// Nothing yet, with workers chosen in this way.
    pub(super) fn nothing(strategy: Strategy) -> Self {
        Self {
            candidates: Candidates::new(strategy, [], []),
            ..Self::default()
        }
    }

    /// Reads everything. A record that does not decode is logged and passed over.
    pub(super) async fn read(catalog: &Catalog, strategy: Strategy) -> Result<Self, StoreError> {
        let listing = catalog.store().list(&catalog.keys().all()).await?;
        let mut observed = Self::nothing(strategy);
        for entry in &listing.entries {
            observed.put(catalog.keys(), entry);
        }
        observed.revision = listing.revision;
        Ok(observed)
    }

    /// Takes note of a record as it was written.
    pub(super) fn put(&mut self, keys: &Keys, entry: &Entry) {
        self.revision = self.revision.max(entry.revision);
        let Some(subject) = keys.subject(&entry.key) else {
            return;
        };
        self.n_changes += 1;
        match subject {
            Subject::Worker(id) => {
                let node = decoded::<Node>(entry).map(|node| node.value);
                let own = node.filter(|node| {
                    let is_own = node.id == id;
                    if !is_own {
                        tracing::error!(key = entry.key, id = %node.id, "passing over a node under the key of another");
                    }
                    is_own
                });
                match own {
                    Some(node) => self.registered.insert(id.clone(), node),
                    None => self.registered.remove(&id),
                };
                self.look_at(&id);
            }
            Subject::Draining(id) => {
                self.draining.insert(id.clone());
                self.look_at(&id);
            }
            Subject::Plugin => {
                if let Some(plugin) = decoded::<PluginRecord>(entry) {
                    self.plugins.insert(entry.key.clone(), plugin.value);
                }
            }
            Subject::Resource(name) => {
                match decoded(entry) {
                    Some(resource) => self.resources.insert(name, Arc::new(resource)),
                    None => self.resources.remove(&name),
                };
            }
            Subject::Shard(id) => {
                let shard = decoded(entry);
                match &shard {
                    Some(_) => self.unreadable.remove(&id),
                    None => self.unreadable.insert(id),
                };
                self.replace(id, shard);
            }
            Subject::Assignment(worker, id) => {
                let assignment = decoded::<Assignment>(entry).map(|a| Arc::new(a.value));
                self.candidates.assigned(&worker, assignment.as_deref());
                let key = (worker, id);
                if let Some(before) = self.assignments.insert(key.clone(), assignment) {
                    self.candidates.release(&key.0, before.as_deref());
                }
            }
            Subject::Deleting(id) => {
                self.n_of_deletions += 1;
                match decoded(entry) {
                    Some(deleting) => self.deleting.insert(id, Arc::new(deleting)),
                    None => self.deleting.remove(&id),
                };
            }
        }
    }

    /// Takes note of a record that has gone.
    pub(super) fn remove(&mut self, keys: &Keys, key: &str, revision: Revision) {
        self.revision = self.revision.max(revision);
        let Some(subject) = keys.subject(key) else {
            return;
        };
        self.n_changes += 1;
        match subject {
            Subject::Worker(id) => {
                self.registered.remove(&id);
                self.look_at(&id);
            }
            Subject::Draining(id) => {
                self.draining.remove(&id);
                self.look_at(&id);
            }
            Subject::Plugin => drop(self.plugins.remove(key)),
            Subject::Resource(name) => drop(self.resources.remove(&name)),
            Subject::Shard(id) => {
                self.unreadable.remove(&id);
                self.replace(id, None);
            }
            Subject::Assignment(worker, id) => {
                let key = (worker, id);
                if let Some(before) = self.assignments.remove(&key) {
                    self.candidates.release(&key.0, before.as_deref());
                }
            }
            Subject::Deleting(id) => {
                self.n_of_deletions += 1;
                self.deleting.remove(&id);
            }
        }
    }

    /// A shard has another record, or none.
    fn replace(&mut self, id: ShardId, shard: Option<Versioned<ShardRecord>>) {
        if let Some(owner) = shard.as_ref().and_then(|shard| crawling(&shard.value)) {
            *self.owners.entry(owner.clone()).or_default() += 1;
        }
        match &shard {
            Some(shard) if shard.value.state == ShardState::Revoking => {
                self.revoking.insert(id, shard.revision);
            }
            _ => drop(self.revoking.remove(&id)),
        }
        let before = match shard {
            Some(shard) => self.shards.insert(id, Arc::new(shard)),
            None => self.shards.remove(&id),
        };
        let before = before.as_ref().and_then(|before| crawling(&before.value));
        if let Some(owner) = before
            && let Some(n) = self.owners.get_mut(owner)
        {
            *n -= 1;
            if *n == 0 {
                self.owners.remove(owner);
            }
        }
    }

    /// Works out anew how a worker is seen.
    fn look_at(&mut self, id: &NodeId) {
        self.n_of_workers += 1;
        let Some(node) = self.registered.get(id) else {
            self.workers.remove(id);
            self.candidates.absent(id);
            return;
        };
        let node = Node {
            draining: node.draining || self.draining.contains(id),
            ..node.clone()
        };
        let is_new = self.workers.insert(id.clone(), node.clone()).is_none();
        self.candidates.present(node);
        if is_new {
            let Self {
                assignments,
                candidates,
                ..
            } = self;
            for (_, assignment) in assigned_to(assignments, id) {
                candidates.assigned(id, assignment);
            }
        }
    }

    /// What a worker is assigned.
    pub(super) fn shards_on(&self, worker: &NodeId) -> impl Iterator<Item = ShardId> {
        assigned_to(&self.assignments, worker).map(|(id, _)| id)
    }

    /// The shards of one resource, in order.
    pub(super) fn shards_of(
        &self,
        id: ResourceId,
    ) -> impl Iterator<Item = (ShardId, &Versioned<ShardRecord>)> {
        let first = ShardId::only(id);
        let shards = self.shards.range(first..);
        let shards = shards.map(|(id, shard)| (*id, &**shard));
        shards.take_while(move |(shard, _)| shard.resource == id)
    }

    /// The process that owns something is still there, not another under its id.
    pub(super) fn is_alive(&self, owner: &Owner) -> bool {
        self.workers
            .get(&owner.node)
            .is_some_and(|node| node.incarnation == owner.incarnation)
    }

    /// The plugin that a reference means: exactly that version, or the highest.
    pub(super) fn newest_plugin(&self, plugin: &PluginRef) -> Option<&PluginRecord> {
        newest(self.plugins.values(), plugin)
    }

    /// Those that shards are crawled by, there or not, in the order of their ids.
    pub(super) fn owners(&self) -> impl Iterator<Item = &NodeId> {
        self.owners.keys()
    }
}

/// By whom a shard is crawled.
fn crawling(shard: &ShardRecord) -> Option<&NodeId> {
    let owner = shard.owner.as_ref().map(|owner| &owner.node);
    owner.filter(|_| shard.state.order().is_some())
}

fn assigned_to<'a>(
    assignments: &'a AssignmentMap,
    worker: &NodeId,
) -> impl Iterator<Item = (ShardId, Option<&'a Assignment>)> {
    let first = (worker.clone(), ShardId::only(ResourceId(0)));
    let own = assignments.range(first.clone()..);
    let own = own.take_while(move |((of, _), _)| *of == first.0);
    own.map(|((_, id), assignment)| (*id, assignment.as_deref()))
}

fn decoded<T: DeserializeOwned>(entry: &Entry) -> Option<Versioned<T>> {
    let decoded = decode(entry);
    let told = decoded.inspect_err(|error| {
        let error = telemetry::chain(error);
        tracing::error!(error, "passing over a record that does not decode");
    });
    told.ok()
}

/// The plugin that a reference means: exactly that version, or the highest.
pub(super) fn newest<'a>(
    plugins: impl IntoIterator<Item = &'a PluginRecord>,
    plugin: &PluginRef,
) -> Option<&'a PluginRecord> {
    plugins
        .into_iter()
        .filter(|p| p.name == plugin.name)
        .filter(|p| {
            plugin
                .version
                .as_ref()
                .is_none_or(|version| p.version == *version)
        })
        .max_by(|a, b| a.version.cmp(&b.version))
}
