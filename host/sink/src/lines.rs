//! Items as JSON lines in a folder, one folder for each shard.
//!
//! ```text
//! items/<resource id>/<shard>/<storage epoch>-<n>.jsonl    one item record a line
//! ```
//!
//! Each opening of a frontier has a storage epoch of its own, so no two lives ever write to one file. A batch
//! is appended and synced, with the folder if the file is new. Then the answer tells how much of the file
//! counts, and the frontier keeps that in the batch that empties its outbox. Bytes behind that length do not
//! count: the reader stops there, and they are cut off before the next append. So a batch can be tried
//! again without a torn or doubled line. If somebody removes a file or cuts it short, the next file follows.
//!
//! In the end, the leader delivers the items that a deleted resource's frontier holds and no sink has. It
//! writes them into files of storage epochs that no frontier has, in a folder that readers skip until
//! everything is written.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use super::{Sink, SinkError, Written, push_line};
use crawler_model::crawl::ItemRecord;
use crawler_model::id::Run;
use crawler_process::stage::Stage;

use disk::{blocking, create_folder, failed, sync_folder};
use mark::LineMark;
use names::FileId;
use reader::LineReader;

pub use exported::ExportedLines;
pub use folders::LineFolders;

mod disk;
mod exported;
mod folders;
mod mark;
mod names;
mod reader;
#[cfg(test)]
pub(crate) mod tests;
mod truncate;

/// Bounds of line files.
#[derive(Debug, Clone)]
pub struct LineSettings {
    /// Size in bytes beyond which the next file follows. One batch is never split.
    pub max_file_bytes: u64,
}

impl Default for LineSettings {
    fn default() -> Self {
        Self {
            max_file_bytes: 256 << 20,
        }
    }
}

/// Line files of one shard, written in one life of its frontier.
#[derive(Debug)]
pub struct LineFiles {
    folder: PathBuf,
    storage_epoch: u64,
    settings: LineSettings,
    /// File and length that the last answer confirmed. If the caller of a write went away, the write
    /// confirmed nothing, so the next one takes back the bytes that it wrote.
    current: Option<CurrentFile>,
    /// True if a file has a mark before it has a line.
    reserves: bool,
    /// Number of writes so far.
    n_writes: u64,
    /// Writer, locked on the blocking threads only: a write whose caller went away goes on there.
    writer: Arc<Mutex<Writer>>,
}

#[derive(Debug, Default)]
struct Writer {
    /// Number of the latest write that has begun; an earlier one that comes late must not undo it.
    latest: u64,
    open: Option<OpenFile>,
}

/// File that is written to.
#[derive(Debug, Clone)]
struct CurrentFile {
    n: u64,
    /// Number of bytes that an answer has confirmed.
    length: u64,
    /// First and last run in the file.
    runs: (Run, Run),
}

/// An open file, and its number.
#[derive(Debug)]
struct OpenFile {
    n: u64,
    file: File,
    /// True if its name is durable in the folder.
    is_named: bool,
}

impl LineFiles {
    /// Opens the files of a shard's folder in the life of this storage epoch. Nothing is made before the
    /// first write. That makes the folder and the one above it, but none further up: a data root that was
    /// taken away must not come back half-empty.
    pub fn open(folder: PathBuf, storage_epoch: u64, settings: LineSettings) -> Self {
        Self {
            folder,
            storage_epoch,
            settings,
            current: None,
            reserves: false,
            n_writes: 0,
            writer: Arc::default(),
        }
    }

    /// Returns these files so that each gets a mark of length 0 before its first line. The first write to a file counts
    /// no item, and is to be repeated once the mark is durable.
    pub(super) fn reserving(self) -> Self {
        Self {
            reserves: true,
            ..self
        }
    }
}

#[async_trait]
impl Sink for LineFiles {
    async fn write(&mut self, _first: u64, items: &[ItemRecord]) -> Result<Written, SinkError> {
        let runs = items.iter().map(|record| record.run);
        let (Some(first), Some(last)) = (runs.clone().min(), runs.max()) else {
            return Ok(Written::default());
        };
        let mut lines = Vec::new();
        for record in items {
            push_line(&mut lines, record)?;
        }
        let append = Append {
            folder: self.folder.clone(),
            storage_epoch: self.storage_epoch,
            max_file_bytes: self.settings.max_file_bytes,
            current: self.current.clone(),
            reserves: self.reserves,
        };
        self.n_writes += 1;
        let (nth, writer) = (self.n_writes, Arc::clone(&self.writer));
        let current = blocking(&self.folder, move || {
            let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
            if nth < writer.latest {
                let late = io::Error::new(ErrorKind::Interrupted, "a later write was quicker");
                return Err(failed("write", &append.folder)(late));
            }
            writer.latest = nth;
            Stage::Sink.charge(|| append.run(&mut writer.open, &lines, (first, last)))
        })
        .await?;
        let mark = LineMark {
            file: FileId {
                storage_epoch: self.storage_epoch,
                n: current.n,
            },
            length: current.length,
            runs: current.runs,
        };
        let is_reserved_only = current.length == 0;
        self.current = Some(current);
        Ok(Written {
            n_items: if is_reserved_only {
                0
            } else {
                items.len() as u64
            },
            mark: Some(mark.encode()),
            ..Written::default()
        })
    }

