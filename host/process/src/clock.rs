//! Time as a value that is passed in. No other module asks the machine for it.
//!
//! Records carry wall-clock time, which may step; deadlines and delays are measured on
//! [`tokio::time::Instant`], which does not and which tests can pause.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use crawler_model::crawl::UnixMillis;

/// Source of wall-clock time.
pub trait Clock: Send + Sync + 'static {
    /// Returns nanoseconds since 1970.
    fn unix_nanos(&self) -> u64;

    /// Returns milliseconds since 1970.
    fn unix_millis(&self) -> UnixMillis {
        self.unix_nanos() / 1_000_000
    }
}

impl fmt::Debug for dyn Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clock").finish_non_exhaustive()
    }
}

/// Clock that stands still, for tests.
#[derive(Debug, Clone, Copy, Default)]
pub struct StillClock(pub UnixMillis);

impl Clock for StillClock {
    fn unix_nanos(&self) -> u64 {
        self.0 * 1_000_000
    }
}

/// Clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the clock that everything else is told to use"
    )]
    fn unix_nanos(&self) -> u64 {
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX)
    }
}
