//! Order of pages: which host may be asked next, and which of its URLs comes first.
//!
//! Every operation costs the logarithm of the number of entries, whatever the mix of hosts: a host with a
//! million URLs is one entry among the hosts. Hosts are ordered by their [kind](HostKind), by the number of their
//! URLs in flight and then by the moment they may be asked, so that free places go round. URLs of one host are ordered by
//! priority, then by the moment they are due, then by age. The number of priorities that are told apart for
//! one host at a time is limited.
//!
//! Some of the URLs may be outside of memory. A [`lane`](Lane) keeps the first of its URLs and knows that
//! others follow; when few are left it *needs a refill*, and the owner of the rest reads the next ones in with
//! [`Workbench::begin_refill`] and [`Workbench::fill`]. A host whose best lane has run dry waits for that; no
//! other host does. If there is no room for all hosts, those that come last [`sleep`]: only their
//! clocks and the starts of their lanes stay in memory.
//!
//! The name is that of the same part of the crawler BUbiNG.
//!
//! This module computes with moments that are passed in. Seen URLs, items and locks are left to the caller.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crawler_model::crawl::UnixMillis;
use crawler_model::frontier::HostState;

mod health;
mod host;
mod hosts;
mod ids;
mod lane;
mod limits;
mod sleep;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use health::{FailureStreak, HostHealth, HostKind};
pub use health::{HostFailure, HostStanding, HostUpdate, RestingHost};
pub(crate) use host::HostClock;
use host::{Host, Level, Place};
pub(crate) use ids::{HostId, LaneId};
use lane::Lane;
pub(crate) use lane::{Cursor, Put, QueuePosition};
pub use limits::TakeLimits;
use table::Hosts;

/// Result of taking the next URL.
#[derive(Debug)]
pub(crate) enum Next<T> {
    /// The URL, which counts as in flight now.
    Url(LaneId, QueuePosition, T),
    /// No URL is available before this moment.
    At(UnixMillis),
    /// Every host has as many URLs in flight as it may, or waits for its URLs to be read in.
    Full,
}

/// Number of [`Answered`](HostKind::Answered) hosts that are taken in a row while an [`Unreached`](HostKind::Unreached) one is
/// due. So names without a server hold up no site that is there, and sites that are there leave new ones an eighth.
pub(crate) const ANSWERED_IN_A_ROW: u32 = 7;
/// Maximum number of lanes of one host: with each page of the host, the start of each lane is written, and
/// the lanes are searched.
const MAX_LANES: usize = 64;

/// Hosts, their clocks, and the first of the URLs that wait for each.
#[derive(Debug)]
pub(crate) struct Workbench<T> {
    hosts: Hosts<T>,
    /// Hosts by URLs in flight, then by the moment at which the host has a URL to fetch and may be asked.
    /// Only hosts with a URL in memory are here; there are no more levels than places in flight.
    queues: BTreeMap<Level, BTreeSet<(UnixMillis, HostId)>>,
    /// Sleeping hosts, by the moment at which the host has a URL to fetch and may be asked.
    asleep: BTreeSet<(UnixMillis, HostId)>,
    /// Hosts that have no URLs left, by the moment at which they may be asked again.
    idle: BTreeSet<(UnixMillis, HostId)>,
    /// Numbers of hosts by state that were counted last, and when.
    counted: Option<(UnixMillis, BTreeMap<HostState, u64>)>,
    /// Number of `Answered` hosts taken since the last `Unreached` one.
    n_answered_in_a_row: u32,
    /// Lanes to be read in; not all of them still need it.
    refill_queue: VecDeque<LaneId>,
    n_to_refill: usize,
    n_lanes: usize,
    n_buffered: usize,
    /// Maximum number of URLs in memory, and that of one lane.
    max_buffered: usize,
    lane_capacity: usize,
}

impl<T> Default for Workbench<T> {
    fn default() -> Self {
        Self {
            hosts: Hosts::default(),
            idle: BTreeSet::new(),
            queues: BTreeMap::new(),
            asleep: BTreeSet::new(),
            counted: None,
            n_answered_in_a_row: 0,
            refill_queue: VecDeque::new(),
            n_to_refill: 0,
            n_lanes: 0,
            n_buffered: 0,
            max_buffered: usize::MAX,
            lane_capacity: usize::MAX,
        }
    }
}

impl<T> Workbench<T> {
    /// Sets the maximum number of URLs in memory, and that of one lane. URLs beyond the first leave the
    /// memory at once; those beyond the second as URLs of the lane are taken.
    pub(crate) fn set_capacity(&mut self, max_buffered: usize, lane_capacity: usize) {
        (self.max_buffered, self.lane_capacity) = (max_buffered, lane_capacity);
        self.fit();
    }

    /// Returns the number of URLs in memory.
    pub(crate) fn n_buffered(&self) -> usize {
        self.n_buffered
    }

    /// Returns the number of lanes with a URL that waits or is in flight.
    pub(crate) fn n_lanes(&self) -> usize {
        self.n_lanes
    }

