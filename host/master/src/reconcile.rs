//! Reconciler: loops that bring the actual state to the desired one.
//!
//! One loop places shards, the other removes deleted resources, so that a data root that does not answer holds
//! up only the latter. Each pass looks at all records, lets the pure `plan` compute the differences, and writes
//! each as one guarded transaction; an action that loses its guards is left to the next pass. Changes only wake
//! the loops.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::WorkerCalls;
use super::cleanup::DataCleanup;
use super::events;
use super::metrics::LeaderCounts;
use super::observed::Observed;
use super::replica::Replica;
use crawler_model::event::Event;
use crawler_model::id::ResourceId;
use crawler_process::clock::Clock;
use crawler_process::retry::Backoff;
use crawler_process::telemetry;
use crawler_store::catalog::Catalog;
use crawler_store::election::Leadership;
use crawler_store::{Outcome, StoreError, Txn};

pub(super) use actions::assignment_txn;
#[cfg(test)]
pub(super) use deletion::tests::{crawl, line_folders};
pub use settings::{DeletionSettings, PlacementSettings};

mod actions;
mod deletion;
mod plan;
mod settings;
mod stuck_actions;
mod tellings;
mod unresponsive;

use plan::{Action, TermHistory, plan};
use stuck_actions::{Contention, StuckActions};
use unresponsive::UnresponsiveWorkers;

/// Longest interval between two looks of a loop at all records.
const RESYNC: Duration = Duration::from_secs(60);
/// Pause before a loop looks again after a write that lost to another.
pub(super) const LOST_PAUSE: Duration = Duration::from_millis(200);

/// Length of the pause after a pass, as a multiple of the pass: however much there is to look at, and however
/// often it changes, looking takes no more than a fifth of a core.
const PAUSE_SHARE: u32 = 4;

/// Parts that the loops work with, whoever leads.
#[derive(Clone)]
pub struct ReconcileParts {
    /// The records in the store: desired and actual state.
    pub catalog: Catalog,
    /// Removal of what deleted resources leave in the data root.
    pub cleanup: Arc<dyn DataCleanup>,
    /// Wall-clock time.
    pub clock: Arc<dyn Clock>,
    /// Settings for the removal of deleted resources.
    pub deletion: DeletionSettings,
    /// Calls to workers, to ask whether they still write.
    pub workers: Arc<dyn WorkerCalls>,
    /// Replica of the state, for decisions.
    pub replica: Replica,
    /// Settings for placing and moving shards.
    pub placement: PlacementSettings,
    /// Time for which a silent worker still counts as present.
    pub lease_ttl: Duration,
    /// Counts of what the loops do.
    pub counts: Arc<LeaderCounts>,
}

/// Result of a pass.
#[derive(Debug)]
struct Pass {
    /// Time until something has been waited for long enough.
    look_again: Option<Duration>,
    /// Pause before the next pass.
    pause: Duration,
    /// Actions that lost their guards, or whose outcome is unknown.
    lost: Vec<Action>,
}

/// Reconciler for one term of a leader.
pub struct Reconciler {
    /// Parts that the loops work with.
    pub parts: ReconcileParts,
    /// Leadership under which every write is made.
    pub leadership: Leadership,
}

impl Reconciler {
    /// Runs both loops until `stop`. Errors of the store are logged and waited out.
    pub async fn run(self, stop: CancellationToken) {
        tokio::join!(self.keep_placing(&stop), self.keep_deleting(&stop));
    }

