//! Items at their sink: read while a crawl goes on, and kept or deleted when its resource is.
//!
//! A store of items that was taken away may look empty. The caller checks that the data root is there.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use super::{Sink, SinkError};
use crawler_model::crawl::ItemRecord;
use crawler_model::frontier::SinkMark;
use crawler_model::id::{ResourceId, Run, Shard};
use crawler_model::resource::ShardId;

/// Extents of all shards of a resource.
pub type Extents = BTreeMap<Shard, Extent>;

/// Part of a shard's items that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Extent {
    /// Items that these marks cover, which the frontier keeps.
    Marks(Vec<SinkMark>),
    /// All items. The frontier is gone, and the items were settled before it went.
    Whole,
}

/// Result of one read.
#[derive(Debug, Default)]
pub struct ItemBatch {
    /// Items with their shards, in order within a shard. There may be none although there is more to read.
    pub items: Vec<(Shard, ItemRecord)>,
    /// True if everything that counts at present has been read.
    pub is_end: bool,
}

/// Reader of the items of one run of a resource, in all shards, from the first on.
#[async_trait]
pub trait ReadItems: Send {
    /// Returns at most `max` items that count by now and were not read yet. It resumes where it was, also
    /// across other owners, as long as each call gets extents that are no older than those of the call
    /// before. Cancelling it loses nothing.
    async fn read(&mut self, extents: &Arc<Extents>, max: usize) -> Result<ItemBatch, SinkError>;
}

/// Items of all resources, as the sinks of their shards have left them. Repeating a call is harmless, and a
/// resource without items is no error.
#[async_trait]
pub trait ItemStore: Send + Sync + 'static {
    /// Returns true if all items that are there count, so that no frontier has to be asked for its marks.
    fn is_whole(&self) -> bool {
        false
    }

    /// Returns a reader of the items of this run.
    fn reader(&self, resource: ResourceId, run: Run) -> Box<dyn ReadItems>;

    /// Returns the shards that have items, in order.
    async fn shards(&self, resource: ResourceId) -> Result<Vec<Shard>, SinkError>;

    /// Returns the latest run with an item that counts.
    async fn newest_run(
        &self,
        resource: ResourceId,
        extents: &Arc<Extents>,
    ) -> Result<Option<Run>, SinkError>;

    /// Removes the items of a shard that its marks do not cover: the rest counts as a whole. No owner of the
    /// frontier may deliver any more.
    async fn settle(&self, shard: ShardId, marks: Vec<SinkMark>) -> Result<(), SinkError>;

    /// Returns a sink for the items that a shard's frontier holds and its sink does not have. Each try to
    /// deliver them has its own number and disturbs no other. Readers see its items once it is published, or at once if
    /// no try can write an item that another one has written.
    fn open_rest(&self, shard: ShardId, by: u64) -> Box<dyn Sink>;

    /// Shows readers the items that this try has delivered, of all shards, and removes those of other tries.
    async fn publish_rest(&self, resource: ResourceId, by: u64) -> Result<(), SinkError>;

    /// Deletes all items of a resource.
    async fn delete(&self, resource: ResourceId) -> Result<(), SinkError>;
}