    /// Restores a host as an earlier opening has left it: its URLs are read in from its cursors on.
    pub(crate) fn restore(
        &mut self,
        host: HostId,
        clock: HostClock,
        health: HostHealth,
        cursors: &[Cursor],
    ) {
        if cursors.len() <= 1 && !self.hosts.contains(host) {
            let cursor = cursors.first().copied();
            let place = self.hosts.add_short(host, clock, health, cursor);
            self.n_lanes += cursors.len();
            return self.enter(host, place);
        }
        self.change(host, |host| {
            (host.clock, host.health) = (clock, health);
            for cursor in cursors {
                let lane = Box::new(Lane::from_cursor(cursor.at));
                host.lanes.insert(Reverse(cursor.priority), lane);
            }
            host.sleep();
        });
    }

    /// Returns the lane for a new URL: that of its priority. If the host has as many lanes as it may, it is
    /// the lane with the nearest lower priority, or else the lowest lane.
    pub(crate) fn lane_for(&self, host: HostId, priority: i32) -> LaneId {
        let lanes = self.hosts.whole(host).map(|known| &known.lanes);
        let priority = match lanes {
            Some(lanes) if lanes.len() >= MAX_LANES => {
                let nearest = lanes.range(Reverse(priority)..).next();
                let nearest = nearest.or_else(|| lanes.last_key_value());
                nearest.map_or(priority, |(priority, _)| priority.0)
            }
            Some(_) | None => priority,
        };
        LaneId { host, priority }
    }

    /// Queues a URL. A lane that has more URLs than its capacity keeps the first of them.
    pub(crate) fn put(&mut self, lane: LaneId, position: QueuePosition, url: T) -> Put {
        let capacity = self.lane_capacity;
        let put = self.in_lane(lane, |lane| lane.put(position, url, capacity));
        self.queue_refills(lane.host);
        self.fit();
        put
    }

    /// Counts a URL as in flight that is not in memory: one that is taken in another way.
    pub(crate) fn hold(&mut self, lane: LaneId, position: QueuePosition) {
        self.in_lane(lane, |lane| lane.hold(position));
        self.change(lane.host, |host| host.n_in_flight += 1);
    }

    /// Takes the next URL, from a host with fewer URLs in flight than it may have. Ready hosts come first, then those that
    /// have answered before.
    pub(crate) fn take(&mut self, now: UnixMillis, limits: TakeLimits) -> Next<T> {
        self.wake();
        let ready = (HostKind::Ready, limits.ready);
        let answered = (HostKind::Answered, limits.answered);
        let unreached = (HostKind::Unreached, limits.unreached);
        let kinds = match self.n_answered_in_a_row < ANSWERED_IN_A_ROW {
            true => [ready, answered, unreached],
            false => [ready, unreached, answered],
        };
        let heads = || {
            let levels = kinds.into_iter().flat_map(|(kind, n)| {
                let level = |n_in_flight| Level { kind, n_in_flight };
                self.queues.range(level(0)..level(n.unwrap_or(0)))
            });
            levels.filter_map(|(level, queue)| Some((level.kind, *queue.first()?)))
        };
        let Some((kind, (_, host))) = heads().find(|&(_, (at, _))| at <= now) else {
            let first = heads().map(|(_, (at, _))| at).min();
            // A URL that is being read in may come sooner.
            let first = first.filter(|_| self.n_to_refill == 0);
            return first.map_or(Next::Full, Next::At);
        };
        match kind {
            HostKind::Ready => {}
            HostKind::Answered => {
                self.n_answered_in_a_row = self.n_answered_in_a_row.saturating_add(1);
            }
            HostKind::Unreached => self.n_answered_in_a_row = 0,
        }
        let popped = self.change(host, |host| {
            host.n_in_flight += 1;
            host.pop(now)
        });
        let (priority, position, url) =
            popped.expect("a host has a position only while something there is due");
        self.queue_refills(host);
        Next::Url(LaneId { host, priority }, position, url)
    }

    /// Removes a URL from flight. Its host has answered at `answered` and is not asked before `not_before`;
    /// if that is 0, its clock stays.
    pub(crate) fn release(
        &mut self,
        lane: LaneId,
        position: QueuePosition,
        answered: UnixMillis,
        not_before: UnixMillis,
    ) {
        self.in_lane(lane, |lane| lane.release(position));
        self.change(lane.host, |host| {
            host.n_in_flight = host.n_in_flight.saturating_sub(1);
        });
        if not_before > 0 {
            self.set_host_clock(lane.host, answered, not_before);
        }
        self.queue_refills(lane.host);
    }

    /// Postpones a host to this moment, unless it waits for longer.
    pub(crate) fn postpone(&mut self, host: HostId, until: UnixMillis) {
        self.change(host, |host| host.clock.postpone(until));
        self.queue_refills(host);
    }

