//! Lets a worker that is told to end give its shards away first.
//!
//! The worker registers as draining, and goes on with its shards: the leader hands them over, as after
//! `crawler node drain`. The worker ends when nothing is assigned to it any more, or when its time is up.
//! Shards that it still has then are placed anew, as after any end.

use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crawler_model::id::NodeId;
use crawler_process::retry::Backoff;
use crawler_process::telemetry;
use crawler_store::StoreError;
use crawler_store::catalog::Catalog;
use crawler_store::changes::Changes;

/// Interval of a look at the assignments, in case a watch has missed something.
const RESYNC: Duration = Duration::from_secs(5);

/// State of a node's registration, and whether the node is to leave. The task that stops the node and the
/// task that registers it share it.
#[derive(Debug, Clone)]
pub(super) struct GracefulDrain {
    requested: CancellationToken,
    registration: watch::Sender<RegistrationState>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RegistrationState {
    /// The node is not registered yet.
    Absent,
    Registered,
    /// The node is registered as draining.
    Draining,
}

impl GracefulDrain {
    /// Creates the state of a node that is not registered yet.
    pub(super) fn new() -> Self {
        Self {
            requested: CancellationToken::new(),
            registration: watch::Sender::new(RegistrationState::Absent),
        }
    }

    /// Waits until the node is to leave.
    pub(super) async fn requested(&self) {
        self.requested.cancelled().await;
    }

    /// Returns true if the node is to leave.
    pub(super) fn is_requested(&self) -> bool {
        self.requested.is_cancelled()
    }

    /// Takes note that the node is registered, draining or not.
    pub(super) fn registered(&self, is_draining: bool) {
        self.registration.send_replace(match is_draining {
            true => RegistrationState::Draining,
            false => RegistrationState::Registered,
        });
    }

    /// Gives away the shards of the worker, within this time. Returns at once if no shard can be assigned to
    /// it.
    pub(super) async fn give_all_away(&self, catalog: &Catalog, worker: &NodeId, within: Duration) {
        if within.is_zero() || *self.registration.borrow() == RegistrationState::Absent {
            return;
        }
        self.requested.cancel();
        let limit = humantime::format_duration(within);
        tracing::info!("giving away what this worker has, within {limit} (--drain-timeout)");
        match tokio::time::timeout(within, self.given_away(catalog, worker)).await {
            Ok(()) => tracing::info!("nothing is assigned to this worker any more"),
            Err(_elapsed) => tracing::warn!(
                "not all was given away within {limit}; others take it over (--drain-timeout)"
            ),
        }
    }

    async fn given_away(&self, catalog: &Catalog, worker: &NodeId) {
        let mut registration = self.registration.subscribe();
        let is_draining = registration.wait_for(|state| *state == RegistrationState::Draining);
        if is_draining.await.is_err() {
            return;
        }
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
        while let Err(error) = nothing_assigned(catalog, worker).await {
            let error = telemetry::chain(&error);
            tracing::warn!(error, "assignments cannot be read");
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }
}

/// Waits until nothing is assigned to a worker.
async fn nothing_assigned(catalog: &Catalog, worker: &NodeId) -> Result<(), StoreError> {
    let prefix = catalog.keys().assignments_of(worker);
    let mut changes = Changes::below(catalog, &prefix, RESYNC).await?;
    while !catalog.store().list(&prefix).await?.entries.is_empty() {
        changes.next().await?;
    }
    Ok(())
}
