//! State of a node that its events tell, so that each change is told once, whoever leads.

use serde::{Deserialize, Serialize};

use crate::crawl::UnixMillis;
use crate::id::Incarnation;
use crate::node::Role;

/// State of a node as its last event has left it, stored under `told/<node>`. The leader writes it in the transaction of
/// the events, so a state that differs from it was not told yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToldNode {
    /// Role of the node.
    pub role: Role,
    /// Process that was registered last.
    pub incarnation: Incarnation,
    /// Version of its program; empty if it told none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// True if the process has said that it is to leave.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaving: bool,
    /// True if it was told that the worker drains and has no shards.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drained: bool,
    /// Revision at which the leadership of the master began, while it leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leads: Option<u64>,
    /// Number of the last [folded event](super::FoldedEvent) of the process that was told.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub folded: u64,
    /// Number of writes of this record, by which a leader knows one of its own whose answer was lost.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub n_writes: u64,
    /// Time at which the node was found gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone_at: Option<UnixMillis>,
}
