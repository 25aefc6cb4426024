//! Turns of hosts over all workers of a cluster.
//!
//! ```text
//! rank    who owns a host: rendezvous hashing over the workers that are registered
//! owner   pure: to whom a host is lent, who is next, and when it is free
//! holder  pure: what a worker that asks knows of one host
//! lease    pure: a lease, its turns and its end
//! member  pure: one worker, which is the owner of some hosts and asks the owners of others
//! call    what is said between two workers, and its bounds
//! ```
//!
//! The owner of a host lends it to one worker at a time, for up to [`MAX_TURNS`](call::MAX_TURNS) requests that
//! begin within [`LEASE`](call::LEASE); a lease of a host with a long delay allows one request. The worker keeps
//! the delay between them at its own [throttle](super::throttle), and tells the owner when the last one has ended
//! and how long the host is to be left alone. The host is lent again when that time is over. No host is then asked
//! by two workers within its delay, as long as these hold:
//!
//! - The workers see the list of workers change within a second of each other. Otherwise an old owner and a
//!   new one may lend a host at once.
//! - The owner answers within [`DEADLINE`]. Without an answer a worker goes alone for 5 s, at twice the delay
//!   of the host, and then asks again. If the network is cut, this happens on both sides. Workers that go
//!   alone do not know of each other: two of them ask a host as often as one with the delay, but two requests
//!   may come close together; three or more of them ask it more often.
//! - A request is sent as soon as it is begun. A worker that is suspended between the two, for longer than
//!   its lease and a delay, may send it late: once for each host that it was about to ask.
//! - Clocks run at the same speed. Calls carry no moments, and no wall clock is read.
//!
//! A new owner knows nothing of a host, and gives it no turn until a lease of the owner before has run out
//! and a delay has passed. The same wait follows the death of a worker. Workers that are alone from their
//! start make no calls and use their own throttle only, and so do crawls that ask for no delay. Not shared are
//! rates (`host-rate`, `address-rate`), and what a worker learnt about a host in trouble before others came.
//!
//! Everything is bounded: the number of known hosts, the hosts in a call, and the time for each call. A host
//! that an owner has no room for gets no turn.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::Notify;
use tokio::time::Instant;

use call::{Answer, AskTurns, DEADLINE, MAX_NAME, TurnRequests, TurnRequestsError, WorkerProcess};
use crawler_model::settings::MAX_DELAY;
use member::{Call, Member, OwnerChange};

pub mod call;
mod holder;
mod lease;
mod member;
mod owner;
mod rank;
#[cfg(test)]
pub(super) mod testing;

pub use rank::Peer;

/// Time between two ticks, at which all hosts are looked at.
const TICK: Duration = Duration::from_millis(250);
/// The shortest time after which a crawl comes again.
const SHORTEST: Duration = Duration::from_millis(5);

/// Turns that a worker shares with others. Cheap to clone.
#[derive(Clone)]
pub struct Turns(Arc<Shared>);

struct Shared {
    member: Mutex<Member>,
    remote: Arc<dyn AskTurns>,
    /// Signals that there may be a call to carry out.
    news: Notify,
}

impl std::fmt::Debug for Turns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Turns").finish_non_exhaustive()
    }
}

/// A request under way in its turn. Dropping this ends the turn.
#[derive(Debug)]
#[must_use = "dropping it ends the turn"]
pub(super) struct TurnInUse {
    turns: Turns,
    host: Arc<str>,
    pause: Duration,
}

impl Turns {
    /// Creates the turns of a worker that does not know the others yet. No host is asked before it does.
    pub fn new(own: WorkerProcess, remote: Arc<dyn AskTurns>) -> Self {
        Self(Arc::new(Shared {
            member: Mutex::new(Member::new(own)),
            remote,
            news: Notify::new(),
        }))
    }

    /// Replaces the list of registered workers that share turns.
    pub fn set_workers(&self, workers: Vec<Peer>) {
        self.member().change(workers, Instant::now());
        self.0.news.notify_one();
    }

    /// Answers another worker as the owner of hosts.
    pub fn receive(&self, asks: TurnRequests) -> Result<Vec<Answer>, TurnRequestsError> {
        let asks = asks.checked()?;
        Ok(self.member().receive(&asks, Instant::now()))
    }

    /// Asks the owners of hosts, and returns leases that are not used. It never ends; if it does not run,
    /// owners are never asked.
    pub async fn run(&self) {
        let mut calls = FuturesUnordered::new();
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            loop {
                let next = self.member().next_call(Instant::now());
                let Some(call) = next else {
                    break;
                };
                calls.push(self.carry_out(call));
            }
            tokio::select! {
                biased;
                Some(()) = calls.next() => {}
                () = self.0.news.notified() => {}
                _ = ticks.tick() => self.member().tick(Instant::now()),
            }
        }
    }

    async fn carry_out(&self, call: Call) {
        let answer = self.0.remote.ask(&call.to.node, call.asks.clone());
        let (answers, why) = match tokio::time::timeout(DEADLINE, answer).await {
            Ok(Ok(answers)) => (Some(answers), String::new()),
            Ok(Err(error)) => (None, error.to_string()),
            Err(_elapsed) => (None, format!("no answer within {DEADLINE:?}")),
        };
        let now = Instant::now();
        let change = self.member().answered(&call, answers.as_deref(), now);
        let worker = &call.to.node.id;
        match change {
            OwnerChange::None => {}
            OwnerChange::Lost => tracing::warn!(
                %worker,
                why,
                "a worker does not answer for the hosts that it owns: they are asked alone, at twice their delay; see whether its gRPC address is reached from here, or start all workers with --shared-turns off"
            ),
            OwnerChange::Regained => {
                tracing::info!(%worker, "a worker answers again for the hosts that it owns")
            }
        }
    }

    /// Asks for a turn of a host, by the name of its clock. On success the request may go on to the throttle; the
    /// error holds the time after which it is to come again.
    pub(super) fn turn(&self, host: &str, delay: Duration) -> Result<(), Duration> {
        // No DNS name is that long, so no other worker finds such a host either.
        if host.len() > MAX_NAME {
            return Ok(());
        }
        let turn = (self.member()).turn(host, delay.min(MAX_DELAY), Instant::now());
        turn.map_err(|pause| {
            self.0.news.notify_one();
            pause.max(SHORTEST)
        })
    }

    /// Begins a request, if its turn is still valid.
    pub(super) fn begin(&self, host: &str, delay: Duration) -> Option<TurnInUse> {
        let delay = delay.min(MAX_DELAY);
        let is_unbound = host.len() > MAX_NAME;
        let has_begun = is_unbound || self.member().begin(host, delay, Instant::now());
        has_begun.then(|| TurnInUse {
            turns: self.clone(),
            host: Arc::from(host),
            pause: delay,
        })
    }

    fn member(&self) -> MutexGuard<'_, Member> {
        self.0.member.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TurnInUse {
    /// Ends the turn; the host is left alone for `pause`.
    pub(super) fn finish(mut self, pause: Duration) {
        self.pause = pause.min(MAX_DELAY);
    }
}

impl Drop for TurnInUse {
    fn drop(&mut self) {
        if self.host.len() <= MAX_NAME {
            let mut member = self.turns.member();
            member.end(&self.host, self.pause, Instant::now());
        }
        self.turns.0.news.notify_one();
    }
}

#[cfg(test)]
mod tests;
