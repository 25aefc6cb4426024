//! State of a frontier in memory, and its changes by a commit together with the batch.
//!
//! Everything here happens under one lock, and nothing waits.

use std::collections::{BTreeSet, HashMap, VecDeque};

use prost::Message as _;
use slatedb::WriteBatch;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use url::Url;

use super::robots::RobotsQueue;
use super::settings::DurableSettings;
use crate::monotonic_time::MonotonicTime;
use crate::records::{self, Head};
use crate::workbench::{HostId, LaneId, Next, QueuePosition, TakeLimits, Workbench};
use crate::{Claim, FrontierError, RestingHost, Take, keys};
use crawler_model::crawl::{Counts, Fingerprint, Request, UnixMillis};
use crawler_model::frontier::{KeptCookies, Validators};
use crawler_model::id::{Run, Shard};

mod changes;
mod commit;
mod durability;
mod host_update;
mod outbox;
mod peers;
mod quarantine;
mod statistics;

pub(super) use changes::{Compared, Comparison, Latest, LatestItems};
pub(super) use commit::StoredPage;
use outbox::Outbox;
pub(super) use outbox::WINDOW;
pub(super) use peers::LinkQueue;
use peers::PeerLinks;
use quarantine::Quarantined;
pub(super) use quarantine::{WaitingItem, stored_profile};
pub(super) use statistics::StatisticsRecord;

/// Maximum number of URLs of one lane in memory, if few lanes share the memory.
const MAX_LANE_CAPACITY: usize = 1_024;
/// Minimum number of them, if many do; hosts beyond those that fit then sleep.
const MIN_LANE_CAPACITY: usize = 4;

/// Milliseconds between two attempts to take a page while URLs of an earlier run are made due.
const CARRY_PAUSE: u64 = 1_000;

/// A URL that waits and is in memory.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) request: Request,
    pub(super) fingerprint: Fingerprint,
    pub(super) depth: u32,
    pub(super) attempt: u32,
    pub(super) visit: u32,
    pub(super) failure: String,
    pub(super) validators: Option<Box<Validators>>,
    pub(super) plugin: u32,
}

/// A page from being taken until it is committed or given back.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) fingerprint: Fingerprint,
    pub(super) attempt: u32,
    pub(super) lane: LaneId,
    pub(super) position: QueuePosition,
    failure: String,
    plugin: u32,
    alone: bool,
    /// True if its host is not ready, so that the claim will be put back before it is parsed.
    is_preparing: bool,
    /// True if the page is recorded as suspect.
    pub(super) is_suspect: bool,
    /// Permit of a page that is tried alone, from its record on.
    pub(super) permit: Option<OwnedSemaphorePermit>,
}

/// A batch that is not durable yet.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) sequence: u64,
    pub(super) since: Instant,
    pub(super) n_pages: usize,
    pub(super) outbox_next: u64,
    /// Next number of the links for each other shard, like that of the outbox.
    pub(super) links_next: Vec<(Shard, u64)>,
    /// Permit of a page that was tried alone: until its end is durable, an end of the process counts against it.
    pub(super) _permit: Option<OwnedSemaphorePermit>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) run: Run,
    pub(super) time: MonotonicTime,
    pub(super) bench: Workbench<Box<Waiting>>,
    in_flight: HashMap<u64, InFlight>,
    /// Number of claims in flight whose hosts are not ready.
    n_preparing: usize,
    /// Suspects, which are tried one at a time and before all other pages.
    pub(super) alone: VecDeque<(LaneId, QueuePosition, Box<Waiting>)>,
    /// Number of pages that still have to be recorded durably before they enter their rule.
    pub(super) n_careful: u64,
    /// Fingerprints of given-back pages whose records the next batch removes.
    given_back: Vec<Fingerprint>,
    /// True if a host may have been asked without an update of its clock.
    pub(super) has_unsure_clocks: bool,
    /// Hosts whose clocks in memory differ from the stored ones.
    pub(super) unsaved: BTreeSet<HostId>,
    /// Hosts that were resting at the opening, until they are taken.
    pub(super) resting: Vec<RestingHost>,
    /// Time until which hosts wait for longer than their stored clocks say.
    pub(super) held_until: UnixMillis,
    pub(super) head: Head,
    pub(super) cookies: Option<KeptCookies>,
    /// Files of robots.txt that wait for the next batch, and whether there are any of earlier openings.
    pub(super) robots: RobotsQueue,
    pub(super) last: records::Batch,
    pub(super) counts: Counts,
    pub(super) statistics: StatisticsRecord,
    pub(super) undurable: VecDeque<Written>,
    pub(super) n_undurable: usize,
    /// Permit of a call of `root` that counts against it, until it has returned.
    pub(super) root_permit: Option<OwnedSemaphorePermit>,
    /// True if a process has ended while `root` was called.
    pub(super) root_is_suspect: bool,
    /// Permit of a page that was tried alone and whose end is in the batch in the making.
    pub(super) left_alone: Option<OwnedSemaphorePermit>,
    pub(super) outbox: Outbox,
    /// Items that are not in the outbox.
    pub(super) quarantined: Quarantined,
    /// Comparison of the items with those of earlier runs, if they are compared.
    pub(super) comparison: Option<Comparison>,
    pub(super) peers: PeerLinks,
    /// Numbers of URLs stored per path pattern, as far as they were needed.
    pub(super) patterns: HashMap<[u8; 8], u64>,
    max_undurable: usize,
}

