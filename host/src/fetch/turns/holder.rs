//! The part of a worker that asks: its knowledge of one host, and its requests there.
//!
//! A request needs a turn of a lease. Without a lease the worker asks the owner, and is told to use it or to
//! ask again later. Where the owner does not answer, the worker goes alone for a while, at twice the
//! delay. A lease goes back when its last turn is over, when another would not fit into it, or when
//! nobody has used it for [`IDLE`]. The owner is told the end of the last request and the host's pause.
//!
//! A lease that ends does not end a request in flight. The owner is told of it before it would count the
//! host as free ([`REMIND`]), and again until it is over.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::call::{Answer, Ask, Ended, LEASE, MAX_AFTER};
use super::held::Held;

/// Time after which a lease that nobody uses goes back to the owner.
const IDLE: Duration = Duration::from_millis(500);
/// Time before the end of a lease at which the owner is told of a request that is still in flight: enough
/// for calls that get no answer.
const REMIND: Duration = Duration::from_secs(3);
/// The same for a request that begins: most are over soon.
const REMIND_NOW: Duration = Duration::from_secs(1);
/// Time after which a crawl looks for the owner's answer.
pub(super) const LOOK: Duration = Duration::from_millis(25);
/// A worker that goes alone keeps the delay this many times.
const ALONE: u32 = 2;

/// A worker's knowledge of one host.
#[derive(Debug, Default)]
pub(super) struct Holder {
    standing: Standing,
    /// The delay that the last crawl asked for.
    delay: Duration,
    n_in_flight: u32,
    last: Option<Last>,
    /// True if the owner does not know of the last request's end.
    is_untold: bool,
    /// True if the host is among those that the owner is told of with the next call.
    is_queued: bool,
    /// Until when the owner counts the request in flight as there, whatever it hears.
    known_until: Option<Instant>,
}

#[derive(Debug, Default, Clone, Copy)]
enum Standing {
    /// Nothing was asked.
    #[default]
    Nothing,
    /// The owner was asked, or is about to be.
    Asked,
    /// The owner is to be asked again at this moment.
    Told(Instant),
    /// The host may be asked; idle since the second.
    Held(Held, Instant),
    /// The owner does not answer: the host is asked alone until this moment.
    Alone(Instant),
}

/// The last request that is over.
#[derive(Debug, Clone, Copy)]
struct Last {
    ended: Instant,
    pause: Duration,
}

/// Permission of a crawl that wants to ask a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Go on to the gate.
    Free,
    /// Come again at this moment.
    Later(Instant),
    /// The owner is to be asked first.
    Ask,
}

/// Work that a look at a host finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Nothing.
    Nothing,
    /// The owner should be told how the host stands.
    Tell,
    /// The host may be forgotten.
    Forget,
}

impl Holder {
    /// A crawl comes that wants to ask the host.
    pub(super) fn turn(&mut self, delay: Duration, now: Instant) -> Turn {
        self.delay = delay;
        match self.standing {
            Standing::Asked => Turn::Later(now + LOOK),
            Standing::Told(at) if at > now => Turn::Later(at),
            Standing::Held(held, _) => match held.next_at(self.ended(), now) {
                Some(at) if at > now => Turn::Later(at),
                Some(_) => Turn::Free,
                None => self.ask_when_over(now),
            },
            Standing::Alone(until) if until > now => match self.alone_at() {
                Some(at) if at > now => Turn::Later(at),
                Some(_) | None => Turn::Free,
            },
            Standing::Nothing | Standing::Told(_) | Standing::Alone(_) => self.ask_when_over(now),
        }
    }

    /// There is no turn: the owner gives the next one once the request in flight is over.
    fn ask_when_over(&mut self, now: Instant) -> Turn {
        if self.n_in_flight > 0 {
            return Turn::Later(now + self.delay.max(LOOK));
        }
        self.standing = Standing::Asked;
        Turn::Ask
    }

    /// Begins a request, if its turn is still there: the gate may have taken its time.
    pub(super) fn begin(&mut self, delay: Duration, now: Instant) -> bool {
        self.delay = delay;
        let may_begin = self.n_in_flight == 0
            && match &mut self.standing {
                Standing::Held(held, _) => {
                    let last = self.last.map(|last| last.ended);
                    let is_due = held.next_at(last, now).is_some_and(|at| at <= now);
                    if is_due {
                        held.use_turn();
                    }
                    is_due
                }
                Standing::Alone(until) => {
                    *until > now && self.alone_at().is_none_or(|at| at <= now)
                }
                Standing::Nothing | Standing::Asked | Standing::Told(_) => false,
            };
        self.n_in_flight += u32::from(may_begin);
        may_begin
    }

    /// Begins a request of a worker that has never had another beside it.
    pub(super) fn begin_unasked(&mut self, delay: Duration) {
        self.delay = delay;
        self.n_in_flight += 1;
    }

