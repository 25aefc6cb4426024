//! Store in which another write happens at the worst moment: after a read, before its answer is seen. It loses answers, too.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;

use super::{
    Entry, LeaseId, Listing, Outcome, Revision, Store, StoreError, Txn, Watch, WatchEvent,
};

/// Kind of read; each kind is counted by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    Get,
    /// A listing, or the start of a watch.
    Range,
}

pub struct RacingStore {
    /// The underlying store.
    pub store: Arc<dyn Store>,
    /// Transaction that is carried out after a read of this kind, and the number of such reads until then.
    due: Mutex<Option<(Read, usize, Txn)>>,
    is_silent: AtomicBool,
    has_silent_commits: AtomicBool,
    /// Prefix of a key with whose next write the answer is lost.
    lost_below: Mutex<Option<String>>,
    /// True if the first read of a key after a lost answer fails, too.
    fails_after_loss: AtomicBool,
    /// True if the next read of a key fails.
    fails_next: AtomicBool,
    /// True if a read has failed.
    has_failed: AtomicBool,
}

impl RacingStore {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            due: Mutex::default(),
            is_silent: AtomicBool::new(false),
            has_silent_commits: AtomicBool::new(false),
            lost_below: Mutex::default(),
            fails_after_loss: AtomicBool::new(false),
            fails_next: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
        }
    }

    /// Silences all watches from now on.
    pub fn silence_watches(&self) {
        self.is_silent.store(true, Ordering::Relaxed);
    }

    /// Leaves all commits without an answer from now on.
    pub fn silence_commits(&self) {
        self.has_silent_commits.store(true, Ordering::Relaxed);
    }

    /// Carries out `txn` after the `nth` read of this kind from now on, the first being 1.
    pub fn race_after(&self, read: Read, nth: usize, txn: Txn) {
        *self.due.lock().unwrap() = Some((read, nth, txn));
    }

    /// True if that has happened.
    pub fn has_raced(&self) -> bool {
        self.due.lock().unwrap().is_none()
    }

    /// Loses the answer of the next transaction that is carried out and writes below this prefix.
    pub fn lose_answer_below(&self, prefix: String) {
        *self.lost_below.lock().unwrap() = Some(prefix);
    }

    /// Does the same, and fails the first read of a key after that.
    pub fn lose_answer_and_read_below(&self, prefix: String) {
        self.fails_after_loss.store(true, Ordering::Relaxed);
        self.lose_answer_below(prefix);
    }

    /// True if an answer was lost and the read after it has failed.
    pub fn has_failed_a_read(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// True if an answer is still to be lost.
    pub fn is_to_lose_an_answer(&self) -> bool {
        self.lost_below.lock().unwrap().is_some()
    }

    fn loses_answer(&self, keys: &[String]) -> bool {
        let mut lost_below = self.lost_below.lock().unwrap();
        let below = lost_below.as_deref();
        let is_lost = below.is_some_and(|below| keys.iter().any(|key| key.starts_with(below)));
        if is_lost {
            *lost_below = None;
            let fails = self.fails_after_loss.swap(false, Ordering::Relaxed);
            self.fails_next.store(fails, Ordering::Relaxed);
        }
        is_lost
    }

    async fn answered(&self, read: Read) {
        let due = {
            let mut due = self.due.lock().unwrap();
            match &mut *due {
                Some((of, nth, _)) if *of == read && *nth == 1 => due.take(),
                Some((of, nth, _)) if *of == read => {
                    *nth -= 1;
                    None
                }
                _ => None,
            }
        };
        if let Some((_, _, txn)) = due {
            let outcome = self.store.commit(txn).await;
            assert!(matches!(outcome, Ok(Outcome::Done(_))), "{outcome:?}");
        }
    }
}

#[async_trait]
impl Store for RacingStore {
    async fn get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        if self.fails_next.swap(false, Ordering::Relaxed) {
            self.has_failed.store(true, Ordering::Relaxed);
            let why = "the answer is lost".to_owned();
            return Err(StoreError::Unavailable { why });
        }
        let entry = self.store.get(key).await;
        self.answered(Read::Get).await;
        entry
    }

    async fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
        let listing = self.store.list(prefix).await;
        self.answered(Read::Range).await;
        listing
    }

    async fn commit(&self, txn: Txn) -> Result<Outcome, StoreError> {
        if self.has_silent_commits.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        let keys = txn.changes.iter().map(|change| change.key().to_owned());
        let keys: Vec<String> = keys.collect();
        let outcome = self.store.commit(txn).await?;
        match outcome {
            Outcome::Done(_) if self.loses_answer(&keys) => Ok(Outcome::Unknown),
            outcome => Ok(outcome),
        }
    }

    async fn watch(&self, prefix: &str, from: Revision) -> Result<Box<dyn Watch>, StoreError> {
        let watch = self.store.watch(prefix, from).await;
        self.answered(Read::Range).await;
        match self.is_silent.load(Ordering::Relaxed) {
            true => Ok(Box::new(SilentWatch)),
            false => watch,
        }
    }

    async fn grant_lease(&self, ttl: Duration) -> Result<LeaseId, StoreError> {
        self.store.grant_lease(ttl).await
    }

    async fn renew_lease(&self, lease: LeaseId) -> Result<(), StoreError> {
        self.store.renew_lease(lease).await
    }

    async fn revoke_lease(&self, lease: LeaseId) -> Result<(), StoreError> {
        self.store.revoke_lease(lease).await
    }

    async fn compact(&self, keep: u64) -> Result<(), StoreError> {
        self.store.compact(keep).await
    }
}

struct SilentWatch;

#[async_trait]
impl Watch for SilentWatch {
    async fn next(&mut self) -> Result<WatchEvent, StoreError> {
        std::future::pending().await
    }
}
