//! Webhooks: calls by which the leader tells others which resources are added, change or are deleted.
//!
//! ```text
//! feed       finds the events in the log of states of the replica, from the stored position on
//! history    finds events of histories, such as the loss of a worker, for webhooks that name their kinds
//! delivery   sends events in order, again after failures
//! attempts   pure: when a failed call is made again, and when its event is given up
//! position   pure: which events were sent
//! positions  stores that, and removes what no webhook needs any more
//! ```
//!
//! Each webhook has a task of its own, with a feed, a delivery and a bounded queue in between, so a receiver that does not
//! answer holds up no other. While the queue is full the feed reads nothing: the log of the replica keeps the names that
//! change, and each is told in its last state. An event may be sent more than once. Its id follows from the change itself,
//! so it is the same whoever sends it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::FutureExt as _;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_util::sync::CancellationToken;

use super::ResourceView;
use super::control::events::ToldEvent;
use super::replica::Replica;
use crawler_model::crawl::UnixMillis;
use crawler_model::event::EventKind as PastKind;
use crawler_model::id::{IdError, ResourceName, WebhookName};
use crawler_process::clock::Clock;
use crawler_process::retry::Backoff;
use crawler_process::task::TaskScope;
use crawler_store::catalog::Catalog;
use crawler_store::election::Leadership;

mod attempts;
mod delivery;
mod feed;
mod history;
mod position;
mod positions;

/// Kind of an event of a webhook. The list of what may happen to a resource is [`crawler_model::event`]'s.
pub use crawler_model::event::EventClass as EventKind;
use delivery::Delivery;
use feed::Feed;
use history::HistoryFeed;
use position::Position;
use positions::Positions;

/// Largest number of events and marks that wait in the queue of a webhook. Their bytes have a bound of their own.
const QUEUE: usize = 1_000;
/// End of the name under which the position among events of histories is stored.
const HISTORY: &str = ".events";
/// Time that webhooks have at the end of a term to store their positions. The lead is held meanwhile.
pub(super) const STOP_GRACE: Duration = Duration::from_secs(1);
/// Wait after the first panic of a webhook in a term; it doubles with each further one, until the webhook comes further.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait after a panic.
const MAX_WAIT: Duration = Duration::from_secs(5 * 60);

/// A receiver of events, and what it is told.
#[derive(Clone)]
pub struct Webhook {
    /// Name in the config file, under which its position is stored.
    pub name: WebhookName,
    /// Events that are sent.
    pub filter: EventFilter,
    /// Repetition of failed calls.
    pub retries: RetrySettings,
    /// Largest number of bytes of events that wait: setting `max-queued`. One event may wait whatever its size.
    pub max_queued: u32,
    /// Way to the receiver.
    pub sender: Arc<dyn SendWebhook>,
}

/// Repetition of failed calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetrySettings {
    /// Number of calls, after which the event is given up: setting `max-attempts`.
    pub max_attempts: u32,
    /// Longest wait between two calls, also if the receiver asks for one: setting `max-retry-wait`.
    pub max_wait: Duration,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            max_attempts: 10,
            max_wait: Duration::from_secs(5 * 60),
        }
    }
}

/// Events that a webhook sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFilter {
    /// Beginning of the names of resources.
    pub name_prefix: String,
    /// Kinds of events.
    pub kinds: Vec<EventKind>,
    /// Kinds of events of histories of resources and nodes that are sent as they are.
    pub history: Vec<PastKind>,
    /// Words of phases that a resource is in. If empty, any. A deleted resource has no phase, and events of histories are
    /// sent whatever it is.
    pub phases: Vec<&'static str>,
}

impl Default for EventFilter {
    fn default() -> Self {
        Self {
            name_prefix: String::new(),
            kinds: EventKind::ALL.to_vec(),
            history: Vec::new(),
            phases: Vec::new(),
        }
    }
}

/// Returns the name under which the position of a webhook among events of histories is stored. No webhook is called so.
pub fn name_of_history(name: &WebhookName) -> Result<WebhookName, IdError> {
    format!("{name}{HISTORY}").parse()
}

/// True for a name that the position of another webhook may have.
pub fn is_name_of_history(name: &WebhookName) -> bool {
    name.as_str().ends_with(HISTORY)
}

