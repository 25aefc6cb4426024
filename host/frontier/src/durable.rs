//! A frontier on an object store, in an LSM tree: everything that is durable survives any crash, and memory
//! stays flat however large the crawl.
//!
//! Each shard has one database with one writer at a time. The writer epoch of the database is the fencing
//! token: a process that opens it with the epoch that it found plus one ends the writing of the owner before.
//! `opening` of the worker describes the order of these steps.
//!
//! ```text
//! settings      bounds, and the settings of the database
//! frontiers     what all frontiers of one process share
//! inner         what the calls and the background tasks of one frontier share
//! memory_budget memory that all open frontiers of the process share
//! blocks        what was read of their files, as long as there is memory for it
//! cached_tables the same for tables in a bucket, on the disk of this machine
//! disk_cache    pieces of tables there, within a bound for the whole process
//! clock         the database's time, which must not go back
//! open          opening: fencing whoever had it, giving poison up
//! load          whose it is, whether it is whole, what an earlier process has left
//! moved         hosts that another shard had before
//! state         what is known in memory, and how a commit changes it and its batch
//! candidates    links of a page that may be new
//! links         which of them are new
//! new_links     links that are to be stored or sent
//! peers         links to other shards and from them
//! hosts         hosts that could not be reached
//! queued        ends of pages that wait for their batch
//! group         pages that come to their end, with one batch for those that do so at the same time
//! writer        one batch at a time, numbered; what is durable
//! scan          entries in the order of their keys
//! log           lines of the log, written with the statistics
//! maintenance   in the background: reads URLs in, hears what is durable, forgets idle hosts
//! outbox        items on their way out
//! quarantine    items that wait for a verdict, or are held
//! changes       items compared with those of earlier runs
//! removals      items that a complete run has not seen
//! disk          how many bytes it has there
//! counts        what all frontiers of the process have written, for metrics
//! suspects      pages that may have ended the process
//! root          the same for calls of `root`
//! robots        robots.txt of hosts, for later openings
//! sweep         what earlier runs have left
//! redrive       dead letters, tried again
//! ```
//!
//! A commit changes the memory and its batch in one step, under one lock, and then hands the batch to the
//! database, one batch at a time. The order of batches is therefore the order in which the memory changed. A
//! crash loses only the last batches, so the remaining state is one that the memory once had. After an error
//! of the database, or a commit that was cut off while it held the write guard, this object does nothing more: the
//! frontier is opened again and read anew. A commit that is dropped while it waits for the guard may still be
//! made by the task that holds it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{
    Claim, Commit, Committed, Frontier, FrontierError, HostFailure, HostUpdate, NewRequest,
    RestingHost, Take, TakeLimits, URL_BYTES,
};
use crawler_model::changes::ChangeTotals;
use crawler_model::crawl::{Counts, Request, UnixMillis};
use crawler_model::frontier::KeptCookies;
use crawler_model::id::Run;
use crawler_model::resource::Redrive;
use crawler_model::robots::KeptRobots;
use crawler_model::statistics::Statistics;
use crawler_model::status::PresentHosts;
use crawler_process::task::TaskScope;

mod blocks;
mod cached_tables;
mod candidates;
mod changes;
mod clock;
mod counts;
mod disk;
mod disk_cache;
mod frontiers;
mod group;
mod hosts;
mod inner;
mod links;
mod load;
mod log;
mod maintenance;
mod memory_budget;
mod moved;
mod new_links;
mod open;
mod outbox;
mod peers;
mod quarantine;
mod queued;
mod redrive;
mod removals;
mod robots;
mod root;
mod scan;
mod settings;
mod state;
mod suspects;
mod sweep;
#[cfg(test)]
mod tests;
mod writer;

pub use super::OpenOptions;
pub use counts::FrontierCounts;
pub use disk_cache::DiskCache;
pub use frontiers::{Frontiers, LastFault, segments};
use inner::Inner;
pub use settings::DurableSettings;
pub(super) use writer::{decode, decode_statistics, failed};

/// Time that background work may take to notice that the frontier is closed.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// The frontier of one shard, open for writing.
pub struct DurableFrontier {
    inner: Arc<Inner>,
    maintenance: TaskScope,
}

impl DurableFrontier {
    /// Returns the writer epoch of the database under this opening.
    pub fn storage_epoch(&self) -> u64 {
        self.inner.storage_epoch
    }

    /// Returns the run that the frontier is in.
    pub fn run(&self) -> Run {
        self.inner.run
    }

    /// Tries dead letters again and returns their number.
    pub async fn redrive(&self, order: &Redrive) -> Result<u64, FrontierError> {
        self.inner.redrive(order).await
    }
}

