//! Attempts at one event: pure, apart from the random part of the waits.

use std::time::Duration;

use super::RetrySettings;
use crawler_process::retry::delay_after;

/// Wait after the first failure; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// Failed calls for one event.
#[derive(Debug)]
pub(super) struct Attempts {
    settings: RetrySettings,
    n_failures: u32,
}

impl Attempts {
    pub(super) fn new(settings: RetrySettings) -> Self {
        Self {
            settings,
            n_failures: 0,
        }
    }

    /// Counts a failed call, after which the receiver may ask for a wait. Returns the wait before the next call; `None` if
    /// the event is given up.
    pub(super) fn failed(&mut self, asked: Option<Duration>) -> Option<Duration> {
        let RetrySettings { max_wait, .. } = self.settings;
        let wait = delay_after(FIRST_WAIT, max_wait, self.n_failures);
        let wait = wait.max(asked.unwrap_or_default().min(max_wait));
        self.n_failures += 1;
        (self.n_failures < self.settings.max_attempts).then_some(wait)
    }

    /// Number of calls that have failed.
    pub(super) fn n_failures(&self) -> u32 {
        self.n_failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_their_bound_and_the_last_failure_ends_them() {
        let mut attempts = Attempts::new(RetrySettings {
            max_attempts: 6,
            max_wait: Duration::from_secs(5),
        });
        for step in [1, 2, 4, 5, 5] {
            let step = Duration::from_secs(step);
            let wait = attempts.failed(None).expect("there are attempts left");
            assert!(wait >= step / 2 && wait <= step, "{wait:?} of {step:?}");
        }
        assert_eq!(attempts.failed(None), None);
        assert_eq!(attempts.n_failures(), 6);
    }

    #[test]
    fn a_receiver_may_ask_for_a_longer_wait_up_to_the_bound() {
        let mut attempts = Attempts::new(RetrySettings {
            max_attempts: 6,
            max_wait: Duration::from_secs(60),
        });
        let mut failed = |seconds| attempts.failed(Some(Duration::from_secs(seconds)));
        assert_eq!(failed(30), Some(Duration::from_secs(30)));
        assert_eq!(failed(u64::MAX), Some(Duration::from_secs(60)));
        let own = failed(0).expect("there are attempts left");
        assert!(own >= Duration::from_secs(2), "it asks for none: {own:?}");
    }

    #[test]
    fn one_attempt_means_that_nothing_is_repeated() {
        let settings = RetrySettings {
            max_attempts: 1,
            ..RetrySettings::default()
        };
        assert_eq!(Attempts::new(settings).failed(None), None);
    }
}
