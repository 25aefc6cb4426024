//! Sleep of hosts for whose URLs there is no room in memory: those that come last sleep.

use super::{HostId, Workbench};
use crawler_model::crawl::UnixMillis;

/// Milliseconds by which the moment of another host has to be later for a sleeping host to take its place. With
/// a smaller value, hosts would change places all the time, each for one URL.
const MUCH_LATER: u64 = 10_000;
/// Number of lanes that are read in at once in other hosts' places.
const MAX_CHANGING: usize = 4;

impl<T> Workbench<T> {
    /// Puts hosts to sleep until the others have room; a single host may have all that its lanes hold.
    pub(super) fn fit(&mut self) {
        while self.n_buffered > self.max_buffered {
            let is_alone = self.queues.len() == 1 && self.queues.values().all(|at| at.len() == 1);
            let Some((_, host)) = self.last_queued().filter(|_| !is_alone) else {
                return;
            };
            self.change(host, |host| host.sleep());
        }
    }

    /// Wakes the sleeping hosts that come first, as far as there is room for all of their lanes, or where
    /// others come much later.
    ///
    /// A host that was just put to sleep is not woken: with it, there were too many, and no other comes later.
    pub(super) fn wake(&mut self) {
        while let Some(&(at, id)) = self.asleep.first() {
            let n_lanes = self.hosts.n_lanes(id);
            let expected = (self.n_to_refill + n_lanes).saturating_mul(self.lane_capacity);
            let is_room = self.n_buffered.saturating_add(expected) <= self.max_buffered
                || self.n_buffered + self.n_to_refill == 0;
            let is_later = |(last, _)| last > at.saturating_add(MUCH_LATER);
            let is_sooner =
                || self.n_to_refill < MAX_CHANGING && self.last_queued().is_some_and(is_later);
            if !is_room && !is_sooner() {
                return;
            }
            self.change(id, |host| host.wake());
            self.queue_refills(id);
        }
    }

    /// Returns the last host among those that may be put to sleep. The moment of a lane that is
    /// being read in is not known yet.
    fn last_queued(&self) -> Option<(UnixMillis, HostId)> {
        let is_known = |id: &HostId| {
            self.hosts
                .whole(*id)
                .is_some_and(|host| !host.needs_refill())
        };
        let levels = self.queues.values();
        let last = levels.filter_map(|queue| queue.iter().rev().find(|(_, id)| is_known(id)));
        last.max().copied()
    }
}