impl Webhook {
    /// Returns the parts that send events, each with a position of its own: one for states of resources and one for events of
    /// histories, as far as the filter selects them.
    fn parts(&self) -> Vec<Self> {
        let mut parts = Vec::new();
        if !self.filter.kinds.is_empty() {
            let mut states = self.clone();
            states.filter.history.clear();
            parts.push(states);
        }
        if !self.filter.history.is_empty() {
            let mut history = self.clone();
            history.filter.kinds.clear();
            match name_of_history(&self.name) {
                Ok(name) => parts.push(Self { name, ..history }),
                Err(error) => {
                    tracing::error!(webhook = %self.name, %error, "a webhook has too long a name for events of histories");
                }
            }
        }
        parts
    }

    fn is_of_history(&self) -> bool {
        self.filter.kinds.is_empty()
    }
}

impl EventFilter {
    fn is_about(&self, name: &ResourceName) -> bool {
        name.as_str().starts_with(&self.name_prefix)
    }

    fn selects(&self, kind: EventKind, phase: Option<&str>) -> bool {
        let has_phase = |phase: &str| self.phases.is_empty() || self.phases.contains(&phase);
        self.kinds.contains(&kind) && phase.is_none_or(has_phase)
    }
}

/// Event of a webhook.
#[derive(Debug, Clone)]
pub struct WebhookEvent {
    /// Id by which a receiver recognizes an event that it is sent again.
    pub id: String,
    /// Kind of the event.
    pub kind: EventKind,
    /// Name of the resource.
    pub name: ResourceName,
    /// The resource in its present state, with the numbers that are stored. `None` if it is deleted.
    pub resource: Option<Box<ResourceView>>,
    /// True if events before this one may be missing: the webhook was away for longer than changes are known.
    pub resync: bool,
    /// Time at which the leader noticed it.
    pub noticed_at: UnixMillis,
}

/// Event of a history, for a webhook.
#[derive(Debug, Clone)]
pub struct PastWebhookEvent {
    /// Id by which a receiver recognizes an event that it is sent again.
    pub id: String,
    /// Name of the resource; `None` if it is about a node.
    pub name: Option<ResourceName>,
    /// The event.
    pub told: ToldEvent,
    /// True if events before this one may be missing: the webhook was away for longer than they are kept.
    pub resync: bool,
}

/// Way to the receiver of a webhook. Implemented over HTTP.
#[async_trait]
pub trait SendWebhook: Send + Sync + 'static {
    /// Returns the body that tells of an event. It is written once, and sent unchanged however often.
    fn body(&self, event: &WebhookEvent) -> Bytes;

    /// Returns the body that tells of an event of a history.
    fn past_body(&self, event: &PastWebhookEvent) -> Bytes;

    /// Makes one call, which has a deadline. An error means that the receiver may not have taken the event.
    async fn send(&self, id: &str, body: Bytes) -> Result<(), SendError>;
}

/// Failure of one call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the receiver did not take the event: {why}")]
pub struct SendError {
    /// Fault that was observed; it has no secrets.
    pub why: String,
    /// Wait before the next call that the receiver asks for.
    pub retry_after: Option<Duration>,
}

/// Event that waits in the queue.
#[derive(Debug)]
struct QueuedEvent {
    id: String,
    /// Name of the resource or id of the node, for the log.
    about: String,
    body: Bytes,
    /// Position of the webhook once the event is sent.
    after: Position,
    /// Room among the bytes that may wait.
    _room: OwnedSemaphorePermit,
}

/// Message of a feed to its delivery.
#[derive(Debug)]
enum Queued {
    Event(QueuedEvent),
    /// All events up to this position were handed over.
    Reached(Position),
}

/// Parts that webhooks work with in one term of a leader.
#[derive(Clone)]
pub(super) struct Term {
    /// The records in the store.
    pub(super) catalog: Catalog,
    /// Replica of the state.
    pub(super) replica: Replica,
    /// Leadership under which positions are stored.
    pub(super) leadership: Leadership,
    /// Times of events.
    pub(super) clock: Arc<dyn Clock>,
}

