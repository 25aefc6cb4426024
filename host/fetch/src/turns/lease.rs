//! A lease that this worker holds: the requests left of it, and the moment at which it ends.

use std::time::Duration;

use tokio::time::Instant;

use super::call::Grant;

/// A lease of one host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HeldLease {
    turns: u32,
    until: Instant,
    /// Time between the end of a request and the next, by the longest delay that any worker asked for.
    delay: Duration,
}

impl HeldLease {
    /// Creates a lease that was asked for at `asked`. Its time counts from then, which is before the owner
    /// began to count.
    pub(super) fn new(grant: Grant, asked: Instant) -> Self {
        Self {
            turns: grant.turns,
            until: asked + grant.lasts,
            delay: grant.delay,
        }
    }

    /// Returns the end of the lease.
    pub(super) fn until(&self) -> Instant {
        self.until
    }

    /// Returns the moment from which the next request may be begun, if the last one ended at `ended`. Returns
    /// `None` if the lease has no turn left, or ends before that.
    pub(super) fn next_at(&self, ended: Option<Instant>, now: Instant) -> Option<Instant> {
        let at = ended.map_or(now, |ended| (ended + self.delay).max(now));
        (self.turns > 0 && at < self.until).then_some(at)
    }

    /// Uses up one turn for a request.
    pub(super) fn use_turn(&mut self) {
        self.turns = self.turns.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_ends_with_its_turns_or_its_time() {
        let asked = Instant::now();
        let at = |millis: u64| asked + Duration::from_millis(millis);
        let grant = Grant {
            turns: 2,
            lasts: Duration::from_secs(5),
            delay: Duration::from_secs(2),
        };
        let mut held = HeldLease::new(grant, asked);
        assert_eq!(held.until(), at(5_000));
        assert_eq!(held.next_at(None, at(10)), Some(at(10)));
        assert_eq!(held.next_at(Some(at(100)), at(200)), Some(at(2_100)));
        assert_eq!(held.next_at(Some(at(100)), at(4_999)), Some(at(4_999)));
        assert_eq!(held.next_at(Some(at(100)), at(5_000)), None);
        assert_eq!(held.next_at(Some(at(3_000)), at(3_000)), None, "no room");
        held.use_turn();
        assert_eq!(held.next_at(Some(at(100)), at(200)), Some(at(2_100)));
        held.use_turn();
        assert_eq!(held.next_at(None, at(200)), None, "no turn");
    }
}
