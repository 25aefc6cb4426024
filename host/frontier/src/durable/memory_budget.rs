//! Memory that all open frontiers of a process share, and the share of each.
//!
//! Memory for unflushed bytes is granted for as long as a frontier is open, because its database takes the
//! setting once: each gets a part of what is left. A number of URLs in memory is granted anew whenever some are
//! read in, and once a minute: an even share, plus what the others leave. Both have a minimum that each
//! frontier needs. With very many frontiers open at once, memory therefore grows by that minimum for each,
//! and no further.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::DurableSettings;

/// Minimum of unflushed bytes for any database.
const MIN_UNFLUSHED_BYTES: usize = 4 << 20;
/// Minimum of URLs that any frontier may keep in memory.
const MIN_BUFFERED_URLS: usize = 1_024;

/// Shares of the frontiers that are open.
#[derive(Debug, Default)]
pub(super) struct MemoryBudget {
    granted: Mutex<Granted>,
    /// Signals that memory has become short.
    shrunk: Notify,
}

#[derive(Debug, Default)]
struct Granted {
    n_open: usize,
    /// True if the process is short of memory: each frontier keeps the minimum.
    is_short: bool,
    unflushed_bytes: usize,
    n_buffered: usize,
}

/// Share of one frontier until this is dropped.
#[derive(Debug)]
pub(super) struct MemoryShare {
    budget: Arc<MemoryBudget>,
    pub(super) unflushed_bytes: usize,
    /// Number of URLs that it has said it keeps.
    n_buffered: Mutex<usize>,
}

impl MemoryBudget {
    fn granted(&self) -> MutexGuard<'_, Granted> {
        self.granted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that memory is short, or not any more.
    pub(super) fn shrink(&self, is_short: bool) {
        self.granted().is_short = is_short;
        if is_short {
            self.shrunk.notify_waiters();
        }
    }

    /// Grants a share to a frontier that is about to be opened.
    pub(super) fn open(self: &Arc<Self>, settings: &DurableSettings) -> MemoryShare {
        let mut granted = self.granted();
        let unflushed_bytes = settings.unflushed_share(granted.unflushed_bytes);
        granted.n_open += 1;
        granted.unflushed_bytes += unflushed_bytes;
        MemoryShare {
            budget: self.clone(),
            unflushed_bytes,
            n_buffered: Mutex::default(),
        }
    }
}

impl MemoryShare {
    /// Returns the number of URLs that the frontier may keep in memory at present, if it keeps `n_buffered` now.
    pub(super) fn max_buffered(&self, n_buffered: usize, settings: &DurableSettings) -> usize {
        let mut own = self.n_buffered();
        let mut granted = self.budget.granted();
        let others = granted.n_buffered - *own;
        granted.n_buffered = others + n_buffered;
        *own = n_buffered;
        match granted.is_short {
            true => MIN_BUFFERED_URLS.min(settings.max_buffered),
            false => settings.buffered_share(granted.n_open, others),
        }
    }

    /// Waits until memory becomes short.
    pub(super) async fn shrunk(&self) {
        self.budget.shrunk.notified().await;
    }

    fn n_buffered(&self) -> MutexGuard<'_, usize> {
        self.n_buffered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        let own = *self.n_buffered();
        let mut granted = self.budget.granted();
        granted.n_open -= 1;
        granted.unflushed_bytes -= self.unflushed_bytes;
        granted.n_buffered -= own;
    }
}

impl DurableSettings {
    /// Returns the unflushed bytes granted to a database that is opened while others have `others` of them: a
    /// part of what is left, so that the next ones get some too, but at least the minimum that it needs.
    pub fn unflushed_share(&self, others: usize) -> usize {
        let left = self.all_unflushed_bytes.saturating_sub(others);
        let most = self.max_unflushed_bytes;
        (left / 4).clamp(MIN_UNFLUSHED_BYTES.min(most), most)
    }

