//! What a running crawl tells of itself: its numbers and its log; and the totals of a worker.

use serde::{Deserialize, Serialize};

use super::crawl::{Counts, UnixMillis};
use super::id::{Epoch, Incarnation, ResourceId, ResourceName, Run, Shard};
use super::resource::Waits;

/// One line of a resource's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
    /// Totals of the run; none where it has not been looked up yet what an earlier owner has left.
    pub counts: Option<Counts>,
    /// Pages in flight.
    pub in_flight: u64,
    /// It cannot go on at present.
    pub waits: Option<Waits>,
    /// What its log has told last of what went wrong, the latest last. Only where one resource was
    /// asked for.
    pub last_errors: Vec<LogLine>,
}

/// The totals of a worker, under `status/<worker>`. It is under the worker's lease and goes with it;
/// numbers of this moment are asked of the worker itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerStatus {
    /// Of the process that wrote it.
    pub incarnation: Incarnation,
    /// When.
    pub at: UnixMillis,
    /// Crawls that go on.
    pub running: u64,
    /// Crawls that cannot go on at present.
    pub waiting: u64,
    /// Pages that came to an end, in the present runs of those crawls.
    pub pages: u64,
    /// Items stored, in the same.
    pub items: u64,
    /// Bytes of bodies, in the same.
    pub bytes: u64,
    /// Pages in flight.
    pub in_flight: u64,
}

impl WorkerStatus {
    /// The totals of these crawls.
    pub fn of(incarnation: Incarnation, at: UnixMillis, crawls: &[CrawlStatus]) -> Self {
        let waiting = crawls.iter().filter(|crawl| crawl.waits.is_some()).count() as u64;
        let sum = |number: fn(&CrawlStatus) -> u64| crawls.iter().map(number).sum();
        let counts = || crawls.iter().filter_map(|crawl| crawl.counts.as_ref());
        Self {
            incarnation,
            at,
            running: crawls.len() as u64 - waiting,
            waiting,
            pages: counts().map(Counts::pages).sum(),
            items: counts().map(|counts| counts.items).sum(),
            bytes: counts().map(|counts| counts.bytes).sum(),
            in_flight: sum(|crawl| crawl.in_flight),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_totals_of_a_worker_are_small_whatever_they_are() {
        let status = WorkerStatus {
            incarnation: Incarnation(u64::MAX),
            at: u64::MAX,
            running: u64::MAX,
            waiting: u64::MAX,
            pages: u64::MAX,
            items: u64::MAX,
            bytes: u64::MAX,
            in_flight: u64::MAX,
        };
        let json = serde_json::to_vec(&status).unwrap();
        assert!(json.len() <= 1 << 10, "{} bytes", json.len());
    }
}
