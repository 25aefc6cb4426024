//! State that all frontiers of one process share.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use object_store::ObjectStore;
use tokio::sync::Semaphore;

use super::blocks::Blocks;
use super::cached_tables::CachedTables;
use super::counts::FrontierCounts;
use super::disk_cache::DiskCache;
use super::memory_budget::MemoryBudget;
use super::settings::DurableSettings;
use crate::seen::SeenCache;
use crawler_process::task::TaskScope;

/// Returns the extractor that tells keys apart by their segments.
pub fn segments() -> Arc<dyn slatedb::PrefixExtractor> {
    Arc::new(crate::keys::Kinds)
}

/// Function that says why the object store cannot be used at present, if that is known.
pub type LastFault = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// Resources that all frontiers of one process share.
pub struct Frontiers {
    pub(super) objects: Arc<dyn ObjectStore>,
    pub(super) settings: DurableSettings,
    pub(super) blocks: Arc<Blocks>,
    pub(super) seen: SeenCache,
    pub(super) last_fault: LastFault,
    pub(super) n_opened: AtomicUsize,
    /// Counts of the work of all frontiers.
    pub(super) counts: FrontierCounts,
    /// Number that tells this process from earlier ones; never 0.
    pub(super) process: u64,
    /// Permit to try a page alone, so that an end of the process counts against one page only.
    pub(super) alone: Arc<Semaphore>,
    /// Memory that the open frontiers share.
    pub(super) memory_budget: Arc<MemoryBudget>,
    /// Openings and closings, which go on even if their callers stop waiting.
    pub(super) background: TaskScope,
    /// Milliseconds by which tests set the clock of the machine back.
    #[cfg(test)]
    pub(super) clock_ahead: i64,
}

impl Frontiers {
    /// Creates the frontiers of this object store.
    pub fn new(objects: Arc<dyn ObjectStore>, settings: DurableSettings) -> Self {
        Self {
            blocks: Arc::new(Blocks::new(settings.clone())),
            seen: SeenCache::new(settings.seen_cache_bytes),
            objects,
            settings,
            last_fault: Arc::new(|| None),
            n_opened: AtomicUsize::new(1),
            counts: FrontierCounts::default(),
            process: rand::random::<u64>() | 1,
            alone: Arc::new(Semaphore::new(1)),
            memory_budget: Arc::default(),
            background: TaskScope::new(),
            #[cfg(test)]
            clock_ahead: 0,
        }
    }

    /// Returns the counts of the work of all frontiers.
    pub fn counts(&self) -> &FrontierCounts {
        &self.counts
    }

    /// Frees memory while it is short: drops caches that can be read again, and keeps no more URLs in memory
    /// than each frontier needs until the shortage is over.
    pub fn shrink(&self, is_short: bool) {
        if is_short {
            self.blocks.forget();
            self.seen.forget();
        }
        self.memory_budget.shrink(is_short);
    }

    /// Caches tables on the disk of this machine, for an object store that is far away.
    #[must_use]
    pub fn with_disk_cache(mut self, cache: DiskCache) -> Self {
        self.objects = Arc::new(CachedTables::new(self.objects, cache));
        self
    }

    /// Sets the function that says why the object store does not answer.
    #[must_use]
    pub fn with_last_fault(mut self, last_fault: LastFault) -> Self {
        self.last_fault = last_fault;
        self
    }
}
