//! File of the log, which is followed by the next one at a size and at an age.
//!
//! `PATH` is written, `PATH.1` is the file before it, and so on; the oldest goes. Files are renamed before the next one
//! is made. Until that is open, lines go on into the one before, so that none is lost. Lines that cannot be written go to
//! stderr, and a note tells so once.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::clock::Clock;

/// Time in milliseconds after which a rotation that has failed is tried again.
const RETRY_MS: u64 = 10_000;
/// Rights of a file: its user writes, its group reads.
const MODE: u32 = 0o640;

/// Settings of a file of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSettings {
    /// Path of the file: setting `log-file`.
    pub path: PathBuf,
    /// Bytes of a file: setting `log-file-size`. A longer line has a file of its own.
    pub size: u64,
    /// Age at which a file is followed by the next one: setting `log-file-age`.
    pub age: Duration,
    /// Number of files that are kept, with the one that is written; at least 2: setting `log-files`.
    pub files: u32,
}

/// File of the log.
pub(super) struct RotatingFile {
    settings: FileSettings,
    file: File,
    len: u64,
    /// Time of the first line, in milliseconds since 1970; of a file of an earlier process, the time at which it was
    /// made.
    since: u64,
    /// Time before which no rotation is tried, in milliseconds since 1970.
    retry_at: u64,
    /// True if it was told that the next file cannot be begun.
    is_stuck: bool,
    /// True if it was told that the file cannot be written.
    is_broken: bool,
    clock: Arc<dyn Clock>,
    /// Place for lines that cannot be written.
    stderr: Box<dyn Write + Send>,
}

impl RotatingFile {
    /// Opens the file, behind the lines that it has already.
    pub(super) fn open(
        settings: FileSettings,
        clock: Arc<dyn Clock>,
        stderr: Box<dyn Write + Send>,
    ) -> io::Result<Self> {
        let path = std::path::absolute(&settings.path)?;
        let settings = FileSettings { path, ..settings };
        let file = open(&settings.path)?;
        let metadata = file.metadata()?;
        let created = metadata.created().ok();
        let created = created.and_then(|created| created.duration_since(UNIX_EPOCH).ok());
        let created = created.and_then(|created| u64::try_from(created.as_millis()).ok());
        let now = clock.unix_millis();
        let mut opened = Self {
            len: metadata.len(),
            since: created.unwrap_or(now).min(now),
            retry_at: 0,
            is_stuck: false,
            is_broken: false,
            settings,
            file,
            clock,
            stderr,
        };
        if opened.ends_within_a_line()? {
            opened.append(b"\n");
        }
        Ok(opened)
    }

    /// Returns the folder that the files are in.
    pub(super) fn folder(&self) -> &Path {
        let path = &self.settings.path;
        path.parent().unwrap_or(path)
    }

    /// Writes whole lines.
    pub(super) fn write(&mut self, mut lines: &[u8]) {
        while !lines.is_empty() {
            let first = first_line(lines);
            let now = self.clock.unix_millis();
            if self.is_due(first, now) {
                self.rotate_or_go_on(now);
            }
            if self.len == 0 {
                self.since = now;
            }
            let room = self.settings.size.saturating_sub(self.len);
            let room = usize::try_from(room).unwrap_or(usize::MAX);
            let n_bytes = match lines.get(..room) {
                Some(fitting) => whole_lines(fitting).max(first),
                None => lines.len(),
            };
            let (present, later) = lines.split_at(n_bytes);
            self.append(present);
            lines = later;
        }
    }

    /// True if a line of this many bytes is one for the next file.
    fn is_due(&self, n_bytes: usize, now: u64) -> bool {
        let is_full = self.len.saturating_add(n_bytes as u64) > self.settings.size;
        let age = Duration::from_millis(now.saturating_sub(self.since));
        self.len > 0 && now >= self.retry_at && (is_full || age >= self.settings.age)
    }

    fn rotate_or_go_on(&mut self, now: u64) {
        let rotated = self.rotate();
        let is_first = !std::mem::replace(&mut self.is_stuck, rotated.is_err());
        if let Err(error) = rotated {
            self.retry_at = now + RETRY_MS;
            if is_first {
                self.tell(&format!("cannot begin the next file of the log: {error}"));
            }
        }
    }

    fn rotate(&mut self) -> io::Result<()> {
        let n_old = self.settings.files.saturating_sub(1);
        // Files from before a smaller setting.
        for surplus in n_old + 1.. {
            if fs::remove_file(self.numbered(surplus)).is_err() {
                break;
            }
        }
        // An earlier try may have got as far as to the next file: then the others have moved already.
        if self.settings.path.try_exists()? {
            for n in (1..n_old).rev() {
                rename(&self.numbered(n), &self.numbered(n + 1))?;
            }
            rename(&self.settings.path, &self.numbered(1))?;
        }
        self.file = open(&self.settings.path)?;
        self.len = 0;
        Ok(())
    }

    fn append(&mut self, lines: &[u8]) {
        let written = self.file.write_all(lines);
        let was_broken = std::mem::replace(&mut self.is_broken, written.is_err());
        match written {
            Ok(()) => {
                self.len += lines.len() as u64;
                if was_broken {
                    self.tell("the log is written again");
                }
            }
            Err(error) => {
                if !was_broken {
                    self.tell(&format!(
                        "cannot write the log, its lines come here: {error}"
                    ));
                }
                // A part of them may be there. If it cannot be taken away, the next line follows it.
                drop(self.file.set_len(self.len));
                self.write_to_stderr(lines);
            }
        }
    }

    fn tell(&mut self, what: &str) {
        let note = format!("{}: {what}\n", self.settings.path.display());
        self.write_to_stderr(note.as_bytes());
    }

    fn write_to_stderr(&mut self, text: &[u8]) {
        // There is nowhere else to tell it.
        drop(self.stderr.write_all(text));
    }

    /// True if the process that wrote the file before was ended within a line.
    fn ends_within_a_line(&self) -> io::Result<bool> {
        let Some(last) = self.len.checked_sub(1) else {
            return Ok(false);
        };
        let mut byte = [0];
        self.file.read_exact_at(&mut byte, last)?;
        Ok(byte != *b"\n")
    }

    fn numbered(&self, n: u32) -> PathBuf {
        let mut path = OsString::from(&self.settings.path);
        path.push(format!(".{n}"));
        path.into()
    }
}

/// Opens a file of the log to append to it, and keeps it from other processes.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true).read(true).mode(MODE);
    let file = options.open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(io::Error::other("another process writes to it")),
        // Some file systems have no locks.
        Ok(()) | Err(_) => Ok(file),
    }
}

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        renamed => renamed,
    }
}

/// Returns the number of bytes of the first line.
fn first_line(lines: &[u8]) -> usize {
    let end = lines.iter().position(|byte| *byte == b'\n');
    end.map_or(lines.len(), |end| end + 1)
}

/// Returns the number of bytes of all whole lines.
fn whole_lines(lines: &[u8]) -> usize {
    let end = lines.iter().rposition(|byte| *byte == b'\n');
    end.map_or(0, |end| end + 1)
}

#[cfg(test)]
mod tests;
