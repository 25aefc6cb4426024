//! A host: its clock, and the lanes of its URLs.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::health::{HostHealth, HostKind};
use super::lane::{Lane, QueuePosition};
use crawler_model::crawl::UnixMillis;

/// Time at which a host may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct HostClock {
    /// Time before which the host is not asked.
    pub(crate) at: UnixMillis,
    /// Milliseconds between its last answer and that time.
    pub(crate) delay: u64,
}

impl HostClock {
    /// Records an answer after which the host is not asked before this moment. A moment that was set before
    /// may be later, for another reason than the host's delay, and stays then.
    pub(crate) fn record_answer(&mut self, not_before: UnixMillis, delay: u64) {
        if not_before >= self.at {
            *self = Self {
                at: not_before,
                delay,
            };
        } else {
            self.delay = self.delay.max(delay);
        }
    }

    /// Postpones the host to this moment, unless it waits for longer.
    pub(crate) fn postpone(&mut self, until: UnixMillis) {
        self.at = self.at.max(until);
    }
}

/// Level of hosts that are ordered by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Level {
    pub(super) kind: HostKind,
    pub(super) n_in_flight: u32,
}

/// Index of hosts that a host belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The host has no URLs in memory, or those in memory have to wait for others that are read in.
    Nowhere,
    /// The host may be asked for another URL from this moment on.
    Queued(Level, UnixMillis),
    /// The host's URLs need not be in memory before this moment.
    Asleep(UnixMillis),
    /// The host has no URLs left, and may be asked again from this moment on.
    Idle(UnixMillis),
}

impl Place {
    /// Returns the place of a host without URLs in memory, the first of which is due at `due`, if any is left.
    pub(super) fn at_rest(clock: HostClock, health: &HostHealth, due: Option<UnixMillis>) -> Self {
        match due {
            Some(due) => Place::Asleep(next_at(clock, health, due)),
            None => Place::Idle(clock.at),
        }
    }
}

/// Returns the moment from which a URL that is due at `due` may be taken.
fn next_at(clock: HostClock, health: &HostHealth, due: UnixMillis) -> UnixMillis {
    match health.is_given_up() {
        // The URLs are not fetched, so the clock does not matter.
        true => due,
        false => due.max(clock.at),
    }
}

#[derive(Debug)]
pub(super) struct Host<T> {
    pub(super) clock: HostClock,
    pub(super) health: HostHealth,
    pub(super) n_in_flight: u32,
    /// Lanes by priority, the highest first. They are boxed, because most hosts have one, and a node of the
    /// tree has room for many.
    pub(super) lanes: BTreeMap<Reverse<i32>, Box<Lane<T>>>,
    /// Moment at which a URL of its lanes is due, if the host sleeps.
    asleep: Option<UnixMillis>,
    n_buffered: usize,
    n_to_refill: usize,
}

/// Contribution of a host to the sums over all.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sums {
    pub(super) n_lanes: usize,
    pub(super) n_buffered: usize,
    pub(super) n_to_refill: usize,
}

impl<T> Default for Host<T> {
    fn default() -> Self {
        Self {
            clock: HostClock::default(),
            health: HostHealth::default(),
            n_in_flight: 0,
            lanes: BTreeMap::new(),
            asleep: None,
            n_buffered: 0,
            n_to_refill: 0,
        }
    }
}

impl<T> Host<T> {
    pub(super) fn sums(&self) -> Sums {
        Sums {
            n_lanes: self.lanes.len(),
            n_buffered: self.n_buffered,
            n_to_refill: self.n_to_refill,
        }
    }

    pub(super) fn place(&self) -> Place {
        let is_over = self.lanes.is_empty() && self.n_in_flight == 0;
        if is_over || self.is_asleep() {
            let due = self.asleep.filter(|_| !is_over);
            return Place::at_rest(self.clock, &self.health, due);
        }
        let mut first: Option<UnixMillis> = None;
        for lane in self.lanes.values() {
            if lane.is_dry() {
                break;
            }
            if let Some(position) = lane.first() {
                first = Some(first.map_or(position.due, |due| due.min(position.due)));
            }
        }
        let level = Level {
            kind: self.health.kind(),
            n_in_flight: self.n_in_flight,
        };
        let at = |due| next_at(self.clock, &self.health, due);
        first.map_or(Place::Nowhere, |due| Place::Queued(level, at(due)))
    }

    pub(super) fn pop(&mut self, now: UnixMillis) -> Option<(i32, QueuePosition, T)> {
        for (priority, lane) in &mut self.lanes {
            if lane.is_dry() {
                return None;
            }
            if let Some((position, url)) = lane.pop(now) {
                self.n_buffered -= 1;
                return Some((priority.0, position, url));
            }
        }
        None
    }

    pub(super) fn in_lane<R>(
        &mut self,
        priority: i32,
        change: impl FnOnce(&mut Lane<T>) -> R,
    ) -> R {
        let lane = self.lanes.entry(Reverse(priority)).or_default();
        let (n_buffered, needs_refill) = (lane.n_buffered(), lane.needs_refill());
        let result = change(lane);
        self.n_buffered = self.n_buffered + lane.n_buffered() - n_buffered;
        self.n_to_refill =
            self.n_to_refill + usize::from(lane.needs_refill()) - usize::from(needs_refill);
        if lane.is_over() {
            self.lanes.remove(&Reverse(priority));
        }
        result
    }

    /// Returns the priorities of lanes that have few URLs and need a refill from now on, up to the first that is
    /// dry: those after it are not used before that.
    pub(super) fn request_refills(&mut self, few: usize) -> Vec<i32> {
        let mut to_refill = Vec::new();
        if self.is_asleep() {
            return to_refill;
        }
        for (priority, lane) in &mut self.lanes {
            if lane.request_refill(few) {
                to_refill.push(priority.0);
            }
            if lane.is_dry() {
                break;
            }
        }
        self.n_to_refill += to_refill.len();
        to_refill
    }

    pub(super) fn needs_refill(&self) -> bool {
        self.n_to_refill > 0
    }

    pub(super) fn is_asleep(&self) -> bool {
        self.asleep.is_some()
    }

    /// Removes all URLs from memory, until the host is woken.
    pub(super) fn sleep(&mut self) {
        let begins = self.lanes.values().filter_map(|lane| lane.begins());
        self.asleep = begins.map(|position| position.due).min();
        for lane in self.lanes.values_mut() {
            lane.spill();
        }
        (self.n_buffered, self.n_to_refill) = (0, 0);
    }

    pub(super) fn wake(&mut self) {
        self.asleep = None;
    }
}
