//! Notes of changes in the two logs: one of all changes of resources, and one of their states.
//!
//! The state of a resource is another one when its spec, its run or its phase is; numbers of pages are no part of it. Each
//! state has the revision of the write since which it holds. Masters that have followed the same writes know the same
//! revision, so a state has one name for all of them. A master that begins takes the last write of the records instead, or
//! the present revision if a worker has the resource: the phase may be another one because the worker has come or gone.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;

use super::resource_log::{ChangeKind, ResourceLog};
use super::{Observed, crawling};
use crate::phase::phase_word;
use crawler_model::id::{Generation, NodeId, ResourceId, ResourceName, Run};
use crawler_model::resource::{Deleting, Resource, ShardId, ShardRecord};
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

    /// Returns the name that follows another one, or the first of all, among those of resources and of deletions.
    pub(crate) fn name_after(&self, name: Option<&ResourceName>) -> Option<ResourceName> {
        let first = name.cloned().map_or(Bound::Unbounded, Bound::Excluded);
        let mut resources = self.resources.range((first, Bound::Unbounded));
        let resource = resources.next().map(|(name, _)| name.clone());
        let deleted = self.deletions.name_after(name);
        resource.into_iter().chain(deleted).min()
    }

    /// Takes note that a resource, one of its shards, or its worker has changed.
    pub(super) fn note(&mut self, revision: Revision, name: &ResourceName, is_new: bool) {
        self.log.note(revision, name, is_new, self.resources.len());
        let before = Revision(revision.0.saturating_sub(1));
        self.note_state((before, revision), revision, name);
    }

    /// Takes note of a resource's state, if it is another one than before. All writes up to `before` were known, and what
    /// differs since then is noted at `now`. The state holds since `since`.
    fn note_state(
        &mut self,
        (before, now): (Revision, Revision),
        since: Revision,
        name: &ResourceName,
    ) {
        let known = self.states.get(name).copied();
        let state = match self.resources.get(name) {
            Some(resource) => Some(self.state_of(resource, since)),
            // Its crawl goes on, and a master that can read the record tells of it.
            None if self.unreadable_resources.contains(name) => return,
            None => None,
        };
        let n_resources = self.resources.len();
        let mut note = |kind| self.state_log.note_state(now, name, kind, n_resources);
        if let Some(known) = known
            && state.is_none_or(|state| state.id != known.id)
        {
            note(ChangeKind::Ended(known.id));
        }
        match (state, known) {
            (Some(state), Some(known)) if state.is_same(known) => {}
            (Some(state), _) => {
                let is_new = state.created > before;
                if is_new {
                    note(ChangeKind::Began);
                }
                if !is_new || state.since > state.created {
                    note(ChangeKind::Changed);
                }
                self.states.insert(name.clone(), state);
            }
            (None, _) => {
                self.states.remove(name);
            }
        }
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

    /// Returns the revision of the last write of a resource or of one of its shards.
    fn written_at(&self, resource: &Versioned<Resource>) -> Revision {
        let shards = self.shards_of(resource.value.id);
        let shards = shards.map(|(_, shard)| shard.revision);
        shards.fold(resource.revision, Revision::max)
    }

    /// Returns the revision since which the state of a resource certainly holds, if it is not known how it came about.
    fn certain_since(&self, resource: &Versioned<Resource>) -> Revision {
        let mut shards = self.shards_of(resource.value.id);
        match shards.any(|(_, shard)| crawling(&shard.value).is_some()) {
            true => self.revision,
            false => self.written_at(resource),
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
                let since = self.certain_since(resource);
                (name.clone(), self.state_of(resource, since))
            });
            self.states = states.collect();
            return;
        }
        self.log = before.log.clone();
        self.state_log = before.state_log.clone();
        self.states = before.states.clone();
        // A resource that came and went in between differs nowhere. Its deletion may be there.
        self.log.note_gap(before.settled, revision);
        self.state_log.note_gap(before.settled, revision);
        let mut differing = self.differing(before);
        let mut ends = BTreeMap::<ResourceName, Vec<ResourceId>>::new();
        for deleting in self.deletions.since(&before.deletions) {
            let Deleting { name, id, .. } = &deleting.value;
            differing.entry(name.clone()).or_insert(false);
            ends.entry(name.clone()).or_default().push(*id);
            // The log keeps the last end of a name, which may be that of a later resource.
            if before.states.get(name).is_some_and(|known| known.id == *id) {
                self.states.remove(name);
            }
        }
        for (name, is_new) in &differing {
            for id in ends.remove(name).unwrap_or_default() {
                let (end, n_resources) = (ChangeKind::Ended(id), self.resources.len());
                self.state_log.note_state(revision, name, end, n_resources);
            }
            self.log.note(revision, name, *is_new, self.resources.len());
            let resource = self.resources.get(name);
            // A worker may have been lost after the last write.
            let since = resource.map(|resource| self.certain_since(resource));
            // A record that is gone has no write that tells when.
            let since = since.filter(|since| *since > before.settled);
            let since = since.unwrap_or(revision);
            self.note_state((before.settled, revision), since, name);
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
