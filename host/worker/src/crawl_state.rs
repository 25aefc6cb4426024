//! Present state of an assignment, for others to see.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crawler_crawl::put_back::MEMORY_SHORT;
use crawler_frontier::Frontier;
use crawler_model::crawl::Counts;
use crawler_model::resource::Waits;
use crawler_process::memory::CrawlMemory;

/// Name of the state of a crawl whose frontier is open and whose batches or items do not become durable.
const STALLED: &str = "StorageUnavailable";

/// Present state of an assignment. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct CrawlState {
    shared: Arc<Mutex<Fields>>,
    changed: Arc<Notify>,
}

#[derive(Default)]
struct Fields {
    /// The frontier. `None` while it is not open.
    frontier: Option<Arc<dyn Frontier>>,
    /// Counts from the last time that the frontier was open. `None` before the first time: only the counts in
    /// the shard's record are known then.
    counts: Option<Counts>,
    waits: Option<Waits>,
    /// Reason why items were not written at the last try.
    sink_fault: Option<String>,
    /// Memory of the crawl, which shares that of the process.
    crawl_memory: Option<CrawlMemory>,
}

impl CrawlState {
    /// Creates the state of an assignment that has not begun. Changes of it are told through `changed`.
    pub(super) fn new(changed: Arc<Notify>) -> Self {
        Self {
            shared: Arc::default(),
            changed,
        }
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

    pub(super) fn opened(&self, frontier: Arc<dyn Frontier>) {
        let mut fields = self.fields();
        fields.frontier = Some(frontier);
        (fields.waits, fields.sink_fault) = (None, None);
        self.changed.notify_one();
    }

    pub(super) fn closed(&self, waits: Option<Waits>) {
        let mut fields = self.fields();
        if let Some(frontier) = fields.frontier.take() {
            fields.counts = Some(frontier.counts());
        }
        (fields.waits, fields.sink_fault) = (waits, None);
        self.changed.notify_one();
    }

    pub(super) fn sink_fault(&self, fault: Option<String>) {
        let present = &mut self.fields().sink_fault;
        if present.is_some() != fault.is_some() {
            self.changed.notify_one();
        }
        *present = fault;
    }

    pub(super) fn counts(&self) -> Option<Counts> {
        let fields = self.fields();
        let present = fields.frontier.as_ref().map(|frontier| frontier.counts());
        present.or_else(|| fields.counts.clone())
    }

    pub(super) fn in_flight(&self) -> usize {
        let fields = self.fields();
        let frontier = fields.frontier.as_ref();
        frontier.map_or(0, |frontier| frontier.in_flight())
    }

    pub(super) fn waits(&self) -> Option<Waits> {
        let fields = self.fields();
        let frontier = fields.frontier.as_ref();
        let stalled = frontier.and_then(|frontier| frontier.stalled());
        let stalled = stalled.or_else(|| fields.sink_fault.clone());
        let stalled = stalled.map(|why| Waits {
            condition: STALLED.to_owned(),
            why,
        });
        let short = || {
            let crawl_memory = fields.crawl_memory.as_ref();
            let why = frontier.and(crawl_memory).and_then(CrawlMemory::short)?;
            let condition = MEMORY_SHORT.to_owned();
            Some(Waits { condition, why })
        };
        stalled.or_else(|| fields.waits.clone()).or_else(short)
    }
}
