//! Statistics of the run, and when they are written.
//!
//! They are larger than the other records of a batch, and not needed exactly after a crash, so a batch has them
//! at most once a second. If no batch comes, one is made for them: after a second, when the crawl settles with
//! nothing in flight, and on closing.

use std::time::Duration;

use tokio::time::Instant;

use crate::Commit;
use crawler_model::statistics::Statistics;

/// Shortest time between two records while pages are fetched.
const EVERY: Duration = Duration::from_secs(1);

/// Statistics of the run, and what of them is written.
#[derive(Debug, Default)]
pub(in crate::durable) struct StatisticsRecord {
    statistics: Statistics,
    /// True if the statistics have changed since they were written last.
    is_changed: bool,
    /// Time of the last record of this opening.
    written_at: Option<Instant>,
}

impl StatisticsRecord {
    /// Goes on from statistics that were stored.
    pub(in crate::durable) fn from(statistics: Statistics) -> Self {
        Self {
            statistics,
            ..Self::default()
        }
    }

    pub(in crate::durable) fn statistics(&self) -> Statistics {
        self.statistics.clone()
    }

    /// Adds an attempt at a page.
    pub(super) fn note(&mut self, commit: &Commit) {
        commit.note_in(&mut self.statistics);
        self.is_changed = true;
    }

    /// Forgets the example of a reason, because its page is tried again.
    pub(in crate::durable) fn forget_example(&mut self, reason: &str) {
        self.is_changed |= self.statistics.forget_example(reason);
    }

    /// Returns the time until the next batch has the record. While nothing has changed, this is the longest time
    /// that may pass before it is asked again.
    pub(in crate::durable) fn due_in(&self) -> Duration {
        match self.written_at {
            _ if !self.is_changed => EVERY,
            Some(written_at) => EVERY.saturating_sub(written_at.elapsed()),
            None => Duration::ZERO,
        }
    }

    /// True if the next batch has the record.
    pub(in crate::durable) fn is_due(&self) -> bool {
        self.due_in().is_zero()
    }

    /// Returns the record for the next batch, if it is time for it.
    pub(super) fn take_due(&mut self) -> Option<Vec<u8>> {
        if !self.is_due() {
            return None;
        }
        self.is_changed = false;
        self.written_at = Some(Instant::now());
        let record = serde_json::to_vec(&self.statistics);
        record
            .inspect_err(|error| tracing::error!(%error, "statistics are not written"))
            .ok()
    }

    /// Makes the next batch have the record.
    pub(in crate::durable) fn write_next(&mut self) {
        self.written_at = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ended;
    use crate::suite::{commit_of, new};
    use crawler_model::crawl::Done;

    fn page() -> Commit {
        let request = new("http://a.test/").request;
        let claim = crate::Claim {
            fingerprint: request.fingerprint(),
            request,
            depth: 0,
            attempt: 1,
            visit: 0,
            entry: 1,
            alone: false,
            validators: None,
            host: crate::HostStanding::default(),
        };
        commit_of(Box::new(claim), Ended::Done(Done::Gone))
    }

    #[tokio::test(start_paused = true)]
    async fn statistics_are_written_once_a_second_and_at_once_if_asked() {
        let mut record = StatisticsRecord::default();
        assert_eq!((record.take_due(), record.due_in()), (None, EVERY));
        record.note(&page());
        assert!(record.take_due().is_some());
        assert_eq!(record.take_due(), None);
        record.note(&page());
        assert_eq!((record.take_due(), record.due_in()), (None, EVERY));
        tokio::time::advance(EVERY).await;
        assert!(record.is_due() && record.take_due().is_some());
        record.note(&page());
        record.write_next();
        assert!(record.take_due().is_some());
    }
}
