//! Connections that were made a short while ago, most of which are idle in a crawl of many hosts.
//!
//! An idle connection is kept for [`IDLE`], because the next page of its host may come. In a crawl of very
//! many hosts with few pages each it seldom does, and thousands of idle connections take more memory than
//! everything else. Such a crawl therefore asks hosts of which it knows no other page to close theirs.

use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

use super::client::IDLE;

/// Number of recent connections above which those that seem to be of no more use are closed.
const MANY: usize = 1_024;

/// Number of connections that were made in the present and the last period of [`IDLE`].
#[derive(Debug)]
pub(super) struct RecentConnections {
    made: Mutex<Made>,
}

#[derive(Debug)]
struct Made {
    /// Start of the present period.
    since: Instant,
    n: usize,
    n_before: usize,
}

impl Default for RecentConnections {
    fn default() -> Self {
        let since = Instant::now();
        let (n, n_before) = (0, 0);
        Self {
            made: Mutex::new(Made { since, n, n_before }),
        }
    }
}

impl RecentConnections {
    /// Notes that a connection was made.
    pub(super) fn note(&self) {
        self.with(|made| made.n += 1);
    }

    /// Returns true if so many were made that most of them must be idle.
    pub(super) fn are_many(&self) -> bool {
        self.with(|made| made.n + made.n_before > MANY)
    }

    fn with<R>(&self, use_it: impl FnOnce(&mut Made) -> R) -> R {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let elapsed = made.since.elapsed();
        if elapsed >= IDLE {
            let n_before = if elapsed < 2 * IDLE { made.n } else { 0 };
            *made = Made {
                since: Instant::now(),
                n: 0,
                n_before,
            };
        }
        use_it(&mut made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn connections_are_many_until_they_have_been_idle_for_long() {
        let connections = RecentConnections::default();
        for _ in 0..MANY {
            connections.note();
        }
        assert!(!connections.are_many());
        connections.note();
        assert!(connections.are_many());
        tokio::time::advance(IDLE).await;
        assert!(connections.are_many());
        tokio::time::advance(IDLE).await;
        assert!(!connections.are_many());
    }
}
