//! Back-off: waits longer after each failure, with jitter, so that many callers that failed together do not
//! come back together ("full jitter": AWS Architecture Blog, "Exponential Backoff And Jitter", 2015).

use std::time::Duration;

use rand::RngExt as _;

/// Delays that double from a first value to a ceiling.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    ceiling: Duration,
    n_failures: u32,
}

impl Backoff {
    /// Creates a back-off that starts at `first` and never waits longer than `ceiling`.
    pub fn new(first: Duration, ceiling: Duration) -> Self {
        Self {
            first,
            ceiling,
            n_failures: 0,
        }
    }

    /// Returns the next delay: between half of the present step and all of it.
    pub fn next_delay(&mut self) -> Duration {
        let delay = delay_after(self.first, self.ceiling, self.n_failures);
        self.n_failures = self.n_failures.saturating_add(1);
        delay
    }

    /// Forgets the failures.
    pub fn reset(&mut self) {
        self.n_failures = 0;
    }
}

/// Returns the delay after `n_failures`, between half of its step and all of it.
pub fn delay_after(first: Duration, ceiling: Duration, n_failures: u32) -> Duration {
    let step = first
        .saturating_mul(2u32.saturating_pow(n_failures))
        .min(ceiling);
    step.mul_f64(jitter())
}

fn jitter() -> f64 {
    #[cfg(any(test, feature = "testing"))]
    if let Some(jitter) = seeded::next() {
        return jitter;
    }
    rand::rng().random_range(0.5..=1.0)
}

/// Jitter of a thread that follows from a seed, so that its events can be repeated.
#[cfg(any(test, feature = "testing"))]
#[allow(missing_docs, clippy::unwrap_used, reason = "code of tests")]
pub mod seeded {
    use std::cell::RefCell;

    use rand::rngs::StdRng;
    use rand::{RngExt as _, SeedableRng as _};

    thread_local! {
        static JITTER: RefCell<Option<StdRng>> = const { RefCell::new(None) };
    }

    /// Makes the jitter of this thread follow from a seed from now on.
    pub fn begin(seed: u64) {
        JITTER.set(Some(StdRng::seed_from_u64(seed)));
    }

    pub(super) fn next() -> Option<f64> {
        JITTER.with_borrow_mut(|jitter| Some(jitter.as_mut()?.random_range(0.5..=1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_ceiling() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(4));
        for step in [1, 2, 4, 4] {
            let delay = backoff.next_delay();
            assert!(
                delay >= Duration::from_secs(step) / 2 && delay <= Duration::from_secs(step),
                "{delay:?}"
            );
        }
        backoff.reset();
        assert!(backoff.next_delay() <= Duration::from_secs(1));
    }
}
