//! What the store holds, kept up to date by a watch, so that a decision reads nothing.
//!
//! Each master has one for its whole life: whoever comes to lead knows the state already. It may be a
//! moment behind; what is decided by it is written under the guards of what it said. Where the watch
//! has missed something, where a guard does not hold and no change says why, and now and then, all is
//! read anew.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::observed::Observed;
use super::placement::{Candidates, Strategy};
use crate::retry::Backoff;
use crate::store::catalog::Catalog;
use crate::store::{Revision, StoreError, WatchEvent};
use crate::telemetry;

/// All is read anew at least this often. 100 000 resources are some seconds of work.
const RESYNC: Duration = Duration::from_secs(10 * 60);

/// All is read anew because of a doubt at most this often.
const DOUBT_PAUSE: Duration = Duration::from_secs(10);

/// How long a decision waits to see what was decided before; it goes without, then.
const PATIENCE: Duration = Duration::from_millis(100);

/// The present state, for whoever decides. Cheap to clone.
#[derive(Clone)]
pub struct Replica {
    /// None: nothing was read yet.
    present: watch::Receiver<Option<Arc<Observed>>>,
    doubts: Arc<Notify>,
}

/// What keeps a replica up to date.
pub struct Feeder {
    catalog: Catalog,
    strategy: Strategy,
    present: watch::Sender<Option<Arc<Observed>>>,
    doubts: Arc<Notify>,
}

impl Replica {
    /// Of these records, with workers chosen in this way; nothing is read before the feeder runs.
    pub fn new(catalog: Catalog, strategy: Strategy) -> (Self, Feeder) {
        let (present, receiver) = watch::channel(None);
        let doubts = Arc::<Notify>::default();
        let feeder = Feeder {
            catalog,
            strategy,
            present,
            doubts: doubts.clone(),
        };
        let present = receiver;
        (Self { present, doubts }, feeder)
    }

    /// The state once something is otherwise than after so many changes; at first once it was read.
    pub(super) async fn after(&mut self, n_changes: Option<u64>) -> Arc<Observed> {
        self.once(|present| Some(present.n_changes) != n_changes)
            .await
    }

    /// The state once a deletion is otherwise than after so many changes of deletions.
    pub(super) async fn after_deletions(&mut self, n: u64) -> Arc<Observed> {
        self.once(|present| present.deletions.n_changes != n).await
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

    /// The state, with what was written at this revision in it; none where that does not come in time,
    /// or nothing was read yet.
    pub(super) async fn with(&self, revision: Revision) -> Option<Arc<Observed>> {
        let mut present = self.present.clone();
        let is_there = |present: &Option<Arc<Observed>>| {
            let present = present.as_ref();
            present.is_none_or(|present| present.revision >= revision)
        };
        let seen = tokio::time::timeout(PATIENCE, present.wait_for(is_there));
        seen.await.ok()?.ok()?.clone()
    }

    /// The last write that is in it.
    pub(super) fn revision(&self) -> Revision {
        let present = self.present.borrow();
        present
            .as_ref()
            .map(|present| present.revision)
            .unwrap_or_default()
    }

    /// Waits until what was written at this revision is in it.
    pub(super) async fn reaches(&self, revision: Revision) {
        let mut present = self.present.clone();
        let is_there = |present: &Option<Arc<Observed>>| {
            let present = present.as_ref();
            present.is_some_and(|present| present.revision >= revision)
        };
        let reached = present.wait_for(is_there).await.is_ok();
        if !reached {
            // Nothing feeds it any more.
            std::future::pending().await
        }
    }

    /// Something is otherwise than it says, and no change tells so: all is to be read anew.
    pub(super) fn doubt(&self) {
        self.doubts.notify_one();
    }

    /// Whether workers came, went or changed since this was looked at.
    pub(super) fn has_other_workers(&self, since: &Observed) -> bool {
        let present = self.present.borrow();
        let present = present.as_ref();
        present.is_some_and(|present| present.n_of_workers != since.n_of_workers)
    }

    /// The workers with their loads; none where nothing was read yet.
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

    /// Reads all, and follows until it is time to read all anew.
    async fn feed(&self, backoff: &mut Backoff) -> Result<(), StoreError> {
        let keys = self.catalog.keys();
        let before = self.present.borrow().clone().unwrap_or_default();
        let read = Observed::read_over(&self.catalog, self.strategy, before);
        let mut observed = read.await?;
        let from = observed.revision;
        let mut watch = self.catalog.store().watch(&keys.all(), from).await?;
        self.publish(&observed);
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
            // One state for all that is here by now.
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

    fn publish(&self, observed: &Observed) {
        let present = Arc::new(observed.clone());
        self.present.send_replace(Some(present));
    }
}

#[cfg(test)]
mod tests;
