//! Watch of resources: their present state, and then what changes, for one reader.
//!
//! The reader knows the state up to a change. Resources that changed later are found in the log of the replica, and each is
//! sent in its present state: a slow reader gets the last state of a resource, and none in between. Nothing is kept for it
//! but the names of one look, which has a bound. A reader that the log does not reach back to, because it is far too slow or
//! comes back late, begins anew.
//!
//! The version of an event is a revision up to which all writes are included, so a reader can go on at another master. It may
//! get again what it has: further writes of one revision may arrive after the first ones.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

use futures::stream::{self, BoxStream, StreamExt as _};
use tokio::time::Instant;

use super::Control;
use super::reads::view;
use crate::observed::{Change, Observed};
use crate::replica::Replica;
use crate::{ControlError, ResourceView};
use crawler_model::access::Grants;
use crawler_model::id::ResourceName;
use crawler_model::resource::Resource;
use crawler_store::Revision;
use crawler_store::catalog::Versioned;

/// Time without an event after which a heartbeat tells that the stream lives.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Shortest time between two looks for changes, so that those of a busy moment are told together.
const PAUSE: Duration = Duration::from_millis(200);
/// Time that a master waits to see a write of which the reader knows from another master.
const PATIENCE: Duration = Duration::from_secs(2);
/// Largest number of changes that one look takes.
const LOOK_MAX: usize = 100;

/// Reader of a watch, and the resources that it is told of.
#[derive(Debug, Clone, Default)]
pub struct WatchQuery {
    /// Beginning of the names.
    pub name_prefix: String,
    /// Version that the reader knows. If `None`, it knows nothing.
    pub after: Option<u64>,
    /// Names that the reader may see.
    pub grants: Grants,
}

/// Event of a watch.
#[derive(Debug, Clone)]
pub struct ResourceEvent {
    /// Change that the reader is told of.
    pub change: ResourceChange,
    /// Version that the reader knows with this event. If `None`, further events belong to the same version.
    pub version: Option<u64>,
}

/// Content of an event.
#[derive(Debug, Clone)]
pub enum ResourceChange {
    /// Start anew: what the reader was told before counts no more, and all resources follow.
    Begin,
    /// A resource that is new to the reader.
    Added(Box<ResourceView>),
    /// A resource in its present state.
    Changed(Box<ResourceView>),
    /// A resource that is not there any more.
    Deleted(ResourceName),
    /// The reader knows the present state.
    Complete,
    /// Nothing has changed for a while.
    Heartbeat,
}

impl Control {
    /// Returns events: the resources that are there, or those that have changed since the version of the query, and then
    /// changes. Numbers are those that workers have stored last. The stream ends with an error when the store cannot be
    /// followed.
    pub fn resource_events(
        &self,
        query: WatchQuery,
    ) -> BoxStream<'static, Result<ResourceEvent, ControlError>> {
        let watch = ResourceWatch::new(self.parts.replica.clone(), query);
        let events = stream::unfold(watch, |mut watch| async move {
            let event = watch.next().await;
            Some((event, watch))
        });
        events.boxed()
    }
}

/// State of a watch.
struct ResourceWatch {
    replica: Replica,
    query: WatchQuery,
    stage: Stage,
    /// Number of the change up to which the reader knows everything once the changes below are sent.
    seen: u64,
    /// Number of the change before the first look that is not complete: later resources are new to the reader.
    known: u64,
    /// Revision that the reader knows once the changes below are sent, or `None` if another look follows.
    version: Option<Revision>,
    /// Changes that are not sent yet, the last first.
    changed: Vec<Change>,
    /// True if the end of what a reader that came back has missed is to be sent.
    is_completing: bool,
    /// Time of the next look.
    next_look: Instant,
    /// Time of the next heartbeat.
    next_beat: Instant,
}

/// Stage of a watch.
enum Stage {
    /// Nothing has been looked at.
    Opening,
    /// The resources that are there are sent, those up to this name already.
    Listing(Option<ResourceName>),
    /// Changes are sent.
    Following,
}

impl ResourceWatch {
    fn new(replica: Replica, query: WatchQuery) -> Self {
        Self {
            replica,
            query,
            stage: Stage::Opening,
            seen: 0,
            known: 0,
            version: None,
            changed: Vec::new(),
            is_completing: false,
            next_look: Instant::now(),
            next_beat: Instant::now() + HEARTBEAT,
        }
    }

    /// Waits for the next event.
    async fn next(&mut self) -> Result<ResourceEvent, ControlError> {
        let event = loop {
            let event = match &self.stage {
                Stage::Opening => self.open().await?,
                Stage::Listing(after) => {
                    let after = after.clone();
                    Some(self.list(after).await)
                }
                Stage::Following => self.follow().await?,
            };
            if let Some(event) = event {
                break event;
            }
        };
        self.next_beat = Instant::now() + HEARTBEAT;
        Ok(event)
    }

