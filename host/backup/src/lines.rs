//! Files of lines of JSON, written and read one line at a time.

use std::path::{Path, PathBuf};

use futures::stream::{self, Stream};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::fs::{File, OpenOptions};
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, BufWriter,
};

use super::{BackupError, Listed};
use crawler_model::id::{Digest, RunningDigest};

/// Rights of files with secrets: only their owner may read them.
pub(super) const PRIVATE: u32 = 0o600;
/// Number of bytes that are read at once.
const PIECE: usize = 1 << 20;

/// File of lines that is being written.
pub(super) struct LineWriter {
    path: PathBuf,
    file: BufWriter<File>,
    running: RunningDigest,
    n: u64,
    n_bytes: u64,
}

impl LineWriter {
    /// Creates the file, which only its owner may read.
    pub(super) async fn create(path: PathBuf) -> Result<Self, BackupError> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(PRIVATE);
        let file = options.open(&path).await;
        Ok(Self {
            file: BufWriter::new(file.map_err(BackupError::file("create", &path))?),
            path,
            running: RunningDigest::default(),
            n: 0,
            n_bytes: 0,
        })
    }

    /// Writes a line that describes so many bytes.
    pub(super) async fn write(
        &mut self,
        line: &impl Serialize,
        n_bytes: u64,
    ) -> Result<(), BackupError> {
        let mut json = serde_json::to_vec(line).expect("lines are texts and numbers");
        json.push(b'\n');
        self.running.add(&json);
        self.n += 1;
        self.n_bytes += n_bytes;
        let written = self.file.write_all(&json).await;
        written.map_err(BackupError::file("write", &self.path))
    }

    /// Ends the file. It is durable when this returns.
    pub(super) async fn finish(mut self) -> Result<Listed, BackupError> {
        let failed = BackupError::file("write", &self.path);
        let finished = async {
            self.file.flush().await?;
            self.file.get_ref().sync_all().await
        };
        finished.await.map_err(failed)?;
        Ok(Listed {
            n: self.n,
            n_bytes: self.n_bytes,
            sha256: self.running.digest(),
        })
    }
}

/// File of lines that is being read.
struct LineReader {
    path: PathBuf,
    file: BufReader<File>,
    running: RunningDigest,
    /// Digest that the file has to have.
    sha256: Digest,
}

impl LineReader {
    /// Opens the file. Its digest is checked before: a line is trusted to be as long as one that was written.
    async fn open(path: PathBuf, sha256: Digest) -> Result<Self, BackupError> {
        let file = File::open(&path).await;
        let file = BufReader::new(file.map_err(BackupError::file("open", &path))?);
        Ok(Self {
            path,
            file,
            running: RunningDigest::default(),
            sha256,
        })
    }

    /// Returns the next line, or `None` at the end. Fails at the end if the file is not the one whose digest was checked.
    async fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, BackupError> {
        let mut line = Vec::new();
        let read = self.file.read_until(b'\n', &mut line).await;
        let n_bytes = read.map_err(BackupError::file("read", &self.path))?;
        self.running.add(&line);
        match n_bytes {
            0 => self.check_digest().map(|()| None),
            _ => match serde_json::from_slice(&line) {
                Ok(line) => Ok(Some(line)),
                Err(error) => {
                    let failed = BackupError::file("read", &self.path);
                    Err(failed(error.into()))
                }
            },
        }
    }

    fn check_digest(&mut self) -> Result<(), BackupError> {
        if std::mem::take(&mut self.running).digest() == self.sha256 {
            return Ok(());
        }
        let folder = self.path.parent().unwrap_or(&self.path);
        let name = self.path.file_name().unwrap_or_default();
        Err(BackupError::Damaged {
            folder: folder.display().to_string(),
            faults: vec![format!(
                "{} has changed since it was verified",
                name.to_string_lossy()
            )],
        })
    }
}

/// Returns the lines of a file, one after the other, and an error behind the last one if the file has another digest.
pub(super) async fn lines<T: DeserializeOwned + Send + 'static>(
    path: PathBuf,
    sha256: Digest,
) -> Result<impl Stream<Item = Result<T, BackupError>> + Send, BackupError> {
    let reader = LineReader::open(path, sha256).await?;
    Ok(stream::try_unfold(reader, |mut reader| async move {
        let line = reader.next::<T>().await?;
        Ok::<_, BackupError>(line.map(|line| (line, reader)))
    }))
}

/// Returns the digest of a file.
pub(super) async fn digest(path: &Path) -> Result<Digest, BackupError> {
    let failed = || BackupError::file("read", path);
    let mut file = File::open(path).await.map_err(failed())?;
    let mut running = RunningDigest::default();
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece).await.map_err(failed())? {
            0 => return Ok(running.digest()),
            n => running.add(&piece[..n]),
        }
    }
}
