//! Log of the resources that changed last: which, and at which write. All who watch resources read it, each from the
//! change that it knows, so nothing is kept for a reader that is slow. The log has a bound: a reader that is too far behind
//! has to begin anew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use imbl::OrdMap;

use super::Observed;
use crawler_model::id::{NodeId, ResourceName};
use crawler_model::resource::{ShardId, ShardRecord};
use crawler_store::Revision;
use crawler_store::catalog::Versioned;

/// Largest number of resources in the log. A name has 128 bytes at most, so these are 5 MiB or less.
const NAMES_MAX: usize = 10_000;

/// Last change of each resource. Changes have numbers, which a master counts for itself: a reader of this master goes on
/// from a number, and misses nothing even if the writes of one revision arrive one after the other. Cheap to clone,
/// whatever its size.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResourceLog {
    /// Changes by their numbers.
    changes: OrdMap<u64, Change>,
    /// Numbers of the changes, by the names of the resources.
    numbers: OrdMap<ResourceName, u64>,
    /// Number of the last change.
    last: u64,
    /// Number up to which changes were dropped.
    dropped: u64,
    /// Revision from which on the log has every change.
    since: Revision,
}

/// Last change of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    /// Name of the resource.
    pub(crate) name: ResourceName,
    /// Number of the change that brought the resource, or 0 if the log does not know it.
    pub(crate) added: u64,
    /// Revision of the write.
    pub(crate) revision: Revision,
}

impl ResourceLog {
    /// Takes note that a resource, one of its shards, or its worker has changed.
    pub(super) fn note(&mut self, revision: Revision, name: &ResourceName, is_new: bool) {
        self.last += 1;
        let earlier = self.numbers.insert(name.clone(), self.last);
        let earlier = earlier.and_then(|number| self.changes.remove(&number));
        let added = match earlier {
            _ if is_new => self.last,
            Some(earlier) => earlier.added,
            None => 0,
        };
        let change = Change {
            name: name.clone(),
            added,
            revision,
        };
        self.changes.insert(self.last, change);
        while self.changes.len() > NAMES_MAX
            && let Some((number, _)) = self.changes.get_min()
        {
            let number = *number;
            if let Some(oldest) = self.changes.remove(&number) {
                self.numbers.remove(&oldest.name);
                self.dropped = number;
                // Others of the same write may be gone too.
                self.since = self.since.max(oldest.revision);
            }
        }
    }

    /// Returns the number of the last change.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Returns true if the log has every change since the one with this number.
    pub(crate) fn reaches_back_to(&self, number: u64) -> bool {
        (self.dropped..=self.last).contains(&number)
    }

    /// Returns the number from which on a reader goes on that knows all writes up to this revision, or `None` if the log
    /// does not have every change since then.
    fn number_at(&self, revision: Revision) -> Option<u64> {
        if revision < self.since {
            return None;
        }
        let mut newest_first = self.changes.iter().rev();
        let known = newest_first.find(|(_, change)| change.revision <= revision);
        Some(known.map_or(self.dropped, |(number, _)| *number))
    }

    /// Returns at most `max` changes that follow a number, the oldest first, and the number up to which these are all.
    pub(crate) fn after(&self, number: u64, max: usize) -> (Vec<Change>, u64) {
        let mut following = self.changes.range(number.saturating_add(1)..);
        let changes: Vec<(u64, Change)> = following
            .by_ref()
            .take(max)
            .map(|(number, change)| (*number, change.clone()))
            .collect();
        let end = match (following.next(), changes.last()) {
            (Some(_), Some((number, _))) => *number,
            _ => self.last,
        };
        (changes.into_iter().map(|(_, change)| change).collect(), end)
    }
}

impl Observed {
    /// Returns the number in the log from which on a reader goes on that knows all writes up to a revision. Returns `None` if
    /// it has to begin anew.
    pub(crate) fn goes_on_from(&self, revision: Revision) -> Option<u64> {
        // A store that was set back has other records at the same revision.
        let is_known = revision <= self.revision;
        self.log.number_at(revision).filter(|_| is_known)
    }

