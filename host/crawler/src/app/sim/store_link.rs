//! The way between a node and the store: requests and answers that are late or lost, watches that are late or
//! silent, break, or repeat changes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::fault::Fault;
use super::world::{Partition, SimWorld};
use crawler_process::task::{TaskScope, process};
use crawler_store::twin::{Cursor, StoreTwin, entry};
use crawler_store::{
    Entry, LeaseId, Listing, Outcome, Revision, Store, StoreError, Txn, Watch, WatchEvent,
};

/// Time that a node waits for an answer.
const DEADLINE: Duration = Duration::from_secs(3);

/// Way of one node to the store.
#[derive(Clone)]
pub(super) struct StoreLink {
    pub(super) world: Arc<SimWorld>,
    pub(super) store: StoreTwin,
    /// Requests that are under way, whatever becomes of their sender.
    pub(super) requests: Arc<TaskScope>,
    /// Label of the node.
    pub(super) label: String,
}

/// Reason why there is no answer.
enum NoAnswer {
    /// The request was not sent.
    Unsent,
    /// The request was sent, and its outcome is unknown.
    Unknown,
}

impl From<NoAnswer> for StoreError {
    fn from(silence: NoAnswer) -> Self {
        let why = match silence {
            NoAnswer::Unsent => "no connection",
            NoAnswer::Unknown => "no answer in time",
        };
        StoreError::Unavailable {
            why: why.to_owned(),
        }
    }
}

impl StoreLink {
    async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&StoreTwin) -> T + Send + 'static,
    ) -> Result<T, NoAnswer> {
        let world = &self.world;
        let cut = world.cut_of(&self.label);
        if cut == Some(Partition::Requests) && world.chance(40) {
            tokio::time::sleep(world.millis(1, 50)).await;
            return Err(NoAnswer::Unsent);
        }
        let is_lost = cut == Some(Partition::Requests) || world.fault(Fault::LostRequest, 2);
        let is_unanswered = cut == Some(Partition::Answers) || world.fault(Fault::LostAnswer, 2);
        // Now and then a request arrives long after its sender has stopped waiting for it.
        let late = world.fault(Fault::LateRequest, 1);
        let late = late.then(|| world.millis(3_000, 15_000));
        let (there, back) = (late.unwrap_or_else(|| world.way()), world.way());
        let (answer, answered) = oneshot::channel();
        let (store, link) = (self.store.clone(), self.clone());
        process::outside(|| {
            self.requests.spawn("request to the store", async move {
                tokio::time::sleep(there).await;
                if is_lost {
                    return std::future::pending().await;
                }
                let done = work(&store);
                tokio::time::sleep(back).await;
                if is_unanswered || link.world.cut_of(&link.label).is_some() {
                    return;
                }
                let _nobody_waits = answer.send(done);
            });
        });
        let deadline = Instant::now() + DEADLINE;
        match tokio::time::timeout_at(deadline, answered).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(_)) => {
                tokio::time::sleep_until(deadline).await;
                Err(NoAnswer::Unknown)
            }
            Err(_elapsed) => Err(NoAnswer::Unknown),
        }
    }
}

#[async_trait]
impl Store for StoreLink {
    async fn get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        let key = key.to_owned();
        let asked = self.ask(move |store| {
            store.inspect(|entries| entries.get(&key).map(|stored| entry(&key, stored)))
        });
        Ok(asked.await?)
    }

    async fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
        let prefix = prefix.to_owned();
        Ok(self.ask(move |store| store.listing(&prefix)).await?)
    }

    async fn commit(&self, txn: Txn) -> Result<Outcome, StoreError> {
        let label = self.label.clone();
        match self.ask(move |store| store.apply(&label, txn)).await {
            Ok(outcome) => outcome,
            Err(NoAnswer::Unknown) => Ok(Outcome::Unknown),
            Err(NoAnswer::Unsent) => Err(NoAnswer::Unsent.into()),
        }
    }

    async fn watch(&self, prefix: &str, from: Revision) -> Result<Box<dyn Watch>, StoreError> {
        let prefix = prefix.to_owned();
        let cursor = self.ask(move |store| store.cursor(&prefix, from)).await?;
        Ok(Box::new(StoreLinkWatch {
            present: self.store.present(),
            changed: self.world.changed(),
            link: self.clone(),
            cursor,
            coming: None,
            pending: VecDeque::new(),
        }))
    }

    async fn grant_lease(&self, ttl: Duration) -> Result<LeaseId, StoreError> {
        Ok(self.ask(move |store| store.grant(ttl)).await?)
    }

    async fn renew_lease(&self, lease: LeaseId) -> Result<(), StoreError> {
        self.ask(move |store| store.renew(lease)).await?
    }

    async fn revoke_lease(&self, lease: LeaseId) -> Result<(), StoreError> {
        let label = self.label.clone();
        Ok(self.ask(move |store| store.revoke(&label, lease)).await?)
    }

    async fn compact(&self, keep: u64) -> Result<(), StoreError> {
        Ok(self.ask(move |store| store.forget(keep)).await?)
    }
}

struct StoreLinkWatch {
    link: StoreLink,
    cursor: Cursor,
    present: watch::Receiver<Revision>,
    changed: watch::Receiver<()>,
    /// Events that are under way, and the time at which they arrive.
    coming: Option<(Instant, Vec<WatchEvent>)>,
    pending: VecDeque<WatchEvent>,
}

#[async_trait]
impl Watch for StoreLinkWatch {
    async fn next(&mut self) -> Result<WatchEvent, StoreError> {
        let world = self.link.world.clone();
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Ok(event);
            }
            self.changed.mark_unchanged();
            self.present.mark_unchanged();
            if world.is_silent(&self.link.label) {
                let _changed = self.changed.changed().await;
                continue;
            }
            if let Some((at, _)) = &self.coming {
                tokio::time::sleep_until(*at).await;
                let (_, events) = self.coming.take().expect("it was there");
                self.pending.extend(events);
                continue;
            }
            let Some(mut events) = self.link.store.next_events(&mut self.cursor) else {
                tokio::select! {
                    biased;
                    _ = self.changed.changed() => {}
                    _ = self.present.changed() => {}
                }
                continue;
            };
            if world.fault(Fault::BrokenWatch, 2) {
                return Err(NoAnswer::Unsent.into());
            }
            // Changes of one revision have no order among them.
            if world.injects_faults() && world.chance(20) && events.len() > 1 {
                world.occurs(Fault::Reordered);
                events.reverse();
            }
            if world.fault(Fault::Duplicate, 5) {
                events.extend(events.clone());
            }
            self.coming = Some((Instant::now() + world.way(), events));
        }
    }
}
