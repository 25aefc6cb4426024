//! Resources: named crawls, their shards, and the phase that follows from both.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::crawl::Counts;
use super::id::{
    Digest, Epoch, Generation, Incarnation, NodeId, PluginRef, PluginVersion, ResourceId,
    ResourceName, Run, Shard,
};
use super::plugin::LimitOverrides;

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
}

/// How far and how fast a crawl goes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CrawlSettings {
    /// Between the end of an answer and the next request to the same host, in milliseconds.
    /// None: 1 s, and 0 inside the networks that the operator allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// Pages in flight at once. None: [`DEFAULT_CONCURRENCY`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// Pages fetched in one run. None: [`DEFAULT_MAX_PAGES`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_pages: Option<u64>,
    /// Links followed from the root requests. None: [`DEFAULT_MAX_DEPTH`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<u32>,
    /// Hosts beyond those of the root requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<HostPattern>,
}

/// Pages in flight at once, for one resource.
pub const DEFAULT_CONCURRENCY: u32 = 16;
/// Pages fetched in one run.
pub const DEFAULT_MAX_PAGES: u64 = 1_000_000;
/// Links followed from the root requests.
pub const DEFAULT_MAX_DEPTH: u32 = 50;
/// Between two requests to one host outside the allowed networks.
pub const DEFAULT_DELAY: Duration = Duration::from_secs(1);
/// No setting may ask for a longer delay: all crawls of a host keep the longest that one asks for.
pub const MAX_DELAY: Duration = Duration::from_secs(24 * 60 * 60);
/// No setting may ask for more pages in flight than this.
pub const MAX_CONCURRENCY: u32 = 1_024;

impl CrawlSettings {
    /// Pages in flight at once.
    pub fn concurrency(&self) -> u32 {
        self.concurrency.unwrap_or(DEFAULT_CONCURRENCY)
    }

    /// Pages fetched in one run.
    pub fn max_pages(&self) -> u64 {
        self.max_pages.unwrap_or(DEFAULT_MAX_PAGES)
    }

    /// Links followed from the root requests.
    pub fn max_depth(&self) -> u32 {
        self.max_depth.unwrap_or(DEFAULT_MAX_DEPTH)
    }

    /// The delay asked for, if any.
    pub fn delay(&self) -> Option<Duration> {
        self.delay_ms.map(Duration::from_millis)
    }

    /// Refuses what cannot be meant.
    pub fn check(&self) -> Result<(), SettingError> {
        match self.concurrency {
            Some(0) => Err(SettingError {
                setting: "concurrency",
                why: "must be above zero".into(),
            }),
            Some(n) if n > MAX_CONCURRENCY => Err(SettingError {
                setting: "concurrency",
                why: format!("is {n}; at most {MAX_CONCURRENCY} are allowed"),
            }),
            _ if self.delay().is_some_and(|delay| delay > MAX_DELAY) => Err(SettingError {
                setting: "delay",
                why: "is longer than a day".into(),
            }),
            _ if self.max_pages == Some(0) => Err(SettingError {
                setting: "max-pages",
                why: "must be above zero".into(),
            }),
            _ => Ok(()),
        }
    }
}

/// A setting of a crawl that cannot be meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("setting {setting} {why}")]
pub struct SettingError {
    /// As the command line calls it.
    pub setting: &'static str,
    /// What is wrong with it, as the end of a sentence that starts with its name.
    pub why: String,
}

/// Hosts that a crawl may visit: `example.org`, `*.example.org` (with all below it) or `*` (all).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostPattern(String);

impl HostPattern {
    /// Whether this host, in the form `Url::host_str` gives, is meant.
    pub fn admits(&self, host: &str) -> bool {
        match self.0.strip_prefix('*') {
            Some("") => true,
            Some(suffix) => host.ends_with(suffix) || host == &suffix[1..],
            None => host == self.0,
        }
    }
}

