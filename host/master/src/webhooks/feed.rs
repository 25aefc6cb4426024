//! Feed of a webhook: finds its events in the log of states of the replica.
//!
//! Each change of that log is one event, whose kind is that of the change: nothing has to be known of what the receiver was
//! told. The event has the state that the resource has when its turn comes, so of several changes that wait the last one is
//! told. After a change of the leader the log tells what has changed since the stored position. If it does not reach back so
//! far, a pass over all resources takes its place.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};
use tokio::task::coop::consume_budget;

use super::position::Position;
use super::{EventKind, Queued, QueuedEvent, Webhook, WebhookEvent};
use crate::control::resource_watch::observed_view;
use crate::observed::{Change, ChangeKind, Observed, ResourceState};
use crate::replica::Replica;
use crawler_model::id::{Digest, ResourceId, ResourceName};
use crawler_process::clock::Clock;
use crawler_store::Revision;

mod resync;

/// Shortest time between two looks for changes.
const PAUSE: Duration = Duration::from_millis(200);
/// Longest wait for the rest of a write. If nothing else is written, nothing tells that a write is complete.
const SETTLE_TIME: Duration = Duration::from_secs(1);

/// Reader of changes for one webhook.
pub(super) struct Feed {
    webhook: Webhook,
    /// Id of the store that events are of.
    store_id: String,
    replica: Replica,
    clock: Arc<dyn Clock>,
    queue: mpsc::Sender<Queued>,
    /// Room for the bytes of events that wait.
    room: Arc<Semaphore>,
    /// Number of the change in the log of states up to which changes were looked at; `None` if the log does not tell all that
    /// has changed since the position.
    seen: Option<u64>,
    /// Position once all that was handed over is sent.
    reached: Position,
    /// The last write whose rest was waited for.
    waited_for: Option<Revision>,
    /// The last write that was judged, and whether its changes are in the order of their names.
    order: Option<(Revision, bool)>,
    /// Resources that were told as new in a state whose own change is still to come, with the ids of these events. Without
    /// this the state would be told twice.
    told_early: BTreeMap<ResourceName, String>,
}

/// The delivery takes no events any more.
struct Closed;

impl Feed {
    /// Creates a feed that goes on from this position in the store with this id.
    pub(super) fn new(
        (webhook, store_id): (Webhook, String),
        (replica, clock): (Replica, Arc<dyn Clock>),
        position: Position,
        queue: mpsc::Sender<Queued>,
    ) -> Self {
        Self {
            room: Arc::new(Semaphore::new(webhook.max_queued as usize)),
            webhook,
            store_id,
            replica,
            clock,
            queue,
            seen: None,
            reached: position,
            waited_for: None,
            order: None,
            told_early: BTreeMap::new(),
        }
    }

    /// Hands events over. It ends when the delivery does.
    pub(super) async fn run(mut self) {
        let observed = self.replica.after(None).await;
        self.seen = observed.states_go_on_from(self.reached.revision());
        drop(observed);
        while self.step().await.is_ok() {}
    }

    /// Hands the next change over, or waits for it.
    async fn step(&mut self) -> Result<(), Closed> {
        // A filter may pass over many changes, between which nothing is waited for.
        consume_budget().await;
        let observed = self.replica.after(None).await;
        let is_known = |seen: &u64| observed.state_log.reaches_back_to(*seen);
        let Some(seen) = self.seen.filter(is_known) else {
            drop(observed);
            return self.resync().await;
        };
        let Some((number, change)) = observed.state_log.next(seen) else {
            return self.pause(observed).await;
        };
        let revision = change.revision;
        if revision > observed.settled && self.waited_for != Some(revision) {
            drop(observed);
            self.wait_for_rest(revision).await;
            return Ok(());
        }
        let event = self.event_of(&observed, change);
        self.seen = Some(number);
        // All changes of earlier writes were handed over.
        let certain = observed.state_log.certain_before(change.revision);
        self.reached.advance(Position::at(certain));
        let after = self.position_after(&observed, number, change);
        self.reached.advance(after);
        // A receiver that is slow keeps no old state in memory.
        drop(observed);
        match event {
            Some(event) => self.hand_over(event).await,
            None => Ok(()),
        }
    }

    /// Waits until all of a write has arrived, for a while. A part of it may show a state that the resource never had.
    async fn wait_for_rest(&mut self, revision: Revision) {
        let settled = self.replica.settled(revision);
        let _is_in_time = tokio::time::timeout(SETTLE_TIME, settled).await;
        self.waited_for = Some(revision);
    }

    /// Waits for changes when none are left.
    async fn pause(&mut self, observed: Arc<Observed>) -> Result<(), Closed> {
        let (settled, last_change) = (observed.settled, observed.log.last());
        let newest = observed.state_log.newest();
        drop(observed);
        self.reached.advance(Position::at(settled));
        let reached = Queued::Reached(self.reached.clone());
        self.queue.send(reached).await.map_err(|_| Closed)?;
        tokio::time::sleep(PAUSE).await;
        // The last event counts as sent only when all of its write is known. Numbers of pages are no events, but the
        // position moves with them.
        let unsettled = newest.filter(|newest| *newest > settled);
        let present = self.replica.after_change_or_settled(last_change, unsettled);
        present.await;
        Ok(())
    }

