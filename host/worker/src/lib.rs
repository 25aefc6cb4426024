//! The worker: watches its assignments, loads each resource's plugin, and crawls.
//!
//! ```text
//! parts        what a worker is given
//! agent        compares its assignments with its crawls, starts and stops; knows the store
//! look         what is assigned at this moment
//! assigned     one assignment from start to end: what a crawl needs, and what its end means
//! opening      the order in which a frontier is opened
//! ending       why a crawl has ended here
//! give_back    a shard that is to go to another, or to nobody
//! memory_wait  a crawl that uses too much memory waits until there is more
//! lease_permit until when pages may be fetched
//! others       shards of other workers, and how they are reached
//! peers        the workers that share the turns of hosts
//! receive      links of the other shards, and whether there is anything to do
//! judge        which of these links are followed
//! told         what is wrong with the sink, as others see it
//! totals       what all crawls come to, in the store
//! ```
//!
//! The crawl itself is the crate [`crawler_crawl`], which knows neither store nor master.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::stream::{self, BoxStream, StreamExt as _};
use tokio::sync::Notify;

use crawler_crawl::put_back::MEMORY_SHORT;
use crawler_crawl::report::CrawlLog;
use crawler_frontier::Frontier;
use crawler_model::crawl::Counts;
use crawler_model::id::{Epoch, ResourceId, ResourceName, Run};
use crawler_model::resource::{ShardId, Waits};
use crawler_model::status::{CrawlStatus, LogLine};
use crawler_process::memory::Seat;

pub mod agent;
mod assigned;
mod ending;
mod give_back;
mod judge;
pub mod lease_permit;
mod look;
mod memory_wait;
mod opening;
pub mod others;
mod parts;
pub mod peers;
pub mod receive;
mod told;
mod totals;

pub use parts::AgentParts;
use receive::Mailbox;

/// Name of the state of a crawl whose frontier is open and whose batches or items do not become durable.
const STALLED: &str = "StorageUnavailable";
/// Maximum number of log lines that are shown with a crawl's counts.
const LAST_ERRORS: usize = 5;
/// Maximum number of logs kept of crawls that are over.
const KEPT_LOGS: usize = 256;

/// Crawls of this process, for the API. Cheap to clone.
#[derive(Clone, Default)]
pub struct Crawls {
    shared: Arc<Mutex<Known>>,
    /// Signals that a crawl has begun or ended, or waits, or goes on.
    changed: Arc<Notify>,
}

#[derive(Default)]
struct Known {
    running: BTreeMap<ShardId, Running>,
    /// Logs of the last crawl of each shard, running or over.
    logs: BTreeMap<ShardId, CrawlLog>,
    /// Shards in `logs` whose crawl is over.
    over: BTreeSet<ShardId>,
}

impl Known {
    /// Drops logs of crawls that are over, those of the oldest resources first, until no more than
    /// [`KEPT_LOGS`] are left.
    fn trim_logs(&mut self) {
        while self.logs.len() > KEPT_LOGS
            && let Some(oldest) = self.over.pop_first()
        {
            self.logs.remove(&oldest);
        }
    }
}

struct Running {
    log: CrawlLog,
    name: ResourceName,
    epoch: Epoch,
    run: Run,
    live: Live,
    /// Mailbox for links of other shards. `None` for a resource of one shard.
    mailbox: Option<Mailbox>,
}

/// Present state of an assignment. Cheap to clone.
#[derive(Clone, Default)]
struct Live {
    shared: Arc<Mutex<Standing>>,
    changed: Arc<Notify>,
}

#[derive(Default)]
struct Standing {
    /// The frontier. `None` while it is not open.
    frontier: Option<Arc<dyn Frontier>>,
    /// Counts from the last time that the frontier was open. `None` before the first time: only the counts in
    /// the shard's record are known then.
    counts: Option<Counts>,
    waits: Option<Waits>,
    /// Reason why items were not written at the last try.
    sink_fault: Option<String>,
    /// Seat of the crawl among those that share the memory of the process.
    seat: Option<Seat>,
}

