//! A caller that asks for the turn of a host, and the answer that sends it away.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::address::Address;
use crate::FetchError;

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
