//! Store in which another write happens at the worst moment: after a read, before its answer is seen.

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
}

impl RacingStore {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            due: Mutex::default(),
            is_silent: AtomicBool::new(false),
            has_silent_commits: AtomicBool::new(false),
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
        self.store.commit(txn).await
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
