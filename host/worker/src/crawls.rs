//! Crawls of this process: their status, their logs, and links that come for them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::stream::{self, BoxStream, StreamExt as _};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::crawl_state::CrawlState;
use super::event_ring::EventRing;
use super::links::{LinkDelivery, LinkDeliveryError};
use super::mailbox::Mailbox;
use super::meters::{Load, Meters, ResourceRow, SinkCounts};
use super::shard_owners::ShardOwners;
use crawler_crawl::incidents::Incidents;
use crawler_crawl::log::CrawlLog;
use crawler_crawl::peers::MAX_LINKS;
use crawler_model::event::FoldedEvent;
use crawler_model::id::{Epoch, NodeId, ResourceId, ResourceName, Run};
use crawler_model::resource::{Resource, ShardId};
use crawler_model::status::{CrawlStatus, LogLine, ProcessTotals};
use crawler_process::metrics::add_word;

/// Maximum number of log lines that are shown with a crawl's counts.
const LAST_ERRORS: usize = 5;
/// Maximum number of logs kept of crawls that are over.
const KEPT_LOGS: usize = 256;
/// Maximum size in bytes of the logs kept of crawls that are over. Their frontiers have the lines.
const KEPT_LOG_BYTES: usize = 64 << 20;

/// Crawls of this process, for the API. Cheap to clone.
#[derive(Clone, Default)]
pub struct Crawls {
    shared: Arc<Mutex<CrawlTable>>,
    /// Signals that a crawl has begun or ended, or waits, or goes on.
    pub(super) changed: Arc<Notify>,
    meters: Arc<Meters>,
    pub(super) incidents: Incidents,
    event_ring: Arc<Mutex<EventRing>>,
}

/// Crawls of this process for its metrics.
#[derive(Debug, Clone, Default)]
pub struct CrawlMetrics {
    /// Rows of the resources; the last one is that of all without a row of their own.
    pub resources: Vec<ResourceRow>,
    /// Numbers of crawls that cannot go on, by condition.
    pub waiting: BTreeMap<String, u64>,
}

#[derive(Default)]
struct CrawlTable {
    running: BTreeMap<ShardId, Running>,
    /// Logs of the last crawl of each shard, running or over.
    logs: BTreeMap<ShardId, CrawlLog>,
    /// Shards in `logs` whose crawl is over.
    over: BTreeSet<ShardId>,
}

impl CrawlTable {
    /// Drops logs of crawls that are over, those of the oldest resources first, until no more than
    /// [`KEPT_LOGS`] are left, and those of crawls that are over have no more than [`KEPT_LOG_BYTES`].
    fn trim_logs(&mut self) {
        let over = self.over.iter().filter_map(|id| self.logs.get(id));
        let mut n_bytes: usize = over.map(CrawlLog::n_bytes).sum();
        while (self.logs.len() > KEPT_LOGS || n_bytes > KEPT_LOG_BYTES)
            && let Some(oldest) = self.over.pop_first()
        {
            let dropped = self.logs.remove(&oldest);
            n_bytes = n_bytes.saturating_sub(dropped.map_or(0, |log| log.n_bytes()));
        }
    }
}

/// A crawl that is assigned here. Cheap to clone.
#[derive(Clone)]
pub(super) struct Running {
    pub(super) log: CrawlLog,
    pub(super) name: ResourceName,
    pub(super) epoch: Epoch,
    pub(super) run: Run,
    pub(super) crawl_state: CrawlState,
    /// Mailbox for links of other shards. `None` for a resource of one shard.
    pub(super) mailbox: Option<Mailbox>,
}

impl Crawls {
    /// Creates a list without crawls, whose metrics tell so many resources apart.
    pub fn telling_apart(n_resources: usize) -> Self {
        Self {
            meters: Arc::new(Meters::telling_apart(n_resources)),
            ..Self::default()
        }
    }

