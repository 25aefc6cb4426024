//! The master: accepts calls, keeps the desired state in the store, and places shards on workers.
//!
//! ```text
//! control    what a call does; gRPC and HTTP both end here
//! error      why a call was not carried out, and what can be done about it
//! leader     what a master does while it leads, beside calls
//! roster     the log of nodes that come and go
//! reconcile  a loop that compares desired with observed state and writes the difference
//! remains    what the leader removes from the data root
//! explain    pure: why a URL was, or was not, fetched
//! replica    what the store holds, kept up to date
//! lists      what calls list from the store
//! phase      pure: where a resource stands
//! placement  pure: which worker takes which shard, and why not the others
//! absent     pure: how long what is on a missing worker waits for it
//! handover   pure: how long an owner is waited for that is to give a shard back
//! balance    pure: when loads are levelled out, and by which moves
//! ```
//!
//! Desired state is written first and placed later. A watch only wakes the loop, which then looks at
//! the whole state again.

use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;

use crate::model::id::{ResourceId, ResourceName, Shard};
use crate::model::node::Node;
use crate::model::resource::{Phase, Resource, ShardRecord};
use crate::model::status::{CrawlStatus, LogLine, WorkerStatus};

mod absent;
pub mod balance;
pub mod control;
mod error;
pub mod explain;
mod handover;
pub mod housekeeping;
pub mod leader;
mod lists;
mod observed;
mod phase;
pub mod placement;
pub mod reconcile;
pub mod remains;
pub mod replica;
pub mod roster;
#[cfg(test)]
mod twin;

pub use error::{Code, ControlError};

/// Deadline of one call from a master to a worker.
pub const WORKER_CALL_DEADLINE: Duration = Duration::from_secs(2);

/// A resource with all that follows from it.
#[derive(Debug, Clone)]
pub struct ResourceView {
    /// As stored.
    pub resource: Resource,
    /// Where it stands.
    pub phase: Phase,
    /// As stored, or as its worker says at this moment.
    pub shards: Vec<ShardView>,
}

/// A shard and its present numbers.
#[derive(Debug, Clone)]
pub struct ShardView {
    /// Which part.
    pub shard: Shard,
    /// As stored; `counts` and `waits` as the worker says at this moment, where it does.
    pub record: ShardRecord,
    /// Pages in flight at this moment.
    pub in_flight: u64,
    /// What its worker's log has told last of what went wrong.
    pub last_errors: Vec<LogLine>,
}

/// A node with what follows from the assignments.
#[derive(Debug, Clone)]
pub struct NodeView {
    /// As registered.
    pub node: Node,
    /// The master that places.
    pub leader: bool,
    /// Shards assigned to it.
    pub load: u32,
    /// What they weigh together.
    pub weight: u64,
    /// What a worker told last.
    pub totals: Option<WorkerStatus>,
}

/// What a worker that drains has still, and who may take it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// Shards assigned to it.
    pub load: u32,
    /// Other workers that take shards.
    pub others: usize,
}

/// All nodes, and what else was found where they are recorded.
#[derive(Debug, Clone)]
pub struct NodesView {
    /// Masters first.
    pub nodes: Vec<NodeView>,
    /// Of nodes, contenders, totals and assignments.
    pub broken: Vec<BrokenRecord>,
}

/// A record that nobody can read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenRecord {
    /// The whole key.
    pub key: String,
    /// What is wrong with it.
    pub why: String,
}

/// Part of a list, in the order of names.
#[derive(Debug, Clone)]
pub struct ListPage<T> {
    /// At most as many as asked for.
    pub entries: Vec<T>,
    /// Where to go on; none at the end.
    pub next: Option<ResourceName>,
}

/// Calls from a master to workers, by their addresses. Implemented over gRPC.
#[async_trait]
pub trait WorkerCalls: Send + Sync + 'static {
    /// The numbers of all crawls there, or of one resource.
    async fn status(
        &self,
        address: &str,
        name: Option<&ResourceName>,
    ) -> Result<Vec<CrawlStatus>, WorkerCallError>;

    /// The log of one resource there, by its id: what is kept, then with `follow` what comes.
    async fn logs(
        &self,
        address: &str,
        resource: ResourceId,
        follow: bool,
    ) -> Result<BoxStream<'static, Result<LogLine, WorkerCallError>>, WorkerCallError>;
}

/// A worker that does not answer.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the worker at {address} does not answer: {why}")]
pub struct WorkerCallError {
    /// Where it was asked.
    pub address: String,
    /// What was seen.
    pub why: String,
}