    async fn keep_placing(&self, stop: &CancellationToken) {
        let parts = &self.parts;
        let mut history = TermHistory::new(parts.lease_ttl, &parts.placement, Instant::now());
        let mut backoff = new_backoff();
        loop {
            let result = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                result = self.place_on_changes(&mut history, &mut backoff) => result,
            };
            let Err(error) = result;
            wait_out(&error, &mut backoff, stop).await;
        }
    }

    async fn keep_deleting(&self, stop: &CancellationToken) {
        let mut backoff = new_backoff();
        loop {
            let result = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                result = self.delete_on_changes(&mut backoff) => result,
            };
            let Err(error) = result;
            wait_out(&error, &mut backoff, stop).await;
        }
    }

    /// Makes a pass, and another one after each change. Cancelling leaves no transaction half-done.
    async fn place_on_changes(
        &self,
        history: &mut TermHistory,
        backoff: &mut Backoff,
    ) -> Result<Infallible, StoreError> {
        let mut replica = self.parts.replica.clone();
        let mut observed = replica.after(None).await;
        let mut stuck = StuckActions::default();
        loop {
            let pass = self.place(&observed, history).await?;
            backoff.reset();
            tokio::time::sleep(pass.pause).await;
            let n_changes = Some(observed.n_changes);
            let pause = pass.look_again.map_or(RESYNC, |wait| wait.min(RESYNC));
            let pause = match stuck.record(pass.lost, Instant::now()) {
                Contention::None => pause,
                Contention::Recent => LOST_PAUSE,
                Contention::Persistent => {
                    // The record that stands in the way is not in the replica.
                    replica.doubt();
                    LOST_PAUSE
                }
            };
            tokio::select! {
                biased;
                other = replica.after(n_changes) => observed = other,
                () = tokio::time::sleep(pause) => observed = replica.after(None).await,
            }
        }
    }

    /// Makes a pass, and another one after each change of a deletion.
    async fn delete_on_changes(&self, backoff: &mut Backoff) -> Result<Infallible, StoreError> {
        let mut replica = self.parts.replica.clone();
        let mut observed = replica.after(None).await;
        let unresponsive = UnresponsiveWorkers::default();
        loop {
            let pause = self.delete_due(&observed, &unresponsive).await?;
            backoff.reset();
            // Writes of this pass are changes too, once they are in view.
            let pause = pause.max(LOST_PAUSE);
            tokio::select! {
                biased;
                other = replica.after_deletions(observed.deletions.n_changes) => observed = other,
                () = tokio::time::sleep(pause) => observed = replica.after(None).await,
            }
        }
    }

    /// Carries out the present plan, for as long as the workers stay those that it was made for.
    async fn place(
        &self,
        observed: &Observed,
        history: &mut TermHistory,
    ) -> Result<Pass, StoreError> {
        let now = Instant::now();
        let counts = &self.parts.counts;
        for worker in history.observe(observed, now) {
            tracing::warn!(%worker, "what a missing worker has waits a lease time for it");
        }
        let plan = plan(observed, history, now).await;
        if plan.levels {
            history.balance.looked_for_moves(now);
        }
        let mut pass = Pass {
            look_again: plan.look_again,
            pause: plan.took * PAUSE_SHARE,
            lost: Vec::new(),
        };
        for action in plan.actions {
            if self.parts.replica.has_other_workers(observed) {
                break;
            }
            let done = match &action {
                Action::Pin(name, plugin) => self.pin(observed, name, plugin.clone()).await,
                Action::Assign(id, node) => self.assign(observed, *id, node).await,
                Action::Revoke(id, next) => self.revoke(observed, *id, next.as_ref()).await,
                Action::Free(id) => self.free(observed, *id).await,
                Action::Vacate(name) => self.vacate(observed, name).await,
                Action::Finish(id) => self.finish(observed, *id).await,
                Action::Unassign(worker, id) => self.unassign(observed, worker, *id).await,
            };
            match done {
                Ok(true) => counts.done.add(action.kind(), 1),
                // A record that it depends on has changed, or the outcome is unknown.
                Ok(false) => {
                    counts.lost.add(action.kind(), 1);
                    pass.lost.push(action);
                }
                Err(error) if error.is_transient() || matches!(error, StoreError::Deposed) => {
                    return Err(error);
                }
                // The error concerns this record alone.
                Err(error) => {
                    counts.failed.add(action.kind(), 1);
                    let error = telemetry::chain(&error);
                    tracing::error!(error, ?action, "something cannot be made as it should be");
                }
            }
        }
        counts.passes.add(now.elapsed());
        Ok(pass)
    }

    /// Makes one pass of a leader that has observed nothing before. Returns the number of lost actions.
    #[cfg(test)]
    pub(super) async fn pass(&self, observed: &Observed) -> usize {
        let (parts, now) = (&self.parts, Instant::now());
        let mut history = TermHistory::new(parts.lease_ttl, &parts.placement, now);
        let pass = self.place(observed, &mut history).await;
        pass.expect("the store answers").lost.len()
    }

    /// Adds events of a resource to the transaction that makes them true.
    fn tell(&self, txn: Txn, id: ResourceId, events: Vec<Event>) -> Txn {
        let ReconcileParts { catalog, clock, .. } = &self.parts;
        events::told(txn, catalog.keys(), &**clock, id, events)
    }

    /// Carries out a transaction. Returns false if it lost its guards, which the next pass deals with.
    async fn commit(&self, txn: Txn) -> Result<bool, StoreError> {
        let store = &**self.parts.catalog.store();
        let outcome = self.leadership.commit(store, txn).await?;
        Ok(matches!(outcome, Outcome::Done(_)))
    }
}

fn new_backoff() -> Backoff {
    Backoff::new(Duration::from_millis(100), Duration::from_secs(1))
}

/// Waits for a while after an error of the store, unless `stop` comes.
async fn wait_out(error: &StoreError, backoff: &mut Backoff, stop: &CancellationToken) {
    let error = telemetry::chain(error);
    tracing::warn!(error, "reconciling waits for the store");
    let pause = tokio::time::sleep(backoff.next_delay());
    stop.run_until_cancelled(pause).await;
}

#[cfg(test)]
mod tests;
