//! Log file: read once at open, appended to, and replaced by a snapshot when it has grown.
//!
//! A new log is written beside the old one, synced, renamed over it, and the folder is synced, so that there is
//! one whole log under its name at every moment.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Write as _};
use std::path::{Path, PathBuf};

use super::frame::{self, Frame, HEAD_LEN, HEADER_LEN};
use super::state::{AppliedChange, Replayed, Stored};
use crate::{Revision, StoreError};

const NAME: &str = "store.log";
const NEXT_NAME: &str = "store.log.next";

/// Approximate size of the frames of a snapshot, in bytes.
const SNAPSHOT_FRAME_BYTES: usize = 1 << 20;

/// Number of bytes that a disk writes together: either all of them or none.
const SECTOR_BYTES: u64 = 512;

/// Outcome of an append.
#[derive(Debug)]
pub(super) enum Appended {
    /// The frame is on disk.
    Durable,
    /// The frame is not in the log.
    Refused(io::Error),
    /// The frame may be on disk. The log accepts no more until it is opened again.
    Unknown,
}

/// The open log.
#[derive(Debug)]
pub(super) struct Log {
    folder: PathBuf,
    path: PathBuf,
    file: File,
    /// Number of durable bytes; the file has no others between two appends.
    len: u64,
    /// Length from which a snapshot is due.
    snapshot_at: u64,
    snapshot_bytes: u64,
    /// True once the contents of the disk are no longer known.
    broken: bool,
}

