//! Places among the pages in flight, and among the hosts that are being prepared.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;
use tokio::sync::Notify;

use crawler_fetch::FetchSlot;

/// Number of ready hosts that wait for their turn above which few others are prepared, because they would
/// wait too.
const HOSTS_AHEAD: usize = 4_096;
/// Number of hosts prepared at once for each page that may be in flight, and their minimum.
const PREPARING_PER_PAGE: u64 = 4;
const MIN_PREPARING: u64 = 64;
/// Divisor that gives the share of hosts which are still prepared above [`HOSTS_AHEAD`].
const SHARE_ABOVE: u64 = 8;

/// Places of one kind, and the tasks that have them.
#[derive(Debug)]
pub(super) struct Places {
    max: AtomicU64,
    n_held: AtomicU64,
    /// Number of tasks that have a place, or had one and will want it again.
    n_tasks: AtomicU64,
    /// Number of tasks that gave up their place for a while and want one again: they come before new ones.
    n_returning: AtomicU64,
    freed: Notify,
    /// Signals the loop of the crawl to look again.
    progress: Arc<Notify>,
}

impl Places {
    /// Creates an empty set of places. The loop is told through `progress` when one is free.
    pub(super) fn new(progress: &Arc<Notify>) -> Arc<Self> {
        Arc::new(Self {
            max: AtomicU64::new(0),
            n_held: AtomicU64::new(0),
            n_tasks: AtomicU64::new(0),
            n_returning: AtomicU64::new(0),
            freed: Notify::new(),
            progress: Arc::clone(progress),
        })
    }

    /// Gives a place to a new task. The loop has checked that one is free.
    pub(super) fn hold(self: &Arc<Self>) -> Held {
        self.n_held.fetch_add(1, Ordering::Relaxed);
        self.n_tasks.fetch_add(1, Ordering::Relaxed);
        Held(Arc::new(Slot {
            places: Arc::clone(self),
            is_held: AtomicBool::new(true),
        }))
    }

    /// Sets the number of places; tasks that have one keep it.
    pub(super) fn set_max(&self, max: u64) {
        if self.max.swap(max, Ordering::Relaxed) < max {
            self.freed.notify_waiters();
        }
    }

    /// Returns the number of tasks that have a place, or had one and will want it again.
    pub(super) fn n_tasks(&self) -> u64 {
        self.n_tasks.load(Ordering::Relaxed)
    }

    /// Returns true if there is a place for a new task.
    pub(super) fn is_free(&self) -> bool {
        let n_returning = self.n_returning.load(Ordering::Relaxed);
        self.n_held.load(Ordering::Relaxed) + n_returning < self.max.load(Ordering::Relaxed)
    }

    fn try_hold(&self) -> bool {
        let max = self.max.load(Ordering::Relaxed);
        let more = |n: u64| (n < max).then_some(n + 1);
        let (relaxed, n_held) = (Ordering::Relaxed, &self.n_held);
        n_held.fetch_update(relaxed, relaxed, more).is_ok()
    }
}

/// A place, for as long as its task has it. When it is given up, the loop of the crawl looks again.
pub(super) struct Held(Arc<Slot>);

/// A place that may be left for a while.
#[derive(Debug)]
struct Slot {
    places: Arc<Places>,
    is_held: AtomicBool,
}

/// Counts a task that wants a place again, until it has one or does not want it any more.
struct Returning<'a>(&'a AtomicU64);

impl Drop for Returning<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[async_trait]
impl FetchSlot for Slot {
    fn release(&self) {
        if self.is_held.swap(false, Ordering::Relaxed) {
            self.places.n_held.fetch_sub(1, Ordering::Relaxed);
            self.places.freed.notify_waiters();
            self.places.progress.notify_one();
        }
    }

    async fn acquire(&self) {
        let places = &*self.places;
        places.n_returning.fetch_add(1, Ordering::Relaxed);
        let returning = Returning(&places.n_returning);
        loop {
            let freed = places.freed.notified();
            if places.try_hold() {
                self.is_held.store(true, Ordering::Relaxed);
                break;
            }
            freed.await;
        }
        drop(returning);
        // The task was counted twice for a moment, in which the loop may have looked.
        self.places.progress.notify_one();
    }
}

impl Held {
    /// Returns the place, for a request that may leave it.
    pub(super) fn place(&self) -> Arc<dyn FetchSlot> {
        self.0.clone()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.release();
        self.0.places.n_tasks.fetch_sub(1, Ordering::Relaxed);
        // The page may have changed what there is to do, even if it had no place any more.
        self.0.places.progress.notify_one();
    }
}

/// Returns the number of hosts that may be prepared at once. Ready hosts come first, but leave the others a share.
pub(super) fn n_preparing(n_ready_hosts: usize, may_fly: u64) -> u64 {
    let max = match may_fly {
        0 => return 0,
        n => (PREPARING_PER_PAGE * n).max(MIN_PREPARING),
    };
    match n_ready_hosts < HOSTS_AHEAD {
        true => max,
        false => max / SHARE_ABOVE,
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn places(max: u64) -> Arc<Places> {
        let places = Places::new(&Arc::new(Notify::new()));
        places.set_max(max);
        places
    }

    #[test]
    fn who_comes_back_goes_before_who_is_new() {
        let places = places(1);
        let first = places.hold();
        assert!(!places.is_free());
        let place = first.place();
        place.release();
        place.release();
        assert!(places.is_free());
        let second = places.hold();
        let mut back = place.acquire();
        assert!(back.as_mut().now_or_never().is_none());
        drop(second);
        assert!(!places.is_free(), "the place is for the one who comes back");
        assert!(back.as_mut().now_or_never().is_some());
        assert_eq!((places.is_free(), places.n_tasks()), (false, 1));
        drop(first);
        assert_eq!((places.is_free(), places.n_tasks()), (true, 0));
    }

    #[test]
    fn who_gives_up_coming_back_takes_no_place() {
        let places = places(1);
        let away = places.hold();
        away.place().release();
        let other = places.hold();
        let place = away.place();
        let mut back = place.acquire();
        assert!(back.as_mut().now_or_never().is_none());
        drop(back);
        drop((away, other));
        assert_eq!((places.is_free(), places.n_tasks()), (true, 0));
    }

    #[test]
    fn more_places_are_for_those_who_wait_for_one() {
        let places = places(0);
        let away = places.hold();
        let place = away.place();
        place.release();
        let mut back = place.acquire();
        assert!(back.as_mut().now_or_never().is_none());
        places.set_max(1);
        assert!(back.as_mut().now_or_never().is_some());
    }
}
