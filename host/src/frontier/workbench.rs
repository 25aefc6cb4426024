//! Whose turn it is: which host may be asked next, and which of its URLs comes first.
//!
//! Every operation costs the logarithm of what is kept, whatever the mix of hosts: a host with a
//! million URLs is one entry among the hosts. Hosts are ordered by how many of their URLs are in
//! flight and then by the moment they may be asked, so that free places go round; URLs of one host
//! by priority, then by the moment they are due, then by age. Of one host, only so many priorities are
//! told apart at a time.
//!
//! Not every URL has to be here. A [`lane`](Lane) keeps the first of its URLs and knows that others
//! follow; when few are left it is *hungry*, and whoever owns the rest reads the next ones in with
//! [`Workbench::begin_refill`] and [`Workbench::fill`]. A host whose best lane has run dry waits for
//! that; no other host does. Where there is no room for all hosts, those whose turn comes last
//! [`sleep`]: nothing of them is here but their clock and where their lanes begin.
//!
//! This is arithmetic on moments that are handed in. Seen URLs, items and locks are for the caller.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::model::crawl::UnixMillis;

mod host;
mod hosts;
mod lane;
mod life;
mod sleep;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use host::HostClock;
use host::{Host, Kind, Level, Place};
use lane::Lane;
pub(crate) use lane::{Put, Turn};
pub use life::{HostFailure, HostStanding};
pub(crate) use life::{HostLife, Trouble};
use table::Hosts;

/// A host, by hash of its name and port. Two that share a hash share their clock and their lanes,
/// which is slower for both and wrong for neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct HostId(pub(crate) u64);

/// The URLs of one host that have one priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LaneId {
    pub(crate) host: HostId,
    pub(crate) priority: i32,
}

/// What comes next.
#[derive(Debug)]
pub(crate) enum Next<T> {
    /// This, and it counts as in flight.
    Url(LaneId, Turn, T),
    /// Nothing before this moment.
    At(UnixMillis),
    /// Every host has as many in flight as it may, or waits for its URLs to be read in.
    Full,
}

/// How many URLs of one host may be in flight, by what is known of it. None: nothing of such hosts is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakeFrom {
    /// Of a host of which everything is known that comes before its pages.
    pub ready: Option<u32>,
    /// Of any other.
    pub unready: Option<u32>,
}

impl TakeFrom {
    /// As many of one as of the other.
    pub fn all(per_host: u32) -> Self {
        Self {
            ready: Some(per_host),
            unready: Some(per_host),
        }
    }
}

/// Lanes of one host: with each page of it, where each of them begins is written, and is looked through.
const MAX_LANES: usize = 64;

/// Where a lane's URLs begin: nothing before it is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) priority: i32,
    pub(crate) at: Turn,
}

/// Hosts, their clocks, and the first of the URLs that wait for each.
#[derive(Debug)]
pub(crate) struct Workbench<T> {
    hosts: Hosts<T>,
    /// By URLs in flight, then by the moment the host has something to fetch and may be asked.
    /// Only hosts with a URL that is here; no more levels than there are places in flight.
    turns: BTreeMap<Level, BTreeSet<(UnixMillis, HostId)>>,
    /// By the moment that the host has something to fetch and may be asked.
    asleep: BTreeSet<(UnixMillis, HostId)>,
    /// Hosts that have nothing left, by the moment that they may be asked again.
    idle: BTreeSet<(UnixMillis, HostId)>,
    /// Lanes to be read in; not all of them still are hungry.
    hungry: VecDeque<LaneId>,
    n_hungry: usize,
    n_lanes: usize,
    n_buffered: usize,
    /// URLs that are kept here, and those of one lane.
    max_buffered: usize,
    room: usize,
}

impl<T> Default for Workbench<T> {
    fn default() -> Self {
        Self {
            hosts: Hosts::default(),
            idle: BTreeSet::new(),
            turns: BTreeMap::new(),
            asleep: BTreeSet::new(),
            hungry: VecDeque::new(),
            n_hungry: 0,
            n_lanes: 0,
            n_buffered: 0,
            max_buffered: usize::MAX,
            room: usize::MAX,
        }
    }
}

impl<T> Workbench<T> {
    /// No more than so many URLs are kept here, and of one lane. What is beyond leaves the memory at once; that of one
    /// lane, as it is taken.
    pub(crate) fn set_room(&mut self, max_buffered: usize, room: usize) {
        (self.max_buffered, self.room) = (max_buffered, room);
        self.fit();
    }

    /// URLs that are here.
    pub(crate) fn n_buffered(&self) -> usize {
        self.n_buffered
    }

    /// Lanes with a URL that waits or is in flight.
    pub(crate) fn n_lanes(&self) -> usize {
        self.n_lanes
    }

    /// A host as an earlier life left it: its URLs are read in from its cursors on.
    pub(crate) fn restore(
        &mut self,
        host: HostId,
        clock: HostClock,
        life: HostLife,
        cursors: &[Cursor],
    ) {
        self.change(host, |host| {
            (host.clock, host.life) = (clock, life);
            for cursor in cursors {
                let lane = Box::new(Lane::from_cursor(cursor.at));
                host.lanes.insert(Reverse(cursor.priority), lane);
            }
            host.sleep();
        });
    }

    /// The lane for a new URL: that of its priority, or, in a host that has as many lanes as it may, of
    /// the nearest below that has one; below all of them, of the lowest.
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

