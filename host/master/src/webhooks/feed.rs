//! Feed of a webhook: finds its events in the log of states of the replica.
//!
//! Each change of that log is an event. It is told in the state that the resource has when its turn comes, so of several
//! changes that wait the last one is told. After a change of the leader the log tells what has changed since the stored
//! position. If it does not reach back so far, resources whose records were written since are told, with a mark, and before
//! them those that were deleted since and whose data is not removed yet.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};
use tokio::task::coop::consume_budget;

use super::known::Known;
use super::position::Position;
use super::{EventKind, Queued, QueuedEvent, Webhook, WebhookEvent};
use crate::control::resource_watch::observed_view;
use crate::observed::{Change, Observed, ResourceState};
use crate::replica::Replica;
use crawler_model::id::{Digest, ResourceId, ResourceName};
use crawler_process::clock::Clock;
use crawler_store::Revision;

mod resync;

/// Shortest time between two looks for changes.
const PAUSE: Duration = Duration::from_millis(200);
/// Time that a new leader waits to see the position that an earlier one has stored.
const PATIENCE: Duration = Duration::from_secs(2);

/// Reader of changes for one webhook.
pub(super) struct Feed {
    webhook: Webhook,
    replica: Replica,
    clock: Arc<dyn Clock>,
    queue: mpsc::Sender<Queued>,
    /// Room for the bytes of events that wait.
    room: Arc<Semaphore>,
    /// Number of the change in the log of states up to which changes were looked at.
    seen: u64,
    /// Position once all that was handed over is sent.
    reached: Position,
    known: Known,
    /// The last write that was judged, and whether its changes are in the order of their names.
    order: Option<(Revision, bool)>,
}

/// The delivery takes no events any more.
struct Closed;

impl Feed {
    pub(super) fn new(
        webhook: Webhook,
        replica: Replica,
        clock: Arc<dyn Clock>,
        queue: mpsc::Sender<Queued>,
    ) -> Self {
        Self {
            room: Arc::new(Semaphore::new(webhook.max_queued as usize)),
            webhook,
            replica,
            clock,
            queue,
            seen: 0,
            reached: Position::default(),
            known: Known::default(),
            order: None,
        }
    }

    /// Hands events over from this position on; without one, from now on. It ends when the delivery does.
    pub(super) async fn run(mut self, position: Option<Position>) {
        if self.open(position).await.is_ok() {
            while self.step().await.is_ok() {}
        }
    }

    async fn open(&mut self, position: Option<Position>) -> Result<(), Closed> {
        if let Some(position) = &position {
            let reached = self.replica.reaches(position.revision());
            // A position from before the store was set back is never reached.
            let _is_in_time = tokio::time::timeout(PATIENCE, reached).await;
        }
        // A state that is behind the store would look like a store that was set back.
        while !self.replica.is_followed() {
            tokio::time::sleep(PAUSE).await;
        }
        let observed = self.replica.after(None).await;
        let is_new = position.is_none();
        self.reached = position.unwrap_or_else(|| Position::at(observed.settled));
        self.known = Known::at(self.reached.clone());
        self.seen = match observed.states_go_on_from(self.reached.revision()) {
            _ if is_new => observed.state_log.last(),
            Some(number) => number,
            None => return self.resync().await,
        };
        Ok(())
    }

    /// Hands the next change over, or waits for it.
    async fn step(&mut self) -> Result<(), Closed> {
        // A filter may pass over many changes, between which nothing is waited for.
        consume_budget().await;
        let observed = self.replica.after(None).await;
        if !observed.state_log.reaches_back_to(self.seen) {
            drop(observed);
            return self.resync().await;
        }
        let Some((number, change)) = observed.state_log.next(self.seen) else {
            return self.pause(observed).await;
        };
        let event = self.event_of(&observed, change);
        self.seen = number;
        // All changes of earlier writes were handed over.
        self.reached
            .advance(Position::before(change.revision, None));
        let before = self.reached.clone();
        let after = self.position_after(&observed, number, change);
        self.reached.advance(after);
        // A receiver that is slow keeps no old state in memory.
        drop(observed);
        match event {
            Some(event) => self.hand_over(event, before).await,
            None => Ok(()),
        }
    }

