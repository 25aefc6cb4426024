//! Opening of a frontier: ends the writing of the previous owner, and starts the background work.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use slatedb::admin::Admin;
use slatedb::{Db, VersionedManifest};
use tokio::sync::{Notify, oneshot};

use super::clock::DatabaseClock;
use super::frontiers::Frontiers;
use super::inner::Inner;
use super::state::State;
use super::suspects::MAX_ALONE;
use super::writer::{failed, in_time};
use super::{DurableFrontier, disk, maintenance, sweep};
use crate::reader::FrontierReader;
use crate::{
    Commit, Ended, FrontierError, OpenFrontier, OpenFrontiers, OpenOptions, PageResult, path_of,
    records,
};
use crawler_model::crawl::Counts;
use crawler_model::id::Run;
use crawler_model::resource::{Redrive, ShardId};
use crawler_model::scope::GrowthBounds;
use crawler_model::settings::{SinkName, SinkNames};
use crawler_process::task::TaskScope;

#[async_trait]
impl OpenFrontiers for Frontiers {
    async fn storage_epoch(&self, shard: ShardId) -> Result<u64, FrontierError> {
        Frontiers::storage_epoch(self, shard).await
    }

    async fn open(
        self: Arc<Self>,
        options: OpenOptions,
    ) -> Result<Arc<dyn OpenFrontier>, FrontierError> {
        let opened = Frontiers::open(&self, options).await?;
        Ok(Arc::new(opened))
    }
}

#[async_trait]
impl OpenFrontier for DurableFrontier {
    fn storage_epoch(&self) -> u64 {
        DurableFrontier::storage_epoch(self)
    }

    fn dropped(&self) -> Vec<(SinkName, u64)> {
        self.inner.state().outbox.dropped.clone()
    }

    async fn redrive(&self, order: &Redrive) -> Result<u64, FrontierError> {
        DurableFrontier::redrive(self, order).await
    }
}

impl Frontiers {
    /// Returns the writer epoch of a frontier's database, or 0 if there is none. It does not fence the
    /// present writer.
    pub async fn storage_epoch(&self, shard: ShardId) -> Result<u64, FrontierError> {
        let manifest = self.manifest(shard).await?;
        Ok(manifest.map_or(0, |manifest| manifest.writer_epoch()))
    }

    async fn manifest(&self, shard: ShardId) -> Result<Option<VersionedManifest>, FrontierError> {
        let admin = Admin::builder(path_of(shard), self.objects.clone()).build();
        let read = Box::pin(async {
            let manifest = admin.read_manifest(None).await;
            manifest.map_err(|e| failed(shard, "open", &e))
        });
        let deadline = self.settings.deadline;
        in_time(shard, "open", deadline, &self.last_fault, read).await
    }

    /// Returns the run that a frontier was in last, or `None` if there is no frontier.
    pub async fn last_run(&self, shard: ShardId) -> Result<Option<Run>, FrontierError> {
        let reader = FrontierReader::open(self.objects.clone(), shard).await?;
        let Some(reader) = reader else {
            return Ok(None);
        };
        let run = reader.run();
        reader.close().await;
        Ok(Some(run))
    }

    /// Opens a frontier, which ends the writing of the previous owner. Fails with [`FrontierError::Fenced`]
    /// if another process has opened it since the epoch was read.
    pub async fn open(
        self: &Arc<Self>,
        options: OpenOptions,
    ) -> Result<DurableFrontier, FrontierError> {
        let shard = options.shard;
        let memory_share = self.memory_budget.open(&self.settings);
        let clock = Arc::new(self.database_clock());
        // Times that only the log knows come when it is read; those in tables count from the start.
        if let Some(manifest) = self.manifest(shard).await? {
            clock.go_on_from(u64::try_from(manifest.last_l0_clock_tick()).unwrap_or(0));
        }
        let id = self.n_opened.fetch_add(1, Ordering::Relaxed) as u64;
        self.counts.opened.add(1);
        let build = Db::builder(path_of(shard), self.objects.clone())
            .with_settings(
                self.settings
                    .database(memory_share.unflushed_bytes, clock.ahead()),
            )
            .with_expected_epoch(options.storage_epoch)
            .with_system_clock(clock.clone())
            .with_db_cache(self.blocks.clone(), id)
            .with_segment_extractor(super::frontiers::segments())
            .build();
        let (tell, opened) = oneshot::channel();
        // The database works from the moment that it begins to open, and only `close` ends it: a caller that
        // stops waiting must not drop it. The future is on the heap, because futures of the database are
        // large.
        let build = Box::pin(async move {
            let built = build.await.map(|db| (db, memory_share));
            if let Err(Ok((unwanted, _room))) = tell.send(built) {
                let closed: Result<(), slatedb::Error> = unwanted.close().await;
                tracing::warn!(?closed, "the database has opened too late");
            }
        });
        self.background.spawn("opening of a frontier", build);
        let opened = async {
            let opened = opened.await.map_err(|_| FrontierError::Closed { shard })?;
            opened.map_err(|e| refused(&options, &e))
        };
        let deadline = self.settings.deadline;
        let opened = in_time(shard, "open", deadline, &self.last_fault, opened).await;
        let (db, memory_share) = opened?;
        let inner = Inner {
            shard,
            run: options.run,
            storage_epoch: db.manifest().writer_epoch(),
            status: db.subscribe(),
            db,
            clock,
            frontiers: self.clone(),
            memory_share: Arc::new(memory_share),
            opening: self.seen.open(false),
            plugin: 0,
            state: Mutex::new(State::new(
                options.run,
                records::Head::default(),
                records::Batch::default(),
                Counts::default(),
                &self.settings,
            )),
            writer: tokio::sync::Mutex::default(),
            flushing: tokio::sync::Mutex::default(),
            queue: Mutex::default(),
            broken: Mutex::default(),
            disk_bytes: AtomicU64::new(0),
            refill_wanted: Notify::new(),
            take_changed: Notify::new(),
            outbox_changed: Notify::new(),
            links_changed: Notify::new(),
        };
        let frontier = inner.start(&options).await;
        if let Err(error) = &frontier {
            tracing::warn!(%error, "the frontier is closed again");
        }
        frontier
    }
}

