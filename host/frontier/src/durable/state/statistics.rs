//! Statistics of the run and lines of the log, and when they are written.
//!
//! They are larger than the other records of a batch, and not needed exactly after a crash, so a batch has them
//! at most once a second. If no batch comes, one is made for them: after a second, when the crawl settles with
//! nothing in flight, and on closing. A line that came and went within that second is never written.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use prost::Message as _;
use slatedb::WriteBatch;
use tokio::time::Instant;

use crate::log::Lines;
use crate::{Commit, keys, records};
use crawler_model::id::Run;
use crawler_model::statistics::Statistics;
use crawler_model::status::LogLine;

/// Shortest time between two records while pages are fetched.
const EVERY: Duration = Duration::from_secs(1);

/// Statistics of the run and changes of the log, and what of them is written.
#[derive(Debug, Default)]
pub(in crate::durable) struct StatisticsRecord {
    statistics: Statistics,
    /// True if the statistics have changed since they were written last.
    is_changed: bool,
    /// Lines that are not written as they are now, by their numbers. `None` if the line was removed.
    lines: BTreeMap<u64, Option<Arc<LogLine>>>,
    /// Number from which on no line is in the database. `None` before the first lines of this opening are written.
    unwritten_from: Option<u64>,
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

    /// Returns the attempts that ended a page, by the status of the answer.
    pub(in crate::durable) fn statuses(&self) -> BTreeMap<u16, u64> {
        self.statistics.statuses.clone()
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

    pub(in crate::durable) fn store_line(&mut self, line: Arc<LogLine>) {
        self.lines.insert(line.number, Some(line));
    }

    pub(in crate::durable) fn remove_line(&mut self, number: u64) {
        match self.unwritten_from {
            Some(unwritten) if number >= unwritten => self.lines.remove(&number),
            Some(_) | None => self.lines.insert(number, None),
        };
    }

    /// Applies the changes to the lines of the database.
    pub(in crate::durable) fn overlay(&self, lines: &mut Lines) {
        for (number, change) in &self.lines {
            match change {
                Some(line) => lines.insert(*number, line.clone()),
                None => lines.remove(number),
            };
        }
    }

    /// Returns the time until the next batch has the records. While nothing has changed, this is the longest time
    /// that may pass before it is asked again.
    pub(in crate::durable) fn due_in(&self) -> Duration {
        match self.written_at {
            _ if !self.is_changed && self.lines.is_empty() => EVERY,
            Some(written_at) => EVERY.saturating_sub(written_at.elapsed()),
            None => Duration::ZERO,
        }
    }

    /// True if the next batch has the records.
    pub(in crate::durable) fn is_due(&self) -> bool {
        self.due_in().is_zero()
    }

    /// Adds the records to the next batch, if it is time for them. Returns true if it is.
    pub(super) fn write_due(&mut self, run: Run, batch: &mut WriteBatch) -> bool {
        if !self.is_due() {
            return false;
        }
        self.written_at = Some(Instant::now());
        if std::mem::take(&mut self.is_changed) {
            match serde_json::to_vec(&self.statistics) {
                Ok(record) => batch.put(keys::statistics(run), record),
                Err(error) => tracing::error!(%error, "statistics are not written"),
            }
        }
        if let Some((last, _)) = self.lines.last_key_value() {
            let unwritten = self.unwritten_from.unwrap_or(0);
            self.unwritten_from = Some(unwritten.max(last.saturating_add(1)));
        }
        for (number, change) in std::mem::take(&mut self.lines) {
            match change {
                Some(line) => {
                    let record = records::Line::from(&*line);
                    batch.put(keys::line(number), record.encode_to_vec());
                }
                None => batch.delete(keys::line(number)),
            }
        }
        true
    }

    /// Makes the next batch have the records.
    pub(in crate::durable) fn write_next(&mut self) {
        self.written_at = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ended;
    use crate::suite::{commit_of, line, new};
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
        let write =
            |record: &mut StatisticsRecord| record.write_due(Run(1), &mut WriteBatch::new());
        assert_eq!((write(&mut record), record.due_in()), (false, EVERY));
        record.note(&page());
        assert!(write(&mut record));
        assert!(!write(&mut record));
        record.note(&page());
        assert_eq!((write(&mut record), record.due_in()), (false, EVERY));
        tokio::time::advance(EVERY).await;
        assert!(record.is_due() && write(&mut record));
        record.note(&page());
        record.write_next();
        assert!(write(&mut record));
    }

    #[test]
    fn a_line_that_comes_and_goes_between_two_records_is_not_written() {
        let mut record = StatisticsRecord::default();
        // It may be in the database.
        record.remove_line(1);
        record.store_line(line(2, "first"));
        assert!(record.write_due(Run(1), &mut WriteBatch::new()));
        record.store_line(line(3, "second"));
        record.remove_line(2);
        record.remove_line(3);
        assert_eq!(record.lines, [(2, None)].into());
    }
}
