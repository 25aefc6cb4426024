//! An assignment with what it needs, and how it writes in its shard's record.
//!
//! Every write names the epoch that was assigned: if the shard's record has another one, this worker has lost
//! the shard and writes nothing more about it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::crawl_state::CrawlState;
use super::opening::{OwnShard, StepError};
use super::parts::AgentParts;
use crawler_crawl::CrawlConfig;
use crawler_crawl::log::CrawlLog;
use crawler_crawl::pacing::Pacing;
use crawler_crawl::permit::FetchPermit;
use crawler_model::plugin::LimitError;
use crawler_model::resource::{Resource, ShardRecord, Waits};
use crawler_process::memory::CrawlMemory;
use crawler_process::retry::Backoff;
use crawler_process::telemetry;

/// Time without work after which a crawl closes its frontier for the time being.
pub(super) const CLOSE_AFTER: Duration = Duration::from_secs(60);
/// The longest pause after a fault. A frontier that worked for longer than this resets the back-off.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// An assignment with its resource and settings.
pub(super) struct Assigned {
    pub(super) parts: Arc<AgentParts>,
    pub(super) shard: OwnShard,
    pub(super) resource: Resource,
    pub(super) config: watch::Receiver<CrawlConfig>,
    pub(super) permit: Arc<dyn FetchPermit>,
    /// Limits that the resource asks for and this worker does not give.
    pub(super) refused: Option<LimitError>,
    /// Cancelled once an earlier assignment of the shard to this worker has ended and closed its frontier.
    pub(super) after: Option<CancellationToken>,
    /// Status of the crawl, read by the API.
    pub(super) crawl_state: CrawlState,
    /// Pages that the crawl has begun.
    pub(super) pacing: Pacing,
    /// Memory of the crawl, which shares that of this worker.
    pub(super) crawl_memory: CrawlMemory,
    pub(super) stop: CancellationToken,
}

/// Reason why an assignment goes no further.
pub(super) enum Stop {
    /// The shard belongs to another worker, or to none.
    Lost,
    /// The agent told the crawl to stop.
    Requested,
    /// The crawl cannot be carried out.
    Failed(String),
}

impl Assigned {
    /// Changes the shard's record, as long as the shard is ours.
    pub(super) async fn record(
        &self,
        change: impl FnOnce(&mut ShardRecord) + Clone,
    ) -> Result<(), Stop> {
        let mut backoff = new_backoff();
        loop {
            match self.shard.change(change.clone()).await {
                Ok(_) => return Ok(()),
                Err(StepError::Raced) => {}
                Err(StepError::Lost) => return Err(Stop::Lost),
                Err(error) => self.pause(&mut backoff, &error).await?,
            }
        }
    }

    /// Shows why the crawl cannot go on, and lets some time pass.
    pub(super) async fn wait(
        &self,
        backoff: &mut Backoff,
        waits: &Waits,
        crawl_state: &CrawlState,
        log: &CrawlLog,
    ) -> Result<(), Stop> {
        let Waits { condition, why } = waits;
        tracing::warn!(condition, why, "the crawl waits");
        log.note("error", format!("the crawl waits: {condition}: {why}"));
        crawl_state.closed(Some(waits.clone()));
        // Others see it in the record, as far as that can be written now.
        match self
            .shard
            .change(|record| record.waits = Some(waits.clone()))
            .await
        {
            Ok(_) | Err(StepError::Raced) => {}
            Err(StepError::Lost) => return Err(Stop::Lost),
            Err(error) => tracing::warn!(%error, "that it waits is not recorded"),
        }
        self.sleep(backoff.next_delay()).await
    }

    /// Lets some time pass after an error that concerns this try alone.
    pub(super) async fn pause(
        &self,
        backoff: &mut Backoff,
        error: &(dyn std::error::Error + Sync),
    ) -> Result<(), Stop> {
        tracing::warn!(error = telemetry::chain(error), "the crawl waits");
        self.sleep(backoff.next_delay()).await
    }

    async fn sleep(&self, time: Duration) -> Result<(), Stop> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(Stop::Requested),
            () = tokio::time::sleep(time) => Ok(()),
        }
    }
}

/// Creates the back-off between two tries of something that an assignment waits for.
pub(super) fn new_backoff() -> Backoff {
    Backoff::new(Duration::from_millis(200), LONGEST_WAIT)
}
