//! Resources that were deleted and whose data is not removed yet. Most of them wait for the age of their
//! frontiers, often in large numbers: those that are due are found without looking at the others.

use std::ops::Bound;
use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use crawler_model::crawl::UnixMillis;
use crawler_model::id::{ResourceId, ResourceName};
use crawler_model::resource::Deleting;
use crawler_store::catalog::Versioned;

/// Set of deletions. Cheap to clone, whatever its size.
#[derive(Debug, Clone, Default)]
pub(crate) struct Deletions {
    /// Number of changes so far.
    pub(crate) n_changes: u64,
    by_id: OrdMap<ResourceId, Arc<Versioned<Deleting>>>,
    /// The same by the names of the resources.
    by_name: OrdSet<(ResourceName, ResourceId)>,
    /// Deletions whose owners may still write.
    stopping: OrdSet<ResourceId>,
    /// Deletions without writers, by the time since which nobody writes.
    stopped: OrdSet<(UnixMillis, ResourceId)>,
}

impl Deletions {
    /// Returns the number of deletions.
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Returns the record of one deletion.
    pub(crate) fn get(&self, id: ResourceId) -> Option<&Arc<Versioned<Deleting>>> {
        self.by_id.get(&id)
    }

    /// Returns the deletions of resources of this name.
    pub(crate) fn of_name(
        &self,
        name: &ResourceName,
    ) -> impl Iterator<Item = &Versioned<Deleting>> {
        let first = (name.clone(), ResourceId(0));
        let last = (name.clone(), ResourceId(u64::MAX));
        let ids = self.by_name.range(first..=last).map(|(_, id)| id);
        ids.filter_map(|id| self.by_id.get(id))
            .map(|known| &**known)
    }

    /// Returns the deletions that an earlier state does not have, in the order in which they began.
    pub(super) fn since(&self, before: &Self) -> Vec<&Versioned<Deleting>> {
        let new = self.by_id.iter();
        let new = new.filter(|(id, _)| !before.by_id.contains_key(*id));
        let mut new: Vec<&Versioned<Deleting>> = new.map(|(_, deleting)| &**deleting).collect();
        new.sort_by_key(|deleting| deleting.created);
        new
    }

    /// Returns the name that follows another one, or the first of all.
    pub(crate) fn name_after(&self, name: Option<&ResourceName>) -> Option<ResourceName> {
        let first = name.map_or(Bound::Unbounded, |name| {
            Bound::Excluded((name.clone(), ResourceId(u64::MAX)))
        });
        let mut later = self.by_name.range((first, Bound::Unbounded));
        later.next().map(|(name, _)| name.clone())
    }

    /// Returns the deletions whose owners may still write, and those that nobody has written to since
    /// `stopped_until`.
    pub(crate) fn due(
        &self,
        stopped_until: Option<UnixMillis>,
    ) -> impl Iterator<Item = &Versioned<Deleting>> {
        let last = stopped_until.map(|at| (at, ResourceId(u64::MAX)));
        let stopped = last.map(|last| self.stopped.range(..=last));
        let stopped = stopped.into_iter().flatten().map(|(_, id)| id);
        let due = self.stopping.iter().chain(stopped);
        due.filter_map(|id| self.by_id.get(id))
            .map(|known| &**known)
    }

    /// Returns the time at which the first of the other deletions was stopped.
    pub(crate) fn first_after(&self, stopped_until: Option<UnixMillis>) -> Option<UnixMillis> {
        let first = stopped_until.map_or(0, |at| at.saturating_add(1));
        let mut later = self.stopped.range((first, ResourceId(0))..);
        later.next().map(|(at, _)| *at)
    }

    /// Takes note of a deletion's new record, or of its end.
    pub(super) fn set(&mut self, id: ResourceId, record: Option<Arc<Versioned<Deleting>>>) {
        self.n_changes += 1;
        let before = match &record {
            Some(record) => self.by_id.insert(id, Arc::clone(record)),
            None => self.by_id.remove(&id),
        };
        if let Some(before) = &before {
            self.by_name.remove(&(before.value.name.clone(), id));
        }
        if let Some(record) = &record {
            self.by_name.insert((record.value.name.clone(), id));
        }
        match before.map(|before| before.value.stopped_at) {
            Some(Some(at)) => drop(self.stopped.remove(&(at, id))),
            Some(None) => drop(self.stopping.remove(&id)),
            None => {}
        }
        match record.map(|record| record.value.stopped_at) {
            Some(Some(at)) => drop(self.stopped.insert((at, id))),
            Some(None) => drop(self.stopping.insert(id)),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_store::Revision;

    fn record(id: u64, stopped_at: Option<UnixMillis>) -> Option<Arc<Versioned<Deleting>>> {
        let value = Deleting {
            name: "a".parse().unwrap(),
            id: ResourceId(id),
            requests: Vec::new(),
            owners: Vec::new(),
            deleted_at: 0,
            purge: false,
            stopped_at,
            items_cut: false,
            rest: None,
        };
        Some(Arc::new(Versioned {
            value,
            revision: Revision(id),
            created: Revision(id),
        }))
    }

    fn check(deletions: &Deletions, until: Option<UnixMillis>, due: &[u64], next: Option<u64>) {
        let found: Vec<u64> = deletions.due(until).map(|d| d.value.id.0).collect();
        assert_eq!(found, due, "until {until:?}");
        assert_eq!(deletions.first_after(until), next, "until {until:?}");
    }

    #[test]
    fn those_that_only_wait_are_not_looked_at_and_the_first_of_them_is_known() {
        let mut deletions = Deletions::default();
        for (id, stopped_at) in [(1, None), (2, Some(500)), (3, Some(700)), (4, Some(500))] {
            deletions.set(ResourceId(id), record(id, stopped_at));
        }
        check(&deletions, None, &[1], Some(500));
        check(&deletions, Some(499), &[1], Some(500));
        check(&deletions, Some(500), &[1, 2, 4], Some(700));
        check(&deletions, Some(700), &[1, 2, 4, 3], None);
        deletions.set(ResourceId(1), record(1, Some(100)));
        deletions.set(ResourceId(2), None);
        check(&deletions, Some(500), &[1, 4], Some(700));
        assert_eq!(deletions.n_changes, 6);
    }

    #[test]
    fn they_are_found_by_the_names_of_the_resources() {
        let mut deletions = Deletions::default();
        for (id, name) in [(3, "a"), (1, "b"), (2, "a")] {
            let named = Deleting {
                name: name.parse().unwrap(),
                ..record(id, None).unwrap().value.clone()
            };
            let record = Versioned {
                value: named,
                revision: Revision(id),
                created: Revision(id),
            };
            deletions.set(ResourceId(id), Some(Arc::new(record)));
        }
        let [a, b] = ["a", "b"].map(|name| name.parse::<ResourceName>().unwrap());
        let of_a = |deletions: &Deletions| -> Vec<u64> {
            let of_name = deletions.of_name(&a);
            of_name.map(|deleting| deleting.value.id.0).collect()
        };
        assert_eq!(of_a(&deletions), [2, 3]);
        let names = [None, Some(&a), Some(&b)].map(|name| deletions.name_after(name));
        assert_eq!(names, [Some(a.clone()), Some(b), None]);
        deletions.set(ResourceId(2), None);
        assert_eq!(of_a(&deletions), [3]);
    }
}
