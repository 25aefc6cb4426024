//! Shards: the parts of a resource that are assigned, fenced and moved, each by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::counts::Counts;
use super::id::{Epoch, Incarnation, NodeId, ResourceId, ResourceName, Shard};
use super::resource::Order;

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
    /// Given up for one of these reasons; all of them where none is named.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub reasons: BTreeSet<String>,
}

impl Redrive {
    /// Those given up for this reason, or all.
    pub fn of(reason: Option<&str>) -> Self {
        Self {
            reasons: reason.into_iter().map(str::to_owned).collect(),
        }
    }

    /// What either asks for.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        if self.reasons.is_empty() || other.reasons.is_empty() {
            return Self::default();
        }
        self.reasons.extend(other.reasons);
        self
    }

    /// Whether it is about what was given up for this reason.
    pub fn wants(&self, reason: &str) -> bool {
        self.reasons.is_empty() || self.reasons.contains(reason)
    }
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
