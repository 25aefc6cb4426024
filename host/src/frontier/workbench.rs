//! Whose turn it is: which host may be asked next, and which of its URLs comes first.
//!
//! Every operation costs the logarithm of what is kept, whatever the mix of hosts: a host with a
//! million URLs is one entry among the hosts. Hosts are ordered by how many of their URLs are in
//! flight and then by the moment they may be asked, so that free places go round; URLs of one host
//! by priority, then by the moment they are due, then by age.
//!
//! Not every URL has to be here. A [`lane`](Lane) keeps the first of its URLs and knows that others
//! follow; when few are left it is *hungry*, and whoever owns the rest reads the next ones in with
//! [`Workbench::begin_refill`] and [`Workbench::fill`]. A host whose best lane has run dry waits for
//! that; no other host does.
//!
//! This is arithmetic on moments that are handed in. Seen URLs, items and locks are for the caller.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use crate::model::crawl::UnixMillis;

mod lane;
#[cfg(test)]
mod tests;

use lane::Lane;
pub(crate) use lane::{Put, Turn};

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

/// Where a lane's URLs begin: nothing before it is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) priority: i32,
    pub(crate) at: Turn,
}

/// Hosts, their clocks, and the first of the URLs that wait for each.
#[derive(Debug)]
pub(crate) struct Workbench<T> {
    hosts: HashMap<HostId, Host<T>>,
    /// By URLs in flight, then by the moment the host has something to fetch and may be asked.
    /// Only hosts with a URL that is here; no more levels than there are places in flight.
    turns: BTreeMap<u32, BTreeSet<(UnixMillis, HostId)>>,
    hungry: VecDeque<LaneId>,
    n_buffered: u64,
    /// URLs that a lane keeps here.
    room: usize,
}

/// When a host may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct HostClock {
    /// Not before.
    pub(crate) at: UnixMillis,
    /// Between its last answer and that, in milliseconds.
    pub(crate) delay: u64,
}

#[derive(Debug)]
struct Host<T> {
    clock: HostClock,
    n_in_flight: u32,
    lanes: BTreeMap<Reverse<i32>, Lane<T>>,
}

impl<T> Default for Host<T> {
    fn default() -> Self {
        Self {
            clock: HostClock::default(),
            n_in_flight: 0,
            lanes: BTreeMap::new(),
        }
    }
}

impl<T> Host<T> {
    /// When it has something to fetch and may be asked. None: nothing is here.
    fn turn(&self) -> Option<UnixMillis> {
        let mut first: Option<UnixMillis> = None;
        for lane in self.lanes.values() {
            if lane.is_dry() {
                break;
            }
            if let Some(turn) = lane.first() {
                first = Some(first.map_or(turn.due, |due| due.min(turn.due)));
            }
        }
        first.map(|due| due.max(self.clock.at))
    }

    fn pop(&mut self, now: UnixMillis) -> Option<(i32, Turn, T)> {
        for (priority, lane) in &mut self.lanes {
            if lane.is_dry() {
                return None;
            }
            if let Some((turn, url)) = lane.pop(now) {
                return Some((priority.0, turn, url));
            }
        }
        None
    }
}

impl<T> Default for Workbench<T> {
    fn default() -> Self {
        Self {
            hosts: HashMap::new(),
            turns: BTreeMap::new(),
            hungry: VecDeque::new(),
            n_buffered: 0,
            room: usize::MAX,
        }
    }
}

impl<T> Workbench<T> {
    /// Lanes keep no more than this many URLs here, from the next change on.
    pub(crate) fn set_room(&mut self, room: usize) {
        self.room = room;
    }

    /// URLs that are here.
    pub(crate) fn n_buffered(&self) -> u64 {
        self.n_buffered
    }

    /// Hosts with a URL that waits or is in flight.
    pub(crate) fn n_hosts(&self) -> usize {
        self.hosts.len()
    }

    /// A host as an earlier life left it: its URLs are read in from its cursors on.
    pub(crate) fn restore(&mut self, host: HostId, clock: HostClock, cursors: &[Cursor]) {
        self.change(host, |host| {
            host.clock = clock;
            for cursor in cursors {
                let lane = Lane::from_cursor(cursor.at);
                host.lanes.insert(Reverse(cursor.priority), lane);
            }
        });
        for cursor in cursors {
            self.look_if_hungry(LaneId {
                host,
                priority: cursor.priority,
            });
        }
    }

    /// Lets a URL wait. A lane that has more than there is room for keeps the first of them.
    pub(crate) fn put(&mut self, lane: LaneId, turn: Turn, url: T) -> Put {
        let room = self.room;
        let put = self.in_lane(lane, |lane| lane.put(turn, url, room));
        self.look_if_hungry(lane);
        put
    }

    /// Counts a URL as in flight that is not here: one that is taken in another way.
    pub(crate) fn hold(&mut self, lane: LaneId, turn: Turn) {
        self.in_lane(lane, |lane| lane.hold(turn));
        self.change(lane.host, |host| host.n_in_flight += 1);
    }

