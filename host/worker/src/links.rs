//! Links to the other shards of a resource, and their delivery.
//!
//! Links that are durable in the frontier are handed over in the order of their numbers, to each shard
//! separately, so that a shard without an owner delays no other. Its links wait in the frontier then.

use std::num::NonZeroU32;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::shared::Shared;
use crawler_frontier::{LinkBatch, LinkBounds};
use crawler_model::id::Shard;
use crawler_model::links::shard_of;
use crawler_process::retry::Backoff;

/// Maximum number of links of one call. A receiver takes no more.
pub const MAX_LINKS: usize = 500;
/// Maximum size in bytes of one call, unless one link alone is larger.
const MAX_BYTES: usize = 1 << 20;

/// Transport that gives links to another shard of the resource, wherever that is crawled.
#[async_trait]
pub trait HandOver: Send + Sync + 'static {
    /// Hands links over and returns the number of the last link that is durable there. An error says nothing
    /// about what is durable.
    async fn hand_over(&self, to: Shard, batch: &LinkBatch) -> Result<u64, HandOverError>;
}

/// Error for links that another shard has not taken; they are given to it again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("links wait for shard {to}: {why}")]
pub struct HandOverError {
    /// Shard that the links are for.
    pub to: Shard,
    /// Description of the cause.
    pub why: String,
}

/// A shard among those of its resource.
#[derive(Clone)]
pub struct Part {
    /// Number of the shard.
    pub own: Shard,
    /// Number of shards of the resource.
    pub n_shards: NonZeroU32,
    /// Transport of links to the other shards.
    pub others: std::sync::Arc<dyn HandOver>,
    /// State that tells if the shard has nothing to do.
    pub quiet: Quiet,
}

impl Part {
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
pub(super) fn share_of(max: u64, shard: Shard, n_shards: NonZeroU32) -> u64 {
    let n_shards = u64::from(n_shards.get());
    max / n_shards + u64::from(u64::from(shard.0) < max % n_shards)
}

/// State in which a crawl has nothing to do, as the crawl itself declares. From then on it does nothing until
/// another task ends this state. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Quiet(watch::Sender<Rest>);

#[derive(Debug, Clone, Copy, Default)]
struct Rest {
    is_on: bool,
    /// Number of times that work was announced.
    n_ends: u64,
}

impl Default for Quiet {
    fn default() -> Self {
        Self(watch::Sender::new(Rest::default()))
    }
}

impl Quiet {
    /// Returns the number of times that work has been announced so far.
    pub(super) fn n_ends(&self) -> u64 {
        self.0.borrow().n_ends
    }

    /// Declares that nothing is left to do, by a look that began after `n_ends` announcements. If there was
    /// another since, the look may have missed that work, and the call has no effect.
    pub(super) fn begin_after(&self, n_ends: u64) {
        self.0.send_if_modified(|rest| {
            let begins = !rest.is_on && rest.n_ends == n_ends;
            rest.is_on |= begins;
            begins
        });
    }

    /// Announces that there is work again.
    pub fn end(&self) {
        self.0.send_modify(|rest| {
            rest.is_on = false;
            rest.n_ends += 1;
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
        drop(changes.wait_for(|rest| rest.is_on == is_on).await);
    }
}

/// Runs until `no_more` is cancelled and no link waits, or until `stop` is cancelled; after `gives_up` no
/// link is tried twice. Returns true if all links were handed over.
pub(super) async fn deliver(
    shared: &Shared,
    no_more: &CancellationToken,
    gives_up: &CancellationToken,
    stop: &CancellationToken,
) -> bool {
    let Some(part) = &shared.parts.part else {
        return true;
    };
    let news = watch::Sender::new(());
    let others = (0..part.n_shards.get())
        .map(Shard)
        .filter(|shard| *shard != part.own);
    let deliveries = others.map(|to| Delivery {
        shared,
        part,
        to,
        news: news.subscribe(),
    });
    let deliveries = join_all(deliveries.map(|delivery| delivery.run(no_more, gives_up, stop)));
    let changes = async {
        loop {
            shared.parts.frontier.links_changed().await;
            news.send_replace(());
        }
    };
    tokio::select! {
        biased;
        delivered = deliveries => delivered.into_iter().all(|is_delivered| is_delivered),
        () = changes => false,
    }
}

/// Delivery of the links for one other shard.
struct Delivery<'a> {
    shared: &'a Shared,
    part: &'a Part,
    to: Shard,
    news: watch::Receiver<()>,
}

impl Delivery<'_> {
    async fn run(
        mut self,
        no_more: &CancellationToken,
        gives_up: &CancellationToken,
        stop: &CancellationToken,
    ) -> bool {
        let frontier = &self.shared.parts.frontier;
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
        let bounds = LinkBounds {
            n: MAX_LINKS,
            bytes: MAX_BYTES,
        };
        let mut is_told = false;
        loop {
            // The flag is read before the links: links committed before the end are seen below.
            let is_last_look = no_more.is_cancelled();
            if stop.is_cancelled() {
                return false;
            }
            if is_last_look && let Err(error) = frontier.settle().await {
                self.shared.lost_frontier(error);
                return false;
            }
            self.news.mark_unchanged();
            let batch = match frontier.links_for(self.to, bounds).await {
                Ok(batch) => batch,
                Err(error) => {
                    self.shared.lost_frontier(error);
                    return false;
                }
            };
            if batch.links.is_empty() {
                if is_last_look {
                    return true;
                }
                tokio::select! {
                    biased;
                    () = stop.cancelled() => return false,
                    () = no_more.cancelled() => {}
                    _ = self.news.changed() => {}
                }
                continue;
            }
            let handed = self.part.others.hand_over(self.to, &batch);
            // It is unknown if the other shard has links whose call was cut off: they are given to it again.
            let Some(handed) = stop.run_until_cancelled(handed).await else {
                return false;
            };
            let error = match handed {
                Ok(last) => {
                    backoff.reset();
                    is_told = false;
                    if let Err(error) = frontier.delivered(self.to, last + 1).await {
                        self.shared.lost_frontier(error);
                        return false;
                    }
                    self.shared.progress.notify_one();
                    continue;
                }
                Err(error) => error,
            };
            if !is_told {
                tracing::warn!(%error, "links wait for another shard");
                self.shared.parts.log.note("warn", error.to_string());
                is_told = true;
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return false,
                () = gives_up.cancelled() => return false,
                () = tokio::time::sleep(backoff.next_delay()) => {}
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
