//! Lease that is kept alive for as long as this process may count on it.
//!
//! The lease is renewed after a third of its time. Only an answer extends the deadline, counted from when the
//! renewal was sent. After two thirds without an answer, the holder is told to stop, whatever the network says
//! later: the store waits the whole time before it gives the keys away, so that the holder has stopped before
//! anyone else begins. Time for which the machine was suspended counts.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{LeaseId, Store, StoreError};
use crawler_process::retry::Backoff;
use crawler_process::task::TaskScope;

mod suspended;

use suspended::suspended;

/// A lease with the task that renews it. Dropping it ends the renewals, and the store deletes its keys when its
/// time is over; [`LeaseKeeper::release`] does so at once.
pub struct LeaseKeeper {
    store: Arc<dyn Store>,
    term: Term,
    _renewals: DropGuard,
}

/// View of a lease, for code that works in its name and must know whether it still holds. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Term {
    id: LeaseId,
    lost: CancellationToken,
    held: Arc<Mutex<Held>>,
}

/// Time up to which the last answer lets a holder count on a lease.
#[derive(Debug, Clone, Copy)]
struct Held {
    until: Instant,
    /// Time for which the machine had been suspended when the renewal was sent.
    suspended: Duration,
}

impl Held {
    fn is_over(self, now: Instant, suspended: Duration) -> bool {
        let missed = suspended.saturating_sub(self.suspended).as_secs();
        now + Duration::from_secs(missed) >= self.until
    }
}

impl Term {
    /// Returns the id of the lease, for keys that are put under it.
    pub fn id(&self) -> LeaseId {
        self.id
    }

    /// True if the lease can be counted on now. After the process was stopped for a while, this turns false
    /// before any of its timers fires.
    pub fn is_held(&self) -> bool {
        if self.lock().is_over(Instant::now(), suspended()) {
            self.lost.cancel();
        }
        !self.lost.is_cancelled()
    }

    /// Waits until the lease can no longer be counted on. That is final; a new lease is needed.
    pub async fn ended(&self) {
        self.lost.cancelled().await;
    }

    /// Extends the lease. Returns false if the answer came too late: an ended lease stays ended.
    fn extend(&self, held: Held) -> bool {
        let mut present = self.lock();
        let is_in_time = !present.is_over(Instant::now(), suspended());
        if is_in_time {
            *present = held;
        }
        is_in_time
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LeaseKeeper {
    /// Takes a lease of this duration and renews it in a task of `scope`, until the scope is told to stop.
    pub async fn grant(
        store: Arc<dyn Store>,
        ttl: Duration,
        scope: &TaskScope,
    ) -> Result<Self, StoreError> {
        let (asked, suspended) = (Instant::now(), suspended());
        let granted = tokio::time::timeout(ttl, store.grant_lease(ttl)).await;
        let id = granted.map_err(|_elapsed| StoreError::Unavailable {
            why: format!("no lease within {}", humantime::format_duration(ttl)),
        })??;
        let term = Term {
            id,
            lost: CancellationToken::new(),
            held: Arc::new(Mutex::new(Held {
                until: asked + ttl * 2 / 3,
                suspended,
            })),
        };
        let stop = scope.stop_signal().child_token();
        let renewals = Renewals {
            store: store.clone(),
            ttl,
            renew_at: asked + ttl / 3,
            // However the task ends, nobody renews the lease from then on.
            _lost: term.lost.clone().drop_guard(),
            term: term.clone(),
        };
        scope.spawn(format!("renewals of lease {}", id.0), {
            let stop = stop.clone();
            async move {
                let _ended = stop.run_until_cancelled(renewals.run()).await;
            }
        });
        let _renewals = stop.drop_guard();
        Ok(Self {
            store,
            term,
            _renewals,
        })
    }

    /// Returns the id of the lease, for keys that are put under it.
    pub fn id(&self) -> LeaseId {
        self.term.id
    }

    /// Returns a view of the lease, for code that works in its name.
    pub fn term(&self) -> Term {
        self.term.clone()
    }

    /// Returns a token that is cancelled when the keys of the lease can no longer be counted on. Code that
    /// works in their name must then stop. That is final; a new lease is needed.
    pub fn lost(&self) -> CancellationToken {
        self.term.lost.clone()
    }

    /// Ends the renewals and the lease with its keys.
    pub async fn release(self) -> Result<(), StoreError> {
        let Self {
            store,
            term,
            _renewals,
        } = self;
        drop(_renewals);
        term.lost.cancel();
        store.revoke_lease(term.id).await
    }
}

impl fmt::Debug for LeaseKeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseKeeper")
            .field("id", &self.term.id)
            .field("lost", &self.term.lost.is_cancelled())
            .finish_non_exhaustive()
    }
}

struct Renewals {
    store: Arc<dyn Store>,
    /// View of the lease, whose deadline each answer extends.
    term: Term,
    ttl: Duration,
    renew_at: Instant,
    _lost: DropGuard,
}

impl Renewals {
    /// Renews the lease. Returns when it can no longer be counted on.
    async fn run(mut self) {
        let mut backoff = Backoff::new(self.ttl / 60, self.ttl / 12);
        loop {
            let held = *self.term.lock();
            let held_until = held.until;
            tokio::time::sleep_until(self.renew_at.min(held_until)).await;
            let (asked, suspended) = (Instant::now(), suspended());
            if held.is_over(asked, suspended) {
                tracing::warn!(
                    lease = self.term.id.0,
                    "no answer to renewals in time; the lease is given up"
                );
                return;
            }
            // Half of the remaining time is left for another try, so that one lost answer does not cost the
            // lease.
            let answer_by = held_until.min(asked + self.ttl / 6);
            let answer =
                tokio::time::timeout_at(answer_by, self.store.renew_lease(self.term.id)).await;
            match answer {
                Ok(Ok(())) => {
                    let until = asked + self.ttl * 2 / 3;
                    // The process may have been stopped between the answer and this point.
                    match self.term.extend(Held { until, suspended }) {
                        true => {
                            self.renew_at = asked + self.ttl / 3;
                            backoff.reset();
                        }
                        false => self.renew_at = Instant::now(),
                    }
                }
                Ok(Err(StoreError::LeaseGone)) => {
                    tracing::warn!(lease = self.term.id.0, "the lease has ended");
                    return;
                }
                Ok(Err(error)) => {
                    tracing::warn!(lease = self.term.id.0, ?error, "cannot renew the lease yet");
                    self.renew_at = Instant::now() + backoff.next_delay();
                }
                Err(_elapsed) => self.renew_at = Instant::now() + backoff.next_delay(),
            }
        }
    }
}

#[cfg(test)]
mod tests;
