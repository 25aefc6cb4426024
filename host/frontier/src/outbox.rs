//! Items on their way out of a frontier, to their sink.

use async_trait::async_trait;

use crate::error::FrontierError;
use crawler_model::crawl::ItemRecord;
use crawler_model::frontier::SinkMark;

/// Items that are committed and that the sink does not have yet.
#[async_trait]
pub trait ItemOutbox: Send + Sync + 'static {
    /// Returns at most `max` of the oldest durable items of the outbox; they stay there.
    async fn outbox(&self, max: usize) -> Result<OutboxBatch, FrontierError>;

    /// Removes all items before `end`, because the sink has them, and stores in the same batch the sink's
    /// mark.
    async fn clear_outbox(&self, end: u64, mark: Option<SinkMark>) -> Result<(), FrontierError>;

    /// Returns the size in bytes of the items that wait for their sink.
    fn undelivered_bytes(&self) -> u64;

    /// Returns the number of items that wait for their sink.
    fn n_undelivered(&self) -> u64;

    /// Waits until [`outbox`](Self::outbox) may return more, because a batch has become durable. For one task
    /// at a time.
    async fn outbox_changed(&self);
}

/// Items in the order in which they were committed.
#[derive(Debug, Clone, Default)]
pub struct OutboxBatch {
    /// Number after the last item, to be passed to [`ItemOutbox::clear_outbox`].
    pub end: u64,
    /// Items, at most as many as were asked for.
    pub items: Vec<ItemRecord>,
}

impl OutboxBatch {
    /// Returns the number of the first item.
    pub fn first(&self) -> u64 {
        self.end - self.items.len() as u64
    }
}
