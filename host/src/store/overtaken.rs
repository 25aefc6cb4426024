//! A store that takes somebody else's write at the worst moment: after a read, before its answer is seen.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;

use super::{
    Entry, LeaseId, Listing, Outcome, Revision, Store, StoreError, Txn, Watch, WatchEvent,
};

/// Each kind of read is counted by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Read {
    Get,
    /// A list or a watch from one.
    Range,
}

pub(crate) struct Overtaken {
    /// Without the meddling.
    pub(crate) store: Arc<dyn Store>,
    /// What is done behind the read that comes after so many others.
    due: Mutex<Option<(Read, usize, Txn)>>,
    is_deaf: AtomicBool,
}

impl Overtaken {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            due: Mutex::default(),
            is_deaf: AtomicBool::new(false),
        }
    }

    /// Watches from now on say nothing.
    pub(crate) fn deafen(&self) {
        self.is_deaf.store(true, Ordering::Relaxed);
    }

    /// Behind the `nth` read of this kind from here on, the first being 1, somebody does this.
    pub(crate) fn overtake(&self, read: Read, nth: usize, txn: Txn) {
        *self.due.lock().unwrap() = Some((read, nth, txn));
    }

    /// Whether that has come about.
    pub(crate) fn is_over(&self) -> bool {
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
impl Store for Overtaken {
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
        self.store.commit(txn).await
    }

    async fn watch(&self, prefix: &str, from: Revision) -> Result<Box<dyn Watch>, StoreError> {
        let watch = self.store.watch(prefix, from).await;
        self.answered(Read::Range).await;
        match self.is_deaf.load(Ordering::Relaxed) {
            true => Ok(Box::new(Silence)),
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

struct Silence;

#[async_trait]
impl Watch for Silence {
    async fn next(&mut self) -> Result<WatchEvent, StoreError> {
        std::future::pending().await
    }
}
