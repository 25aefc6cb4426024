//! History of a resource: the events that the store keeps and, for a reader that follows, those that come.
//!
//! The version of an event is the revision of its write, so a reader can go on at any master. Events of one write happened
//! at once: the last of them has the version, and a reader that is cut off between them gets all of them again. The history
//! is that of one life of a name, and ends with its deletion.

use std::collections::VecDeque;
use std::time::Duration;

use futures::stream::{self, BoxStream, StreamExt as _};

use super::Control;
use crate::ControlError;
use crate::events::sort;
use crawler_model::crawl::UnixMillis;
use crawler_model::event::{Event, EventKind, EventRecord};
use crawler_model::id::{ResourceId, ResourceName};
use crawler_model::resource::Resource;
use crawler_process::telemetry;
use crawler_store::catalog::{Catalog, Versioned, decode};
use crawler_store::{Entry, Revision, StoreError, Watch, WatchEvent};

/// Time without an event after which a reader that follows looks whether the resource is still there: an earlier version
/// tells no deletion.
const LOOK: Duration = Duration::from_secs(15);

/// Events that a reader asks for.
#[derive(Debug, Clone, Copy, Default)]
pub struct EventQuery {
    /// True if the reader wants what happens from now on, too.
    pub follow: bool,
    /// Time before which events are left out, by the clock of the leader that wrote them.
    pub since: Option<UnixMillis>,
    /// Version up to which the reader has all events.
    pub after: Option<u64>,
}

/// Event as a reader is told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToldEvent {
    /// Time at which the leader wrote it.
    pub at: UnixMillis,
    /// The event itself.
    pub event: Event,
    /// Version that the reader knows with this event. If `None`, further events belong to the same version.
    pub version: Option<u64>,
}

/// Events, or an error after which no more come.
type Events = BoxStream<'static, Result<ToldEvent, ControlError>>;

impl Control {
    /// Returns the id of a resource.
    pub async fn resource_id(&self, name: &ResourceName) -> Result<ResourceId, ControlError> {
        Ok(self.existing(name).await?.value.id)
    }

    /// Returns the events of a resource in the order in which they happened. The id is that of the life of the name that
    /// the reader means.
    pub async fn events(
        &self,
        name: &ResourceName,
        id: ResourceId,
        query: EventQuery,
    ) -> Result<Events, ControlError> {
        let catalog = self.parts.catalog.clone();
        let mut history = History {
            catalog: catalog.clone(),
            id,
            since: query.since,
            told: Revision(query.after.unwrap_or_default()),
            ready: VecDeque::new(),
            is_over: false,
        };
        let revision = history.read().await?;
        if !query.follow {
            return Ok(stream::iter(history.ready.into_iter().map(Ok)).boxed());
        }
        let prefix = catalog.keys().events_of(id);
        let follower = Follower {
            watch: catalog.store().watch(&prefix, revision).await?,
            history,
            name: name.clone(),
        };
        let events = stream::unfold(Some(follower), |follower| async {
            let mut follower = follower?;
            match follower.next().await {
                Ok(Some(event)) => Some((Ok(event), Some(follower))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        });
        Ok(events.boxed())
    }
}

/// Events that one reader is still to be told.
struct History {
    catalog: Catalog,
    id: ResourceId,
    since: Option<UnixMillis>,
    /// Revision up to which all events were taken.
    told: Revision,
    ready: VecDeque<ToldEvent>,
    /// True if the last event was taken.
    is_over: bool,
}

impl History {
    /// Takes what the store keeps and was not taken yet. Returns the revision that was read.
    async fn read(&mut self) -> Result<Revision, StoreError> {
        let prefix = self.catalog.keys().events_of(self.id);
        let listing = self.catalog.store().list(&prefix).await?;
        let mut entries = listing.entries;
        sort(&mut entries);
        self.take(entries);
        Ok(listing.revision)
    }

    /// Takes records in order. Those that were taken before are passed over.
    fn take(&mut self, entries: Vec<Entry>) {
        let mut entries = entries.into_iter().peekable();
        while let Some(entry) = entries.next() {
            if entry.revision <= self.told {
                continue;
            }
            let next = entries.peek();
            let is_last = next.is_none_or(|next| next.revision != entry.revision);
            self.take_record(&entry, is_last);
            if is_last {
                self.told = entry.revision;
            }
        }
    }

    /// Takes the events of a record; `is_last` tells that no further record has its revision.
    fn take_record(&mut self, entry: &Entry, is_last: bool) {
        let EventRecord { at, events } = match decode::<EventRecord>(entry) {
            Ok(record) => record.value,
            Err(error) => {
                let error = telemetry::chain(&error);
                tracing::error!(error, "a record of events does not decode and is left out");
                return;
            }
        };
        let is_wanted = self.since.is_none_or(|since| at >= since);
        let n_events = events.len();
        for (n, event) in events.into_iter().enumerate() {
            self.is_over |= event.kind == EventKind::Deleted;
            if is_wanted {
                let has_version = is_last && n + 1 == n_events;
                self.ready.push_back(ToldEvent {
                    at,
                    event,
                    version: has_version.then_some(entry.revision.0),
                });
            }
        }
    }
}

/// Reader that follows.
struct Follower {
    history: History,
    watch: Box<dyn Watch>,
    name: ResourceName,
}

impl Follower {
    /// Waits for the next event. Returns `None` after the last one.
    async fn next(&mut self) -> Result<Option<ToldEvent>, ControlError> {
        loop {
            if let Some(event) = self.history.ready.pop_front() {
                return Ok(Some(event));
            }
            if self.history.is_over {
                return Ok(None);
            }
            let Ok(change) = tokio::time::timeout(LOOK, self.watch.next()).await else {
                self.look().await?;
                continue;
            };
            match change? {
                WatchEvent::Put(entry) => self.history.take(vec![entry]),
                // The oldest events go when there are too many.
                WatchEvent::Delete { .. } => {}
                WatchEvent::StartOver => {
                    self.history.read().await?;
                }
            }
        }
    }

    /// Ends the history if the resource is not there any more.
    async fn look(&mut self) -> Result<(), StoreError> {
        let catalog = self.history.catalog.clone();
        let key = catalog.keys().resource(&self.name);
        let present: Option<Versioned<Resource>> = match catalog.read(&key).await {
            // A later version has written it, so it is there.
            Err(StoreError::Record { .. }) => return Ok(()),
            present => present?,
        };
        if present.is_none_or(|present| present.value.id != self.history.id) {
            self.history.read().await?;
            self.history.is_over = true;
        }
        Ok(())
    }
}