impl Log {
    /// Reads the log of this folder, or creates an empty one.
    pub(super) fn open(folder: &Path, snapshot_bytes: u64) -> Result<(Self, Replayed), StoreError> {
        let path = folder.join(NAME);
        let failed = |doing| failed(doing, &path);
        let leftover = folder.join(NEXT_NAME);
        if leftover.exists() {
            std::fs::remove_file(&leftover).map_err(failed("remove what a crash left beside"))?;
        }
        if !path.exists() {
            write_new(folder, &[], Revision(0)).map_err(|e| failed("create")(e.cause))?;
        }
        let file = OpenOptions::new().read(true).append(true).open(&path);
        let file = file.map_err(failed("open"))?;
        let n_bytes = file.metadata().map_err(failed("read"))?.len();
        let mut reading = Reading {
            path: path.display().to_string(),
            source: BufReader::new(&file),
            offset: 0,
            n_bytes,
        };
        let replayed = reading.replay()?;
        let len = reading.offset;
        if len < n_bytes {
            tracing::warn!(path = %path.display(), n_bytes = n_bytes - len, "dropped the end of the log, which a crash cut short");
            file.set_len(len)
                .and_then(|()| file.sync_all())
                .map_err(failed("shorten"))?;
        }
        let snapshot_at = len.saturating_add(snapshot_bytes);
        let folder = folder.to_owned();
        let log = Self {
            folder,
            path,
            file,
            len,
            snapshot_at,
            snapshot_bytes,
            broken: false,
        };
        Ok((log, replayed))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes and syncs a frame. If the write fails, the part that was written is removed.
    pub(super) fn append(&mut self, frame: &[u8]) -> Appended {
        if self.broken {
            let why = "an earlier write failed and left the disk in doubt; start the process again";
            return Appended::Refused(io::Error::other(why));
        }
        if let Err(cause) = self.file.write_all(frame) {
            if let Err(error) = self.file.set_len(self.len) {
                tracing::error!(path = %self.path.display(), %error, "cannot take back a failed write; no more writes until restarted");
                self.broken = true;
            }
            return Appended::Refused(cause);
        }
        if let Err(error) = self.file.sync_data() {
            tracing::error!(path = %self.path.display(), %error, "cannot sync the log; no more writes until restarted");
            self.broken = true;
            return Appended::Unknown;
        }
        self.len += frame.len() as u64;
        Appended::Durable
    }

    pub(super) fn wants_snapshot(&self) -> bool {
        self.len >= self.snapshot_at && !self.broken
    }

    /// Starts a new log with these keys. If that fails, the old log stays in use.
    pub(super) fn replace(&mut self, entries: &[(String, Stored)], revision: Revision) {
        match write_new(&self.folder, entries, revision) {
            Ok((file, len)) => {
                self.file = file;
                self.len = len;
                // Otherwise, a state larger than the setting would be written again at every turn.
                self.snapshot_at = len.saturating_add(self.snapshot_bytes.max(len));
            }
            Err(NewLogError { cause, renamed }) => {
                tracing::warn!(path = %self.path.display(), error = %cause, "cannot replace the log by a snapshot");
                self.snapshot_at = self.len.saturating_add(self.snapshot_bytes);
                // If the new log was renamed, the file under the log's name is not the one that is open.
                self.broken = renamed;
            }
        }
    }
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError + use<> {
    let path = path.display().to_string();
    move |source| StoreError::Io {
        doing,
        path,
        source,
    }
}

struct NewLogError {
    cause: io::Error,
    /// True if the new log is already under its name. After a crash, it may or may not be there.
    renamed: bool,
}

/// Writes a log with these keys under the log's name, entirely or not at all.
fn write_new(
    folder: &Path,
    entries: &[(String, Stored)],
    revision: Revision,
) -> Result<(File, u64), NewLogError> {
    let (next, path) = (folder.join(NEXT_NAME), folder.join(NAME));
    let written = write_snapshot(&next, entries, revision);
    let renamed = written.and_then(|written| std::fs::rename(&next, &path).map(|()| written));
    let written = renamed.map_err(|cause| {
        // This is best effort: open removes a leftover too, but its space is released sooner here.
        let _still_there = std::fs::remove_file(&next);
        NewLogError {
            cause,
            renamed: false,
        }
    })?;
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        Ok(()) => Ok(written),
        Err(cause) => Err(NewLogError {
            cause,
            renamed: true,
        }),
    }
}

fn write_snapshot(
    path: &Path,
    entries: &[(String, Stored)],
    revision: Revision,
) -> io::Result<(File, u64)> {
    if path.exists() {
        std::fs::remove_file(path)?;
    }
    let mut file = OpenOptions::new()
        .append(true)
        .create_new(true)
        .open(path)?;
    file.write_all(&frame::header())?;
    file.write_all(&frame::start(revision, entries.len() as u64))?;
    let mut rest = entries;
    while !rest.is_empty() {
        let (part, after) = rest.split_at(n_fitting(rest));
        file.write_all(&frame::entries(part))?;
        rest = after;
    }
    file.sync_all()?;
    let len = file.metadata()?.len();
    Ok((file, len))
}

/// Returns how many of the first keys make one frame: at least one.
fn n_fitting(entries: &[(String, Stored)]) -> usize {
    let mut n_bytes = 0;
    let fitting = entries.iter().take_while(|(key, stored)| {
        n_bytes += key.len() + stored.value.len();
        n_bytes <= SNAPSHOT_FRAME_BYTES
    });
    fitting.count().max(1)
}

/// State of reading a log.
struct Reading<R> {
    path: String,
    source: R,
    /// Offset of the next frame; everything before it has been checked.
    offset: u64,
    n_bytes: u64,
}

impl<R: io::Read> Reading<R> {
    /// Reads the keys and the revision up to the last whole frame.
    fn replay(&mut self) -> Result<Replayed, StoreError> {
        self.check_header()?;
        let mut replayed = Replayed::default();
        let Some(Frame::Start {
            revision,
            n_entries,
        }) = self.frame()?
        else {
            return Err(self.damaged("no start frame"));
        };
        replayed.revision = revision;
        let mut n_left = n_entries;
        let mut begin = self.offset;
        while let Some(frame) = self.frame()? {
            let read = match frame {
                Frame::Entries(entries) => take_entries(&mut replayed, &mut n_left, entries),
                Frame::Txns(_) if n_left > 0 => Err("transactions before the snapshot is whole"),
                Frame::Txns(txns) => txns.into_iter().try_for_each(|txn| {
                    if txn.revision.0 != replayed.revision.0 + 1 {
                        return Err("a gap in the revisions");
                    }
                    replayed.revision = txn.revision;
                    for made in txn.made {
                        match made {
                            AppliedChange::Put(key, stored) => replayed.entries.insert(key, stored),
                            AppliedChange::Delete(key) => replayed.entries.remove(&key),
                        };
                    }
                    Ok(())
                }),
                Frame::Start { .. } => Err("a second start frame"),
            };
            read.map_err(|why| self.damaged_at(begin, why))?;
            begin = self.offset;
        }
        if n_left > 0 {
            return Err(self.damaged("the snapshot ends too early"));
        }
        Ok(replayed)
    }

    fn check_header(&mut self) -> Result<(), StoreError> {
        let mut header = [0; HEADER_LEN];
        if self.n_bytes < HEADER_LEN as u64 {
            return Err(self.damaged("no header"));
        }
        self.fill(&mut header)?;
        let (magic, format) = header.split_at(frame::MAGIC.len());
        if magic != frame::MAGIC {
            return Err(self.damaged("not the header of a store's log"));
        }
        let found = u32::from_le_bytes([format[0], format[1], format[2], format[3]]);
        if found != frame::FORMAT {
            return Err(StoreError::Format {
                path: self.path.clone(),
                found,
                known: frame::FORMAT,
            });
        }
        self.offset = HEADER_LEN as u64;
        Ok(())
    }