    /// Waits for changes when none are left.
    async fn pause(&mut self, observed: Arc<Observed>) -> Result<(), Closed> {
        let (settled, last_change) = (observed.settled, observed.log.last());
        let newest = observed.state_log.newest();
        drop(observed);
        self.reached.advance(Position::at(settled));
        self.known.settle(self.reached.clone());
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
        let name = &change.name;
        if !self.webhook.filter.is_about(name) || self.reached.includes(name, change.revision) {
            return None;
        }
        let Some(ended) = change.ended else {
            return self.present(observed, name, false);
        };
        if !self.known.end(name, ended) {
            return None;
        }
        self.end(name, ended.id, false)
    }

    /// Returns the event of a resource that is there.
    fn present(
        &mut self,
        observed: &Observed,
        name: &ResourceName,
        resync: bool,
    ) -> Option<WebhookEvent> {
        let resource = observed.resources.get(name)?;
        let state = observed.states.get(name)?;
        let kind = match self.known.add(name, state.id, state.created) {
            true => EventKind::Added,
            false => EventKind::Changed,
        };
        let is_wanted = self.webhook.filter.selects(kind, Some(state.phase));
        is_wanted.then(|| WebhookEvent {
            id: id_of_state(name, state),
            kind,
            name: name.clone(),
            resource: Some(Box::new(observed_view(observed, resource))),
            resync,
            noticed_at: self.clock.unix_millis(),
        })
    }

    /// Returns the event of a resource that is not there any more.
    fn end(&self, name: &ResourceName, id: ResourceId, resync: bool) -> Option<WebhookEvent> {
        let kind = EventKind::Deleted;
        let is_wanted = self.webhook.filter.selects(kind, None);
        is_wanted.then(|| WebhookEvent {
            id: id_of_end(name, id),
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
            return Position::before(next.revision, None);
        }
        let is_in_order = match self.order {
            Some((judged, is_in_order)) if judged == *revision => is_in_order,
            Some(_) | None => log.is_in_order(number, *revision, name),
        };
        self.order = Some((*revision, is_in_order));
        Position::before(*revision, is_in_order.then_some(name))
    }

    /// Puts an event into the queue once there is room. The position before it is given.
    async fn hand_over(&self, event: WebhookEvent, before: Position) -> Result<(), Closed> {
        let body = self.webhook.sender.body(&event);
        let max = self.webhook.max_queued;
        let n_bytes = u32::try_from(body.len()).unwrap_or(u32::MAX).min(max);
        let room = Arc::clone(&self.room).acquire_many_owned(n_bytes).await;
        let event = QueuedEvent {
            id: event.id,
            name: event.name,
            body,
            before,
            after: self.reached.clone(),
            _room: room.expect("the semaphore is never closed"),
        };
        let sent = self.queue.send(Queued::Event(event)).await;
        sent.map_err(|_| Closed)
    }
}

/// Returns the id of the event that a resource is in a state. Masters that have followed the same writes give it the same one.
fn id_of_state(name: &ResourceName, state: &ResourceState) -> String {
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
        "{name}\n{id}\n{generation}\n{run}\n{phase}\n{since}"
    ))
}

/// Returns the id of the event that a resource is not there any more, which happens once.
fn id_of_end(name: &ResourceName, id: ResourceId) -> String {
    event_id(&format!("{name}\n{id}\ndeleted"))
}

fn event_id(text: &str) -> String {
    // Half of a digest tells events apart, and is as long as ids usually are.
    let digest = Digest::of(text.as_bytes()).to_string();
    let digest: String = digest.chars().take(32).collect();
    format!("msg_{digest}")
}
