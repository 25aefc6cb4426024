//! Resources: named crawls, their shards, and the phase that follows from both.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::crawl::{Counts, UnixMillis};
use super::id::{
    Digest, Epoch, Generation, Incarnation, NodeId, PluginRef, PluginVersion, RequestId,
    ResourceId, ResourceName, Run, Shard,
};
use super::placement::DEFAULT_WEIGHT;
pub use super::placement::PlacementSpec;
use super::plugin::{LimitOverrides, PluginRecord};
pub use super::scope::HostPattern;
pub use super::settings::{CrawlSettings, DEFAULT_DELAY, SettingError, Unchanged};

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

/// Links that shards of one resource have handed each other in the present run, by the other shard.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LinkTotals {
    /// To that one, each answered for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sent: BTreeMap<u32, u64>,
    /// From that one, each stored.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub applied: BTreeMap<u32, u64>,
}

impl LinkTotals {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Whether the shards of one resource, in order and all of them, have nothing left to do: each is idle,
/// and what one has sent the other has stored.
pub fn is_complete<'a>(shards: impl Iterator<Item = &'a ShardRecord> + Clone) -> bool {
    let totals = || shards.clone().map(|shard| &shard.links);
    let sums = |totals: &BTreeMap<u32, u64>, other: usize| {
        let other = u32::try_from(other).ok();
        other.and_then(|n| totals.get(&n)).copied().unwrap_or(0)
    };
    let all_idle = shards.clone().all(|shard| shard.state == ShardState::Idle);
    all_idle
        && totals().enumerate().all(|(from, sender)| {
            let mut receivers = totals().enumerate();
            receivers.all(|(to, receiver)| sums(&sender.sent, to) == sums(&receiver.applied, from))
        })
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

/// So many owners of one shard are remembered; those before them were fenced off as many times since.
const MAX_WRITERS: usize = 16;

/// The unit that is assigned, under `shards/<id>/<n>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardRecord {
    /// The name of the resource, so that a shard can be read alone.
    pub resource: ResourceName,
    /// Who crawls it.
    pub owner: Option<Owner>,
    /// Those whom it was taken from, the latest last: they may be bringing their items to an end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former_owners: Vec<Owner>,
    /// Whom it goes to once its owner has given it back; anybody where that one does not take it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NodeId>,
    /// Of the last assignment; 0 before the first.
    pub epoch: Epoch,
    /// What its crawl has come to.
    pub state: ShardState,
    /// The writer epoch of the frontier's database that the owner found before it opened it. Nobody
    /// else keeps it; see `worker::opening`.
    #[serde(default)]
    pub storage_epoch: u64,
    /// The frontier was opened once: if it is not there, it is missing, and not new.
    pub created: bool,
    /// The owner cannot go on at present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waits>,
    /// Dead letters are to be tried again as soon as the frontier is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redrive: Option<Redrive>,
    /// As of the last change of state.
    pub counts: Counts,
    /// As of when it became idle.
    #[serde(default, skip_serializing_if = "LinkTotals::is_empty")]
    pub links: LinkTotals,
}

impl ShardRecord {
    /// The record once nobody has the shard any more.
    pub fn freed(&self) -> Self {
        Self {
            owner: None,
            former_owners: self.writers(),
            state: ShardState::Free,
            waits: None,
            ..self.clone()
        }
    }

    /// A shard that nobody has crawled yet.
    pub fn new(resource: ResourceName) -> Self {
        Self {
            resource,
            owner: None,
            former_owners: Vec::new(),
            next: None,
            epoch: Epoch(0),
            state: ShardState::Free,
            storage_epoch: 0,
            created: false,
            waits: None,
            redrive: None,
            counts: Counts::default(),
            links: LinkTotals::default(),
        }
    }

    /// Those who may be writing: its owner, and those it was taken from.
    pub fn writers(&self) -> Vec<Owner> {
        let mut writers = self.former_owners.clone();
        if let Some(owner) = &self.owner {
            // An id has one process at a time.
            writers.retain(|writer| writer.node != owner.node);
            writers.push(owner.clone());
        }
        let n_beyond = writers.len().saturating_sub(MAX_WRITERS);
        writers.split_off(n_beyond)
    }
}