    /// Goes on from the version of the query, or begins anew.
    async fn open(&mut self) -> Result<Option<ResourceEvent>, ControlError> {
        let after = self.query.after.map(Revision);
        let ready = self.replica.reaches(after.unwrap_or_default());
        // A version of a store that was set back is never reached.
        let _is_in_time = tokio::time::timeout(PATIENCE, ready).await;
        if !self.replica.is_followed() {
            return Err(ControlError::NotFollowing);
        }
        let observed = self.replica.after(None).await;
        let Some(number) = after.and_then(|after| observed.goes_on_from(after)) else {
            return Ok(Some(self.begin(&observed)));
        };
        self.stage = Stage::Following;
        self.seen = number;
        self.known = number;
        self.is_completing = true;
        self.look(&observed);
        Ok(None)
    }

    /// Begins anew with the present state.
    fn begin(&mut self, observed: &Observed) -> ResourceEvent {
        self.seen = observed.log.last();
        self.version = Some(observed.settled);
        self.changed.clear();
        self.is_completing = false;
        self.stage = Stage::Listing(None);
        ResourceEvent {
            change: ResourceChange::Begin,
            version: Some(0),
        }
    }

    /// Sends the next resource that is there. What changes meanwhile is sent again afterwards.
    async fn list(&mut self, after: Option<ResourceName>) -> ResourceEvent {
        let observed = self.replica.after(None).await;
        let first = match &after {
            Some(after) => Bound::Excluded(after.clone()),
            None => Bound::Unbounded,
        };
        let mut names = observed.resources.range((first, Bound::Unbounded));
        let Some((name, resource)) = names.find(|(name, _)| self.is_meant(name)) else {
            self.stage = Stage::Following;
            return self.told(ResourceChange::Complete);
        };
        self.stage = Stage::Listing(Some(name.clone()));
        ResourceEvent {
            change: ResourceChange::Added(Box::new(observed_view(&observed, resource))),
            version: None,
        }
    }

    async fn follow(&mut self) -> Result<Option<ResourceEvent>, ControlError> {
        if let Some(Change { name, added, .. }) = self.changed.pop() {
            let observed = self.replica.after(None).await;
            let change = match observed.resources.get(&name) {
                Some(resource) => {
                    let view = Box::new(observed_view(&observed, resource));
                    match added > self.known {
                        true => ResourceChange::Added(view),
                        false => ResourceChange::Changed(view),
                    }
                }
                // Its crawl goes on, and a master that can read the record tells of it.
                None if observed.unreadable_resources.contains(&name) => return Ok(None),
                None => ResourceChange::Deleted(name),
            };
            return Ok(Some(self.told(change)));
        }
        if self.is_completing && self.version.is_some() {
            self.is_completing = false;
            return Ok(Some(self.told(ResourceChange::Complete)));
        }
        let (next_look, next_beat, seen) = (self.next_look, self.next_beat, self.seen);
        let news = async {
            tokio::time::sleep_until(next_look).await;
            self.replica.after_change(seen).await
        };
        let observed = tokio::select! {
            biased;
            observed = news => observed,
            () = tokio::time::sleep_until(next_beat) => {
                if !self.replica.is_followed() {
                    return Err(ControlError::NotFollowing);
                }
                let observed = self.replica.after(None).await;
                if observed.log.last() == seen {
                    self.version = Some(observed.settled);
                }
                return Ok(Some(self.told(ResourceChange::Heartbeat)));
            }
        };
        if !observed.log.reaches_back_to(seen) {
            return Ok(Some(self.begin(&observed)));
        }
        self.look(&observed);
        Ok(None)
    }

    /// Takes the changes that follow those that the reader knows.
    fn look(&mut self, observed: &Observed) {
        if self.version.is_some() {
            self.known = self.seen;
        }
        let (mut changed, end) = observed.log.after(self.seen, LOOK_MAX);
        changed.retain(|change| self.is_meant(&change.name));
        changed.reverse();
        self.changed = changed;
        self.seen = end;
        let is_all = end == observed.log.last();
        self.version = is_all.then_some(observed.settled);
        if is_all {
            self.next_look = Instant::now() + PAUSE;
        }
    }

    fn is_meant(&self, name: &ResourceName) -> bool {
        let name = name.as_str();
        name.starts_with(&self.query.name_prefix) && self.query.grants.covers(name)
    }

    /// Returns an event, with the version if it is the last one of it.
    fn told(&self, change: ResourceChange) -> ResourceEvent {
        let version = self.version.filter(|_| self.changed.is_empty());
        ResourceEvent {
            change,
            version: version.map(|version| version.0),
        }
    }
}

/// Returns a resource with the numbers that are stored.
pub(crate) fn observed_view(observed: &Observed, resource: &Versioned<Resource>) -> ResourceView {
    let shards = observed.shards_of(resource.value.id);
    let shards = shards.map(|(id, shard)| (id, shard.clone()));
    view(
        resource.value.clone(),
        shards.collect(),
        &observed.candidates,
        &BTreeMap::new(),
    )
}