    /// Returns the event of a change. Returns `None` if the receiver was sent it already, or does not want it.
    fn event_of(&mut self, observed: &Observed, change: &Change) -> Option<WebhookEvent> {
        let Change { name, revision, .. } = change;
        let told_early = self.told_early.remove(name);
        if !self.webhook.filter.is_about(name) || self.reached.includes(name, *revision) {
            return None;
        }
        // What came between two reads of all records is not known.
        let resync = observed.state_log.is_after_gap(*revision);
        match change.kind {
            ChangeKind::Began => {
                let event = self.present(observed, name, (EventKind::Added, resync))?;
                if observed.state_log.has_change(name) {
                    self.told_early.insert(name.clone(), event.id.clone());
                }
                Some(event)
            }
            ChangeKind::Changed => {
                let event = self.present(observed, name, (EventKind::Changed, resync))?;
                (told_early.as_ref() != Some(&event.id)).then_some(event)
            }
            ChangeKind::Ended(id) => {
                // What was found by a read of all records has another revision than its write.
                let deleting = observed.deletions.get(id);
                let at = deleting.map_or(*revision, |deleting| deleting.created);
                self.end(name, (id, at), resync)
            }
        }
    }

    /// Returns the event of a resource that is there.
    fn present(
        &self,
        observed: &Observed,
        name: &ResourceName,
        (kind, resync): (EventKind, bool),
    ) -> Option<WebhookEvent> {
        let resource = observed.resources.get(name)?;
        let state = observed.states.get(name)?;
        let is_wanted = self.webhook.filter.selects(kind, Some(state.phase));
        is_wanted.then(|| WebhookEvent {
            id: id_of_state(&self.store_id, name, state),
            kind,
            name: name.clone(),
            resource: Some(Box::new(observed_view(observed, resource))),
            resync,
            noticed_at: self.clock.unix_millis(),
        })
    }

    /// Returns the event of a resource that is not there any more, since the write at a revision.
    fn end(
        &self,
        name: &ResourceName,
        (id, at): (ResourceId, Revision),
        resync: bool,
    ) -> Option<WebhookEvent> {
        let kind = EventKind::Deleted;
        let is_wanted = self.webhook.filter.selects(kind, None);
        is_wanted.then(|| WebhookEvent {
            id: id_of_end(&self.store_id, name, (id, at)),
            kind,
            name: name.clone(),
            resource: None,
            resync,
            noticed_at: self.clock.unix_millis(),
        })
    }

    /// Returns the position once a change, and all before it, are sent.
    fn position_after(&mut self, observed: &Observed, number: u64, change: &Change) -> Position {
        let log = &observed.state_log;
        let Some((_, next)) = log.next(number) else {
            return Position::at(observed.settled);
        };
        let Change { revision, name, .. } = change;
        // Further changes of a write that is not settled may be on their way.
        if next.revision != *revision || *revision > observed.settled {
            return Position::at(log.certain_before(next.revision));
        }
        let before = Position::at(log.certain_before(*revision));
        // A name may have two changes in one write.
        if next.name == *name {
            return before;
        }
        let is_in_order = match self.order {
            Some((judged, is_in_order)) if judged == *revision => is_in_order,
            Some(_) | None => log.is_in_order(number, *revision, name),
        };
        self.order = Some((*revision, is_in_order));
        match is_in_order {
            true => before.with_names_up_to(name, *revision),
            false => before,
        }
    }

    /// Puts an event into the queue once there is room.
    async fn hand_over(&self, event: WebhookEvent) -> Result<(), Closed> {
        let body = self.webhook.sender.body(&event);
        let max = self.webhook.max_queued;
        let n_bytes = u32::try_from(body.len()).unwrap_or(u32::MAX).min(max);
        let room = Arc::clone(&self.room).acquire_many_owned(n_bytes).await;
        let event = QueuedEvent {
            id: event.id,
            about: event.name.to_string(),
            body,
            after: self.reached.clone(),
            _room: room.expect("the semaphore is never closed"),
        };
        let sent = self.queue.send(Queued::Event(event)).await;
        sent.map_err(|_| Closed)
    }
}

/// Returns the id of the event that a resource is in a state. Masters that have followed the same writes give it the same one.
fn id_of_state(store_id: &str, name: &ResourceName, state: &ResourceState) -> String {
    let ResourceState {
        id,
        generation,
        run,
        phase,
        since,
        created: _,
    } = state;
    let since = since.0;
    event_id(&format!(
        "{store_id}\n{name}\n{id}\n{generation}\n{run}\n{phase}\n{since}"
    ))
}

/// Returns the id of the event that a resource is not there any more, which happens once. After a restore, resources have
/// the ids again that they had in another store.
fn id_of_end(store_id: &str, name: &ResourceName, (id, at): (ResourceId, Revision)) -> String {
    let at = at.0;
    event_id(&format!("{store_id}\n{name}\n{id}\n{at}\ndeleted"))
}

pub(super) fn event_id(text: &str) -> String {
    // Half of a digest tells events apart, and is as long as ids usually are.
    let digest = Digest::of(text.as_bytes()).to_string();
    let digest: String = digest.chars().take(32).collect();
    format!("msg_{digest}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::id::{Generation, Run};

    #[test]
    fn ids_of_events_do_not_come_back_after_a_restore() {
        let name: ResourceName = "a".parse().unwrap();
        let id = ResourceId(1);
        let end = |store_id, at| id_of_end(store_id, &name, (id, Revision(at)));
        assert_eq!(end("one", 5), end("one", 5));
        assert_ne!(end("one", 5), end("two", 5));
        assert_ne!(end("one", 5), end("one", 6));
        let state = ResourceState {
            id,
            created: Revision(4),
            generation: Generation(1),
            run: Run(1),
            phase: "Running",
            since: Revision(5),
        };
        let [one, two] = ["one", "two"].map(|store_id| id_of_state(store_id, &name, &state));
        assert_ne!(one, two);
    }
}
