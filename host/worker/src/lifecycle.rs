//! One assignment, from its start to the record of its end.
//!
//! A crawl that cannot go on is not given up: it is shown as waiting, with the name of its state and the reason,
//! and tried again.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::assigned::{Assigned, CLOSE_AFTER, LONGEST_WAIT, Stop, new_backoff};
use super::crawl_state::CrawlState;
use super::crawls::Running;
use super::opening::{self, StepError};
use super::receive::Receiver;
use super::sinks;
use crawler_archive::Archive;
use crawler_crawl::log::{CrawlLog, LogBounds};
use crawler_crawl::peers::PeerShards;
use crawler_crawl::{CrawlConfig, CrawlEnd, CrawlParts, put_back};
use crawler_frontier::{FrontierError, ItemComparison, OpenFrontier, OpenOptions};
use crawler_model::changes::ItemKeys;
use crawler_model::resource::{DEFAULT_DELAY, PinnedPlugin, ShardState, Unchanged, Waits};
use crawler_model::settings::SinkNames;
use crawler_plugin::{PluginError, Rules};
use crawler_sink::SinkError;

/// Crawls what was assigned, records how it ended, and returns that.
pub(super) async fn run(assigned: &Assigned) -> Result<(), Stop> {
    // This holds even if the crawl was told to stop: as long as the earlier one writes, the end of this one
    // must not show the shard as being at rest.
    if let Some(after) = &assigned.after {
        after.cancelled().await;
    }
    let name = &assigned.resource.spec.name;
    let id = assigned.shard.id;
    let run = assigned.resource.run;
    let log = CrawlLog::of(assigned.parts.clock.clone(), id.shard, run);
    let crawl_state = assigned.crawl_state.clone();
    let (mailbox, mut receiver) = Receiver::of(assigned.resource.spec.placement.n_shards());
    let running = Running {
        log: log.clone(),
        name: name.clone(),
        epoch: assigned.shard.epoch,
        run: assigned.resource.run,
        crawl_state: crawl_state.clone(),
        mailbox,
    };
    crawl_state.set_memory(assigned.crawl_memory.clone());
    let n_shards = assigned.resource.spec.placement.n_shards();
    crawl_state.set_backlog(assigned.config.clone(), id.shard, n_shards);
    assigned.parts.crawls.enter(id, running);
    tracing::info!("crawl starts");
    let end = assigned.crawl(&mut receiver, &crawl_state, &log).await;
    let state = match &end {
        Ok(()) => Some(ShardState::Idle),
        Err(Stop::Failed(reason)) => {
            tracing::error!(reason, "crawl failed");
            let reason = reason.clone();
            Some(ShardState::Failed { reason })
        }
        Err(Stop::Lost | Stop::Requested) => None,
    };
    if let Some(state) = state {
        let counts = crawl_state.counts();
        let ended = assigned.record(|record| {
            (record.state, record.waits) = (state, None);
            if let Some(counts) = counts {
                record.counts = counts;
            }
        });
        if ended.await.is_err() {
            tracing::warn!("the crawl's end was not recorded: the shard is not ours");
        }
    }
    log.close();
    assigned.parts.crawls.leave(id, assigned.shard.epoch);
    end
}

