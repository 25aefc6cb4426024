//! The loops that make what is so into what should be.
//!
//! One places, the other takes apart what was deleted: a data root that does not answer holds up only
//! the other. Each turn reads everything, lets the pure `plan` tell the differences, and writes each as one
//! guarded transaction; one that loses its guards is left to the next turn. Watches and the calls of
//! `control` only wake the loops.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStore;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::WorkerCalls;
use super::absent::Absences;
use super::observed::Observed;
use super::placement::Strategy;
use crate::clock::Clock;
use crate::data::DataRoot;
use crate::model::id::{NodeId, ResourceName};
use crate::model::node::{Node, Role};
use crate::model::resource::{
    Assignment, Owner, PinnedPlugin, Resource, ShardId, ShardRecord, ShardState,
};
use crate::retry::Backoff;
use crate::store::catalog::{Catalog, Versioned, encode};
use crate::store::changes::Changes;
use crate::store::election::Leadership;
use crate::store::keys::Keys;
use crate::store::{Guard, Outcome, StoreError, Txn};
use crate::telemetry;

pub use deletion::DeletionSettings;
#[cfg(test)]
pub(super) use deletion::tests::crawl;

mod deletion;
mod plan;

use plan::{Action, plan};

/// A loop looks at everything at least this often, in case a watch has missed something.
const RESYNC: Duration = Duration::from_secs(60);
/// How soon a loop looks again after a write that lost to another.
pub(super) const LOST_PAUSE: Duration = Duration::from_millis(200);

/// What a loop does in its turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Duty {
    /// Carries out the present plan.
    Place,
    /// Does what can be done by now about deleted resources.
    TakeApart,
}

/// What the loops work with, whoever leads.
#[derive(Clone)]
pub struct ReconcileParts {
    /// The state, desired and observed.
    pub catalog: Catalog,
    /// Where the data of deleted resources lies.
    pub data: Arc<DataRoot>,
    /// What their frontiers are read through.
    pub objects: Arc<dyn ObjectStore>,
    /// Wall-clock time.
    pub clock: Arc<dyn Clock>,
    /// When the data of deleted resources goes.
    pub deletion: DeletionSettings,
    /// To ask whether a worker still writes.
    pub workers: Arc<dyn WorkerCalls>,
    /// Woken by calls that changed something.
    pub wake: Arc<Notify>,
    /// How a worker is chosen for a shard.
    pub strategy: Strategy,
    /// How long a worker that went silent counts as there.
    pub lease_ttl: Duration,
}

/// The loops of one term.
pub struct Reconciler {
    /// What they work with.
    pub parts: ReconcileParts,
    /// What every write is made under.
    pub leadership: Leadership,
}

impl Reconciler {
    /// Turns until `stop`. Errors of the store are logged and waited out.
    pub async fn run(self, stop: CancellationToken) {
        tokio::join!(
            self.keep_up(Duty::Place, &stop),
            self.keep_up(Duty::TakeApart, &stop),
        );
    }

    async fn keep_up(&self, duty: Duty, stop: &CancellationToken) {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
        let mut absences = Absences::new(self.parts.lease_ttl, Instant::now());
        loop {
            let result = tokio::select! {
                result = self.turn_on_changes(duty, &mut absences, &mut backoff) => result,
                () = stop.cancelled() => return,
            };
            let Err(error) = result;
            tracing::warn!(
                error = telemetry::chain(&error),
                "reconciling waits for the store"
            );
            tokio::select! {
                () = tokio::time::sleep(backoff.next_delay()) => {}
                () = stop.cancelled() => return,
            }
        }
    }

