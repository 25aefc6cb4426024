//! A frontier in memory with faults, which records the calls of a crawl.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use url::Url;

use crawler_frontier::memory::{MemoryFrontier, MemorySettings};
use crawler_frontier::{
    Claim, Commit, Committed, Frontier, FrontierError, HostFailure, HostUpdate, ItemOutbox,
    LinkBatch, LinkBounds, LinkExchange, LinkPolicy, LogStore, NewRequest, OutboxBatch, Quarantine,
    RestingHost, Take, TakeLimits, Undelivered,
};
use crawler_model::crawl::{Counts, Request, UnixMillis};
use crawler_model::frontier::{KeptCookies, SinkMark, Validators};
use crawler_model::id::{ResourceId, Shard};
use crawler_model::resource::{LinkTotals, ShardId};
use crawler_model::robots::KeptRobots;
use crawler_model::settings::{SinkName, SinkNames};
use crawler_model::statistics::Statistics;
use crawler_model::status::{LogLine, PresentHosts};

/// A frontier with a fault, or with knowledge of an earlier run.
#[derive(Default)]
pub struct FaultyFrontier {
    pub(crate) inner: Inner,
    /// True if a commit panics.
    pub panics_on_commit: bool,
    /// True if no commit succeeds.
    pub fails_on_commit: bool,
    /// True if no page can be recorded as a suspect.
    pub fails_on_suspect: bool,
    /// Time after which a page has to be recorded as a suspect.
    pub suspect_after: Option<Duration>,
    /// Time that it takes to record a suspect.
    pub suspect_takes: Duration,
    /// True if all of its pages are tried alone.
    pub is_alone: bool,
    /// Validators of the earlier run, for every page.
    pub known: Option<Validators>,
    /// Pages that were recorded as suspects, in order.
    pub suspects: Mutex<Vec<String>>,
    /// Pages that ended, in order, with the validators of each.
    pub left: Mutex<Vec<(String, Option<Validators>)>>,
    /// Number of times that a caller waited for durability.
    pub(crate) n_settles: AtomicUsize,
    /// Number of reads for a sink that found items.
    pub(crate) n_outbox_reads: AtomicUsize,
    /// Number of ends of the process that are attributed to `root`.
    pub root_ends: u32,
    pub(crate) n_entered_root: AtomicUsize,
    /// Hosts that were resting at its opening.
    pub resting: Vec<RestingHost>,
    /// robots.txt that were kept.
    pub robots: Mutex<Vec<KeptRobots>>,
    /// True if none of them can be read.
    pub fails_on_robots: bool,
    /// Size on disk that the frontier reports, in bytes.
    pub disk_bytes: u64,
}

impl FaultyFrontier {
    /// Returns how often a caller waited for durability.
    pub fn n_settles(&self) -> usize {
        self.n_settles.load(Ordering::Relaxed)
    }

    /// Returns the number of recorded calls of `root`.
    pub fn n_entered_root(&self) -> usize {
        self.n_entered_root.load(Ordering::Relaxed)
    }
}

/// Returns the error of a frontier that fails.
pub(crate) fn closed() -> FrontierError {
    let (resource, shard) = (ResourceId(1), Shard(0));
    FrontierError::Closed {
        shard: ShardId { resource, shard },
    }
}

pub(crate) struct Inner(MemoryFrontier);

impl Default for Inner {
    fn default() -> Self {
        Self(MemoryFrontier::new(MemorySettings::default()))
    }
}

#[async_trait]
impl Frontier for FaultyFrontier {
    async fn seed_shard(
        &self,
        roots: Vec<Url>,
        requests: Vec<NewRequest>,
    ) -> Result<Committed, FrontierError> {
        self.inner.0.seed_shard(roots, requests).await
    }

    fn roots(&self) -> Option<Vec<Url>> {
        self.inner.0.roots()
    }

    fn root_ends(&self) -> u32 {
        self.root_ends
    }

    async fn acquire_root_permit(&self) {
        self.inner.0.acquire_root_permit().await;
    }

    async fn enter_root(&self) -> Result<(), FrontierError> {
        self.n_entered_root.fetch_add(1, Ordering::Relaxed);
        self.inner.0.enter_root().await
    }

    async fn leave_root(&self) -> Result<(), FrontierError> {
        self.inner.0.leave_root().await
    }

    fn n_ready_hosts(&self) -> usize {
        self.inner.0.n_ready_hosts()
    }

    fn take_resting_hosts(&self) -> Vec<RestingHost> {
        self.resting.clone()
    }

    fn take_within(&self, now: u64, limits: TakeLimits) -> Result<Take, FrontierError> {
        let take = self.inner.0.take_within(now, limits)?;
        Ok(match take {
            Take::Ready(mut claim) => {
                claim.alone = self.is_alone;
                claim.validators = self.known.clone().map(Box::new);
                Take::Ready(claim)
            }
            other @ (Take::WaitUntil(_) | Take::Blocked | Take::Empty) => other,
        })
    }

    fn suspect_after(&self) -> Option<Duration> {
        self.suspect_after
    }

    async fn suspect(&self, claim: &Claim) -> Result<(), FrontierError> {
        if self.fails_on_suspect {
            return Err(closed());
        }
        let path = claim.request.url.path().to_owned();
        lock(&self.suspects).push(path);
        tokio::time::sleep(self.suspect_takes).await;
        self.inner.0.suspect(claim).await
    }

