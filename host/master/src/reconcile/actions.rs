//! Actions of the plan, each written as one guarded transaction.

use super::super::observed::Observed;
use super::{Reconciler, tellings};
use crawler_model::crawl::Counts;
use crawler_model::event::{Event, EventCounts, EventKind, end_reasons};
use crawler_model::id::{NodeId, ResourceId, ResourceName, Run, Shard};
use crawler_model::node::{Node, Role};
use crawler_model::resource::{
    Assignment, Order, Owner, PinnedPlugin, Resource, ShardId, ShardRecord, ShardState,
};
use crawler_store::catalog::{Versioned, encode};
use crawler_store::keys::Keys;
use crawler_store::{Guard, StoreError, Txn};

impl Reconciler {
    pub(super) async fn pin(
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
        let plugin = &resource.spec.plugin.name;
        let event = Event::of(EventKind::PluginFound, resource.run);
        let event = event.because(format_args!("{plugin}@{version}"));
        let txn = self.tell(txn, resource.id, vec![event]);
        let is_done = self.commit(txn).await?;
        if is_done {
            tracing::info!(resource = %name, plugin = %resource.spec.plugin.name, %version, "plugin found");
        }
        Ok(is_done)
    }

    pub(super) async fn assign(
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
        let run = resource.value.run;
        let by_strategy = (node, self.parts.placement.strategy);
        let event = tellings::assigned(observed, run, (id, &shard.value), by_strategy);
        let txn = self.tell(txn, id.resource, vec![event]);
        let is_done = self.commit(txn).await?;
        if is_done {
            let name = &shard.value.resource;
            tracing::info!(resource = %name, shard = %id, worker = %node.id, epoch = %record.epoch, "assigned");
        }
        Ok(is_done)
    }

    /// Orders the owner to give a shard back.
    pub(super) async fn revoke(
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
        let event = tellings::revoked(observed, &resource.value, (id, owner), next);
        let txn = self.tell(txn, id.resource, vec![event]);
        let is_done = self.commit(txn).await?;
        if is_done {
            let (name, worker) = (&record.resource, &owner.node);
            let next = next.map(NodeId::as_str).unwrap_or_default();
            tracing::info!(resource = %name, shard = %id, %worker, next, epoch = %record.epoch, "to be given back");
        }
        Ok(is_done)
    }

    /// Takes a shard from an owner that is gone, or whose time is over.
    pub(super) async fn free(&self, observed: &Observed, id: ShardId) -> Result<bool, StoreError> {
        let Some(shard) = observed.shards.get(&id) else {
            return Ok(true);
        };
        let resource = observed.resources.get(&shard.value.resource);
        let resource = resource.filter(|resource| resource.value.id == id.resource);
        let resource = resource.map(|resource| &**resource);
        let txn = free_txn(self.parts.catalog.keys(), resource, (id, shard));
        let freed = resource.zip(shard.value.owner.as_ref());
        let freed = freed.map(|(resource, owner)| {
            let run = resource.value.run;
            tellings::freed(observed, run, (id, &shard.value), owner)
        });
        let txn = self.tell(txn, id.resource, freed.into_iter().collect());
        let is_done = self.commit(txn).await?;
        if is_done {
            tracing::info!(resource = %shard.value.resource, shard = %id, "nobody has it now");
        }
        Ok(is_done)
    }