    /// Turns once, and again after each change. Cancelling it leaves no transaction half-done.
    async fn turn_on_changes(
        &self,
        duty: Duty,
        absences: &mut Absences,
        backoff: &mut Backoff,
    ) -> Result<Infallible, StoreError> {
        let keys = self.parts.catalog.keys();
        let prefix = match duty {
            Duty::Place => keys.all(),
            Duty::TakeApart => keys.deleting_all(),
        };
        let changes = Changes::below(&self.parts.catalog, &prefix, RESYNC).await?;
        // What workers tell of their numbers changes no plan.
        let mut changes = changes.but(keys.statuses());
        loop {
            let pause = match duty {
                Duty::Place => self.place(absences).await?,
                Duty::TakeApart => self.take_apart().await?,
            };
            backoff.reset();
            tokio::select! {
                news = changes.next() => news?,
                () = self.parts.wake.notified(), if duty == Duty::Place => changes.drain()?,
                () = tokio::time::sleep(pause) => changes.drain()?,
            }
        }
    }

    /// Carries out the present plan. Tells when to look again though nothing has changed.
    async fn place(&self, absences: &mut Absences) -> Result<Duration, StoreError> {
        let observed = Observed::read(&self.parts.catalog).await?;
        let now = Instant::now();
        for worker in absences.look(observed.workers.keys(), observed.owners(), now) {
            tracing::warn!(%worker, "what a missing worker has waits a lease time for it");
        }
        let plan = plan(&observed, absences, self.parts.strategy, now);
        let mut look_again = plan.look_again.map_or(RESYNC, |wait| wait.min(RESYNC));
        for action in plan.actions {
            let done = match &action {
                Action::Pin(name, plugin) => self.pin(&observed, name, plugin.clone()).await,
                Action::Assign(id, node) => self.assign(&observed, *id, node).await,
                Action::Finish(id) => self.finish(&observed, *id).await,
                Action::Unassign(worker, id) => self.unassign(&observed, worker, *id).await,
            };
            match done {
                Ok(true) => {}
                // What it was about has changed, or that is not known.
                Ok(false) => look_again = look_again.min(LOST_PAUSE),
                Err(error) if error.is_transient() || matches!(error, StoreError::Deposed) => {
                    return Err(error);
                }
                // It is this record's alone.
                Err(error) => {
                    let error = telemetry::chain(&error);
                    tracing::error!(error, ?action, "something cannot be made as it should be");
                }
            }
        }
        Ok(look_again)
    }

    /// Carries out a transaction; one that lost its guards is left to the next turn.
    async fn commit(&self, txn: Txn) -> Result<bool, StoreError> {
        let store = &**self.parts.catalog.store();
        let outcome = self.leadership.commit(store, txn).await?;
        Ok(matches!(outcome, Outcome::Done(_)))
    }

    async fn pin(
        &self,
        observed: &Observed,
        name: &ResourceName,
        plugin: PinnedPlugin,
    ) -> Result<bool, StoreError> {
        let Some(present) = observed.resources.get(name) else {
            return Ok(true);
        };
        let key = self.parts.catalog.keys().resource(name);
        let version = plugin.version.clone();
        let resource = Resource {
            pinned: Some(plugin),
            ..present.value.clone()
        };
        let txn = Txn::new()
            .guard(Guard::RevisionIs(key.clone(), present.revision))
            .guard(Guard::Exists(
                self.parts
                    .catalog
                    .keys()
                    .plugin(&resource.spec.plugin.name, &version),
            ))
            .put(key, encode(&resource));
        let is_done = self.commit(txn).await?;
        if is_done {
            tracing::info!(resource = %name, plugin = %resource.spec.plugin.name, %version, "plugin found");
            self.parts.wake.notify_one();
        }
        Ok(is_done)
    }

