//! Use of the memory of a process by one crawl: its bytes, whether it is put back, and how far its concurrency is
//! halved because of that.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::Account;

/// Number of samples without shortness, a minute, after which a crawl that was put back may have twice as
/// many pages at once again.
const CALM: u32 = 300;
/// Largest number of halvings that has an effect.
const MAX_HALVINGS: u32 = 16;

/// Counts the bytes that a crawl holds beside its account.
pub(super) type BytesHeld = Box<dyn Fn() -> u64 + Send + Sync>;

/// Use of the memory by one crawl.
#[derive(Default)]
pub(super) struct CrawlUsage {
    account: Account,
    also: Mutex<Option<BytesHeld>>,
    /// Reason why the crawl is put back, until it goes on.
    put_back: Mutex<Option<String>>,
    /// Number of times that its concurrency was halved.
    n_halvings: AtomicU32,
    /// Number of samples since memory was short, or since the concurrency was halved or doubled last.
    n_calm: AtomicU32,
    wake: Notify,
}

impl CrawlUsage {
    pub(super) fn account(&self) -> &Account {
        &self.account
    }

    /// Counts these bytes too from now on, instead of those of an earlier call.
    pub(super) fn count_also(&self, bytes: BytesHeld) {
        *self.also() = Some(bytes);
    }

    /// Returns the concurrency that is left of the one that is asked for.
    pub(super) fn halved(&self, concurrency: u32) -> u32 {
        let n_halvings = self.n_halvings.load(Ordering::Relaxed);
        (concurrency >> n_halvings).max(1)
    }

    /// Returns the reason why the crawl is put back; `None` while it may go on.
    pub(super) fn reason(&self) -> Option<String> {
        self.present_reason().clone()
    }

    /// Lets the crawl go on.
    pub(super) fn end_put_back(&self) {
        *self.present_reason() = None;
    }

    /// Waits until something changes for the crawl.
    pub(super) async fn changed(&self) {
        self.wake.notified().await;
    }

    pub(super) fn bytes(&self) -> u64 {
        let also = self.also().as_ref().map_or(0, |bytes| bytes());
        self.account.bytes().saturating_add(also)
    }

    pub(super) fn is_put_back(&self) -> bool {
        self.present_reason().is_some()
    }

    pub(super) fn put_back(&self, why: String) {
        *self.present_reason() = Some(why);
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

    fn also(&self) -> MutexGuard<'_, Option<BytesHeld>> {
        self.also.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn present_reason(&self) -> MutexGuard<'_, Option<String>> {
        self.put_back.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for CrawlUsage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CrawlUsage")
            .field("bytes", &self.bytes())
            .field("put_back", &self.reason())
            .finish_non_exhaustive()
    }
}
