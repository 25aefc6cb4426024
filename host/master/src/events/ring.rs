//! Bounds of the events of one resource. The oldest records go first.

use super::EventBounds;

/// Number and size of the records of one resource.
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
        self.n_records > with_slack(bounds.max) || self.n_bytes > with_slack(bounds.max_bytes)
    }
}

/// Returns how many records of these sizes are beyond the bounds, counted from the oldest, which comes first. The newest
/// record stays, whatever its size.
pub(super) fn n_beyond(sizes: &[usize], bounds: EventBounds) -> usize {
    let mut n_bytes = 0;
    let newest = sizes.iter().rev().take(bounds.max);
    let within = newest.take_while(|size| {
        n_bytes += **size;
        n_bytes <= bounds.max_bytes
    });
    let n_kept = within.count().max(1);
    sizes.len().saturating_sub(n_kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: EventBounds = EventBounds {
        max: 4,
        max_bytes: 100,
    };

    #[track_caller]
    fn check(sizes: &[usize], expected: usize) {
        assert_eq!(n_beyond(sizes, BOUNDS), expected, "{sizes:?}");
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
        let n = n_beyond(&sizes, BOUNDS);
        let rest = &sizes[n..];
        assert!(!Ring::of(rest).is_full(BOUNDS));
        assert_eq!(n_beyond(rest, BOUNDS), 0);
    }
}
