//! Nodes: the processes of a cluster, as they register and as placement sees them.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::id::{Incarnation, NodeId};

/// What a process does in the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Accepts calls, places resources.
    Master,
    /// Crawls.
    Worker,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Master => "master",
            Role::Worker => "worker",
        })
    }
}

/// A node's registration, written under its lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// `worker-1`.
    pub id: NodeId,
    /// What it does.
    pub role: Role,
    /// Where its gRPC answers: `127.0.0.1:9091`.
    pub address: String,
    /// Tells this process from an earlier one under the same id.
    pub incarnation: Incarnation,
    /// Labels for selectors.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// How many shards it takes at once; 0 for a master.
    pub capacity: u32,
    /// The version of the program.
    pub version: String,
    /// It takes nothing new.
    #[serde(default)]
    pub draining: bool,
    /// Milliseconds since 1970.
    pub started_at: u64,
}

/// A master that leads or would lead, under `election/<lease>`: of those there are, the one whose key
/// was created first leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contender {
    /// `master-2`.
    pub id: NodeId,
    /// Where its gRPC answers.
    pub address: String,
}