/// The state of a crawl whose frontier was there and is gone.
pub const FRONTIER_MISSING: &str = "FrontierMissing";

/// Why an owner cannot go on; it tries again by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// The name of the state: `StorageUnavailable`, `FrontierMissing`, …
    pub condition: String,
    /// In a sentence.
    pub why: String,
}

/// Which dead letters are to be tried again.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Redrive {
    /// Given up for this reason; all of them where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The process that a shard is assigned to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Its id.
    pub node: NodeId,
    /// Its life: an epoch belongs to one incarnation.
    pub incarnation: Incarnation,
}

/// What the crawl of a shard has come to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "state")]
pub enum ShardState {
    /// Nobody has it.
    Free,
    /// Its owner crawls.
    Assigned,
    /// Its owner has nothing left to do.
    Idle,
    /// Its owner is to end its crawl and give it back.
    Revoking,
    /// The run is over.
    Finished,
    /// The run cannot go on.
    Failed {
        /// In a sentence.
        reason: String,
    },
}

impl ShardState {
    /// What the owner's copy says; none where nobody is to have one.
    pub fn order(&self) -> Option<Order> {
        match self {
            ShardState::Assigned | ShardState::Idle => Some(Order::Crawl),
            ShardState::Revoking => Some(Order::GiveBack),
            ShardState::Free | ShardState::Finished | ShardState::Failed { .. } => None,
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

/// One shard of one resource, as keys and logs name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId {
    /// The resource.
    pub resource: ResourceId,
    /// Its part.
    pub shard: Shard,
}

impl ShardId {
    /// Of a resource that is not split.
    pub const fn only(resource: ResourceId) -> Self {
        let shard = Shard(0);
        Self { resource, shard }
    }
}

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.resource, self.shard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_owners_of_a_shard_are_remembered_once_each() {
        let owner = |id: usize, incarnation| Owner {
            node: format!("worker-{id}").parse().unwrap(),
            incarnation: Incarnation(incarnation),
        };
        let mut shard = ShardRecord::new("books".parse().unwrap());
        assert_eq!(shard.writers(), []);
        for id in (0..MAX_WRITERS + 3).chain([5]) {
            shard.former_owners = shard.writers();
            shard.owner = Some(owner(id, 2));
        }
        let expected: Vec<Owner> = (3..MAX_WRITERS + 3)
            .filter(|id| *id != 5)
            .chain([5])
            .map(|id| owner(id, 2))
            .collect();
        assert_eq!(shard.writers(), expected);
        // It is freed.
        (shard.former_owners, shard.owner) = (shard.writers(), None);
        assert_eq!(shard.writers(), expected);
    }

    #[test]
    fn records_of_before_placement_could_be_asked_for_are_read_and_written_as_they_were() {
        let spec = r#"{"name":"books","plugin":"books","crawl":{}}"#;
        let read: ResourceSpec = serde_json::from_str(spec).unwrap();
        assert_eq!(read.placement, PlacementSpec::default());
        assert_eq!(serde_json::to_string(&read).unwrap(), spec);
        let mirror = r#"{"name":"books","epoch":1,"incarnation":2,"generation":3}"#;
        let read: Assignment = serde_json::from_str(mirror).unwrap();
        assert_eq!((read.weight, &read.apart), (1, &None));
        assert_eq!(serde_json::to_string(&read).unwrap(), mirror);
    }

    #[test]
    fn a_record_is_json_that_a_person_can_read() {
        let record = ShardRecord {
            state: ShardState::Failed {
                reason: "no".into(),
            },
            ..ShardRecord::new("books".parse().unwrap())
        };
        let text = serde_json::to_string(&record).unwrap();
        assert!(
            text.contains(r#""state":{"state":"failed","reason":"no"}"#),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<ShardRecord>(&text).unwrap(), record);
    }
}