impl Live {
    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn seated(&self, seat: Seat) {
        self.standing().seat = Some(seat);
    }

    fn opened(&self, frontier: Arc<dyn Frontier>) {
        let mut standing = self.standing();
        standing.frontier = Some(frontier);
        (standing.waits, standing.sink_fault) = (None, None);
        self.changed.notify_one();
    }

    fn closed(&self, waits: Option<Waits>) {
        let mut standing = self.standing();
        if let Some(frontier) = standing.frontier.take() {
            standing.counts = Some(frontier.counts());
        }
        (standing.waits, standing.sink_fault) = (waits, None);
        self.changed.notify_one();
    }

    fn sink_fault(&self, fault: Option<String>) {
        let present = &mut self.standing().sink_fault;
        if present.is_some() != fault.is_some() {
            self.changed.notify_one();
        }
        *present = fault;
    }

    fn counts(&self) -> Option<Counts> {
        let standing = self.standing();
        let present = standing.frontier.as_ref().map(|frontier| frontier.counts());
        present.or_else(|| standing.counts.clone())
    }

    fn in_flight(&self) -> usize {
        let standing = self.standing();
        let frontier = standing.frontier.as_ref();
        frontier.map_or(0, |frontier| frontier.in_flight())
    }

    fn waits(&self) -> Option<Waits> {
        let standing = self.standing();
        let frontier = standing.frontier.as_ref();
        let stalled = frontier.and_then(|frontier| frontier.stalled());
        let stalled = stalled.or_else(|| standing.sink_fault.clone());
        let stalled = stalled.map(|why| Waits {
            condition: STALLED.to_owned(),
            why,
        });
        let short = || {
            let seat = standing.seat.as_ref();
            let why = frontier.and(seat).and_then(Seat::short)?;
            let condition = MEMORY_SHORT.to_owned();
            Some(Waits { condition, why })
        };
        stalled.or_else(|| standing.waits.clone()).or_else(short)
    }
}

impl Crawls {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the status of all crawls, or of those of one resource.
    pub fn status(&self, name: Option<&ResourceName>) -> Vec<CrawlStatus> {
        let known = self.known();
        let asked = known
            .running
            .iter()
            .filter(|(_, crawl)| name.is_none_or(|n| crawl.name == *n));
        asked
            .map(|(id, crawl)| CrawlStatus {
                name: crawl.name.clone(),
                id: id.resource,
                shard: id.shard,
                epoch: crawl.epoch,
                run: crawl.run,
                counts: crawl.live.counts(),
                in_flight: crawl.live.in_flight() as u64,
                waits: crawl.live.waits(),
                last_errors: match name {
                    Some(_) => crawl.log.last_errors(LAST_ERRORS),
                    None => Vec::new(),
                },
            })
            .collect()
    }

