//! Log of the resources that changed last: which, and at which write. All readers share it, each from the change that it
//! knows, so nothing is kept for a reader that is slow. The log has a bound: a reader that is too far behind has to begin
//! anew.
//!
//! A master that reads all records anew notes what differs, and goes on. It does not know what came and went in between, so
//! a reader whose revision is from between the two states has to begin anew: a gap.

use imbl::OrdMap;

use crawler_model::id::{ResourceId, ResourceName};
use crawler_store::Revision;

/// Number of changes that the log has room for if fewer resources are there. A name has 128 bytes at most, so these are
/// 5 MiB or less.
const CHANGES_MIN: usize = 10_000;
/// Largest number of changes of one name in a log of states: one in each place.
const PLACES: usize = 3;
/// Largest number of gaps, which are as many as reads of all records. A log that reaches back for a week has so many.
const GAPS_MAX: usize = 1_000;

/// Last changes of resources. Changes have numbers, which a master counts for itself: a reader of this master goes on from a
/// number, and misses nothing even if the writes of one revision arrive one after the other. Cheap to clone, whatever its
/// size.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResourceLog {
    /// Changes by their numbers. No revision is smaller than that of the change before.
    changes: OrdMap<u64, Change>,
    /// Numbers of the changes, by the names of the resources and the places that the changes take up.
    numbers: OrdMap<(ResourceName, Place), u64>,
    /// Number of the last change.
    last: u64,
    /// Number up to which changes were dropped.
    dropped: u64,
    /// Revision from which on the log has every change, but for the gaps.
    since: Revision,
    /// First and last revision of each gap, both exclusive.
    gaps: OrdMap<Revision, Revision>,
}

/// Change of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    /// Name of the resource.
    pub(crate) name: ResourceName,
    /// Number of the change that brought the resource, or 0 if the log does not know it. A log of states has `kind` instead.
    pub(crate) added: u64,
    /// Revision of the write.
    pub(crate) revision: Revision,
    /// Kind of the change. In a log of all changes it is always the same.
    pub(crate) kind: ChangeKind,
}

/// Kind of a change of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    /// The resource is new.
    Began,
    /// The resource is in another state than the one that it began with.
    Changed,
    /// The resource is not there any more. This was its id.
    Ended(ResourceId),
}

/// Place in the log. A name has at most one change in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Beginning,
    LastChange,
    End,
}

impl ChangeKind {
    fn place(self) -> Place {
        match self {
            ChangeKind::Began => Place::Beginning,
            ChangeKind::Changed => Place::LastChange,
            ChangeKind::Ended(_) => Place::End,
        }
    }
}

impl ResourceLog {
    /// Takes note of a change in a log of all changes, while `n_resources` are there. The last one of each name stays.
    pub(super) fn note(
        &mut self,
        revision: Revision,
        name: &ResourceName,
        is_new: bool,
        n_resources: usize,
    ) {
        let earlier = self.numbers.get(&(name.clone(), Place::LastChange));
        let earlier = earlier.and_then(|number| self.changes.get(number));
        let added = match (is_new, earlier) {
            (true, _) => self.last + 1,
            (false, Some(earlier)) => earlier.added,
            (false, None) => 0,
        };
        let change = Change {
            name: name.clone(),
            added,
            revision,
            kind: ChangeKind::Changed,
        };
        self.push(change, n_resources);
    }

    /// Takes note of a change in a log of states, while `n_resources` are there. The last one of each kind stays, and the end
    /// of a resource takes the place of its other changes.
    pub(super) fn note_state(
        &mut self,
        revision: Revision,
        name: &ResourceName,
        kind: ChangeKind,
        n_resources: usize,
    ) {
        if let ChangeKind::Ended(_) = kind {
            for place in [Place::Beginning, Place::LastChange] {
                if let Some(number) = self.numbers.remove(&(name.clone(), place)) {
                    self.changes.remove(&number);
                }
            }
        }
        let change = Change {
            name: name.clone(),
            added: 0,
            revision,
            kind,
        };
        self.push(change, n_resources.saturating_mul(PLACES));
    }

    /// Adds a change. The log has room for `n_changes`, and for some if that is few.
    fn push(&mut self, change: Change, n_changes: usize) {
        self.last += 1;
        let key = (change.name.clone(), change.kind.place());
        if let Some(earlier) = self.numbers.insert(key, self.last) {
            self.changes.remove(&earlier);
        }
        self.changes.insert(self.last, change);
        while self.changes.len() > n_changes.max(CHANGES_MIN)
            && let Some((number, _)) = self.changes.get_min()
        {
            let number = *number;
            if let Some(oldest) = self.changes.remove(&number) {
                self.numbers.remove(&(oldest.name, oldest.kind.place()));
                self.dropped = number;
                // Others of the same write may be gone too.
                self.since = self.since.max(oldest.revision);
            }
        }
    }