impl Assigned {
    /// Crawls until the assignment ends. It returns `Ok` only if the resource has one shard: one of several
    /// is told when the run is over.
    async fn crawl(
        &self,
        receiver: &mut Option<Receiver>,
        crawl_state: &CrawlState,
        log: &CrawlLog,
    ) -> Result<(), Stop> {
        if self.stop.is_cancelled() {
            return Err(Stop::Requested);
        }
        if let Some(error) = &self.refused {
            return Err(failed(log, error.to_string()));
        }
        let Some(pinned) = &self.resource.pinned else {
            return Err(failed(log, "it was assigned without a plugin".to_owned()));
        };
        let rules = self.load(pinned, crawl_state, log).await?;
        let keys = ItemKeys::of(&rules.description().schemas);
        let mut backoff = new_backoff();
        let mut put_back = put_back::new_backoff();
        loop {
            let (frontier, sinks) = self.open(pinned, &keys, crawl_state, log).await?;
            log.set_bounds(LogBounds::of(&self.config.borrow().settings));
            let archive = match self.archive(&*frontier) {
                Ok(archive) => archive,
                Err(waits) => {
                    opening::close(&*frontier).await;
                    self.wait(&mut backoff, &waits, crawl_state, log).await?;
                    continue;
                }
            };
            // If the log cannot be attached, the next opening knows nothing of it any more.
            sinks::note_dropped(&*frontier, log);
            if let Err(error) = log.attach(frontier.clone()).await {
                opening::close(&*frontier).await;
                self.wait(&mut backoff, &waits_for(&error), crawl_state, log)
                    .await?;
                continue;
            }
            let standing = match frontier.counts().began_at {
                0 => "begins",
                _ => "goes on",
            };
            log.note("info", format!("run {} {standing}", self.resource.run));
            crawl_state.opened(frontier.clone(), archive.clone());
            let since = Instant::now();
            let mut settings = self.config.clone();
            settings.mark_unchanged();
            let opened = (&frontier, &sinks, &archive);
            let crawl = |peers| self.crawl_on(opened, rules.clone(), peers, crawl_state, log);
            let end = match receiver {
                Some(receiver) => self.crawl_among(receiver, &*frontier, crawl).await,
                None => Ok(Some(crawl((None, self.stop.clone())).await)),
            };
            crawl_state.closed(None);
            // The frontier stores how the crawl ended.
            if let Ok(Some(end)) = &end {
                self.note_end(end, log);
            }
            log.detach();
            opening::close(&*frontier).await;
            let Some(end) = end? else {
                self.idle(receiver, None, settings).await?;
                continue;
            };
            match end {
                CrawlEnd::Finished => return Ok(()),
                CrawlEnd::Failed(reason) => return Err(Stop::Failed(reason)),
                CrawlEnd::Unread => return Err(Stop::Failed(SinkError::Closed.to_string())),
                // The resource has other sinks now: the frontier is opened for those.
                CrawlEnd::Stopped if !self.stop.is_cancelled() => {}
                CrawlEnd::Stopped => return Err(Stop::Requested),
                CrawlEnd::Resting { until } => self.idle(receiver, Some(until), settings).await?,
                CrawlEnd::PutBack(why) => {
                    drop(frontier);
                    if since.elapsed() > LONGEST_WAIT {
                        put_back.reset();
                    }
                    self.wait_for_memory(why, &mut put_back, crawl_state, log)
                        .await?;
                }
                CrawlEnd::Frontier(error) => {
                    // The frontier frees its share of the process while this crawl waits.
                    drop(frontier);
                    if since.elapsed() > LONGEST_WAIT {
                        backoff.reset();
                    }
                    self.wait(&mut backoff, &waits_for(&error), crawl_state, log)
                        .await?;
                }
            }
        }
    }

    /// Logs how a crawl is over, after the counts of what went wrong.
    fn note_end(&self, end: &CrawlEnd, log: &CrawlLog) {
        log.tell_counts();
        match end {
            CrawlEnd::Finished => {
                log.note("info", format!("run {} is finished", self.resource.run));
            }
            CrawlEnd::Failed(reason) => note_failure(log, reason),
            CrawlEnd::Unread => note_failure(log, &SinkError::Closed.to_string()),
            CrawlEnd::Stopped
            | CrawlEnd::Resting { .. }
            | CrawlEnd::PutBack(_)
            | CrawlEnd::Frontier(_) => {}
        }
    }

    /// Crawls with an open frontier, for as long as the resource has the sinks that it was opened for.
    async fn crawl_on(
        &self,
        (frontier, sink_names, archive): (&Arc<dyn OpenFrontier>, &SinkNames, &Option<Archive>),
        rules: Arc<dyn Rules>,
        (peers, stop): (Option<PeerShards>, CancellationToken),
        crawl_state: &CrawlState,
        log: &CrawlLog,
    ) -> CrawlEnd {
        let schemas = &rules.description().schemas;
        let sinks = self.sinks(&**frontier, sink_names, schemas, crawl_state, log);
        let sinks = match sinks.await {
            Ok(sinks) => sinks,
            Err(error) => return CrawlEnd::Frontier(error),
        };
        let stop = stop.child_token();
        let parts = CrawlParts {
            resource: self.resource.id,
            run: self.resource.run,
            run_started_at: self.run_started_at(),
            plugin: self.resource.pinned.as_ref().map(|pinned| pinned.digest),
            params: Arc::new(self.resource.spec.params.clone()),
            config: self.config.clone(),
            rules,
            frontier: frontier.clone(),
            fetch: self.parts.fetch.clone(),
            files: Some(self.parts.data.files(self.resource.id)),
            archive: archive.clone(),
            clock: self.parts.clock.clone(),
            log: log.clone(),
            permit: self.permit.clone(),
            pacing: self.pacing.clone(),
            incidents: crawl_state.incidents().clone(),
            limit_uses: crawl_state.limit_uses().clone(),
            peers,
            rest_after: Some(CLOSE_AFTER),
            crawl_memory: self.crawl_memory.clone(),
            tracer: self.parts.tracer.clone(),
        };
        let config = self.config.clone();
        tokio::select! {
            biased;
            end = crawler_crawl::run_to(parts, sinks, stop.clone()) => end,
            never = sinks::stop_for_others(config, sink_names, &stop, log) => match never {},
        }
    }