/// Starts to send events, in a task for each webhook. The tasks end when the scope, or `stop`, does.
pub(super) fn start(webhooks: &[Webhook], term: &Term, stop: &CancellationToken) -> TaskScope {
    let scope = TaskScope::under(stop);
    for webhook in webhooks.iter().flat_map(Webhook::parts) {
        let name = format!("webhook {}", webhook.name);
        let task = keep_sending(webhook, term.clone(), scope.stop_signal());
        scope.spawn(name, task);
    }
    scope
}

/// Removes the positions of webhooks that no leader has any more. It is cancelled at the end of a term.
pub(super) async fn look_after_positions(webhooks: &[Webhook], term: &Term) {
    let parts: Vec<Webhook> = webhooks.iter().flat_map(Webhook::parts).collect();
    let own = parts.iter().map(|webhook| &webhook.name).collect();
    term.positions().look_after(&own).await;
}

impl Term {
    fn positions(&self) -> Positions {
        Positions {
            catalog: self.catalog.clone(),
            leadership: self.leadership.clone(),
            clock: Arc::clone(&self.clock),
        }
    }
}

/// Sends the events of a webhook. A panic is a fault of this webhook alone: it goes on from its stored position.
async fn keep_sending(webhook: Webhook, term: Term, stop: CancellationToken) {
    let mut backoff = Backoff::new(FIRST_WAIT, MAX_WAIT);
    let has_stored = Arc::<AtomicBool>::default();
    loop {
        let work = (webhook.clone(), Arc::clone(&has_stored));
        let sending = send_events(work, term.clone(), stop.clone());
        if AssertUnwindSafe(sending).catch_unwind().await.is_ok() {
            return;
        }
        // It has come further since the last panic.
        if has_stored.swap(false, Ordering::Relaxed) {
            backoff.reset();
        }
        let wait = backoff.next_delay();
        let wait_ms = wait.as_millis();
        tracing::error!(webhook = %webhook.name, wait_ms, "a webhook has panicked and goes on after a wait");
        let waited = stop.run_until_cancelled(tokio::time::sleep(wait)).await;
        if waited.is_none() {
            return;
        }
    }
}

/// Sends the events of a webhook. `has_stored` becomes true when a position that they have reached is stored.
async fn send_events(
    (webhook, has_stored): (Webhook, Arc<AtomicBool>),
    mut term: Term,
    stop: CancellationToken,
) {
    let positions = term.positions();
    let beginning = async {
        let store_id = positions.store_id(&webhook.name).await;
        let position = positions.begin(&webhook.name, &mut term.replica).await;
        (store_id, position)
    };
    let Some((store_id, position)) = stop.run_until_cancelled(beginning).await else {
        return;
    };
    let (sender, receiver) = mpsc::channel(QUEUE);
    let (replica, clock) = (term.replica, term.clock);
    let webhook_of_store = (webhook.clone(), store_id);
    let delivery = Delivery::new((webhook, has_stored), positions, position.clone(), stop);
    let is_of_history = webhook_of_store.0.is_of_history();
    let feed = async {
        match is_of_history {
            true => {
                let of_store = (term.catalog, replica);
                HistoryFeed::new(webhook_of_store, of_store, position, sender)
                    .run()
                    .await;
            }
            false => {
                let feed = Feed::new(webhook_of_store, (replica, clock), position, sender);
                feed.run().await;
            }
        }
    };
    tokio::select! {
        biased;
        () = delivery.run(receiver) => {}
        // Without a delivery there is nobody to hand events to.
        () = feed => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_selects_by_beginning_kind_and_phase() {
        let filter = EventFilter {
            name_prefix: "team/".to_owned(),
            kinds: vec![EventKind::Changed],
            phases: vec!["Failed"],
            ..EventFilter::default()
        };
        assert!(filter.is_about(&"team/a".parse().unwrap()));
        assert!(!filter.is_about(&"team".parse().unwrap()));
        assert!(filter.selects(EventKind::Changed, Some("Failed")));
        assert!(!filter.selects(EventKind::Changed, Some("Running")));
        assert!(!filter.selects(EventKind::Added, Some("Failed")));
        assert!(!filter.selects(EventKind::Deleted, None));
        let all = EventFilter::default();
        assert!(EventKind::ALL.iter().all(|kind| all.selects(*kind, None)));
    }
}
