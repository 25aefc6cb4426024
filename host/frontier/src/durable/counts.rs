//! Counts of the work of all frontiers of a process, for its metrics.

use crate::FrontierError;
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
    /// Batches that a database did not take because it could not be written.
    pub failures: Count,
    /// Batches that a database did not take because it was closed, or has another owner.
    pub closed: Count,
    /// Times from handing a batch to a database until it is durable.
    pub durable: Durations,
}

impl FrontierCounts {
    /// Counts a batch that a database did not take. One that was closed, or has another owner, is no fault of the storage:
    /// a shard that goes to another worker may end so.
    pub(super) fn not_taken(&self, error: &FrontierError) {
        match error {
            FrontierError::Fenced { .. } | FrontierError::Closed { .. } => self.closed.add(1),
            _ => self.failures.add(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::id::ResourceId;
    use crawler_model::resource::ShardId;

    #[test]
    fn a_batch_of_an_owner_before_is_no_failure() {
        let counts = FrontierCounts::default();
        let shard = ShardId::only(ResourceId(7));
        counts.not_taken(&FrontierError::Fenced { shard });
        counts.not_taken(&FrontierError::Closed { shard });
        assert_eq!((counts.failures.read(), counts.closed.read()), (0, 2));
        counts.not_taken(&FrontierError::Unavailable {
            doing: "write",
            shard,
            why: "the disk is full".to_owned(),
        });
        assert_eq!((counts.failures.read(), counts.closed.read()), (1, 2));
    }
}
