//! Items as one document in a file: a CSV table, or a JSON array.
//!
//! After each write the file is a whole document: what closes it is written behind the last item, and the next
//! write begins in its place. So nothing has to be told when the crawl is over, nothing is kept in memory, and a
//! write that failed is repeated from where it began. Until then the document is closed before it again. A process
//! that is killed during a write leaves a torn document.

use std::fs::Metadata;
use std::io::{self, ErrorKind, SeekFrom};
use std::path::Path;

use async_trait::async_trait;
use tokio::fs::File;
use tokio::io::{AsyncSeekExt as _, AsyncWriteExt as _};

use super::{Sink, SinkError, Written};
use crawler_model::crawl::ItemRecord;

mod columns;

pub use columns::{Columns, Line, NoColumns, NoLine};

/// Format of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// JSON array of the items.
    Array,
    /// CSV table with a line for each item.
    Table(Columns),
}

/// Sink that replaces the content of a file by a document. The old content stays until the first items are known
/// to fit: a crawl that cannot begin, or whose first items have no columns, destroys nothing.
#[derive(Debug)]
pub struct DocumentSink {
    file: File,
    path: String,
    format: Format,
    /// Place behind the last item. `None` before the first write.
    end: Option<Place>,
    /// True if the next write fails half-way.
    #[cfg(test)]
    tears_next: bool,
}

/// Place behind an item.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// Bytes before it.
    offset: u64,
    is_after_item: bool,
}

impl DocumentSink {
    /// Opens a file as a sink, and makes it if it does not exist.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, or is a pipe or a device, in which nothing can be written again.
    pub async fn open(path: &Path, format: Format) -> io::Result<Self> {
        // To open a pipe would wait for its reader.
        match tokio::fs::metadata(path).await {
            Ok(metadata) => check_is_file(&metadata)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let options = File::options().write(true).create(true).clone();
        let file = options.open(path).await?;
        check_is_file(&file.metadata().await?)?;
        Ok(Self {
            file,
            path: path.display().to_string(),
            format,
            end: None,
            #[cfg(test)]
            tears_next: false,
        })
    }

    async fn append(&mut self, items: &[ItemRecord]) -> Result<(), SinkError> {
        let mut bytes = Vec::new();
        let begun = self.end;
        let mut end = begun.unwrap_or_else(|| self.format.begin(&mut bytes));
        let start = end.offset;
        match &self.format {
            Format::Array => {
                for record in items {
                    push_element(&mut bytes, record, end.is_after_item);
                    end.is_after_item = true;
                }
            }
            Format::Table(columns) => {
                let lines = items.iter().map(|record| Line {
                    kind: &record.schema,
                    url: &record.url,
                    json: record.item.get(),
                });
                let pushed = columns.push_lines(&mut bytes, lines);
                pushed.map_err(|e| SinkError::Permanent {
                    message: format!("{e}; write .jsonl instead"),
                    source: None,
                })?;
            }
        }
        end.offset = start + bytes.len() as u64;
        bytes.extend_from_slice(self.format.closing(end));
        if let Err(source) = self.write_at(start, &bytes).await {
            if let Err(error) = self.close_again().await {
                tracing::warn!(path = self.path, %error, "a document stays torn after a failed write");
            }
            return Err(SinkError::of_file("write", &self.path, source));
        }
        self.end = Some(end);
        Ok(())
    }

    /// Ends the file behind the last item that was written as a whole. If there was no write before, the document
    /// is empty then.
    async fn close_again(&mut self) -> io::Result<()> {
        let mut bytes = Vec::new();
        let begun = self.end;
        let end = begun.unwrap_or_else(|| self.format.begin(&mut bytes));
        bytes.extend_from_slice(self.format.closing(end));
        self.write_at(end.offset, &bytes).await
    }

    async fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(offset)).await?;
        #[cfg(test)]
        if std::mem::take(&mut self.tears_next) {
            self.file.write_all(&bytes[..bytes.len() / 2]).await?;
            self.file.flush().await?;
            return Err(ErrorKind::StorageFull.into());
        }
        self.file.write_all(bytes).await?;
        self.file.flush().await?;
        // A longer write that failed has left more behind.
        self.file.set_len(offset + bytes.len() as u64).await
    }
}

impl Format {
    /// Adds what precedes the first item, at the beginning of the file.
    fn begin(&self, bytes: &mut Vec<u8>) -> Place {
        match self {
            Format::Array => bytes.push(b'['),
            Format::Table(columns) => columns.push_head(bytes),
        }
        Place {
            offset: 0,
            is_after_item: false,
        }
    }

    /// Returns what closes a document that ends here.
    fn closing(&self, end: Place) -> &'static [u8] {
        match self {
            Format::Array if end.is_after_item => b"\n]\n",
            Format::Array => b"]\n",
            Format::Table(_) => b"",
        }
    }
}

