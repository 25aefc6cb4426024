//! Bounds of the events of one resource or node. The oldest records go first, and before them the oldest folded ones, as long
//! as these take more than half of what is allowed: what happens again and again does not push out what happened once.

use super::EventBounds;

/// Number and size of the records of one resource or node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Ring {
    n_records: usize,
    n_bytes: usize,
}

impl Ring {
    /// Sums up records of these sizes.
    pub(super) fn of(sizes: &[usize]) -> Self {
        Self {
            n_records: sizes.len(),
            n_bytes: sizes.iter().sum(),
        }
    }

    /// Adds a record of this size.
    pub(super) fn add(&mut self, n_bytes: usize) {
        self.n_records += 1;
        self.n_bytes += n_bytes;
    }

    /// True if records are to be removed: there are a quarter more than the bounds allow. So a removal is one write for many
    /// events.
    pub(super) fn is_full(self, bounds: EventBounds) -> bool {
        let with_slack = |bound: usize| bound + bound / 4;
        self.exceeds(EventBounds {
            max: with_slack(bounds.max),
            max_bytes: with_slack(bounds.max_bytes),
        })
    }

    fn exceeds(self, bounds: EventBounds) -> bool {
        self.n_records > bounds.max || self.n_bytes > bounds.max_bytes
    }

    fn remove(&mut self, n_bytes: usize) {
        self.n_records -= 1;
        self.n_bytes -= n_bytes;
    }
}

/// Record of events, for its bounds.
#[derive(Debug, Clone, Copy)]
pub(super) struct SizedRecord {
    pub(super) n_bytes: usize,
    /// True if all its events are folded.
    pub(super) is_folded: bool,
}

/// Returns true for each of these records that is beyond the bounds. The oldest one comes first. The newest one stays,
/// whatever its size.
pub(super) fn beyond(records: &[SizedRecord], bounds: EventBounds) -> Vec<bool> {
    let mut is_beyond = vec![false; records.len()];
    let older = &records[..records.len().saturating_sub(1)];
    let mut all = Ring::default();
    let mut folded = Ring::default();
    for record in records {
        all.add(record.n_bytes);
        if record.is_folded {
            folded.add(record.n_bytes);
        }
    }
    let half = EventBounds {
        max: bounds.max / 2,
        max_bytes: bounds.max_bytes / 2,
    };
    for (record, is_beyond) in older.iter().zip(&mut is_beyond) {
        if record.is_folded && all.exceeds(bounds) && folded.exceeds(half) {
            *is_beyond = true;
            all.remove(record.n_bytes);
            folded.remove(record.n_bytes);
        }
    }
    for (record, is_beyond) in older.iter().zip(&mut is_beyond) {
        if !*is_beyond && all.exceeds(bounds) {
            *is_beyond = true;
            all.remove(record.n_bytes);
        }
    }
    is_beyond
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: EventBounds = EventBounds {
        max: 4,
        max_bytes: 100,
    };

    fn records(sizes: &[usize], is_folded: impl Fn(usize) -> bool) -> Vec<SizedRecord> {
        let sizes = sizes.iter().enumerate();
        let records = sizes.map(|(n, n_bytes)| SizedRecord {
            n_bytes: *n_bytes,
            is_folded: is_folded(n),
        });
        records.collect()
    }

    /// Returns how many of the oldest records of these sizes go.
    fn n_beyond(sizes: &[usize], is_folded: bool) -> usize {
        let is_beyond = beyond(&records(sizes, |_| is_folded), BOUNDS);
        assert!(is_beyond.is_sorted_by(|one, other| one >= other));
        is_beyond.into_iter().filter(|goes| *goes).count()
    }

    #[track_caller]
    fn check(sizes: &[usize], expected: usize) {
        for is_folded in [false, true] {
            assert_eq!(n_beyond(sizes, is_folded), expected, "{sizes:?}");
        }
    }

    #[test]
    fn the_oldest_records_go_by_number_and_by_size() {
        check(&[], 0);
        check(&[10; 4], 0);
        check(&[10; 7], 3);
        check(&[60, 50, 30, 20], 1);
        check(&[1, 101], 1);
        check(&[200], 0);
        // A record that is too large hides those before it.
        check(&[1, 200, 1], 2);
    }

    #[test]
    fn folded_records_do_not_push_out_the_others() {
        #[track_caller]
        fn check(folded: &[usize], n: usize, expected: &[usize]) {
            let records = records(&vec![10; n], |n| folded.contains(&n));
            let is_beyond = beyond(&records, BOUNDS);
            let gone: Vec<usize> = (0..n).filter(|n| is_beyond[*n]).collect();
            assert_eq!(gone, expected);
        }
        // The two oldest happened once.
        check(&[2, 3, 4, 5, 6], 7, &[2, 3, 4]);
        // Folded ones that are half of what is kept stay, and the oldest go.
        check(&[5, 6], 7, &[0, 1, 2]);
        check(&[0, 1, 2], 7, &[0, 1, 2]);
        check(&[0, 5, 6], 7, &[0, 1, 2]);
        // As long as there is room, folded ones may have all of it.
        check(&[0, 1, 2, 3], 4, &[]);
        // Records are counted by their bytes, too.
        let large = records(&[10, 40, 40, 40], |n| n > 0);
        assert_eq!(beyond(&large, BOUNDS), [false, true, false, false]);
    }

    #[test]
    fn records_go_when_there_are_a_quarter_too_many() {
        let ring = |n: usize, size: usize| Ring::of(&vec![size; n]);
        assert!(!ring(5, 1).is_full(BOUNDS));
        assert!(ring(6, 1).is_full(BOUNDS));
        assert!(!ring(1, 125).is_full(BOUNDS));
        assert!(ring(2, 63).is_full(BOUNDS));
        let mut added = ring(5, 1);
        added.add(1);
        assert_eq!(added, ring(6, 1));
    }

    #[test]
    fn a_ring_with_its_bounds_is_not_full() {
        let sizes = [30; 20];
        let n = n_beyond(&sizes, false);
        let rest = &sizes[n..];
        assert!(!Ring::of(rest).is_full(BOUNDS));
        assert_eq!(n_beyond(rest, false), 0);
    }
}