    /// Begins with a state of which it is not known how it came about.
    pub(super) fn begin(revision: Revision) -> Self {
        Self {
            since: revision,
            ..Self::default()
        }
    }

    /// Begins after the store was set back to this revision: all readers of the earlier log begin anew too.
    pub(super) fn begin_again(&self, revision: Revision) -> Self {
        let last = self.last + 1;
        Self {
            last,
            dropped: last,
            ..Self::begin(revision)
        }
    }

    /// Takes note that all records were read anew: of what was written after `before`, only the outcome at `now` is known.
    pub(super) fn note_gap(&mut self, before: Revision, now: Revision) {
        if now.0.saturating_sub(before.0) < 2 {
            return;
        }
        self.gaps.insert(before, now);
        while self.gaps.len() > GAPS_MAX
            && let Some((oldest, end)) = self.gaps.get_min().copied()
        {
            self.gaps.remove(&oldest);
            self.since = self.since.max(end);
        }
    }

    /// Returns the number of the last change.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Returns the revision of the last change.
    pub(crate) fn newest(&self) -> Option<Revision> {
        let newest = self.changes.get_max();
        newest.map(|(_, change)| change.revision)
    }

    /// Returns true if the log has every change since the one with this number.
    pub(crate) fn reaches_back_to(&self, number: u64) -> bool {
        (self.dropped..=self.last).contains(&number)
    }

    /// Returns the number from which on a reader goes on that knows all writes up to this revision, or `None` if the log
    /// does not have every change since then.
    pub(super) fn number_at(&self, revision: Revision) -> Option<u64> {
        let gap = self.gaps.get_prev(&revision);
        let is_within = gap.is_some_and(|(before, now)| *before < revision && revision < *now);
        if revision < self.since || is_within {
            return None;
        }
        let mut newest_first = self.changes.iter().rev();
        let known = newest_first.find(|(_, change)| change.revision <= revision);
        Some(known.map_or(self.dropped, |(number, _)| *number))
    }

    /// Returns the first change that follows a number, and its own number.
    pub(crate) fn next(&self, number: u64) -> Option<(u64, &Change)> {
        let mut following = self.changes.range(number.saturating_add(1)..);
        following.next().map(|(number, change)| (*number, change))
    }

    /// Returns true if the state of this name has a change in the log that is not its beginning.
    pub(crate) fn has_change(&self, name: &ResourceName) -> bool {
        let key = (name.clone(), Place::LastChange);
        self.numbers.contains_key(&key)
    }

    /// Returns true if the changes of this revision were noted when all records were read anew, after a gap.
    pub(crate) fn is_after_gap(&self, revision: Revision) -> bool {
        let before = Revision(revision.0.saturating_sub(1));
        let gap = self.gaps.get_prev(&before);
        gap.is_some_and(|(_, now)| *now == revision)
    }

    /// Returns the revision up to which a reader knows all writes that has every change before those of this revision. A gap
    /// that ends here may hold writes of any revision within it. Revision 0 stands for one that is not known any more.
    pub(crate) fn certain_before(&self, revision: Revision) -> Revision {
        let before = Revision(revision.0.saturating_sub(1));
        match self.gaps.get_prev(&before) {
            Some((before_gap, now)) if *now == revision => *before_gap,
            // The gap that ended here may be among those that were dropped.
            Some(_) | None if revision <= self.since => Revision::default(),
            Some(_) | None => before,
        }
    }