    pub(super) async fn vacate(
        &self,
        observed: &Observed,
        name: &ResourceName,
    ) -> Result<bool, StoreError> {
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

    /// Ends the run of a resource whose shards are all idle.
    pub(super) async fn finish(
        &self,
        observed: &Observed,
        id: ResourceId,
    ) -> Result<bool, StoreError> {
        let keys = self.parts.catalog.keys();
        let mut txn = Txn::new();
        let mut counts = Counts::default();
        let (mut name, mut run) = (None, Run::default());
        let is_part = |id: ShardId, shard: &ShardRecord| {
            let resource = observed.resources.get(&shard.resource);
            resource.is_some_and(|resource| resource.value.has_shard(id))
        };
        for (id, shard) in observed.shards_of(id) {
            if is_part(id, &shard.value) {
                counts.add(&shard.value.counts);
            }
        }
        for (id, shard) in observed.shards_of(id) {
            if !is_part(id, &shard.value) {
                continue;
            }
            if let Some(resource) = observed.resources.get(&shard.value.resource) {
                run = resource.value.run;
            }
            let record = ShardRecord {
                state: ended(id.shard, &shard.value.resource, &counts),
                ..shard.value.clone()
            };
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
        let event = match counts.lost_roots() {
            Some(why) => Event::of(EventKind::Failed, run).because(why),
            None => Event::of(EventKind::Finished, run).because(end_reasons(&counts)),
        };
        let counted = Some(EventCounts::of(&counts));
        let events = vec![Event {
            counts: counted,
            ..event
        }];
        let txn = self.tell(txn, id, events);
        let is_done = self.commit(txn).await?;
        if is_done {
            let (pages, items) = (counts.pages(), counts.items);
            match counts.lost_roots() {
                Some(why) => tracing::warn!(resource = %name, pages, why, "failed"),
                None => tracing::info!(resource = %name, pages, items, "finished"),
            }
        }
        Ok(is_done)
    }

    pub(super) async fn unassign(
        &self,
        observed: &Observed,
        worker: &NodeId,
        id: ShardId,
    ) -> Result<bool, StoreError> {
        let keys = self.parts.catalog.keys();
        // A shard that was assigned meanwhile must keep its assignment record.
        let guard = match observed.shards.get(&id) {
            Some(shard) => Guard::RevisionIs(keys.shard(id), shard.revision),
            None => Guard::Absent(keys.shard(id)),
        };
        let assignment = keys.assignment(worker, id);
        let mut txn = Txn::new().guard(guard).delete(assignment.clone());
        // A worker records that its crawl has failed, and may not write events. Its assignment goes once after that.
        if let Some(failed) = failure(observed, worker, id) {
            txn = txn.guard(Guard::Exists(assignment));
            txn = self.tell(txn, id.resource, vec![failed]);
        }
        let is_done = self.commit(txn).await?;
        if is_done {
            tracing::info!(shard = %id, %worker, "removed an assignment that is over");
        }
        Ok(is_done)
    }
}

/// Returns the event that the crawl of a worker has failed, if the end of its assignment follows from that.
fn failure(observed: &Observed, worker: &NodeId, id: ShardId) -> Option<Event> {
    let shard = &observed.shards.get(&id)?.value;
    let resource = &observed.resources.get(&shard.resource)?.value;
    let owner = shard.owner.as_ref()?;
    let is_its = owner.node == *worker && resource.has_shard(id);
    tellings::failed(resource.run, id, shard).filter(|_| is_its)
}

/// Returns the state of a shard whose run is over. A run has failed if every root request of all shards was
/// given up. The first shard tells so: it is part of every run, and the others are as if they had finished.
pub(super) fn ended(shard: Shard, name: &ResourceName, counts: &Counts) -> ShardState {
    match counts.lost_roots().filter(|_| shard == Shard(0)) {
        Some(why) => ShardState::Failed {
            reason: format!("{why}; `crawler frontier redrive {name}` tries them again"),
        },
        None => ShardState::Finished,
    }
}

/// Returns the transaction after which nobody owns a shard. Its resource, if it still exists, then names no
/// owner.
fn free_txn(
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

/// Adds to a transaction that a resource names no owner.
fn vacated(txn: Txn, keys: &Keys, resource: &Versioned<Resource>) -> Txn {
    let key = keys.resource(&resource.value.spec.name);
    let record = Resource {
        assigned_node: String::new(),
        ..resource.value.clone()
    };
    txn.guard(Guard::RevisionIs(key.clone(), resource.revision))
        .put(key, encode(&record))
}

/// Returns the transaction that gives a shard to a worker, and the records that it writes. The crawl continues
/// where it stopped, because its frontier is in the data root.
pub(crate) fn assignment_txn(
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
