//! State machine of a worker that asks for turns of one host: its knowledge of the host, and its requests there.
//!
//! A request needs a turn of a lease. Without a lease the worker asks the owner, and is told to use it or to
//! ask again later. If the owner does not answer, the worker goes alone for a while, at twice the delay. A
//! lease is returned when its last turn is over, when another would not fit into it, or when it was unused
//! for [`IDLE`]. The owner is told the end of the last request and the host's pause.
//!
//! The end of a lease does not end a request in flight. The owner is told of the request before it would
//! count the host as free ([`REMIND`]), and again until it is over.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::call::{Answer, Ended, LEASE, MAX_AFTER, TurnRequest};
use super::lease::HeldLease;

/// Time after which an unused lease goes back to the owner.
const IDLE: Duration = Duration::from_millis(500);
/// Time before the end of a lease at which the owner is told of a request that is still in flight. It leaves
/// room for calls that get no answer.
const REMIND: Duration = Duration::from_secs(3);
/// The same time for a request that has just begun; it is shorter, because most requests are over soon.
const REMIND_NOW: Duration = Duration::from_secs(1);
/// Time after which a crawl looks for the owner's answer.
pub(super) const POLL_AFTER: Duration = Duration::from_millis(25);
/// Factor by which a worker that goes alone multiplies the delay.
const ALONE: u32 = 2;

/// A worker's knowledge of one host.
#[derive(Debug, Default)]
pub(super) struct Holder {
    lease: LeaseState,
    /// Delay that the last crawl asked for.
    delay: Duration,
    n_in_flight: u32,
    last: Option<LastRequest>,
    /// True if the owner does not know of the end of the last request.
    is_untold: bool,
    /// True if the next call tells the owner of the host.
    is_queued: bool,
    /// Time until which the owner counts the request in flight, even if it gets no further call.
    known_until: Option<Instant>,
}

#[derive(Debug, Default, Clone, Copy)]
enum LeaseState {
    /// The owner was not asked.
    #[default]
    NotAsked,
    /// The owner was asked, or is about to be.
    Asked,
    /// The owner is to be asked again at this moment.
    AskAgain(Instant),
    /// The lease of the host, and the time since when it is unused.
    Held(HeldLease, Instant),
    /// The owner does not answer: the worker goes alone until this moment.
    Alone(Instant),
}

/// The last request that has ended.
#[derive(Debug, Clone, Copy)]
struct LastRequest {
    ended: Instant,
    pause: Duration,
}

/// Answer to a crawl that wants to ask a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnDecision {
    /// The crawl may go on to the throttle.
    Free,
    /// The crawl is to come again at this moment.
    Later(Instant),
    /// The owner is to be asked first.
    AskOwner,
}

/// Work that a look at a host finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// No work.
    Nothing,
    /// The owner is to be told of the host's state.
    Tell,
    /// The host may be forgotten.
    Forget,
}

impl Holder {
    /// Answers a crawl that wants to ask the host.
    pub(super) fn turn(&mut self, delay: Duration, now: Instant) -> TurnDecision {
        self.delay = delay;
        match self.lease {
            LeaseState::Asked => TurnDecision::Later(now + POLL_AFTER),
            LeaseState::AskAgain(at) if at > now => TurnDecision::Later(at),
            LeaseState::Held(held, _) => match held.next_at(self.ended(), now) {
                Some(at) if at > now => TurnDecision::Later(at),
                Some(_) => TurnDecision::Free,
                None => self.ask_when_over(now),
            },
            LeaseState::Alone(until) if until > now => match self.alone_at() {
                Some(at) if at > now => TurnDecision::Later(at),
                Some(_) | None => TurnDecision::Free,
            },
            LeaseState::NotAsked | LeaseState::AskAgain(_) | LeaseState::Alone(_) => {
                self.ask_when_over(now)
            }
        }
    }

    /// Answers while there is no turn: the owner gives the next one once the request in flight is over.
    fn ask_when_over(&mut self, now: Instant) -> TurnDecision {
        if self.n_in_flight > 0 {
            return TurnDecision::Later(now + self.delay.max(POLL_AFTER));
        }
        self.lease = LeaseState::Asked;
        TurnDecision::AskOwner
    }

    /// Begins a request, if its turn is still valid: the wait in the throttle may have been long.
    pub(super) fn begin(&mut self, delay: Duration, now: Instant) -> bool {
        self.delay = delay;
        let may_begin = self.n_in_flight == 0
            && match &mut self.lease {
                LeaseState::Held(held, _) => {
                    let last = self.last.map(|last| last.ended);
                    let is_due = held.next_at(last, now).is_some_and(|at| at <= now);
                    if is_due {
                        held.use_turn();
                    }
                    is_due
                }
                LeaseState::Alone(until) => {
                    *until > now && self.alone_at().is_none_or(|at| at <= now)
                }
                LeaseState::NotAsked | LeaseState::Asked | LeaseState::AskAgain(_) => false,
            };
        self.n_in_flight += u32::from(may_begin);
        may_begin
    }

