//! Resources: named crawls, their shards, and the phase that follows from both.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::crawl::UnixMillis;
use super::id::{
    Digest, Epoch, Generation, Incarnation, PluginRef, PluginVersion, RequestId, ResourceId,
    ResourceName, Run, Shard,
};
use super::label::check_labels;
use super::links::Division;
use super::placement::DEFAULT_WEIGHT;
pub use super::placement::PlacementSpec;
use super::plugin::{LimitOverrides, PluginRecord};
pub use super::settings::{
    Agent, ContentTypes, CookieSeed, Cookies, CrawlSettings, CredentialNames, DEFAULT_DELAY,
    HostPattern, Hours, ProxyChoice, Rates, Robots, SettingError, SinkName, SinkNames, Unchanged,
};
pub use super::shard::{
    FRONTIER_MISSING, LinkTotals, Order, Owner, Redrive, ShardId, ShardRecord, ShardState, Waits,
    is_complete,
};

/// Specification of a resource by its user; everything but the name has a default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceSpec {
    /// Name, unique among the resources that are not deleted.
    pub name: ResourceName,
    /// Plugin that runs; if none was given, the one of the same name.
    pub plugin: PluginRef,
    /// Params that are handed to the rules as their config.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, String>,
    /// Limits of one call that differ from the defaults.
    #[serde(default, skip_serializing_if = "LimitOverrides::is_empty")]
    pub limits: LimitOverrides,
    /// Range and pace of the crawl.
    #[serde(default)]
    pub crawl: CrawlSettings,
    /// Requirements on the workers that take it.
    #[serde(default, skip_serializing_if = "PlacementSpec::is_default")]
    pub placement: PlacementSpec,
    /// Labels, by which lists and files select the resource.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

impl ResourceSpec {
    /// Returns the field in which `other` differs so that only a new run can take it.
    pub fn only_by_restart(&self, other: &Self) -> Option<RestartField> {
        if self.plugin.name != other.plugin.name {
            Some(RestartField::Plugin)
        } else if self.params != other.params {
            Some(RestartField::Params)
        } else if self.placement.shards != other.placement.shards {
            Some(RestartField::Shards)
        } else {
            None
        }
    }

    /// Refuses labels that are too many, or that have an invalid key or value.
    pub fn check_labels(&self) -> Result<(), SettingError> {
        let checked = check_labels(&self.labels);
        checked.map_err(|e| SettingError {
            setting: "labels",
            why: format!("is no list of labels: {e}"),
        })
    }

    /// Refuses a comparison of items from run to run that could not be right: the items of one key may come from
    /// pages of different shards, and pages that are skipped give no items.
    pub fn check_changes(&self) -> Result<(), SettingError> {
        let (n, shards) = (self.crawl.changes(), self.placement.shards);
        let why = match self.crawl.unchanged() {
            _ if n == 0 => return Ok(()),
            _ if shards > 1 => format!(
                "is {n}, and the resource has {shards} shards, which do not know each other's items; set --shards 1, or set changes to 0"
            ),
            Unchanged::Skip => format!(
                "is {n}, and setting unchanged is skip: items of skipped pages would be told as removed; set unchanged to parse, or changes to 0"
            ),
            Unchanged::Parse => return Ok(()),
        };
        let setting = "changes";
        Err(SettingError { setting, why })
    }

    /// Refuses times between visits that could not be kept: only with `skip` are pages known that no page of a run
    /// leads to.
    pub fn check_revisit(&self) -> Result<(), SettingError> {
        let (min, max) = (self.crawl.revisit(), self.crawl.revisit_max());
        let refused = |setting, why: String| Err(SettingError { setting, why });
        if max > Duration::ZERO && max < min {
            let [min, max] = [min, max].map(humantime::format_duration);
            let why = format!(
                "is {max}, and setting revisit is {min}; set it to {min} or longer, or to 0"
            );
            return refused("revisit-max", why);
        }
        if max > Duration::ZERO && min == Duration::ZERO {
            let why = "is set, and setting revisit is not; set revisit to the shortest time, or revisit-max to 0";
            return refused("revisit-max", why.to_owned());
        }
        if min > Duration::ZERO && self.crawl.unchanged() == Unchanged::Parse {
            let min = humantime::format_duration(min);
            let why = format!(
                "is {min}, and setting unchanged is parse: pages that only a page leads to that is not due would be lost; set unchanged to skip, or revisit to 0"
            );
            return refused("revisit", why);
        }
        Ok(())
    }
}

/// Field of a spec that only a new run can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestartField {
    /// Name of the plugin; another version of it is taken at once.
    Plugin,
    /// Params.
    Params,
    /// Number of shards.
    Shards,
}

impl RestartField {
    /// Returns the name of the field in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            RestartField::Plugin => "plugin",
            RestartField::Params => "params",
            RestartField::Shards => "shards",
        }
    }
}

