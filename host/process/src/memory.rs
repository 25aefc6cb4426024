//! The memory of this process: the amount that it may use, the part of each crawl, and the reaction to a
//! shortage.
//!
//! ```text
//! limit         the default of `--memory`: a part of the cgroup's limit, or of the machine's memory
//! resident      what the process uses at this moment
//! account       the bytes that one crawl uses, as far as somebody counts them
//! watermarks    pure: samples in, advice out
//! usage         what one crawl uses, and whether it is put back
//! crawl_memory  the memory as one crawl sees it
//! trim          freed memory goes back to the operating system
//! allocations   how many there were, for the benchmark
//! jemalloc      calls of the program's allocator
//! ```
//!
//! [`watch`] takes a sample every 200 ms. From the soft mark (7/8 of `--memory`) on, no crawl takes a page
//! and caches shrink, until less than 3/4 is used. At the hard mark (`--memory` itself), the crawl that uses
//! most is put back: it ends its pages in flight, which stay due, and goes on once memory is free, with half
//! as many pages at once. The same happens if memory stays short for ten seconds though nothing is taken.
//! Crawls look at their [`CrawlMemory`]; this module ends none of them itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

mod account;
pub mod allocations;
mod crawl_memory;
pub(crate) mod jemalloc;
pub mod limit;
pub mod resident;
mod trim;
mod usage;
mod watermarks;

pub use account::{Account, MemoryReservation};
pub use crawl_memory::CrawlMemory;
pub use watermarks::{Advice, Watermarks};

use crate::metrics::Count;
use usage::CrawlUsage;
use watermarks::WatermarkWatch;

/// Interval between two samples of the memory.
pub const EVERY: Duration = Duration::from_millis(200);

/// Callback of a cache: true asks it to shrink, and false tells that memory is free again.
type Cache = Box<dyn Fn(bool) + Send + Sync>;

/// Memory that all crawls of a process share. Cheap to clone.
#[derive(Clone, Default)]
pub struct Memory {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// True while no page is taken.
    is_short: AtomicBool,
    state: Mutex<State>,
    caches: Mutex<Vec<Cache>>,
    /// Number of times that a crawl was put back.
    n_put_back: Count,
}

/// Use of the memory at one moment, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryUse {
    /// Bytes that the process may use. If `None`, nobody watches.
    pub allowed: Option<u64>,
    /// True while no page is taken.
    pub is_short: bool,
    /// Number of times that a crawl was put back.
    pub n_put_back: u64,
}

#[derive(Default)]
struct State {
    /// Watch of the marks. If `None`, nobody watches.
    watch: Option<WatermarkWatch>,
    /// Bytes in use at the last sample.
    resident: u64,
    usages: Vec<Weak<CrawlUsage>>,
}

impl Memory {
    /// Creates memory that never becomes short, because nobody watches it.
    pub fn unwatched() -> Self {
        Self::default()
    }

    /// Creates memory of which the process may use `allowed` bytes.
    pub fn of(allowed: u64) -> Self {
        let memory = Self::default();
        memory.state().watch = Some(WatermarkWatch::new(Watermarks::of(allowed)));
        memory
    }

    /// Counts what a crawl uses, for as long as somebody holds the value.
    fn add(&self, usage: &Arc<CrawlUsage>) {
        let mut state = self.state();
        state.usages.retain(|usage| usage.strong_count() > 0);
        state.usages.push(Arc::downgrade(usage));
    }

    /// Registers a cache that shrinks when memory is short. It is called from a thread that may block.
    pub fn shrinks(&self, cache: impl Fn(bool) + Send + Sync + 'static) {
        self.caches().push(Box::new(cache));
    }

    /// Takes note of the bytes that the process uses now, and tells all crawls what follows from that.
    /// Returns the remaining work: to call [`shrink`](Self::shrink) or [`expand`](Self::expand).
    pub fn note(&self, resident: u64) -> Advice {
        let mut state = self.state();
        state.resident = resident;
        let Some(watch) = &mut state.watch else {
            return Advice::default();
        };
        let advice = watch.step(resident);
        let allowed = watch.marks().hard;
        let was_short = self
            .shared
            .is_short
            .swap(advice.is_short, Ordering::Relaxed);
        let usages: Vec<Arc<CrawlUsage>> = state.usages.iter().filter_map(Weak::upgrade).collect();
        drop(state);
        match (was_short, advice.is_short) {
            (false, true) => tracing::warn!(
                resident,
                allowed,
                "memory is short: no page is taken, and caches shrink"
            ),
            (true, false) => {
                tracing::info!(resident, allowed, "memory is free again: pages are taken");
            }
            (true, true) | (false, false) => {}
        }
        if advice.puts_back && put_back_largest(&usages, resident, allowed) {
            self.shared.n_put_back.add(1);
        }
        for usage in &usages {
            usage.pass(advice.is_short);
        }
        if was_short != advice.is_short {
            usages.iter().for_each(|usage| usage.wake());
        }
        advice
    }

