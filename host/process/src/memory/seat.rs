//! One crawl among those that share the memory of a process.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::Notify;

use super::{Account, Memory};

/// Number of samples without shortness, a minute, after which a crawl that was put back may have twice as
/// many pages at once again.
const CALM: u32 = 300;
/// Largest number of halvings that has an effect.
const MAX_HALVINGS: u32 = 16;

/// Place of one crawl. Clones share the place; one task waits at it.
#[derive(Debug, Clone)]
pub struct Seat {
    memory: Memory,
    place: Arc<Place>,
}

/// Counts the bytes that a crawl holds beside its account.
type Also = Box<dyn Fn() -> u64 + Send + Sync>;

#[derive(Default)]
pub(super) struct Place {
    account: Account,
    also: Mutex<Option<Also>>,
    /// Reason why the crawl is put back, until it goes on.
    put_back: Mutex<Option<String>>,
    /// Number of times that its concurrency was halved.
    n_halvings: AtomicU32,
    /// Number of samples since memory was short, or since the concurrency was halved or doubled last.
    n_calm: AtomicU32,
    wake: Notify,
}

impl Default for Seat {
    /// Returns a place in memory that nobody watches.
    fn default() -> Self {
        Self::in_memory(Memory::unwatched())
    }
}

impl Seat {
    pub(super) fn in_memory(memory: Memory) -> Self {
        Self {
            memory,
            place: Arc::default(),
        }
    }

    pub(super) fn place(&self) -> Weak<Place> {
        Arc::downgrade(&self.place)
    }

    /// Returns the account of the crawl's bodies and calls.
    pub fn account(&self) -> &Account {
        &self.place.account
    }

    /// Counts these bytes too from now on, instead of those of an earlier call: the frontier's.
    pub fn also(&self, bytes: impl Fn() -> u64 + Send + Sync + 'static) {
        *self.place.also() = Some(Box::new(bytes));
    }

    /// Pages of the crawl that may be in flight at once where so many are asked for: 0 while memory is short,
    /// and fewer after the crawl was put back.
    pub fn share(&self, concurrency: u32) -> u32 {
        if self.memory.is_short() {
            return 0;
        }
        let n_halvings = self.place.n_halvings.load(Ordering::Relaxed);
        (concurrency >> n_halvings).max(1)
    }

    /// Returns the reason why the crawl takes no page; `None` while it may.
    pub fn short(&self) -> Option<String> {
        self.memory.short()
    }

    /// Returns the reason why the crawl is put back; `None` while it may go on.
    pub fn put_back(&self) -> Option<String> {
        self.place.reason().clone()
    }

    /// Waits until the crawl is put back, and returns the reason.
    pub async fn until_put_back(&self) -> String {
        loop {
            if let Some(why) = self.put_back() {
                return why;
            }
            self.changed().await;
        }
    }

    /// Waits until memory becomes short or free, or the crawl is put back.
    pub async fn changed(&self) {
        self.place.wake.notified().await;
    }

    /// Waits until memory is free; from then on the crawl is not put back any more.
    pub async fn free(&self) {
        while self.memory.is_short() {
            self.changed().await;
        }
        *self.place.reason() = None;
    }
}

impl Place {
    pub(super) fn bytes(&self) -> u64 {
        let also = self.also().as_ref().map_or(0, |bytes| bytes());
        self.account.bytes().saturating_add(also)
    }

    pub(super) fn is_put_back(&self) -> bool {
        self.reason().is_some()
    }

    pub(super) fn put_back(&self, why: String) {
        *self.reason() = Some(why);
        let n_halvings = self.n_halvings.load(Ordering::Relaxed);
        let n_halvings = (n_halvings + 1).min(MAX_HALVINGS);
        self.n_halvings.store(n_halvings, Ordering::Relaxed);
        self.wake();
    }

    /// Takes note of a sample.
    pub(super) fn pass(&self, is_short: bool) {
        let n_calm = match is_short {
            true => 0,
            false => self.n_calm.load(Ordering::Relaxed) + 1,
        };
        let n_halvings = self.n_halvings.load(Ordering::Relaxed);
        if n_calm < CALM || n_halvings == 0 {
            self.n_calm.store(n_calm.min(CALM), Ordering::Relaxed);
            return;
        }
        self.n_calm.store(0, Ordering::Relaxed);
        self.n_halvings.store(n_halvings - 1, Ordering::Relaxed);
        self.wake();
    }

    pub(super) fn wake(&self) {
        self.wake.notify_one();
    }

    fn also(&self) -> MutexGuard<'_, Option<Also>> {
        self.also.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reason(&self) -> MutexGuard<'_, Option<String>> {
        self.put_back.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Place")
            .field("bytes", &self.bytes())
            .field("put_back", &*self.reason())
            .finish_non_exhaustive()
    }
}
