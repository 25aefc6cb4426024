//! A frontier in memory: bounded, and gone with the process.
//!
//! This backend keeps the contract of [`Frontier`] except that "durable" means "until this process ends". A
//! crash starts the run over, which costs requests and no correctness: item keys repeat.
//!
//! These are bounded: URLs known to one run ([`MemorySettings::max_urls`], beyond which links are refused and
//! counted), pages in flight, the outbox and the links for other shards, above whose limits no page is taken.
//! Pages in flight at that moment may still add to them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Notify;
use url::Url;

use super::log::Lines;
use super::monotonic_time::MonotonicTime;
use super::workbench::{HostHealth, HostId, LaneId, Next, QueuePosition, Workbench};
use super::{
    Claim, Commit, Committed, Ended, Frontier, FrontierError, HostFailure, HostUpdate, NewRequest,
    Take, TakeLimits, URL_BYTES,
};
use crawler_model::crawl::{Counts, Fingerprint, Request, UnixMillis};
use crawler_model::frontier::KeptCookies;
use crawler_model::robots::KeptRobots;
use crawler_model::scope::{GrowthBounds, HOSTS, PATTERN_URLS};
use crawler_model::settings::SinkNames;
use crawler_model::statistics::Statistics;
use crawler_model::status::PresentHosts;
use crawler_process::stage::Stage;
use outbox::Outbox;
use patterns::Patterns;
use peers::PeerLinks;

mod changes;
mod delivery;
mod log;
mod outbox;
mod patterns;
pub(super) mod peers;

/// Reason that links refused for lack of room are counted by, and the setting of `crawler run` that helps.
pub const FRONTIER_URLS: &str = "frontier-urls";

/// Approximate size in bytes of the record of a stored URL.
const SEEN_BYTES: usize = 64;

/// Default maximum number of URLs known to one run.
pub const DEFAULT_MAX_URLS: u64 = 2_000_000;

/// Limits of one shard's frontier.
#[derive(Debug, Clone)]
pub struct MemorySettings {
    /// Maximum number of URLs known to one run: setting `frontier-urls`.
    pub max_urls: u64,
    /// Number of items in the outbox above which no page is taken.
    pub max_outbox_items: usize,
    /// Size in bytes of the outbox above which no page is taken.
    pub max_outbox_bytes: usize,
    /// Number of links for other shards above which no page is taken.
    pub max_links: usize,
    /// Maximum number of pages in flight.
    pub max_undurable: usize,
    /// Sinks of the items.
    pub sinks: SinkNames,
}

impl Default for MemorySettings {
    fn default() -> Self {
        Self {
            max_urls: DEFAULT_MAX_URLS,
            max_outbox_items: 100_000,
            max_outbox_bytes: 256 << 20,
            max_links: 100_000,
            max_undurable: 512,
            sinks: SinkNames::default(),
        }
    }
}

/// A frontier in memory.
#[derive(Debug)]
pub struct MemoryFrontier {
    settings: MemorySettings,
    state: Mutex<State>,
    take_changed: Notify,
    links_changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// URLs of the root requests. `None` before `root` ran.
    roots: Option<Vec<Url>>,
    workbench: Workbench<Waiting>,
    /// Hosts by name and port, numbered in the order of their arrival.
    hosts: HashMap<String, HostId>,
    time: MonotonicTime,
    cookies: Option<KeptCookies>,
    seen: HashMap<Fingerprint, Seen>,
    patterns: Patterns,
    /// Pages in flight by entry.
    in_flight: HashMap<u64, InFlight>,
    /// Number of claims in flight whose hosts are not ready.
    n_preparing: usize,
    next_entry: u64,
    outbox: Outbox,
    peers: PeerLinks,
    counts: Counts,
    statistics: Statistics,
    /// Lines of the log, by their numbers.
    lines: Lines,
}

#[derive(Debug)]
struct Seen {
    depth: u32,
    /// Number of the latest visit that was stored.
    visit: u32,
    /// Number of its visits that wait; a reload of one that waits would change nothing.
    n_waiting: u32,
}

/// A URL that waits.
#[derive(Debug)]
struct Waiting {
    request: Request,
    fingerprint: Fingerprint,
    /// Depth of the request that first stored the URL.
    depth: u32,
    /// Number of the next attempt, from 1.
    attempt: u32,
    /// Number of times that the URL was stored anew.
    visit: u32,
}

/// Data that tells a claim in flight from an earlier one, and puts it back unchanged.
#[derive(Debug)]
struct InFlight {
    fingerprint: Fingerprint,
    attempt: u32,
    lane: LaneId,
    position: QueuePosition,
    /// True if its host is not ready, so that the claim will be put back before it is parsed.
    is_preparing: bool,
}