    /// Returns the log of the last crawl of a resource, of all its shards; with `follow`, also its lines to
    /// come until the crawl is over. The resource is given by id, because an earlier one with the same name
    /// has a log of its own.
    pub fn logs(&self, resource: ResourceId, follow: bool) -> BoxStream<'static, LogLine> {
        let known = self.known();
        let own = known.logs.range(ShardId::only(resource)..);
        let own = own.take_while(|(id, _)| id.resource == resource);
        let own: Vec<_> = own.map(|(_, log)| log.read(follow)).collect();
        stream::select_all(own).boxed()
    }

    /// Creates the state of a crawl that is not listed yet.
    fn live(&self) -> Live {
        Live {
            shared: Arc::default(),
            changed: self.changed.clone(),
        }
    }

    /// Waits until a crawl has begun or ended, or waits, or goes on. For one task at a time.
    async fn changed(&self) {
        self.changed.notified().await;
    }

    fn enter(&self, id: ShardId, crawl: Running) {
        self.changed.notify_one();
        let mut known = self.known();
        known.logs.insert(id, crawl.log.clone());
        known.over.remove(&id);
        known.running.insert(id, crawl);
        known.trim_logs();
    }

    /// Adds a line to the log of a running crawl.
    fn note(&self, id: ShardId, level: &'static str, message: String) {
        if let Some(crawl) = self.known().running.get(&id) {
            crawl.log.note(level, message);
        }
    }

    /// Removes a crawl that was entered under this epoch; the shard's next assignment may be running already.
    fn leave(&self, id: ShardId, epoch: Epoch) {
        let mut known = self.known();
        if known
            .running
            .get(&id)
            .is_some_and(|crawl| crawl.epoch == epoch)
        {
            known.running.remove(&id);
            known.over.insert(id);
            known.trim_logs();
            self.changed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::id::Shard;
    use crawler_process::clock::SystemClock;

    #[test]
    fn a_crawl_that_ends_late_does_not_hide_the_next_one_of_its_shard() {
        let crawls = Crawls::default();
        let id = ShardId::only(ResourceId(1));
        for epoch in [Epoch(1), Epoch(2)] {
            let running = Running {
                log: CrawlLog::new(Arc::new(SystemClock)),
                name: "books".parse().unwrap(),
                epoch,
                run: Run(epoch.0),
                live: Live::default(),
                mailbox: None,
            };
            crawls.enter(id, running);
        }
        crawls.leave(id, Epoch(1));
        let epochs: Vec<Epoch> = crawls.status(None).iter().map(|c| c.epoch).collect();
        assert_eq!(epochs, [Epoch(2)]);
        crawls.leave(id, Epoch(2));
        assert!(crawls.status(None).is_empty());
    }

    fn running(name: &str) -> Running {
        Running {
            log: CrawlLog::new(Arc::new(SystemClock)),
            name: name.parse().unwrap(),
            epoch: Epoch(1),
            run: Run(1),
            live: Live::default(),
            mailbox: None,
        }
    }

    #[test]
    fn logs_of_crawls_that_run_stay_and_of_those_that_are_over_the_latest() {
        let crawls = Crawls::default();
        let id = |n: u64| ShardId::only(ResourceId(n));
        let n_all = KEPT_LOGS as u64 + 10;
        for n in 0..n_all {
            crawls.enter(id(n), running(&format!("crawl-{n}")));
        }
        let kept = || {
            let known = crawls.known();
            let ids = known.logs.keys().map(|id| id.resource.0);
            ids.collect::<BTreeSet<u64>>()
        };
        assert_eq!(kept(), (0..n_all).collect());
        // There are ten more than are kept, but none is dropped while all run.
        for n in (0..30).rev() {
            crawls.leave(id(n), Epoch(1));
        }
        assert_eq!(kept(), (0..20).chain(30..n_all).collect());
        // A crawl that goes on is not over.
        crawls.enter(id(3), running("crawl-3"));
        assert_eq!(crawls.known().over.len(), 19);
    }

    #[tokio::test]
    async fn logs_of_an_earlier_resource_are_none_of_a_later_one_of_its_name() {
        let crawls = Crawls::default();
        let enter = |resource, shard, said: &str| {
            let id = ShardId {
                resource: ResourceId(resource),
                shard: Shard(shard),
            };
            crawls.enter(id, running("books"));
            crawls.note(id, "info", said.to_owned());
            crawls.leave(id, Epoch(1));
        };
        enter(1, 0, "first");
        enter(1, 1, "first");
        enter(2, 0, "second");
        enter(2, 1, "second");
        enter(1, 1, "late");
        let said = async |resource| {
            let lines = crawls.logs(ResourceId(resource), false);
            let lines: BTreeSet<String> = lines.map(|line| line.message).collect().await;
            lines.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(said(1).await, ["first", "late"]);
        assert_eq!(said(2).await, ["second"]);
        assert!(said(3).await.is_empty());
    }
}