    /// A request is over, and the host is left alone for `pause`. Returns true if the owner should know at
    /// once.
    pub(super) fn end(&mut self, pause: Duration, now: Instant) -> bool {
        self.n_in_flight = self.n_in_flight.saturating_sub(1);
        let pause = pause.max(self.delay);
        self.last = Some(Last { ended: now, pause });
        self.is_untold = true;
        match self.standing {
            Standing::Held(held, _) => {
                let next_at = held.next_at(Some(now), now);
                if next_at.is_none_or(|at| at.max(now + pause) >= held.until()) {
                    self.standing = Standing::Nothing;
                    return true;
                }
                self.standing = Standing::Held(held, now + pause);
                false
            }
            Standing::Alone(_) => false,
            Standing::Nothing | Standing::Asked | Standing::Told(_) => true,
        }
    }

    /// Returns what the owner is to be told of this host at this moment. None: the lease is in use, and the
    /// owner knows everything.
    pub(super) fn tell(&mut self, host: &Arc<str>, now: Instant) -> Option<Ask> {
        self.is_queued = false;
        let is_in_flight = self.n_in_flight > 0;
        if matches!(self.standing, Standing::Held(..)) && !is_in_flight {
            return None;
        }
        let last = self.last.filter(|_| std::mem::take(&mut self.is_untold));
        self.known_until = is_in_flight.then_some(now + LEASE);
        Some(Ask {
            host: Arc::clone(host),
            delay: self.delay,
            is_wanted: matches!(self.standing, Standing::Asked),
            is_in_flight,
            ended: last.map(|last| Ended {
                ago: now - last.ended,
                pause: last.pause,
            }),
        })
    }

    /// Takes in the answer of the owner, who was asked at `asked`. Whoever does not wait for it any more lets
    /// the lease run out.
    pub(super) fn answered(&mut self, answer: Answer, asked: Instant, now: Instant) {
        match (answer, self.standing) {
            (Answer::Granted(grant), Standing::Asked) => {
                let held = Held::new(grant.bounded(), asked);
                self.known_until = Some(held.until());
                self.standing = Standing::Held(held, now);
            }
            (Answer::Later { after }, Standing::Asked) => {
                self.standing = Standing::Told(now + after.min(MAX_AFTER));
            }
            (Answer::Noted | Answer::Granted(_) | Answer::Later { .. }, _) => {}
        }
    }

    /// True if the host is among those that the owner is told of with the next call.
    pub(super) fn is_queued(&self) -> bool {
        self.is_queued
    }

    /// Notes that it is among them.
    pub(super) fn queued(&mut self) {
        self.is_queued = true;
    }

    /// The owner does not answer: until this moment the host is asked alone.
    pub(super) fn unanswered(&mut self, until: Instant) {
        self.is_queued = false;
        // Whether the owner has heard of it, nobody knows.
        self.known_until = None;
        self.is_untold = self.last.is_some();
        if matches!(self.standing, Standing::Asked) {
            self.standing = Standing::Alone(until);
        }
    }

    /// The host has another owner, who knows nothing: the lease is not used any more.
    pub(super) fn owner_changed(&mut self) {
        self.standing = Standing::Nothing;
        self.known_until = None;
        self.is_queued = false;
        self.is_untold = self.last.is_some();
    }

    /// Looks after what nobody has come for. A worker that `is_shared` tells the owner.
    pub(super) fn look(&mut self, is_shared: bool, now: Instant) -> Due {
        let is_in_flight = self.n_in_flight > 0;
        let is_past = match self.standing {
            Standing::Held(held, _) if held.until() <= now => true,
            Standing::Held(_, idle_since) => !is_in_flight && idle_since + IDLE <= now,
            Standing::Told(at) => at + IDLE <= now,
            Standing::Alone(until) => until <= now,
            Standing::Nothing | Standing::Asked => false,
        };
        let was_held = is_past && matches!(self.standing, Standing::Held(..));
        if is_past {
            self.standing = Standing::Nothing;
        }
        let is_nothing = matches!(self.standing, Standing::Nothing);
        if is_in_flight {
            let is_due = self.known_until.is_none_or(|until| until <= now + REMIND);
            return if is_shared && is_due {
                Due::Tell
            } else {
                Due::Nothing
            };
        }
        if is_shared && (was_held || is_nothing && self.is_untold) {
            return Due::Tell;
        }
        let rested = |last: Last| last.ended + last.pause.max(self.delay * ALONE) <= now;
        match is_nothing && self.last.is_none_or(rested) {
            true => Due::Forget,
            false => Due::Nothing,
        }
    }

    /// True if the owner should be told of the request that has just begun.
    pub(super) fn is_reminder_due(&self, now: Instant) -> bool {
        self.known_until
            .is_none_or(|until| until <= now + REMIND_NOW)
    }

    /// True if a request is in flight.
    pub(super) fn is_in_flight(&self) -> bool {
        self.n_in_flight > 0
    }

    /// True while the owner is not waited for.
    #[cfg(test)]
    pub(super) fn is_alone(&self) -> bool {
        matches!(self.standing, Standing::Alone(_))
    }

    fn ended(&self) -> Option<Instant> {
        self.last.map(|last| last.ended)
    }

    fn alone_at(&self) -> Option<Instant> {
        self.last.map(|last| last.ended + self.delay * ALONE)
    }
}

#[cfg(test)]
mod tests;