impl State {
    pub(super) fn new(
        run: Run,
        head: Head,
        last: records::Batch,
        counts: Counts,
        settings: &DurableSettings,
    ) -> Self {
        let mut state = Self {
            run,
            time: MonotonicTime::from(last.latest),
            bench: Workbench::default(),
            in_flight: HashMap::new(),
            n_preparing: 0,
            alone: VecDeque::new(),
            n_careful: 0,
            given_back: Vec::new(),
            has_unsure_clocks: false,
            unsaved: BTreeSet::new(),
            resting: Vec::new(),
            held_until: 0,
            head,
            cookies: None,
            robots: RobotsQueue::default(),
            last,
            counts,
            statistics: StatisticsRecord::default(),
            undurable: VecDeque::new(),
            n_undurable: 0,
            root_permit: None,
            root_is_suspect: false,
            left_alone: None,
            outbox: Outbox::new(settings),
            quarantined: Quarantined::default(),
            comparison: None,
            peers: PeerLinks::new(settings.max_links),
            patterns: HashMap::new(),
            max_undurable: settings.max_undurable,
        };
        state.fit_lanes(settings.max_buffered);
        state
    }

    /// Divides the URLs that memory may hold among the lanes and returns the share of one lane.
    pub(super) fn fit_lanes(&mut self, max_buffered: usize) -> usize {
        let share = max_buffered / self.bench.n_lanes().max(1);
        let capacity = share.clamp(MIN_LANE_CAPACITY, MAX_LANE_CAPACITY);
        self.bench.set_capacity(max_buffered, capacity);
        capacity
    }

    pub(super) fn roots(&self) -> Option<Vec<Url>> {
        let parsed = || self.head.roots.iter().filter_map(|url| url.parse().ok());
        self.head.is_seeded.then(|| parsed().collect())
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts.clone()
    }

    pub(super) fn n_in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Returns the next step, and true if URLs should be read in.
    pub(super) fn take(&mut self, wall: UnixMillis, limits: TakeLimits) -> (Take, bool) {
        if !self.head.is_seeded {
            return (Take::Blocked, false);
        }
        let now = self.time.now(wall);
        if self.counts.due == 0 {
            let is_durable = self.n_undurable == 0 && self.undurable.is_empty();
            let is_over = is_durable && !self.head.is_carrying && self.peers.n_waiting() == 0;
            return (if is_over { Take::Empty } else { Take::Blocked }, false);
        }
        let n_in_flight = self.in_flight.len();
        let n_pages = n_in_flight - self.n_preparing;
        let is_full = self.outbox.is_full(&self.last) || self.peers.is_full();
        if n_pages + self.n_undurable >= self.max_undurable || is_full {
            return (Take::Blocked, false);
        }
        if let Some(rest) = self.rest(now) {
            return (rest, false);
        }
        let is_one_alone = n_in_flight == 1 && self.in_flight.values().any(|page| page.alone);
        if !self.alone.is_empty() || is_one_alone {
            return (self.take_alone(now), false);
        }
        let take = match self.bench.take(now, limits) {
            Next::Url(lane, position, waiting) => {
                Take::Ready(self.claim(lane, position, *waiting, false))
            }
            Next::At(at) => {
                let at = match self.head.is_carrying {
                    // URLs that are carried over come in without any request for them: look again soon.
                    true => at.min(now.saturating_add(CARRY_PAUSE)),
                    false => at,
                };
                Take::WaitUntil(self.time.to_wall(at))
            }
            Next::Full => Take::Blocked,
        };
        (take, self.bench.wants_refill())
    }

