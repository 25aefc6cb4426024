//! History of a resource or of nodes: the events that the store keeps and, for a reader that follows, those that come.
//!
//! The version of an event is the revision of its write, so a reader can go on at any master. Events of one write happened
//! at once: the last of them has the version, and a reader that is cut off between them gets all of them again. The history
//! of a resource is that of one life of its name, and ends with its deletion. That of a node has no end.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use futures::stream::{self, BoxStream, StreamExt as _};

use super::Control;
use crate::ControlError;
use crawler_model::crawl::UnixMillis;
use crawler_model::event::{Event, EventKind, EventRecord};
use crawler_model::id::{NodeId, ResourceId, ResourceName};
use crawler_model::node::Role;
use crawler_model::resource::Resource;
use crawler_process::telemetry;
use crawler_store::catalog::{Catalog, Versioned, decode};
use crawler_store::{Entry, ListingVisitor, Revision, StoreError, Watch, WatchEvent};

/// Time without an event after which a reader that follows looks whether the resource is still there: an earlier version
/// tells no deletion.
const LOOK: Duration = Duration::from_secs(15);
/// Largest number of records that a reader is told at first, the newest. A resource and a node have fewer; all nodes together
/// may have more.
const MAX_RECORDS: usize = 2_000;

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
    /// Node that it is about. `None` if it is about a resource.
    pub node: Option<NodeId>,
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
        let keys = self.parts.catalog.keys();
        let subject = (keys.events_of(id), Some((name.clone(), id)));
        self.events_below(subject, query).await
    }

    /// Returns the events of a node, or of all nodes, in the order in which they happened.
    pub async fn node_history(
        &self,
        node: Option<&NodeId>,
        query: EventQuery,
    ) -> Result<Events, ControlError> {
        let keys = self.parts.catalog.keys();
        let Some(id) = node else {
            return self.events_below((keys.node_events(), None), query).await;
        };
        let present = [Role::Master, Role::Worker].map(|role| keys.node(role, id));
        let [master, worker] = &present;
        for key in [&keys.told_node(id), master, worker] {
            if self.parts.catalog.store().get(key).await?.is_some() {
                return self
                    .events_below((keys.node_events_of(id), None), query)
                    .await;
            }
        }
        Err(ControlError::NoNode { id: id.to_string() })
    }

    /// Returns the events below a prefix. They end with the resource, if they are those of one.
    async fn events_below(
        &self,
        (prefix, resource): (String, Option<(ResourceName, ResourceId)>),
        query: EventQuery,
    ) -> Result<Events, ControlError> {
        let catalog = self.parts.catalog.clone();
        let mut history = History {
            catalog: catalog.clone(),
            prefix: prefix.clone(),
            since: query.since,
            told: Revision(query.after.unwrap_or_default()),
            ready: VecDeque::new(),
            is_over: false,
        };
        let revision = history.read().await?;
        if !query.follow {
            return Ok(stream::iter(history.ready.into_iter().map(Ok)).boxed());
        }
        let follower = Follower {
            watch: catalog.store().watch(&prefix, revision).await?,
            history,
            resource,
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
    /// Prefix of the keys of the events.
    prefix: String,
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
        let mut newest = Newest {
            told: self.told,
            by_write: BTreeMap::new(),
        };
        let store = self.catalog.store();
        let revision = store.list_into(&self.prefix, &mut newest).await?;
        self.take(newest.by_write.into_values().collect());
        Ok(revision)
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
                    node: self.catalog.keys().parse_node_event(&entry.key),
                });
            }
        }
    }
}

/// The newest records of a listing that were not told yet, in the order in which they were written. Those of one write, as a
/// restored backup has them, are in the order of their times.
struct Newest {
    told: Revision,
    by_write: BTreeMap<(Revision, String), Entry>,
}

impl ListingVisitor for Newest {
    fn begin(&mut self) {
        self.by_write.clear();
    }

    fn entry(&mut self, entry: Entry) {
        if entry.revision <= self.told {
            return;
        }
        self.by_write
            .insert((entry.revision, entry.key.clone()), entry);
        if self.by_write.len() > MAX_RECORDS {
            self.by_write.pop_first();
        }
    }
}

/// Reader that follows.
struct Follower {
    history: History,
    watch: Box<dyn Watch>,
    /// Resource whose history it is, and with which it ends.
    resource: Option<(ResourceName, ResourceId)>,
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
        let Some((name, id)) = &self.resource else {
            return Ok(());
        };
        let catalog = self.history.catalog.clone();
        let key = catalog.keys().resource(name);
        let present: Option<Versioned<Resource>> = match catalog.read(&key).await {
            // A later version has written it, so it is there.
            Err(StoreError::Record { .. }) => return Ok(()),
            present => present?,
        };
        if present.is_none_or(|present| present.value.id != *id) {
            self.history.read().await?;
            self.history.is_over = true;
        }
        Ok(())
    }
}
