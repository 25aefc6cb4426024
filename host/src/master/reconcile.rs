//! The loops that make what is so into what should be.
//!
//! One places, the other takes apart what was deleted: a data root that does not answer holds up only
//! the other. Each turn reads everything, lets the pure `plan` tell the differences, and writes each as one
//! guarded transaction; one that loses its guards is left to the next turn. Watches and the calls of
//! `control` only wake the loops.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::WorkerCalls;
use super::balance::BalanceSettings;
use super::observed::Observed;
use super::placement::Strategy;
use super::remains::Remains;
use crate::clock::Clock;
use crate::model::crawl::Counts;
use crate::model::id::{NodeId, ResourceId, ResourceName, Shard};
use crate::model::node::{Node, Role};
use crate::model::resource::{
    Assignment, Order, Owner, PinnedPlugin, Resource, ShardId, ShardRecord, ShardState,
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

use plan::{Action, Seen, plan};

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
    /// What deleted resources leave.
    pub remains: Arc<dyn Remains>,
    /// Wall-clock time.
    pub clock: Arc<dyn Clock>,
    /// When the data of deleted resources goes.
    pub deletion: DeletionSettings,
    /// To ask whether a worker still writes.
    pub workers: Arc<dyn WorkerCalls>,
    /// Woken by calls that changed something.
    pub wake: Arc<Notify>,
    /// How shards are placed and moved.
    pub placement: PlacementSettings,
    /// How long a worker that went silent counts as there.
    pub lease_ttl: Duration,
}

/// How shards are placed and moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementSettings {
    /// How a worker is chosen for a shard: setting `--strategy`.
    pub strategy: Strategy,
    /// How long an owner that is to give a shard back is waited for: setting `--handover-timeout`.
    pub handover_timeout: Duration,
    /// When loads are levelled out.
    pub balance: BalanceSettings,
}

