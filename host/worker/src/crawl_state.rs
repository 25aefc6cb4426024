//! Present state of an assignment, for others to see.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::meters::{Load, Meters, Seen};
use crawler_archive::Archive;
use crawler_crawl::CrawlConfig;
use crawler_crawl::backlog::{self, QUARANTINE_FULL, SINK_BEHIND};
use crawler_crawl::incidents::{CrawlIncidents, whole_seconds};
use crawler_crawl::limit_uses::LimitUses;
use crawler_crawl::peers::share_of;
use crawler_crawl::put_back::MEMORY_SHORT;
use crawler_frontier::Frontier;
use crawler_model::crawl::{Counts, UnixMillis};
use crawler_model::event::EventKind;
use crawler_model::id::{ResourceName, Shard};
use crawler_model::resource::Waits;
use crawler_model::settings::SinkName;
use crawler_model::status::PresentHosts;
use crawler_process::memory::CrawlMemory;

/// Name of the state of a crawl whose frontier is open and whose batches, items or archived pages do not become durable.
const STALLED: &str = "StorageUnavailable";
/// Name of the state of a crawl that cannot go on, or not end, because a declared sink takes no items at present.
const SINK_UNAVAILABLE: &str = "SinkUnavailable";

/// Present state of an assignment. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct CrawlState {
    shared: Arc<Mutex<Fields>>,
    changed: Arc<Notify>,
    /// Counts of the process, and the resource that the crawl counts for.
    meters: Option<(Arc<Meters>, ResourceName)>,
    incidents: CrawlIncidents,
    limit_uses: LimitUses,
}

#[derive(Default)]
struct Fields {
    /// The frontier. `None` while it is not open.
    frontier: Option<Arc<dyn Frontier>>,
    /// Archive of the crawl, if it has one and the frontier is open.
    archive: Option<Archive>,
    /// Counts from the last time that the frontier was open. `None` before the first time: only the counts in
    /// the shard's record are known then.
    counts: Option<Counts>,
    waits: Option<Waits>,
    /// Totals of the frontier that the counts of the process have. `None` while it is not open.
    seen: Option<Seen>,
    /// Faults of sinks that took no items at the last try.
    sink_faults: BTreeMap<SinkName, SinkFault>,
    /// Bound on items that wait for their sinks.
    backlog: Option<BacklogBound>,
    /// Memory of the crawl, which shares that of the process.
    crawl_memory: Option<CrawlMemory>,
}

/// Fault of a sink that takes no items.
struct SinkFault {
    why: String,
    since: Instant,
}

/// Settings of a crawl that bound the items that wait for its sinks, and the shard's share of them.
struct BacklogBound {
    config: watch::Receiver<CrawlConfig>,
    shard: Shard,
    n_shards: NonZeroU32,
}

impl CrawlState {
    /// Creates the state of an assignment of a resource that has not begun. Changes of it are told through `changed`, and
    /// what its frontier grows by is added to `meters`.
    pub(super) fn new(
        changed: Arc<Notify>,
        meters: Arc<Meters>,
        name: ResourceName,
        incidents: CrawlIncidents,
    ) -> Self {
        Self {
            shared: Arc::default(),
            changed,
            meters: Some((meters, name)),
            incidents,
            limit_uses: LimitUses::default(),
        }
    }

    /// Returns the incidents of the crawl, which become events of its resource.
    pub(super) fn incidents(&self) -> &CrawlIncidents {
        &self.incidents
    }

    /// Returns the largest use of each limit by a call, since the crawl was assigned here.
    pub(super) fn limit_uses(&self) -> &LimitUses {
        &self.limit_uses
    }

