//! Slots of the pages in flight, and of the hosts that are being prepared.

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
/// Divisor that gives the share of slots which hosts that were never reached leave to those that have answered.
const RESERVED_SHARE: u64 = 8;

/// Slots of one kind, and the tasks that have them.
#[derive(Debug)]
pub(super) struct SlotPool {
    max: AtomicU64,
    n_held: AtomicU64,
    /// Number of tasks that have a slot, or had one and will want it again.
    n_tasks: AtomicU64,
    /// Number of tasks for hosts that were never reached, or have failed since.
    n_unreached: AtomicU64,
    /// Number of tasks that gave up their slot for a while and want one again: they come before new ones.
    n_returning: AtomicU64,
    freed: Notify,
    /// Signals the loop of the crawl to look again.
    progress: Arc<Notify>,
}

impl SlotPool {
    /// Creates an empty pool. The loop is woken through `progress` when a slot is free.
    pub(super) fn new(progress: &Arc<Notify>) -> Arc<Self> {
        Arc::new(Self {
            max: AtomicU64::new(0),
            n_held: AtomicU64::new(0),
            n_tasks: AtomicU64::new(0),
            n_unreached: AtomicU64::new(0),
            n_returning: AtomicU64::new(0),
            freed: Notify::new(),
            progress: Arc::clone(progress),
        })
    }

    /// Gives a slot to a new task. The loop has checked that one is free.
    pub(super) fn hold(self: &Arc<Self>) -> SlotGuard {
        self.hold_for(false)
    }

    /// Gives a slot to a new task for a host that was never reached, or not: those are counted.
    pub(super) fn hold_for(self: &Arc<Self>, is_unreached: bool) -> SlotGuard {
        self.n_held.fetch_add(1, Ordering::Relaxed);
        self.n_tasks.fetch_add(1, Ordering::Relaxed);
        self.n_unreached
            .fetch_add(u64::from(is_unreached), Ordering::Relaxed);
        SlotGuard(Arc::new(Slot {
            pool: Arc::clone(self),
            is_held: AtomicBool::new(true),
            is_unreached,
        }))
    }

    /// Returns the number of tasks for hosts that were never reached, or have failed since.
    pub(super) fn n_unreached(&self) -> u64 {
        self.n_unreached.load(Ordering::Relaxed)
    }

    /// Sets the number of slots; tasks that have one keep it.
    pub(super) fn set_max(&self, max: u64) {
        if self.max.swap(max, Ordering::Relaxed) < max {
            self.freed.notify_waiters();
        }
    }

    /// Returns the number of tasks that have a slot, or had one and will want it again.
    pub(super) fn n_tasks(&self) -> u64 {
        self.n_tasks.load(Ordering::Relaxed)
    }

    /// Returns true if there is a slot for a new task.
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

/// A slot, for as long as its task has it. When it is given up, the loop of the crawl looks again.
pub(super) struct SlotGuard(Arc<Slot>);

/// A slot that may be left for a while.
#[derive(Debug)]
struct Slot {
    pool: Arc<SlotPool>,
    is_held: AtomicBool,
    is_unreached: bool,
}

/// Counts a task that wants a slot again, until it has one or does not want it any more.
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
            self.pool.n_held.fetch_sub(1, Ordering::Relaxed);
            self.pool.freed.notify_waiters();
            self.pool.progress.notify_one();
        }
    }

    async fn acquire(&self) {
        let pool = &*self.pool;
        pool.n_returning.fetch_add(1, Ordering::Relaxed);
        let returning = Returning(&pool.n_returning);
        loop {
            let freed = pool.freed.notified();
            if pool.try_hold() {
                self.is_held.store(true, Ordering::Relaxed);
                break;
            }
            freed.await;
        }
        drop(returning);
        // The task was counted twice for a moment, in which the loop may have looked.
        self.pool.progress.notify_one();
    }
}

impl SlotGuard {
    /// Returns the slot, for a request that may leave it.
    pub(super) fn fetch_slot(&self) -> Arc<dyn FetchSlot> {
        self.0.clone()
    }
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        self.0.release();
        self.0.pool.n_tasks.fetch_sub(1, Ordering::Relaxed);
        let n_unreached = u64::from(self.0.is_unreached);
        (self.0.pool.n_unreached).fetch_sub(n_unreached, Ordering::Relaxed);
        // The page may have changed what there is to do, even if it had no slot any more.
        self.0.pool.progress.notify_one();
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

/// Returns the number of slots that hosts may have which were never reached: the rest is for those that have answered. A
/// lookup of a name without a server takes seconds, and all slots may be taken by such names at once.
pub(super) fn max_unreached(n_preparing: u64) -> u64 {
    n_preparing - n_preparing / RESERVED_SHARE
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn most_hosts_ahead_leave_a_share_to_the_others() {
        for (n_ready_hosts, may_fly, n) in
            [(0, 0, 0), (0, 1, 64), (4_095, 100, 400), (4_096, 100, 50)]
        {
            assert_eq!(n_preparing(n_ready_hosts, may_fly), n);
        }
    }

    #[test]
    fn hosts_that_were_never_reached_leave_a_share_of_the_slots() {
        for (n_preparing, n) in [(0, 0), (1, 1), (8, 7), (64, 56)] {
            assert_eq!(max_unreached(n_preparing), n);
        }
        let pool = pool(8);
        let (answered, unreached) = (pool.hold(), pool.hold_for(true));
        assert_eq!((pool.n_tasks(), pool.n_unreached()), (2, 1));
        drop((answered, unreached));
        assert_eq!((pool.n_tasks(), pool.n_unreached()), (0, 0));
    }

    fn pool(max: u64) -> Arc<SlotPool> {
        let pool = SlotPool::new(&Arc::new(Notify::new()));
        pool.set_max(max);
        pool
    }

    #[test]
    fn who_comes_back_goes_before_who_is_new() {
        let pool = pool(1);
        let first = pool.hold();
        assert!(!pool.is_free());
        let slot = first.fetch_slot();
        slot.release();
        slot.release();
        assert!(pool.is_free());
        let second = pool.hold();
        let mut back = slot.acquire();
        assert!(back.as_mut().now_or_never().is_none());
        drop(second);
        assert!(!pool.is_free(), "the place is for the one who comes back");
        assert!(back.as_mut().now_or_never().is_some());
        assert_eq!((pool.is_free(), pool.n_tasks()), (false, 1));
        drop(first);
        assert_eq!((pool.is_free(), pool.n_tasks()), (true, 0));
    }

    #[test]
    fn who_gives_up_coming_back_takes_no_place() {
        let pool = pool(1);
        let away = pool.hold();
        away.fetch_slot().release();
        let other = pool.hold();
        let slot = away.fetch_slot();
        let mut back = slot.acquire();
        assert!(back.as_mut().now_or_never().is_none());
        drop(back);
        drop((away, other));
        assert_eq!((pool.is_free(), pool.n_tasks()), (true, 0));
    }

    #[test]
    fn more_places_are_for_those_who_wait_for_one() {
        let pool = pool(0);
        let away = pool.hold();
        let slot = away.fetch_slot();
        slot.release();
        let mut back = slot.acquire();
        assert!(back.as_mut().now_or_never().is_none());
        pool.set_max(1);
        assert!(back.as_mut().now_or_never().is_some());
    }
}