impl FromStr for HostPattern {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        let refused = || SettingError {
            setting: "scope",
            why: format!(
                "has {text:?}, which is not a host; write example.org, *.example.org or *"
            ),
        };
        if text == "*" {
            return Ok(Self(text.to_owned()));
        }
        let (stars, host) = match text.strip_prefix("*.") {
            Some(host) => ("*.", host),
            None => ("", text),
        };
        let host = url::Host::parse(host).map_err(|_| refused())?.to_string();
        if host.contains('*') {
            return Err(refused());
        }
        Ok(Self(format!("{stars}{host}")))
    }
}

impl TryFrom<String> for HostPattern {
    type Error = SettingError;

    fn try_from(text: String) -> Result<Self, SettingError> {
        text.parse()
    }
}

impl From<HostPattern> for String {
    fn from(pattern: HostPattern) -> String {
        pattern.0
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
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
    /// What the user asked for.
    #[serde(flatten)]
    pub spec: ResourceSpec,
}

/// The exact plugin that a resource runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedPlugin {
    /// Its version.
    pub version: PluginVersion,
    /// Of its bytes.
    pub digest: Digest,
}

/// The unit that is assigned, under `shards/<id>/<n>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardRecord {
    /// The name of the resource, so that a shard can be read alone.
    pub resource: ResourceName,
    /// Who crawls it.
    pub owner: Option<Owner>,
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
}

impl ShardRecord {
    /// A shard that nobody has crawled yet.
    pub fn new(resource: ResourceName) -> Self {
        Self {
            resource,
            owner: None,
            epoch: Epoch(0),
            state: ShardState::Free,
            storage_epoch: 0,
            created: false,
            waits: None,
            redrive: None,
            counts: Counts::default(),
        }
    }
}

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
    /// The run is over.
    Finished,
    /// The run cannot go on.
    Failed {
        /// In a sentence.
        reason: String,
    },
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
}

/// A resource whose name is free already and whose data is to go, under `deleting/<id>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deleting {
    /// The name it had.
    pub name: ResourceName,
    /// Its life.
    pub id: ResourceId,
    /// Who may still be writing.
    pub owners: Vec<Owner>,
}

/// Where a resource stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// It waits, for the reason given.
    Pending(String),
    /// It is crawled.
    Running,
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
            Phase::Finished => "Finished",
            Phase::Failed(_) => "Failed",
        }
    }

    /// Why, where a phase has a reason.
    pub fn reason(&self) -> &str {
        match self {
            Phase::Pending(reason) | Phase::Failed(reason) => reason,
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

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.resource, self.shard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_scope(pattern: &str, host: &str, admitted: bool) {
        assert_eq!(
            pattern.parse::<HostPattern>().unwrap().admits(host),
            admitted,
            "{pattern} {host}"
        );
    }

    #[test]
    fn a_host_pattern_admits_its_host_or_all_below_it() {
        check_scope("example.org", "example.org", true);
        check_scope("EXAMPLE.org", "example.org", true);
        check_scope("example.org", "www.example.org", false);
        check_scope("*.example.org", "www.example.org", true);
        check_scope("*.example.org", "example.org", true);
        check_scope("*.example.org", "badexample.org", false);
        check_scope("*", "anything.test", true);
    }

    #[test]
    fn a_delay_that_would_close_a_host_to_all_is_refused() {
        let asks = |delay_ms| CrawlSettings {
            delay_ms: Some(delay_ms),
            ..Default::default()
        };
        assert_eq!(asks(86_400_000).check(), Ok(()));
        for delay_ms in [86_400_001, u64::MAX] {
            let error = asks(delay_ms).check().unwrap_err();
            assert_eq!(error.to_string(), "setting delay is longer than a day");
        }
    }

    #[test]
    fn a_pattern_that_is_no_host_is_refused() {
        for text in [
            "",
            "http://example.org",
            "a b",
            "*example.org",
            "example.org/path",
        ] {
            assert!(text.parse::<HostPattern>().is_err(), "{text}");
        }
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
