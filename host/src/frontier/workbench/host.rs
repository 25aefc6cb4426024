//! One host: its clock, and the lanes of its URLs.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::lane::{Lane, Turn};
use super::life::HostLife;
use crate::model::crawl::UnixMillis;

/// When a host may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct HostClock {
    /// Not before.
    pub(crate) at: UnixMillis,
    /// Between its last answer and that, in milliseconds.
    pub(crate) delay: u64,
}

impl HostClock {
    /// The host has answered, and is not asked before this moment. One that it was given before may be
    /// later, for another reason than its delay.
    pub(crate) fn land(&mut self, not_before: UnixMillis, delay: u64) {
        if not_before >= self.at {
            *self = Self {
                at: not_before,
                delay,
            };
        } else {
            self.delay = self.delay.max(delay);
        }
    }

    /// The host is not asked before this moment, whatever it was given before.
    pub(crate) fn postpone(&mut self, until: UnixMillis) {
        self.at = self.at.max(until);
    }
}

/// Hosts among which turns go by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Level {
    pub(super) kind: Kind,
    pub(super) n_in_flight: u32,
}

/// What has to be done for a URL of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// It can be fetched.
    Ready,
    /// Something about its host comes first.
    Unready,
}

/// Among which of the hosts it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Nothing of it is here, or what is here has to wait for what is read in.
    Nowhere,
    /// It may be asked for another URL from this moment on.
    Turn(Level, UnixMillis),
    /// Its URLs need not be here before this moment.
    Asleep(UnixMillis),
    /// It has nothing left, and may be asked again from this moment on.
    Idle(UnixMillis),
}

#[derive(Debug)]
pub(super) struct Host<T> {
    pub(super) clock: HostClock,
    pub(super) life: HostLife,
    pub(super) n_in_flight: u32,
    /// By priority, the highest first. In boxes: most hosts have one, and a node of the tree has
    /// room for many.
    pub(super) lanes: BTreeMap<Reverse<i32>, Box<Lane<T>>>,
    /// It sleeps, and something in its lanes is due at this moment.
    asleep: Option<UnixMillis>,
    n_buffered: usize,
    n_hungry: usize,
}

/// What a host adds to the sums of all.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sums {
    pub(super) n_lanes: usize,
    pub(super) n_buffered: usize,
    pub(super) n_hungry: usize,
}

impl<T> Default for Host<T> {
    fn default() -> Self {
        Self {
            clock: HostClock::default(),
            life: HostLife::default(),
            n_in_flight: 0,
            lanes: BTreeMap::new(),
            asleep: None,
            n_buffered: 0,
            n_hungry: 0,
        }
    }
}

impl<T> Host<T> {
    pub(super) fn sums(&self) -> Sums {
        Sums {
            n_lanes: self.lanes.len(),
            n_buffered: self.n_buffered,
            n_hungry: self.n_hungry,
        }
    }

    pub(super) fn place(&self) -> Place {
        let clock = match self.life.is_given_up() {
            // Its URLs are not asked for.
            true => 0,
            false => self.clock.at,
        };
        if self.lanes.is_empty() && self.n_in_flight == 0 {
            return Place::Idle(self.clock.at);
        }
        if let Some(due) = self.asleep {
            return Place::Asleep(due.max(clock));
        }
        let mut first: Option<UnixMillis> = None;
        for lane in self.lanes.values() {
            if lane.is_dry() {
                break;
            }
            if let Some(turn) = lane.first() {
                first = Some(first.map_or(turn.due, |due| due.min(turn.due)));
            }
        }
        let kind = match self.life.is_ready() {
            true => Kind::Ready,
            false => Kind::Unready,
        };
        let n_in_flight = self.n_in_flight;
        let level = Level { kind, n_in_flight };
        first.map_or(Place::Nowhere, |due| Place::Turn(level, due.max(clock)))
    }

    pub(super) fn pop(&mut self, now: UnixMillis) -> Option<(i32, Turn, T)> {
        for (priority, lane) in &mut self.lanes {
            if lane.is_dry() {
                return None;
            }
            if let Some((turn, url)) = lane.pop(now) {
                self.n_buffered -= 1;
                return Some((priority.0, turn, url));
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
        let (n_buffered, is_hungry) = (lane.n_buffered(), lane.is_hungry());
        let result = change(lane);
        self.n_buffered = self.n_buffered + lane.n_buffered() - n_buffered;
        self.n_hungry = self.n_hungry + usize::from(lane.is_hungry()) - usize::from(is_hungry);
        if lane.is_over() {
            self.lanes.remove(&Reverse(priority));
        }
        result
    }

    /// Priorities of lanes that have few URLs and now want more, up to the first that is dry: those
    /// behind it are not asked before that.
    pub(super) fn become_hungry(&mut self, few: usize) -> Vec<i32> {
        let mut hungry = Vec::new();
        if self.is_asleep() {
            return hungry;
        }
        for (priority, lane) in &mut self.lanes {
            if lane.becomes_hungry(few) {
                hungry.push(priority.0);
            }
            if lane.is_dry() {
                break;
            }
        }
        self.n_hungry += hungry.len();
        hungry
    }

    pub(super) fn is_hungry(&self) -> bool {
        self.n_hungry > 0
    }

    pub(super) fn is_asleep(&self) -> bool {
        self.asleep.is_some()
    }

    /// Keeps nothing here, until it is woken.
    pub(super) fn sleep(&mut self) {
        let begins = self.lanes.values().filter_map(|lane| lane.begins());
        self.asleep = begins.map(|turn| turn.due).min();
        for lane in self.lanes.values_mut() {
            lane.spill();
        }
        (self.n_buffered, self.n_hungry) = (0, 0);
    }

    pub(super) fn wake(&mut self) {
        self.asleep = None;
    }
}
