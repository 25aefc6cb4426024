//! A store whose network fails as a test wants it.

use std::sync::Mutex;

use async_trait::async_trait;
use tokio::sync::watch;

use crate::store::embedded::EmbeddedStore;
use crate::store::{
    Entry, LeaseId, Listing, Outcome, Revision, Store, StoreError, Txn, Watch, WatchEvent,
};
use std::time::Duration;

/// What the network does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Network {
    Good,
    /// Nothing is answered.
    Away,
    /// Leases are; lists are not.
    NoLists,
    /// Lists take a while.
    SlowLists,
    /// Watches lose what happens.
    Lossy,
    /// Watches tell that they have lost something, once.
    StartOver,
    /// Watches break.
    Breaks,
}

pub(super) struct FaultyStore {
    /// As it is behind the network.
    pub(super) store: EmbeddedStore,
    network: watch::Sender<Network>,
    /// Calls of list and watch from here on, and what is done behind the last of them.
    meddling: Mutex<Option<(usize, Txn)>>,
}

impl FaultyStore {
    pub(super) fn new(store: EmbeddedStore) -> Self {
        Self {
            store,
            network: watch::Sender::new(Network::Good),
            meddling: Mutex::default(),
        }
    }

    pub(super) fn turns(&self, network: Network) {
        self.network.send_replace(network);
    }

    /// After so many lists and watches somebody does this, before the answer is read.
    pub(super) fn meddle_after(&self, n_calls: usize, txn: Txn) {
        *self.meddling.lock().unwrap() = Some((n_calls, txn));
    }

    pub(super) fn has_meddled(&self) -> bool {
        self.meddling.lock().unwrap().is_none()
    }

    fn pass(&self, is_list: bool) -> Result<(), StoreError> {
        let network = *self.network.borrow();
        match network {
            Network::NoLists if !is_list => Ok(()),
            Network::Away | Network::NoLists => Err(StoreError::Unavailable {
                why: "for a test".to_owned(),
            }),
            Network::Good
            | Network::SlowLists
            | Network::Lossy
            | Network::StartOver
            | Network::Breaks => Ok(()),
        }
    }

    async fn answered(&self) {
        let due = {
            let mut meddling = self.meddling.lock().unwrap();
            match &mut *meddling {
                Some((n_calls, _)) if *n_calls > 1 => {
                    *n_calls -= 1;
                    None
                }
                _ => meddling.take(),
            }
        };
        if let Some((_, txn)) = due {
            self.store.commit(txn).await.unwrap();
        }
    }
}

#[async_trait]
impl Store for FaultyStore {
    async fn compact(&self, keep: u64) -> Result<(), StoreError> {
        self.store.compact(keep).await
    }

    async fn get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        self.pass(false)?;
        self.store.get(key).await
    }

    async fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
        self.pass(true)?;
        if *self.network.borrow() == Network::SlowLists {
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
        let listing = self.store.list(prefix).await;
        self.answered().await;
        listing
    }

    async fn commit(&self, txn: Txn) -> Result<Outcome, StoreError> {
        self.pass(false)?;
        self.store.commit(txn).await
    }

    async fn watch(&self, prefix: &str, from: Revision) -> Result<Box<dyn Watch>, StoreError> {
        self.pass(false)?;
        let watch = self.store.watch(prefix, from).await?;
        self.answered().await;
        let network = self.network.subscribe();
        Ok(Box::new(FaultyWatch { watch, network }))
    }

    async fn grant_lease(&self, ttl: Duration) -> Result<LeaseId, StoreError> {
        self.pass(false)?;
        self.store.grant_lease(ttl).await
    }

    async fn renew_lease(&self, lease: LeaseId) -> Result<(), StoreError> {
        self.pass(false)?;
        self.store.renew_lease(lease).await
    }

    async fn revoke_lease(&self, lease: LeaseId) -> Result<(), StoreError> {
        self.pass(false)?;
        self.store.revoke_lease(lease).await
    }
}

struct FaultyWatch {
    watch: Box<dyn Watch>,
    network: watch::Receiver<Network>,
}

#[async_trait]
impl Watch for FaultyWatch {
    async fn next(&mut self) -> Result<WatchEvent, StoreError> {
        loop {
            let event = tokio::select! {
                event = self.watch.next() => Some(event),
                changed = self.network.changed() => changed.map(|()| None).unwrap(),
            };
            let network = *self.network.borrow();
            match (network, event) {
                (Network::StartOver, None) => return Ok(WatchEvent::StartOver),
                (Network::Breaks | Network::Away, _) => {
                    return Err(StoreError::Unavailable {
                        why: "the watch broke, for a test".to_owned(),
                    });
                }
                (Network::Lossy, _) | (_, None) => {}
                (_, Some(event)) => return event,
            }
        }
    }
}
