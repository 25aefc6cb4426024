//! Feed of a webhook that names kinds of events of histories: it sends each of these events as it is, in order.
//!
//! The position is the revision up to which all events were handed over. Events of one write count as sent together. What
//! came while nobody led is in the changes that the store remembers. If the position is older than these, or if changes may
//! have been lost, the events that the store keeps are listed. If there are more of them than are read, the next event says
//! so. Events that were removed because a resource or a node had too many are not noticed then.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;

use super::feed::event_id;
use super::position::Position;
use super::{PastKind, PastWebhookEvent, Queued, QueuedEvent, Webhook};
use crate::control::events::ToldEvent;
use crate::replica::Replica;
use crawler_model::event::EventRecord;
use crawler_model::id::ResourceName;
use crawler_process::retry::Backoff;
use crawler_process::telemetry;
use crawler_store::catalog::{Catalog, decode};
use crawler_store::{Entry, ListingVisitor, Revision, StoreError, Watch, WatchEvent};

/// Time without an event after which all of the last write has come.
const SETTLE_TIME: Duration = Duration::from_secs(1);
/// Largest number of records with wanted events that are listed for a receiver that is behind.
const MAX_MISSED: usize = 1_000;
/// Wait after the first error of the store; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// The longest wait after an error.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Reader of events of histories for one webhook.
pub(super) struct HistoryFeed {
    webhook: Webhook,
    /// Id of the store that events are of.
    store_id: String,
    catalog: Catalog,
    replica: Replica,
    queue: mpsc::Sender<Queued>,
    /// Room for the bytes of events that wait.
    room: Arc<Semaphore>,
    /// Position once all that was handed over is sent.
    reached: Revision,
    /// Revision of the last record that was looked at.
    last: Revision,
    /// True if events before the next one may be missing.
    resync: bool,
    /// True if the store may not tell all changes since the position, so that events are listed.
    is_to_list: bool,
}