    /// Returns true if the changes that follow a number and have this revision come in the order of their names, all of
    /// which are behind `name`.
    pub(crate) fn is_in_order(&self, number: u64, revision: Revision, name: &ResourceName) -> bool {
        let following = self.changes.range(number.saturating_add(1)..);
        let same = following.take_while(|(_, change)| change.revision == revision);
        let names = same.map(|(_, change)| &change.name);
        std::iter::once(name).chain(names).is_sorted()
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
        log.note(Revision(5), &name(1), true, 0);
        // A reader looks while the write of revision 5 is only known in part.
        let seen = log.last();
        log.note(Revision(5), &name(2), true, 0);
        log.note(Revision(7), &name(1), false, 0);
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
        let mut log = ResourceLog::begin(Revision(4));
        for (revision, n) in [(5, 1), (5, 2), (7, 3)] {
            log.note(Revision(revision), &name(n), false, 0);
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
    fn a_reader_from_within_a_gap_begins_anew() {
        let mut log = ResourceLog::begin(Revision(4));
        log.note(Revision(6), &name(1), false, 0);
        // All records are read anew at revision 9, when all writes up to 6 are known.
        log.note_gap(Revision(6), Revision(9));
        log.note(Revision(9), &name(2), false, 0);
        let found = [5, 6, 7, 8, 9].map(|revision| log.number_at(Revision(revision)));
        assert_eq!(found, [Some(0), Some(1), None, None, Some(2)]);
        let is_after_gap = [6, 8, 9, 10].map(|revision| log.is_after_gap(Revision(revision)));
        assert_eq!(is_after_gap, [false, false, true, false]);
        let certain = [4, 6, 9, 10].map(|revision| log.certain_before(Revision(revision)).0);
        assert_eq!(certain, [0, 5, 6, 9]);
        // Nothing can have been missed between two revisions that follow each other.
        log.note_gap(Revision(9), Revision(10));
        for n in 0..GAPS_MAX as u64 {
            assert_eq!(log.number_at(Revision(6)), Some(1), "with {n} further gaps");
            log.note_gap(Revision(10 * n + 20), Revision(10 * n + 25));
        }
        assert_eq!(log.gaps.len(), GAPS_MAX);
        assert_eq!(log.number_at(Revision(6)), None, "the oldest gap is gone");
        assert_eq!(log.certain_before(Revision(9)), Revision(0));
        assert_eq!(log.number_at(Revision(9)), Some(2));
    }

    #[test]
    fn names_of_one_write_are_in_order_or_not() {
        let mut log = ResourceLog::default();
        for n in [1, 2, 4, 3] {
            log.note(Revision(5), &name(n), false, 0);
        }
        log.note(Revision(6), &name(0), false, 0);
        let is_in_order = |number, n| log.is_in_order(number, Revision(5), &name(n));
        assert!(!is_in_order(1, 1) && !is_in_order(3, 4));
        assert!(is_in_order(4, 3), "only those of the same write count");
    }

    #[test]
    fn a_state_has_a_beginning_a_last_change_and_an_end() {
        let mut log = ResourceLog::default();
        let kinds = |log: &ResourceLog| -> Vec<ChangeKind> {
            let (changes, _) = log.after(0, usize::MAX);
            changes.iter().map(|change| change.kind).collect()
        };
        let (began, changed) = (ChangeKind::Began, ChangeKind::Changed);
        for (revision, kind) in [(5, began), (6, changed), (7, changed)] {
            log.note_state(Revision(revision), &name(1), kind, 0);
        }
        assert_eq!(kinds(&log), [began, changed]);
        assert!(log.has_change(&name(1)) && !log.has_change(&name(2)));
        let [first, second] = [1, 2].map(|id| ChangeKind::Ended(ResourceId(id)));
        log.note_state(Revision(8), &name(1), first, 0);
        assert_eq!(kinds(&log), [first]);
        // The name is given to another resource.
        log.note_state(Revision(9), &name(1), began, 0);
        assert_eq!(kinds(&log), [first, began]);
        log.note_state(Revision(9), &name(1), second, 0);
        assert_eq!(kinds(&log), [second]);
        assert_eq!(log.numbers.len(), log.changes.len());
    }

    #[test]
    fn the_log_of_changes_has_a_bound_and_tells_how_far_it_reaches() {
        let mut log = ResourceLog::default();
        for n in 0..CHANGES_MIN + 10 {
            log.note(Revision(n as u64 + 1), &name(n), true, n);
        }
        // Many changes of one resource take the place of one.
        for n in 0..CHANGES_MIN {
            let revision = Revision((CHANGES_MIN + 10 + n) as u64);
            log.note(revision, &name(CHANGES_MIN), false, CHANGES_MIN);
        }
        assert_eq!(log.changes.len(), CHANGES_MIN);
        assert_eq!(log.numbers.len(), CHANGES_MIN);
        assert!(!log.reaches_back_to(9));
        assert!(log.reaches_back_to(10));
        assert_eq!(log.number_at(Revision(9)), None);
        assert_eq!(log.number_at(Revision(10)), Some(10));
        assert_eq!(log.after(10, usize::MAX).0.len(), CHANGES_MIN);
    }

    #[test]
    fn the_log_of_states_has_room_for_all_places_of_a_name() {
        let mut log = ResourceLog::default();
        let n_resources = CHANGES_MIN;
        for n in 0..n_resources {
            let end = ChangeKind::Ended(ResourceId(1));
            for kind in [end, ChangeKind::Began, ChangeKind::Changed] {
                log.note_state(Revision(1), &name(n), kind, n_resources);
            }
        }
        assert_eq!(log.after(0, usize::MAX).0.len(), PLACES * n_resources);
    }

    #[test]
    fn the_log_has_room_for_all_resources_that_are_there() {
        let mut log = ResourceLog::default();
        let n_resources = CHANGES_MIN + 10;
        for n in 0..n_resources {
            log.note(Revision(1), &name(n), false, n_resources);
        }
        assert_eq!(log.after(0, usize::MAX).0.len(), n_resources);
    }
}