/// A resource as the store keeps it, under `resources/<name>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    /// Id of this life of the name.
    pub id: ResourceId,
    /// `id|address` of the owner of shard 0; empty while unplaced.
    pub assigned_node: String,
    /// Time of creation, in nanoseconds since 1970.
    pub creation_time: u64,
    /// Number that grows with each change of the spec.
    pub generation: Generation,
    /// The present pass over the site.
    pub run: Run,
    /// First run with the present number of shards: in earlier runs, a host may have belonged to another
    /// shard. 0 in records from before the field existed.
    #[serde(default)]
    pub resharded_at: Run,
    /// Time at which the present run was requested; `root` sees it as the present time, in every shard.
    /// `None` in records from before the field existed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_started_at: Option<UnixMillis>,
    /// Plugin version found when the resource was added. If `None`, the resource waits for its plugin.
    pub pinned: Option<PinnedPlugin>,
    /// True if the resource is not to be crawled until it is resumed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub paused: bool,
    /// Ids of the latest calls that changed the resource, the latest last, so that none is carried out
    /// again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestId>,
    /// Specification by the user.
    #[serde(flatten)]
    pub spec: ResourceSpec,
}

/// Largest number of calls that are remembered; a client that repeats a call does so within seconds.
const MAX_REQUESTS: usize = 16;

impl Resource {
    /// True if this call was carried out already.
    pub fn has_seen(&self, request: &RequestId) -> bool {
        self.requests.contains(request)
    }

    /// Returns the calls to be remembered after this one.
    pub fn requests_with(&self, request: &RequestId) -> Vec<RequestId> {
        let others = self.requests.iter().filter(|present| *present != request);
        let mut requests: Vec<RequestId> = others.chain([request]).cloned().collect();
        let n_beyond = requests.len().saturating_sub(MAX_REQUESTS);
        requests.split_off(n_beyond)
    }
}

impl Resource {
    /// Iterates over the ids of its shards in the present run.
    pub fn shard_ids(&self) -> impl Iterator<Item = ShardId> + use<> {
        let resource = self.id;
        let shards = (0..self.spec.placement.shards).map(Shard);
        shards.map(move |shard| ShardId { resource, shard })
    }

    /// True if a shard belongs to the present run. An earlier run may have had more shards.
    pub fn has_shard(&self, id: ShardId) -> bool {
        self.id == id.resource && id.shard.0 < self.spec.placement.shards
    }

    /// Returns the present division of hosts among the shards, if there was another one before.
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
    /// Version of the plugin.
    pub version: PluginVersion,
    /// Digest of the plugin's bytes.
    pub digest: Digest,
    /// Interface version that the plugin was built for; empty in records from before the field existed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub interface: String,
}

impl PinnedPlugin {
    /// Pins this plugin version.
    pub fn of(plugin: &PluginRecord) -> Self {
        Self {
            version: plugin.version.clone(),
            digest: plugin.digest,
            interface: plugin.interface.clone(),
        }
    }
}

impl Assignment {
    /// Returns the assignment of a shard of this resource to a process under an epoch.
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

/// Assignment of a shard, as a worker reads it, under `assignments/<worker>/<id>/<n>`.
///
/// The record is written in the same transaction as the shard; a worker watches nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// Name of the resource.
    pub name: ResourceName,
    /// Epoch of this assignment.
    pub epoch: Epoch,
    /// Incarnation of the worker that it was written for.
    pub incarnation: Incarnation,
    /// Generation of the spec that should run.
    pub generation: Generation,
    /// Order to the worker.
    #[serde(default, skip_serializing_if = "Order::is_crawl")]
    pub order: Order,
    /// Weight that the shard adds to the load of its worker.
    #[serde(default = "default_weight", skip_serializing_if = "is_default_weight")]
    pub weight: u32,
    /// Resource that must not share the worker.
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

/// A deleted resource whose name is already free and whose data is to be removed, under `deleting/<id>`.
/// The record is the last trace of the resource: when it is gone, so is the frontier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deleting {
    /// Name that the resource had.
    pub name: ResourceName,
    /// Id of the resource.
    pub id: ResourceId,
    /// Ids of the latest calls that changed the resource, and of the one that deleted it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestId>,
    /// Processes that may have been writing when the resource was deleted.
    pub owners: Vec<Owner>,
    /// Time of the deletion.
    pub deleted_at: UnixMillis,
    /// True if the items are deleted too.
    pub purge: bool,
    /// Time since which nobody writes any more, and items that were to be deleted are gone. From then on,
    /// the frontier is kept for the minimum age.
    #[serde(default)]
    pub stopped_at: Option<UnixMillis>,
    /// True if the line files were cut to their valid length. The frontier is then being taken apart.
    #[serde(default)]
    pub items_cut: bool,
    /// Number of the finished try to deliver the items that no sink had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<u64>,
}

/// Phase of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// The resource waits, for the reason given.
    Pending(String),
    /// The resource is being crawled.
    Running,
    /// Somebody has paused the resource. If a worker is still ending its crawl, the reason says so.
    Paused(String),
    /// The run is over.
    Finished,
    /// The run cannot go on, for the reason given.
    Failed(String),
}

