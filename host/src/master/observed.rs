//! Everything the store says, read for one decision and never kept longer.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;

use super::placement::{Candidates, Strategy, Wish, place};
use crate::model::id::{NodeId, PluginRef, ResourceId, ResourceName};
use crate::model::node::{Node, Role};
use crate::model::plugin::PluginRecord;
use crate::model::resource::{
    Assignment, Deleting, Owner, Phase, Resource, ShardId, ShardRecord, ShardState, Waits,
    is_complete,
};
use crate::store::StoreError;
use crate::store::catalog::{Catalog, Scan, Versioned};
use crate::telemetry;

/// Who has what; a worker's assignments are its load. None: the record does not decode.
pub(super) type Assignments = BTreeMap<(NodeId, ShardId), Option<Assignment>>;

/// The whole state at about one moment. Guards catch what has changed since.
#[derive(Debug, Default)]
pub(super) struct Observed {
    pub(super) workers: BTreeMap<NodeId, Node>,
    pub(super) plugins: Vec<PluginRecord>,
    pub(super) resources: BTreeMap<ResourceName, Versioned<Resource>>,
    pub(super) shards: BTreeMap<ShardId, Versioned<ShardRecord>>,
    /// Shards whose record does not decode: somebody who knows more may have them.
    pub(super) unreadable: BTreeSet<ShardId>,
    pub(super) assignments: Assignments,
    pub(super) deleting: BTreeMap<ResourceId, Versioned<Deleting>>,
}

impl Observed {
    /// Reads everything. A record that does not decode is logged and passed over.
    pub(super) async fn read(catalog: &Catalog) -> Result<Self, StoreError> {
        let keys = catalog.keys();
        let plugins: Vec<(String, Versioned<PluginRecord>)> =
            records(catalog, &keys.plugins()).await?;
        let resources: Vec<(String, Versioned<Resource>)> =
            records(catalog, &keys.resources()).await?;
        let shards = told(catalog.scan::<ShardRecord>(&keys.shards()).await?);
        let unreadable = shards.broken.iter().filter_map(|error| match error {
            StoreError::Record { key, .. } => keys.parse_shard(key),
            _ => None,
        });
        let unreadable = unreadable.collect();
        let deleting: Vec<(String, Versioned<Deleting>)> =
            records(catalog, &keys.deleting_all()).await?;
        Ok(Self {
            workers: nodes(catalog, Role::Worker).await?,
            plugins: plugins
                .into_iter()
                .map(|(_, plugin)| plugin.value)
                .collect(),
            resources: resources
                .into_iter()
                .map(|(_, r)| (r.value.spec.name.clone(), r))
                .collect(),
            unreadable,
            shards: shards
                .records
                .into_iter()
                .filter_map(|(key, s)| Some((keys.parse_shard(&key)?, s)))
                .collect(),
            assignments: assignments(catalog).await?,
            deleting: deleting.into_iter().map(|(_, d)| (d.value.id, d)).collect(),
        })
    }

    /// The shards of one resource, in order.
    pub(super) fn shards_of(
        &self,
        id: ResourceId,
    ) -> impl Iterator<Item = (ShardId, &Versioned<ShardRecord>)> {
        let first = ShardId::only(id);
        let shards = self.shards.range(first..);
        let shards = shards.map(|(id, shard)| (*id, shard));
        shards.take_while(move |(shard, _)| shard.resource == id)
    }

    /// The process that owns something is still there, not another under its id.
    pub(super) fn is_alive(&self, owner: &Owner) -> bool {
        self.workers
            .get(&owner.node)
            .is_some_and(|node| node.incarnation == owner.incarnation)
    }

    /// The plugin that a reference means: exactly that version, or the highest.
    pub(super) fn newest_plugin(&self, plugin: &PluginRef) -> Option<&PluginRecord> {
        newest(&self.plugins, plugin)
    }