impl MemoryFrontier {
    /// Creates an empty frontier for one run of one shard.
    pub fn new(settings: MemorySettings) -> Self {
        let state = State {
            outbox: Outbox::new(&settings.sinks),
            ..State::default()
        };
        Self {
            settings,
            state: Mutex::new(state),
            take_changed: Notify::new(),
            links_changed: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Frontier for MemoryFrontier {
    async fn seed_shard(
        &self,
        roots: Vec<Url>,
        requests: Vec<NewRequest>,
    ) -> Result<Committed, FrontierError> {
        let requests = fingerprinted(requests);
        let mut state = self.state();
        if state.roots.is_some() {
            return Ok(Committed::default());
        }
        state.roots = Some(roots);
        Ok(state.store(requests, self.settings.max_urls, None))
    }

    fn roots(&self) -> Option<Vec<Url>> {
        self.state().roots.clone()
    }

    fn root_ends(&self) -> u32 {
        0
    }

    async fn acquire_root_permit(&self) {}

    /// Does nothing, because no record would survive a crash.
    async fn enter_root(&self) -> Result<(), FrontierError> {
        Ok(())
    }

    async fn leave_root(&self) -> Result<(), FrontierError> {
        Ok(())
    }

    fn n_ready_hosts(&self) -> usize {
        self.state().workbench.n_ready()
    }

    fn take_within(&self, now: UnixMillis, limits: TakeLimits) -> Result<Take, FrontierError> {
        let mut state = self.state();
        if state.roots.is_none() {
            return Ok(Take::Blocked);
        }
        let now = state.time.now(now);
        if state.workbench.n_buffered() == 0 {
            let is_over = state.in_flight.is_empty() && state.peers.n_waiting() == 0;
            return Ok(if is_over { Take::Empty } else { Take::Blocked });
        }
        if state.in_flight.len() - state.n_preparing >= self.settings.max_undurable
            || state.outbox.items.len() >= self.settings.max_outbox_items
            || state.outbox.n_bytes >= self.settings.max_outbox_bytes
            || state.peers.n_waiting() >= self.settings.max_links
        {
            return Ok(Take::Blocked);
        }
        Ok(match state.workbench.take(now, limits) {
            Next::Url(lane, position, waiting) => {
                Take::Ready(state.claim(lane, position, waiting, now))
            }
            Next::At(at) => Take::WaitUntil(state.time.to_wall(at)),
            Next::Full => Take::Blocked,
        })
    }

    fn suspect_after(&self) -> Option<Duration> {
        None
    }

    /// Does nothing, because no record would survive a crash.
    async fn suspect(&self, _claim: &Claim) -> Result<(), FrontierError> {
        Ok(())
    }

    async fn commit(&self, mut commit: Commit) -> Result<Committed, FrontierError> {
        // Hashing is most of the work, and needs no lock.
        let requests = std::mem::take(&mut commit.result.requests);
        let requests = Stage::Seen.charge(|| fingerprinted(requests));
        let for_peers = std::mem::take(&mut commit.result.for_peers).into_iter();
        let for_peers = for_peers.map(|(to, new)| (to, new.request.fingerprint(), new));
        let for_peers = for_peers.collect();
        let growth = Some(commit.growth);
        let mut state = self.state();
        let host = state
            .release(&commit.claim, commit.result.host_ready_at)?
            .lane
            .host;
        if commit.result.host_answered {
            state
                .workbench
                .update_health(host, HostHealth::record_answer);
        }
        state.end(commit);
        let (n_sent, n_unsent) = state.send(for_peers, self.settings.max_urls);
        let max_urls = self.settings.max_urls;
        let mut committed = Stage::Seen.measured(|| state.store(requests, max_urls, growth));
        drop(state);
        self.links_changed.notify_one();
        committed.n_sent = n_sent;
        committed.n_over_capacity += n_unsent;
        Ok(committed)
    }

    /// Returns none, because none would survive a crash.
    async fn kept_robots(&self, _url: &Url) -> Result<Option<KeptRobots>, FrontierError> {
        Ok(None)
    }

    fn keep_robots(&self, _url: &Url, _robots: KeptRobots) {}

    fn cookies(&self) -> Option<KeptCookies> {
        self.state().cookies.clone()
    }

    fn give_back(&self, claim: Box<Claim>, update: HostUpdate) {
        self.state().give_back(*claim, update);
    }

    async fn put_off(&self, claim: Box<Claim>, failure: HostFailure) -> Result<(), FrontierError> {
        self.state().put_off(*claim, &failure);
        Ok(())
    }

    async fn knows(&self, request: &Request) -> Result<bool, FrontierError> {
        Ok(self.state().seen.contains_key(&request.fingerprint()))
    }

    fn disk_bytes(&self) -> u64 {
        0
    }

    fn counts(&self) -> Counts {
        let state = self.state();
        let mut counts = state.counts.clone();
        counts.due = (state.workbench.n_buffered() + state.in_flight.len()) as u64;
        counts
    }

    fn statistics(&self) -> Statistics {
        self.state().statistics.clone()
    }

    fn in_flight(&self) -> usize {
        self.state().in_flight.len()
    }

    fn present_hosts(&self, now: UnixMillis) -> PresentHosts {
        let mut state = self.state();
        let now = state.time.of_wall(now).max(state.time.latest());
        let n_met = state.counts.hosts;
        PresentHosts {
            by_state: state.workbench.hosts_by_state(now, n_met),
            in_flight: BTreeMap::new(),
        }
    }

    /// Waits for a call, because only calls change this frontier.
    async fn take_changed(&self) {
        self.take_changed.notified().await;
    }

    async fn settle(&self) -> Result<(), FrontierError> {
        Ok(())
    }

    async fn check_empty(&self) -> Result<(), FrontierError> {
        Ok(())
    }

    fn held_bytes(&self) -> u64 {
        let state = self.state();
        let n_links = state.workbench.n_buffered() + state.peers.n_waiting();
        (state.seen.len() * SEEN_BYTES + n_links * URL_BYTES + state.outbox.n_bytes) as u64
    }

    fn stalled(&self) -> Option<String> {
        None
    }

    async fn close(&self) -> Result<(), FrontierError> {
        Ok(())
    }
}

fn fingerprinted(requests: Vec<NewRequest>) -> Vec<(Fingerprint, NewRequest)> {
    requests
        .into_iter()
        .map(|new| (new.request.fingerprint(), new))
        .collect()
}

#[cfg(test)]
mod tests;