impl Phase {
    /// Words of all phases.
    pub const WORDS: [&str; 5] = ["Pending", "Running", "Paused", "Finished", "Failed"];

    /// Returns the word that the API uses.
    pub fn as_str(&self) -> &'static str {
        match self {
            Phase::Pending(_) => "Pending",
            Phase::Running => "Running",
            Phase::Paused(_) => "Paused",
            Phase::Finished => "Finished",
            Phase::Failed(_) => "Failed",
        }
    }

    /// Returns the reason of a phase; empty if it has none.
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
    fn labels_that_cannot_be_meant_are_refused() {
        let spec = r#"{"name":"books","plugin":"books"}"#;
        let mut spec: ResourceSpec = serde_json::from_str(spec).unwrap();
        spec.labels = [("team".into(), "shop".into())].into();
        assert_eq!(spec.check_labels(), Ok(()));
        spec.labels = [("te am".into(), "shop".into())].into();
        assert_eq!(
            spec.check_labels().unwrap_err().to_string(),
            "setting labels is no list of labels: label key \"te am\" has ' '; \
             use letters, digits, '-', '_' and '.', and start with a letter or digit"
        );
        spec.labels = (0..33).map(|n| (format!("k{n}"), "v".into())).collect();
        assert_eq!(
            spec.check_labels().unwrap_err().to_string(),
            "setting labels is no list of labels: there are 33 labels; at most 32 are allowed"
        );
    }

    #[test]
    fn changes_are_refused_where_they_could_not_be_right() {
        let check = |changes: u32, shards: u32, unchanged: Unchanged, refusal: &str| {
            let spec = r#"{"name":"books","plugin":"books"}"#;
            let mut spec: ResourceSpec = serde_json::from_str(spec).unwrap();
            spec.crawl.changes = Some(changes);
            spec.crawl.unchanged = Some(unchanged);
            spec.placement.shards = shards;
            let found = spec.check_changes().map_err(|e| e.to_string());
            assert_eq!(found.err().unwrap_or_default(), refusal);
        };
        check(30, 1, Unchanged::Parse, "");
        check(0, 4, Unchanged::Skip, "");
        check(
            30,
            4,
            Unchanged::Parse,
            "setting changes is 30, and the resource has 4 shards, which do not know each other's items; \
             set --shards 1, or set changes to 0",
        );
        check(
            30,
            1,
            Unchanged::Skip,
            "setting changes is 30, and setting unchanged is skip: items of skipped pages would be told as removed; \
             set unchanged to parse, or changes to 0",
        );
    }

    #[test]
    fn impossible_times_between_visits_are_refused() {
        let check = |revisit: u64, max: u64, unchanged: Unchanged, refusal: &str| {
            let spec = r#"{"name":"books","plugin":"books"}"#;
            let mut spec: ResourceSpec = serde_json::from_str(spec).unwrap();
            spec.crawl.revisit_ms = Some(revisit);
            spec.crawl.revisit_max_ms = Some(max);
            spec.crawl.unchanged = Some(unchanged);
            let found = spec.check_revisit().map_err(|e| e.to_string());
            assert_eq!(found.err().unwrap_or_default(), refusal);
        };
        check(0, 0, Unchanged::Parse, "");
        check(1_000, 0, Unchanged::Skip, "");
        check(1_000, 1_000, Unchanged::Skip, "");
        check(
            2_000,
            1_000,
            Unchanged::Skip,
            "setting revisit-max is 1s, and setting revisit is 2s; set it to 2s or longer, or to 0",
        );
        check(
            0,
            1_000,
            Unchanged::Skip,
            "setting revisit-max is set, and setting revisit is not; set revisit to the shortest time, or revisit-max to 0",
        );
        check(
            1_000,
            0,
            Unchanged::Parse,
            "setting revisit is 1s, and setting unchanged is parse: pages that only a page leads to that is not due would \
             be lost; set unchanged to skip, or revisit to 0",
        );
    }

    #[test]
    fn records_of_before_placement_could_be_asked_for_are_read_and_written_as_they_were() {
        let spec = r#"{"name":"books","plugin":"books","crawl":{}}"#;
        let read: ResourceSpec = serde_json::from_str(spec).unwrap();
        assert_eq!(read.placement, PlacementSpec::default());
        assert_eq!(read.labels, BTreeMap::new());
        assert_eq!(serde_json::to_string(&read).unwrap(), spec);
        let mirror = r#"{"name":"books","epoch":1,"incarnation":2,"generation":3}"#;
        let read: Assignment = serde_json::from_str(mirror).unwrap();
        assert_eq!((read.weight, &read.apart), (1, &None));
        // Ids were still written as numbers in such records.
        let mirror = mirror.replace(r#""incarnation":2"#, r#""incarnation":"2""#);
        assert_eq!(serde_json::to_string(&read).unwrap(), mirror);
    }
}
