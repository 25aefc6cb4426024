//! Delivery of events to one receiver, one after the other, and the position up to which that is done.
//!
//! The position is stored a while after it was reached, so events that were told last are told again after a change of the
//! leader; their ids stay.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::attempts::Attempts;
use super::{Queued, QueuedEvent, Webhook};
use crawler_process::retry::Backoff;
use crawler_process::telemetry;
use crawler_store::catalog::{Catalog, encode};
use crawler_store::election::Leadership;
use crawler_store::{Outcome, Revision, StoreError, Txn};

/// Shortest time between two writes of a position.
const SAVE_PAUSE: Duration = Duration::from_secs(5);

/// Position of a webhook, as the store keeps it.
#[derive(Debug, Serialize, Deserialize)]
struct Position {
    /// Revision of the store up to which all events were sent or given up.
    revision: u64,
}

/// Sender of the events of one webhook, for one term of the leader.
pub(super) struct Delivery<'a> {
    webhook: &'a Webhook,
    catalog: &'a Catalog,
    leadership: &'a Leadership,
    /// Number of events that were given up in this term.
    n_dropped: u64,
}

impl<'a> Delivery<'a> {
    pub(super) fn new(
        webhook: &'a Webhook,
        catalog: &'a Catalog,
        leadership: &'a Leadership,
    ) -> Self {
        Self {
            webhook,
            catalog,
            leadership,
            n_dropped: 0,
        }
    }

    /// Returns the stored position; `None` if this webhook has none. Errors of the store are waited out.
    pub(super) async fn position(&self) -> Option<Revision> {
        let key = self.catalog.keys().webhook_position(&self.webhook.name);
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
        loop {
            let error = match self.catalog.read::<Position>(&key).await {
                Ok(position) => return position.map(|found| Revision(found.value.revision)),
                // Without a position the webhook would be silent about what it has missed.
                Err(StoreError::Record { why, .. }) => {
                    tracing::error!(webhook = %self.webhook.name, why, "the position of a webhook does not decode");
                    return Some(Revision(0));
                }
                Err(error) => telemetry::chain(&error),
            };
            tracing::warn!(webhook = %self.webhook.name, error, "the position of a webhook cannot be read");
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    /// Sends what is queued, for ever. It ends if the feed does.
    pub(super) async fn run(mut self, mut queue: mpsc::Receiver<Queued>) {
        let mut reached = None;
        let mut next_save = Instant::now();
        loop {
            // A position waits for its time, unless an event comes first.
            let queued = match reached {
                Some(_) => tokio::time::timeout_at(next_save, queue.recv()).await,
                None => Ok(queue.recv().await),
            };
            match queued {
                Ok(Some(Queued::Event(event))) => self.deliver(event).await,
                Ok(Some(Queued::Reached(position))) => reached = Some(position),
                Ok(None) => return,
                Err(_elapsed) => {}
            }
            if let Some(position) = reached
                && Instant::now() >= next_save
            {
                if self.save(position).await {
                    reached = None;
                }
                next_save = Instant::now() + SAVE_PAUSE;
            }
        }
    }

    /// Sends an event until the receiver takes it, or gives it up.
    async fn deliver(&mut self, event: QueuedEvent) {
        let name = &self.webhook.name;
        let mut attempts = Attempts::new(self.webhook.retries);
        loop {
            if !self.leadership.is_held() {
                // Another master sends it. This term is about to be cancelled.
                return std::future::pending().await;
            }
            let sent = self.webhook.sender.send(&event.id, event.body.clone());
            let Err(error) = sent.await else {
                tracing::debug!(webhook = %name, id = event.id, resource = %event.name, "event sent");
                return;
            };
            let error = telemetry::chain(&error);
            let wait = attempts.failed();
            let n = attempts.n_failures();
            let Some(wait) = wait else {
                self.n_dropped += 1;
                let dropped = self.n_dropped;
                tracing::error!(
                    webhook = %name, id = event.id, resource = %event.name, error, attempts = n, dropped,
                    "an event was given up after as many attempts as max-attempts of the webhook allows"
                );
                return;
            };
            let wait_ms = wait.as_millis();
            // One line for each event that has trouble; further failures differ in nothing.
            match n {
                1 => {
                    tracing::warn!(webhook = %name, id = event.id, resource = %event.name, error, "an event will be sent again");
                }
                _ => {
                    tracing::debug!(webhook = %name, id = event.id, error, attempts = n, wait_ms, "an event will be sent again");
                }
            }
            tokio::time::sleep(wait).await;
        }
    }

    /// Stores a position. Returns false if that is to be tried again.
    async fn save(&self, position: Revision) -> bool {
        let key = self.catalog.keys().webhook_position(&self.webhook.name);
        let record = Position {
            revision: position.0,
        };
        let txn = Txn::new().put(key, encode(&record));
        let store = &**self.catalog.store();
        let error = match self.leadership.commit(store, txn).await {
            Ok(Outcome::Done(_)) => return true,
            Ok(Outcome::Lost(_) | Outcome::Unknown) => "the outcome is not known".to_owned(),
            Err(error) => telemetry::chain(&error),
        };
        tracing::warn!(webhook = %self.webhook.name, error, "the position of a webhook is not stored yet");
        false
    }
}
