//! Cache on the disk of this machine, for tables in a bucket: what has left memory need not be fetched again.
//!
//! The cache is one file without a name, which all frontiers of the process share. It is divided into slots of one piece
//! each, so it never grows beyond its bound, however many frontiers are open, and one frontier may use all of it. No
//! other process can open the file, and nothing of it is left when the process ends, however it ends.
//!
//! A table is written once and never changes, and no other table ever has its name. A piece of it stays valid until its
//! slot is needed for another one, even if the frontier is closed and opened again meanwhile.
//!
//! Only memory knows which piece a slot has, and its checksum. Bytes that the disk has changed or lost count as not
//! cached. An error of the disk is logged once, and costs nothing but requests.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crawler_process::task::blocking;
use slots::{Found, Slots};

mod slots;
#[cfg(test)]
mod tests;

/// Size in bytes of a piece. Smaller ones need more requests, and larger ones more time for each.
pub(super) const PIECE_BYTES: u64 = 64 << 10;

/// Pieces of one table, by their numbers.
pub(super) type Pieces = BTreeMap<u64, Bytes>;

/// Cache of pieces of tables on the disk of this machine.
#[derive(Debug)]
pub struct DiskCache {
    file: File,
    slots: Mutex<Slots>,
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
        let pieces = blocking(move || {
            let read = found.iter().map(|found| cache.read_slot(&table, found));
            read.flatten().collect::<Pieces>()
        });
        // An error means that the process is about to end.
        Some((table_bytes, pieces.await.ok()?))
    }

    /// Keeps pieces of a table of this size, as far as the disk takes them.
    pub(super) async fn write(self: &Arc<Self>, table: &str, table_bytes: u64, pieces: Pieces) {
        let (cache, table) = (Arc::clone(self), table.to_owned());
        let write = blocking(move || {
            for (number, bytes) in &pieces {
                cache.write_slot(&table, table_bytes, *number, bytes);
            }
        });
        // An error means that the process is about to end.
        let _written = write.await;
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
        let Some(slot) = self.slots().claim() else {
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
                "the cache of blocks in the state folder does not work; blocks are fetched from the bucket instead"
            );
        }
    }
}

fn offset_of(slot: usize) -> u64 {
    slot as u64 * PIECE_BYTES
}