    /// Begins a request of a worker that has always been alone.
    pub(super) fn begin_unasked(&mut self, delay: Duration) {
        self.delay = delay;
        self.n_in_flight += 1;
    }

    /// Ends a request; the host is left alone for `pause`. Returns true if the owner should know at once.
    pub(super) fn end(&mut self, pause: Duration, now: Instant) -> bool {
        self.n_in_flight = self.n_in_flight.saturating_sub(1);
        let pause = pause.max(self.delay);
        self.last = Some(LastRequest { ended: now, pause });
        self.is_untold = true;
        match self.lease {
            LeaseState::Held(held, _) => {
                let next_at = held.next_at(Some(now), now);
                if next_at.is_none_or(|at| at.max(now + pause) >= held.until()) {
                    self.lease = LeaseState::NotAsked;
                    return true;
                }
                self.lease = LeaseState::Held(held, now + pause);
                false
            }
            LeaseState::Alone(_) => false,
            LeaseState::NotAsked | LeaseState::Asked | LeaseState::AskAgain(_) => true,
        }
    }

    /// Returns the news of this host for its owner. Returns `None` if the lease is in use and the owner knows
    /// everything.
    pub(super) fn tell(&mut self, host: &Arc<str>, now: Instant) -> Option<TurnRequest> {
        self.is_queued = false;
        let is_in_flight = self.n_in_flight > 0;
        if matches!(self.lease, LeaseState::Held(..)) && !is_in_flight {
            return None;
        }
        let last = self.last.filter(|_| std::mem::take(&mut self.is_untold));
        self.known_until = is_in_flight.then_some(now + LEASE);
        Some(TurnRequest {
            host: Arc::clone(host),
            delay: self.delay,
            is_wanted: matches!(self.lease, LeaseState::Asked),
            is_in_flight,
            ended: last.map(|last| Ended {
                ago: now - last.ended,
                pause: last.pause,
            }),
        })
    }

    /// Processes the answer of the owner, who was asked at `asked`. A lease that is not awaited any more runs out.
    pub(super) fn answered(&mut self, answer: Answer, asked: Instant, now: Instant) {
        match (answer, self.lease) {
            (Answer::Granted(grant), LeaseState::Asked) => {
                let held = HeldLease::new(grant.bounded(), asked);
                self.known_until = Some(held.until());
                self.lease = LeaseState::Held(held, now);
            }
            (Answer::Later { after }, LeaseState::Asked) => {
                self.lease = LeaseState::AskAgain(now + after.min(MAX_AFTER));
            }
            (Answer::Noted | Answer::Granted(_) | Answer::Later { .. }, _) => {}
        }
    }

    /// Returns true if the next call tells the owner of the host.
    pub(super) fn is_queued(&self) -> bool {
        self.is_queued
    }

    /// Records that the next call tells the owner of the host.
    pub(super) fn queued(&mut self) {
        self.is_queued = true;
    }

    /// Records that the owner does not answer: until this moment the worker goes alone.
    pub(super) fn unanswered(&mut self, until: Instant) {
        self.is_queued = false;
        // It is unknown if the owner has received it.
        self.known_until = None;
        self.is_untold = self.last.is_some();
        if matches!(self.lease, LeaseState::Asked) {
            self.lease = LeaseState::Alone(until);
        }
    }

    /// Records that the host has another owner, who knows nothing: the lease is not used any more.
    pub(super) fn owner_changed(&mut self) {
        self.lease = LeaseState::NotAsked;
        self.known_until = None;
        self.is_queued = false;
        self.is_untold = self.last.is_some();
    }

    /// Checks the host for work that no crawl triggers. A worker that `is_shared` tells the owner.
    pub(super) fn tick(&mut self, is_shared: bool, now: Instant) -> Due {
        let is_in_flight = self.n_in_flight > 0;
        let is_past = match self.lease {
            LeaseState::Held(held, _) if held.until() <= now => true,
            LeaseState::Held(_, idle_since) => !is_in_flight && idle_since + IDLE <= now,
            LeaseState::AskAgain(at) => at + IDLE <= now,
            LeaseState::Alone(until) => until <= now,
            LeaseState::NotAsked | LeaseState::Asked => false,
        };
        let was_held = is_past && matches!(self.lease, LeaseState::Held(..));
        if is_past {
            self.lease = LeaseState::NotAsked;
        }
        let is_nothing = matches!(self.lease, LeaseState::NotAsked);
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
        let rested = |last: LastRequest| last.ended + last.pause.max(self.delay * ALONE) <= now;
        match is_nothing && self.last.is_none_or(rested) {
            true => Due::Forget,
            false => Due::Nothing,
        }
    }

    /// Returns true if the owner should be told of the request that has just begun.
    pub(super) fn is_reminder_due(&self, now: Instant) -> bool {
        self.known_until
            .is_none_or(|until| until <= now + REMIND_NOW)
    }

    /// Returns true if a request is in flight.
    pub(super) fn is_in_flight(&self) -> bool {
        self.n_in_flight > 0
    }

    /// Returns true while the worker goes alone.
    #[cfg(test)]
    pub(super) fn is_alone(&self) -> bool {
        matches!(self.lease, LeaseState::Alone(_))
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
