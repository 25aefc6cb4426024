//! Places among the pages in flight, and among the hosts that are made ready.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;
use tokio::sync::Notify;

use super::shared::Shared;
use crate::fetch::Place;

/// Hosts that are ready and wait for their turn, above which few others are made ready: they would wait too.
const HOSTS_AHEAD: usize = 4_096;
/// Hosts that are made ready at once for each page that may be in flight, and at least.
const PREPARING_PER_PAGE: u64 = 4;
const MIN_PREPARING: u64 = 64;
/// Of the hosts that are made ready at once, one in so many goes on above that.
const SHARE_ABOVE: u64 = 8;

/// How many places there are, and who has them.
#[derive(Debug, Default)]
pub(super) struct Places {
    max: AtomicU64,
    n_held: AtomicU64,
    /// Tasks that have a place, or had one and will want it again.
    n_tasks: AtomicU64,
    /// Those who gave up their place for a while and want one again: they come before anybody new.
    n_returning: AtomicU64,
    freed: Notify,
}

impl Places {
    /// From now on there are so many; whoever has one keeps it.
    pub(super) fn set_max(&self, max: u64) {
        if self.max.swap(max, Ordering::Relaxed) < max {
            self.freed.notify_waiters();
        }
    }

    /// Number of tasks that have a place, or had one and will want it again.
    pub(super) fn n_tasks(&self) -> u64 {
        self.n_tasks.load(Ordering::Relaxed)
    }

    /// True if there is a place for somebody new.
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
pub(super) struct Slot {
    shared: Arc<Shared>,
    places: fn(&Shared) -> &Places,
    is_held: AtomicBool,
}

impl Slot {
    /// A place for somebody new, which the loop has found to be free.
    pub(super) fn hold(shared: &Arc<Shared>, places: fn(&Shared) -> &Places) -> Held {
        places(shared).n_held.fetch_add(1, Ordering::Relaxed);
        places(shared).n_tasks.fetch_add(1, Ordering::Relaxed);
        Held(Arc::new(Self {
            shared: Arc::clone(shared),
            places,
            is_held: AtomicBool::new(true),
        }))
    }

    fn places(&self) -> &Places {
        (self.places)(&self.shared)
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot")
            .field("is_held", &self.is_held)
            .finish_non_exhaustive()
    }
}

/// Somebody who wants a place again, until they have one or do not want it any more.
struct Returning<'a>(&'a AtomicU64);

impl Drop for Returning<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[async_trait]
impl Place for Slot {
    fn leave(&self) {
        if self.is_held.swap(false, Ordering::Relaxed) {
            self.places().n_held.fetch_sub(1, Ordering::Relaxed);
            self.places().freed.notify_waiters();
            self.shared.progress.notify_one();
        }
    }

    async fn take(&self) {
        let places = self.places();
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
        // It was counted twice for a moment, in which the loop may have looked.
        self.shared.progress.notify_one();
    }
}

impl Held {
    /// The place, for a request that may leave it.
    pub(super) fn place(&self) -> Arc<dyn Place> {
        self.0.clone()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.leave();
        self.0.places().n_tasks.fetch_sub(1, Ordering::Relaxed);
        // Its page may have changed what there is to do, though it had no place any more.
        self.0.shared.progress.notify_one();
    }
}

/// Number of hosts that may be made ready at once. Hosts that are ready come first, but leave the others a
/// share.
pub(super) fn n_preparing(shared: &Shared, may_fly: u64) -> u64 {
    let max = match may_fly {
        0 => return 0,
        n => (PREPARING_PER_PAGE * n).max(MIN_PREPARING),
    };
    match shared.parts.frontier.n_ready_hosts() < HOSTS_AHEAD {
        true => max,
        false => max / SHARE_ABOVE,
    }
}
