//! The way between a node and the store: requests and answers that are late or lost, watches that are late or
//! silent, break, or repeat changes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::fault::Fault;
use super::sky::{Cut, Sky};
use crawler_process::task::{TaskScope, process};
use crawler_store::twin::{Cursor, StoreTwin, entry};
use crawler_store::{
    Entry, LeaseId, Listing, Outcome, Revision, Store, StoreError, Txn, Watch, WatchEvent,
};

/// Time that a node waits for an answer.
const DEADLINE: Duration = Duration::from_secs(3);

/// Way of one node to the store.
#[derive(Clone)]
pub(super) struct Line {
    pub(super) sky: Arc<Sky>,
    pub(super) store: StoreTwin,
    /// Requests that are under way, whatever becomes of their sender.
    pub(super) requests: Arc<TaskScope>,
    /// Label of the node.
    pub(super) label: String,
}

/// Reason why there is no answer.
enum Silence {
    /// The request was not sent.
    Unsent,
    /// The request was sent, and its outcome is unknown.
    Unknown,
}

impl From<Silence> for StoreError {
    fn from(silence: Silence) -> Self {
        let why = match silence {
            Silence::Unsent => "no connection",
            Silence::Unknown => "no answer in time",
        };
        StoreError::Unavailable {
            why: why.to_owned(),
        }
    }
}

impl Line {
    async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&StoreTwin) -> T + Send + 'static,
    ) -> Result<T, Silence> {
        let sky = &self.sky;
        let cut = sky.cut_of(&self.label);
        if cut == Some(Cut::Requests) && sky.chance(40) {
            tokio::time::sleep(sky.millis(1, 50)).await;
            return Err(Silence::Unsent);
        }
        let is_lost = cut == Some(Cut::Requests) || sky.fault(Fault::LostRequest, 2);
        let is_unanswered = cut == Some(Cut::Answers) || sky.fault(Fault::LostAnswer, 2);
        // Now and then a request arrives long after its sender has stopped waiting for it.
        let late = sky.fault(Fault::LateRequest, 1);
        let late = late.then(|| sky.millis(3_000, 15_000));
        let (there, back) = (late.unwrap_or_else(|| sky.way()), sky.way());
        let (answer, answered) = oneshot::channel();
        let (store, line) = (self.store.clone(), self.clone());
        process::outside(|| {
            self.requests.spawn("request to the store", async move {
                tokio::time::sleep(there).await;
                if is_lost {
                    return std::future::pending().await;
                }
                let done = work(&store);
                tokio::time::sleep(back).await;
                if is_unanswered || line.sky.cut_of(&line.label).is_some() {
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
                Err(Silence::Unknown)
            }
            Err(_elapsed) => Err(Silence::Unknown),
        }
    }
}

#[async_trait]
impl Store for Line {
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
            Err(Silence::Unknown) => Ok(Outcome::Unknown),
            Err(Silence::Unsent) => Err(Silence::Unsent.into()),
        }
    }

    async fn watch(&self, prefix: &str, from: Revision) -> Result<Box<dyn Watch>, StoreError> {
        let prefix = prefix.to_owned();
        let cursor = self.ask(move |store| store.cursor(&prefix, from)).await?;
        Ok(Box::new(LineWatch {
            present: self.store.present(),
            changed: self.sky.changed(),
            line: self.clone(),
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

struct LineWatch {
    line: Line,
    cursor: Cursor,
    present: watch::Receiver<Revision>,
    changed: watch::Receiver<()>,
    /// Events that are under way, and the time at which they arrive.
    coming: Option<(Instant, Vec<WatchEvent>)>,
    pending: VecDeque<WatchEvent>,
}

#[async_trait]
impl Watch for LineWatch {
    async fn next(&mut self) -> Result<WatchEvent, StoreError> {
        let sky = self.line.sky.clone();
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Ok(event);
            }
            self.changed.mark_unchanged();
            self.present.mark_unchanged();
            if sky.is_silent(&self.line.label) {
                let _changed = self.changed.changed().await;
                continue;
            }
            if let Some((at, _)) = &self.coming {
                tokio::time::sleep_until(*at).await;
                let (_, events) = self.coming.take().expect("it was there");
                self.pending.extend(events);
                continue;
            }
            let Some(mut events) = self.line.store.next_events(&mut self.cursor) else {
                tokio::select! {
                    biased;
                    _ = self.changed.changed() => {}
                    _ = self.present.changed() => {}
                }
                continue;
            };
            if sky.fault(Fault::BrokenWatch, 2) {
                return Err(Silence::Unsent.into());
            }
            // Changes of one revision have no order among them.
            if sky.is_stormy() && sky.chance(20) && events.len() > 1 {
                sky.occurs(Fault::Reordered);
                events.reverse();
            }
            if sky.fault(Fault::Duplicate, 5) {
                events.extend(events.clone());
            }
            self.coming = Some((Instant::now() + sky.way(), events));
        }
    }
}
