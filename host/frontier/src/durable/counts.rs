//! Counts of the work of all frontiers of a process, for its metrics.

use crawler_process::metrics::{Count, Durations};

/// Counts of the frontiers of a process since its start.
#[derive(Debug, Default)]
pub struct FrontierCounts {
    /// Openings of frontiers that were begun.
    pub opened: Count,
    /// Batches that were handed to a database.
    pub batches: Count,
    /// Ends of pages in these batches.
    pub pages: Count,
    /// Batches that a database did not take.
    pub failures: Count,
    /// Times from handing a batch to a database until it is durable.
    pub durable: Durations,
}
