//! A store whose network fails as a test wants it.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tokio::sync::watch;

use crawler_store::embedded::EmbeddedStore;
use crawler_store::racing_store::RacingStore;
use crawler_store::{
    Entry, LeaseId, Listing, Outcome, Revision, Store, StoreError, Txn, Watch, WatchEvent,
};
use std::time::Duration;

/// State of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Network {
    Good,
    /// The store does not answer.
    Away,
    /// Calls for leases are answered; lists are not.
    NoLists,
    /// Lists take a while.
    SlowLists,
    /// Watches lose events.
    Lossy,
    /// Watches report once that they have lost events.
    StartOver,
    /// Watches break.
    Breaks,
}

pub(super) struct FaultyStore {
    /// The store behind the network.
    pub(super) store: RacingStore,
    network: watch::Sender<Network>,
    /// Keys of records that were read alone, in order.
    gets: Mutex<Vec<String>>,
}

impl FaultyStore {
    pub(super) fn new(store: EmbeddedStore) -> Self {
        Self {
            store: RacingStore::new(Arc::new(store)),
            network: watch::Sender::new(Network::Good),
            gets: Mutex::default(),
        }
    }

    pub(super) fn turns(&self, network: Network) {
        self.network.send_replace(network);
    }

    /// Returns how often this record was read alone.
    pub(super) fn n_gets(&self, key: &str) -> usize {
        let gets = self.gets.lock().unwrap();
        gets.iter().filter(|asked| *asked == key).count()
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
}

#[async_trait]
impl Store for FaultyStore {
    async fn compact(&self, keep: u64) -> Result<(), StoreError> {
        self.store.compact(keep).await
    }

    async fn get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        self.gets.lock().unwrap().push(key.to_owned());
        self.pass(false)?;
        self.store.get(key).await
    }

    async fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
        self.pass(true)?;
        if *self.network.borrow() == Network::SlowLists {
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
        self.store.list(prefix).await
    }

    async fn commit(&self, txn: Txn) -> Result<Outcome, StoreError> {
        self.pass(false)?;
        self.store.commit(txn).await
    }

    async fn watch(&self, prefix: &str, from: Revision) -> Result<Box<dyn Watch>, StoreError> {
        self.pass(false)?;
        let watch = self.store.watch(prefix, from).await?;
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
