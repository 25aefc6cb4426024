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

use super::workbench::{Next, Waiting, Workbench};
use super::{
    Claim, Commit, Committed, Ended, Frontier, FrontierError, NewRequest, OutboxBatch, Take,
};
use crate::model::crawl::{Counts, Done, Fingerprint, ItemRecord, Request, UnixMillis};
use crate::model::frontier::SinkMark;
use crate::model::scope::PATTERN_URLS;
use outbox::Outbox;
use patterns::Patterns;

mod outbox;
mod patterns;

/// The reason that refused links are counted by when there is no room, and the setting that helps.
pub const NO_ROOM: &str = "frontier-urls";

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
            max_urls: 2_000_000,
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
    workbench: Workbench,
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

/// What tells a claim that is in flight from one that was, and puts it back as it was.
#[derive(Debug)]
struct InFlight {
    fingerprint: Fingerprint,
    attempt: u32,
    due: UnixMillis,
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

    fn take(&self, now: UnixMillis, per_host: u32) -> Take {
        let mut state = self.state();
        if state.roots.is_none() {
            return Take::Blocked;
        }
        if state.workbench.n_waiting() == 0 {
            return if state.in_flight.is_empty() {
                Take::Empty
            } else {
                Take::Blocked
            };
        }
        if state.in_flight.len() >= self.settings.max_undurable
            || state.outbox.items.len() >= self.settings.max_outbox_items
            || state.outbox.n_bytes >= self.settings.max_outbox_bytes
        {
            return Take::Blocked;
        }
        match state.workbench.take(now, per_host.max(1)) {
            Next::Url(waiting) => Take::Ready(state.claim(*waiting)),
            Next::At(at) => Take::WaitUntil(at),
            Next::Full => Take::Blocked,
        }
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
            Ok(InFlight { due, attempt, .. }) => state.wait_again(*claim, due, attempt),
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
        counts.due = state.workbench.n_waiting() + state.in_flight.len() as u64;
        counts
    }

    fn in_flight(&self) -> usize {
        self.state().in_flight.len()
    }

    /// Never: here, only calls change anything.
    async fn changed(&self) {
        std::future::pending().await
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

impl State {
    fn claim(&mut self, waiting: Waiting) -> Box<Claim> {
        if let Some(seen) = self.seen.get_mut(&waiting.fingerprint) {
            seen.n_waiting -= 1;
        }
        let in_flight = InFlight {
            fingerprint: waiting.fingerprint,
            attempt: waiting.attempt,
            due: waiting.due,
        };
        self.in_flight.insert(waiting.entry, in_flight);
        Box::new(Claim {
            request: waiting.request,
            depth: waiting.depth,
            attempt: waiting.attempt,
            visit: waiting.visit,
            fingerprint: waiting.fingerprint,
            entry: waiting.entry,
            alone: false,
            validators: None,
        })
    }

    fn land(
        &mut self,
        claim: &Claim,
        host_ready_at: UnixMillis,
    ) -> Result<InFlight, FrontierError> {
        // The attempt tells a claim from an earlier one of the same URL that comes back late.
        let known = self.in_flight.get(&claim.entry).is_some_and(|known| {
            known.fingerprint == claim.fingerprint && known.attempt == claim.attempt
        });
        let landed = known.then(|| self.in_flight.remove(&claim.entry)).flatten();
        let in_flight = landed.ok_or_else(|| FrontierError::NotInFlight {
            url: claim.request.url.to_string(),
        })?;
        self.workbench.land(&claim.request, host_ready_at);
        Ok(in_flight)
    }

    fn wait_again(&mut self, claim: Claim, due: UnixMillis, attempt: u32) {
        self.wait(Waiting {
            entry: claim.entry,
            due,
            request: claim.request,
            fingerprint: claim.fingerprint,
            depth: claim.depth,
            attempt,
            visit: claim.visit,
        });
    }

    fn wait(&mut self, waiting: Waiting) {
        if let Some(seen) = self.seen.get_mut(&waiting.fingerprint) {
            seen.n_waiting += 1;
        }
        self.workbench.put(waiting);
    }

    /// All of a commit but its requests.
    fn end(&mut self, commit: Commit) {
        let counts = &mut self.counts;
        counts.bytes += commit.bytes;
        counts.items += commit.items.len() as u64;
        for (reason, n) in commit.refused {
            *counts.refused_links.entry(reason.to_owned()).or_default() += n;
        }
        self.outbox.push(commit.items);
        if let Some(final_url) = commit.final_url {
            let depth = commit.claim.depth;
            self.seen.entry(final_url).or_insert(Seen {
                depth,
                visit: 0,
                n_waiting: 0,
            });
        }
        match commit.ended {
            Ended::Done(Done::Parsed) => counts.parsed += 1,
            Ended::Done(
                Done::Skipped
                | Done::NotModified
                | Done::Redirected
                | Done::Duplicate
                | Done::Gone
                | Done::Denied,
            ) => counts.other_done += 1,
            Ended::Dead { reason } => {
                counts.dead += 1;
                *counts.dead_by_reason.entry(reason).or_default() += 1;
            }
            Ended::Retry { at, reason: _ } => {
                counts.retries += 1;
                let attempt = commit.claim.attempt.saturating_add(1);
                self.wait_again(*commit.claim, at, attempt);
            }
        }
    }

    fn store(
        &mut self,
        requests: Vec<(Fingerprint, NewRequest)>,
        max_urls: u64,
        max_pattern_urls: Option<u64>,
    ) -> Committed {
        let mut committed = Committed::default();
        for (fingerprint, NewRequest { request, depth }) in requests {
            let has_room = (self.seen.len() as u64) < max_urls;
            let (depth, visit) = match self.seen.get_mut(&fingerprint) {
                Some(seen) if request.reload && seen.n_waiting == 0 => {
                    seen.visit = seen.visit.saturating_add(1);
                    (seen.depth, seen.visit)
                }
                Some(_) => continue,
                None if !has_room => {
                    committed.n_no_room += 1;
                    continue;
                }
                None if max_pattern_urls
                    .is_some_and(|max| !self.patterns.admit(&request.url, max)) =>
                {
                    committed.n_over_pattern += 1;
                    continue;
                }
                None => {
                    let seen = Seen {
                        depth,
                        visit: 0,
                        n_waiting: 0,
                    };
                    self.seen.insert(fingerprint, seen);
                    committed.n_new += 1;
                    (depth, 0)
                }
            };
            let entry = self.next_entry;
            self.next_entry += 1;
            self.wait(Waiting {
                entry,
                due: self.workbench.latest(),
                request,
                fingerprint,
                depth,
                attempt: 1,
                visit,
            });
        }
        for (reason, n) in [
            (NO_ROOM, committed.n_no_room),
            (PATTERN_URLS, committed.n_over_pattern),
        ] {
            if n > 0 {
                let refused = self.counts.refused_links.entry(reason.to_owned());
                *refused.or_default() += n;
            }
        }
        committed
    }
}

#[cfg(test)]
mod tests;