    fn fields(&self) -> MutexGuard<'_, Fields> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn is_open(&self) -> bool {
        self.fields().frontier.is_some()
    }

    pub(super) fn set_memory(&self, crawl_memory: CrawlMemory) {
        self.fields().crawl_memory = Some(crawl_memory);
    }

    pub(super) fn set_backlog(
        &self,
        config: watch::Receiver<CrawlConfig>,
        shard: Shard,
        n_shards: NonZeroU32,
    ) {
        self.fields().backlog = Some(BacklogBound {
            config,
            shard,
            n_shards,
        });
    }

    pub(super) fn opened(&self, frontier: Arc<dyn Frontier>, archive: Option<Archive>) {
        let mut fields = self.fields();
        // What earlier owners of the shard did is not counted here.
        fields.seen = Some(Seen::of(&*frontier));
        fields.frontier = Some(frontier);
        fields.archive = archive;
        fields.waits = None;
        fields.sink_faults.clear();
        self.changed.notify_one();
    }

    pub(super) fn closed(&self, waits: Option<Waits>) {
        let mut fields = self.fields();
        if let Some(frontier) = fields.frontier.take() {
            self.count(&mut fields, &*frontier);
            fields.seen = None;
            fields.counts = Some(frontier.counts());
        }
        fields.archive = None;
        fields.waits = waits;
        fields.sink_faults.clear();
        self.changed.notify_one();
    }

    pub(super) fn sink_fault(&self, sink: &SinkName, fault: Option<String>) {
        let mut fields = self.fields();
        let faults = &mut fields.sink_faults;
        match fault {
            Some(why) => {
                if let Some(known) = faults.get_mut(sink) {
                    known.why = why;
                    return;
                }
                self.incidents.add(EventKind::SinkRefused, &why);
                let since = Instant::now();
                faults.insert(sink.clone(), SinkFault { why, since });
            }
            None => {
                let Some(known) = faults.remove(sink) else {
                    return;
                };
                let time = whole_seconds(known.since.elapsed());
                let what = format_args!("{sink} after {time}");
                self.incidents.add(EventKind::SinkBack, what);
            }
        }
        drop(fields);
        self.changed.notify_one();
    }

    pub(super) fn counts(&self) -> Option<Counts> {
        let fields = self.fields();
        let present = fields.frontier.as_ref().map(|frontier| frontier.counts());
        present.or_else(|| fields.counts.clone())
    }

    /// Returns the load of the crawl for metrics, and why it cannot go on. What its frontier has grown by is counted.
    pub(super) fn measure(&self) -> (Load, Option<Waits>) {
        let waits = self.waits();
        let mut fields = self.fields();
        let frontier = fields.frontier.clone();
        let load = match &frontier {
            Some(frontier) => {
                self.count(&mut fields, &**frontier);
                Load::of(Some(&**frontier), &frontier.counts(), waits.is_some())
            }
            None => {
                let counts = fields.counts.clone().unwrap_or_default();
                Load::of(None, &counts, waits.is_some())
            }
        };
        (load, waits)
    }

    /// Adds what the frontier has grown by to the counts of the process, if it is open.
    pub(super) fn count_growth(&self) {
        let mut fields = self.fields();
        if let Some(frontier) = fields.frontier.clone() {
            self.count(&mut fields, &*frontier);
        }
    }

    /// Returns the counts of the process, if the crawl counts for a resource.
    pub(super) fn meters(&self) -> Option<&Meters> {
        self.meters.as_ref().map(|(meters, _)| &**meters)
    }

    /// Adds what the frontier has grown by to the counts of the process.
    fn count(&self, fields: &mut Fields, frontier: &dyn Frontier) {
        let Some((meters, name)) = &self.meters else {
            return;
        };
        if let Some(before) = &mut fields.seen {
            let now = Seen::of(frontier);
            meters.add(name, before, &now);
            *before = now;
        }
    }

    pub(super) fn in_flight(&self) -> usize {
        let fields = self.fields();
        let frontier = fields.frontier.as_ref();
        frontier.map_or(0, |frontier| frontier.in_flight())
    }

    /// Returns the hosts of the crawl, if its frontier is open.
    pub(super) fn hosts(&self, now: UnixMillis) -> Option<PresentHosts> {
        let frontier = self.fields().frontier.clone();
        frontier.map(|frontier| frontier.present_hosts(now))
    }

    pub(super) fn waits(&self) -> Option<Waits> {
        let fields = self.fields();
        let frontier = fields.frontier.as_ref();
        let stalled = frontier.and_then(|frontier| frontier.stalled());
        let stalled = stalled.or_else(|| fields.archive.as_ref()?.stalled());
        let stalled = stalled.map(|why| Waits {
            condition: STALLED.to_owned(),
            why,
        });
        let stalled = stalled.or_else(|| fields.sinks_wait());
        let stalled = stalled.or_else(|| fields.undecided());
        let short = || {
            let crawl_memory = fields.crawl_memory.as_ref();
            let why = frontier.and(crawl_memory).and_then(CrawlMemory::short)?;
            let condition = MEMORY_SHORT.to_owned();
            Some(Waits { condition, why })
        };
        stalled.or_else(|| fields.waits.clone()).or_else(short)
    }
}

impl Fields {
    /// Returns why items wait for their sinks, if the crawl waits for that. It does not while it goes on although a
    /// declared sink fails; its log tells the fault.
    fn sinks_wait(&self) -> Option<Waits> {
        let behind = self.behind();
        let is_held = behind.is_some() || self.has_no_page();
        let condition = match (self.sink_faults.keys().next(), &behind) {
            (Some(_), _) if self.sink_faults.contains_key(&SinkName::lines()) => STALLED,
            (Some(_), _) if is_held => SINK_UNAVAILABLE,
            (_, Some(_)) => SINK_BEHIND,
            (_, None) => return None,
        };
        let faults = self.sink_faults.values().map(|fault| fault.why.clone());
        let reasons: Vec<String> = faults.chain(behind).collect();
        Some(Waits {
            condition: condition.to_owned(),
            why: reasons.join("; "),
        })
    }

    /// Returns true if the frontier is open and no page is to be fetched, or none may be: all that is left is the delivery.
    fn has_no_page(&self) -> bool {
        let Some(frontier) = &self.frontier else {
            return false;
        };
        let counts = frontier.counts();
        counts.due == 0 || self.is_spent(&counts)
    }

    /// Returns true if a limit of the run leaves no room for another page.
    fn is_spent(&self, counts: &Counts) -> bool {
        let Some(bound) = &self.backlog else {
            return false;
        };
        let config = bound.config.borrow();
        let share = |max| share_of(max, bound.shard, bound.n_shards);
        counts.due_pages() >= share(config.settings.max_pages())
            || counts.bytes >= share(config.settings.max_bytes())
    }

    /// Returns why no page is taken until a sink has caught up, if that is so.
    fn behind(&self) -> Option<String> {
        self.paused_by(backlog::why_paused)
    }

    /// Returns why no page is taken until held items are decided about, if that is so.
    fn undecided(&self) -> Option<Waits> {
        Some(Waits {
            condition: QUARANTINE_FULL.to_owned(),
            why: self.paused_by(backlog::why_undecided)?,
        })
    }

    /// Returns what a bound on the bytes of items says, if there is a page that it keeps from being taken.
    fn paused_by(&self, why: fn(&dyn Frontier, u64) -> Option<String>) -> Option<String> {
        let (frontier, bound) = (self.frontier.as_ref()?, self.backlog.as_ref()?);
        let config = bound.config.borrow();
        let max = config.settings.max_undelivered();
        let max = share_of(max, bound.shard, bound.n_shards);
        let why = why(&**frontier, max)?;
        (frontier.counts().due > 0).then_some(why)
    }
}
