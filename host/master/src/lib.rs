//! The master: accepts calls, keeps the desired state in the store, and places shards on workers.
//!
//! ```text
//! control          what a call does; gRPC and HTTP both end here
//! error            why a call was not carried out, and what can be done about it
//! events           what happened to resources: written with each change, bounded by a task of the leader
//! leader           what a master does while it leads, beside calls
//! node_watch       the log of nodes that come and go
//! reconcile        a loop that compares desired with observed state and writes the difference
//! cleanup          what the leader removes from the data root
//! explain          pure: why a URL was, or was not, fetched
//! replica          what the store holds, kept up to date
//! lists            what calls list from the store
//! phase            pure: where a resource stands
//! schedules        a loop that starts the runs of schedules
//! placement        pure: which worker takes which shard, and why not the others
//! metrics          counts and the present state, for metrics
//! missing_workers  pure: how long what is on a missing worker waits for it
//! revocations      pure: how long an owner is waited for that is to give a shard back
//! balance          pure: when loads are levelled out, and by which moves
//! webhooks         calls by which the leader tells others what happens to resources
//! ```
//!
//! Desired state is written first and placed later. A watch only wakes the loop, which then looks at the whole
//! state again.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;

use crawler_model::frontier::HostState;
use crawler_model::id::{ResourceId, ResourceName, Shard};
use crawler_model::node::Node;
use crawler_model::plugin::LimitName;
use crawler_model::resource::{Phase, Resource, ShardRecord};
use crawler_model::schedule::Schedule;
use crawler_model::status::{CrawlStatus, LimitUse, LogLine, WorkerStatus};

pub mod balance;
pub mod cleanup;
pub mod control;
mod error;
pub mod events;
pub mod explain;
pub mod housekeeping;
pub mod leader;
mod lists;
pub mod metrics;
mod missing_workers;
pub mod node_watch;
mod observed;
mod phase;
pub mod placement;
pub mod reconcile;
pub mod replica;
mod revocations;
mod schedules;
#[cfg(test)]
mod twin;
pub mod webhooks;

pub use error::{Code, ControlError};

/// Deadline of one call from a master to a worker.
pub const WORKER_CALL_DEADLINE: Duration = Duration::from_secs(2);

/// A resource together with its phase and its shards.
#[derive(Debug, Clone)]
pub struct ResourceView {
    /// The record, as stored.
    pub resource: Resource,
    /// Phase that follows from the records.
    pub phase: Phase,
    /// Shards with their present numbers, in order.
    pub shards: Vec<ShardView>,
}

/// A resource that has a schedule, with its stored numbers.
#[derive(Debug, Clone)]
pub struct ScheduledResource {
    /// The resource.
    pub view: ResourceView,
    /// Its schedule, as stored. If `None`, it was written by a later version, or is damaged.
    pub schedule: Option<Schedule>,
}

/// A shard and its present numbers.
#[derive(Debug, Clone)]
pub struct ShardView {
    /// Number of the shard.
    pub shard: Shard,
    /// The record, as stored; `counts` and `waits` are those that the worker reports now, if it answers.
    pub record: ShardRecord,
    /// True if `counts` are those that the worker reports now. Stored ones may be older than those that were shown before.
    pub is_live: bool,
    /// Number of pages in flight now.
    pub in_flight: u64,
    /// Number of hosts in each state now. Empty if the worker does not answer, and in lists.
    pub hosts_by_state: BTreeMap<HostState, u64>,
    /// Largest use of each limit by one call, since the worker has the shard. Empty if the worker does not answer, and in
    /// lists.
    pub limits_used: BTreeMap<LimitName, LimitUse>,
    /// The latest warnings and errors in the worker's log.
    pub last_errors: Vec<LogLine>,
}

/// A node together with what follows from the assignments.
#[derive(Debug, Clone)]
pub struct NodeView {
    /// The registration.
    pub node: Node,
    /// True if this master leads.
    pub leader: bool,
    /// Number of shards assigned to the node.
    pub load: u32,
    /// Total weight of these shards.
    pub weight: u64,
    /// Latest totals that the worker has stored.
    pub totals: Option<WorkerStatus>,
}

/// Progress of draining a worker: the shards that it still has, and the workers that may take them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrainProgress {
    /// Number of shards assigned to the worker.
    pub load: u32,
    /// Number of other workers that take shards.
    pub others: usize,
}

/// All nodes, and the records that could not be read.
#[derive(Debug, Clone)]
pub struct NodesView {
    /// Nodes, masters first.
    pub nodes: Vec<NodeView>,
    /// Broken records of nodes, contenders, totals and assignments.
    pub broken: Vec<BrokenRecord>,
}

/// A record that cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenRecord {
    /// Full key of the record.
    pub key: String,
    /// Message of the decoder.
    pub why: String,
}

/// Page of a list, in the order of names.
#[derive(Debug, Clone)]
pub struct ListPage<T> {
    /// Entries, at most as many as requested.
    pub entries: Vec<T>,
    /// Name after which the next page begins. If `None`, this is the last page.
    pub next: Option<ResourceName>,
}

/// Calls from a master to workers, as they are registered. Implemented over gRPC.
#[async_trait]
pub trait WorkerCalls: Send + Sync + 'static {
    /// Returns the numbers of all crawls of the worker, or of one resource.
    async fn status(
        &self,
        worker: &Node,
        name: Option<&ResourceName>,
    ) -> Result<Vec<CrawlStatus>, WorkerCallError>;

    /// Returns the log of one resource at the worker, by its id: the lines that are kept and, with `follow`,
    /// new ones.
    async fn logs(
        &self,
        worker: &Node,
        resource: ResourceId,
        follow: bool,
    ) -> Result<BoxStream<'static, Result<LogLine, WorkerCallError>>, WorkerCallError>;
}

/// Failure of a call to a worker.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the worker at {address} does not answer: {why}")]
pub struct WorkerCallError {
    /// Address of the worker.
    pub address: String,
    /// Fault that was observed.
    pub why: String,
}
