//! Positions of webhooks in the store, and their end.
//!
//! A webhook that is taken out of the config file leaves a position. Masters may have other files for a while, so the
//! position goes only when no leader has had the webhook for long.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::position::Position;
use crate::replica::Replica;
use crawler_model::crawl::UnixMillis;
use crawler_model::id::WebhookName;
use crawler_process::clock::Clock;
use crawler_process::retry::Backoff;
use crawler_process::telemetry;
use crawler_store::catalog::{Catalog, decode, encode};
use crawler_store::election::Leadership;
use crawler_store::store_id::store_id;
use crawler_store::{Guard, Outcome, Revision, StoreError, Txn};

/// Time for which a position is kept that no leader has a webhook for.
const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Age from which on the position of a webhook that has nothing to tell is stored anew.
const RENEWED: Duration = Duration::from_secs(24 * 60 * 60);
/// Time between two looks at all positions.
const LOOK_INTERVAL: Duration = Duration::from_secs(60 * 60);
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
    /// Returns the position from which on a webhook goes on, once the replica has all that was written before it was stored.
    /// A webhook that has none begins with what happens from now on; its position is stored before it tells anything. Writes
    /// of which only a part is known are not in it.
    pub(super) async fn begin(&self, webhook: &WebhookName, replica: &mut Replica) -> Position {
        let Some((position, stored_at)) = self.read(webhook).await else {
            let observed = replica.followed().await;
            let first = Position::at(observed.settled);
            self.save_at_last(webhook, &first).await;
            // With this write it is known that those before it are complete.
            replica.settled(observed.revision).await;
            let position = Position::at(observed.revision);
            self.save_at_last(webhook, &position).await;
            return position;
        };
        if position.revision() >= stored_at {
            tracing::error!(%webhook, "the position of a webhook is of another store; all resources are sent");
            return Position::default();
        }
        // A state that is behind would look like that of a store that was set back.
        replica.reaches(stored_at).await;
        position
    }

    /// Returns the id of the store. Errors of the store are waited out.
    pub(super) async fn store_id(&self, webhook: &WebhookName) -> String {
        let mut backoff = store_backoff();
        loop {
            let error = match store_id(&self.catalog).await {
                Ok(id) => return id,
                Err(error) => telemetry::chain(&error),
            };
            tracing::warn!(%webhook, error, "the id of the store cannot be read for a webhook");
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    /// Returns the stored position of a webhook and the revision of its write, or `None` if it has none. Errors of the store
    /// are waited out.
    async fn read(&self, webhook: &WebhookName) -> Option<(Position, Revision)> {
        let key = self.catalog.keys().webhook_position(webhook);
        let mut backoff = store_backoff();
        loop {
            let error = match self.catalog.read::<Record>(&key).await {
                Ok(record) => return record.map(|found| (found.value.position, found.revision)),
                // Without a position the webhook would be silent about what it has missed.
                Err(StoreError::Record { why, .. }) => {
                    tracing::error!(%webhook, why, "the position of a webhook does not decode");
                    let first_write = Revision(1);
                    return Some((Position::default(), first_write));
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

    /// Stores the position of a webhook. Errors of the store are waited out.
    async fn save_at_last(&self, webhook: &WebhookName, position: &Position) {
        let mut backoff = store_backoff();
        while !self.save(webhook, position).await {
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    /// Looks after the positions of all webhooks, again and again. This leader has those with the given names.
    pub(super) async fn look_after(&self, own: &BTreeSet<&WebhookName>) {
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            if let Err(error) = self.look(own).await {
                let error = telemetry::chain(&error);
                tracing::warn!(error, "the positions of webhooks cannot be looked after");
            }
        }
    }

    async fn look(&self, own: &BTreeSet<&WebhookName>) -> Result<(), StoreError> {
        let prefix = self.catalog.keys().webhook_positions();
        let own: BTreeSet<&str> = own.iter().map(|name| name.as_str()).collect();
        for entry in self.catalog.store().list(&prefix).await?.entries {
            let name = entry.key.strip_prefix(&prefix).unwrap_or_default();
            let name = name.to_owned();
            let now = self.clock.unix_millis();
            let is_own = own.contains(name.as_str());
            let record = match decode::<Record>(&entry) {
                Ok(found) => found.value,
                // A later version may have written it, whose leaders still need it.
                Err(error) => {
                    let error = telemetry::chain(&error);
                    tracing::error!(
                        webhook = name,
                        error,
                        "the position of a webhook does not decode"
                    );
                    continue;
                }
            };
            let fate = Fate::of(is_own, record.seen_at, now);
            // Whoever has stored the position meanwhile has the webhook.
            let (key, revision) = (entry.key, entry.revision);
            let txn = Txn::new().guard(Guard::RevisionIs(key.clone(), revision));
            let txn = match fate {
                Fate::Stays => continue,
                Fate::Renewed => {
                    let record = Record {
                        seen_at: now,
                        ..record
                    };
                    txn.put(key, encode(&record))
                }
                Fate::Goes => txn.delete(key),
            };
            let store = &**self.catalog.store();
            let outcome = self.leadership.commit(store, txn).await?;
            if fate == Fate::Goes && matches!(outcome, Outcome::Done(_)) {
                tracing::info!(
                    webhook = name,
                    "removed the position of a webhook that no leader has had for long"
                );
            }
        }
        Ok(())
    }
}

fn store_backoff() -> Backoff {
    Backoff::new(Duration::from_millis(100), Duration::from_secs(5))
}

/// Future of a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It stays as it is.
    Stays,
    /// It is stored anew, with the present time.
    Renewed,
    /// It is removed.
    Goes,
}

impl Fate {
    /// Returns the fate of a position, given whether this leader has the webhook and when a leader last had it.
    fn of(is_own: bool, seen_at: UnixMillis, now: UnixMillis) -> Self {
        let age = Duration::from_millis(now.saturating_sub(seen_at));
        match is_own {
            true if age >= RENEWED => Fate::Renewed,
            true => Fate::Stays,
            // An earlier version has stored it, so its age counts from now on.
            false if seen_at == 0 => Fate::Renewed,
            false if age >= KEPT => Fate::Goes,
            false => Fate::Stays,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crawler_store::election::take_lead;
    use crawler_store::keys::Keys;
    use crawler_store::twin::StoreTwin;

    const DAY: u64 = 24 * 60 * 60;

    /// Clock that is set by hand, in seconds.
    #[derive(Default)]
    struct SetClock(AtomicU64);

    impl Clock for SetClock {
        fn unix_nanos(&self) -> u64 {
            self.0.load(Ordering::Relaxed) * 1_000_000_000
        }
    }

    /// Returns the positions of a leader, and its clock.
    async fn of_leader() -> (Positions, Arc<SetClock>) {
        let catalog = Catalog::new(Arc::new(StoreTwin::new()), Keys::default());
        let election_status = take_lead(&catalog).await;
        let leadership = election_status.borrow().leadership().cloned();
        let clock = Arc::<SetClock>::default();
        let positions = Positions {
            catalog,
            leadership: leadership.unwrap(),
            clock: clock.clone(),
        };
        (positions, clock)
    }

    #[tokio::test]
    async fn a_position_that_does_not_decode_stays_as_it_is() {
        let (positions, clock) = of_leader().await;
        let catalog = positions.catalog.clone();
        let [own, later] = ["own", "later"].map(|name| name.parse().unwrap());
        let key = |name: &WebhookName| catalog.keys().webhook_position(name);
        for name in [&own, &later] {
            let txn = Txn::new().put(key(name), "?");
            catalog.store().commit(txn).await.unwrap();
        }
        for day in [1, 30, 31, 62] {
            clock.0.store(day * DAY, Ordering::Relaxed);
            positions.look(&[&own].into()).await.unwrap();
            for name in [&own, &later] {
                let found = catalog.store().get(&key(name)).await.unwrap();
                assert_eq!(found.unwrap().value, "?", "{name} on day {day}");
            }
        }
    }

    #[tokio::test]
    async fn a_position_goes_when_no_leader_has_had_its_webhook_for_long() {
        let (positions, clock) = of_leader().await;
        let catalog = positions.catalog.clone();
        let [own, gone, old] = ["own", "gone", "old"].map(|name| name.parse().unwrap());
        clock.0.store(DAY, Ordering::Relaxed);
        let position = Position::at(Revision(7));
        for name in [&own, &gone] {
            assert!(positions.save(name, &position).await);
        }
        let key = catalog.keys().webhook_position(&old);
        let of_earlier_version = Txn::new().put(key, r#"{"revision":7}"#);
        catalog.store().commit(of_earlier_version).await.unwrap();
        for (day, there) in [
            (2, [true, true, true]),
            (30, [true, true, true]),
            (31, [true, false, true]),
            (32, [true, false, false]),
        ] {
            clock.0.store(day * DAY, Ordering::Relaxed);
            positions.look(&[&own].into()).await.unwrap();
            for (name, is_there) in [&own, &gone, &old].into_iter().zip(there) {
                let expected = is_there.then_some(&position);
                let found = positions.read(name).await;
                let found = found.as_ref().map(|(position, _)| position);
                assert_eq!(found, expected, "{name} on day {day}");
            }
        }
    }
}
