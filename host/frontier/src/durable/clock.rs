//! Clock of a database, which must not go back.
//!
//! The database refuses a write that is older than the last, by the clock of the machine. If that clock was
//! set back since the last opening, or is behind the clock of the machine that had the shard before, nothing
//! could be written until it has caught up. The database therefore gets a clock that is moved on as far as
//! needed. Tables, and the time for which a compaction keeps its inputs, are dated by this clock. Other files
//! are dated by their store, so the lead of this clock at the opening is added to their age limits. If the
//! clock is moved on after that, all of these files are removed sooner by as much, until the next opening.

use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use slatedb_common::clock::{DefaultSystemClock, SystemClock, SystemClockTicker};

use crawler_model::crawl::UnixMillis;

/// Time that a batch may wait, after it was made, until the database stamps it: more than a write may take.
const MARGIN: i64 = 60_000;

/// The clock of one database.
#[derive(Debug, Default)]
pub(super) struct DatabaseClock {
    machine: DefaultSystemClock,
    /// Milliseconds by which this clock is ahead of the machine's.
    ahead: AtomicI64,
}

impl DatabaseClock {
    /// Creates a clock that is this many milliseconds ahead of the machine's.
    #[cfg(test)]
    pub(super) fn ahead_by(millis: i64) -> Self {
        Self {
            ahead: AtomicI64::new(millis),
            ..Self::default()
        }
    }

    pub(super) fn millis(&self) -> UnixMillis {
        u64::try_from(self.now().timestamp_millis()).unwrap_or_default()
    }

    /// Returns how far the clock is ahead of the machine's.
    pub(super) fn ahead(&self) -> Duration {
        let ahead = self.ahead.load(Ordering::Relaxed);
        Duration::from_millis(u64::try_from(ahead).unwrap_or(0))
    }

    /// Moves the clock on after a write at this moment, so that later ones get a later time.
    pub(super) fn go_on_from(&self, last: UnixMillis) {
        let behind = last.saturating_sub(self.millis());
        if behind > 0 {
            let behind = i64::try_from(behind).unwrap_or(i64::MAX);
            self.ahead
                .fetch_add(behind.saturating_add(MARGIN), Ordering::Relaxed);
        }
    }
}

impl SystemClock for DatabaseClock {
    fn now(&self) -> DateTime<Utc> {
        self.machine.now() + TimeDelta::milliseconds(self.ahead.load(Ordering::Relaxed))
    }

    fn sleep<'a>(&'a self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        self.machine.sleep(duration)
    }

    fn ticker<'a>(&'a self, duration: Duration) -> SystemClockTicker<'a> {
        SystemClockTicker::new(self, duration)
    }
}
