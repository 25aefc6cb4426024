//! Sinks: the destinations of items.
//!
//! A sink gets only items that the frontier has stored, in order. It gets them again after a crash between
//! its own write and the frontier's note of it; item keys make that harmless.
//!
//! Present sinks: [`lines`] (JSON lines in the data root) and [`stream`] (a pipe or file given by
//! the user of `crawler run`).

use async_trait::async_trait;

use crate::model::crawl::ItemRecord;
use crate::model::frontier::SinkMark;
use crate::model::resource::ShardId;

pub mod lines;
pub mod shared;
pub mod stream;

/// Destination of one shard's items. One task writes to it.
#[async_trait]
pub trait Sink: Send {
    /// Writes the items; they are durable at the destination when this returns. The returned mark is kept in
    /// the batch that removes them from the outbox.
    async fn write(&mut self, items: &[ItemRecord]) -> Result<Option<SinkMark>, SinkError>;
}

/// Opens the sinks of shards for their owners.
pub trait OpenSinks: Send + Sync + 'static {
    /// Returns the sink of a shard in one life of its frontier: no two lives have one writer epoch.
    fn open(&self, shard: ShardId, storage_epoch: u64) -> Box<dyn Sink>;
}

/// Reason why items could not be written. The caller keeps them and tries again.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// The file system returned an error.
    #[error("cannot {doing} {path}")]
    Io {
        /// Operation: "write" or "sync".
        doing: &'static str,
        /// Path of the file.
        path: String,
        /// Error of the system.
        #[source]
        source: std::io::Error,
    },
    /// The reader of a pipe has closed it.
    #[error("the reader of the items has closed its end")]
    Closed,
}

/// Ends the JSON value that was written from `start` on, as one line. Line breaks are removed: between the
/// tokens of a value a line break is only white space, and inside a string JSON has none.
fn end_line(lines: &mut Vec<u8>, start: usize) {
    for byte in &mut lines[start..] {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    lines.push(b'\n');
}
