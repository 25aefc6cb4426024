//! The folder of stored answers: a file for each, which is replaced as a whole. The modification time of a file
//! is the time of its last use, and those used least recently go when there is no room for the next one.
//!
//! Several processes may share a folder. Each counts what it writes itself, and scans the folder again once it has
//! written a part of what the folder may hold. Files of other names are not counted and stay.

use std::fs::{self, DirBuilder, File, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, TryLockError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use tempfile::{Builder, NamedTempFile};

use super::entry::{self, Found, Head};
use crawler_model::crawl::UnixMillis;
use crawler_model::id::Digest;
use crawler_process::memory::MemoryReservation;

/// Beginning and ending of the names of files that are being written.
const UNFINISHED: (&str, &str) = (".answer-", ".part");
/// Bits of a mode that let others write.
const OTHERS_WRITE: u32 = 0o022;
/// Age from which an unfinished file was left by a process that is gone.
const LEFT_BEHIND: Duration = Duration::from_secs(60 * 60);
/// Divisor of the folder's size that gives the bytes that a process writes between two scans.
const SCAN_SHARE: u64 = 16;
/// Divisor of the folder's size that gives the bytes that are made free beyond the room that is needed, so that not
/// every further answer needs a scan.
const FREE_SHARE: u64 = 8;

/// The folder of stored answers.
#[derive(Debug)]
pub(super) struct CacheFolder {
    path: PathBuf,
    max_bytes: u64,
    /// If `None`, the folder was not scanned yet.
    usage: Mutex<Option<Usage>>,
    /// Bytes that were written while another thread had the lock.
    n_uncounted: AtomicU64,
}

/// Size of the folder, as this process knows it.
#[derive(Debug, Clone, Copy)]
struct Usage {
    n_bytes: u64,
    /// Bytes that this process has written since its last scan.
    n_written: u64,
}

/// File of an answer.
struct Stored {
    used_at: SystemTime,
    n_bytes: u64,
    path: PathBuf,
}

impl CacheFolder {
    /// Opens a folder. It is made if it is missing, for this user alone. One that others may write to is refused,
    /// because the answers in it may be theirs.
    pub(super) fn open(path: &Path, max_bytes: u64) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        if let Some(why) = not_ours(&fs::metadata(path)?) {
            return Err(io::Error::other(why));
        }
        let folder = Self {
            path: std::path::absolute(path)?,
            max_bytes,
            usage: Mutex::new(None),
            n_uncounted: AtomicU64::new(0),
        };
        // A folder that cannot be written to is told at once.
        folder.unfinished()?.close()?;
        Ok(folder)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the answer with this key, if it is younger than `max_age`, and notes that it was used. A file that is no
    /// whole answer is removed.
    pub(super) fn read(
        &self,
        key: Digest,
        max_age: Option<Duration>,
        most: u64,
        held: MemoryReservation,
        now: UnixMillis,
    ) -> Option<Found> {
        // The age of an answer is not known if the clock was set back since.
        let age_of = |head: &Head| now.checked_sub(head.stored_at).map(Duration::from_millis);
        let is_young =
            |head: &Head| max_age.is_none_or(|max| age_of(head).is_some_and(|age| age < max));
        let path = self.path.join(entry::file_name(key));
        let read = || -> io::Result<Option<Found>> {
            let file = File::open(&path)?;
            let Some(found) = entry::read(&file, is_young, most, held)? else {
                return Ok(None);
            };
            // If it fails, the answer only counts as unused.
            let _noted = file.set_modified(moment(now));
            Ok(Some(found))
        };
        match read() {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                let is_torn = entry::is_torn(&error);
                tracing::debug!(path = %path.display(), %error, is_removed = is_torn, "a file of the cache cannot be used");
                if is_torn {
                    // Another process may have removed it, or it is met again.
                    let _removed = fs::remove_file(&path);
                }
                None
            }
        }
    }

    /// Writes an answer, and makes room for it. An answer that is larger than the whole folder may be is not written.
    pub(super) fn write(&self, key: Digest, head: &Head, body: &Bytes) -> io::Result<()> {
        let json = serde_json::to_vec(head)?;
        let n_bytes = entry::size(&json, body);
        if n_bytes > self.max_bytes {
            let max = self.max_bytes;
            tracing::debug!(
                n_bytes,
                max,
                "an answer is larger than --cache-size lets the whole cache be: it is not stored"
            );
            return Ok(());
        }
        self.make_room(n_bytes, moment(head.stored_at))?;
        let mut file = self.unfinished()?;
        entry::write(file.as_file_mut(), &json, body)?;
        file.as_file().set_modified(moment(head.stored_at))?;
        file.persist(self.path.join(entry::file_name(key)))?;
        Ok(())
    }

    /// Creates a file that only this user reads, and that is removed unless it gets a name.
    fn unfinished(&self) -> io::Result<NamedTempFile> {
        let (beginning, ending) = UNFINISHED;
        let mut builder = Builder::new();
        builder.prefix(beginning).suffix(ending);
        builder.tempfile_in(&self.path)
    }

    /// Counts an answer that is about to be written, after files were removed as far as it needs room.
    fn make_room(&self, n_bytes: u64, now: SystemTime) -> io::Result<()> {
        let mut usage = match self.usage.try_lock() {
            Ok(usage) => usage,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Another thread may be scanning the folder, which takes long. The next one to count adds this answer.
            Err(TryLockError::WouldBlock) => {
                self.n_uncounted.fetch_add(n_bytes, Ordering::Relaxed);
                return Ok(());
            }
        };
        let n_bytes = n_bytes.saturating_add(self.n_uncounted.swap(0, Ordering::Relaxed));
        let fits = |usage: &Usage| {
            usage.n_bytes.saturating_add(n_bytes) <= self.max_bytes
                && usage.n_written <= self.max_bytes / SCAN_SHARE
        };
        let known = match usage.filter(fits) {
            Some(usage) => usage,
            None => Usage {
                n_bytes: self.swept(n_bytes, now)?,
                n_written: 0,
            },
        };
        *usage = Some(Usage {
            n_bytes: known.n_bytes.saturating_add(n_bytes),
            n_written: known.n_written.saturating_add(n_bytes),
        });
        Ok(())
    }

    /// Removes the answers used least recently until there is room for `n_bytes` more, if there is none. Returns the
    /// size of those that stay.
    fn swept(&self, n_bytes: u64, now: SystemTime) -> io::Result<u64> {
        let mut all = self.stored(now)?;
        let mut size: u64 = all.iter().map(|stored| stored.n_bytes).sum();
        if size.saturating_add(n_bytes) <= self.max_bytes {
            return Ok(size);
        }
        let wanted = (self.max_bytes - self.max_bytes / FREE_SHARE).saturating_sub(n_bytes);
        all.sort_unstable_by_key(|stored| stored.used_at);
        let (mut n_removed, mut kept) = (0, None);
        for stored in all {
            if size <= wanted {
                break;
            }
            match fs::remove_file(&stored.path) {
                // The next one may go.
                Err(error) if error.kind() != io::ErrorKind::NotFound => kept = Some(error),
                _ => {
                    size -= stored.n_bytes;
                    n_removed += 1;
                }
            }
        }
        if let Some(error) = kept.filter(|_| size.saturating_add(n_bytes) > self.max_bytes) {
            return Err(error);
        }
        tracing::debug!(
            n_removed,
            "answers used least recently were removed, as --cache-size asks"
        );
        Ok(size)
    }

    /// Returns the files of all answers. Unfinished ones that were left behind are removed.
    fn stored(&self, now: SystemTime) -> io::Result<Vec<Stored>> {
        let mut all = Vec::new();
        for file in fs::read_dir(&self.path)? {
            let file = file?;
            let name = file.file_name();
            let Some(name) = name.to_str() else { continue };
            let is_unfinished = name.starts_with(UNFINISHED.0) && name.ends_with(UNFINISHED.1);
            if !is_unfinished && !entry::is_file_name(name) {
                continue;
            }
            // Another process may have removed it.
            let Ok(metadata) = file.metadata() else {
                continue;
            };
            let used_at = metadata.modified()?;
            let age = now.duration_since(used_at).unwrap_or_default();
            if is_unfinished && age > LEFT_BEHIND {
                let _removed = fs::remove_file(file.path());
            } else if !is_unfinished && metadata.is_file() {
                all.push(Stored {
                    used_at,
                    n_bytes: metadata.len(),
                    path: file.path(),
                });
            }
        }
        Ok(all)
    }
}

/// Returns why a folder is not this user's alone to write to, if it is not.
fn not_ours(metadata: &Metadata) -> Option<&'static str> {
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Some("it belongs to another user; choose another folder");
    }
    let why = "others may write to it; take that away with chmod go-w, or choose another folder";
    (metadata.mode() & OTHERS_WRITE != 0).then_some(why)
}

fn moment(unix_millis: UnixMillis) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(unix_millis)
}

#[cfg(test)]
mod tests;
