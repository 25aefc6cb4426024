//! A lease that is kept alive for as long as this process may count on it.
//!
//! The lease is renewed at a third of its time. Only an answer extends the deadline, counted from
//! when it was asked for. At two thirds without one the holder is told to stop, whatever the
//! network says later: the store waits the whole time before it gives the keys away, so that the
//! holder has stopped before anyone else begins.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{LeaseId, Store, StoreError};
use crate::retry::Backoff;
use crate::task::TaskScope;

/// A lease with the task that renews it. Dropping it ends the renewals, and the store lets go of
/// its keys when its time is over; [`LeaseKeeper::release`] does so at once.
pub struct LeaseKeeper {
    store: Arc<dyn Store>,
    id: LeaseId,
    lost: CancellationToken,
    _renewals: DropGuard,
}

impl LeaseKeeper {
    /// Takes a lease of this duration and renews it in a task of `scope`, until the scope is told
    /// to stop.
    pub async fn grant(
        store: Arc<dyn Store>,
        ttl: Duration,
        scope: &TaskScope,
    ) -> Result<Self, StoreError> {
        let asked = Instant::now();
        let granted = tokio::time::timeout(ttl, store.grant_lease(ttl)).await;
        let id = granted.map_err(|_elapsed| StoreError::Unavailable {
            why: format!("no lease within {}", humantime::format_duration(ttl)),
        })??;
        let lost = CancellationToken::new();
        let stop = scope.stop_signal().child_token();
        let renewals = Renewals {
            store: store.clone(),
            id,
            ttl,
            held_until: asked + ttl * 2 / 3,
            renew_at: asked + ttl / 3,
            // However the task ends, nobody renews from there on.
            _lost: lost.clone().drop_guard(),
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
            id,
            lost,
            _renewals,
        })
    }

    /// To put keys under.
    pub fn id(&self) -> LeaseId {
        self.id
    }

    /// Cancelled when the keys of the lease can no longer be counted on: whoever works in their
    /// name stops now. It stays so; a new lease is needed.
    pub fn lost(&self) -> CancellationToken {
        self.lost.clone()
    }

    /// Ends the renewals and the lease with its keys.
    pub async fn release(self) -> Result<(), StoreError> {
        let Self {
            store,
            id,
            lost,
            _renewals,
        } = self;
        drop(_renewals);
        lost.cancel();
        store.revoke_lease(id).await
    }
}

impl fmt::Debug for LeaseKeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseKeeper")
            .field("id", &self.id)
            .field("lost", &self.lost.is_cancelled())
            .finish_non_exhaustive()
    }
}

struct Renewals {
    store: Arc<dyn Store>,
    id: LeaseId,
    ttl: Duration,
    /// Until here the last answer lets the holder go on.
    held_until: Instant,
    renew_at: Instant,
    _lost: DropGuard,
}

impl Renewals {
    /// Returns when the lease can no longer be counted on.
    async fn run(mut self) {
        let mut backoff = Backoff::new(self.ttl / 60, self.ttl / 12);
        loop {
            tokio::time::sleep_until(self.renew_at.min(self.held_until)).await;
            let asked = Instant::now();
            if asked >= self.held_until {
                tracing::warn!(
                    lease = self.id.0,
                    "no answer to renewals in time; the lease is given up"
                );
                return;
            }
            // Half of the time that is left for asking, so that one lost answer costs no lease.
            let answer_by = self.held_until.min(asked + self.ttl / 6);
            let answer = tokio::time::timeout_at(answer_by, self.store.renew_lease(self.id)).await;
            match answer {
                // The process may have been stopped between the answer and here.
                Ok(Ok(())) if Instant::now() < self.held_until => {
                    self.held_until = asked + self.ttl * 2 / 3;
                    self.renew_at = asked + self.ttl / 3;
                    backoff.reset();
                }
                Ok(Ok(())) => self.renew_at = self.held_until,
                Ok(Err(StoreError::LeaseGone)) => {
                    tracing::warn!(lease = self.id.0, "the lease has ended");
                    return;
                }
                Ok(Err(error)) => {
                    tracing::warn!(lease = self.id.0, ?error, "cannot renew the lease yet");
                    self.renew_at = Instant::now() + backoff.next_delay();
                }
                Err(_elapsed) => self.renew_at = Instant::now() + backoff.next_delay(),
            }
        }
    }
}

#[cfg(test)]
mod tests;