    /// Lets a URL wait. A lane that has more than there is room for keeps the first of them.
    pub(crate) fn put(&mut self, lane: LaneId, turn: Turn, url: T) -> Put {
        let room = self.room;
        let put = self.in_lane(lane, |lane| lane.put(turn, url, room));
        self.feed(lane.host);
        self.fit();
        put
    }

    /// Counts a URL as in flight that is not here: one that is taken in another way.
    pub(crate) fn hold(&mut self, lane: LaneId, turn: Turn) {
        self.in_lane(lane, |lane| lane.hold(turn));
        self.change(lane.host, |host| host.n_in_flight += 1);
    }

    /// The next URL, from a host with fewer in flight than it may have. Hosts that are ready come first.
    pub(crate) fn take(&mut self, now: UnixMillis, may: TakeFrom) -> Next<T> {
        self.wake();
        let heads = || {
            let of = |kind, n: Option<u32>| {
                let level = |n_in_flight| Level { kind, n_in_flight };
                self.turns.range(level(0)..level(n.unwrap_or(0)))
            };
            let levels = of(Kind::Ready, may.ready).chain(of(Kind::Unready, may.unready));
            levels.filter_map(|(_, turns)| turns.first().copied())
        };
        let Some((_, host)) = heads().find(|&(at, _)| at <= now) else {
            let first = heads().map(|(at, _)| at).min();
            // What is being read in may come sooner.
            let first = first.filter(|_| self.n_hungry == 0);
            return first.map_or(Next::Full, Next::At);
        };
        let popped = self.change(host, |host| {
            host.n_in_flight += 1;
            host.pop(now)
        });
        let (priority, turn, url) =
            popped.expect("a host has a turn only while something there is due");
        self.feed(host);
        Next::Url(LaneId { host, priority }, turn, url)
    }

    /// A URL is no longer in flight; its host has answered at `answered`, and is not asked before
    /// `not_before`, or than it would have been where that is 0.
    pub(crate) fn land(
        &mut self,
        lane: LaneId,
        turn: Turn,
        answered: UnixMillis,
        not_before: UnixMillis,
    ) {
        self.in_lane(lane, |lane| lane.land(turn));
        self.change(lane.host, |host| {
            host.n_in_flight = host.n_in_flight.saturating_sub(1);
        });
        if not_before > 0 {
            self.land_host(lane.host, answered, not_before);
        }
        self.feed(lane.host);
    }

    /// A host is not asked before this moment, whatever it was given before.
    pub(crate) fn postpone(&mut self, host: HostId, until: UnixMillis) {
        self.change(host, |host| host.clock.postpone(until));
        self.feed(host);
    }

    /// The clock of a host and where each of its lanes begins, which counts as saved from now on.
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

    /// Not before this moment is a host asked.
    pub(crate) fn clock(&self, host: HostId) -> UnixMillis {
        self.hosts.about(host).map_or(0, |(clock, _)| clock.at)
    }

    /// Whether anything is known of a host.
    pub(crate) fn knows(&self, host: HostId) -> bool {
        self.hosts.contains(host)
    }

    /// Forgets hosts that have nothing left and may be asked again by now.
    pub(crate) fn forget_idle(&mut self, now: UnixMillis) {
        while let Some(&(at, id)) = self.idle.first()
            && at <= now
        {
            self.idle.pop_first();
            self.hosts.forget(id);
        }
    }

    /// URLs should be read in.
    pub(crate) fn wants_refill(&self) -> bool {
        !self.hungry.is_empty()
    }

    /// The next lane whose URLs should be read in, and from where on: behind this one.
    pub(crate) fn begin_refill(&mut self) -> Option<(LaneId, Turn)> {
        self.wake();
        while let Some(id) = self.hungry.pop_front() {
            let host = self.hosts.whole_mut(id.host);
            let lane = host.and_then(|host| host.lanes.get_mut(&Reverse(id.priority)));
            if let Some(after) = lane.and_then(|lane| lane.begin_refill()) {
                return Some((id, after));
            }
        }
        None
    }

    /// What was read in for a lane, in order; `is_all`: nothing follows it.
    pub(crate) fn fill(&mut self, id: LaneId, urls: Vec<(Turn, T)>, is_all: bool) {
        let room = self.room;
        self.in_lane(id, |lane| lane.fill(urls, is_all, room));
        self.feed(id.host);
        self.fit();
    }

    /// Lanes of a host that have few URLs are hungry, up to the first that is dry: those behind it
    /// are not asked before that.
    fn feed(&mut self, id: HostId) {
        let Some(host) = self.hosts.whole_mut(id) else {
            return;
        };
        let few = self.room / 4;
        for priority in host.become_hungry(few) {
            self.n_hungry += 1;
            self.hungry.push_back(LaneId { host: id, priority });
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

    /// Changes a host, and with it its place and what is counted of all.
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
        self.n_hungry = updated(self.n_hungry, sums.n_hungry, new_sums.n_hungry);
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
            Place::Turn(level, at) => {
                if let Some(turns) = self.turns.get_mut(&level) {
                    turns.remove(&(at, id));
                    if turns.is_empty() {
                        self.turns.remove(&level);
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
            Place::Turn(level, at) => {
                self.turns.entry(level).or_default().insert((at, id));
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