    fn buffered_share(&self, n_open: usize, others: usize) -> usize {
        let left = self.all_buffered.saturating_sub(others);
        let even = self.all_buffered / n_open.max(1);
        let most = self.max_buffered;
        left.max(even).clamp(MIN_BUFFERED_URLS.min(most), most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_frontiers_share_what_may_wait_to_be_written() {
        let settings = DurableSettings::default();
        let budget = Arc::new(MemoryBudget::default());
        let granted = || budget.granted().unflushed_bytes;
        let mut open = vec![budget.open(&settings)];
        assert_eq!(open[0].unflushed_bytes, settings.max_unflushed_bytes);
        while open.len() < 64 {
            open.push(budget.open(&settings));
            let has_least = |share: &&MemoryShare| share.unflushed_bytes == MIN_UNFLUSHED_BYTES;
            let beyond = open.iter().filter(has_least).count() * MIN_UNFLUSHED_BYTES;
            let most = settings.all_unflushed_bytes + beyond;
            assert!(granted() <= most, "{} of {}", granted(), open.len());
        }
        assert!(
            open.iter()
                .all(|share| share.unflushed_bytes >= MIN_UNFLUSHED_BYTES)
        );
        open.truncate(1);
        assert_eq!(granted(), settings.max_unflushed_bytes);
        open.clear();
        assert_eq!(granted(), 0);
    }

    /// Lets each frontier keep as much as it wants and may.
    fn ask_all(open: &[(MemoryShare, usize)], kept: &mut [usize], settings: &DurableSettings) {
        for ((share, wanted), kept) in open.iter().zip(kept) {
            *kept = (*wanted).min(share.max_buffered(*kept, settings));
            share.max_buffered(*kept, settings);
        }
    }

    #[test]
    fn urls_are_shared_evenly_and_who_has_many_gets_what_others_leave() {
        let settings = DurableSettings::default();
        let all = settings.all_buffered;
        let budget = Arc::new(MemoryBudget::default());
        // Many small crawls leave room for a large one.
        let open: Vec<_> = (0..100)
            .map(|n| {
                (
                    budget.open(&settings),
                    if n == 0 { usize::MAX } else { 100 },
                )
            })
            .collect();
        let mut kept = vec![0; open.len()];
        ask_all(&open, &mut kept, &settings);
        assert_eq!(kept[0], settings.max_buffered);
        drop(open);
        assert_eq!(budget.granted().n_buffered, 0);

        // Frontiers that are opened later get their share, whatever was granted before.
        let mut open = Vec::new();
        let mut kept = Vec::new();
        for n in 1..=64 {
            open.push((budget.open(&settings), usize::MAX));
            kept.push(0);
            ask_all(&open, &mut kept, &settings);
            ask_all(&open, &mut kept, &settings);
            assert!(kept.iter().sum::<usize>() <= all, "{kept:?}");
            let even = (all / n).min(settings.max_buffered);
            assert!(kept.iter().all(|kept| *kept >= even / 2), "{kept:?}");
        }
    }

    #[test]
    fn while_memory_is_short_each_keeps_the_least() {
        let settings = DurableSettings::default();
        let budget = Arc::new(MemoryBudget::default());
        let share = budget.open(&settings);
        assert_eq!(share.max_buffered(0, &settings), settings.max_buffered);
        budget.shrink(true);
        assert_eq!(share.max_buffered(0, &settings), MIN_BUFFERED_URLS);
        budget.shrink(false);
        assert_eq!(share.max_buffered(0, &settings), settings.max_buffered);
    }

    #[test]
    fn no_frontier_has_less_than_it_needs_however_many_are_open() {
        let settings = DurableSettings::default();
        let budget = Arc::new(MemoryBudget::default());
        let open: Vec<MemoryShare> = (0..10_000).map(|_| budget.open(&settings)).collect();
        for share in &open {
            assert!(share.unflushed_bytes >= MIN_UNFLUSHED_BYTES);
            assert!(share.max_buffered(MIN_BUFFERED_URLS, &settings) >= MIN_BUFFERED_URLS);
        }
    }
}