    async fn assign(
        &self,
        observed: &Observed,
        id: ShardId,
        node: &NodeId,
    ) -> Result<bool, StoreError> {
        let Some(shard) = observed.shards.get(&id) else {
            return Ok(true);
        };
        let Some(resource) = observed.resources.get(&shard.value.resource) else {
            return Ok(true);
        };
        let Some(node) = observed.workers.get(node) else {
            return Ok(true);
        };
        let (txn, _resource, record) =
            assignment_txn(self.parts.catalog.keys(), resource, (id, shard), node);
        let keys = self.parts.catalog.keys();
        let txn = match &shard.value.owner {
            Some(owner) if owner.node != node.id => txn.delete(keys.assignment(&owner.node, id)),
            Some(_) | None => txn,
        };
        let is_done = self.commit(txn).await?;
        if is_done {
            let name = &shard.value.resource;
            tracing::info!(resource = %name, shard = %id, worker = %node.id, epoch = %record.epoch, "assigned");
        }
        Ok(is_done)
    }

    async fn finish(&self, observed: &Observed, id: ShardId) -> Result<bool, StoreError> {
        let Some(shard) = observed.shards.get(&id) else {
            return Ok(true);
        };
        let keys = self.parts.catalog.keys();
        let record = ShardRecord {
            state: ShardState::Finished,
            ..shard.value.clone()
        };
        let mut txn = Txn::new()
            .guard(Guard::RevisionIs(keys.shard(id), shard.revision))
            .put(keys.shard(id), encode(&record));
        if let Some(owner) = &record.owner {
            txn = txn.delete(keys.assignment(&owner.node, id));
        }
        let is_done = self.commit(txn).await?;
        if is_done {
            let counts = &record.counts;
            tracing::info!(
                resource = %record.resource, pages = counts.pages(), items = counts.items, "finished"
            );
        }
        Ok(is_done)
    }

    async fn unassign(
        &self,
        observed: &Observed,
        worker: &NodeId,
        id: ShardId,
    ) -> Result<bool, StoreError> {
        let keys = self.parts.catalog.keys();
        // A shard that was assigned meanwhile must keep its mirror.
        let guard = match observed.shards.get(&id) {
            Some(shard) => Guard::RevisionIs(keys.shard(id), shard.revision),
            None => Guard::Absent(keys.shard(id)),
        };
        let txn = Txn::new().guard(guard).delete(keys.assignment(worker, id));
        let is_done = self.commit(txn).await?;
        if is_done {
            tracing::info!(shard = %id, %worker, "removed an assignment that is over");
        }
        Ok(is_done)
    }
}

/// The transaction that gives a shard to a worker, and the records it writes. The crawl goes on where
/// it was: its frontier is in the data root.
pub(super) fn assignment_txn(
    keys: &Keys,
    resource: &Versioned<Resource>,
    (id, shard): (ShardId, &Versioned<ShardRecord>),
    node: &Node,
) -> (Txn, Resource, ShardRecord) {
    let present = &resource.value;
    let resource_record = Resource {
        assigned_node: format!("{}|{}", node.id, node.address),
        ..present.clone()
    };
    let owner = Owner {
        node: node.id.clone(),
        incarnation: node.incarnation,
    };
    let record = ShardRecord {
        owner: Some(owner),
        former_owners: shard.value.writers(),
        epoch: shard.value.epoch.next(),
        state: ShardState::Assigned,
        waits: None,
        ..shard.value.clone()
    };
    let mirror = Assignment {
        name: present.spec.name.clone(),
        epoch: record.epoch,
        incarnation: node.incarnation,
        generation: present.generation,
        weight: present.spec.placement.weight,
        apart: present.spec.placement.apart.clone(),
    };
    let resource_key = keys.resource(&present.spec.name);
    let txn = Txn::new()
        .guard(Guard::RevisionIs(resource_key.clone(), resource.revision))
        .guard(Guard::RevisionIs(keys.shard(id), shard.revision))
        .guard(Guard::Exists(keys.node(Role::Worker, &node.id)))
        .put(resource_key, encode(&resource_record))
        .put(keys.shard(id), encode(&record))
        .put(keys.assignment(&node.id, id), encode(&mirror));
    (txn, resource_record, record)
}

#[cfg(test)]
mod tests;