    /// Those that shards are crawled by, there or not.
    pub(super) fn owners(&self) -> impl Iterator<Item = &NodeId> {
        let shards = self.shards.values().map(|shard| &shard.value);
        let owned = shards.filter(|shard| shard.state.order().is_some());
        owned.filter_map(|shard| shard.owner.as_ref().map(|owner| &owner.node))
    }

    /// The workers with their loads.
    pub(super) fn candidates(&self, strategy: Strategy) -> Candidates {
        weigh(strategy, self.workers.values().cloned(), &self.assignments)
    }
}

/// The plugin that a reference means: exactly that version, or the highest.
pub(super) fn newest<'a>(
    plugins: &'a [PluginRecord],
    plugin: &PluginRef,
) -> Option<&'a PluginRecord> {
    plugins
        .iter()
        .filter(|p| p.name == plugin.name)
        .filter(|p| {
            plugin
                .version
                .as_ref()
                .is_none_or(|version| p.version == *version)
        })
        .max_by(|a, b| a.version.cmp(&b.version))
}

/// The live workers with their loads.
pub(super) async fn candidates(
    catalog: &Catalog,
    strategy: Strategy,
) -> Result<Candidates, StoreError> {
    let nodes = nodes(catalog, Role::Worker).await?;
    let assignments = assignments(catalog).await?;
    Ok(weigh(strategy, nodes.into_values(), &assignments))
}

/// These workers with their loads.
pub(super) fn weigh(
    strategy: Strategy,
    nodes: impl Iterator<Item = Node>,
    assignments: &Assignments,
) -> Candidates {
    let assignments = assignments
        .iter()
        .map(|((worker, _), assignment)| (worker, assignment.as_ref()));
    Candidates::new(strategy, nodes, assignments)
}

/// The live nodes of a role.
pub(super) async fn nodes(
    catalog: &Catalog,
    role: Role,
) -> Result<BTreeMap<NodeId, Node>, StoreError> {
    let nodes: Vec<(String, Versioned<Node>)> =
        records(catalog, &catalog.keys().nodes(role)).await?;
    let is_its_own = |(key, node): &(String, Versioned<Node>)| {
        let own = catalog.keys().node(role, &node.value.id);
        if *key != own {
            tracing::error!(key, id = %node.value.id, "passing over a node under the key of another");
        }
        *key == own
    };
    let nodes = nodes.into_iter().filter(is_its_own);
    let draining = match role {
        Role::Worker => draining(catalog).await?,
        Role::Master => BTreeSet::new(),
    };
    let nodes = nodes.map(|(_, node)| Node {
        draining: node.value.draining || draining.contains(&node.value.id),
        ..node.value
    });
    Ok(nodes.map(|node| (node.id.clone(), node)).collect())
}

/// The workers that somebody has told to drain. The key alone says so.
pub(super) async fn draining(catalog: &Catalog) -> Result<BTreeSet<NodeId>, StoreError> {
    let prefix = catalog.keys().draining_all();
    let listing = catalog.store().list(&prefix).await?;
    let ids = listing.entries.iter();
    let ids = ids.filter_map(|entry| entry.key.strip_prefix(&prefix)?.parse().ok());
    Ok(ids.collect())
}

/// All records below a prefix; one that does not decode is logged and passed over.
pub(super) async fn records<T: DeserializeOwned>(
    catalog: &Catalog,
    prefix: &str,
) -> Result<Vec<(String, Versioned<T>)>, StoreError> {
    Ok(told(catalog.scan::<T>(prefix).await?).records)
}

/// Logs what does not decode.
fn told<T>(scan: Scan<T>) -> Scan<T> {
    for error in &scan.broken {
        let error = telemetry::chain(error);
        tracing::error!(error, "passing over a record that does not decode");
    }
    scan
}

