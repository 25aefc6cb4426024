//! A frontier in memory: bounded, and gone with the process.
//!
//! It keeps the contract of [`Frontier`] except that "durable" means "until this process ends". A
//! crash starts the run over, which costs requests and no correctness: item keys repeat.
//!
//! What is bounded: URLs known to one run ([`MemorySettings::max_urls`], beyond which links are
//! refused and counted), pages in flight, and the outbox, above whose bound no page is taken. Pages
//! in flight at that moment may still add their items.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use url::Url;

use super::steady::SteadyTime;
use super::workbench::{HostId, LaneId, Next, Turn, Workbench};
use super::{
    Claim, Commit, Committed, Ended, Frontier, FrontierError, NewRequest, OutboxBatch, Take,
};
use crate::model::crawl::{Counts, Done, Fingerprint, ItemRecord, Request, UnixMillis};
use crate::model::frontier::SinkMark;
use crate::model::scope::PATTERN_URLS;
use outbox::Outbox;
use patterns::Patterns;

mod changes;
mod outbox;
mod patterns;

/// The reason that refused links are counted by when there is no room, and the setting of `crawler run` that helps.
pub const NO_ROOM: &str = "frontier-urls";

/// URLs known to one run, unless it is told otherwise.
pub const DEFAULT_MAX_URLS: u64 = 2_000_000;

/// The bounds of one shard's frontier.
#[derive(Debug, Clone)]
pub struct MemorySettings {
    /// URLs known to one run: setting `frontier-urls`.
    pub max_urls: u64,
    /// Items in the outbox above which no page is taken.
    pub max_outbox_items: usize,
    /// Bytes in the outbox above which no page is taken.
    pub max_outbox_bytes: usize,
    /// Pages in flight.
    pub max_undurable: usize,
}

impl Default for MemorySettings {
    fn default() -> Self {
        Self {
            max_urls: DEFAULT_MAX_URLS,
            max_outbox_items: 100_000,
            max_outbox_bytes: 256 << 20,
            max_undurable: 512,
        }
    }
}

/// A frontier in memory.
#[derive(Debug)]
pub struct MemoryFrontier {
    settings: MemorySettings,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Of the root requests; none before `root` ran.
    roots: Option<Vec<Url>>,
    workbench: Workbench<Waiting>,
    /// Hosts by name and port, numbered as they come.
    hosts: HashMap<String, HostId>,
    time: SteadyTime,
    seen: HashMap<Fingerprint, Seen>,
    patterns: Patterns,
    /// By entry.
    in_flight: HashMap<u64, InFlight>,
    next_entry: u64,
    outbox: Outbox,
    counts: Counts,
}

#[derive(Debug)]
struct Seen {
    depth: u32,
    /// Of the latest that was stored.
    visit: u32,
    /// How many of its visits wait; a reload of one that waits would change nothing.
    n_waiting: u32,
}

/// A URL that waits.
#[derive(Debug)]
struct Waiting {
    request: Request,
    fingerprint: Fingerprint,
    /// Of the request that first stored the URL.
    depth: u32,
    /// Of the next attempt, from 1.
    attempt: u32,
    /// How often the URL was stored anew.
    visit: u32,
}

/// What tells a claim that is in flight from one that was, and puts it back as it was.
#[derive(Debug)]
struct InFlight {
    fingerprint: Fingerprint,
    attempt: u32,
    lane: LaneId,
    turn: Turn,
}

impl MemoryFrontier {
    /// An empty frontier, for one run of one shard.
    pub fn new(settings: MemorySettings) -> Self {
        Self {
            settings,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Frontier for MemoryFrontier {
    async fn seed(&self, requests: Vec<NewRequest>) -> Result<Committed, FrontierError> {
        let urls = requests.iter().map(|new| new.request.url.clone()).collect();
        let requests = fingerprinted(requests);
        let mut state = self.state();
        if state.roots.is_some() {
            return Ok(Committed::default());
        }
        state.roots = Some(urls);
        Ok(state.store(requests, self.settings.max_urls, None))
    }

    fn roots(&self) -> Option<Vec<Url>> {
        self.state().roots.clone()
    }

    fn take(&self, now: UnixMillis, per_host: u32) -> Result<Take, FrontierError> {
        let mut state = self.state();
        if state.roots.is_none() {
            return Ok(Take::Blocked);
        }
        let now = state.time.now(now);
        if state.workbench.n_buffered() == 0 {
            return Ok(if state.in_flight.is_empty() {
                Take::Empty
            } else {
                Take::Blocked
            });
        }
        if state.in_flight.len() >= self.settings.max_undurable
            || state.outbox.items.len() >= self.settings.max_outbox_items
            || state.outbox.n_bytes >= self.settings.max_outbox_bytes
        {
            return Ok(Take::Blocked);
        }
        Ok(match state.workbench.take(now, per_host.max(1)) {
            Next::Url(lane, turn, waiting) => Take::Ready(state.claim(lane, turn, waiting)),
            Next::At(at) => Take::WaitUntil(state.time.to_wall(at)),
            Next::Full => Take::Blocked,
        })
    }

    /// A crash leaves nothing behind that a note could be of use to.
    async fn suspect(&self, _claim: &Claim) -> Result<(), FrontierError> {
        Ok(())
    }

    async fn commit(&self, mut commit: Commit) -> Result<Committed, FrontierError> {
        // Hashing is most of the work, and needs no lock.
        let requests = fingerprinted(std::mem::take(&mut commit.requests));
        let max_pattern_urls = Some(commit.max_pattern_urls);
        let mut state = self.state();
        state.land(&commit.claim, commit.host_ready_at)?;
        state.end(commit);
        Ok(state.store(requests, self.settings.max_urls, max_pattern_urls))
    }

    fn give_back(&self, claim: Box<Claim>) {
        let mut state = self.state();
        match state.land(&claim, 0) {
            Ok(InFlight { turn, attempt, .. }) => state.wait_again(*claim, turn.due, attempt),
            Err(error) => tracing::warn!(%error, "a claim was given back twice"),
        }
    }

    async fn outbox(&self, max: usize) -> Result<OutboxBatch, FrontierError> {
        let state = self.state();
        let items: Vec<ItemRecord> = state.outbox.items.iter().take(max).cloned().collect();
        Ok(OutboxBatch {
            end: state.outbox.first + items.len() as u64,
            items,
        })
    }

    async fn clear_outbox(&self, end: u64, _mark: Option<SinkMark>) -> Result<(), FrontierError> {
        self.state().outbox.clear(end);
        Ok(())
    }

    async fn knows(&self, request: &Request) -> Result<bool, FrontierError> {
        Ok(self.state().seen.contains_key(&request.fingerprint()))
    }

    fn counts(&self) -> Counts {
        let state = self.state();
        let mut counts = state.counts.clone();
        counts.due = (state.workbench.n_buffered() + state.in_flight.len()) as u64;
        counts
    }

    fn in_flight(&self) -> usize {
        self.state().in_flight.len()
    }

    /// Never: here, only calls change anything.
    async fn take_changed(&self) {
        std::future::pending().await
    }

    async fn outbox_changed(&self) {
        std::future::pending().await
    }

    async fn settle(&self) -> Result<(), FrontierError> {
        Ok(())
    }

    async fn check_empty(&self) -> Result<(), FrontierError> {
        Ok(())
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
