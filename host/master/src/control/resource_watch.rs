//! Watch of resources: their present state, and then what changes, for one reader.
//!
//! The reader knows the state up to a revision. Names that changed since then are found in the log of the replica, and each is
//! told with its present state: a reader that is slow gets the last state of a resource, and not those in between. Nothing is
//! kept for it but names of one look, which the log bounds. A reader that the log does not reach back to, because it is far too slow
//! or comes back late, is told to begin anew.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::time::Duration;

use futures::stream::{self, BoxStream, StreamExt as _};
use tokio::time::Instant;

use super::Control;
use super::reads::view;
use crate::observed::Observed;
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
    /// What the reader is told.
    pub change: ResourceChange,
    /// Version that the reader knows with this event. If `None`, more events of the same look follow.
    pub version: Option<u64>,
}

/// What an event tells.
#[derive(Debug, Clone)]
pub enum ResourceChange {
    /// What the reader was told before counts no more: all resources follow.
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
    /// Returns endless events: the resources that are there, or those that have changed since the version of the query, and
    /// then changes. Numbers are those that workers have stored last.
    pub fn resource_events(
        &self,
        query: WatchQuery,
    ) -> BoxStream<'static, Result<ResourceEvent, ControlError>> {
        let watch = ResourceWatch::new(self.parts.replica.clone(), query);
        let events = stream::unfold(watch, |mut watch| async move {
            let event = watch.next().await;
            Some((Ok(event), watch))
        });
        events.boxed()
    }
}

/// State of a watch.
struct ResourceWatch {
    replica: Replica,
    query: WatchQuery,
    stage: Stage,
    /// Revision up to which the reader knows everything once the names below are told.
    version: Revision,
    /// Revision of the look before: resources that were created later are new to the reader.
    known: Revision,
    /// Names that have changed and are not told yet.
    changed: VecDeque<ResourceName>,
    /// True if the end of what a reader that came back has missed is to be told.
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
    /// The resources that are there are told, those up to this name already.
    Listing(Option<ResourceName>),
    /// Changes are told.
    Following,
}

impl ResourceWatch {
    fn new(replica: Replica, query: WatchQuery) -> Self {
        Self {
            replica,
            query,
            stage: Stage::Opening,
            version: Revision::default(),
            known: Revision::default(),
            changed: VecDeque::new(),
            is_completing: false,
            next_look: Instant::now(),
            next_beat: Instant::now() + HEARTBEAT,
        }
    }

    /// Waits for the next event.
    async fn next(&mut self) -> ResourceEvent {
        let event = loop {
            let event = match &self.stage {
                Stage::Opening => self.open().await,
                Stage::Listing(after) => {
                    let after = after.clone();
                    Some(self.list(after).await)
                }
                Stage::Following => self.follow().await,
            };
            if let Some(event) = event {
                break event;
            }
        };
        self.next_beat = Instant::now() + HEARTBEAT;
        event
    }

    async fn open(&mut self) -> Option<ResourceEvent> {
        if let Some(after) = self.query.after.map(Revision) {
            let reached = self.replica.reaches(after);
            // A version of a store that was set back is never reached.
            let _is_in_time = tokio::time::timeout(PATIENCE, reached).await;
            let observed = self.replica.after(None).await;
            if observed.tells_all_after(after) {
                self.version = after;
                self.stage = Stage::Following;
                self.is_completing = true;
                self.look(&observed);
                return None;
            }
        }
        let observed = self.replica.after(None).await;
        Some(self.begin(&observed))
    }

    /// Begins anew with the present state.
    fn begin(&mut self, observed: &Observed) -> ResourceEvent {
        self.version = observed.revision;
        self.known = observed.revision;
        self.changed.clear();
        self.is_completing = false;
        self.stage = Stage::Listing(None);
        ResourceEvent {
            change: ResourceChange::Begin,
            version: None,
        }
    }

    /// Tells the next resource that is there. Changes meanwhile are told again afterwards, from the revision of the beginning.
    async fn list(&mut self, after: Option<ResourceName>) -> ResourceEvent {
        let observed = self.replica.after(None).await;
        let first = match &after {
            Some(after) => Bound::Included(after.clone()),
            None => Bound::Unbounded,
        };
        let names = observed.resources.range((first, Bound::Unbounded));
        let is_next = |name: &ResourceName| after.as_ref() != Some(name) && self.is_meant(name);
        let mut names = names.filter(|(name, _)| is_next(name));
        let Some((name, resource)) = names.next() else {
            drop(names);
            self.stage = Stage::Following;
            return self.told(ResourceChange::Complete);
        };
        let (name, view) = (name.clone(), observed_view(&observed, resource));
        drop(names);
        self.stage = Stage::Listing(Some(name));
        ResourceEvent {
            change: ResourceChange::Added(Box::new(view)),
            version: None,
        }
    }

    async fn follow(&mut self) -> Option<ResourceEvent> {
        if let Some(name) = self.changed.pop_front() {
            let observed = self.replica.after(None).await;
            let change = match observed.resources.get(&name) {
                None => ResourceChange::Deleted(name),
                Some(resource) => {
                    let view = Box::new(observed_view(&observed, resource));
                    match resource.created > self.known {
                        true => ResourceChange::Added(view),
                        false => ResourceChange::Changed(view),
                    }
                }
            };
            return Some(self.told(change));
        }
        if self.is_completing {
            self.is_completing = false;
            return Some(self.told(ResourceChange::Complete));
        }
        let (next_look, next_beat, version) = (self.next_look, self.next_beat, self.version);
        let news = async {
            tokio::time::sleep_until(next_look).await;
            self.replica.after_resources(version).await
        };
        let observed = tokio::select! {
            biased;
            observed = news => observed,
            () = tokio::time::sleep_until(next_beat) => {
                return Some(self.told(ResourceChange::Heartbeat));
            }
        };
        if !observed.tells_all_after(self.version) {
            return Some(self.begin(&observed));
        }
        self.look(&observed);
        None
    }

    /// Takes the names that have changed since the version that the reader knows.
    fn look(&mut self, observed: &Observed) {
        self.known = self.version;
        let names = observed.log.after(self.version).into_iter();
        self.changed = names.filter(|name| self.is_meant(name)).collect();
        self.version = observed.revision;
        self.next_look = Instant::now() + PAUSE;
    }

    fn is_meant(&self, name: &ResourceName) -> bool {
        let name = name.as_str();
        name.starts_with(&self.query.name_prefix) && self.query.grants.covers(name)
    }

    /// Returns an event, with the version if it is the last of a look.
    fn told(&self, change: ResourceChange) -> ResourceEvent {
        let is_last = self.changed.is_empty();
        ResourceEvent {
            change,
            version: is_last.then_some(self.version.0),
        }
    }
}

/// Returns a resource with the numbers that are stored.
fn observed_view(observed: &Observed, resource: &Versioned<Resource>) -> ResourceView {
    let shards = observed.shards_of(resource.value.id);
    let shards = shards.map(|(id, shard)| (id, shard.clone()));
    view(
        resource.value.clone(),
        shards.collect(),
        &observed.candidates,
        &BTreeMap::new(),
    )
}