    /// Returns the crawls and what this process has done for each resource, for its metrics.
    pub fn metrics(&self) -> CrawlMetrics {
        let known = self.known();
        let running = known.running.values();
        let running: Vec<_> = running
            .map(|crawl| (crawl.name.clone(), crawl.crawl_state.clone()))
            .collect();
        drop(known);
        let mut loads: BTreeMap<ResourceName, Load> = BTreeMap::new();
        let mut waiting = BTreeMap::new();
        for (name, crawl_state) in running {
            let (load, waits) = crawl_state.measure();
            loads.entry(name).or_default().add(&load);
            if let Some(waits) = waits {
                add_word(&mut waiting, &waits.condition, 1);
            }
        }
        CrawlMetrics {
            resources: self.meters.read(loads),
            waiting,
        }
    }

    /// Returns what this process has done since its start, up to this moment.
    pub(super) fn since_start(&self) -> ProcessTotals {
        let known = self.known();
        let running = known.running.values();
        let crawl_states: Vec<_> = running.map(|crawl| crawl.crawl_state.clone()).collect();
        drop(known);
        for crawl_state in crawl_states {
            crawl_state.count_growth();
        }
        self.meters.totals()
    }

    /// Returns the counts of the deliveries of items since the start of the process.
    pub fn sink_counts(&self) -> &SinkCounts {
        &self.meters.sinks
    }

