//! Delivery of links to the other shards of a resource.
//!
//! Links that are durable in the frontier are handed over in the order of their numbers, to each shard
//! separately, so that a shard without an owner delays no other. Its links wait in the frontier then.

use std::time::Duration;

use futures::future::join_all;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::peers::{MAX_BYTES, MAX_LINKS, PeerShards};
use super::shared::Shared;
use crawler_frontier::LinkBounds;
use crawler_model::id::Shard;
use crawler_process::retry::Backoff;

/// Runs until `no_more` is cancelled and no link waits, or until `stop` is cancelled; after `gives_up` no
/// link is tried twice. Returns true if all links were handed over.
pub(super) async fn deliver(
    shared: &Shared,
    no_more: &CancellationToken,
    gives_up: &CancellationToken,
    stop: &CancellationToken,
) -> bool {
    let Some(peers) = &shared.parts.peers else {
        return true;
    };
    let news = watch::Sender::new(());
    let others = (0..peers.n_shards.get())
        .map(Shard)
        .filter(|shard| *shard != peers.own);
    let deliveries = others.map(|to| Delivery {
        shared,
        peers,
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
    peers: &'a PeerShards,
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
            let is_last_pass = no_more.is_cancelled();
            if stop.is_cancelled() {
                return false;
            }
            if is_last_pass && let Err(error) = frontier.settle().await {
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
                if is_last_pass {
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
            let handed = self.peers.transport.send_links(self.to, batch);
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
mod tests;
