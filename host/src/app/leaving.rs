//! How a worker that is told to end gives away what it has before it does.
//!
//! It registers as draining, and goes on with what it has: the leader hands its shards over, as
//! after `crawler node drain`. It ends when nothing is assigned to it any more, or its time is
//! up; what it has then is placed anew, as after any end.

use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::model::id::NodeId;
use crate::retry::Backoff;
use crate::store::StoreError;
use crate::store::catalog::Catalog;
use crate::store::changes::Changes;
use crate::telemetry;

/// In case a watch has missed something.
const RESYNC: Duration = Duration::from_secs(5);

/// How a node stands to its cluster, and that it is to leave it: shared by who says so and who registers.
#[derive(Debug, Clone)]
pub(super) struct Leaving {
    asked: CancellationToken,
    standing: watch::Sender<Standing>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Not registered yet.
    Absent,
    Registered,
    /// Others know that it gives away what it has.
    Draining,
}

impl Leaving {
    /// Of a node that is not registered yet.
    pub(super) fn new() -> Self {
        Self {
            asked: CancellationToken::new(),
            standing: watch::Sender::new(Standing::Absent),
        }
    }

    /// Waits until the node is to leave.
    pub(super) async fn asked(&self) {
        self.asked.cancelled().await;
    }

    /// The node is to leave.
    pub(super) fn is_asked(&self) -> bool {
        self.asked.is_cancelled()
    }

    /// The node is registered, as it is to be by now.
    pub(super) fn registered(&self, is_draining: bool) {
        self.standing.send_replace(match is_draining {
            true => Standing::Draining,
            false => Standing::Registered,
        });
    }

    /// Gives away what the worker has, within this time. Returns at once where nothing can be its.
    pub(super) async fn give_all_away(&self, catalog: &Catalog, worker: &NodeId, within: Duration) {
        if within.is_zero() || *self.standing.borrow() == Standing::Absent {
            return;
        }
        self.asked.cancel();
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
        let mut standing = self.standing.subscribe();
        let is_told = standing.wait_for(|standing| *standing == Standing::Draining);
        if is_told.await.is_err() {
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
