//! Rows of several files as one, in their order. Neither all rows nor a whole file is in memory.
//!
//! Lines are copied as they are. Tables may have different columns: the output has all of them, and rows have no value
//! where their file lacks the column.

use std::error::Error;
use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crawler_model::crawl::ItemRecord;
use crawler_schema::Shape;

use super::groups::{self, Groups};
use crate::settings::Format;
use crate::table::{OWN, REST, Table};

/// Largest size in bytes of the line with the first item of a file.
const MAX_LINE: u64 = 64 << 20;
/// Place of the kind of the item among the columns.
const KIND: usize = 2;

/// Error of a file that cannot be read or written, with all that is known of the cause.
pub(super) type MergeError = Box<dyn Error + Send + Sync>;

/// Properties of a file that decide with which others it may be merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    /// Kind of all of its items.
    pub(super) kind: String,
    /// Columns of fields. Those of CSV are all texts, and lines have none.
    pub(super) table: Table,
}

/// Error of an append.
#[derive(Debug)]
pub(super) enum AppendError {
    /// The file that is appended is damaged.
    Input(MergeError),
    /// The output cannot be written.
    Output(MergeError),
}

/// Output on its way to a temporary file.
pub(super) struct Merge {
    rows: Rows,
    has_failed: Arc<AtomicBool>,
}

enum Rows {
    Lines(BufWriter<Output>),
    Csv(Box<csv::Writer<Output>>, Table),
    Parquet(Box<Groups>),
}

/// Temporary file that remembers if it could not be written: libraries return that like an error of the input.
pub(super) struct Output {
    file: File,
    has_failed: Arc<AtomicBool>,
}

impl Output {
    fn note<T>(&self, done: std::io::Result<T>) -> std::io::Result<T> {
        if let Err(error) = &done {
            let is_failure = error.kind() != std::io::ErrorKind::Interrupted;
            self.has_failed.fetch_or(is_failure, Ordering::Relaxed);
        }
        done
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.file.write(bytes);
        self.note(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let flushed = self.file.flush();
        self.note(flushed)
    }
}

/// Returns the head of a file.
///
/// # Errors
///
/// It is no file of the sink, or damaged.
pub(super) fn head(format: Format, file: File) -> Result<Head, MergeError> {
    guarded(|| match format {
        Format::Lines => {
            let mut line = Vec::new();
            let mut first = BufReader::new(file).take(MAX_LINE);
            first.read_until(b'\n', &mut line)?;
            let record: ItemRecord = serde_json::from_slice(&line)?;
            Ok(Head {
                kind: record.schema,
                table: Table::default(),
            })
        }
        Format::Csv => {
            let mut rows = csv::Reader::from_reader(file);
            let table = table_of(rows.headers()?)?;
            let mut first = csv::StringRecord::new();
            match rows.read_record(&mut first)? {
                true => Ok(Head {
                    kind: first[KIND].to_owned(),
                    table,
                }),
                false => Err("it has no rows".into()),
            }
        }
        Format::Parquet => groups::head(file),
    })
}

impl Merge {
    /// Begins an output with the columns of a table.
    pub(super) fn new(format: Format, table: &Table, file: File) -> Result<Self, MergeError> {
        let has_failed = Arc::default();
        let output = Output {
            file,
            has_failed: Arc::clone(&has_failed),
        };
        let rows = match format {
            Format::Lines => Rows::Lines(BufWriter::new(output)),
            Format::Csv => {
                let mut lines = csv::WriterBuilder::new()
                    .terminator(csv::Terminator::CRLF)
                    .from_writer(output);
                lines.write_record(names_of(table))?;
                Rows::Csv(Box::new(lines), table.clone())
            }
            Format::Parquet => Rows::Parquet(Box::new(Groups::new(table, output)?)),
        };
        Ok(Self { rows, has_failed })
    }

    /// Appends the rows of a file. If it fails, the output is of no use.
    pub(super) fn append(&mut self, file: File) -> Result<(), AppendError> {
        let appended = guarded(|| match &mut self.rows {
            Rows::Lines(lines) => append_lines(lines, file),
            Rows::Csv(lines, table) => append_csv(lines, table, file),
            Rows::Parquet(groups) => groups.append(file),
        });
        appended.map_err(|error| match self.has_failed.load(Ordering::Relaxed) {
            true => AppendError::Output(error),
            false => AppendError::Input(error),
        })
    }

    /// Returns the output, to be read from its beginning.
    pub(super) fn finish(self) -> Result<File, MergeError> {
        let output = match self.rows {
            Rows::Lines(lines) => lines.into_inner().map_err(|error| error.into_error())?,
            Rows::Csv(lines, _) => lines.into_inner().map_err(|error| error.to_string())?,
            Rows::Parquet(groups) => groups.finish()?,
        };
        let mut file = output.file;
        file.rewind()?;
        Ok(file)
    }
}

/// Does work whose libraries may panic at damaged bytes.
fn guarded<T>(work: impl FnOnce() -> Result<T, MergeError>) -> Result<T, MergeError> {
    let done = catch_unwind(AssertUnwindSafe(work));
    done.unwrap_or_else(|_panic| Err("its bytes are damaged".into()))
}

fn append_lines(lines: &mut BufWriter<Output>, mut file: File) -> Result<(), MergeError> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(());
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    if last != *b"\n" {
        return Err("its last line has no end".into());
    }
    file.rewind()?;
    std::io::copy(&mut file, lines)?;
    Ok(())
}

fn append_csv(
    lines: &mut csv::Writer<Output>,
    table: &Table,
    file: File,
) -> Result<(), MergeError> {
    let mut rows = csv::Reader::from_reader(file);
    let own = table_of(rows.headers()?)?;
    let names: Vec<&str> = names_of(&own).collect();
    // The place of each column of the output in the file.
    let places: Vec<Option<usize>> = names_of(table)
        .map(|name| names.iter().position(|own| *own == name))
        .collect();
    let mut row = csv::ByteRecord::new();
    while rows.read_byte_record(&mut row)? {
        let cells = places
            .iter()
            .map(|place| place.map_or(&b""[..], |place| &row[place]));
        lines.write_record(cells)?;
    }
    Ok(())
}

/// Returns the columns of fields of a file of CSV, in its order.
fn table_of(head: &csv::StringRecord) -> Result<Table, MergeError> {
    let names: Vec<&str> = head.iter().collect();
    let fields = names
        .strip_prefix(&OWN)
        .and_then(|names| names.strip_suffix(&[REST]));
    let fields = fields.ok_or("its columns are not those of the sink")?;
    let fields = fields.iter().map(|name| ((*name).to_owned(), Shape::Text));
    Ok(Table {
        fields: fields.collect(),
    })
}

/// Returns the names of all columns of a table.
fn names_of(table: &Table) -> impl Iterator<Item = &str> {
    let fields = table.fields.iter().map(|(name, _)| name.as_str());
    OWN.into_iter().chain(fields).chain([REST])
}

#[cfg(test)]
mod tests;
