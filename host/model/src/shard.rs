//! Shards: the parts of a resource that are assigned, fenced and moved, each by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::counts::Counts;
use super::drift::Decision;
use super::id::{Epoch, Incarnation, NodeId, ResourceId, ResourceName, Shard};

/// Id of one shard of one resource, as it appears in keys and logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId {
    /// Id of the resource.
    pub resource: ResourceId,
    /// Number of the shard within the resource.
    pub shard: Shard,
}

impl ShardId {
    /// Returns the id of the only shard of a resource that is not split.
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

/// Number of links that a shard has exchanged with each other shard of its resource in the present
/// run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LinkTotals {
    /// Number of links sent to each shard and acknowledged by it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sent: BTreeMap<u32, u64>,
    /// Number of links received from each shard and stored.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub applied: BTreeMap<u32, u64>,
}

impl LinkTotals {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// True if the shards of one resource have nothing left to do: each is idle, and has stored all
/// links that the others sent it. The iterator yields all shards of the resource, in order.
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

/// Largest number of owners of one shard that are remembered. Earlier ones have been fenced off as
/// many times since.
const MAX_WRITERS: usize = 16;

/// The unit of assignment, stored under `shards/<id>/<n>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardRecord {
    /// The name of the resource, so that the record of a shard can be read alone.
    pub resource: ResourceName,
    /// The process that crawls the shard.
    pub owner: Option<Owner>,
    /// Owners that the shard was taken from, the latest last. They may still be finishing their
    /// items.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former_owners: Vec<Owner>,
    /// Node that gets the shard once its owner has given it back. If that node does not take it,
    /// any other may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NodeId>,
    /// Epoch of the last assignment; 0 before the first.
    pub epoch: Epoch,
    /// State of the crawl.
    pub state: ShardState,
    /// The writer epoch of the frontier's database that the owner found before it opened it. It is
    /// recorded nowhere else; see `opening` of the worker.
    #[serde(default)]
    pub storage_epoch: u64,
    /// True if the frontier was opened once. If there is none then, it is missing, not new.
    pub created: bool,
    /// Reason why the owner cannot go on at present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waits>,
    /// Dead letters to try again as soon as the frontier is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redrive: Option<Redrive>,
    /// Decisions about held items, to be carried out in their order as soon as the frontier is open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decision>,
    /// Totals at the last change of state.
    pub counts: Counts,
    /// Link totals at the time when the shard became idle.
    #[serde(default, skip_serializing_if = "LinkTotals::is_empty")]
    pub links: LinkTotals,
}

impl ShardRecord {
    /// Returns the record of the shard once no process owns it any more.
    pub fn freed(&self) -> Self {
        Self {
            owner: None,
            former_owners: self.writers(),
            state: ShardState::Free,
            waits: None,
            ..self.clone()
        }
    }

    /// Returns the record of a shard that has never been assigned.
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
            decisions: Vec::new(),
            counts: Counts::default(),
            links: LinkTotals::default(),
        }
    }

    /// Returns the processes that may be writing: the owner and the former owners.
    pub fn writers(&self) -> Vec<Owner> {
        let mut writers = self.former_owners.clone();
        if let Some(owner) = &self.owner {
            // A node id belongs to one process at a time.
            writers.retain(|writer| writer.node != owner.node);
            writers.push(owner.clone());
        }
        let n_beyond = writers.len().saturating_sub(MAX_WRITERS);
        writers.split_off(n_beyond)
    }
}

/// Name of the condition of a crawl whose frontier existed and is gone.
pub const FRONTIER_MISSING: &str = "FrontierMissing";

/// Reason why an owner cannot go on. The owner tries again by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// Name of the condition: `StorageUnavailable`, `FrontierMissing`, …
    pub condition: String,
    /// Explanation in one sentence.
    pub why: String,
}

/// Selection of the dead letters to try again.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Redrive {
    /// Reasons of the dead letters that are selected. If empty, all are.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub reasons: BTreeSet<String>,
}

impl Redrive {
    /// Selects the dead letters with this reason, or all of them if there is none.
    pub fn of(reason: Option<&str>) -> Self {
        Self {
            reasons: reason.into_iter().map(str::to_owned).collect(),
        }
    }

    /// Returns the union of both selections.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        if self.reasons.is_empty() || other.reasons.is_empty() {
            return Self::default();
        }
        self.reasons.extend(other.reasons);
        self
    }

    /// True if dead letters with this reason are selected.
    pub fn wants(&self, reason: &str) -> bool {
        self.reasons.is_empty() || self.reasons.contains(reason)
    }
}

/// The process that a shard is assigned to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Id of the node.
    pub node: NodeId,
    /// Incarnation of the node: an epoch belongs to exactly one.
    pub incarnation: Incarnation,
}

/// Order to a worker about a shard that is assigned to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Crawl the shard.
    #[default]
    Crawl,
    /// End the crawl, and then record that nobody owns the shard.
    GiveBack,
}

/// State of the crawl of a shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "state")]
pub enum ShardState {
    /// No process owns the shard.
    Free,
    /// The owner crawls.
    Assigned,
    /// The owner has nothing left to do.
    Idle,
    /// The owner is to end its crawl and give the shard back.
    Revoking,
    /// The run is over.
    Finished,
    /// The run cannot go on.
    Failed {
        /// Explanation in one sentence.
        reason: String,
    },
}

impl ShardState {
    /// Returns the order in the owner's assignment, or `None` if nobody is to have an assignment.
    pub fn order(&self) -> Option<Order> {
        match self {
            ShardState::Assigned | ShardState::Idle => Some(Order::Crawl),
            ShardState::Revoking => Some(Order::GiveBack),
            ShardState::Free | ShardState::Finished | ShardState::Failed { .. } => None,
        }
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
        // The shard becomes free.
        (shard.former_owners, shard.owner) = (shard.writers(), None);
        assert_eq!(shard.writers(), expected);
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