fn check_is_file(metadata: &Metadata) -> io::Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    let why = "it is not a file; JSON lines can be written to pipes and devices";
    Err(io::Error::new(ErrorKind::InvalidInput, why))
}

fn push_element(bytes: &mut Vec<u8>, record: &ItemRecord, is_after_item: bool) {
    bytes.extend_from_slice(if is_after_item { b",\n" } else { b"\n" });
    bytes.extend_from_slice(record.item.get().as_bytes());
}

#[async_trait]
impl Sink for DocumentSink {
    async fn write(&mut self, _first: u64, items: &[ItemRecord]) -> Result<Written, SinkError> {
        self.append(items).await?;
        Ok(Written::all(items, None))
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::lines::tests::record;

    struct Folder {
        path: PathBuf,
        _folder: tempfile::TempDir,
    }

    impl Folder {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("items");
            std::fs::write(
                &path,
                "of an earlier crawl, and much longer than anything below\n",
            )
            .unwrap();
            Self {
                path,
                _folder: folder,
            }
        }

        fn text(&self) -> String {
            std::fs::read_to_string(&self.path).unwrap()
        }
    }

    #[tokio::test]
    async fn an_array_is_whole_after_each_write() {
        let folder = Folder::new();
        let mut sink = DocumentSink::open(&folder.path, Format::Array)
            .await
            .unwrap();
        assert!(folder.text().starts_with("of an earlier crawl"));
        for (write, text) in [
            (&[][..], "[]\n"),
            (&[record(1, r#"{"a":1}"#)], "[\n{\"a\":1}\n]\n"),
            (&[], "[\n{\"a\":1}\n]\n"),
            (
                &[record(2, "{}"), record(3, "{\n}")],
                "[\n{\"a\":1},\n{},\n{\n}\n]\n",
            ),
        ] {
            sink.write(0, write).await.unwrap();
            assert_eq!(folder.text(), text);
        }
        let items: Vec<serde_json::Value> = serde_json::from_str(&folder.text()).unwrap();
        assert_eq!(items.len(), 3);
    }

    #[tokio::test]
    async fn a_table_has_its_head_though_there_are_no_items() {
        let folder = Folder::new();
        let columns = Columns::of(&[columns::tests::book()]).unwrap();
        let mut sink = DocumentSink::open(&folder.path, Format::Table(columns))
            .await
            .unwrap();
        sink.write(0, &[]).await.unwrap();
        assert_eq!(folder.text(), "url,title,tags\n");
        sink.write(0, &[record(1, r#"{"title":"a"}"#)])
            .await
            .unwrap();
        assert_eq!(folder.text(), "url,title,tags\n,a,\n");
    }

    #[tokio::test]
    async fn a_document_is_whole_after_a_write_that_failed() {
        let folder = Folder::new();
        let mut sink = DocumentSink::open(&folder.path, Format::Array)
            .await
            .unwrap();
        let long = record(2, r#"{"long":"and torn"}"#);
        for (n_before, text) in [(0, "[]\n"), (1, "[\n{}\n]\n")] {
            sink.tears_next = true;
            let failed = sink.write(0, std::slice::from_ref(&long)).await;
            assert!(matches!(failed, Err(SinkError::Retry { .. })), "{n_before}");
            assert_eq!(folder.text(), text, "{n_before}");
            // The same is written again, or what comes instead.
            sink.write(0, &[record(1, "{}")]).await.unwrap();
        }
        assert_eq!(folder.text(), "[\n{},\n{}\n]\n");
    }

    #[tokio::test]
    async fn a_table_whose_first_write_failed_has_its_head() {
        let folder = Folder::new();
        let columns = Columns::of(&[columns::tests::book()]).unwrap();
        let mut sink = DocumentSink::open(&folder.path, Format::Table(columns))
            .await
            .unwrap();
        sink.tears_next = true;
        let failed = sink.write(0, &[record(1, r#"{"title":"a"}"#)]).await;
        assert!(failed.is_err());
        assert_eq!(folder.text(), "url,title,tags\n");
    }

    #[tokio::test]
    async fn first_items_without_a_column_destroy_nothing() {
        let folder = Folder::new();
        let before = folder.text();
        let columns = Columns::of(&[columns::tests::book()]).unwrap();
        let mut sink = DocumentSink::open(&folder.path, Format::Table(columns))
            .await
            .unwrap();
        let refused = sink.write(0, &[record(1, r#"{"price":1}"#)]).await;
        assert!(matches!(refused, Err(SinkError::Permanent { .. })));
        assert_eq!(folder.text(), before);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_pipe_without_a_reader_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("items.json");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let error = DocumentSink::open(&pipe, Format::Array).await.unwrap_err();
        assert!(error.to_string().contains("it is not a file"), "{error}");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_device_is_refused() {
        let error = DocumentSink::open(Path::new("/dev/null"), Format::Array).await;
        let error = error.unwrap_err().to_string();
        assert!(error.contains("it is not a file"), "{error}");
    }
}