    /// Returns the clock of a host and the starts of its lanes, which count as saved from now on.
    pub(crate) fn save(&mut self, host: HostId) -> (HostClock, Vec<Cursor>) {
        if !self.hosts.contains(host) {
            return (HostClock::default(), Vec::new());
        }
        self.change(host, |host| {
            let save = |(priority, lane): (&Reverse<i32>, &mut Box<Lane<T>>)| {
                let (priority, at) = (priority.0, lane.save()?);
                Some(Cursor { priority, at })
            };
            let cursors = host.lanes.iter_mut().filter_map(save).collect();
            (host.clock, cursors)
        })
    }

    /// Returns the moment before which a host is not asked.
    pub(crate) fn clock(&self, host: HostId) -> UnixMillis {
        self.hosts.about(host).map_or(0, |(clock, _)| clock.at)
    }

    /// Returns true if anything is known of a host.
    pub(crate) fn knows(&self, host: HostId) -> bool {
        self.hosts.contains(host)
    }

    /// Forgets hosts that have no URLs left and may be asked again by now.
    pub(crate) fn forget_idle(&mut self, now: UnixMillis) {
        while let Some(&(at, id)) = self.idle.first()
            && at <= now
        {
            self.idle.pop_first();
            self.hosts.forget(id);
        }
    }

    /// Returns true if URLs should be read in.
    pub(crate) fn wants_refill(&self) -> bool {
        !self.refill_queue.is_empty()
    }

    /// Returns the next lane to be read in, and the position after which its URLs begin.
    pub(crate) fn begin_refill(&mut self) -> Option<(LaneId, QueuePosition)> {
        self.wake();
        while let Some(id) = self.refill_queue.pop_front() {
            let host = self.hosts.whole_mut(id.host);
            let lane = host.and_then(|host| host.lanes.get_mut(&Reverse(id.priority)));
            if let Some(after) = lane.and_then(|lane| lane.begin_refill()) {
                return Some((id, after));
            }
        }
        None
    }

    /// Adds the URLs that were read in for a lane, in order; `is_all` is true if no others follow.
    pub(crate) fn fill(&mut self, id: LaneId, urls: Vec<(QueuePosition, T)>, is_all: bool) {
        let capacity = self.lane_capacity;
        self.in_lane(id, |lane| lane.fill(urls, is_all, capacity));
        self.queue_refills(id.host);
        self.fit();
    }

    /// Queues lanes of a host that have few URLs for a refill, up to the first that is dry: those after it are
    /// not used before that.
    fn queue_refills(&mut self, id: HostId) {
        let Some(host) = self.hosts.whole_mut(id) else {
            return;
        };
        let few = self.lane_capacity / 4;
        for priority in host.request_refills(few) {
            self.n_to_refill += 1;
            self.refill_queue.push_back(LaneId { host: id, priority });
        }
    }

    fn in_lane<R>(&mut self, id: LaneId, change: impl FnOnce(&mut Lane<T>) -> R) -> R {
        self.change(id.host, |host| {
            let result = host.in_lane(id.priority, change);
            if host.is_asleep() {
                host.sleep();
            }
            result
        })
    }

    /// Changes a host, and with it its place and the sums over all hosts.
    fn change<R>(&mut self, id: HostId, change: impl FnOnce(&mut Host<T>) -> R) -> R {
        let is_new = !self.hosts.contains(id);
        let host = self.hosts.expand(id);
        let place = if is_new { Place::Nowhere } else { host.place() };
        let sums = host.sums();
        let result = change(host);
        let (new_place, new_sums) = (host.place(), host.sums());
        let updated = |all: usize, before: usize, after: usize| all + after - before;
        self.n_lanes = updated(self.n_lanes, sums.n_lanes, new_sums.n_lanes);
        self.n_buffered = updated(self.n_buffered, sums.n_buffered, new_sums.n_buffered);
        self.n_to_refill = updated(self.n_to_refill, sums.n_to_refill, new_sums.n_to_refill);
        if place != new_place {
            self.leave(id, place);
            self.enter(id, new_place);
        }
        self.hosts.shorten(id);
        result
    }

    fn leave(&mut self, id: HostId, place: Place) {
        match place {
            Place::Nowhere => {}
            Place::Queued(level, at) => {
                if let Some(queue) = self.queues.get_mut(&level) {
                    queue.remove(&(at, id));
                    if queue.is_empty() {
                        self.queues.remove(&level);
                    }
                }
            }
            Place::Asleep(at) => {
                self.asleep.remove(&(at, id));
            }
            Place::Idle(at) => {
                self.idle.remove(&(at, id));
            }
        }
    }

    fn enter(&mut self, id: HostId, place: Place) {
        match place {
            Place::Nowhere => {}
            Place::Queued(level, at) => {
                self.queues.entry(level).or_default().insert((at, id));
            }
            Place::Asleep(at) => {
                self.asleep.insert((at, id));
            }
            Place::Idle(at) => {
                self.idle.insert((at, id));
            }
        }
    }
}
