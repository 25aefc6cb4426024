//! Delivery of events to one receiver, one after the other, and the position up to which that is done.
//!
//! The position moves with each event. It is stored a while after it was reached, at once when a call fails, because the
//! event may then be repeated for long, and when the term ends. A leader that is cut off leaves an older position, so the
//! next one sends the events after it again; their ids stay.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::attempts::Attempts;
use super::position::Position;
use super::positions::Positions;
use super::{Queued, QueuedEvent, Webhook};
use crawler_process::telemetry;

/// Shortest time between two writes of a position while nothing fails.
const SAVE_PAUSE: Duration = Duration::from_secs(5);
/// Longest time for a write of a position after a stop. The one in hand and the last one both fit into `STOP_GRACE`.
const STOP_SAVE_TIME: Duration = Duration::from_millis(400);

/// Sender of the events of one webhook, for one term of the leader.
pub(super) struct Delivery {
    webhook: Webhook,
    positions: Positions,
    stop: CancellationToken,
    /// Position up to which all is sent.
    reached: Position,
    /// Becomes true whenever the position is stored.
    has_stored: Arc<AtomicBool>,
    /// True if the store has this position.
    is_stored: bool,
    /// Time from which on it may be stored again.
    next_save: Instant,
    /// Number of events that were given up in this term.
    n_dropped: u64,
}

/// End of the efforts for an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effort {
    /// The event was sent or given up.
    Done,
    /// The term ends before that.
    Stopped,
}

impl Delivery {
    /// Creates a delivery that goes on from a stored position.
    pub(super) fn new(
        (webhook, has_stored): (Webhook, Arc<AtomicBool>),
        positions: Positions,
        stored: Position,
        stop: CancellationToken,
    ) -> Self {
        Self {
            webhook,
            positions,
            stop,
            reached: stored,
            has_stored,
            is_stored: true,
            next_save: Instant::now(),
            n_dropped: 0,
        }
    }

    /// Sends what is queued until the term ends, and stores the position then.
    pub(super) async fn run(mut self, mut queue: mpsc::Receiver<Queued>) {
        let stop = self.stop.clone();
        loop {
            let queued = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                queued = queue.recv() => queued,
                () = tokio::time::sleep_until(self.next_save), if !self.is_stored => {
                    self.save().await;
                    continue;
                }
            };
            match queued {
                Some(Queued::Event(event)) => {
                    if self.deliver(&event).await == Effort::Stopped {
                        break;
                    }
                    self.reach(event.after);
                }
                Some(Queued::Reached(position)) => self.reach(position),
                None => break,
            }
            if Instant::now() >= self.next_save {
                self.save().await;
            }
        }
        if self.positions.leadership.is_held() {
            self.save().await;
        }
    }

    /// Sends an event until the receiver takes it, or gives it up.
    async fn deliver(&mut self, event: &QueuedEvent) -> Effort {
        let name = self.webhook.name.clone();
        let sender = Arc::clone(&self.webhook.sender);
        let stop = self.stop.clone();
        let mut attempts = Attempts::new(self.webhook.retries);
        loop {
            if !self.positions.leadership.is_held() {
                // Another master sends it.
                return Effort::Stopped;
            }
            let mut sent = sender.send(&event.id, event.body.clone());
            let sent = loop {
                tokio::select! {
                    biased;
                    sent = &mut sent => break sent,
                    // A receiver that hangs is not to hold up the next leader, which sends the event again.
                    () = stop.cancelled() => return Effort::Stopped,
                    () = tokio::time::sleep_until(self.next_save), if !self.is_stored => {
                        // The deadline of the call runs on, so the call has to go on too while a store hangs. A save that
                        // is cut off is made again.
                        tokio::select! {
                            biased;
                            sent = &mut sent => break sent,
                            () = self.save() => {}
                        }
                    }
                }
            };
            let Err(error) = sent else {
                tracing::debug!(webhook = %name, id = event.id, about = event.about, "event sent");
                return Effort::Done;
            };
            let wait = attempts.failed(error.retry_after);
            let error = telemetry::chain(&error);
            let n = attempts.n_failures();
            let Some(wait) = wait else {
                self.n_dropped += 1;
                let dropped = self.n_dropped;
                tracing::error!(
                    webhook = %name, id = event.id, about = event.about, error, attempts = n, dropped,
                    "an event was given up after as many attempts as max-attempts of the webhook allows"
                );
                return Effort::Done;
            };
            let wait_ms = wait.as_millis();
            // One line for each event that has trouble; further failures differ in nothing.
            match n {
                1 => {
                    tracing::warn!(webhook = %name, id = event.id, about = event.about, error, "an event will be sent again");
                }
                _ => {
                    tracing::debug!(webhook = %name, id = event.id, error, attempts = n, wait_ms, "an event will be sent again");
                }
            }
            let next_attempt = Instant::now() + wait;
            // What was sent before is not to be sent again because this event takes long.
            self.save().await;
            tokio::select! {
                biased;
                () = stop.cancelled() => return Effort::Stopped,
                () = tokio::time::sleep_until(next_attempt) => {}
            }
        }
    }

    fn reach(&mut self, position: Position) {
        if self.reached != position {
            self.reached = position;
            self.is_stored = false;
        }
    }

    /// Stores the position, if it has moved since it was stored.
    async fn save(&mut self) {
        if self.is_stored {
            return;
        }
        let saved = self.positions.save(&self.webhook.name, &self.reached);
        let stopped = async {
            self.stop.cancelled().await;
            tokio::time::sleep(STOP_SAVE_TIME).await;
        };
        self.is_stored = tokio::select! {
            biased;
            saved = saved => saved,
            () = stopped => {
                let webhook = &self.webhook.name;
                tracing::warn!(%webhook, "the position of a webhook was not stored in the time after a stop");
                false
            }
        };
        self.has_stored.fetch_or(self.is_stored, Ordering::Relaxed);
        self.next_save = Instant::now() + SAVE_PAUSE;
    }
}
