//! Time that does not go back, even if the wall clock does.
//!
//! Due times and host clocks are compared with a time that is passed in and stored across restarts. If the
//! wall clock were set back by a day, everything that waits would wait for a day more. A frontier therefore
//! has a time of its own: that of the wall clock, plus the time by which that was set back since.

use crawler_model::crawl::UnixMillis;

/// Tolerance in milliseconds: calls that come in another order than their moments were read do not mean that
/// the clock was set back.
const JITTER: u64 = 1_000;

/// Time of one frontier.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MonotonicTime {
    /// Milliseconds by which the wall clock was set back.
    behind: u64,
    /// Latest moment known.
    latest: UnixMillis,
    /// Moment that was recorded last: before `latest` if the clock was set back by less than [`JITTER`].
    recorded: UnixMillis,
}

impl MonotonicTime {
    /// Continues from the latest moment that an earlier opening has stored.
    pub(crate) fn from(latest: UnixMillis) -> Self {
        Self {
            latest,
            ..Self::default()
        }
    }

    /// Returns the latest moment known.
    pub(crate) fn latest(&self) -> UnixMillis {
        self.latest
    }

    /// Records the present moment, and returns it in this time.
    pub(crate) fn now(&mut self, wall: UnixMillis) -> UnixMillis {
        let now = wall.saturating_add(self.behind);
        if now + JITTER < self.latest {
            self.behind += self.latest - now;
        }
        self.recorded = wall.saturating_add(self.behind);
        self.latest = self.latest.max(now);
        self.latest
    }

    /// Converts a moment of the wall clock to this time.
    pub(crate) fn of_wall(&self, wall: UnixMillis) -> UnixMillis {
        wall.saturating_add(self.behind)
    }

    /// Converts a moment of the wall clock before which nothing is done. If it is still to come, it comes after the
    /// latest moment known: otherwise, while the clock is set back a little, what has to wait would be due at once,
    /// over and over.
    pub(crate) fn of_wait(&self, until: UnixMillis) -> UnixMillis {
        let until = self.of_wall(until);
        match until > self.recorded {
            true => until.max(self.latest.saturating_add(1)),
            false => until,
        }
    }

    /// Converts a moment of this time to the wall clock.
    pub(crate) fn to_wall(self, moment: UnixMillis) -> UnixMillis {
        moment.saturating_sub(self.behind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400_000;

    #[test]
    fn a_clock_set_back_delays_nothing() {
        let mut time = MonotonicTime::from(0);
        assert_eq!(time.now(2 * DAY), 2 * DAY);
        let due = time.latest() + 500;
        assert_eq!(time.now(DAY), 2 * DAY, "time stands still for the step");
        assert_eq!(time.to_wall(due), DAY + 500);
        assert_eq!(time.now(DAY + 500), due);
        assert_eq!(time.of_wall(DAY + 700), due + 200);
        let mut restarted = MonotonicTime::from(due);
        assert_eq!(restarted.now(DAY + 600), due);
    }

    #[test]
    fn calls_out_of_order_are_not_a_clock_set_back() {
        let mut time = MonotonicTime::from(0);
        time.now(10_000);
        assert_eq!(time.now(9_990), 10_000);
        assert_eq!(time.to_wall(10_000), 10_000);
    }

    #[test]
    fn a_wait_is_a_wait_while_the_clock_is_behind() {
        let mut time = MonotonicTime::from(0);
        time.now(10_000);
        assert_eq!((time.of_wait(9_999), time.of_wait(10_001)), (9_999, 10_001));
        time.now(9_500);
        assert_eq!((time.of_wait(9_500), time.of_wait(9_501)), (9_500, 10_001));
        assert_eq!(time.of_wait(12_000), 12_000);
        // A clock that was set back by more is made up for.
        time.now(5_000);
        assert_eq!((time.of_wait(5_000), time.of_wait(5_007)), (10_000, 10_007));
    }
}
