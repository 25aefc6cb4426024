//! Everything the store says, read for one decision and never kept longer.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;

use super::placement::{Candidate, place};
use crate::model::id::{NodeId, PluginRef, ResourceId, ResourceName};
use crate::model::node::{Node, Role};
use crate::model::plugin::PluginRecord;
use crate::model::resource::{
    Deleting, Owner, Phase, Resource, ShardId, ShardRecord, ShardState, Waits,
};
use crate::store::StoreError;
use crate::store::catalog::{Catalog, Versioned};
use crate::telemetry;

/// The whole state at about one moment. Guards catch what has changed since.
#[derive(Debug, Default)]
pub(super) struct Observed {
    pub(super) workers: BTreeMap<NodeId, Node>,
    pub(super) plugins: Vec<PluginRecord>,
    pub(super) resources: BTreeMap<ResourceName, Versioned<Resource>>,
    pub(super) shards: BTreeMap<ShardId, Versioned<ShardRecord>>,
    /// By worker and shard; a worker's shards are its load.
    pub(super) assignments: BTreeSet<(NodeId, ShardId)>,
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
        let shards: Vec<(String, Versioned<ShardRecord>)> =
            records(catalog, &keys.shards()).await?;
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
            shards: shards
                .into_iter()
                .filter_map(|(key, s)| Some((keys.parse_shard(&key)?, s)))
                .collect(),
            assignments: assignments(catalog).await?,
            deleting: deleting.into_iter().map(|(_, d)| (d.value.id, d)).collect(),
        })
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

    /// The workers with their loads.
    pub(super) fn candidates(&self) -> BTreeMap<NodeId, Candidate> {
        weigh(self.workers.clone(), self.assignments.iter())
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
) -> Result<BTreeMap<NodeId, Candidate>, StoreError> {
    let nodes = nodes(catalog, Role::Worker).await?;
    let assignments = assignments(catalog).await?;
    Ok(weigh(nodes, assignments.iter()))
}

fn weigh<'a>(
    nodes: BTreeMap<NodeId, Node>,
    assignments: impl Iterator<Item = &'a (NodeId, ShardId)>,
) -> BTreeMap<NodeId, Candidate> {
    let mut candidates: BTreeMap<NodeId, Candidate> = nodes
        .into_iter()
        .map(|(id, node)| (id, Candidate { node, load: 0 }))
        .collect();
    for (worker, _) in assignments {
        if let Some(candidate) = candidates.get_mut(worker) {
            candidate.load += 1;
        }
    }
    candidates
}

/// The live nodes of a role.
pub(super) async fn nodes(
    catalog: &Catalog,
    role: Role,
) -> Result<BTreeMap<NodeId, Node>, StoreError> {
    let nodes: Vec<(String, Versioned<Node>)> =
        records(catalog, &catalog.keys().nodes(role)).await?;
    Ok(nodes
        .into_iter()
        .map(|(_, node)| (node.value.id.clone(), node.value))
        .collect())
}

/// All records below a prefix; one that does not decode is logged and passed over.
pub(super) async fn records<T: DeserializeOwned>(
    catalog: &Catalog,
    prefix: &str,
) -> Result<Vec<(String, Versioned<T>)>, StoreError> {
    let scan = catalog.scan::<T>(prefix).await?;
    for error in &scan.broken {
        tracing::error!(
            error = telemetry::chain(error),
            "passing over a record that does not decode"
        );
    }
    Ok(scan.records)
}

/// Who has what, by the keys alone.
async fn assignments(catalog: &Catalog) -> Result<BTreeSet<(NodeId, ShardId)>, StoreError> {
    let listing = catalog.store().list(&catalog.keys().assignments()).await?;
    Ok(listing
        .entries
        .iter()
        .filter_map(|entry| catalog.keys().parse_assignment(&entry.key))
        .collect())
}

/// Where a resource stands, by its shards and by what keeps it from running.
pub(super) fn phase(
    resource: &Resource,
    shards: &[&ShardRecord],
    candidates: &BTreeMap<NodeId, Candidate>,
) -> Phase {
    if resource.pinned.is_none() {
        return Phase::Pending(format!("plugin {} is not pushed yet", resource.spec.plugin));
    }
    let failed = shards.iter().find_map(|shard| match &shard.state {
        ShardState::Failed { reason } => Some(reason.clone()),
        ShardState::Free | ShardState::Assigned | ShardState::Idle | ShardState::Finished => None,
    });
    if let Some(reason) = failed {
        return Phase::Failed(reason);
    }
    let is_over = |shard: &&ShardRecord| shard.state == ShardState::Finished;
    // A resource whose shards are not there was deleted between two reads.
    if !shards.is_empty() && shards.iter().all(is_over) {
        return Phase::Finished;
    }
    let mut owned = shards
        .iter()
        .filter(|shard| matches!(shard.state, ShardState::Assigned | ShardState::Idle))
        .peekable();
    if owned.peek().is_some() {
        return match owned.find_map(|shard| shard.waits.as_ref()) {
            Some(Waits { condition, why }) => Phase::Pending(format!("{condition}: {why}")),
            None => Phase::Running,
        };
    }
    let shard = ShardId::only(resource.id);
    match place(shard, candidates) {
        Ok(node) => Phase::Pending(format!("{} takes it in a moment", node.id)),
        Err(unplaceable) => Phase::Pending(unplaceable.to_string()),
    }
}
