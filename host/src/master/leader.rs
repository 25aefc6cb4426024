//! What a master does while it leads, beside answering calls: it places, takes apart what was deleted,
//! and looks after the data root and the history of the store.

use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStore;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::WorkerCalls;
use super::control::Control;
use super::housekeeping;
use super::placement::Strategy;
use super::reconcile::{DeletionSettings, Reconciler};
use crate::clock::Clock;
use crate::data::DataRoot;
use crate::store::catalog::Catalog;
use crate::store::election::Leadership;

/// What a leader works with.
pub struct Leader {
    /// The state, desired and observed.
    pub catalog: Catalog,
    /// Where everything large lies.
    pub data: Arc<DataRoot>,
    /// What frontiers are read through.
    pub objects: Arc<dyn ObjectStore>,
    /// Wall-clock time.
    pub clock: Arc<dyn Clock>,
    /// When the data of deleted resources goes.
    pub deletion: DeletionSettings,
    /// To ask whether a worker still writes.
    pub workers: Arc<dyn WorkerCalls>,
    /// Woken by calls that changed something.
    pub wake: Arc<Notify>,
    /// Revisions of the store's history that are kept; none: somebody else looks after it.
    pub keep_revisions: Option<u64>,
    /// How a worker is chosen for a shard.
    pub strategy: Strategy,
    /// How long a node that went silent counts as there.
    pub lease_ttl: Duration,
    /// The calls of this master; tells how the election stands.
    pub control: Arc<Control>,
}

impl Leader {
    /// Does so in each term of this master, until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let mut standing = self.control.standing().clone();
        while let Some(Ok(leadership)) = stop
            .run_until_cancelled(async {
                let leads = standing.wait_for(|s| s.leadership().is_some()).await;
                leads.map(|standing| standing.leadership().cloned())
            })
            .await
        {
            // Lost again already.
            let Some(leadership) = leadership else {
                continue;
            };
            tracing::info!("this master leads");
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = leadership.lost().cancelled() => {
                    tracing::warn!("this master leads no longer");
                }
                () = self.term(&leadership, &stop) => {}
            }
        }
    }

    /// Goes on for as long as it is let.
    async fn term(&self, leadership: &Leadership, stop: &CancellationToken) {
        let reconciler = Reconciler {
            catalog: self.catalog.clone(),
            data: self.data.clone(),
            objects: self.objects.clone(),
            clock: self.clock.clone(),
            deletion: self.deletion.clone(),
            workers: self.workers.clone(),
            wake: self.wake.clone(),
            strategy: self.strategy,
            lease_ttl: self.lease_ttl,
            leadership: leadership.clone(),
        };
        tokio::join!(
            reconciler.run(stop.clone()),
            housekeeping::sweep(&self.data, &*self.clock, &self.control),
            housekeeping::compact(&self.catalog, self.keep_revisions),
        );
    }
}
