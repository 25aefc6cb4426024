//! A caller that asks for the turn of a host, and the answer that sends it away.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::address::Address;
use crate::FetchError;
use crawler_model::crawl::UnixMillis;

/// A crawl or other caller that asks for a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requester {
    /// Number of the crawl; crawls with different numbers take turns at a host.
    pub crawl: u64,
    /// The longest wait in the throttle itself; a requester that would have to wait longer is sent away. If
    /// `None`, it waits for every delay, and for [`MAX_WAIT`](super::MAX_WAIT) where the host is in trouble.
    pub max_wait: Option<Duration>,
}

impl Requester {
    /// Creates a requester with a number of its own that waits in the throttle.
    pub fn waiting() -> Self {
        Self {
            crawl: Self::new_crawl(),
            max_wait: None,
        }
    }

    /// Returns the number of a new crawl, unique within the process.
    pub fn new_crawl() -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }
}

/// A host that is left alone for some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the host is left alone for another {pause:?}")]
pub struct Paused {
    /// Time from now on.
    pub pause: Duration,
    /// True if the cause is trouble of the host or its used-up rate, not its delay.
    pub is_in_trouble: bool,
    /// Address that may not be asked yet, though the host itself may.
    pub address: Option<Address>,
}

impl Paused {
    /// Returns the time at which the host may be asked again.
    pub fn ready_at(&self, now: UnixMillis) -> UnixMillis {
        after(now, self.pause)
    }

    /// Returns the error of a request to this host.
    pub(crate) fn into_error(self, host: String) -> FetchError {
        let pause = self.pause;
        match self.address {
            None => FetchError::Paused { host, pause },
            Some(address) => FetchError::AddressPaused {
                host,
                address: address.to_string(),
                pause,
            },
        }
    }
}

/// Returns the first millisecond at which this pause is over. If a fraction were cut off, a page would be due at once
/// that the host is not ready for, and be taken and put back until the fraction has passed.
pub(crate) fn after(now: UnixMillis, pause: Duration) -> UnixMillis {
    let millis = pause.as_nanos().div_ceil(1_000_000);
    now.saturating_add(u64::try_from(millis).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_over_no_sooner_than_it_lasts() {
        for (nanos, millis) in [(0, 0), (1, 1), (999_999, 1), (1_000_000, 1), (1_000_001, 2)] {
            let paused = Paused {
                pause: Duration::from_nanos(nanos),
                is_in_trouble: false,
                address: None,
            };
            assert_eq!(paused.ready_at(5), 5 + millis, "{nanos}");
        }
        assert_eq!(after(5, Duration::MAX), u64::MAX);
    }
}
