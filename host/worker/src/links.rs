//! Links that one worker gives to another: the call, its answer and its transport.

use std::time::Duration;

use async_trait::async_trait;

pub use crawler_crawl::peers::{MAX_CALL_BYTES, MAX_LINKS};
use crawler_frontier::LinkBatch;
use crawler_model::id::{Epoch, Run, Shard};
use crawler_model::node::Node;
use crawler_model::resource::ShardId;

/// Time that links may take to become durable before the sender sends them again.
pub const LINK_DELIVERY_DEADLINE: Duration = Duration::from_secs(10);

/// Links of one shard for another, sent by its owner to the other's owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkDelivery {
    /// Shard that is to store them.
    pub to: ShardId,
    /// Epoch of the assignment that they are given to.
    pub epoch: Epoch,
    /// Run that they belong to.
    pub run: Run,
    /// Shard that sends them.
    pub from: Shard,
    /// Links in order.
    pub batch: LinkBatch,
}

/// Reason why links were not taken. Links that are stored all the same are skipped when they come again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkDeliveryError {
    /// No worker would ever take them.
    #[error("{0}")]
    Refused(String),
    /// The links cannot be taken here, or not now.
    #[error("{0}")]
    NotNow(String),
    /// The node that brings the links does not own the shard that sends them. It may get it.
    #[error("{0}")]
    NotOwner(String),
}

/// Transport that gives links to another worker.
#[async_trait]
pub trait SendLinks: Send + Sync + 'static {
    /// Sends links and returns the number of the last link that is durable there.
    async fn send(&self, worker: &Node, links: LinkDelivery) -> Result<u64, LinkDeliveryError>;
}