#[async_trait]
impl Frontier for DurableFrontier {
    async fn seed_shard(
        &self,
        roots: Vec<Url>,
        requests: Vec<NewRequest>,
    ) -> Result<Committed, FrontierError> {
        self.inner.seed_shard(roots, requests).await
    }

    fn roots(&self) -> Option<Vec<Url>> {
        self.inner.state().roots()
    }

    fn root_ends(&self) -> u32 {
        self.inner.state().head.n_root_ends
    }

    async fn acquire_root_permit(&self) {
        self.inner.acquire_root_permit().await;
    }

    async fn enter_root(&self) -> Result<(), FrontierError> {
        self.inner.enter_root().await
    }

    async fn leave_root(&self) -> Result<(), FrontierError> {
        self.inner.leave_root().await
    }

    fn n_ready_hosts(&self) -> usize {
        self.inner.state().bench.n_ready()
    }

    fn take_resting_hosts(&self) -> Vec<RestingHost> {
        std::mem::take(&mut self.inner.state().resting)
    }

    fn take_within(&self, now: UnixMillis, limits: TakeLimits) -> Result<Take, FrontierError> {
        self.inner.check()?;
        let (take, needs_refill) = self.inner.state().take(now, limits);
        if needs_refill {
            self.inner.refill_wanted.notify_one();
        }
        Ok(take)
    }

    fn suspect_after(&self) -> Option<Duration> {
        let is_careful = self.inner.state().n_careful > 0;
        Some(match is_careful {
            true => Duration::ZERO,
            // A record that is written becomes durable with the next flush. By then nearly all calls have returned.
            false => self.inner.frontiers.settings.flush_interval / 2,
        })
    }

    async fn suspect(&self, claim: &Claim) -> Result<(), FrontierError> {
        self.inner.suspect(claim).await
    }

    async fn kept_robots(&self, url: &Url) -> Result<Option<KeptRobots>, FrontierError> {
        self.inner.kept_robots(url).await
    }

    fn keep_robots(&self, url: &Url, robots: KeptRobots) {
        self.inner.state().robots.add(url, robots);
    }

    async fn commit(&self, commit: Commit) -> Result<Committed, FrontierError> {
        self.inner.commit(commit).await
    }

    fn cookies(&self) -> Option<KeptCookies> {
        self.inner.state().cookies.clone()
    }

    fn give_back(&self, claim: Box<Claim>, update: HostUpdate) {
        self.inner.state().give_back(*claim, update);
    }

    async fn put_off(&self, claim: Box<Claim>, failure: HostFailure) -> Result<(), FrontierError> {
        self.inner.put_off(*claim, &failure).await
    }

    async fn knows(&self, request: &Request) -> Result<bool, FrontierError> {
        self.inner.knows(request).await
    }

    fn disk_bytes(&self) -> u64 {
        self.inner.disk_bytes.load(Ordering::Relaxed)
    }

    fn counts(&self) -> Counts {
        self.inner.state().counts()
    }

    fn statistics(&self) -> Statistics {
        self.inner.state().statistics.statistics()
    }

    fn statuses(&self) -> BTreeMap<u16, u64> {
        self.inner.state().statistics.statuses()
    }

    fn change_totals(&self) -> Option<ChangeTotals> {
        let state = self.inner.state();
        let comparison = state.comparison.as_ref();
        comparison.map(|comparison| ChangeTotals::from(&comparison.counts))
    }

    async fn tell_removed(&self, stop: &CancellationToken) -> Result<bool, FrontierError> {
        self.inner.tell_removed(stop).await
    }

    fn in_flight(&self) -> usize {
        self.inner.state().n_in_flight()
    }

    fn present_hosts(&self, now: UnixMillis) -> PresentHosts {
        self.inner.state().present_hosts(now)
    }

    async fn take_changed(&self) {
        self.inner.take_changed.notified().await;
    }

    async fn settle(&self) -> Result<(), FrontierError> {
        self.inner.settle().await
    }

    async fn check_empty(&self) -> Result<(), FrontierError> {
        self.inner.check_empty().await
    }

    fn held_bytes(&self) -> u64 {
        // Data that waits to be written is known to the database alone; `memory_budget` bounds it.
        let state = self.inner.state();
        // Items that wait are in memory as records and as they are stored.
        let waiting_bytes = 2 * state.quarantined.kept_back().waiting_bytes;
        (state.bench.n_buffered() * URL_BYTES) as u64 + waiting_bytes
    }

    fn stalled(&self) -> Option<String> {
        self.inner.stalled()
    }

    async fn close(&self) -> Result<(), FrontierError> {
        self.maintenance.stop(STOP_GRACE).await;
        self.inner.close().await
    }
}