/// Who has what. The key alone says so; the record says what it weighs.
pub(super) async fn assignments(catalog: &Catalog) -> Result<Assignments, StoreError> {
    let listing = catalog.store().list(&catalog.keys().assignments()).await?;
    let entries = listing.entries.iter();
    Ok(entries
        .filter_map(|entry| {
            let key = catalog.keys().parse_assignment(&entry.key)?;
            let assignment = serde_json::from_slice(&entry.value)
                .inspect_err(|error| {
                    tracing::error!(key = entry.key, %error, "passing over a record that does not decode");
                })
                .ok();
            Some((key, assignment))
        })
        .collect())
}

/// Where a resource stands, by its shards and by what keeps it from running.
pub(super) fn phase(
    resource: &Resource,
    shards: &[&ShardRecord],
    candidates: &Candidates,
) -> Phase {
    if resource.pinned.is_none() {
        return Phase::Pending(format!("plugin {} is not pushed yet", resource.spec.plugin));
    }
    let failed = shards.iter().find_map(|shard| match &shard.state {
        ShardState::Failed { reason } => Some(reason.clone()),
        ShardState::Free
        | ShardState::Assigned
        | ShardState::Idle
        | ShardState::Revoking
        | ShardState::Finished => None,
    });
    if let Some(reason) = failed {
        return Phase::Failed(reason);
    }
    let is_over = |shard: &&ShardRecord| shard.state == ShardState::Finished;
    // A resource whose shards are not there was deleted between two reads.
    if !shards.is_empty() && shards.iter().all(is_over) {
        return Phase::Finished;
    }
    let owned = shards.iter().filter(|shard| shard.state.order().is_some());
    if resource.paused {
        let owners = owned.filter_map(|shard| shard.owner.as_ref());
        let owners: BTreeSet<&str> = owners.map(|owner| owner.node.as_str()).collect();
        let owners: Vec<&str> = owners.into_iter().collect();
        return Phase::Paused(match owners.as_slice() {
            [] => String::new(),
            [owner] => format!("{owner} brings it to an end"),
            owners => format!("{} bring it to an end", owners.join(", ")),
        });
    }
    let wish = Wish::of(ShardId::only(resource.id), resource);
    let then = || match place(&wish, candidates) {
        Ok(node) => Ok(node.id.clone()),
        Err(unplaceable) => Err(unplaceable.to_string()),
    };
    let is_over = is_complete(shards.iter().copied());
    let mut unfinished = owned.clone().filter(|_| !is_over);
    if let Some(missing) = unfinished.find_map(|shard| missing(shard, candidates)) {
        let then = match then() {
            Ok(node) => format!("{node} takes it unless it comes back"),
            Err(why) => why,
        };
        return Phase::Pending(format!("{missing}, which has it, is missing; {then}"));
    }
    let waits = |shard: &&&ShardRecord| shard.state != ShardState::Revoking;
    let waits = owned
        .clone()
        .filter(waits)
        .find_map(|shard| shard.waits.as_ref());
    if let Some(Waits { condition, why }) = waits {
        return Phase::Pending(format!("{condition}: {why}"));
    }
    let n_waiting = shards
        .iter()
        .filter(|shard| shard.state == ShardState::Free)
        .count();
    let part = match shards.len() {
        1 => String::new(),
        n => format!("{n_waiting} of {n} shards wait: "),
    };
    match n_waiting {
        0 => Phase::Running,
        _ => Phase::Pending(match then() {
            Ok(node) => format!("{part}{node} takes it in a moment"),
            Err(why) => format!("{part}{why}"),
        }),
    }
}

/// The owner of a shard that should be crawled and whose owner is not there.
fn missing<'a>(shard: &'a ShardRecord, candidates: &Candidates) -> Option<&'a NodeId> {
    let owner = shard.owner.as_ref()?;
    let is_there = candidates.get(&owner.node).is_some();
    let is_crawled = matches!(shard.state, ShardState::Assigned | ShardState::Idle);
    (is_crawled && !is_there).then_some(&owner.node)
}