    fn take_alone(&mut self, now: UnixMillis) -> Take {
        if !self.in_flight.is_empty() {
            return Take::Blocked;
        }
        let clock = |(lane, _, _): &(LaneId, _, _)| self.bench.clock(lane.host);
        let Some((n, at)) = self
            .alone
            .iter()
            .map(clock)
            .enumerate()
            .min_by_key(|&(n, at)| {
                // This is the first suspect whose host may be asked, or else the one that may be soonest.
                (at.max(now), n)
            })
        else {
            return Take::Blocked;
        };
        if at > now {
            return Take::WaitUntil(self.time.to_wall(at));
        }
        match self.alone.remove(n) {
            Some((lane, position, waiting)) => {
                Take::Ready(self.claim(lane, position, *waiting, true))
            }
            None => Take::Blocked,
        }
    }

    fn claim(
        &mut self,
        lane: LaneId,
        position: QueuePosition,
        waiting: Waiting,
        alone: bool,
    ) -> Box<Claim> {
        let host = self.bench.standing(lane.host, self.time.latest());
        let is_preparing = !host.is_ready && !alone;
        self.n_preparing += usize::from(is_preparing);
        let in_flight = InFlight {
            fingerprint: waiting.fingerprint,
            attempt: waiting.attempt,
            lane,
            position,
            failure: waiting.failure,
            plugin: waiting.plugin,
            alone,
            is_preparing,
            is_suspect: alone,
            permit: None,
        };
        self.in_flight.insert(position.entry, in_flight);
        Box::new(Claim {
            request: waiting.request,
            depth: waiting.depth,
            attempt: waiting.attempt,
            visit: waiting.visit,
            fingerprint: waiting.fingerprint,
            entry: position.entry,
            alone,
            validators: waiting.validators,
            host,
        })
    }

    /// Takes one of the suspects that wait to be tried alone, by its entry.
    pub(super) fn claim_alone(&mut self, entry: u64) -> Option<Box<Claim>> {
        let n = self
            .alone
            .iter()
            .position(|(_, position, _)| position.entry == entry)?;
        let (lane, position, waiting) = self.alone.remove(n)?;
        Some(self.claim(lane, position, *waiting, true))
    }

    /// Returns the page in flight that belongs to a claim.
    pub(super) fn find(&mut self, claim: &Claim) -> Result<&mut InFlight, FrontierError> {
        // The attempt tells a claim from an earlier one of the same URL that comes back late.
        let known = self.in_flight.get_mut(&claim.entry);
        let known = known.filter(|known| {
            known.fingerprint == claim.fingerprint && known.attempt == claim.attempt
        });
        known.ok_or_else(|| FrontierError::NotInFlight {
            url: claim.request.url.to_string(),
        })
    }

    /// Returns true if this entry is in flight.
    pub(super) fn is_in_flight(&self, entry: u64) -> bool {
        self.in_flight.contains_key(&entry)
    }

    /// Takes a claim out of flight that is to be put back.
    pub(super) fn released(&mut self, claim: &Claim) -> Option<InFlight> {
        if let Err(error) = self.find(claim) {
            tracing::warn!(%error, "a claim was given back twice");
            return None;
        }
        self.release(claim.entry)
    }

    /// Removes a page from flight.
    pub(super) fn release(&mut self, entry: u64) -> Option<InFlight> {
        let page = self.in_flight.remove(&entry)?;
        self.n_preparing -= usize::from(page.is_preparing);
        Some(page)
    }

    /// Puts a page back, unchanged, that was removed from flight.
    pub(super) fn wait_again(&mut self, claim: Claim, page: InFlight) {
        if page.is_suspect {
            self.given_back.push(page.fingerprint);
        }
        let waiting = Box::new(Waiting {
            request: claim.request,
            fingerprint: claim.fingerprint,
            depth: claim.depth,
            attempt: claim.attempt,
            visit: claim.visit,
            failure: page.failure,
            validators: claim.validators,
            plugin: page.plugin,
        });
        if page.alone {
            self.alone.push_front((page.lane, page.position, waiting));
            return;
        }
        self.bench.release(page.lane, page.position, 0, 0);
        self.bench.put(page.lane, page.position, waiting);
    }

    /// Adds the records that every batch has: its number and the totals.
    pub(super) fn seal(&mut self, batch: &mut WriteBatch) {
        for fingerprint in self.given_back.drain(..) {
            batch.delete(keys::suspect(fingerprint));
        }
        self.robots.write(batch);
        self.last.n += 1;
        self.last.latest = self.time.latest();
        batch.put(keys::batch(self.last.n), self.last.encode_to_vec());
        let totals = records::Totals::from(&self.counts);
        batch.put(keys::totals(self.run), totals.encode_to_vec());
        let _is_due = self.statistics.write_due(self.run, batch);
    }

    /// Removes the record of a suspect with the next batch.
    pub(super) fn forget_suspect(&mut self, fingerprint: Fingerprint) {
        self.given_back.push(fingerprint);
    }
}
