//! Items as JSON lines in a folder, one folder for each shard.
//!
//! ```text
//! items/<resource id>/<shard>/<run>-<n>.jsonl      one item record a line
//! items/<resource id>/<shard>/<run>-<n>.jsonl.len  how many bytes of it are committed
//! ```
//!
//! A batch is appended and synced, and then the committed length is replaced as a whole (a file
//! beside it, renamed over it, with the folder synced). What lies behind the committed length is
//! nothing: [`LineReader`] stops there, and it is cut off before the next append, after a failed one
//! and when a run is opened again. So a batch can be tried again without a torn or doubled line.
//!
//! One process at a time writes to a folder; whoever assigns shards sees to that.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use super::{Sink, SinkError, end_line};
use crate::model::crawl::ItemRecord;
use crate::model::frontier::SinkMark;
use crate::model::id::Run;

pub use reader::{LineReader, newest_run};

mod reader;
#[cfg(test)]
pub(crate) mod tests;

/// Bounds of line files.
#[derive(Debug, Clone)]
pub struct LineSettings {
    /// A file that would grow beyond this is followed by the next. One batch is never split.
    pub max_file_bytes: u64,
}

impl Default for LineSettings {
    fn default() -> Self {
        Self {
            max_file_bytes: 256 << 20,
        }
    }
}

/// The line files of one run of one shard.
#[derive(Debug)]
pub struct LineFiles {
    // Locked on the blocking threads only. A write whose caller went away goes on there, and the
    // next one waits for it.
    writer: Arc<Mutex<Writer>>,
}

#[derive(Debug)]
struct Writer {
    folder: PathBuf,
    run: Run,
    settings: LineSettings,
    /// The number of the present file.
    n: u64,
    /// Of the present file.
    committed: u64,
    /// Cut to the committed length, at its end. None: not opened, or an append failed.
    file: Option<File>,
    /// Lines that readers may see already, though the folder could not be synced after them.
    unsynced: Option<Vec<u8>>,
}

impl LineFiles {
    /// Opens the files of a run in a shard's folder, which is made where it is missing, and cuts off
    /// what an earlier process did not commit.
    pub async fn open(
        folder: PathBuf,
        run: Run,
        settings: LineSettings,
    ) -> Result<Self, SinkError> {
        let path = folder.clone();
        let writer = blocking(&path, move || Writer::open(folder, run, settings)).await?;
        Ok(Self {
            writer: Arc::new(Mutex::new(writer)),
        })
    }
}

#[async_trait]
impl Sink for LineFiles {
    async fn write(&mut self, items: &[ItemRecord]) -> Result<Option<SinkMark>, SinkError> {
        let mut lines = Vec::new();
        for record in items {
            let start = lines.len();
            serde_json::to_writer(&mut lines, record)
                .map_err(|e| failed("encode", Path::new(&record.url))(e.into()))?;
            end_line(&mut lines, start);
        }
        let writer = Arc::clone(&self.writer);
        blocking(Path::new("the items"), move || {
            let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
            writer.write(&lines)
        })
        .await?;
        Ok(None)
    }
}

impl Writer {
    fn open(folder: PathBuf, run: Run, settings: LineSettings) -> Result<Self, SinkError> {
        create_folder(&folder)?;
        let files = reader::files(&folder)?;
        let n = files
            .filter_map(|(of, n)| (of == run).then_some(n))
            .max()
            .unwrap_or(0);
        let committed = committed_length(&path_of(&folder, run, n))?.unwrap_or(0);
        let mut writer = Self {
            folder,
            run,
            settings,
            n,
            committed,
            file: None,
            unsynced: None,
        };
        writer.file()?;
        Ok(writer)
    }

