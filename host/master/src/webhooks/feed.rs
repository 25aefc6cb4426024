//! Feed of a webhook: finds its events in the changes of the replica.
//!
//! The state of each resource that a webhook was told is kept, so that numbers of pages, which change every few seconds, are no
//! events. After a change of the leader the log of the replica tells what has changed since the stored position. If the
//! log does not reach back so far, resources whose records were written since are told, with a mark: deletions in between
//! are not known then.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};

use super::{EventKind, Queued, QueuedEvent, Webhook, WebhookEvent};
use crate::ResourceView;
use crate::control::resource_watch::observed_view;
use crate::observed::Observed;
use crate::replica::Replica;
use crawler_model::id::{Digest, Generation, ResourceId, ResourceName, Run};
use crawler_model::resource::Resource;
use crawler_process::clock::Clock;
use crawler_store::Revision;
use crawler_store::catalog::Versioned;

/// Shortest time between two looks for changes.
const PAUSE: Duration = Duration::from_millis(200);
/// Time that a new leader waits to see the position that an earlier one has stored.
const PATIENCE: Duration = Duration::from_secs(2);
/// Number of resources that are looked at without a pause, when a term begins.
const CHUNK: usize = 500;

/// Reader of changes for one webhook.
pub(super) struct Feed<'a> {
    webhook: &'a Webhook,
    replica: Replica,
    clock: &'a dyn Clock,
    queue: mpsc::Sender<Queued>,
    /// Room for the bytes of events that wait.
    room: Arc<Semaphore>,
    /// State of each resource that the webhook knows.
    told: HashMap<ResourceName, Told>,
    /// Number of the change in the log of the replica up to which changes were looked at.
    seen: u64,
    /// Revision up to which changes were looked at.
    version: Revision,
}

/// Part of the state of a resource whose change is an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Told {
    id: ResourceId,
    generation: Generation,
    run: Run,
    phase: &'static str,
}

impl Told {
    fn of(view: &ResourceView) -> Self {
        let Resource {
            id,
            generation,
            run,
            ..
        } = view.resource;
        Self {
            id,
            generation,
            run,
            phase: view.phase.as_str(),
        }
    }
}

/// Result of one look: names that may have changed, each with the revision of its last change.
#[derive(Debug, Default)]
struct Look {
    names: VecDeque<(ResourceName, Revision)>,
    /// Revision of the look before: resources that were created later are new.
    since: Revision,
    /// True if it is not known what the webhook was told of these names.
    is_first: bool,
    /// True if the changes since the look before are not all known.
    resync: bool,
}

impl<'a> Feed<'a> {
    pub(super) fn new(
        webhook: &'a Webhook,
        replica: Replica,
        clock: &'a dyn Clock,
        queue: mpsc::Sender<Queued>,
    ) -> Self {
        Self {
            webhook,
            replica,
            clock,
            queue,
            room: Arc::new(Semaphore::new(webhook.max_queued as usize)),
            told: HashMap::new(),
            seen: 0,
            version: Revision::default(),
        }
    }

    /// Hands events over from this position on, for ever; without one, from now on. It ends if the delivery does.
    pub(super) async fn run(mut self, position: Option<Revision>) {
        let mut look = self.open(position).await;
        loop {
            while let Some((name, changed_at)) = look.names.pop_front() {
                let Some(event) = self.event(name, changed_at, &look).await else {
                    continue;
                };
                if !self.hand_over(event).await {
                    return;
                }
            }
            if self
                .queue
                .send(Queued::Reached(self.version))
                .await
                .is_err()
            {
                return;
            }
            look = self.look().await;
        }
    }

    async fn open(&mut self, position: Option<Revision>) -> Look {
        if let Some(position) = position {
            let reached = self.replica.reaches(position);
            // A position from before the store was set back is never reached.
            let _is_in_time = tokio::time::timeout(PATIENCE, reached).await;
        }
        // A state that is behind the store would look like a store that was set back.
        while !self.replica.is_followed() {
            tokio::time::sleep(PAUSE).await;
        }
        let observed = self.replica.after(None).await;
        self.reach(&observed);
        let Some(since) = position else {
            self.remember(&observed, &[]).await;
            return Look::default();
        };
        let known = observed.goes_on_from(since);
        let names = match known {
            Some(number) => changed_after(&observed, number),
            None => {
                tracing::warn!(
                    webhook = %self.webhook.name,
                    "changes since the last event of a webhook are not all known; resources that were written since are sent"
                );
                written_after(&observed, since)
            }
        };
        self.remember(&observed, &names).await;
        Look {
            names: self.own(names),
            since,
            is_first: true,
            resync: known.is_none(),
        }
    }

    /// Takes note of resources that have not changed, so that they are no news later.
    async fn remember(&mut self, observed: &Observed, changed: &[(ResourceName, Revision)]) {
        let filter = &self.webhook.filter;
        let changed: HashSet<&ResourceName> = changed.iter().map(|(name, _)| name).collect();
        let is_own = |name: &&ResourceName| filter.is_about(name) && !changed.contains(*name);
        let own: Vec<ResourceName> = observed.resources.keys().filter(is_own).cloned().collect();
        for names in own.chunks(CHUNK) {
            for name in names {
                if let Some(resource) = observed.resources.get(name) {
                    let told = Told::of(&observed_view(observed, resource));
                    self.told.insert(name.clone(), told);
                }
            }
            tokio::task::yield_now().await;
        }
    }

