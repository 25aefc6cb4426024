//! Hosts for whose URLs there is no room: those whose turn comes last sleep.

use super::{HostId, Workbench};
use crate::model::crawl::UnixMillis;

/// A host that sleeps takes the place of one that comes later by more than so many milliseconds.
/// Less would have hosts change places all the time, each for one URL.
const MUCH_LATER: u64 = 10_000;
/// Lanes that are read in at once in other hosts' places.
const MAX_CHANGING: usize = 4;

impl<T> Workbench<T> {
    /// Puts hosts to sleep until the others have room; one alone may have all that its lanes hold.
    pub(super) fn fit(&mut self) {
        while self.n_buffered > self.max_buffered {
            let is_alone = self.turns.len() == 1 && self.turns.values().all(|at| at.len() == 1);
            let Some((_, host)) = self.last_turn().filter(|_| !is_alone) else {
                return;
            };
            self.change(host, |host| host.sleep());
        }
    }

    /// Wakes those that come first, as far as there is room for all of their lanes, or where others
    /// come much later.
    ///
    /// Whoever was just put to sleep is not woken: with it, there were too many, and nobody comes
    /// later.
    pub(super) fn wake(&mut self) {
        while let Some(&(at, id)) = self.asleep.first() {
            let n_lanes = self.hosts.n_lanes(id);
            let expected = (self.n_hungry + n_lanes).saturating_mul(self.room);
            let is_room = self.n_buffered.saturating_add(expected) <= self.max_buffered
                || self.n_buffered + self.n_hungry == 0;
            let is_later = |(last, _)| last > at.saturating_add(MUCH_LATER);
            let is_sooner =
                || self.n_hungry < MAX_CHANGING && self.last_turn().is_some_and(is_later);
            if !is_room && !is_sooner() {
                return;
            }
            self.change(id, |host| host.wake());
            self.feed(id);
        }
    }

    /// Who of those that may be put to sleep comes last. Of a lane that is being read in nobody knows
    /// yet when its turn is.
    fn last_turn(&self) -> Option<(UnixMillis, HostId)> {
        let is_known = |id: &HostId| self.hosts.whole(*id).is_some_and(|host| !host.is_hungry());
        let levels = self.turns.values();
        let last = levels.filter_map(|turns| turns.iter().rev().find(|(_, id)| is_known(id)));
        last.max().copied()
    }
}