    fn known(&self) -> MutexGuard<'_, CrawlTable> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the status of all crawls, or of those of one resource.
    pub fn status(&self, name: Option<&ResourceName>) -> Vec<CrawlStatus> {
        let known = self.known();
        let asked = known.running.iter();
        let asked = asked.filter(|(_, crawl)| name.is_none_or(|n| crawl.name == *n));
        let asked: Vec<_> = asked.map(|(id, crawl)| (*id, crawl.clone())).collect();
        // Hosts may be many, and others need the list meanwhile.
        drop(known);
        let status = asked.into_iter().map(|(id, crawl)| CrawlStatus {
            name: crawl.name,
            id: id.resource,
            shard: id.shard,
            epoch: crawl.epoch,
            run: crawl.run,
            counts: crawl.crawl_state.counts(),
            in_flight: crawl.crawl_state.in_flight() as u64,
            hosts: name.and_then(|_| crawl.crawl_state.hosts(crawl.log.now())),
            limits_used: match name {
                Some(_) => crawl.crawl_state.limit_uses().all(),
                None => BTreeMap::new(),
            },
            waits: crawl.crawl_state.waits(),
            last_errors: match name {
                Some(_) => crawl.log.last_errors(LAST_ERRORS),
                None => Vec::new(),
            },
        });
        status.collect()
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

    /// Gives links to a shard that is crawled here. Returns the number of the sending shard's last link that
    /// is durable.
    pub async fn deliver(&self, links: LinkDelivery) -> Result<u64, LinkDeliveryError> {
        let mailbox = self.mailbox(&links)?;
        mailbox.deliver(links.to, links.from, links.batch).await
    }

    /// Gives links to a shard that is crawled here, as [`deliver`](Self::deliver) does, if this node owns the shard that
    /// sends them.
    pub async fn deliver_of(
        &self,
        node: &NodeId,
        owners: &ShardOwners,
        links: LinkDelivery,
    ) -> Result<u64, LinkDeliveryError> {
        let mailbox = self.mailbox(&links)?;
        let from = ShardId {
            resource: links.to.resource,
            shard: links.from,
        };
        owners.check(&mailbox.owners, from, node).await?;
        mailbox.deliver(links.to, links.from, links.batch).await
    }

    /// Returns the mailbox for these links, unless they cannot be what they are said to be.
    fn mailbox(&self, links: &LinkDelivery) -> Result<Mailbox, LinkDeliveryError> {
        let (to, from) = (links.to, links.from);
        let refused = |why: String| Err(LinkDeliveryError::Refused(why));
        let n_links = links.batch.links.len();
        if n_links > MAX_LINKS {
            return refused(format!("{n_links} links at once, at most {MAX_LINKS}"));
        }
        if links.batch.first == 0 {
            return refused("links are numbered from 1".to_owned());
        }
        if from == to.shard {
            return refused(format!("shard {to} gives links to itself"));
        }
        let mailbox = {
            let known = self.known();
            let running = known.running.get(&to);
            let running = running
                .filter(|running| running.epoch == links.epoch && running.run == links.run)
                .ok_or_else(|| {
                    LinkDeliveryError::NotNow(format!("shard {to} is not crawled here"))
                })?;
            running.mailbox.clone()
        };
        let n_shards = mailbox.as_ref().map_or(1, |mailbox| mailbox.n_shards());
        let mailbox = mailbox.filter(|_| from.0.max(to.shard.0) < n_shards);
        mailbox.ok_or_else(|| {
            let resource = to.resource;
            let why = format!("resource {resource} has {n_shards} shards, and no {from}");
            LinkDeliveryError::Refused(why)
        })
    }

    /// Creates the state of a crawl of a resource that is not listed yet.
    pub(super) fn crawl_state(&self, resource: &Resource) -> CrawlState {
        let incidents = self.incidents.of_crawl(resource.id, resource.run);
        let name = resource.spec.name.clone();
        CrawlState::new(self.changed.clone(), self.meters.clone(), name, incidents)
    }

    /// Returns the events that the leader may not have told yet, with those of spans that have ended since the last call.
    pub(super) fn events(&self) -> Vec<FoldedEvent> {
        let mut event_ring = self.event_ring();
        event_ring.take_from(&self.incidents, Instant::now());
        let dropped = self.incidents.take_dropped();
        if dropped > 0 {
            tracing::warn!(dropped, "events of crawls had no room and are not told");
        }
        event_ring.events()
    }

    /// Takes note that these events are in the store for the leader to see.
    pub(super) fn events_written(&self, events: &[FoldedEvent]) {
        self.event_ring().written(events, Instant::now());
    }

    fn event_ring(&self) -> MutexGuard<'_, EventRing> {
        (self.event_ring.lock()).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a crawl has begun or ended, or waits, or goes on. For one task at a time.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Returns true if the frontier of a shard is open here.
    #[cfg(test)]
    pub(super) fn is_open(&self, id: ShardId) -> bool {
        let known = self.known();
        known
            .running
            .get(&id)
            .is_some_and(|crawl| crawl.crawl_state.is_open())
    }

    pub(super) fn enter(&self, id: ShardId, crawl: Running) {
        self.changed.notify_one();
        let mut known = self.known();
        known.logs.insert(id, crawl.log.clone());
        known.over.remove(&id);
        known.running.insert(id, crawl);
        known.trim_logs();
    }

    /// Adds a line to the log of a running crawl.
    pub(super) fn note(&self, id: ShardId, level: &'static str, message: String) {
        if let Some(crawl) = self.known().running.get(&id) {
            crawl.log.note(level, message);
        }
    }

    /// Removes a crawl that was entered under this epoch; the shard's next assignment may be running already.
    pub(super) fn leave(&self, id: ShardId, epoch: Epoch) {
        let mut known = self.known();
        if known
            .running
            .get(&id)
            .is_some_and(|crawl| crawl.epoch == epoch)
        {
            known.running.remove(&id);
            known.over.insert(id);
            known.trim_logs();
            // What its span has gathered is told with the next totals.
            self.incidents.end_spans(id.resource);
            self.changed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crawler_crawl::log::LogBounds;
    use crawler_frontier::Frontier;
    use crawler_frontier::memory::{MemoryFrontier, MemorySettings};
    use crawler_model::event::EventKind;
    use crawler_model::id::Shard;
    use crawler_model::settings::SinkName;
    use crawler_model::status::PresentHosts;
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
                crawl_state: CrawlState::default(),
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
            crawl_state: CrawlState::default(),
            mailbox: None,
        }
    }

    #[test]
    fn hosts_are_told_of_one_resource_that_was_asked_for() {
        let crawls = Crawls::default();
        let running = running("books");
        let frontier: Arc<dyn Frontier> = Arc::new(MemoryFrontier::new(MemorySettings::default()));
        running.crawl_state.opened(frontier, None);
        crawls.enter(ShardId::only(ResourceId(1)), running);
        let name: ResourceName = "books".parse().unwrap();
        let hosts = |name| crawls.status(name).remove(0).hosts;
        assert_eq!(hosts(Some(&name)), Some(PresentHosts::default()));
        assert_eq!(hosts(None), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_crawl_that_leaves_has_told_how_its_sink_was() {
        let crawls = Crawls::default();
        let id = ShardId::only(ResourceId(1));
        let incidents = crawls.incidents.of_crawl(id.resource, Run(1));
        let (changed, meters) = (crawls.changed.clone(), crawls.meters.clone());
        let name = "books".parse().unwrap();
        let crawl_state = CrawlState::new(changed, meters, name, incidents);
        let running = Running {
            crawl_state: crawl_state.clone(),
            ..running("books")
        };
        crawls.enter(id, running);
        let lines = SinkName::lines();
        for _try in 0..3 {
            crawl_state.sink_fault(&lines, Some("the disk is full".to_owned()));
        }
        tokio::time::advance(Duration::from_secs(35)).await;
        for _write in 0..2 {
            crawl_state.sink_fault(&lines, None);
        }
        assert_eq!(crawls.events(), []);
        crawls.leave(id, Epoch(1));
        // What the leader has not told yet is shown each time.
        for _record in 0..2 {
            let events = crawls.events();
            let told = events.iter().map(|event| {
                let why = event.why.as_str();
                (event.number, event.kind, event.times, why)
            });
            let expected = [
                (1, EventKind::SinkRefused, 1, "the disk is full"),
                (2, EventKind::SinkBack, 1, "lines after 35s"),
            ];
            assert_eq!(told.collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn metrics_have_rows_for_so_many_resources_and_one_for_the_rest() {
        let crawls = Crawls::telling_apart(10);
        for n in 0..25 {
            let id = ShardId::only(ResourceId(n));
            crawls.enter(id, running(&format!("crawl-{n}")));
        }
        let rows = crawls.metrics().resources;
        assert_eq!(rows.len(), 11);
        let n_crawls = rows.iter().map(|row| row.load.crawls);
        assert_eq!(n_crawls.sum::<u64>(), 25);
        assert_eq!(rows.last().map(|row| row.load.crawls), Some(15));
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

    #[test]
    fn logs_of_crawls_that_are_over_are_bounded_in_bytes() {
        let crawls = Crawls::default();
        let id = |n: u64| ShardId::only(ResourceId(n));
        for n in 0..9 {
            let running = running(&format!("crawl-{n}"));
            running.log.set_bounds(LogBounds {
                lines: 1 << 20,
                bytes: 8 << 20,
            });
            crawls.enter(id(n), running);
            for _line in 0..1_100 {
                crawls.note(id(n), "info", "x".repeat(8 << 10));
            }
        }
        let kept = || crawls.known().logs.len();
        assert_eq!(kept(), 9);
        for n in 0..7 {
            crawls.leave(id(n), Epoch(1));
        }
        assert_eq!(kept(), 9);
        // Eight logs of 8 MiB have more than 64 MiB, with all that a line has besides its texts.
        crawls.leave(id(7), Epoch(1));
        crawls.leave(id(8), Epoch(1));
        assert_eq!(kept(), 7);
        assert!(!crawls.known().logs.contains_key(&id(1)));
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