impl Default for PlacementSettings {
    fn default() -> Self {
        Self {
            strategy: Strategy::default(),
            handover_timeout: Duration::from_secs(10),
            balance: BalanceSettings::default(),
        }
    }
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
        let mut seen = Seen::new(self.parts.lease_ttl, &self.parts.placement, Instant::now());
        loop {
            let result = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                result = self.turn_on_changes(duty, &mut seen, &mut backoff) => result,
            };
            let Err(error) = result;
            tracing::warn!(
                error = telemetry::chain(&error),
                "reconciling waits for the store"
            );
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = tokio::time::sleep(backoff.next_delay()) => {}
            }
        }
    }

    /// Turns once, and again after each change. Cancelling it leaves no transaction half-done.
    async fn turn_on_changes(
        &self,
        duty: Duty,
        seen: &mut Seen,
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
                Duty::Place => self.place(seen).await?,
                Duty::TakeApart => self.take_apart().await?,
            };
            backoff.reset();
            tokio::select! {
                biased;
                news = changes.next() => news?,
                () = self.parts.wake.notified(), if duty == Duty::Place => changes.drain()?,
                () = tokio::time::sleep(pause) => changes.drain()?,
            }
        }
    }

    /// Carries out the present plan. Tells when to look again though nothing has changed.
    async fn place(&self, seen: &mut Seen) -> Result<Duration, StoreError> {
        let observed = Observed::read(&self.parts.catalog).await?;
        let now = Instant::now();
        for worker in seen.look(&observed, now) {
            tracing::warn!(%worker, "what a missing worker has waits a lease time for it");
        }
        let plan = plan(&observed, seen, self.parts.placement.strategy, now);
        if plan.levels {
            seen.balance.moved(now);
        }
        let mut look_again = plan.look_again.map_or(RESYNC, |wait| wait.min(RESYNC));
        for action in plan.actions {
            let done = match &action {
                Action::Pin(name, plugin) => self.pin(&observed, name, plugin.clone()).await,
                Action::Assign(id, node) => self.assign(&observed, *id, node).await,
                Action::Revoke(id, next) => self.revoke(&observed, *id, next.as_ref()).await,
                Action::Free(id) => self.free(&observed, *id).await,
                Action::Vacate(name) => self.vacate(&observed, name).await,
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

    /// Asks the owner to give a shard back.
    async fn revoke(
        &self,
        observed: &Observed,
        id: ShardId,
        next: Option<&NodeId>,
    ) -> Result<bool, StoreError> {
        let Some(shard) = observed.shards.get(&id) else {
            return Ok(true);
        };
        let Some(resource) = observed.resources.get(&shard.value.resource) else {
            return Ok(true);
        };
        let Some(owner) = &shard.value.owner else {
            return Ok(true);
        };
        let keys = self.parts.catalog.keys();
        let record = ShardRecord {
            state: ShardState::Revoking,
            next: next.cloned(),
            ..shard.value.clone()
        };
        let (epoch, incarnation) = (record.epoch, owner.incarnation);
        let mirror = Assignment::of(&resource.value, epoch, incarnation, Order::GiveBack);
        let txn = Txn::new()
            .guard(Guard::RevisionIs(keys.shard(id), shard.revision))
            .put(keys.shard(id), encode(&record))
            .put(keys.assignment(&owner.node, id), encode(&mirror));
        let is_done = self.commit(txn).await?;
        if is_done {
            let (name, worker) = (&record.resource, &owner.node);
            let next = next.map(NodeId::as_str).unwrap_or_default();
            tracing::info!(resource = %name, shard = %id, %worker, next, epoch = %record.epoch, "to be given back");
        }
        Ok(is_done)
    }

    /// Takes a shard from an owner that is gone, or has had its time.
    async fn free(&self, observed: &Observed, id: ShardId) -> Result<bool, StoreError> {
        let Some(shard) = observed.shards.get(&id) else {
            return Ok(true);
        };
        let resource = observed.resources.get(&shard.value.resource);
        let resource = resource.filter(|resource| resource.value.id == id.resource);
        let txn = free_txn(self.parts.catalog.keys(), resource, (id, shard));
        let is_done = self.commit(txn).await?;
        if is_done {
            tracing::info!(resource = %shard.value.resource, shard = %id, "nobody has it now");
        }
        Ok(is_done)
    }

    async fn vacate(&self, observed: &Observed, name: &ResourceName) -> Result<bool, StoreError> {
        let Some(resource) = observed.resources.get(name) else {
            return Ok(true);
        };
        let shard = ShardId::only(resource.value.id);
        let Some(present) = observed.shards.get(&shard) else {
            return Ok(true);
        };
        let keys = self.parts.catalog.keys();
        let guard = Guard::RevisionIs(keys.shard(shard), present.revision);
        self.commit(vacated(Txn::new().guard(guard), keys, resource))
            .await
    }

    /// Ends the run of a resource, all of whose shards are idle.
    async fn finish(&self, observed: &Observed, id: ResourceId) -> Result<bool, StoreError> {
        let keys = self.parts.catalog.keys();
        let mut txn = Txn::new();
        let mut counts = Counts::default();
        let mut name = None;
        for (id, shard) in observed.shards_of(id) {
            let resource = observed.resources.get(&shard.value.resource);
            if !resource.is_some_and(|resource| resource.value.has_shard(id)) {
                continue;
            }
            let record = ShardRecord {
                state: ShardState::Finished,
                ..shard.value.clone()
            };
            counts.add(&record.counts);
            txn = txn
                .guard(Guard::RevisionIs(keys.shard(id), shard.revision))
                .put(keys.shard(id), encode(&record));
            if let Some(owner) = &record.owner {
                txn = txn.delete(keys.assignment(&owner.node, id));
            }
            name = Some(record.resource);
        }
        let Some(name) = name else {
            return Ok(true);
        };
        let is_done = self.commit(txn).await?;
        if is_done {
            tracing::info!(
                resource = %name, pages = counts.pages(), items = counts.items, "finished"
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

/// The transaction after which nobody has a shard; its resource, where it is there, names nobody then.
pub(super) fn free_txn(
    keys: &Keys,
    resource: Option<&Versioned<Resource>>,
    (id, shard): (ShardId, &Versioned<ShardRecord>),
) -> Txn {
    let mut txn = Txn::new()
        .guard(Guard::RevisionIs(keys.shard(id), shard.revision))
        .put(keys.shard(id), encode(&shard.value.freed()));
    if let Some(owner) = &shard.value.owner {
        txn = txn.delete(keys.assignment(&owner.node, id));
    }
    match resource.filter(|_| id.shard == Shard(0)) {
        Some(resource) => vacated(txn, keys, resource),
        None => txn,
    }
}

/// A resource names no owner after this.
fn vacated(txn: Txn, keys: &Keys, resource: &Versioned<Resource>) -> Txn {
    let key = keys.resource(&resource.value.spec.name);
    let record = Resource {
        assigned_node: String::new(),
        ..resource.value.clone()
    };
    txn.guard(Guard::RevisionIs(key.clone(), resource.revision))
        .put(key, encode(&record))
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
    let mut resource_record = present.clone();
    if id.shard == Shard(0) {
        resource_record.assigned_node = format!("{}|{}", node.id, node.address);
    }
    let owner = Owner {
        node: node.id.clone(),
        incarnation: node.incarnation,
    };
    let record = ShardRecord {
        owner: Some(owner),
        former_owners: shard.value.writers(),
        next: None,
        epoch: shard.value.epoch.next(),
        state: ShardState::Assigned,
        waits: None,
        ..shard.value.clone()
    };
    let mirror = Assignment::of(present, record.epoch, node.incarnation, Order::Crawl);
    let resource_key = keys.resource(&present.spec.name);
    let mut txn = Txn::new()
        .guard(Guard::RevisionIs(resource_key.clone(), resource.revision))
        .guard(Guard::RevisionIs(keys.shard(id), shard.revision))
        .guard(Guard::Exists(keys.node(Role::Worker, &node.id)));
    if resource_record != *present {
        txn = txn.put(resource_key, encode(&resource_record));
    }
    let txn = txn
        .put(keys.shard(id), encode(&record))
        .put(keys.assignment(&node.id, id), encode(&mirror));
    (txn, resource_record, record)
}

#[cfg(test)]
mod tests;