    async fn commit(&self, commit: Commit) -> Result<Committed, FrontierError> {
        assert!(!self.panics_on_commit, "on purpose");
        if self.fails_on_commit {
            return Err(closed());
        }
        let path = commit.claim.request.url.path().to_owned();
        let left = (path, commit.result.validators.clone());
        lock(&self.left).push(left);
        self.inner.0.commit(commit).await
    }

    fn cookies(&self) -> Option<KeptCookies> {
        self.inner.0.cookies()
    }

    fn give_back(&self, claim: Box<Claim>, update: HostUpdate) {
        self.inner.0.give_back(claim, update);
    }

    async fn put_off(&self, claim: Box<Claim>, failure: HostFailure) -> Result<(), FrontierError> {
        assert!(!claim.alone, "it would keep all others waiting");
        self.inner.0.put_off(claim, failure).await
    }

    async fn knows(&self, request: &Request) -> Result<bool, FrontierError> {
        self.inner.0.knows(request).await
    }

    fn disk_bytes(&self) -> u64 {
        self.disk_bytes
    }

    fn counts(&self) -> Counts {
        self.inner.0.counts()
    }

    fn statistics(&self) -> Statistics {
        self.inner.0.statistics()
    }

    async fn kept_robots(&self, _url: &Url) -> Result<Option<KeptRobots>, FrontierError> {
        match self.fails_on_robots {
            true => Err(closed()),
            false => Ok(lock(&self.robots).last().cloned()),
        }
    }

    fn keep_robots(&self, _url: &Url, robots: KeptRobots) {
        lock(&self.robots).push(robots);
    }

    fn present_hosts(&self, now: UnixMillis) -> PresentHosts {
        self.inner.0.present_hosts(now)
    }

    fn in_flight(&self) -> usize {
        self.inner.0.in_flight()
    }

    async fn take_changed(&self) {
        self.inner.0.take_changed().await;
    }

    async fn settle(&self) -> Result<(), FrontierError> {
        self.n_settles.fetch_add(1, Ordering::Relaxed);
        self.inner.0.settle().await
    }

    async fn check_empty(&self) -> Result<(), FrontierError> {
        self.inner.0.check_empty().await
    }

    fn held_bytes(&self) -> u64 {
        self.inner.0.held_bytes()
    }

    fn stalled(&self) -> Option<String> {
        self.inner.0.stalled()
    }

    async fn close(&self) -> Result<(), FrontierError> {
        self.inner.0.close().await
    }
}

#[async_trait]
impl LogStore for FaultyFrontier {
    fn store_line(&self, line: Arc<LogLine>) {
        self.inner.0.store_line(line);
    }

    fn remove_line(&self, number: u64) {
        self.inner.0.remove_line(number);
    }

    async fn stored_lines(&self) -> Result<Vec<Arc<LogLine>>, FrontierError> {
        self.inner.0.stored_lines().await
    }
}

#[async_trait]
impl ItemOutbox for FaultyFrontier {
    async fn outbox(&self, sink: &SinkName, max: usize) -> Result<OutboxBatch, FrontierError> {
        let batch = self.inner.0.outbox(sink, max).await?;
        let n_reads = usize::from(!batch.items.is_empty());
        self.n_outbox_reads.fetch_add(n_reads, Ordering::Relaxed);
        Ok(batch)
    }

    async fn clear_outbox(
        &self,
        sink: &SinkName,
        end: u64,
        mark: Option<SinkMark>,
    ) -> Result<(), FrontierError> {
        self.inner.0.clear_outbox(sink, end, mark).await
    }

    async fn marks(&self, sink: &SinkName) -> Result<Vec<SinkMark>, FrontierError> {
        self.inner.0.marks(sink).await
    }

    fn undelivered(&self, sink: &SinkName) -> Undelivered {
        self.inner.0.undelivered(sink)
    }

    fn undelivered_bytes(&self) -> u64 {
        self.inner.0.undelivered_bytes()
    }

    fn n_undelivered(&self) -> u64 {
        self.inner.0.n_undelivered()
    }

    fn sinks(&self) -> SinkNames {
        self.inner.0.sinks()
    }

    fn is_outbox_full(&self) -> bool {
        self.inner.0.is_outbox_full()
    }

    async fn outbox_changed(&self) {
        self.inner.0.outbox_changed().await;
    }
}

impl Quarantine for FaultyFrontier {}

#[async_trait]
impl LinkExchange for FaultyFrontier {
    fn peers(&self) -> Vec<Shard> {
        self.inner.0.peers()
    }

    async fn links_for(&self, peer: Shard, bounds: LinkBounds) -> Result<LinkBatch, FrontierError> {
        self.inner.0.links_for(peer, bounds).await
    }

    async fn delivered(&self, peer: Shard, end: u64) -> Result<(), FrontierError> {
        self.inner.0.delivered(peer, end).await
    }

    async fn apply(
        &self,
        from: Shard,
        batch: LinkBatch,
        policy: LinkPolicy<'_>,
    ) -> Result<u64, FrontierError> {
        self.inner.0.apply(from, batch, policy).await
    }

    fn link_totals(&self) -> LinkTotals {
        self.inner.0.link_totals()
    }

    async fn links_changed(&self) {
        self.inner.0.links_changed().await;
    }
}

fn lock<T>(list: &Mutex<Vec<T>>) -> MutexGuard<'_, Vec<T>> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}