    fn write(&mut self, mut lines: &[u8]) -> Result<(), SinkError> {
        if let Some(unsynced) = &self.unsynced {
            sync_folder(&self.folder)?;
            // The batch is most likely the same one, tried again.
            lines = lines.strip_prefix(unsynced.as_slice()).unwrap_or(lines);
            self.unsynced = None;
        }
        if lines.is_empty() {
            return Ok(());
        }
        let written = self.append(lines);
        if written.is_err() {
            self.file = None;
        }
        written
    }

    fn append(&mut self, lines: &[u8]) -> Result<(), SinkError> {
        self.file()?;
        let n_bytes = lines.len() as u64;
        if self.committed > 0 && self.committed + n_bytes > self.settings.max_file_bytes {
            self.n += 1;
            self.committed = 0;
            self.file = None;
        }
        let path = path_of(&self.folder, self.run, self.n);
        let file = self.file()?;
        file.write_all(lines).map_err(failed("write", &path))?;
        file.sync_data().map_err(failed("sync", &path))?;
        replace_length(&path, self.committed + n_bytes)?;
        self.committed += n_bytes;
        let synced = sync_folder(&self.folder);
        if synced.is_err() {
            self.unsynced = Some(lines.to_vec());
        }
        synced
    }

    /// The present file, cut to its committed length.
    fn file(&mut self) -> Result<&mut File, SinkError> {
        let file = match self.file.take() {
            Some(file) => file,
            None => {
                let path = path_of(&self.folder, self.run, self.n);
                cut(&path, self.committed).map_err(failed("open", &path))?
            }
        };
        Ok(self.file.insert(file))
    }
}

fn cut(path: &Path, committed: u64) -> io::Result<File> {
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)?;
    if file.metadata()?.len() < committed {
        return Err(io::Error::new(
            ErrorKind::InvalidData,
            format!("it is shorter than the {committed} bytes that were committed"),
        ));
    }
    file.set_len(committed)?;
    file.seek(SeekFrom::End(0))?;
    Ok(file)
}

fn path_of(folder: &Path, run: Run, n: u64) -> PathBuf {
    folder.join(format!("{run}-{n}.jsonl"))
}

fn length_path_of(path: &Path) -> PathBuf {
    path.with_added_extension("len")
}

/// None: nothing of this file was ever committed.
fn committed_length(path: &Path) -> Result<Option<u64>, SinkError> {
    let path = length_path_of(path);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("read", &path)(error)),
    };
    let length = text.trim_end().parse().map_err(|e| {
        let error = io::Error::new(ErrorKind::InvalidData, e);
        failed("read", &path)(error)
    })?;
    Ok(Some(length))
}

/// Leaves syncing the folder to the caller.
fn replace_length(path: &Path, length: u64) -> Result<(), SinkError> {
    let path = length_path_of(path);
    let beside = path.with_added_extension("tmp");
    let write = || {
        let mut file = File::create(&beside)?;
        writeln!(file, "{length}")?;
        file.sync_all()?;
        std::fs::rename(&beside, &path)
    };
    write().map_err(failed("write", &path))
}

fn sync_folder(folder: &Path) -> Result<(), SinkError> {
    let sync = || File::open(folder)?.sync_all();
    sync().map_err(failed("sync", folder))
}

/// Makes a folder and those above it, each durable in the one above.
fn create_folder(folder: &Path) -> Result<(), SinkError> {
    let missing: Vec<&Path> = folder
        .ancestors()
        .take_while(|path| !path.exists())
        .collect();
    std::fs::create_dir_all(folder).map_err(failed("create", folder))?;
    missing
        .into_iter()
        .filter_map(Path::parent)
        .filter(|parent| !parent.as_os_str().is_empty())
        .try_for_each(sync_folder)
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> SinkError {
    let path = path.display().to_string();
    move |source| SinkError::Io {
        doing,
        path,
        source,
    }
}

/// Runs file work where it may block.
async fn blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> Result<T, SinkError> + Send + 'static,
) -> Result<T, SinkError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(stopping) => Err(failed("reach", path)(io::Error::other(stopping))),
        },
    }
}
