//! Replica of the store's records, kept up to date by a watch, so that a decision reads nothing.
//!
//! Each master has one for its whole life, so that a new leader knows the state already. The replica may be a
//! moment behind; decisions based on it are written under guards for the records that they read. All records
//! are read anew if the watch has missed something, if a guard fails and no change explains why, and at long
//! intervals.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::observed::Observed;
use super::placement::{Candidates, Strategy};
use crawler_process::retry::Backoff;
use crawler_process::telemetry;
use crawler_store::catalog::Catalog;
use crawler_store::{Revision, StoreError, WatchEvent};

/// Longest interval between two reads of all records. 100 000 resources are some seconds of work.
const RESYNC: Duration = Duration::from_secs(10 * 60);

/// Shortest interval between two reads of all records that are due to a doubt.
const DOUBT_PAUSE: Duration = Duration::from_secs(10);

/// Longest time that a decision waits to see an earlier decision; it then goes on without.
const PATIENCE: Duration = Duration::from_millis(100);

/// The present state, for decisions. Cheap to clone.
#[derive(Clone)]
pub struct Replica {
    /// State at the last read or change; `None` before the first read.
    present: watch::Receiver<Option<Arc<Observed>>>,
    doubts: Arc<Notify>,
    is_followed: Arc<AtomicBool>,
}

/// Task state that keeps a replica up to date.
pub struct Feeder {
    catalog: Catalog,
    strategy: Strategy,
    present: watch::Sender<Option<Arc<Observed>>>,
    doubts: Arc<Notify>,
    is_followed: Arc<AtomicBool>,
}

impl Replica {
    /// Creates a replica of these records. `strategy` chooses workers. Nothing is read before the feeder runs.
    pub fn new(catalog: Catalog, strategy: Strategy) -> (Self, Feeder) {
        let (present, receiver) = watch::channel(None);
        let doubts = Arc::<Notify>::default();
        let is_followed = Arc::<AtomicBool>::default();
        let feeder = Feeder {
            catalog,
            strategy,
            present,
            doubts: doubts.clone(),
            is_followed: is_followed.clone(),
        };
        let replica = Self {
            present: receiver,
            doubts,
            is_followed,
        };
        (replica, feeder)
    }

    /// Returns the state once it differs from that after `n_changes` changes. If `None`, returns it once it has
    /// been read.
    pub(super) async fn after(&mut self, n_changes: Option<u64>) -> Arc<Observed> {
        self.once(|present| Some(present.n_changes) != n_changes)
            .await
    }

    /// Returns the state once a deletion has changed since the `n`th change of deletions.
    pub(super) async fn after_deletions(&mut self, n: u64) -> Arc<Observed> {
        self.once(|present| present.deletions.n_changes != n).await
    }

    /// Returns the state once resources have changed since the change with this number of the log.
    pub(super) async fn after_change(&mut self, number: u64) -> Arc<Observed> {
        self.once(|present| present.log.last() != number).await
    }

    /// Returns the state once resources have changed since the change with this number of the log, or once it includes all
    /// writes up to a revision.
    pub(super) async fn after_change_or_settled(
        &mut self,
        number: u64,
        revision: Option<Revision>,
    ) -> Arc<Observed> {
        self.once(|present| {
            let is_settled = revision.is_some_and(|revision| present.settled >= revision);
            is_settled || present.log.last() != number
        })
        .await
    }

    /// Returns the state once it includes all writes up to a revision.
    pub(super) async fn settled(&mut self, revision: Revision) -> Arc<Observed> {
        self.once(|present| present.settled >= revision).await
    }

    /// Returns the state once the store is followed. A state that is not followed may be an old one.
    pub(super) async fn followed(&mut self) -> Arc<Observed> {
        let is_followed = Arc::clone(&self.is_followed);
        self.once(|_| is_followed.load(Ordering::Relaxed)).await
    }

    /// Acts as if the store could not be followed.
    #[cfg(test)]
    pub(super) fn lose(&self) {
        self.is_followed.store(false, Ordering::Relaxed);
    }

    /// Returns false if the store has not been read yet, or cannot be followed at the moment.
    pub(super) fn is_followed(&self) -> bool {
        self.is_followed.load(Ordering::Relaxed)
    }

    async fn once(&mut self, is_it: impl Fn(&Observed) -> bool) -> Arc<Observed> {
        let is_it = |present: &Option<Arc<Observed>>| {
            let present = present.as_ref();
            present.is_some_and(|present| is_it(present))
        };
        let present = match self.present.wait_for(is_it).await {
            Ok(present) => present.clone(),
            Err(_feeder_is_gone) => None,
        };
        match present {
            Some(present) => present,
            None => std::future::pending().await,
        }
    }