    /// Waits for changes.
    async fn look(&mut self) -> Look {
        tokio::time::sleep(PAUSE).await;
        let since = self.version;
        let observed = self.replica.after_change(self.seen).await;
        let names = match observed.log.reaches_back_to(self.seen) {
            true => changed_after(&observed, self.seen),
            // The log has gone on without this reader, which compares everything with what it has told.
            false => {
                let names = observed.resources.keys().chain(self.told.keys());
                let names = names.map(|name| (name.clone(), observed.revision));
                names.collect()
            }
        };
        self.reach(&observed);
        Look {
            names: self.own(names),
            since,
            is_first: false,
            resync: false,
        }
    }

    fn reach(&mut self, observed: &Observed) {
        self.seen = observed.log.last();
        self.version = observed.settled;
    }

    fn own(&self, names: Vec<(ResourceName, Revision)>) -> VecDeque<(ResourceName, Revision)> {
        let names = names.into_iter();
        names
            .filter(|(name, _)| self.webhook.filter.is_about(name))
            .collect()
    }

    /// Returns the event of a name in its present state; `None` if the webhook was told of it already, or does not want it.
    async fn event(
        &mut self,
        name: ResourceName,
        changed_at: Revision,
        look: &Look,
    ) -> Option<WebhookEvent> {
        let observed = self.replica.after(None).await;
        let (kind, view) = match observed.resources.get(&name) {
            // Its crawl goes on, and a master that can read the record tells of it.
            None if observed.unreadable_resources.contains(&name) => return None,
            None => {
                let was_there = self.told.remove(&name).is_some() || look.is_first;
                if !was_there {
                    return None;
                }
                (EventKind::Deleted, None)
            }
            Some(resource) => {
                let view = observed_view(&observed, resource);
                let now = Told::of(&view);
                let before = self.told.insert(name.clone(), now);
                if before == Some(now) {
                    return None;
                }
                let is_new = match before {
                    Some(before) => before.id != now.id,
                    None => resource.created > look.since,
                };
                let kind = match is_new {
                    true => EventKind::Added,
                    false => EventKind::Changed,
                };
                (kind, Some(Box::new(view)))
            }
        };
        let phase = view.as_ref().map(|view| view.phase.as_str());
        if !self.webhook.filter.selects(kind, phase) {
            return None;
        }
        Some(WebhookEvent {
            id: event_id(&name, view.as_deref(), changed_at),
            kind,
            name,
            resource: view,
            resync: look.resync,
            noticed_at: self.clock.unix_millis(),
        })
    }

    /// Puts an event into the queue once there is room. Returns false if nobody takes it any more.
    async fn hand_over(&self, event: WebhookEvent) -> bool {
        let body = self.webhook.sender.body(&event);
        let max = self.webhook.max_queued;
        let n_bytes = u32::try_from(body.len()).unwrap_or(u32::MAX).min(max);
        let room = Arc::clone(&self.room).acquire_many_owned(n_bytes).await;
        let room = room.expect("the semaphore is never closed");
        let event = QueuedEvent {
            id: event.id,
            name: event.name,
            body,
            _room: room,
        };
        self.queue.send(Queued::Event(event)).await.is_ok()
    }
}

/// Returns the resources that have changed since a change of the log, each with the revision of its last change, in the
/// order of these changes.
fn changed_after(observed: &Observed, number: u64) -> Vec<(ResourceName, Revision)> {
    let (changes, _end) = observed.log.after(number, usize::MAX);
    let names = changes.into_iter();
    names.map(|change| (change.name, change.revision)).collect()
}

/// Returns the resources that have a record which was written after a revision; all, if the store was set back.
fn written_after(observed: &Observed, since: Revision) -> Vec<(ResourceName, Revision)> {
    let was_set_back = since > observed.revision;
    let resources = observed.resources.iter();
    let written = resources.map(|(name, resource)| (name.clone(), written_at(observed, resource)));
    let written = written.filter(|(_, written_at)| was_set_back || *written_at > since);
    let mut written: Vec<_> = written.collect();
    written.sort_by_key(|(_, written_at)| *written_at);
    written
}

/// Returns the revision of the last write of a resource or of one of its shards.
fn written_at(observed: &Observed, resource: &Versioned<Resource>) -> Revision {
    let shards = observed.shards_of(resource.value.id);
    let shards = shards.map(|(_, shard)| shard.revision);
    shards.fold(resource.revision, Revision::max)
}

/// Returns the id of an event. Masters that have followed the same writes give it the same one.
fn event_id(name: &ResourceName, view: Option<&ResourceView>, changed_at: Revision) -> String {
    let (id, phase) = match view {
        Some(view) => (view.resource.id.to_string(), view.phase.as_str()),
        None => (String::new(), "deleted"),
    };
    let digest = Digest::of(format!("{name}\n{id}\n{phase}\n{}", changed_at.0).as_bytes());
    // Half of a digest tells events apart, and is as long as ids usually are.
    let digest: String = digest.to_string().chars().take(32).collect();
    format!("msg_{digest}")
}