/// Converts an error of opening. The loser of a race to create a database is told of damage, although it has
/// only lost the race.
fn refused(options: &OpenOptions, error: &slatedb::Error) -> FrontierError {
    let shard = options.shard;
    match failed(shard, "open", error) {
        FrontierError::Damaged { why, .. }
            if options.storage_epoch == 0 && why.contains("already exists") =>
        {
            FrontierError::Fenced { shard }
        }
        error => error,
    }
}

impl Frontiers {
    #[cfg(not(test))]
    fn database_clock(&self) -> DatabaseClock {
        DatabaseClock::default()
    }

    #[cfg(test)]
    fn database_clock(&self) -> DatabaseClock {
        DatabaseClock::ahead_by(self.clock_ahead)
    }
}

impl Inner {
    /// Loads the database and continues from its state. If that is impossible, the database is closed.
    async fn start(mut self, options: &OpenOptions) -> Result<DurableFrontier, FrontierError> {
        match self.load(options).await {
            Ok(poisoned) => {
                let maintenance = TaskScope::new();
                let inner = Arc::new(self);
                let frontier = DurableFrontier { inner, maintenance };
                match frontier.begin(poisoned, &options.sinks).await {
                    Ok(()) => {
                        let storage_epoch = frontier.inner.storage_epoch;
                        tracing::debug!(storage_epoch, "the frontier is open");
                        Ok(frontier)
                    }
                    Err(error) => {
                        frontier.inner.give_up().await;
                        Err(error)
                    }
                }
            }
            Err(error) => {
                self.give_up().await;
                Err(error)
            }
        }
    }

    async fn give_up(&self) {
        if let Err(error) = self.close_database().await {
            tracing::warn!(%error, "the database cannot be closed");
        }
    }
}

impl DurableFrontier {
    /// Makes the opening durable, gives poisonous pages up, and starts the background work.
    async fn begin(&self, poisoned: VecDeque<u64>, sinks: &SinkNames) -> Result<(), FrontierError> {
        let inner = &self.inner;
        // The clocks come before the head, which says that this is done.
        inner.save_hosts_taken_over().await?;
        inner.set_sinks(sinks).await?;
        for entry in poisoned {
            let claim = inner.state().claim_alone(entry);
            let Some(claim) = claim else { continue };
            tracing::warn!(url = %claim.request.url, "the page has ended the process {MAX_ALONE} times and is given up");
            let reason = "poison".to_owned();
            let commit = inner.commit(Commit {
                claim,
                result: PageResult::new(Ended::Dead { reason }, 0),
                growth: GrowthBounds::NONE,
                answered_at: 0,
                cookies: None,
            });
            Box::pin(commit).await?;
        }
        let weak = || Arc::downgrade(inner);
        let stop = || self.maintenance.stop_signal();
        let status = inner.status.clone();
        let durability = maintenance::watch_durability(weak(), status, stop());
        self.maintenance
            .spawn("durability of a frontier", durability);
        let disk = disk::watch(weak(), stop());
        self.maintenance.spawn("disk of a frontier", disk);
        let statistics = maintenance::write_statistics(weak(), stop());
        self.maintenance
            .spawn("statistics of a frontier", statistics);
        let refill = maintenance::refill(weak(), stop());
        self.maintenance.spawn("reading in of a frontier", refill);
        let sweep = sweep::run(weak(), stop());
        self.maintenance.spawn("sweep of a frontier", sweep);
        Ok(())
    }
}
