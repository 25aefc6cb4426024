//! Failures of frontiers.

use crawler_model::id::Shard;
use crawler_model::resource::{FRONTIER_MISSING, ShardId};
use crawler_model::settings::SinkName;

/// Failure of a frontier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrontierError {
    /// The claim is not in flight: it was committed or given back already.
    #[error("{url} is not in flight")]
    NotInFlight {
        /// URL of the claim.
        url: String,
    },
    /// Links of another shard are missing.
    #[error("links from shard {from} go on at {first}, and {expected} is next")]
    LinkGap {
        /// Shard that sent the links.
        from: Shard,
        /// Number of the first link that was given.
        first: u64,
        /// Number that follows the last stored link.
        expected: u64,
    },
    /// The root requests have not been stored here yet; they come before links of other shards.
    #[error("the frontier {shard} has no root requests yet")]
    Unseeded {
        /// Shard of the frontier.
        shard: ShardId,
    },
    /// The frontier was opened for other sinks.
    #[error("the frontier was opened without sink {sink}")]
    NoSink {
        /// The sink that was asked for.
        sink: SinkName,
    },
    /// A frontier that existed is gone.
    #[error(
        "the frontier {shard} was there and is gone from the data root; restore it from a copy, or crawl anew with `crawler resource restart`"
    )]
    Missing {
        /// Shard of the frontier.
        shard: ShardId,
    },
    /// The stored data is not what was written.
    #[error(
        "the frontier {shard} is damaged: {why}; restore it from a copy, or delete the resource and add it again"
    )]
    Damaged {
        /// Shard of the frontier.
        shard: ShardId,
        /// Description of the damage.
        why: String,
    },
    /// The frontier was written by another version.
    #[error(
        "the frontier {shard} has format {found} and this version knows {known}; use the version that wrote it, or delete the resource and add it again"
    )]
    Format {
        /// Shard of the frontier.
        shard: ShardId,
        /// Format of the frontier.
        found: u32,
        /// Format that this version knows.
        known: u32,
    },
    /// The frontier belongs to another shard or cluster.
    #[error(
        "the frontier {shard} in the data root belongs to {found}, not to {expected}; was the folder copied?"
    )]
    Foreign {
        /// Shard whose frontier was expected.
        shard: ShardId,
        /// Owner found in the data root.
        found: String,
        /// Owner that was expected.
        expected: String,
    },
    /// Another process has opened the frontier; nothing more can be written here.
    #[error("another process has opened the frontier {shard}")]
    Fenced {
        /// Shard of the frontier.
        shard: ShardId,
    },
    /// The object store does not answer, or refuses.
    #[error("cannot {doing} the frontier {shard}: {why}")]
    Unavailable {
        /// Verb that completes the message: "open", "write", "read".
        doing: &'static str,
        /// Shard of the frontier.
        shard: ShardId,
        /// Description of the cause.
        why: String,
    },
    /// The frontier was closed by this process.
    #[error("the frontier {shard} is closed")]
    Closed {
        /// Shard of the frontier.
        shard: ShardId,
    },
}

impl FrontierError {
    /// Returns the name of the condition of a resource that has this error.
    pub fn condition(&self) -> &'static str {
        match self {
            FrontierError::Missing { .. } => FRONTIER_MISSING,
            FrontierError::Damaged { .. } => "FrontierDamaged",
            FrontierError::Format { .. } => "FrontierFormat",
            FrontierError::Foreign { .. } => "FrontierForeign",
            FrontierError::Fenced { .. } => "FrontierFenced",
            FrontierError::Unavailable { .. } => "StorageUnavailable",
            FrontierError::NotInFlight { .. }
            | FrontierError::LinkGap { .. }
            | FrontierError::Unseeded { .. }
            | FrontierError::NoSink { .. }
            | FrontierError::Closed { .. } => "FrontierClosed",
        }
    }
}
