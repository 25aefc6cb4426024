//! The worker: watches its assignments, loads each resource's plugin, and crawls.
//!
//! ```text
//! parts           what a worker is given
//! agent           compares its assignments with its crawls, starts and stops; knows the store
//! snapshot        what is assigned at this moment
//! assigned        an assignment, and its writes in the shard's record
//! lifecycle       one assignment from start to end: what a crawl needs, and what its end means
//! archiving       which files of the data root pages are archived in
//! opening         the order in which a frontier is opened
//! end_reason      why a crawl has ended here
//! release         a shard that is to go to another, or to nobody
//! memory_wait     a crawl that uses too much memory waits until there is more
//! lease_permit    until when pages may be fetched
//! crawls          all crawls of the process, for the API
//! crawl_state     the state of one of them
//! link_transport  the other shards of a resource, wherever they are crawled
//! links           links from one worker to another: the call and its answer
//! mailbox         links that have come and wait
//! shard_owners    whether a node may bring the links of a shard
//! peers           the workers that share the turns of hosts
//! receive         what comes into the frontier, and whether there is anything to do
//! link_filter     which of these links are followed
//! sinks           the sinks of a crawl, and the items of those that its resource no longer has
//! reporting_sink  what is wrong with the sink, as others see it
//! event_ring      events of crawls that wait to be told by the leader
//! totals          what all crawls come to, in the store
//! meters          what this process has done for each resource, for metrics
//! ```
//!
//! The crawl itself is the crate [`crawler_crawl`], which knows neither store nor master.

pub mod agent;
mod archiving;
mod assigned;
mod crawl_state;
mod crawls;
mod end_reason;
mod event_ring;
pub mod lease_permit;
mod lifecycle;
mod link_filter;
mod link_transport;
pub mod links;
mod mailbox;
mod memory_wait;
mod meters;
mod opening;
mod parts;
pub mod peers;
mod receive;
mod release;
mod reporting_sink;
mod shard_owners;
mod sinks;
mod snapshot;
mod totals;

pub use crawls::{CrawlMetrics, Crawls};
pub use meters::{DEFAULT_RESOURCES, Load, ResourceRow, SinkCounts, Tally};
pub use parts::AgentParts;
pub use shard_owners::ShardOwners;