    /// Returns how the memory is used, as of the last sample.
    pub fn present_use(&self) -> MemoryUse {
        let state = self.state();
        MemoryUse {
            allowed: state.watch.as_ref().map(|watch| watch.marks().hard),
            is_short: self.is_short(),
            n_put_back: self.shared.n_put_back.read(),
        }
    }

    /// Makes caches smaller, and returns free memory to the operating system.
    pub fn shrink(&self) {
        self.caches().iter().for_each(|cache| cache(true));
        trim::trim();
    }

    /// Returns free memory to the operating system.
    fn trim(&self) {
        trim::trim();
    }

    /// True if a crawl uses this memory.
    fn has_crawls(&self) -> bool {
        let state = self.state();
        state.usages.iter().any(|usage| usage.strong_count() > 0)
    }

    /// Lets caches grow again, and returns free memory to the operating system: the end of a crawl may be why there is
    /// enough again.
    pub fn expand(&self) {
        self.caches().iter().for_each(|cache| cache(false));
        trim::trim();
    }

    /// Returns the reason why no page is taken; `None` while pages are.
    fn short(&self) -> Option<String> {
        if !self.is_short() {
            return None;
        }
        let state = self.state();
        let allowed = state.watch.as_ref().map_or(0, |watch| watch.marks().hard);
        Some(format!(
            "no page is taken while this worker uses {} of the {} that --memory allows",
            mib(state.resident),
            mib(allowed)
        ))
    }

    fn is_short(&self) -> bool {
        self.shared.is_short.load(Ordering::Relaxed)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let state = self.shared.state.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }

    fn caches(&self) -> MutexGuard<'_, Vec<Cache>> {
        let caches = self.shared.caches.lock();
        caches.unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.state();
        f.debug_struct("Memory")
            .field("watch", &state.watch)
            .field("resident", &state.resident)
            .finish_non_exhaustive()
    }
}

/// Tells the crawl that uses most that it is put back. A crawl that uses nothing, or is put back already,
/// would free nothing. Returns false if there is no other.
fn put_back_largest(usages: &[Arc<CrawlUsage>], resident: u64, allowed: u64) -> bool {
    let used = usages
        .iter()
        .filter(|usage| !usage.is_put_back())
        .map(|usage| (usage.bytes(), usage));
    let Some((bytes, largest)) = used
        .filter(|(bytes, _)| *bytes > 0)
        .max_by_key(|(bytes, _)| *bytes)
    else {
        return false;
    };
    let (resident, allowed, bytes) = (mib(resident), mib(allowed), mib(bytes));
    largest.put_back(format!(
        "put back: this worker uses {resident} of the {allowed} that --memory allows, and this crawl has {bytes} in use, more than any other; nothing is lost, and it goes on with fewer pages at once when memory is free; raise --memory of the worker, or lower --concurrency, --max-file, --limit memory or --limit body of the resource"
    ));
    true
}

fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

/// Takes samples of the memory until `stop`. Ends at once, with a warning, if the system does not tell how
/// much is used.
pub async fn watch(
    memory: Memory,
    mut resident: impl FnMut() -> Option<u64> + Send,
    stop: CancellationToken,
) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut was_short, mut had_crawls) = (false, false);
    // The next change.
    let mut wanted: Option<fn(&Memory)> = None;
    // The change in progress.
    let mut changing: Option<JoinHandle<()>> = None;
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        let Some(resident) = resident() else {
            tracing::warn!(
                "this system does not tell how much memory is used: --memory has no effect on crawls"
            );
            return;
        };
        let advice = memory.note(resident);
        let is_free_again = std::mem::replace(&mut was_short, advice.is_short) && !advice.is_short;
        let has_crawls = memory.has_crawls();
        let is_idle_now = std::mem::replace(&mut had_crawls, has_crawls) && !has_crawls;
        if advice.shrinks {
            wanted = Some(Memory::shrink);
        } else if is_free_again {
            wanted = Some(Memory::expand);
        } else if is_idle_now && wanted.is_none() {
            // An idle process allocates so little that its allocator would return nothing by itself.
            wanted = Some(Memory::trim);
        }
        // All threads for blocking work may be in use: samples are taken all the same.
        if changing
            .as_ref()
            .is_some_and(|changing| !changing.is_finished())
        {
            continue;
        }
        if let Some(changed) = changing.take()
            && let Err(error) = changed.await
        {
            tracing::error!(%error, "caches did not change their size");
        }
        changing = wanted.take().map(|change| {
            let memory = memory.clone();
            crate::task::spawn_blocking(move || change(&memory))
        });
    }
}

#[cfg(test)]
mod tests;
