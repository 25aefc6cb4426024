//! Return of a shard: once its crawl has ended here, in one guarded write of the record and of this worker's
//! copy. Until then no other worker gets the shard, unless the leader's patience is exhausted.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::Span;

use super::crawl_state::CrawlState;
use super::opening::{OwnShard, StepError};
use crawler_model::id::{Epoch, NodeId, ResourceName};
use crawler_model::resource::{ShardId, ShardRecord, ShardState};
use crawler_process::retry::Backoff;
use crawler_process::telemetry;
use crawler_store::catalog::encode;
use crawler_store::{Guard, Outcome, Txn};

/// A crawl that was told to stop.
#[derive(Clone)]
pub(super) struct EndingCrawl {
    /// Cancelled once it has ended and its frontier is closed.
    pub(super) ended: CancellationToken,
    /// Its last state.
    pub(super) crawl_state: CrawlState,
}

/// Returns the span of the return of a shard, after the end of its crawl.
pub(super) fn span(resource: &ResourceName, shard: ShardId, epoch: Epoch) -> Span {
    tracing::error_span!(target: "spans", "return", %resource, %shard, %epoch)
}

/// Gives a shard back once the crawl has ended. It ends early if the shard is not ours any more, or if `stop`
/// comes while the store does not answer.
pub(super) async fn run(
    shard: OwnShard,
    worker: NodeId,
    crawl: Option<EndingCrawl>,
    stop: CancellationToken,
) {
    if let Some(crawl) = &crawl {
        crawl.ended.cancelled().await;
    }
    let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
    loop {
        let error = match shard.release(&worker, crawl.as_ref()).await {
            Ok(()) => {
                tracing::info!("given back");
                return;
            }
            Err(StepError::Lost) => return,
            Err(StepError::Raced) => continue,
            Err(error) => error,
        };
        let error = telemetry::chain(&error);
        tracing::warn!(error, "a shard cannot be given back yet");
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = tokio::time::sleep(backoff.next_delay()) => {}
        }
    }
}

impl OwnShard {
    async fn release(&self, worker: &NodeId, crawl: Option<&EndingCrawl>) -> Result<(), StepError> {
        let present = self.record().await?;
        if present.value.state != ShardState::Revoking {
            return Err(StepError::Lost);
        }
        let record = ShardRecord {
            counts: crawl
                .and_then(|crawl| crawl.crawl_state.counts())
                .unwrap_or_else(|| present.value.counts.clone()),
            ..present.value.freed()
        };
        let keys = self.catalog.keys();
        let key = keys.shard(self.id);
        let txn = Txn::new()
            .guard(Guard::RevisionIs(key.clone(), present.revision))
            .put(key, encode(&record))
            .delete(keys.assignment(worker, self.id));
        match self.catalog.store().commit(txn).await? {
            Outcome::Done(_) => Ok(()),
            Outcome::Lost(_) | Outcome::Unknown => Err(StepError::Raced),
        }
    }
}
