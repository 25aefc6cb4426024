//! Notes of changes in the two logs: one of all changes of resources, and one of their states.
//!
//! The state of a resource is another one when its spec, its run or its phase is; numbers of pages are no part of it. Each
//! state has the revision of the write since which it holds. Masters that have followed the same writes know the same
//! revision, so a state has one name for all of them. A master that begins takes the last write of the records instead.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use imbl::OrdMap;

use super::Observed;
use super::resource_log::{Ended, News, ResourceLog};
use crate::phase::phase_word;
use crawler_model::id::{Generation, NodeId, ResourceId, ResourceName, Run};
use crawler_model::resource::{Resource, ShardId, ShardRecord};
use crawler_store::Revision;
use crawler_store::catalog::Versioned;

/// State of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResourceState {
    /// Id of this life of the name.
    pub(crate) id: ResourceId,
    /// Revision at which it began.
    pub(crate) created: Revision,
    /// Number of the spec.
    pub(crate) generation: Generation,
    /// The present run.
    pub(crate) run: Run,
    /// Word of the phase.
    pub(crate) phase: &'static str,
    /// Revision of the write since which the state holds.
    pub(crate) since: Revision,
}

impl Observed {
    /// Returns the number in the log of changes from which on a reader goes on that knows all writes up to a revision.
    /// Returns `None` if it has to begin anew.
    pub(crate) fn goes_on_from(&self, revision: Revision) -> Option<u64> {
        self.number_in(&self.log, revision)
    }

    /// Returns the same for the log of states.
    pub(crate) fn states_go_on_from(&self, revision: Revision) -> Option<u64> {
        self.number_in(&self.state_log, revision)
    }

    fn number_in(&self, log: &ResourceLog, revision: Revision) -> Option<u64> {
        // A store that was set back has other records at the same revision.
        let is_known = revision <= self.revision;
        log.number_at(revision).filter(|_| is_known)
    }

    /// Returns the revision of the last write of a resource or of one of its shards.
    pub(crate) fn written_at(&self, resource: &Versioned<Resource>) -> Revision {
        let shards = self.shards_of(resource.value.id);
        let shards = shards.map(|(_, shard)| shard.revision);
        shards.fold(resource.revision, Revision::max)
    }

    /// Takes note that a resource, one of its shards, or its worker has changed.
    pub(super) fn note(&mut self, revision: Revision, name: &ResourceName, is_new: bool) {
        let news = match is_new {
            true => News::Added,
            false => News::Changed,
        };
        let n_resources = self.resources.len();
        self.log.note(revision, name, news, n_resources);
        self.note_state(revision, revision, name);
    }

    /// Takes note of a resource's state, if it is another one than before. It holds since the second revision.
    fn note_state(&mut self, revision: Revision, since: Revision, name: &ResourceName) {
        let news = match self.resources.get(name) {
            Some(resource) => {
                let state = self.state_of(resource, since);
                let known = self.states.get(name).copied();
                if known.is_some_and(|known| state.is_same(known)) {
                    return;
                }
                self.states.insert(name.clone(), state);
                News::Changed
            }
            // Its crawl goes on, and a master that can read the record tells of it.
            None if self.unreadable_resources.contains(name) => return,
            None => match self.states.remove(name) {
                Some(ResourceState { id, created, .. }) => News::Ended(Ended { id, created }),
                None => return,
            },
        };
        let n_resources = self.resources.len();
        self.state_log.note(revision, name, news, n_resources);
    }

    fn state_of(&self, resource: &Versioned<Resource>, since: Revision) -> ResourceState {
        let record = &resource.value;
        let shards = self.shards_of(record.id);
        let shards = shards.filter(|(id, _)| record.has_shard(*id));
        let shards: Vec<&ShardRecord> = shards.map(|(_, shard)| &shard.value).collect();
        ResourceState {
            id: record.id,
            created: resource.created,
            generation: record.generation,
            run: record.run,
            phase: phase_word(record, &shards, &self.candidates),
            since,
        }
    }

