//! Resources: named crawls, their shards, and the phase that follows from both.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::crawl::UnixMillis;
use super::id::{
    Digest, Epoch, Generation, Incarnation, PluginRef, PluginVersion, RequestId, ResourceId,
    ResourceName, Run, Shard,
};
use super::links::Division;
use super::placement::DEFAULT_WEIGHT;
pub use super::placement::PlacementSpec;
use super::plugin::{LimitOverrides, PluginRecord};
pub use super::scope::HostPattern;
pub use super::settings::{
    Agent, ContentTypes, CookieSeed, Cookies, CrawlSettings, CredentialNames, DEFAULT_DELAY, Hours,
    ProxyChoice, Rates, Robots, SettingError, Unchanged,
};
pub use super::shard::{
    FRONTIER_MISSING, LinkTotals, Owner, Redrive, ShardId, ShardRecord, ShardState, Waits,
    is_complete,
};

/// What a user asks for; everything but the name has a default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceSpec {
    /// Unique among the resources that are not deleted.
    pub name: ResourceName,
    /// The plugin that runs; the one of the same name if none was given.
    pub plugin: PluginRef,
    /// Handed to the rules as their config.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, String>,
    /// Limits of one call that differ from the defaults.
    #[serde(default, skip_serializing_if = "LimitOverrides::is_empty")]
    pub limits: LimitOverrides,
    /// How far and how fast the crawl goes.
    #[serde(default)]
    pub crawl: CrawlSettings,
    /// Which workers take it.
    #[serde(default, skip_serializing_if = "PlacementSpec::is_default")]
    pub placement: PlacementSpec,
}

/// A resource as the store keeps it, under `resources/<name>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    /// This life of the name.
    pub id: ResourceId,
    /// `id|address` of the owner of shard 0; empty while unplaced.
    pub assigned_node: String,
    /// Nanoseconds since 1970.
    pub creation_time: u64,
    /// Grows with each change of the spec.
    pub generation: Generation,
    /// The present pass over the site.
    pub run: Run,
    /// The first run with the present number of shards: in earlier ones a host may have been another
    /// shard's. 0 in records of before it was kept.
    #[serde(default)]
    pub resharded_at: Run,
    /// When the present run was asked for: what `root` sees as the present moment, in every shard. None in
    /// records of before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_started_at: Option<UnixMillis>,
    /// The plugin version found when the resource was added; none while it waits for its plugin.
    pub pinned: Option<PinnedPlugin>,
    /// Nobody is to crawl it until it is resumed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub paused: bool,
    /// The calls that changed it last, the latest last, so that none is carried out again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestId>,
    /// What the user asked for.
    #[serde(flatten)]
    pub spec: ResourceSpec,
}

/// So many calls are remembered; a client that sends one again does so within seconds.
const MAX_REQUESTS: usize = 16;

impl Resource {
    /// Whether this call was carried out already.
    pub fn has_seen(&self, request: &RequestId) -> bool {
        self.requests.contains(request)
    }

    /// The calls to be remembered after this one.
    pub fn requests_with(&self, request: &RequestId) -> Vec<RequestId> {
        let others = self.requests.iter().filter(|present| *present != request);
        let mut requests: Vec<RequestId> = others.chain([request]).cloned().collect();
        let n_beyond = requests.len().saturating_sub(MAX_REQUESTS);
        requests.split_off(n_beyond)
    }
}

impl Resource {
    /// Its parts, those of its present run.
    pub fn shard_ids(&self) -> impl Iterator<Item = ShardId> + use<> {
        let resource = self.id;
        let shards = (0..self.spec.placement.shards).map(Shard);
        shards.map(move |shard| ShardId { resource, shard })
    }

    /// Whether a part belongs to the present run; it may be one of a run that had more of them.
    pub fn has_shard(&self, id: ShardId) -> bool {
        self.id == id.resource && id.shard.0 < self.spec.placement.shards
    }

    /// The present division of hosts among its parts, where there was another one before.
    pub fn division(&self) -> Option<Division> {
        let first_run = self.resharded_at;
        (first_run > Run(1)).then(|| Division {
            first_run,
            n_shards: self.spec.placement.n_shards(),
        })
    }
}

/// The exact plugin that a resource runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedPlugin {
    /// Its version.
    pub version: PluginVersion,
    /// Of its bytes.
    pub digest: Digest,
    /// The version of the interface that it was built for; empty in records of before it was kept.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub interface: String,
}

