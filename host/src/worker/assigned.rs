//! One assignment, from its start to the record of its end.
//!
//! Every write names the epoch that was assigned: when the shard's record has another one, this
//! worker has lost it and says nothing more about it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Running;
use super::agent::AgentParts;
use super::crawl::{self, CrawlConfig, CrawlEnd, CrawlParts};
use super::report::CrawlLog;
use crate::frontier::Frontier;
use crate::frontier::memory::MemoryFrontier;
use crate::model::crawl::Counts;
use crate::model::id::Epoch;
use crate::model::plugin::LimitError;
use crate::model::resource::{Resource, ShardId, ShardRecord, ShardState};
use crate::plugin::{PluginError, Rules};
use crate::retry::Backoff;
use crate::sink::SinkError;
use crate::sink::lines::{LineFiles, LineSettings};
use crate::store::catalog::encode;
use crate::store::{Guard, Outcome, StoreError, Txn};
use crate::telemetry;

/// What was assigned.
pub(super) struct Assigned {
    pub(super) parts: Arc<AgentParts>,
    pub(super) id: ShardId,
    pub(super) epoch: Epoch,
    pub(super) resource: Resource,
    pub(super) config: watch::Receiver<CrawlConfig>,
    /// The resource asks for limits that this worker does not give.
    pub(super) refused: Option<LimitError>,
    pub(super) stop: CancellationToken,
}

/// Why an assignment goes no further.
enum Stop {
    /// The shard belongs to somebody else, or to nobody.
    Lost,
    /// It was told to.
    Told,
    /// The crawl cannot be carried out.
    Failed(String),
}

/// Crawls what was assigned and records how it ended.
pub(super) async fn run(assigned: Assigned) {
    let name = &assigned.resource.spec.name;
    let log = CrawlLog::new(name.as_str(), assigned.parts.clock.clone());
    let frontier: Arc<dyn Frontier> =
        Arc::new(MemoryFrontier::new(assigned.parts.frontier.clone()));
    let running = Running {
        name: name.clone(),
        epoch: assigned.epoch,
        run: assigned.resource.run,
        frontier: frontier.clone(),
    };
    assigned
        .parts
        .crawls
        .enter(assigned.id, running, log.clone());
    tracing::info!(resource = %name, shard = %assigned.id, epoch = %assigned.epoch, "crawl starts");
    let result = assigned.crawl(&frontier, &log).await;
    let state = match result {
        Ok(()) => Some(ShardState::Idle),
        Err(Stop::Failed(reason)) => {
            tracing::error!(resource = %name, reason, "crawl failed");
            log.note("error", format!("the crawl failed: {reason}"));
            Some(ShardState::Failed { reason })
        }
        Err(Stop::Lost | Stop::Told) => None,
    };
    if let Some(state) = state {
        let counts = frontier.counts();
        if assigned
            .record(|record| (record.state, record.counts) = (state, counts))
            .await
            .is_err()
        {
            tracing::warn!(resource = %name, "the crawl's end was not recorded: the shard is not ours");
        }
    }
    log.close();
    assigned.parts.crawls.leave(assigned.id, assigned.epoch);
    tracing::info!(resource = %name, shard = %assigned.id, "crawl ends");
}

impl Assigned {
    async fn crawl(&self, frontier: &Arc<dyn Frontier>, log: &CrawlLog) -> Result<(), Stop> {
        if let Some(error) = &self.refused {
            return Err(Stop::Failed(error.to_string()));
        }
        let rules = self.load().await?;
        self.record(|record| (record.created, record.counts) = (true, Counts::default()))
            .await?;
        let folder = self.parts.data.items_folder(self.id.resource);
        let folder = folder.join(self.id.shard.to_string());
        let sink = LineFiles::open(folder, self.epoch.0, LineSettings::default());
        log.note("info", format!("run {} starts", self.resource.run));
        let parts = CrawlParts {
            resource: self.resource.id,
            run: self.resource.run,
            params: Arc::new(self.resource.spec.params.clone()),
            config: self.config.clone(),
            rules,
            frontier: frontier.clone(),
            fetch: self.parts.fetch.clone(),
            clock: self.parts.clock.clone(),
            log: log.clone(),
        };
        match crawl::run(parts, Box::new(sink), self.stop.clone()).await {
            CrawlEnd::Finished => {
                log.note("info", format!("run {} is finished", self.resource.run));
                Ok(())
            }
            CrawlEnd::Failed(reason) => Err(Stop::Failed(reason)),
            CrawlEnd::Unread => Err(Stop::Failed(SinkError::Closed.to_string())),
            CrawlEnd::Stopped => Err(Stop::Told),
        }
    }

    /// The plugin; waits where this machine, not the plugin, is at fault.
    async fn load(&self) -> Result<Arc<dyn Rules>, Stop> {
        let Some(pinned) = &self.resource.pinned else {
            return Err(Stop::Failed("it was assigned without a plugin".to_owned()));
        };
        let mut backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(30));
        loop {
            match self.parts.plugins.load(pinned.digest).await {
                Ok(rules) => return Ok(rules),
                Err(error @ PluginError::Refused { .. }) => {
                    let plugin = &self.resource.spec.plugin.name;
                    return Err(Stop::Failed(format!(
                        "plugin {plugin}@{}: {error}",
                        pinned.version
                    )));
                }
                Err(error @ PluginError::Host { .. }) => self.wait(&mut backoff, &error).await?,
            }
        }
    }

    /// Changes the shard's record, as long as it is ours.
    async fn record(&self, change: impl FnOnce(&mut ShardRecord) + Clone) -> Result<(), Stop> {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(10));
        loop {
            match self.try_record(change.clone()).await {
                Ok(Some(Outcome::Done(_))) => return Ok(()),
                Ok(Some(Outcome::Lost(_) | Outcome::Unknown)) => {}
                Ok(None) => return Err(Stop::Lost),
                Err(error) => self.wait(&mut backoff, &error).await?,
            }
        }
    }

    /// One try; none when the shard is not ours.
    async fn try_record(
        &self,
        change: impl FnOnce(&mut ShardRecord),
    ) -> Result<Option<Outcome>, StoreError> {
        let catalog = &self.parts.catalog;
        let key = catalog.keys().shard(self.id);
        let Some(present) = catalog.read::<ShardRecord>(&key).await? else {
            return Ok(None);
        };
        let mut record = present.value;
        if record.epoch != self.epoch {
            return Ok(None);
        }
        change(&mut record);
        let txn = Txn::new()
            .guard(Guard::RevisionIs(key.clone(), present.revision))
            .put(key, encode(&record));
        catalog.store().commit(txn).await.map(Some)
    }

    async fn wait(
        &self,
        backoff: &mut Backoff,
        error: &(dyn std::error::Error + Sync),
    ) -> Result<(), Stop> {
        let name = &self.resource.spec.name;
        tracing::warn!(resource = %name, error = telemetry::chain(error), "the crawl waits");
        tokio::select! {
            () = tokio::time::sleep(backoff.next_delay()) => Ok(()),
            () = self.stop.cancelled() => Err(Stop::Told),
        }
    }
}
