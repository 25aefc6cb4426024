//! Items as plain JSON lines into a pipe or file that the user of `crawler run` gave.
//!
//! The output has only the item itself, not the record around it, so that it can be piped into other tools. A
//! stream cannot take back half a line: after an error other than a closed pipe, the line that was being
//! written may be torn, and is written again on the next try.

use std::io::{self, ErrorKind};
use std::path::Path;

use async_trait::async_trait;
use tokio::fs::File;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use super::{Sink, SinkError, Written, end_line};
use crawler_model::crawl::ItemRecord;

/// Sink that writes to a stream.
#[derive(Debug)]
pub struct StreamSink<W> {
    stream: W,
    name: String,
}

impl<W: AsyncWrite + Send + Unpin> StreamSink<W> {
    /// Creates a sink for `stream`. Errors call it by `name`: a path, or "standard output".
    pub fn new(stream: W, name: impl Into<String>) -> Self {
        Self {
            stream,
            name: name.into(),
        }
    }
}

#[async_trait]
impl<W: AsyncWrite + Send + Unpin> Sink for StreamSink<W> {
    async fn write(&mut self, _first: u64, items: &[ItemRecord]) -> Result<Written, SinkError> {
        let mut lines = Vec::new();
        for record in items {
            let start = lines.len();
            lines.extend_from_slice(record.item.get().as_bytes());
            end_line(&mut lines, start);
        }
        let written = match self.stream.write_all(&lines).await {
            Ok(()) => self.stream.flush().await,
            Err(error) => Err(error),
        };
        written.map_err(|error| self.failed(error))?;
        Ok(Written::all(items, None))
    }
}

impl<W> StreamSink<W> {
    fn failed(&self, source: io::Error) -> SinkError {
        match source.kind() {
            ErrorKind::BrokenPipe => SinkError::Closed,
            _ => SinkError::of_file("write", &self.name, source),
        }
    }
}

/// Sink that replaces the content of a file. The old content stays until the first item comes: a crawl that
/// cannot begin destroys nothing.
#[derive(Debug)]
pub struct FileSink {
    stream: StreamSink<File>,
    has_begun: bool,
}

impl FileSink {
    /// Opens this file as a sink, and makes it if it does not exist.
    pub async fn open(path: &Path) -> io::Result<Self> {
        let options = File::options().write(true).create(true).clone();
        Ok(Self {
            stream: StreamSink::new(options.open(path).await?, path.display().to_string()),
            has_begun: false,
        })
    }
}

#[async_trait]
impl Sink for FileSink {
    async fn write(&mut self, first: u64, items: &[ItemRecord]) -> Result<Written, SinkError> {
        if !self.has_begun {
            let emptied = empty(&self.stream.stream).await;
            emptied.map_err(|error| self.stream.failed(error))?;
            self.has_begun = true;
        }
        self.stream.write(first, items).await
    }
}

/// Empties a file. Pipes and terminals have no length, and are left alone.
async fn empty(file: &File) -> io::Result<()> {
    match file.metadata().await?.is_file() {
        true => file.set_len(0).await,
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::tests::record;

    #[tokio::test]
    async fn every_item_is_one_line_whatever_space_the_rule_wrote() {
        let mut sink = StreamSink::new(Vec::new(), "memory");
        let items = [record(1, "{\n \"a\": \"x\\ny\"\r\n}"), record(2, "{}")];
        sink.write(0, &items).await.unwrap();
        let text = String::from_utf8(sink.stream).unwrap();
        assert_eq!(text, "{  \"a\": \"x\\ny\"  }\n{}\n");
    }

    #[tokio::test]
    async fn a_reader_that_went_away_closes_the_sink() {
        let (ours, theirs) = tokio::io::duplex(16);
        drop(theirs);
        let error = StreamSink::new(ours, "pipe")
            .write(0, &[record(1, "{}")])
            .await;
        assert!(matches!(error, Err(SinkError::Closed)), "{error:?}");
    }

    #[tokio::test]
    async fn a_file_is_replaced_when_the_first_item_comes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("items.jsonl");
        std::fs::write(&path, "of an earlier crawl, and longer\n").unwrap();
        let text = || std::fs::read_to_string(&path).unwrap();
        let mut sink = FileSink::open(&path).await.unwrap();
        assert_eq!(text(), "of an earlier crawl, and longer\n");
        for n in 1..=2 {
            sink.write(0, &[record(n, "{}")]).await.unwrap();
        }
        assert_eq!(text(), "{}\n{}\n");
        let mut sink = FileSink::open(Path::new("/dev/null")).await.unwrap();
        sink.write(0, &[record(1, "{}")]).await.unwrap();
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_full_disk_is_named() {
        let file = File::create("/dev/full").await.unwrap();
        let error = StreamSink::new(file, "/dev/full")
            .write(0, &[record(1, "{}")])
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), "cannot write /dev/full");
    }
}
