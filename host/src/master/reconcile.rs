//! The loops that make what is so into what should be.
//!
//! One places, the other takes apart what was deleted: a data root that does not answer holds up only
//! the other. Each turn reads everything, lets the pure `plan` tell the differences, and writes each as one
//! guarded transaction; one that loses its guards is left to the next turn. Watches and the calls of
//! `control` only wake the loops.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use object_store::ObjectStore;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::observed::Observed;
use super::{WorkerCalls, placement};
use crate::clock::Clock;
use crate::data::DataRoot;
use crate::model::id::{NodeId, ResourceName};
use crate::model::node::{Node, Role};
use crate::model::plugin::PluginRecord;
use crate::model::resource::{
    Assignment, Owner, PinnedPlugin, Resource, ShardId, ShardRecord, ShardState,
};
use crate::retry::Backoff;
use crate::store::catalog::{Catalog, Versioned, encode};
use crate::store::keys::Keys;
use crate::store::{Guard, Outcome, StoreError, Txn};
use crate::telemetry;

pub use deletion::DeletionSettings;
#[cfg(test)]
pub(super) use deletion::tests::crawl;

mod deletion;

/// A loop looks at everything at least this often, in case a watch has missed something.
const RESYNC: Duration = Duration::from_secs(60);

/// One difference between what is and what should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// The plugin that a resource waits for is there.
    Pin(ResourceName, PinnedPlugin),
    /// A shard gets an owner.
    Assign(ShardId, NodeId),
    /// All shards of a resource have nothing left.
    Finish(ShardId),
    /// An assignment that no shard record backs.
    Unassign(NodeId, ShardId),
}

/// The differences, in an order in which they can be carried out.
pub(super) fn plan(observed: &Observed) -> Vec<Action> {
    let mut actions = Vec::new();
    for resource in observed.resources.values() {
        let resource = &resource.value;
        if resource.pinned.is_none()
            && let Some(plugin) = observed.newest_plugin(&resource.spec.plugin)
        {
            actions.push(Action::Pin(resource.spec.name.clone(), pinned(plugin)));
        }
    }
    let mut candidates = observed.candidates();
    for (id, shard) in &observed.shards {
        let shard = &shard.value;
        let is_runnable = observed
            .resources
            .get(&shard.resource)
            .is_some_and(|r| r.value.pinned.is_some());
        let is_owned = shard
            .owner
            .as_ref()
            .is_some_and(|owner| observed.is_alive(owner));
        match &shard.state {
            ShardState::Idle => actions.push(Action::Finish(*id)),
            ShardState::Free | ShardState::Assigned if is_runnable && !is_owned => {
                if let Ok(node) = placement::place(*id, &candidates) {
                    let node = node.id.clone();
                    if let Some(candidate) = candidates.get_mut(&node) {
                        candidate.load += 1;
                    }
                    actions.push(Action::Assign(*id, node));
                }
            }
            ShardState::Free
            | ShardState::Assigned
            | ShardState::Finished
            | ShardState::Failed { .. } => {}
        }
    }
    for (worker, id) in &observed.assignments {
        let is_backed = observed.shards.get(id).is_some_and(|shard| {
            let is_running = matches!(shard.value.state, ShardState::Assigned | ShardState::Idle);
            is_running
                && shard
                    .value
                    .owner
                    .as_ref()
                    .is_some_and(|owner| owner.node == *worker)
        });
        if !is_backed {
            actions.push(Action::Unassign(worker.clone(), *id));
        }
    }
    actions
}

fn pinned(plugin: &PluginRecord) -> PinnedPlugin {
    PinnedPlugin {
        version: plugin.version.clone(),
        digest: plugin.digest,
    }
}

/// What a loop does in its turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Duty {
    /// Carries out the present plan.
    Place,
    /// Does what can be done by now about deleted resources.
    TakeApart,
}

