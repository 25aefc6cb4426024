//! Log of the resources that changed last: which, and at which write. All who watch resources read it, each from the
//! revision that it knows, so nothing is kept for a reader that is slow. The log has a bound: a reader that is too far behind
//! has to begin anew.

use std::collections::BTreeSet;

use imbl::OrdMap;

use super::Observed;
use crawler_model::id::{NodeId, ResourceName};
use crawler_store::Revision;

/// Largest number of changes in the log. A name has 128 bytes at most, so these are 2 MiB or less.
const CHANGES_MAX: usize = 10_000;

/// Changes by the revisions of their writes. Cheap to clone, whatever its size.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResourceLog {
    /// Names of changed resources, by the revision and a number that tells changes of one write apart.
    changes: OrdMap<(Revision, u64), ResourceName>,
    /// Number of changes so far.
    n_changes: u64,
    /// Revision from which on the log has every change.
    since: Revision,
}

impl ResourceLog {
    /// Takes note that a resource, one of its shards, or its worker has changed.
    pub(super) fn note(&mut self, revision: Revision, name: &ResourceName) {
        self.n_changes += 1;
        self.changes
            .insert((revision, self.n_changes), name.clone());
        while self.changes.len() > CHANGES_MAX
            && let Some(oldest) = self.changes.get_min().map(|(oldest, _)| *oldest)
        {
            self.changes.remove(&oldest);
            // Others of the same write may be gone too.
            self.since = self.since.max(oldest.0);
        }
    }

    /// True if the log has every change since a revision.
    pub(crate) fn reaches_back_to(&self, revision: Revision) -> bool {
        revision >= self.since
    }

    /// True if something has changed since a revision.
    pub(crate) fn has_changes_after(&self, revision: Revision) -> bool {
        let latest = self.changes.get_max();
        latest.is_some_and(|((latest, _), _)| *latest > revision)
    }

    /// Returns the names of the resources that have changed since a revision.
    pub(crate) fn after(&self, revision: Revision) -> BTreeSet<ResourceName> {
        let first = (Revision(revision.0.saturating_add(1)), 0);
        let changes = self.changes.range(first..);
        changes.map(|(_, name)| name.clone()).collect()
    }
}

impl Observed {
    /// True if the log has every change since a revision of this state.
    pub(crate) fn tells_all_after(&self, revision: Revision) -> bool {
        // A store that was set back has other records at the same revision.
        revision <= self.revision && self.log.reaches_back_to(revision)
    }

    /// True if resources have changed since a revision, or if the log does not tell.
    pub(crate) fn has_news_after(&self, revision: Revision) -> bool {
        self.log.has_changes_after(revision) || !self.tells_all_after(revision)
    }

    /// Takes note that a worker has come, gone or changed: the resources that it crawls may be in another phase.
    pub(super) fn note_shards_on(&mut self, worker: &NodeId, revision: Revision) {
        let shards = self.shards_on(worker);
        let names = shards.filter_map(|id| Some(self.shards.get(&id)?.value.resource.clone()));
        let names: BTreeSet<ResourceName> = names.collect();
        for name in &names {
            self.log.note(revision, name);
        }
    }

    /// Continues the log of an earlier state, after all records have been read: what differs has changed in between.
    pub(super) fn continue_log(&mut self, before: &Self) {
        if before.revision == Revision::default() {
            self.log.since = self.revision;
            return;
        }
        self.log = before.log.clone();
        let mut names = BTreeSet::new();
        for (name, resource) in &self.resources {
            let known = before.resources.get(name).map(|known| known.revision);
            if known != Some(resource.revision) {
                names.insert(name.clone());
            }
        }
        let gone = before.resources.keys();
        names.extend(
            gone.filter(|name| !self.resources.contains_key(*name))
                .cloned(),
        );
        for (id, shard) in &self.shards {
            let known = before.shards.get(id).map(|known| known.revision);
            if known != Some(shard.revision) {
                names.insert(shard.value.resource.clone());
            }
        }
        for (id, shard) in &before.shards {
            if !self.shards.contains_key(id) {
                names.insert(shard.value.resource.clone());
            }
        }
        let revision = self.revision;
        for name in &names {
            self.log.note(revision, name);
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(n: usize) -> ResourceName {
        format!("shop-{n}").parse().unwrap()
    }

    #[test]
    fn changes_are_told_from_a_revision_on_and_each_name_once() {
        let mut log = ResourceLog::default();
        for (revision, n) in [(5, 1), (5, 2), (7, 1)] {
            log.note(Revision(revision), &name(n));
        }
        assert!(log.has_changes_after(Revision(6)));
        assert!(!log.has_changes_after(Revision(7)));
        assert_eq!(log.after(Revision(4)), [name(1), name(2)].into());
        assert_eq!(log.after(Revision(5)), [name(1)].into());
        assert!(log.after(Revision(7)).is_empty());
    }

    #[test]
    fn the_log_of_changes_has_a_bound_and_tells_how_far_it_reaches() {
        let mut log = ResourceLog::default();
        for n in 0..CHANGES_MAX + 10 {
            log.note(Revision(n as u64 + 1), &name(n));
        }
        assert_eq!(log.changes.len(), CHANGES_MAX);
        assert!(!log.reaches_back_to(Revision(9)));
        assert!(log.reaches_back_to(Revision(10)));
        assert_eq!(log.after(Revision(10)).len(), CHANGES_MAX);
    }
}
