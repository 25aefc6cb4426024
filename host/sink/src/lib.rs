//! Sinks: the destinations of items.
//!
//! A sink gets only items that the frontier has stored, in order. It gets them again after a crash between
//! its own write and the frontier's note of it; item keys make that harmless.
//!
//! Workers and masters know the traits of this crate and of [`items`] only. Which kinds of sinks a process
//! has is decided in `app`. Present sinks: [`lines`] (JSON lines in a data root that is a folder), [`parts`] (the same
//! lines in one that is a bucket), and for the user of `crawler run` [`stream`] (a pipe or file) and [`document`] (a
//! table or an array in a file). What an operator declares is a [`CheckSink`], such as
//! [`ExportedLines`](lines::ExportedLines), behind a [`selection`] of items and fields, and a [`feed`] of items or of their
//! changes. Sinks of other crates share [`settings`], [`digest`] and [`fields`], too.

use std::error::Error;
use std::time::Duration;

use async_trait::async_trait;

use crawler_model::crawl::ItemRecord;
use crawler_model::frontier::SinkMark;
use crawler_model::id::Run;
use crawler_model::plugin::Schema;
use crawler_model::resource::{ResourceSpec, ShardId};
use crawler_model::settings::SinkName;

pub mod digest;
pub mod document;
pub mod feed;
pub mod fields;
pub mod items;
pub mod lazy;
pub mod lines;
pub mod parts;
mod picked;
pub mod selection;
pub mod settings;
pub mod shared;
pub mod stream;
pub mod template;

/// Destination of one shard's items. One task writes to it. Whether the items that were told as removed are among them is
/// decided by the [`feed`] in front of it.
#[async_trait]
pub trait Sink: Send {
    /// Writes items, the first of which has the number `first` in the outbox. Those that the result counts are durable
    /// at the destination when this returns; there is at least one, unless none were given, or a mark has to be durable
    /// before the items are written. After such a mark the same items come again, and more of them if
    /// [`gathering`](Self::gathering) asks for more now. A write without items, at the end of a crawl that had none, makes
    /// an empty output.
    async fn write(&mut self, first: u64, items: &[ItemRecord]) -> Result<Written, SinkError>;

    /// Returns true if a write may be given up at any moment: it leaves no part of its items behind, or the next opening
    /// of the sink removes that part.
    fn is_cancel_safe(&self) -> bool {
        false
    }

    /// Returns the bounds within which items gather for one write. By default they do not gather.
    fn gathering(&self) -> Gathering {
        Gathering::default()
    }
}

/// Result of a write.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// Number of items, from the first given one on, that the destination has. It may be smaller than the number of
    /// given items. If it is larger, an earlier owner has written more, and the caller repeats the write with at least
    /// this many items, so that the sink can compare them.
    pub n_items: u64,
    /// Number of these items that the destination has among the rejected ones, since they do not fit where items go.
    pub n_rejected: u64,
    /// Mark that is kept in the batch that removes these items from the outbox.
    pub mark: Option<SinkMark>,
}

impl Written {
    /// Returns the result of a write that took all items.
    pub fn all(items: &[ItemRecord], mark: Option<SinkMark>) -> Self {
        Self {
            n_items: items.len() as u64,
            n_rejected: 0,
            mark,
        }
    }
}

/// Bounds of the items that gather for one write, which begins as soon as one of them is reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gathering {
    /// Number of items at which the write begins.
    pub max_items: usize,
    /// Size in bytes of the items at which the write begins.
    pub n_bytes: u64,
    /// Time after which the write begins in any case. If it is zero, items do not gather.
    pub max_wait: Duration,
}

/// Opens the sinks of shards for their owners.
#[async_trait]
pub trait OpenSinks: Send + Sync + 'static {
    /// Opens the sink of a shard, as its resource wants it. An error counts as one of a write, which is tried
    /// again. A sink is dropped when the delivery ends; there is no call that closes it.
    async fn open(&self, delivery: &Delivery) -> Result<Box<dyn Sink>, SinkError>;

    /// Returns warnings about a delivery that works, but perhaps not as somebody means it. The log of the crawl is told
    /// them at each opening of its frontier.
    fn warnings(&self, _delivery: &Delivery) -> Vec<String> {
        Vec::new()
    }
}

/// Sinks that an operator declares, and can have checked before any resource uses them. Opening one of them, and its
/// first write, may be given up at any moment: see [`Sink::is_cancel_safe`].
#[async_trait]
pub trait CheckSink: OpenSinks {
    /// Reaches the destination, and tries whether items may be written. It leaves nothing behind.
    async fn check(&self) -> Result<SinkCheck, SinkError>;
}

/// Result of a check that has found no fault.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SinkCheck {
    /// Descriptions of what a delivery would create.
    pub would_create: Vec<String>,
}

/// Delivery of one shard's items to one sink, in one life of the shard's frontier.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// Name of the sink.
    pub sink: SinkName,
    /// Id of the shard; it contains the id of the resource.
    pub shard: ShardId,
    /// Id of the cluster. Ids of shards and runs begin anew in another one.
    pub cluster: String,
    /// Run of the crawl. Items of an earlier run may still wait.
    pub run: Run,
    /// Storage epoch of the frontier: it grows with each life of it, and no two lives have the same.
    pub storage_epoch: u64,
    /// Specification of the resource, with its name.
    pub spec: ResourceSpec,
    /// Schemas of the items, by kind, as the plugin of the run declares them. Items of an earlier version may still wait.
    pub schemas: Vec<Schema>,
    /// JSON schema of all other kinds, if they have one: records of changes are alike, whatever kind has changed.
    pub other_kinds: Option<String>,
    /// Marks that this sink has left in earlier lives of the frontier. Those of the sink in the data root are not among
    /// them: masters read them.
    pub marks: Vec<SinkMark>,
}

/// Reason why a sink did not do its work; its message and source are the sink's own. The caller of a write
/// keeps the items.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// Another try may succeed, perhaps only after somebody has acted.
    #[error("{message}")]
    Retry {
        /// Description of what failed, and where.
        message: String,
        /// Cause, if another error is it.
        #[source]
        source: Option<BoxError>,
    },
    /// Another try would fail in the same way.
    #[error("{message}")]
    Permanent {
        /// Description of what failed, and where.
        message: String,
        /// Cause, if another error is it.
        #[source]
        source: Option<BoxError>,
    },
    /// The reader of a pipe has closed it.
    #[error("the reader of the items has closed its end")]
    Closed,
}

/// Error of a backend.
type BoxError = Box<dyn Error + Send + Sync>;

impl SinkError {
    /// Returns the error of an operation on a file, such as "write". Another try may succeed.
    pub fn of_file(doing: &str, path: impl std::fmt::Display, source: std::io::Error) -> Self {
        Self::Retry {
            message: format!("cannot {doing} {path}"),
            source: Some(source.into()),
        }
    }
}

/// Adds an item with its envelope, as one line of JSON.
///
/// # Errors
///
/// The item cannot be encoded.
pub fn push_line(lines: &mut Vec<u8>, record: &ItemRecord) -> Result<(), SinkError> {
    let start = lines.len();
    serde_json::to_writer(&mut *lines, record)
        .map_err(|e| SinkError::of_file("encode", &record.url, e.into()))?;
    end_line(lines, start);
    Ok(())
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
