//! End of a crawl. What it means is up to the caller of the crawl.

use crawler_frontier::FrontierError;
use crawler_model::crawl::UnixMillis;

/// End of a crawl.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CrawlEnd {
    /// End of a run: no work is left, and every item is at its sink.
    Finished,
    /// The crawl cannot go on, for this reason.
    Failed(String),
    /// Rest until this moment: there is no work before it, and every item is at its sink.
    Resting {
        /// Moment of the wall clock.
        until: UnixMillis,
    },
    /// The frontier cannot be used any more.
    Frontier(FrontierError),
    /// The process has too little memory: the crawl is to begin again once memory is free. Pages in flight
    /// stay due.
    PutBack(String),
    /// The reader of its items has gone away.
    Unread,
    /// The crawl was told to stop.
    Stopped,
}
