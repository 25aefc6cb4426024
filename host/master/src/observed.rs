//! Records that masters base decisions on, as the store held them at one moment.

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use super::placement::{Candidates, Strategy};
use crate::lists::decoded;
use crawler_model::id::{NodeId, PluginRef, ResourceId, ResourceName};
use crawler_model::node::Node;
use crawler_model::plugin::PluginRecord;
use crawler_model::resource::{Assignment, Owner, Resource, ShardId, ShardRecord, ShardState};
use crawler_store::catalog::{Catalog, Versioned};
use crawler_store::keys::{Keys, Subject};
use crawler_store::{Entry, Revision, StoreError};

mod changes;
mod deletions;
mod reading;
mod resource_log;

pub(super) use changes::ResourceState;
use deletions::Deletions;
use reading::{Reading, record};
use resource_log::ResourceLog;
pub(super) use resource_log::{Change, ChangeKind};

type AssignmentMap = OrdMap<(NodeId, ShardId), Option<Arc<Versioned<Assignment>>>>;

/// The whole state at one moment. Guards catch later changes. It is cheap to clone and to keep up to date,
/// whatever its size.
#[derive(Debug, Clone, Default)]
pub(super) struct Observed {
    /// Revision of the last write that is included.
    pub(super) revision: Revision,
    /// Revision up to which all writes are included: further writes of the last one may be on their way.
    pub(super) settled: Revision,
    /// Number of changes of records that decisions are based on.
    pub(super) n_changes: u64,
    /// Number of these changes that concerned workers.
    pub(super) n_of_workers: u64,
    /// Workers as they register.
    registered: OrdMap<NodeId, Node>,
    /// Workers that are told to drain.
    draining: OrdSet<NodeId>,
    pub(super) workers: OrdMap<NodeId, Node>,
    /// Plugins by their keys.
    pub(super) plugins: OrdMap<String, PluginRecord>,
    pub(super) resources: OrdMap<ResourceName, Arc<Versioned<Resource>>>,
    pub(super) shards: OrdMap<ShardId, Arc<Versioned<ShardRecord>>>,
    /// Shards that their owners are to give back, with the revisions of their records.
    pub(super) revoking: OrdMap<ShardId, Revision>,
    /// Number of shards that each owner crawls, whether the owner is present or not.
    owners: OrdMap<NodeId, u32>,
    /// Shards whose record does not decode; a process that can read it may own them.
    pub(super) unreadable: OrdSet<ShardId>,
    /// Resources whose record does not decode, as one that a later version has written.
    pub(super) unreadable_resources: OrdSet<ResourceName>,
    /// Assignments by worker and shard; `None` if the record does not decode.
    pub(super) assignments: AssignmentMap,
    pub(super) deletions: Deletions,
    /// Resources that changed last.
    pub(super) log: ResourceLog,
    /// State of each resource whose record decodes, or did when it was read last.
    pub(super) states: OrdMap<ResourceName, ResourceState>,
    /// Resources whose state changed last.
    pub(super) state_log: ResourceLog,
    /// The workers with their loads.
    pub(super) candidates: Candidates,
}

impl Observed {
    /// Returns the empty state. `strategy` chooses workers.
    pub(super) fn nothing(strategy: Strategy) -> Self {
        Self {
            candidates: Candidates::new(strategy, [], []),
            ..Self::default()
        }
    }

    /// Reads all records.
    #[cfg(test)]
    pub(super) async fn read(catalog: &Catalog, strategy: Strategy) -> Result<Self, StoreError> {
        Self::read_over(catalog, strategy, Arc::default()).await
    }

    /// Reads all records, and shares each unchanged record with `before`: while both states exist, they take up
    /// little more than one. The counts of changes continue from `before`. A record that does not decode is
    /// logged and skipped.
    pub(super) async fn read_over(
        catalog: &Catalog,
        strategy: Strategy,
        before: Arc<Self>,
    ) -> Result<Self, StoreError> {
        let mut reading = Reading {
            keys: catalog.keys(),
            strategy,
            observed: Self::nothing(strategy),
            before,
        };
        let below = catalog.keys().all();
        let revision = catalog.store().list_into(&below, &mut reading).await?;
        let Reading {
            mut observed,
            before,
            ..
        } = reading;
        if revision < before.revision {
            // The store was set back: a record with the same revision may differ from the known one.
            let mut observed = Box::pin(Self::read_over(catalog, strategy, Arc::default())).await?;
            observed.begin_logs_anew(&before);
            return Ok(observed);
        }
        observed.revision = revision;
        observed.settled = revision;
        observed.continue_logs(&before);
        // The records that were read may differ from those that were followed.
        observed.n_changes += before.n_changes;
        observed.n_of_workers += before.n_of_workers;
        observed.deletions.n_changes += before.deletions.n_changes;
        Ok(observed)
    }

    /// Takes note of a record that was written.
    pub(super) fn put(&mut self, keys: &Keys, entry: &Entry) {
        self.put_or_keep(keys, entry, None);
    }