/// Reason why a feed goes no further for now.
enum Stop {
    /// The delivery takes no events any more.
    Closed,
    Store(StoreError),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl HistoryFeed {
    /// Creates a feed that goes on from this position in the store with this id.
    pub(super) fn new(
        (webhook, store_id): (Webhook, String),
        (catalog, replica): (Catalog, Replica),
        position: Position,
        queue: mpsc::Sender<Queued>,
    ) -> Self {
        Self {
            room: Arc::new(Semaphore::new(webhook.max_queued as usize)),
            webhook,
            store_id,
            catalog,
            replica,
            queue,
            reached: position.revision(),
            last: position.revision(),
            resync: false,
            // Of what such a position has missed, the first events may have gone.
            is_to_list: position.revision() == Revision::default(),
        }
    }

    /// Hands events over. It ends when the delivery does.
    pub(super) async fn run(mut self) {
        let mut backoff = Backoff::new(FIRST_WAIT, MAX_WAIT);
        loop {
            let began = Instant::now();
            let error = match self.follow().await {
                Ok(()) => continue,
                Err(Stop::Closed) => return,
                Err(Stop::Store(error)) => telemetry::chain(&error),
            };
            let webhook = &self.webhook.name;
            tracing::warn!(%webhook, error, "events of histories cannot be read for a webhook");
            if began.elapsed() > MAX_WAIT {
                backoff.reset();
            }
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    /// Hands over what was missed and what comes. Returns when the watch has missed something.
    async fn follow(&mut self) -> Result<(), Stop> {
        let store = Arc::clone(self.catalog.store());
        let prefix = self.catalog.keys().events();
        // Of the last write, some records may not have come before an error. Those that have are sent again, under their ids.
        let mut watch = match self.is_to_list {
            false => store.watch(&prefix, self.reached).await?,
            true => self.list(&prefix).await?,
        };
        loop {
            let settled = self.reached >= self.last;
            let event = tokio::select! {
                biased;
                event = watch.next() => event?,
                () = tokio::time::sleep(SETTLE_TIME), if !settled => {
                    self.reach(self.last).await?;
                    continue;
                }
            };
            match event {
                WatchEvent::Put(entry) => self.take(&entry).await?,
                // The oldest events go when there are too many.
                WatchEvent::Delete { .. } => {}
                WatchEvent::StartOver => {
                    self.is_to_list = true;
                    return Ok(());
                }
            }
        }
    }

    /// Hands over what was missed, as far as the store keeps it. Returns a watch of what comes after that.
    async fn list(&mut self, prefix: &str) -> Result<Box<dyn Watch>, Stop> {
        let store = Arc::clone(self.catalog.store());
        let mut missed = Missed {
            after: self.reached,
            wanted: &self.webhook.filter.history,
            by_write: BTreeMap::new(),
            has_more: false,
        };
        let revision = store.list_into(prefix, &mut missed).await?;
        let Missed {
            by_write, has_more, ..
        } = missed;
        self.resync |= has_more || self.reached == Revision::default();
        let watch = store.watch(prefix, revision).await?;
        for entry in by_write.into_values() {
            self.take(&entry).await?;
        }
        self.reach(revision).await?;
        self.is_to_list = false;
        Ok(watch)
    }

    /// Tells the delivery that all events up to a revision were handed over.
    async fn reach(&mut self, revision: Revision) -> Result<(), Stop> {
        self.reached = self.reached.max(revision);
        self.last = self.last.max(revision);
        let reached = Queued::Reached(Position::at(self.reached));
        self.queue.send(reached).await.map_err(|_| Stop::Closed)
    }

    /// Hands over the events of a record that are wanted.
    async fn take(&mut self, entry: &Entry) -> Result<(), Stop> {
        // Further records of the same write may follow.
        let before = Revision(entry.revision.0.saturating_sub(1));
        self.reached = self.reached.max(before);
        self.last = self.last.max(entry.revision);
        let EventRecord { at, events } = match decode::<EventRecord>(entry) {
            Ok(record) => record.value,
            Err(error) => {
                let error = telemetry::chain(&error);
                tracing::error!(error, "a record of events does not decode and is left out");
                return Ok(());
            }
        };
        let is_wanted = |kind| self.webhook.filter.history.contains(kind);
        if !events.iter().any(|event| is_wanted(&event.kind)) {
            return Ok(());
        }
        let keys = self.catalog.keys();
        let node = keys.parse_node_event(&entry.key);
        let name = match &node {
            Some(_) => None,
            None => match self.resource(entry).await {
                Some(name) if self.webhook.filter.is_about(&name) => Some(name),
                // It is another one, or has been deleted since.
                Some(_) | None => return Ok(()),
            },
        };
        for (n, event) in events.into_iter().enumerate() {
            if !self.webhook.filter.history.contains(&event.kind) {
                continue;
            }
            let told = ToldEvent {
                at,
                event,
                version: None,
                node: node.clone(),
            };
            let (store_id, key) = (&self.store_id, &entry.key);
            let event = PastWebhookEvent {
                id: event_id(&format!("{store_id}\n{key}\n{n}")),
                name: name.clone(),
                told,
                resync: std::mem::take(&mut self.resync),
            };
            self.hand_over(event).await?;
        }
        Ok(())
    }

    /// Returns the name of the resource that a record is about, if it is still there.
    async fn resource(&self, entry: &Entry) -> Option<ResourceName> {
        let id = self.catalog.keys().parse_event(&entry.key)?;
        self.replica.reaches(entry.revision).await;
        let observed = self.replica.latest()?;
        if let Some((_, shard)) = observed.shards_of(id).next() {
            return Some(shard.value.resource.clone());
        }
        if !observed.has_shards(id) {
            return None;
        }
        // A later version has written its shards.
        let mut resources = observed.resources.iter();
        let found = resources.find(|(_, resource)| resource.value.id == id);
        found.map(|(name, _)| name.clone())
    }

    /// Puts an event into the queue once there is room.
    async fn hand_over(&self, event: PastWebhookEvent) -> Result<(), Stop> {
        let body = self.webhook.sender.past_body(&event);
        let max = self.webhook.max_queued;
        let n_bytes = u32::try_from(body.len()).unwrap_or(u32::MAX).min(max);
        let room = Arc::clone(&self.room).acquire_many_owned(n_bytes).await;
        let name = event.name.map(|name| name.to_string());
        let node = event.told.node.map(|node| node.to_string());
        let event = QueuedEvent {
            id: event.id,
            about: name.or(node).unwrap_or_default(),
            body,
            after: Position::at(self.reached),
            _room: room.expect("the semaphore is never closed"),
        };
        let sent = self.queue.send(Queued::Event(event)).await;
        sent.map_err(|_| Stop::Closed)
    }
}

/// The newest records of a listing after a revision that have wanted events, in the order in which they were written.
struct Missed<'a> {
    after: Revision,
    /// Kinds of the wanted events.
    wanted: &'a [PastKind],
    by_write: BTreeMap<(Revision, String), Entry>,
    /// True if there were more.
    has_more: bool,
}

impl Missed<'_> {
    /// Returns true if a record has a wanted event, or does not decode, which is logged when it is taken.
    fn is_wanted(&self, entry: &Entry) -> bool {
        let Ok(record) = decode::<EventRecord>(entry) else {
            return true;
        };
        let events = record.value.events;
        events.iter().any(|event| self.wanted.contains(&event.kind))
    }
}

impl ListingVisitor for Missed<'_> {
    fn begin(&mut self) {
        self.by_write.clear();
        self.has_more = false;
    }

    fn entry(&mut self, entry: Entry) {
        if entry.revision <= self.after || !self.is_wanted(&entry) {
            return;
        }
        self.by_write
            .insert((entry.revision, entry.key.clone()), entry);
        if self.by_write.len() > MAX_MISSED {
            self.by_write.pop_first();
            self.has_more = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::event::Event;
    use crawler_store::catalog::encode;

    fn entry(n: u64, kind: PastKind) -> Entry {
        let events = vec![Event::of_node(kind)];
        let record = EventRecord { at: 7, events };
        Entry {
            key: format!("events/node/worker-1/{n}"),
            value: encode(&record),
            revision: Revision(n),
            created: Revision(n),
        }
    }

    #[test]
    fn only_wanted_events_count_as_missed() {
        let mut missed = Missed {
            after: Revision(1),
            wanted: &[PastKind::Lost],
            by_write: BTreeMap::new(),
            has_more: false,
        };
        missed.begin();
        missed.entry(entry(1, PastKind::Lost));
        missed.entry(entry(2, PastKind::Lost));
        for n in 0..2 * MAX_MISSED as u64 {
            missed.entry(entry(3 + n, PastKind::Shards));
        }
        assert_eq!((missed.by_write.len(), missed.has_more), (1, false));
        for n in 0..MAX_MISSED as u64 {
            missed.entry(entry(10_000 + n, PastKind::Lost));
        }
        assert_eq!((missed.by_write.len(), missed.has_more), (MAX_MISSED, true));
    }
}
