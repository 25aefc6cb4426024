//! The other shards of a resource, as the crawl of one shard sees them: which hosts are theirs, how they get links,
//! and whether this shard is idle.

use std::num::NonZeroU32;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::watch;
use url::Url;

use crawler_frontier::LinkBatch;
use crawler_model::id::Shard;
use crawler_model::links::shard_of;

/// Maximum number of links of one call. A receiver takes no more.
pub const MAX_LINKS: usize = 500;

/// Maximum size in bytes of the links of one call, as they are stored, unless one link alone is larger.
pub(super) const MAX_BYTES: usize = 1 << 20;

/// Maximum size in bytes of a call with more links than one. A receiver takes no more. A link may be longer in a call than
/// in the frontier, which stores the common beginning of a URL and its referrer once.
pub const MAX_CALL_BYTES: usize = 4 * MAX_BYTES;

/// Transport that gives links to another shard of the resource, wherever that is crawled.
#[async_trait]
pub trait LinkTransport: Send + Sync + 'static {
    /// Hands links over and returns the number of the last link that is durable there. An error says nothing
    /// about what is durable.
    async fn send_links(&self, to: Shard, batch: LinkBatch) -> Result<u64, LinkTransportError>;
}

/// Error for links that another shard has not taken; they are given to it again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("links wait for shard {to}: {why}")]
pub struct LinkTransportError {
    /// Shard that the links are for.
    pub to: Shard,
    /// Description of the cause.
    pub why: String,
}

/// Peers of a shard: the other shards of its resource.
#[derive(Clone)]
pub struct PeerShards {
    /// Number of this shard.
    pub own: Shard,
    /// Number of shards of the resource.
    pub n_shards: NonZeroU32,
    /// Transport of links to the other shards.
    pub transport: Arc<dyn LinkTransport>,
    /// State that tells if this shard has nothing to do.
    pub idle: Idle,
}

impl PeerShards {
    /// Returns the shard that a URL belongs to, if that is another one.
    pub(super) fn other(&self, url: &Url) -> Option<Shard> {
        let shard = shard_of(url, self.n_shards);
        (shard != self.own).then_some(shard)
    }

    /// Returns this shard's share of a limit of the whole resource.
    pub(super) fn share(&self, max: u64) -> u64 {
        share_of(max, self.own, self.n_shards)
    }
}

/// Returns a shard's share of a limit of a resource of `n_shards` shards.
pub fn share_of(max: u64, shard: Shard, n_shards: NonZeroU32) -> u64 {
    let n_shards = u64::from(n_shards.get());
    max / n_shards + u64::from(u64::from(shard.0) < max % n_shards)
}

/// State in which a crawl has nothing to do, as the crawl itself declares. From then on it does nothing until
/// another task ends this state. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Idle(watch::Sender<IdleState>);

#[derive(Debug, Clone, Copy, Default)]
struct IdleState {
    is_on: bool,
    /// Number of times that work was announced.
    n_ends: u64,
}

impl Default for Idle {
    fn default() -> Self {
        Self(watch::Sender::new(IdleState::default()))
    }
}

impl Idle {
    /// Returns the number of times that work has been announced so far.
    pub(super) fn n_ends(&self) -> u64 {
        self.0.borrow().n_ends
    }

    /// Declares that nothing is left to do, by a check that began after `n_ends` announcements. If there was
    /// another since, the check may have missed that work, and the call has no effect.
    pub(super) fn begin_after(&self, n_ends: u64) {
        self.0.send_if_modified(|state| {
            let begins = !state.is_on && state.n_ends == n_ends;
            state.is_on |= begins;
            begins
        });
    }

    /// Announces that there is work again.
    pub fn end(&self) {
        self.0.send_modify(|state| {
            state.is_on = false;
            state.n_ends += 1;
        });
    }

    /// Returns true if the crawl has nothing to do.
    pub fn is_on(&self) -> bool {
        self.0.borrow().is_on
    }

    /// Waits until nothing is left to do.
    pub async fn begun(&self) {
        self.until(true).await;
    }

    pub(super) async fn ended(&self) {
        self.until(false).await;
    }

    async fn until(&self, is_on: bool) {
        let mut changes = self.0.subscribe();
        // The sender is alive, because `self` has it.
        drop(changes.wait_for(|state| state.is_on == is_on).await);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_comes_during_a_check_keeps_a_shard_busy() {
        let idle = Idle::default();
        let before = idle.n_ends();
        // Work was announced while the crawl was busy: a check that began before may have missed it.
        idle.end();
        idle.begin_after(before);
        assert!(!idle.is_on());
        idle.begin_after(idle.n_ends());
        assert!(idle.is_on());
    }
}