    /// Takes note of a record. A record that `before` knows is shared with it.
    fn put_or_keep(&mut self, keys: &Keys, entry: &Entry, before: Option<&Self>) {
        self.reach(entry.revision);
        let Some(subject) = keys.subject(&entry.key) else {
            return;
        };
        self.n_changes += 1;
        // What is read anew is compared with `before` at the end.
        let at = before.is_none().then_some(entry.revision);
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
                if let Some(at) = at {
                    self.note_shards_on(&id, at);
                }
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
                let is_new = !self.resources.contains_key(&name);
                let known = before.and_then(|before| before.resources.get(&name));
                match record(entry, known) {
                    Some(resource) => {
                        self.unreadable_resources.remove(&name);
                        self.resources.insert(name.clone(), resource);
                    }
                    None => {
                        self.resources.remove(&name);
                        self.unreadable_resources.insert(name.clone());
                    }
                }
                if let Some(at) = at {
                    self.note(at, &name, is_new);
                }
            }
            Subject::Shard(id) => {
                let known = before.and_then(|before| before.shards.get(&id));
                let shard = record(entry, known);
                match &shard {
                    Some(_) => self.unreadable.remove(&id),
                    None => self.unreadable.insert(id),
                };
                self.replace(id, shard, at);
            }
            Subject::Assignment(worker, id) => {
                let key = (worker, id);
                let known = before.and_then(|before| before.assignments.get(&key)?.as_ref());
                let assignment = record(entry, known);
                self.candidates.assigned(&key.0, value_of(&assignment));
                if let Some(last) = self.assignments.insert(key.clone(), assignment) {
                    self.candidates.release(&key.0, value_of(&last));
                }
            }
            Subject::Deleting(id) => {
                let known = before.and_then(|before| before.deletions.get(id));
                let deleting = record(entry, known);
                self.deletions.set(id, deleting);
            }
        }
    }

    /// Takes note of the revision of a write.
    fn reach(&mut self, revision: Revision) {
        self.revision = self.revision.max(revision);
        let before = Revision(revision.0.saturating_sub(1));
        self.settled = self.settled.max(before);
    }

    /// Takes note of a record that was deleted.
    pub(super) fn remove(&mut self, keys: &Keys, key: &str, revision: Revision) {
        self.reach(revision);
        let Some(subject) = keys.subject(key) else {
            return;
        };
        self.n_changes += 1;
        match subject {
            Subject::Worker(id) => {
                self.registered.remove(&id);
                self.look_at(&id);
                self.note_shards_on(&id, revision);
            }
            Subject::Draining(id) => {
                self.draining.remove(&id);
                self.look_at(&id);
            }
            Subject::Plugin => drop(self.plugins.remove(key)),
            Subject::Resource(name) => {
                self.resources.remove(&name);
                self.unreadable_resources.remove(&name);
                self.note(revision, &name, false);
            }
            Subject::Shard(id) => {
                self.unreadable.remove(&id);
                self.replace(id, None, Some(revision));
            }
            Subject::Assignment(worker, id) => {
                let key = (worker, id);
                if let Some(last) = self.assignments.remove(&key) {
                    self.candidates.release(&key.0, value_of(&last));
                }
            }
            Subject::Deleting(id) => self.deletions.set(id, None),
        }
    }

    /// Takes note of a shard's new record, or of its deletion, at a revision that the log does not have yet.
    fn replace(
        &mut self,
        id: ShardId,
        shard: Option<Arc<Versioned<ShardRecord>>>,
        at: Option<Revision>,
    ) {
        let named = shard.as_ref().or_else(|| self.shards.get(&id));
        let name = at.and(named);
        let name = name.map(|named| named.value.resource.clone());
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
            Some(shard) => self.shards.insert(id, shard),
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
        if let (Some(at), Some(name)) = (at, name) {
            self.note(at, &name, false);
        }
    }

    /// Recomputes the view of a worker.
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

    /// Returns the shards that a worker is assigned.
    pub(super) fn shards_on(&self, worker: &NodeId) -> impl Iterator<Item = ShardId> {
        assigned_to(&self.assignments, worker).map(|(id, _)| id)
    }

    /// Returns the shards of one resource, in order.
    pub(super) fn shards_of(
        &self,
        id: ResourceId,
    ) -> impl Iterator<Item = (ShardId, &Versioned<ShardRecord>)> {
        let first = ShardId::only(id);
        let shards = self.shards.range(first..);
        let shards = shards.map(|(id, shard)| (*id, &**shard));
        shards.take_while(move |(shard, _)| shard.resource == id)
    }

    /// True if a resource has shards, also if this version cannot read their records.
    pub(super) fn has_shards(&self, id: ResourceId) -> bool {
        let unreadable = self.unreadable.range(ShardId::only(id)..).next();
        self.shards_of(id).next().is_some() || unreadable.is_some_and(|shard| shard.resource == id)
    }

    /// True if the process that owns something is still present, not another one under its id.
    pub(super) fn is_alive(&self, owner: &Owner) -> bool {
        self.workers
            .get(&owner.node)
            .is_some_and(|node| node.incarnation == owner.incarnation)
    }

    /// Returns the plugin that a reference stands for: exactly that version, or the highest.
    pub(super) fn newest_plugin(&self, plugin: &PluginRef) -> Option<&PluginRecord> {
        newest(self.plugins.values(), plugin)
    }

    /// Returns the workers that crawl shards, present or not, in the order of their ids.
    pub(super) fn owners(&self) -> impl Iterator<Item = &NodeId> {
        self.owners.keys()
    }
}

/// Returns the worker that crawls a shard.
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
    own.map(|((_, id), assignment)| (*id, value_of(assignment)))
}

/// Returns the value of an assignment if its record decodes.
pub(super) fn value_of(assignment: &Option<Arc<Versioned<Assignment>>>) -> Option<&Assignment> {
    assignment.as_ref().map(|assignment| &assignment.value)
}

/// Returns the plugin that a reference stands for: exactly that version, or the highest.
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
