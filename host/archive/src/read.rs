//! Records of a file, one after the other: of one gzip member each, or without compression.
//!
//! The file may be anybody's. Heads have a bound, and so has the length that a record announces; a gzip member has
//! nothing but the record, so that no more is ever decompressed than the record is long.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::GzDecoder;

use super::error::{ReadError, damaged};
use super::source::{Section, Source};

/// Largest length in bytes of a record that is read, unless another is asked for. A body that a crawl keeps has 1 GiB at
/// most.
pub const DEFAULT_MAX_RECORD: u64 = 2 << 30;
/// Maximum size in bytes of the fields of a record.
const MAX_HEAD: u64 = 64 << 10;
/// First letters of a record.
const BEGIN: &str = "WARC/";
const NO_RECORD: &str = "it does not begin like a record of a WARC file";
/// First byte of a gzip member.
const GZIP: u8 = 0x1f;

/// Fields of a record.
#[derive(Debug)]
pub(crate) struct Head(Vec<(String, String)>);

/// A record that was read, with the place where it is in its file.
#[derive(Debug)]
pub(crate) struct ReadRecord<T> {
    /// Value that the visit has returned.
    pub(crate) value: T,
    /// Offset of the record.
    pub(crate) offset: u64,
    /// Number of bytes that it takes in the file.
    pub(crate) length: u64,
}

/// Records of one source.
pub(crate) struct Records {
    path: String,
    reader: Counted,
    max_record: u64,
}

impl Records {
    /// Opens a source, and returns its records from its beginning on.
    pub(crate) fn of(source: &Source, max_record: u64) -> Result<Self, ReadError> {
        Self::at_offset(source, 0, max_record)
    }

    /// Opens a source, and returns its records from this offset on.
    pub(crate) fn at_offset(
        source: &Source,
        offset: u64,
        max_record: u64,
    ) -> Result<Self, ReadError> {
        let section = source.section(offset);
        let section = section.map_err(|error| ReadError::at(source.name(), offset, error))?;
        Ok(Self {
            path: source.name().to_owned(),
            reader: Counted {
                inner: BufReader::new(section),
                n: offset,
            },
            max_record,
        })
    }

    /// Returns the offset of the next record.
    pub(crate) fn at(&self) -> u64 {
        self.reader.n
    }

    /// Reads the next record: `visit` gets its fields and its block, and need not read all of it. Returns `None` at the
    /// end of the file. After an error nothing further can be read.
    pub(crate) fn next<T>(
        &mut self,
        visit: impl FnOnce(&Head, &mut dyn BufRead) -> io::Result<T>,
    ) -> Result<Option<ReadRecord<T>>, ReadError> {
        let offset = self.reader.n;
        let read = self.read(visit);
        let read = read.map_err(|error| ReadError::at(&self.path, offset, error))?;
        let length = self.reader.n - offset;
        Ok(read.map(|value| ReadRecord {
            value,
            offset,
            length,
        }))
    }

    fn read<T>(
        &mut self,
        visit: impl FnOnce(&Head, &mut dyn BufRead) -> io::Result<T>,
    ) -> io::Result<Option<T>> {
        // The buffer may end after the first byte, so that no more of them is looked at here.
        let begin = self.reader.fill_buf()?.first().copied();
        match begin {
            None => return Ok(None),
            Some(GZIP) => {}
            Some(b'W') => return one(&mut self.reader, self.max_record, visit).map(Some),
            Some(_) => return Err(damaged(NO_RECORD)),
        }
        let mut member = BufReader::new(GzDecoder::new(&mut self.reader));
        let value = one(&mut member, self.max_record, visit)?;
        // This reads the checksum, too.
        match member.fill_buf()?.is_empty() {
            true => Ok(Some(value)),
            false => Err(damaged("a gzip member has more than one record")),
        }
    }
}

/// Reads one record.
fn one<T>(
    reader: &mut impl BufRead,
    max_record: u64,
    visit: impl FnOnce(&Head, &mut dyn BufRead) -> io::Result<T>,
) -> io::Result<T> {
    let head = Head::read(reader)?;
    let length = head.get("content-length");
    let length = length.and_then(|length| length.parse::<u64>().ok());
    let length = length.ok_or_else(|| damaged("it has no valid Content-Length"))?;
    if length > max_record {
        return Err(damaged(format!(
            "its length is {length} bytes, and records of {max_record} bytes at most are read"
        )));
    }
    let mut block = reader.by_ref().take(length);
    let value = visit(&head, &mut block)?;
    io::copy(&mut block, &mut io::sink())?;
    if block.limit() > 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut end = [0; 4];
    reader.read_exact(&mut end)?;
    match &end == b"\r\n\r\n" {
        true => Ok(value),
        false => Err(damaged("it does not end where its Content-Length says")),
    }
}

impl Head {
    fn read(reader: &mut impl BufRead) -> io::Result<Self> {
        let mut left = MAX_HEAD;
        let version = line(reader, &mut left)?;
        if !version.starts_with(BEGIN) {
            return Err(damaged(NO_RECORD));
        }
        let mut fields: Vec<(String, String)> = Vec::new();
        loop {
            let line = line(reader, &mut left)?;
            if line.is_empty() {
                return Ok(Self(fields));
            }
            if line.starts_with([' ', '\t']) {
                // A value may go on in the next line.
                if let Some((_, value)) = fields.last_mut() {
                    value.push(' ');
                    value.push_str(line.trim());
                }
                continue;
            }
            let Some((name, value)) = line.split_once(':') else {
                return Err(damaged("a field has no colon"));
            };
            fields.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    /// Returns the first value of a field, whose name is given in lower case.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// Iterates over the values of a field, whose name is given in lower case.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let named = self.0.iter().filter(move |(n, _)| n == name);
        named.map(|(_, value)| value.as_str())
    }

    /// Returns the type of the record.
    pub(crate) fn kind(&self) -> &str {
        self.get("warc-type").unwrap_or_default()
    }

    /// Returns the URI that the record is about. The first version of the format has it in angle brackets.
    pub(crate) fn target(&self) -> Option<&str> {
        let target = self.get("warc-target-uri")?;
        let inner = target.strip_prefix('<');
        Some(
            inner
                .and_then(|uri| uri.strip_suffix('>'))
                .unwrap_or(target),
        )
    }

    /// True if the block is a message of HTTP.
    pub(crate) fn is_http(&self) -> bool {
        let content_type = self.get("content-type").unwrap_or_default();
        content_type
            .to_ascii_lowercase()
            .starts_with("application/http")
    }
}

/// Reads a line of a head, without its end.
fn line(reader: &mut impl BufRead, left: &mut u64) -> io::Result<String> {
    let mut line = Vec::new();
    let n = reader.by_ref().take(*left).read_until(b'\n', &mut line)?;
    *left -= n as u64;
    if line.pop() != Some(b'\n') {
        return Err(match *left {
            0 => damaged("its fields are longer than 64 KiB"),
            _ => io::ErrorKind::UnexpectedEof.into(),
        });
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}

/// Reader that knows its place.
struct Counted {
    inner: BufReader<Section>,
    n: u64,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.n += n as u64;
        Ok(n)
    }
}

impl BufRead for Counted {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, n: usize) {
        self.n += n as u64;
        self.inner.consume(n);
    }
}