    /// Returns true if the next opening cuts off what a write has left, so that readers without marks see no part of it.
    fn is_cancel_safe(&self) -> bool {
        self.reserves
    }
}

/// A batch on its way into the files.
struct Append {
    folder: PathBuf,
    storage_epoch: u64,
    max_file_bytes: u64,
    current: Option<CurrentFile>,
    reserves: bool,
}

impl Append {
    fn run(
        self,
        open: &mut Option<OpenFile>,
        lines: &[u8],
        (first, last): (Run, Run),
    ) -> Result<CurrentFile, SinkError> {
        let n_bytes = lines.len() as u64;
        // A file that is only reserved has room for any batch.
        let has_room = |current: &&CurrentFile| {
            current.length == 0 || current.length + n_bytes <= self.max_file_bytes
        };
        let continued = self.current.as_ref().filter(has_room);
        let answered = self.current.as_ref().map(|current| current.n);
        let file = match (continued, open.take()) {
            (Some(current), Some(file)) if file.n == current.n => file,
            // The file was made by a write that confirmed nothing.
            (_, Some(file)) if Some(file.n) != answered => file,
            (Some(current), _) => match self.reopen(current)? {
                Some(file) => file,
                None => self.create(current.n + 1)?,
            },
            (None, _) => self.create(answered.map_or(0, |n| n + 1))?,
        };
        let (length, runs) = match continued.filter(|current| current.n == file.n) {
            Some(current) => (
                current.length,
                (current.runs.0.min(first), current.runs.1.max(last)),
            ),
            None => (0, (first, last)),
        };
        let is_known = continued.is_some_and(|current| current.n == file.n);
        let file = open.insert(file);
        let (n, path) = (file.n, self.path_of(file.n));
        if let Err(error) = cut(&mut file.file, length) {
            *open = None;
            return Err(failed("cut", &path)(error));
        }
        let is_reservation = self.reserves && !is_known;
        if !is_reservation {
            file.file.write_all(lines).map_err(failed("write", &path))?;
            file.file.sync_data().map_err(failed("sync", &path))?;
        }
        if !file.is_named {
            sync_folder(&self.folder)?;
            file.is_named = true;
        }
        if let Err(error) = check_name(&file.file, &path) {
            *open = None;
            return Err(failed("write", &path)(error));
        }
        let n_bytes = if is_reservation { 0 } else { n_bytes };
        Ok(CurrentFile {
            n,
            length: length + n_bytes,
            runs,
        })
    }

    fn path_of(&self, n: u64) -> PathBuf {
        self.folder.join(names::file(self.storage_epoch, n))
    }

    /// Returns the current file, or `None` if it is gone or has lost confirmed lines. The lost lines stay
    /// lost; the next items must not wait for them.
    fn reopen(&self, current: &CurrentFile) -> Result<Option<OpenFile>, SinkError> {
        let path = self.path_of(current.n);
        let file = match OpenOptions::new().write(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                tracing::error!(path = %path.display(), "a file of items was removed");
                return Ok(None);
            }
            Err(error) => return Err(failed("open", &path)(error)),
        };
        let length = file.metadata().map_err(failed("open", &path))?.len();
        if length < current.length {
            tracing::error!(path = %path.display(), "a file of items was cut short");
            return Ok(None);
        }
        // A write to it was confirmed once, so its name is durable.
        Ok(Some(OpenFile {
            n: current.n,
            file,
            is_named: true,
        }))
    }

    /// Creates the first file from `n` on that does not exist yet. A file that no answer has confirmed does
    /// no harm: it has no mark.
    fn create(&self, mut n: u64) -> Result<OpenFile, SinkError> {
        create_folder(&self.folder)?;
        loop {
            let path = self.path_of(n);
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => {
                    return Ok(OpenFile {
                        n,
                        file,
                        is_named: false,
                    });
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => n += 1,
                Err(error) => return Err(failed("create", &path)(error)),
            }
        }
    }
}

/// Cuts a file to `length` bytes, and moves its cursor there.
fn cut(file: &mut File, length: u64) -> io::Result<()> {
    let current = file.metadata()?.len();
    if current < length {
        return Err(io::Error::new(
            ErrorKind::InvalidData,
            format!("it has {current} of the {length} bytes that were committed"),
        ));
    }
    if current > length {
        file.set_len(length)?;
    }
    file.seek(SeekFrom::Start(length)).map(drop)
}

/// Checks that the path still leads to the open file. A file can be written to after its name was removed,
/// but nobody would ever read it.
fn check_name(file: &File, path: &Path) -> io::Result<()> {
    let (ours, named) = (file.metadata()?, std::fs::metadata(path)?);
    if (ours.dev(), ours.ino()) == (named.dev(), named.ino()) {
        return Ok(());
    }
    Err(io::Error::new(
        ErrorKind::NotFound,
        "another file was put in its place",
    ))
}