    /// Reads the next frame. Returns `None` at the end, and if a crash cut the last frame short.
    fn frame(&mut self) -> Result<Option<Frame>, StoreError> {
        let n_left = self.n_bytes - self.offset;
        if n_left < HEAD_LEN as u64 {
            return Ok(None);
        }
        let mut head = [0; HEAD_LEN];
        self.fill(&mut head)?;
        let Some(payload_len) = frame::payload_len(&head) else {
            // Some file systems grow a file before they write into it.
            return match has_unwritten_sector(&head, self.offset) && self.only_zeros_follow()? {
                true => Ok(None),
                false => Err(self.damaged("the head of a frame does not match its checksum")),
            };
        };
        let frame_len = HEAD_LEN as u64 + u64::from(payload_len);
        if frame_len > n_left {
            return Ok(None);
        }
        let mut payload = vec![0; payload_len as usize];
        self.fill(&mut payload)?;
        if !frame::is_whole(&head, &payload) {
            let payload_offset = self.offset + HEAD_LEN as u64;
            return match frame_len == n_left && has_unwritten_sector(&payload, payload_offset) {
                true => Ok(None),
                false => Err(self.damaged("a frame does not match its checksum")),
            };
        }
        let frame = frame::decode(&payload).map_err(|why| self.damaged(why))?;
        self.offset += frame_len;
        Ok(Some(frame))
    }

    fn only_zeros_follow(&mut self) -> Result<bool, StoreError> {
        let mut piece = [0; 8192];
        loop {
            match self.source.read(&mut piece) {
                Ok(0) => return Ok(true),
                Ok(n) if piece[..n].iter().all(|byte| *byte == 0) => {}
                Ok(_) => return Ok(false),
                Err(source) => return Err(self.unreadable(source)),
            }
        }
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), StoreError> {
        let filled = self.source.read_exact(buffer);
        filled.map_err(|source| self.unreadable(source))
    }

    fn unreadable(&self, source: io::Error) -> StoreError {
        StoreError::Io {
            doing: "read",
            path: self.path.clone(),
            source,
        }
    }

    fn damaged(&self, why: &str) -> StoreError {
        self.damaged_at(self.offset, why)
    }

    fn damaged_at(&self, offset: u64, why: &str) -> StoreError {
        StoreError::Damaged {
            path: self.path.clone(),
            offset,
            why: why.to_owned(),
        }
    }
}

fn take_entries(
    replayed: &mut Replayed,
    n_left: &mut u64,
    entries: Vec<(String, Stored)>,
) -> Result<(), &'static str> {
    let after = n_left.checked_sub(entries.len() as u64);
    *n_left = after.ok_or("more keys than the snapshot announced")?;
    for (key, stored) in entries {
        if stored.created > stored.revision || stored.revision > replayed.revision {
            return Err("a key from after the snapshot");
        }
        replayed.entries.insert(key, stored);
    }
    Ok(())
}

/// True if a last frame that fails its check was cut short by a crash rather than damaged later: a sector of it
/// was never written and reads as zeros.
fn has_unwritten_sector(bytes: &[u8], offset: u64) -> bool {
    let to_boundary = (SECTOR_BYTES - offset % SECTOR_BYTES) as usize;
    let (first, rest) = bytes.split_at(to_boundary.min(bytes.len()));
    let sectors = std::iter::once(first).chain(rest.chunks(SECTOR_BYTES as usize));
    sectors
        .filter(|sector| !sector.is_empty())
        .any(|sector| sector.iter().all(|byte| *byte == 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens a log whose file is replaced by this device.
    fn log_on(device: &str) -> (Log, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let (mut log, _) = Log::open(folder.path(), 1 << 20).unwrap();
        log.file = OpenOptions::new().append(true).open(device).unwrap();
        (log, folder)
    }

    #[track_caller]
    fn check_refuses_for_good(mut log: Log) {
        let again = log.append(b"frame");
        let in_doubt = |cause: &io::Error| cause.to_string().contains("start the process again");
        assert!(
            matches!(&again, Appended::Refused(cause) if in_doubt(cause)),
            "{again:?}"
        );
    }

    #[test]
    fn after_a_failed_sync_nothing_is_promised_and_nothing_is_taken() {
        let (mut log, _folder) = log_on("/dev/null");
        let appended = log.append(b"frame");
        assert!(matches!(appended, Appended::Unknown), "{appended:?}");
        check_refuses_for_good(log);
    }

    #[test]
    fn after_a_failed_write_that_cannot_be_taken_back_nothing_is_taken() {
        let (mut log, _folder) = log_on("/dev/full");
        let appended = log.append(b"frame");
        let full = |cause: &io::Error| cause.kind() == io::ErrorKind::StorageFull;
        assert!(
            matches!(&appended, Appended::Refused(cause) if full(cause)),
            "{appended:?}"
        );
        check_refuses_for_good(log);
    }
}
