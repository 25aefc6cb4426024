//! Cache on the disk of this machine, for tables in a bucket: what has left memory need not be fetched again.
//!
//! The cache is one file without a name, which all frontiers of the process share. It is divided into slots of one piece
//! each, so it never grows beyond its bound, however many frontiers are open, and one frontier may use all of it. No
//! other process can open the file, and nothing of it is left when the process ends, however it ends.
//!
//! A table never changes once it can be read, and no other table ever has its name. A piece of it stays valid until its
//! slot is needed for another one, even if the frontier is closed and opened again meanwhile.
//!
//! Only memory knows which piece a slot has, and its checksum. Bytes that the disk has changed or lost count as not
//! cached. An error of the disk is logged once, and costs nothing but requests. So does a slow disk: a read that takes
//! longer than [`READ_DEADLINE`] finds nothing, nobody waits for a write, and few of both are under way at once, so
//! that the threads for other files are left alone.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Semaphore;

use crawler_process::task::{blocking, spawn_blocking};
use slots::{Found, Slots};

mod slots;
#[cfg(test)]
mod tests;

/// Size in bytes of a piece. Smaller ones need more requests, and larger ones more time for each.
pub(super) const PIECE_BYTES: u64 = 64 << 10;

/// Time after which a read finds nothing.
const READ_DEADLINE: Duration = Duration::from_secs(1);
/// Reads that are under way at once; others wait within their deadline.
const READS_MAX: usize = 8;
/// Writes that are under way at once; what comes beyond that is not kept.
const WRITES_MAX: usize = 4;

/// Pieces of one table, by their numbers.
pub(super) type Pieces = BTreeMap<u64, Bytes>;

/// Cache of pieces of tables on the disk of this machine.
#[derive(Debug)]
pub struct DiskCache {
    file: File,
    slots: Mutex<Slots>,
    reads: Arc<Semaphore>,
    writes: Arc<Semaphore>,
    /// True once an error of the disk has been logged.
    has_warned: AtomicBool,
}

impl DiskCache {
    /// Creates an empty cache of at most this size, in this folder. The folder is created if it is missing.
    pub fn create(folder: &Path, max_bytes: u64) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        Ok(Self::in_file(tempfile::tempfile_in(folder)?, max_bytes))
    }

    /// Creates an empty cache in a file that nothing else uses.
    pub(super) fn in_file(file: File, max_bytes: u64) -> Self {
        let n_slots = usize::try_from(max_bytes / PIECE_BYTES).unwrap_or(usize::MAX);
        Self {
            file,
            slots: Mutex::new(Slots::new(n_slots)),
            reads: Arc::new(Semaphore::new(READS_MAX)),
            writes: Arc::new(Semaphore::new(WRITES_MAX)),
            has_warned: AtomicBool::new(false),
        }
    }

    /// Returns the size of a table in bytes, and those of its pieces with these numbers that are cached. `None` if
    /// nothing of the table is.
    pub(super) async fn read(
        self: &Arc<Self>,
        table: &str,
        numbers: Range<u64>,
    ) -> Option<(u64, Pieces)> {
        let (table_bytes, found) = self.slots().find(table, numbers)?;
        if found.is_empty() {
            return Some((table_bytes, Pieces::new()));
        }
        let (cache, table) = (Arc::clone(self), table.to_owned());
        let pieces = async {
            // The permit goes with the work, which a caller that gives up does not end.
            let permit = Arc::clone(&self.reads).acquire_owned().await.ok()?;
            let pieces = blocking(move || {
                let _permit = permit;
                let read = found.iter().map(|found| cache.read_slot(&table, found));
                read.flatten().collect::<Pieces>()
            });
            // An error means that the process is about to end.
            pieces.await.ok()
        };
        match tokio::time::timeout(READ_DEADLINE, pieces).await {
            Ok(pieces) => Some((table_bytes, pieces?)),
            Err(_elapsed) => {
                self.warn("read", &io::ErrorKind::TimedOut.into());
                Some((table_bytes, Pieces::new()))
            }
        }
    }

    /// Begins to keep pieces of a table of this size, as far as the disk takes them.
    pub(super) fn write(self: &Arc<Self>, table: &str, table_bytes: u64, pieces: Pieces) {
        let Ok(permit) = Arc::clone(&self.writes).try_acquire_owned() else {
            return;
        };
        let (cache, table) = (Arc::clone(self), table.to_owned());
        drop(spawn_blocking(move || {
            let _permit = permit;
            for (number, bytes) in &pieces {
                cache.write_slot(&table, table_bytes, *number, bytes);
            }
        }));
    }

    /// Waits until all writes are done.
    #[cfg(test)]
    pub(super) async fn settled(&self) {
        let all = self.writes.acquire_many(WRITES_MAX as u32).await;
        drop(all.expect("nobody closes it"));
    }

    /// Drops all pieces of a table.
    pub(super) fn forget(&self, table: &str) {
        self.slots().forget(table);
    }

    /// Returns the number and the bytes of a piece. `None` if they are not the bytes that were written.
    fn read_slot(&self, table: &str, found: &Found) -> Option<(u64, Bytes)> {
        let mut bytes = vec![0; found.n_bytes];
        match self.file.read_exact_at(&mut bytes, offset_of(found.slot)) {
            Ok(()) if crc32fast::hash(&bytes) == found.checksum => {
                return Some((found.number, bytes.into()));
            }
            // The slot may have been given to another piece since it was found.
            Ok(()) => {}
            Err(error) => self.warn("read", &error),
        }
        self.slots().discard(table, found);
        None
    }

    fn write_slot(&self, table: &str, table_bytes: u64, number: u64, bytes: &[u8]) {
        let Some(slot) = self.slots().claim(table, number) else {
            return;
        };
        match self.file.write_all_at(bytes, offset_of(slot)) {
            Ok(()) => {
                let checksum = crc32fast::hash(bytes);
                self.slots()
                    .keep(slot, (table, table_bytes), number, checksum);
            }
            Err(error) => {
                self.slots().give_back(slot);
                self.warn("write", &error);
            }
        }
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn warn(&self, doing: &'static str, error: &io::Error) {
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                doing,
                %error,
                "the cache of blocks in the state folder has failed; what it does not give is fetched from the bucket"
            );
        }
    }
}

fn offset_of(slot: usize) -> u64 {
    slot as u64 * PIECE_BYTES
}