impl PinnedPlugin {
    /// This one.
    pub fn of(plugin: &PluginRecord) -> Self {
        Self {
            version: plugin.version.clone(),
            digest: plugin.digest,
            interface: plugin.interface.clone(),
        }
    }
}

/// What a worker is to do with a shard that is assigned to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Crawl it.
    #[default]
    Crawl,
    /// End its crawl, and write then that nobody has it.
    GiveBack,
}

impl Assignment {
    /// Of a shard of this resource, to a process under an epoch.
    pub fn of(resource: &Resource, epoch: Epoch, incarnation: Incarnation, order: Order) -> Self {
        let placement = &resource.spec.placement;
        Self {
            name: resource.spec.name.clone(),
            epoch,
            incarnation,
            generation: resource.generation,
            order,
            weight: placement.weight,
            apart: placement.apart.clone(),
        }
    }
}

impl Order {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde hands a reference over"
    )]
    fn is_crawl(&self) -> bool {
        *self == Order::Crawl
    }
}

/// A worker's copy of what is assigned to it, under `assignments/<worker>/<id>/<n>`.
///
/// Written in the transaction that writes the shard; a worker watches nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// The resource.
    pub name: ResourceName,
    /// Of this assignment.
    pub epoch: Epoch,
    /// Of the worker it was written for.
    pub incarnation: Incarnation,
    /// Of the spec that should run.
    pub generation: Generation,
    /// What is to be done with it.
    #[serde(default, skip_serializing_if = "Order::is_crawl")]
    pub order: Order,
    /// What it adds to the load of its worker.
    #[serde(default = "default_weight", skip_serializing_if = "is_default_weight")]
    pub weight: u32,
    /// The resource that must not come to its worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart: Option<ResourceName>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands a reference over"
)]
fn is_false(value: &bool) -> bool {
    !value
}

fn default_weight() -> u32 {
    DEFAULT_WEIGHT
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands a reference over"
)]
fn is_default_weight(weight: &u32) -> bool {
    *weight == DEFAULT_WEIGHT
}

/// A resource whose name is free already and whose data is to go, under `deleting/<id>`. The record
/// is the last of it: when it is gone, so is the frontier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deleting {
    /// The name it had.
    pub name: ResourceName,
    /// Its life.
    pub id: ResourceId,
    /// The calls that changed it last, and the one that deleted it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestId>,
    /// Who may have been writing when it was deleted.
    pub owners: Vec<Owner>,
    /// When it was deleted.
    pub deleted_at: UnixMillis,
    /// Its items go too.
    pub purge: bool,
    /// Since when nobody writes any more, and items that were to go are gone. From then on its
    /// frontier stays for the minimum age.
    #[serde(default)]
    pub stopped_at: Option<UnixMillis>,
    /// Its line files were cut to what counts, and the frontier is being taken apart.
    #[serde(default)]
    pub items_cut: bool,
    /// The try to deliver what no sink had that came to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<u64>,
}

/// Where a resource stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// It waits, for the reason given.
    Pending(String),
    /// It is crawled.
    Running,
    /// Somebody has paused it. Where a worker still brings it to an end, that is the reason given.
    Paused(String),
    /// The run is over.
    Finished,
    /// The run cannot go on, for the reason given.
    Failed(String),
}

impl Phase {
    /// One word, as the API gives it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Phase::Pending(_) => "Pending",
            Phase::Running => "Running",
            Phase::Paused(_) => "Paused",
            Phase::Finished => "Finished",
            Phase::Failed(_) => "Failed",
        }
    }

    /// Why, where a phase has a reason.
    pub fn reason(&self) -> &str {
        match self {
            Phase::Pending(reason) | Phase::Paused(reason) | Phase::Failed(reason) => reason,
            Phase::Running | Phase::Finished => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_before_placement_could_be_asked_for_are_read_and_written_as_they_were() {
        let spec = r#"{"name":"books","plugin":"books","crawl":{}}"#;
        let read: ResourceSpec = serde_json::from_str(spec).unwrap();
        assert_eq!(read.placement, PlacementSpec::default());
        assert_eq!(serde_json::to_string(&read).unwrap(), spec);
        let mirror = r#"{"name":"books","epoch":1,"incarnation":2,"generation":3}"#;
        let read: Assignment = serde_json::from_str(mirror).unwrap();
        assert_eq!((read.weight, &read.apart), (1, &None));
        // Numbers that name something were written as numbers then.
        let mirror = mirror.replace(r#""incarnation":2"#, r#""incarnation":"2""#);
        assert_eq!(serde_json::to_string(&read).unwrap(), mirror);
    }
}
