//! Items on their way out of a frontier, to their sinks.
//!
//! All sinks of a resource get all items, each at its own pace. The position of a sink is the number of the first item
//! that it does not have. An item leaves the outbox when every sink has it.
//!
//! If items are compared from run to run, each has its change, and behind those of a complete run come the items that the
//! run has told as removed. A sink that does not want these counts them as delivered.

use async_trait::async_trait;

use crate::error::FrontierError;
use crawler_model::crawl::ItemRecord;
use crawler_model::frontier::SinkMark;
use crawler_model::settings::{SinkName, SinkNames};

/// Size in bytes of the items that a frontier on disk keeps in memory, for sinks that keep up. Beyond them, a sink that lags
/// behind costs a read of the storage for each batch.
pub const OUTBOX_WINDOW: u64 = 8 << 20;

/// Items that are committed and that not all sinks have yet. The sinks are those that the frontier was opened for; a
/// call for any other fails with [`FrontierError::NoSink`].
#[async_trait]
pub trait ItemOutbox: Send + Sync + 'static {
    /// Returns at most `max` of the oldest durable items that this sink does not have; they stay there.
    async fn outbox(&self, sink: &SinkName, max: usize) -> Result<OutboxBatch, FrontierError>;

    /// Moves the position of this sink behind all items before `end`, because it has them, and stores in the same batch
    /// the sink's mark. Items that all sinks have are removed.
    async fn clear_outbox(
        &self,
        sink: &SinkName,
        end: u64,
        mark: Option<SinkMark>,
    ) -> Result<(), FrontierError>;

    /// Returns the marks that this sink has left, in this and in earlier openings.
    async fn marks(&self, sink: &SinkName) -> Result<Vec<SinkMark>, FrontierError>;

    /// Returns the items that wait for this sink; none if the frontier was not opened for it.
    fn undelivered(&self, sink: &SinkName) -> Undelivered;

    /// Returns the size in bytes of the items that wait for any sink.
    fn undelivered_bytes(&self) -> u64;

    /// Returns the number of items that wait for any sink.
    fn n_undelivered(&self) -> u64;

    /// Returns the sinks that the frontier was opened for. The settings of the crawl may name others already.
    fn sinks(&self) -> SinkNames;

    /// Returns true if so many items wait that no page is taken, whatever the settings of the crawl allow.
    fn is_outbox_full(&self) -> bool;

    /// Waits until [`outbox`](Self::outbox) may return more, because a batch has become durable. For one task
    /// at a time.
    async fn outbox_changed(&self);
}

/// Items that wait for a sink.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Undelivered {
    /// Number of the items.
    pub n_items: u64,
    /// Their size in bytes.
    pub n_bytes: u64,
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