    /// Loads the plugin; waits if this machine, not the plugin, is at fault.
    async fn load(
        &self,
        pinned: &PinnedPlugin,
        crawl_state: &CrawlState,
        log: &CrawlLog,
    ) -> Result<Arc<dyn Rules>, Stop> {
        let mut backoff = new_backoff();
        loop {
            let loaded = self
                .stop
                .run_until_cancelled(self.parts.plugins.load(pinned.digest));
            match loaded.await.ok_or(Stop::Requested)? {
                Ok(rules) => return Ok(rules),
                Err(error @ PluginError::Refused { .. }) => {
                    let plugin = &self.resource.spec.plugin.name;
                    let why = format!("plugin {plugin}@{}: {error}", pinned.version);
                    return Err(failed(log, why));
                }
                Err(error @ PluginError::Host { .. }) => {
                    let waits = Waits {
                        condition: "PluginUnavailable".to_owned(),
                        why: error.to_string(),
                    };
                    self.wait(&mut backoff, &waits, crawl_state, log).await?;
                }
            }
        }
    }

    /// Opens the frontier as its owner, for the present sinks; waits for as long as that takes.
    async fn open(
        &self,
        pinned: &PinnedPlugin,
        keys: &ItemKeys,
        crawl_state: &CrawlState,
        log: &CrawlLog,
    ) -> Result<(Arc<dyn OpenFrontier>, SinkNames), Stop> {
        let mut backoff = new_backoff();
        loop {
            let settings = self.config.borrow().settings.clone();
            let sinks = settings.sink_names();
            let as_of = |storage_epoch, created| OpenOptions {
                shard: self.shard.id,
                cluster: self.parts.cluster.clone(),
                epoch: self.shard.epoch,
                run: self.resource.run,
                plugin: pinned.digest,
                created,
                storage_epoch,
                clock: self.parts.clock.clone(),
                delay: settings.delay().unwrap_or(DEFAULT_DELAY),
                carry: (settings.unchanged() == Unchanged::Skip)
                    .then_some(self.resource.resharded_at),
                sinks: sinks.clone(),
                division: self.resource.division(),
                changes: ItemComparison {
                    // Items of one key may come from pages of several shards, each with a frontier of its own.
                    n_runs: match self.resource.spec.placement.n_shards().get() {
                        1 => settings.changes(),
                        _ => 0,
                    },
                    keys: keys.clone(),
                },
            };
            match self.shard.open(&self.parts.frontiers, as_of).await {
                Ok(frontier) => return Ok((frontier, sinks)),
                Err(StepError::Lost) => return Err(Stop::Lost),
                Err(StepError::Raced) => {}
                Err(StepError::Store(error)) => self.pause(&mut backoff, &error).await?,
                Err(StepError::Frontier(error)) => {
                    self.wait(&mut backoff, &waits_for(&error), crawl_state, log)
                        .await?;
                }
            }
        }
    }

    /// Waits until this moment, or until the settings change or other shards have links for this one.
    async fn idle(
        &self,
        receiver: &mut Option<Receiver>,
        until: Option<u64>,
        mut settings: watch::Receiver<CrawlConfig>,
    ) -> Result<(), Stop> {
        let now = self.parts.clock.unix_millis();
        let come = async {
            match receiver {
                Some(receiver) => receiver.wait().await,
                None => std::future::pending().await,
            }
        };
        let moment = async {
            match until {
                Some(until) => {
                    tokio::time::sleep(Duration::from_millis(until.saturating_sub(now))).await;
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(Stop::Requested),
            () = come => Ok(()),
            () = moment => Ok(()),
            Ok(()) = settings.changed(), if until.is_some() => Ok(()),
        }
    }
}

/// Logs that the crawl cannot be carried out, and returns that.
fn failed(log: &CrawlLog, reason: String) -> Stop {
    note_failure(log, &reason);
    Stop::Failed(reason)
}

fn note_failure(log: &CrawlLog, reason: &str) {
    log.note("error", format!("the crawl failed: {reason}"));
}

fn waits_for(error: &FrontierError) -> Waits {
    Waits {
        condition: error.condition().to_owned(),
        why: error.to_string(),
    }
}
