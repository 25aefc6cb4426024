//! What a running crawl tells of itself: its numbers and its log.

use super::crawl::{Counts, UnixMillis};
use super::id::{Epoch, ResourceId, ResourceName, Run, Shard};
use super::resource::Waits;

/// One line of a resource's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// When.
    pub at: UnixMillis,
    /// `debug`, `info`, `warn`, `error`.
    pub level: &'static str,
    /// Where it happened; empty if nowhere in particular.
    pub url: String,
    /// The rule concerned; empty if none.
    pub rule: String,
    /// What happened.
    pub message: String,
}

/// The numbers of one crawl at this moment.
#[derive(Debug, Clone)]
pub struct CrawlStatus {
    /// The resource.
    pub name: ResourceName,
    /// Its present life.
    pub id: ResourceId,
    /// Its part.
    pub shard: Shard,
    /// Of the assignment it runs under.
    pub epoch: Epoch,
    /// The present pass.
    pub run: Run,
    /// Totals of the run.
    pub counts: Counts,
    /// Pages in flight.
    pub in_flight: u64,
    /// It cannot go on at present.
    pub waits: Option<Waits>,
}