    /// The next URL, from a host with fewer than `per_host` in flight.
    pub(crate) fn take(&mut self, now: UnixMillis, per_host: u32) -> Next<T> {
        let heads = || {
            let levels = self.turns.range(..per_host);
            levels.filter_map(|(_, turns)| turns.first().copied())
        };
        let Some((_, host)) = heads().find(|&(at, _)| at <= now) else {
            return heads().map(|(at, _)| at).min().map_or(Next::Full, Next::At);
        };
        let popped = self.change(host, |host| {
            host.n_in_flight += 1;
            host.pop(now)
        });
        let (priority, turn, url) =
            popped.expect("a host has a turn only while something there is due");
        self.n_buffered -= 1;
        let lane = LaneId { host, priority };
        self.look_if_hungry(lane);
        Next::Url(lane, turn, url)
    }

    /// A URL is no longer in flight by `now`, and its host is not asked before `not_before`.
    pub(crate) fn land(
        &mut self,
        lane: LaneId,
        turn: Turn,
        now: UnixMillis,
        not_before: UnixMillis,
    ) {
        self.in_lane(lane, |lane| lane.land(turn));
        self.change(lane.host, |host| {
            host.n_in_flight = host.n_in_flight.saturating_sub(1);
            if not_before >= host.clock.at {
                host.clock = HostClock {
                    at: not_before,
                    delay: not_before.saturating_sub(now),
                };
            }
        });
        self.look_if_hungry(lane);
    }

    /// The clock of a host and where each of its lanes begins, which counts as saved from now on.
    /// Lanes in which nothing is left are dropped.
    pub(crate) fn save(&mut self, host: HostId) -> (HostClock, Vec<Cursor>) {
        let Some(known) = self.hosts.get_mut(&host) else {
            return (HostClock::default(), Vec::new());
        };
        known.lanes.retain(|_, lane| !lane.is_over());
        let cursors: Vec<Cursor> = known
            .lanes
            .iter_mut()
            .filter_map(|(priority, lane)| {
                let at = lane.save()?;
                Some(Cursor {
                    priority: priority.0,
                    at,
                })
            })
            .collect();
        let clock = known.clock;
        (clock, cursors)
    }

    /// Not before this moment is a host asked.
    pub(crate) fn clock(&self, host: HostId) -> UnixMillis {
        self.hosts.get(&host).map_or(0, |host| host.clock.at)
    }

    /// Whether anything is known of a host.
    pub(crate) fn knows(&self, host: HostId) -> bool {
        self.hosts.contains_key(&host)
    }

    /// Forgets hosts that have nothing left and may be asked again by now.
    pub(crate) fn forget_idle(&mut self, now: UnixMillis) {
        self.hosts.retain(|_, host| {
            let is_idle = host.n_in_flight == 0 && host.lanes.values().all(Lane::is_over);
            !is_idle || host.clock.at > now
        });
    }

    /// URLs should be read in.
    pub(crate) fn is_hungry(&self) -> bool {
        !self.hungry.is_empty()
    }

    /// The next lane whose URLs should be read in, and from where on: behind this one.
    pub(crate) fn begin_refill(&mut self) -> Option<(LaneId, Turn)> {
        while let Some(id) = self.hungry.pop_front() {
            let host = self.hosts.get_mut(&id.host);
            let lane = host.and_then(|host| host.lanes.get_mut(&Reverse(id.priority)));
            if let Some(after) = lane.and_then(Lane::begin_refill) {
                return Some((id, after));
            }
        }
        None
    }

    /// What was read in for a lane, in order; `is_all`: nothing follows it.
    pub(crate) fn fill(&mut self, id: LaneId, urls: Vec<(Turn, T)>, is_all: bool) {
        let room = self.room;
        self.in_lane(id, |lane| lane.fill(urls, is_all, room));
        self.look_if_hungry(id);
    }

    fn look_if_hungry(&mut self, id: LaneId) {
        let host = self.hosts.get_mut(&id.host);
        let lane = host.and_then(|host| host.lanes.get_mut(&Reverse(id.priority)));
        let few = self.room / 4;
        if lane.is_some_and(|lane| lane.becomes_hungry(few)) {
            self.hungry.push_back(id);
        }
    }

    fn in_lane<R>(&mut self, id: LaneId, change: impl FnOnce(&mut Lane<T>) -> R) -> R {
        let (before, after, result) = self.change(id.host, |host| {
            let lane = host.lanes.entry(Reverse(id.priority)).or_default();
            let before = lane.n_buffered();
            let result = change(lane);
            (before, lane.n_buffered(), result)
        });
        self.n_buffered = self.n_buffered + after as u64 - before as u64;
        result
    }

    /// Changes a host and its place among the turns with it.
    fn change<R>(&mut self, id: HostId, change: impl FnOnce(&mut Host<T>) -> R) -> R {
        let host = self.hosts.entry(id).or_default();
        let before = host.turn().map(|at| (host.n_in_flight, at));
        let result = change(host);
        let after = host.turn().map(|at| (host.n_in_flight, at));
        if before != after {
            if let Some((level, at)) = before
                && let Some(turns) = self.turns.get_mut(&level)
            {
                turns.remove(&(at, id));
                if turns.is_empty() {
                    self.turns.remove(&level);
                }
            }
            if let Some((level, at)) = after {
                self.turns.entry(level).or_default().insert((at, id));
            }
        }
        result
    }
}
