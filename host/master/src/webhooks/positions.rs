//! Positions of webhooks in the store.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::position::Position;
use crawler_model::crawl::UnixMillis;
use crawler_model::id::WebhookName;
use crawler_process::clock::Clock;
use crawler_process::retry::Backoff;
use crawler_process::telemetry;
use crawler_store::catalog::{Catalog, encode};
use crawler_store::election::Leadership;
use crawler_store::{Outcome, StoreError, Txn};

/// Longest time for one write of a position.
const SAVE_TIME: Duration = Duration::from_secs(2);

/// Positions of all webhooks, as one leader writes them.
#[derive(Clone)]
pub(super) struct Positions {
    pub(super) catalog: Catalog,
    pub(super) leadership: Leadership,
    pub(super) clock: Arc<dyn Clock>,
}

/// Position of a webhook, as the store keeps it.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    #[serde(flatten)]
    position: Position,
    /// Time at which a leader had this webhook; 0 in records from before the field existed.
    #[serde(default)]
    seen_at: UnixMillis,
}

impl Positions {
    /// Returns the stored position of a webhook, or `None` if it has none. Errors of the store are waited out.
    pub(super) async fn read(&self, webhook: &WebhookName) -> Option<Position> {
        let key = self.catalog.keys().webhook_position(webhook);
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
        loop {
            let error = match self.catalog.read::<Record>(&key).await {
                Ok(record) => return record.map(|found| found.value.position),
                // Without a position the webhook would be silent about what it has missed.
                Err(StoreError::Record { why, .. }) => {
                    tracing::error!(%webhook, why, "the position of a webhook does not decode");
                    return Some(Position::default());
                }
                Err(error) => telemetry::chain(&error),
            };
            tracing::warn!(%webhook, error, "the position of a webhook cannot be read");
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    /// Stores the position of a webhook. Returns false if that is to be tried again.
    pub(super) async fn save(&self, webhook: &WebhookName, position: &Position) -> bool {
        let key = self.catalog.keys().webhook_position(webhook);
        let record = Record {
            position: position.clone(),
            seen_at: self.clock.unix_millis(),
        };
        let txn = Txn::new().put(key, encode(&record));
        let store = &**self.catalog.store();
        let saved = self.leadership.commit(store, txn);
        let error = match tokio::time::timeout(SAVE_TIME, saved).await {
            Ok(Ok(Outcome::Done(_))) => return true,
            Ok(Ok(Outcome::Lost(_) | Outcome::Unknown)) => "the outcome is not known".to_owned(),
            Ok(Err(error)) => telemetry::chain(&error),
            Err(_elapsed) => "no answer in time".to_owned(),
        };
        tracing::warn!(%webhook, error, "the position of a webhook is not stored yet");
        false
    }
}