/// What the loops work with.
pub struct Reconciler {
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
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(10));
        loop {
            let result = tokio::select! {
                result = self.turn_on_changes(duty, &mut backoff) => result,
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
        backoff: &mut Backoff,
    ) -> Result<Infallible, StoreError> {
        let keys = self.catalog.keys();
        let prefix = match duty {
            Duty::Place => keys.all(),
            Duty::TakeApart => keys.deleting_all(),
        };
        let revision = self.catalog.store().list(&keys.cluster()).await?.revision;
        let mut watch = self.catalog.store().watch(&prefix, revision).await?;
        loop {
            let pause = match duty {
                Duty::Place => self.place().await?,
                Duty::TakeApart => self.take_apart().await?,
            };
            backoff.reset();
            tokio::select! {
                event = watch.next() => { event?; }
                () = self.wake.notified(), if duty == Duty::Place => {}
                () = tokio::time::sleep(pause) => {}
            }
            // One look serves all changes that are here already.
            while let Some(event) = watch.next().now_or_never() {
                event?;
            }
        }
    }

    /// Carries out the present plan. Tells when to look again though nothing has changed.
    async fn place(&self) -> Result<Duration, StoreError> {
        let observed = Observed::read(&self.catalog).await?;
        for action in plan(&observed) {
            match action {
                Action::Pin(name, plugin) => self.pin(&observed, &name, plugin).await?,
                Action::Assign(id, node) => self.assign(&observed, id, &node).await?,
                Action::Finish(id) => self.finish(&observed, id).await?,
                Action::Unassign(worker, id) => self.unassign(&observed, &worker, id).await?,
            }
        }
        Ok(RESYNC)
    }

    /// Carries out a transaction; one that lost its guards is left to the next turn.
    async fn commit(&self, txn: Txn) -> Result<bool, StoreError> {
        match self.catalog.store().commit(txn).await? {
            Outcome::Done(_) => Ok(true),
            Outcome::Lost(_) | Outcome::Unknown => {
                self.wake.notify_one();
                Ok(false)
            }
        }
    }

    async fn pin(
        &self,
        observed: &Observed,
        name: &ResourceName,
        plugin: PinnedPlugin,
    ) -> Result<(), StoreError> {
        let Some(present) = observed.resources.get(name) else {
            return Ok(());
        };
        let key = self.catalog.keys().resource(name);
        let version = plugin.version.clone();
        let resource = Resource {
            pinned: Some(plugin),
            ..present.value.clone()
        };
        let txn = Txn::new()
            .guard(Guard::RevisionIs(key.clone(), present.revision))
            .guard(Guard::Exists(
                self.catalog
                    .keys()
                    .plugin(&resource.spec.plugin.name, &version),
            ))
            .put(key, encode(&resource));
        if self.commit(txn).await? {
            tracing::info!(resource = %name, plugin = %resource.spec.plugin.name, %version, "plugin found");
            self.wake.notify_one();
        }
        Ok(())
    }

    async fn assign(
        &self,
        observed: &Observed,
        id: ShardId,
        node: &NodeId,
    ) -> Result<(), StoreError> {
        let Some(shard) = observed.shards.get(&id) else {
            return Ok(());
        };
        let Some(resource) = observed.resources.get(&shard.value.resource) else {
            return Ok(());
        };
        let Some(node) = observed.workers.get(node) else {
            return Ok(());
        };
        let (txn, _resource, record) =
            assignment_txn(self.catalog.keys(), resource, (id, shard), node);
        let keys = self.catalog.keys();
        let txn = match &shard.value.owner {
            Some(owner) if owner.node != node.id => txn.delete(keys.assignment(&owner.node, id)),
            Some(_) | None => txn,
        };
        if self.commit(txn).await? {
            let name = &shard.value.resource;
            tracing::info!(resource = %name, shard = %id, worker = %node.id, epoch = %record.epoch, "assigned");
        }
        Ok(())
    }

    async fn finish(&self, observed: &Observed, id: ShardId) -> Result<(), StoreError> {
        let Some(shard) = observed.shards.get(&id) else {
            return Ok(());
        };
        let keys = self.catalog.keys();
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
        if self.commit(txn).await? {
            let counts = &record.counts;
            tracing::info!(
                resource = %record.resource, pages = counts.pages(), items = counts.items, "finished"
            );
        }
        Ok(())
    }

    async fn unassign(
        &self,
        observed: &Observed,
        worker: &NodeId,
        id: ShardId,
    ) -> Result<(), StoreError> {
        let keys = self.catalog.keys();
        // A shard that was assigned meanwhile must keep its mirror.
        let guard = match observed.shards.get(&id) {
            Some(shard) => Guard::RevisionIs(keys.shard(id), shard.revision),
            None => Guard::Absent(keys.shard(id)),
        };
        let txn = Txn::new().guard(guard).delete(keys.assignment(worker, id));
        if self.commit(txn).await? {
            tracing::info!(shard = %id, %worker, "removed an assignment that is over");
        }
        Ok(())
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
