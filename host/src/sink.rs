//! Sinks: where items go.
//!
//! A sink gets only what the frontier has stored, in order, and gets it again after a crash between
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

/// One destination of one shard's items. One task writes to it.
#[async_trait]
pub trait Sink: Send {
    /// Writes the items; they are durable at the destination when this returns. What it answers is
    /// kept in the batch that empties the outbox of them.
    async fn write(&mut self, items: &[ItemRecord]) -> Result<Option<SinkMark>, SinkError>;
}

/// Where the items of each shard go, for those who become its owners.
pub trait OpenSinks: Send + Sync + 'static {
    /// The sink of a shard in one life of its frontier: no two lives have one writer epoch.
    fn open(&self, shard: ShardId, storage_epoch: u64) -> Box<dyn Sink>;
}

/// Why items could not be written. The caller keeps them and tries again.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// The file system said no.
    #[error("cannot {doing} {path}")]
    Io {
        /// A verb: "write", "sync".
        doing: &'static str,
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The reader of a pipe went away.
    #[error("the reader of the items has closed its end")]
    Closed,
}

/// Ends the JSON value that was written from `start` on as one line: between the tokens of a value,
/// a line break is only space, and inside a string JSON has none.
fn end_line(lines: &mut Vec<u8>, start: usize) {
    for byte in &mut lines[start..] {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    lines.push(b'\n');
}
