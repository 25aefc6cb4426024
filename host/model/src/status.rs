//! Status of a running crawl (its numbers and its log) and the totals of a worker.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::crawl::{Counts, UnixMillis};
use super::event::FoldedEvent;
use super::frontier::HostState;
use super::id::{Epoch, Incarnation, ResourceId, ResourceName, Run, Shard};
use super::plugin::LimitName;
use super::resource::Waits;

/// One line of a resource's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogLine {
    /// Time of the event.
    pub at: UnixMillis,
    /// Level: `debug`, `info`, `warn` or `error`.
    pub level: &'static str,
    /// URL concerned; empty if none.
    pub url: String,
    /// The rule concerned; empty if none.
    pub rule: String,
    /// Description of the event.
    pub message: String,
    /// Run of the crawl that logged the line.
    pub run: Run,
    /// Shard of that crawl.
    pub shard: Shard,
    /// Number of the line in the log of its shard. Numbers grow with time and have gaps.
    pub number: u64,
    /// Number of further pages about which the same was logged. They have no lines of their own.
    pub more: u64,
}

impl LogLine {
    /// Returns the level of this name. An unknown name, of a later version, is `info`.
    pub fn level(name: &str) -> &'static str {
        match name {
            "debug" => "debug",
            "warn" => "warn",
            "error" => "error",
            _ => "info",
        }
    }

    /// Returns true if the line is a warning or an error.
    pub fn is_wrong(&self) -> bool {
        matches!(self.level, "warn" | "error")
    }
}

/// The numbers of one crawl at this moment.
#[derive(Debug, Clone)]
pub struct CrawlStatus {
    /// Name of the resource.
    pub name: ResourceName,
    /// Id of the resource.
    pub id: ResourceId,
    /// Number of the shard.
    pub shard: Shard,
    /// Epoch of the assignment that the crawl runs under.
    pub epoch: Epoch,
    /// The present run.
    pub run: Run,
    /// Totals of the run. If `None`, the totals that an earlier owner left have not been read yet.
    pub counts: Option<Counts>,
    /// Pages in flight.
    pub in_flight: u64,
    /// Its hosts. `None` while its frontier is not open, and unless one resource was asked for.
    pub hosts: Option<PresentHosts>,
    /// Largest use of each limit by one call of a rule, since the crawl was assigned to its worker. Empty unless one
    /// resource was asked for.
    pub limits_used: BTreeMap<LimitName, LimitUse>,
    /// Reason why the crawl cannot go on at present.
    pub waits: Option<Waits>,
    /// The latest warnings and errors of its log, the latest last. Present only if one resource was
    /// asked for.
    pub last_errors: Vec<LogLine>,
}

/// Largest use of a limit by one call of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LimitUse {
    /// The use, in the base unit of the limit.
    pub used: u64,
    /// The limit that holds for calls now.
    pub limit: u64,
}

/// Hosts of one crawl at this moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PresentHosts {
    /// Number of hosts in each state, of all that have, or had, a URL in the run.
    pub by_state: BTreeMap<HostState, u64>,
    /// Number of pages in flight of each host that has any, by the [hash](crate::links::host_hash) of the host.
    pub in_flight: BTreeMap<u64, u64>,
}

/// Pages and items of a process since its start. They only grow, whatever becomes of the crawls that they are from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProcessTotals {
    /// Pages that came to an end.
    pub pages: u64,
    /// Items stored.
    pub items: u64,
}

/// Totals of a worker, stored under `status/<worker>`. The key is bound to the worker's lease and
/// disappears with it. Current numbers are read from the worker itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerStatus {
    /// Incarnation of the process that wrote the record.
    pub incarnation: Incarnation,
    /// Time of the record.
    pub at: UnixMillis,
    /// Number of crawls that go on.
    pub running: u64,
    /// Number of crawls that cannot go on at present.
    pub waiting: u64,
    /// Pages that came to an end in the present runs of those crawls.
    pub pages: u64,
    /// Items stored in those runs.
    pub items: u64,
    /// Bytes of bodies in those runs.
    pub bytes: u64,
    /// Pages in flight.
    pub in_flight: u64,
    /// Work of the process since its start. If `None`, a worker of an earlier version wrote the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_start: Option<ProcessTotals>,
    /// Events of crawls that only the worker knows, the oldest first: those of the last minutes, as far as they have room.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<FoldedEvent>,
}

impl WorkerStatus {
    /// Sums up these crawls of a process that has done so much since its start.
    pub fn of(
        incarnation: Incarnation,
        at: UnixMillis,
        crawls: &[CrawlStatus],
        since_start: ProcessTotals,
    ) -> Self {
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
            since_start: Some(since_start),
            events: Vec::new(),
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
            since_start: Some(ProcessTotals {
                pages: u64::MAX,
                items: u64::MAX,
            }),
            events: Vec::new(),
        };
        let json = serde_json::to_vec(&status).unwrap();
        assert!(json.len() <= 1 << 10, "{} bytes", json.len());
    }

    #[test]
    fn totals_since_the_start_are_not_told_by_earlier_versions() {
        let json = r#"{"incarnation":"1","at":2,"running":3,"waiting":4,"pages":5,"items":6,"bytes":7,"in_flight":8}"#;
        let status: WorkerStatus = serde_json::from_str(json).unwrap();
        assert_eq!((status.since_start, status.events.len()), (None, 0));
        assert_eq!(serde_json::to_string(&status).unwrap(), json);
    }
}
