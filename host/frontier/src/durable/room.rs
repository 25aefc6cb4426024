//! Memory that all open frontiers of a process share, and the share of each.
//!
//! Memory for unflushed bytes is granted for as long as a frontier is open, because its database takes the
//! setting once: each gets a part of what is left. Room for URLs in memory is granted anew whenever some are
//! read in, and once a minute: an even share, plus what the others leave. Both have a minimum that each
//! frontier needs. With very many frontiers open at once, memory therefore grows by that minimum for each,
//! and no further.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::DurableSettings;

/// Minimum of unflushed bytes for any database.
const LEAST_UNFLUSHED: usize = 4 << 20;
/// Minimum of URLs that any frontier may keep in memory.
const LEAST_BUFFERED: usize = 1_024;

/// Shares of the frontiers that are open.
#[derive(Debug, Default)]
pub(super) struct Rooms {
    taken: Mutex<Taken>,
    /// Signals that memory has become short.
    shrunk: Notify,
}

#[derive(Debug, Default)]
struct Taken {
    n_open: usize,
    /// True if the process is short of memory: each frontier keeps the minimum.
    is_short: bool,
    unflushed_bytes: usize,
    n_buffered: usize,
}

/// Share of one frontier until this is dropped.
#[derive(Debug)]
pub(super) struct Room {
    rooms: Arc<Rooms>,
    pub(super) unflushed_bytes: usize,
    /// Number of URLs that it has said it keeps.
    n_buffered: Mutex<usize>,
}

impl Rooms {
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that memory is short, or not any more.
    pub(super) fn shrink(&self, is_short: bool) {
        self.taken().is_short = is_short;
        if is_short {
            self.shrunk.notify_waiters();
        }
    }

    /// Grants a share to a frontier that is about to be opened.
    pub(super) fn open(self: &Arc<Self>, settings: &DurableSettings) -> Room {
        let mut taken = self.taken();
        let unflushed_bytes = settings.unflushed_share(taken.unflushed_bytes);
        taken.n_open += 1;
        taken.unflushed_bytes += unflushed_bytes;
        Room {
            rooms: self.clone(),
            unflushed_bytes,
            n_buffered: Mutex::default(),
        }
    }
}

impl Room {
    /// Returns the number of URLs that the frontier may keep in memory at present, if it keeps `n_buffered` now.
    pub(super) fn max_buffered(&self, n_buffered: usize, settings: &DurableSettings) -> usize {
        let mut own = self.n_buffered();
        let mut taken = self.rooms.taken();
        let others = taken.n_buffered - *own;
        taken.n_buffered = others + n_buffered;
        *own = n_buffered;
        match taken.is_short {
            true => LEAST_BUFFERED.min(settings.max_buffered),
            false => settings.buffered_share(taken.n_open, others),
        }
    }

    /// Waits until memory becomes short.
    pub(super) async fn shrunk(&self) {
        self.rooms.shrunk.notified().await;
    }

    fn n_buffered(&self) -> MutexGuard<'_, usize> {
        self.n_buffered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let own = *self.n_buffered();
        let mut taken = self.rooms.taken();
        taken.n_open -= 1;
        taken.unflushed_bytes -= self.unflushed_bytes;
        taken.n_buffered -= own;
    }
}

impl DurableSettings {
    /// Returns the unflushed bytes granted to a database that is opened while others have `others` of them: a
    /// part of what is left, so that the next ones get some too, but at least the minimum that it needs.
    pub fn unflushed_share(&self, others: usize) -> usize {
        let left = self.all_unflushed_bytes.saturating_sub(others);
        let most = self.max_unflushed_bytes;
        (left / 4).clamp(LEAST_UNFLUSHED.min(most), most)
    }

    fn buffered_share(&self, n_open: usize, others: usize) -> usize {
        let left = self.all_buffered.saturating_sub(others);
        let even = self.all_buffered / n_open.max(1);
        let most = self.max_buffered;
        left.max(even).clamp(LEAST_BUFFERED.min(most), most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_frontiers_share_what_may_wait_to_be_written() {
        let settings = DurableSettings::default();
        let rooms = Arc::new(Rooms::default());
        let taken = || rooms.taken().unflushed_bytes;
        let mut open = vec![rooms.open(&settings)];
        assert_eq!(open[0].unflushed_bytes, settings.max_unflushed_bytes);
        while open.len() < 64 {
            open.push(rooms.open(&settings));
            let has_least = |room: &&Room| room.unflushed_bytes == LEAST_UNFLUSHED;
            let beyond = open.iter().filter(has_least).count() * LEAST_UNFLUSHED;
            let most = settings.all_unflushed_bytes + beyond;
            assert!(taken() <= most, "{} of {}", taken(), open.len());
        }
        assert!(
            open.iter()
                .all(|room| room.unflushed_bytes >= LEAST_UNFLUSHED)
        );
        open.truncate(1);
        assert_eq!(taken(), settings.max_unflushed_bytes);
        open.clear();
        assert_eq!(taken(), 0);
    }

    /// Lets each frontier keep as much as it wants and may.
    fn ask_all(open: &[(Room, usize)], kept: &mut [usize], settings: &DurableSettings) {
        for ((room, wanted), kept) in open.iter().zip(kept) {
            *kept = (*wanted).min(room.max_buffered(*kept, settings));
            room.max_buffered(*kept, settings);
        }
    }

    #[test]
    fn urls_are_shared_evenly_and_who_has_many_gets_what_others_leave() {
        let settings = DurableSettings::default();
        let all = settings.all_buffered;
        let rooms = Arc::new(Rooms::default());
        // Many small crawls leave room for a large one.
        let open: Vec<_> = (0..100)
            .map(|n| (rooms.open(&settings), if n == 0 { usize::MAX } else { 100 }))
            .collect();
        let mut kept = vec![0; open.len()];
        ask_all(&open, &mut kept, &settings);
        assert_eq!(kept[0], settings.max_buffered);
        drop(open);
        assert_eq!(rooms.taken().n_buffered, 0);

        // Frontiers that are opened later get their share, whatever was granted before.
        let mut open = Vec::new();
        let mut kept = Vec::new();
        for n in 1..=64 {
            open.push((rooms.open(&settings), usize::MAX));
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
        let rooms = Arc::new(Rooms::default());
        let room = rooms.open(&settings);
        assert_eq!(room.max_buffered(0, &settings), settings.max_buffered);
        rooms.shrink(true);
        assert_eq!(room.max_buffered(0, &settings), LEAST_BUFFERED);
        rooms.shrink(false);
        assert_eq!(room.max_buffered(0, &settings), settings.max_buffered);
    }

    #[test]
    fn no_frontier_has_less_than_it_needs_however_many_are_open() {
        let settings = DurableSettings::default();
        let rooms = Arc::new(Rooms::default());
        let open: Vec<Room> = (0..10_000).map(|_| rooms.open(&settings)).collect();
        for room in &open {
            assert!(room.unflushed_bytes >= LEAST_UNFLUSHED);
            assert!(room.max_buffered(LEAST_BUFFERED, &settings) >= LEAST_BUFFERED);
        }
    }
}