    /// Takes note that a worker has come, gone or changed: the resources that it crawls may be in another phase.
    pub(super) fn note_shards_on(&mut self, worker: &NodeId, revision: Revision) {
        let shards = self.shards_on(worker);
        let names = shards.filter_map(|id| Some(self.shards.get(&id)?.value.resource.clone()));
        let names: BTreeSet<ResourceName> = names.collect();
        for name in &names {
            self.note(revision, name, false);
        }
    }

    /// Continues the logs of an earlier state, after all records have been read: what differs has changed in between.
    pub(super) fn continue_logs(&mut self, before: &Self) {
        let revision = self.revision;
        if before.revision == Revision::default() {
            self.log = ResourceLog::begin(revision);
            self.state_log = ResourceLog::begin(revision);
            let states = self.resources.iter().map(|(name, resource)| {
                let since = self.written_at(resource);
                (name.clone(), self.state_of(resource, since))
            });
            self.states = states.collect();
            return;
        }
        self.log = before.log.clone();
        self.state_log = before.state_log.clone();
        self.states = before.states.clone();
        // A resource that came and went in between differs nowhere.
        self.log.note_gap(before.settled, revision);
        self.state_log.note_gap(before.settled, revision);
        for (name, is_new) in &self.differing(before) {
            let news = match is_new {
                true => News::Added,
                false => News::Changed,
            };
            self.log.note(revision, name, news, self.resources.len());
            let written_at = self.resources.get(name);
            let written_at = written_at.map(|resource| self.written_at(resource));
            // A record that is gone has no write that tells when.
            let since = written_at.filter(|written_at| *written_at > before.settled);
            self.note_state(revision, since.unwrap_or(revision), name);
        }
        let mut workers = BTreeSet::new();
        for (id, node) in self.workers.iter().chain(&before.workers) {
            let (now, then) = (self.workers.get(id), before.workers.get(id));
            if now != then {
                workers.insert(node.id.clone());
            }
        }
        for worker in &workers {
            self.note_shards_on(worker, revision);
        }
    }

    /// Returns the names of resources whose records, or whose shards, differ from those of an earlier state, each with true
    /// if the resource was not there.
    fn differing(&self, before: &Self) -> BTreeMap<ResourceName, bool> {
        let mut names = BTreeMap::new();
        for (name, resource) in &self.resources {
            let known = before.resources.get(name).map(|known| known.revision);
            if known != Some(resource.revision) {
                names.insert(name.clone(), known.is_none());
            }
        }
        let is_gone = |name: &&ResourceName| !self.resources.contains_key(*name);
        for name in before.resources.keys().filter(is_gone) {
            names.insert(name.clone(), false);
        }
        // Those whose records could not be read are no resources of either state.
        let were_unreadable = before.unreadable_resources.iter();
        let is_gone = |name: &&ResourceName| !self.unreadable_resources.contains(*name);
        for name in were_unreadable.filter(is_gone) {
            names.entry(name.clone()).or_insert(false);
        }
        let of_shards = |these: &OrdMap<ShardId, Arc<Versioned<ShardRecord>>>, others: &Self| {
            let changed = these.iter().filter(|(id, shard)| {
                let other = others.shards.get(*id).map(|other| other.revision);
                other != Some(shard.revision)
            });
            let names = changed.map(|(_, shard)| shard.value.resource.clone());
            names.collect::<Vec<ResourceName>>()
        };
        let mut of_changed = of_shards(&self.shards, before);
        of_changed.append(&mut of_shards(&before.shards, self));
        for name in of_changed {
            names.entry(name).or_insert(false);
        }
        names
    }

    /// Ends what readers of an earlier state know, after the store was set back: all of them begin anew.
    pub(super) fn begin_logs_anew(&mut self, before: &Self) {
        self.log = before.log.begin_again(self.revision);
        self.state_log = before.state_log.begin_again(self.revision);
    }
}

impl ResourceState {
    /// Returns true if another state differs in nothing but the time since which it holds.
    fn is_same(self, other: Self) -> bool {
        let Self { since, .. } = other;
        Self { since, ..self } == other
    }
}