    /// Takes note that a worker has come, gone or changed: the resources that it crawls may be in another phase.
    pub(super) fn note_shards_on(&mut self, worker: &NodeId, revision: Revision) {
        let shards = self.shards_on(worker);
        let names = shards.filter_map(|id| Some(self.shards.get(&id)?.value.resource.clone()));
        let names: BTreeSet<ResourceName> = names.collect();
        for name in &names {
            self.log.note(revision, name, false);
        }
    }

    /// Continues the log of an earlier state, after all records have been read: what differs has changed in between.
    pub(super) fn continue_log(&mut self, before: &Self) {
        self.log = before.log.clone();
        // A resource that came and went in between differs nowhere, so who was away meanwhile begins anew.
        self.log.since = self.revision;
        if before.revision == Revision::default() {
            return;
        }
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
        let revision = self.revision;
        for (name, is_new) in &names {
            self.log.note(revision, name, *is_new);
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

    /// Ends what readers of an earlier state know, after the store was set back: all of them begin anew.
    pub(super) fn begin_log_anew(&mut self, before: &Self) {
        let last = before.log.last + 1;
        self.log = ResourceLog {
            last,
            dropped: last,
            since: self.revision,
            ..ResourceLog::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(n: usize) -> ResourceName {
        format!("shop-{n}").parse().unwrap()
    }

    fn names(changes: &[Change]) -> Vec<ResourceName> {
        changes.iter().map(|change| change.name.clone()).collect()
    }

    #[test]
    fn changes_follow_a_number_and_each_name_once() {
        let mut log = ResourceLog::default();
        log.note(Revision(5), &name(1), true);
        // A reader looks while the write of revision 5 is only known in part.
        let seen = log.last();
        log.note(Revision(5), &name(2), true);
        log.note(Revision(7), &name(1), false);
        let (changes, end) = log.after(seen, 10);
        assert_eq!(names(&changes), [name(2), name(1)]);
        assert_eq!(end, log.last());
        assert!(changes[0].added > seen, "it is new to this reader");
        assert!(changes[1].added <= seen, "it is not");
        let (first, end) = log.after(seen, 1);
        assert_eq!(names(&first), [name(2)]);
        assert_eq!(names(&log.after(end, 1).0), [name(1)]);
    }

    #[test]
    fn a_reader_goes_on_from_a_revision_of_any_master() {
        let mut log = ResourceLog {
            since: Revision(4),
            ..ResourceLog::default()
        };
        for (revision, n) in [(5, 1), (5, 2), (7, 3)] {
            log.note(Revision(revision), &name(n), false);
        }
        let missed = |revision| {
            let number = log.number_at(Revision(revision))?;
            Some(names(&log.after(number, 10).0))
        };
        assert_eq!(missed(3), None);
        assert_eq!(missed(4), Some(vec![name(1), name(2), name(3)]));
        assert_eq!(missed(6), Some(vec![name(3)]));
        assert_eq!(missed(7), Some(Vec::new()));
    }

    #[test]
    fn the_log_of_changes_has_a_bound_and_tells_how_far_it_reaches() {
        let mut log = ResourceLog::default();
        for n in 0..NAMES_MAX + 10 {
            log.note(Revision(n as u64 + 1), &name(n), true);
        }
        // Many changes of one resource take the place of one.
        for n in 0..NAMES_MAX {
            log.note(Revision((NAMES_MAX + n) as u64), &name(NAMES_MAX), false);
        }
        assert_eq!(log.changes.len(), NAMES_MAX);
        assert_eq!(log.numbers.len(), NAMES_MAX);
        assert!(!log.reaches_back_to(9));
        assert!(log.reaches_back_to(10));
        assert_eq!(log.number_at(Revision(9)), None);
        assert_eq!(log.number_at(Revision(10)), Some(10));
        assert_eq!(log.after(10, usize::MAX).0.len(), NAMES_MAX);
    }
}