    /// Returns the state, including the write at this revision. Returns `None` if that does not come in time,
    /// or if nothing has been read yet.
    pub(super) async fn with(&self, revision: Revision) -> Option<Arc<Observed>> {
        let mut present = self.present.clone();
        let is_there = |present: &Option<Arc<Observed>>| {
            let present = present.as_ref();
            present.is_none_or(|present| present.revision >= revision)
        };
        let seen = tokio::time::timeout(PATIENCE, present.wait_for(is_there));
        seen.await.ok()?.ok()?.clone()
    }

    /// Returns the revision of the last write that the state includes.
    pub(super) fn revision(&self) -> Revision {
        let present = self.present.borrow();
        present
            .as_ref()
            .map(|present| present.revision)
            .unwrap_or_default()
    }

    /// Waits until the state includes the write at this revision.
    pub(super) async fn reaches(&self, revision: Revision) {
        let mut present = self.present.clone();
        let is_there = |present: &Option<Arc<Observed>>| {
            let present = present.as_ref();
            present.is_some_and(|present| present.revision >= revision)
        };
        let reached = present.wait_for(is_there).await.is_ok();
        if !reached {
            // The feeder has ended.
            std::future::pending().await
        }
    }

    /// Reports a record that differs although no change said so: all records are to be read anew.
    pub(super) fn doubt(&self) {
        self.doubts.notify_one();
    }

    /// True if workers came, went or changed since `since` was observed.
    pub(super) fn has_other_workers(&self, since: &Observed) -> bool {
        let present = self.present.borrow();
        let present = present.as_ref();
        present.is_some_and(|present| present.n_of_workers != since.n_of_workers)
    }

    /// Returns the present state, or `None` if nothing has been read yet.
    pub(super) fn latest(&self) -> Option<Arc<Observed>> {
        self.present.borrow().clone()
    }

    /// Returns the workers with their loads, or `None` if nothing has been read yet.
    pub(super) fn candidates(&self) -> Option<Candidates> {
        let present = self.present.borrow();
        present.as_ref().map(|present| present.candidates.clone())
    }
}

impl Feeder {
    /// Feeds until `stop`. Errors of the store are logged and waited out.
    pub async fn run(self, stop: CancellationToken) {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
        loop {
            let result = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                result = self.feed(&mut backoff) => result,
            };
            match result {
                Ok(()) => continue,
                Err(error) => {
                    self.is_followed.store(false, Ordering::Relaxed);
                    let error = telemetry::chain(&error);
                    tracing::warn!(error, "the store's records cannot be followed");
                }
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = tokio::time::sleep(backoff.next_delay()) => {}
            }
        }
    }

    /// Reads all records, and follows changes until it is time to read all of them anew.
    async fn feed(&self, backoff: &mut Backoff) -> Result<(), StoreError> {
        let keys = self.catalog.keys();
        let before = self.present.borrow().clone().unwrap_or_default();
        let read = Observed::read_over(&self.catalog, self.strategy, before);
        let mut observed = read.await?;
        let from = observed.revision;
        let mut watch = self.catalog.store().watch(&keys.all(), from).await?;
        self.follow_from(&observed);
        backoff.reset();
        let read_at = Instant::now();
        loop {
            let doubted = async {
                tokio::time::sleep_until(read_at + DOUBT_PAUSE).await;
                self.doubts.notified().await;
            };
            let event = tokio::select! {
                biased;
                () = tokio::time::sleep_until(read_at + RESYNC) => return Ok(()),
                () = doubted => {
                    tracing::warn!("a change was missed; all records are read anew");
                    return Ok(());
                }
                event = watch.next() => event?,
            };
            let mut event = Some(event);
            // All changes that have arrived by now make one new state.
            while let Some(change) = event {
                match change {
                    WatchEvent::Put(entry) => observed.put(keys, &entry),
                    WatchEvent::Delete { key, revision } => observed.remove(keys, &key, revision),
                    WatchEvent::StartOver => return Ok(()),
                }
                event = watch.next().now_or_never().transpose()?;
            }
            self.publish(&observed);
        }
    }

    /// Makes this the present state, from which on the store is followed.
    pub(super) fn follow_from(&self, observed: &Observed) {
        let present = Arc::new(observed.clone());
        // Whoever sees one of them sees the other.
        self.present.send_modify(|state| {
            self.is_followed.store(true, Ordering::Relaxed);
            *state = Some(present);
        });
    }

    /// Makes this the present state.
    fn publish(&self, observed: &Observed) {
        let present = Arc::new(observed.clone());
        self.present.send_replace(Some(present));
    }
}

#[cfg(test)]
mod tests;
