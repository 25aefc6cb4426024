//! Queue of crawls that came before a host's turn, in the order in which they came.
//!
//! Each crawl was told when to come again, and its turn is kept for it until [`GRACE`] after that. A crawl
//! that comes later goes to the end of the queue, so a crawl that has ended delays the others only once.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// Time for which a turn is kept for a crawl that does not come.
const GRACE: Duration = Duration::from_millis(100);

/// Order in which crawls have their turns.
#[derive(Debug, Default)]
pub(super) struct WaitQueue {
    waiting: VecDeque<Reservation>,
}

#[derive(Debug)]
struct Reservation {
    crawl: u64,
    /// Time at which the crawl was told to come again.
    at: Instant,
}

impl WaitQueue {
    /// Returns the number of turns that are kept for others before this crawl's, at a host that has been free
    /// since `free_at`.
    pub(super) fn n_before(&mut self, crawl: u64, free_at: Option<Instant>, now: Instant) -> u32 {
        let is_late =
            |reservation: &Reservation| Some(reservation.at).max(free_at) < now.checked_sub(GRACE);
        while self.waiting.front().is_some_and(is_late) {
            self.waiting.pop_front();
        }
        let is_this = |reservation: &Reservation| reservation.crawl == crawl;
        let place = self.waiting.iter().position(is_this);
        u32::try_from(place.unwrap_or(self.waiting.len())).unwrap_or(u32::MAX)
    }

    /// Records when a crawl was told to come again. A crawl that is in the queue keeps its place.
    pub(super) fn reserve(&mut self, crawl: u64, at: Instant) {
        match self.waiting.iter_mut().find(|known| known.crawl == crawl) {
            Some(known) => known.at = at,
            None => self.waiting.push_back(Reservation { crawl, at }),
        }
    }

    /// Removes a crawl that has had its turn.
    pub(super) fn leave(&mut self, crawl: u64) {
        self.waiting
            .retain(|reservation| reservation.crawl != crawl);
    }

    /// Returns true if no turn is kept for any crawl.
    pub(super) fn is_empty(&self, now: Instant) -> bool {
        self.waiting
            .iter()
            .all(|reservation| reservation.at + GRACE < now)
    }
}
