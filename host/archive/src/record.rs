//! The form of a record: a version, named fields, and a block of bytes.

use std::io::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

use crawler_model::crawl::UnixMillis;
use crawler_model::id::{Digest, RunningDigest};

/// Version of the format.
const VERSION: &str = "WARC/1.1";
/// Last millisecond that a date with a year of four digits can tell.
const LAST_MILLIS: u64 = 253_402_300_799_999;

/// A record that is to be written.
#[derive(Debug)]
pub(crate) struct Record {
    fields: Vec<(&'static str, String)>,
    block: Vec<Bytes>,
}

impl Record {
    /// Creates a record of this type, with an id of its own, a date and a block of this content type.
    pub(crate) fn new(
        kind: &str,
        id: &str,
        date: UnixMillis,
        content_type: &str,
        block: Vec<Bytes>,
    ) -> Self {
        let mut digest = RunningDigest::default();
        block.iter().for_each(|piece| digest.add(piece));
        let length: usize = block.iter().map(Bytes::len).sum();
        let fields = vec![
            ("WARC-Type", kind.to_owned()),
            ("WARC-Record-ID", id.to_owned()),
            ("WARC-Date", format_date(date)),
            ("Content-Type", content_type.to_owned()),
            ("Content-Length", length.to_string()),
            ("WARC-Block-Digest", format_digest(digest.digest())),
        ];
        Self { fields, block }
    }

    /// Adds a field.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.fields.push((name, value.into()));
        self
    }

    /// Adds a field if there is a value.
    pub(crate) fn with_some(self, name: &'static str, value: Option<String>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Writes the record as one gzip member.
    pub(crate) fn write(&self, to: impl Write) -> io::Result<()> {
        let mut member = GzEncoder::new(to, Compression::default());
        let mut head = format!("{VERSION}\r\n");
        for (name, value) in &self.fields {
            head.push_str(name);
            head.push_str(": ");
            // A line break would begin another field.
            head.extend(value.chars().map(|c| if c.is_control() { ' ' } else { c }));
            head.push_str("\r\n");
        }
        head.push_str("\r\n");
        member.write_all(head.as_bytes())?;
        for piece in &self.block {
            member.write_all(piece)?;
        }
        member.write_all(b"\r\n\r\n")?;
        member.finish()?.flush()
    }
}

/// Returns a new id for a record.
pub(crate) fn new_id() -> String {
    let mut bytes: [u8; 16] = rand::random();
    // Version 4 and variant of RFC 9562: the id is random.
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let [a, b, c, d, e] = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    format!("<urn:uuid:{a}-{b}-{c}-{d}-{e}>")
}

/// Returns a digest as fields have it. Readers compare it by its letters, in any case.
pub(crate) fn format_digest(digest: Digest) -> String {
    format!("sha256:{digest}")
}

/// Returns a date as fields have it, with milliseconds.
pub(crate) fn format_date(at: UnixMillis) -> String {
    let at = UNIX_EPOCH + Duration::from_millis(at.min(LAST_MILLIS));
    humantime::format_rfc3339_millis(at).to_string()
}

/// Parses a date of a field. Returns `None` if it is none, or is before 1970.
pub(crate) fn parse_date(text: &str) -> Option<UnixMillis> {
    let at: SystemTime = humantime::parse_rfc3339(text.trim()).ok()?;
    let since = at.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}

/// Returns lines of the form `name: value`, the content of `application/warc-fields`.
pub(crate) fn warc_fields(fields: &[(&str, String)]) -> Bytes {
    let mut text = String::new();
    for (name, value) in fields {
        let value: String = value
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn a_record_is_a_gzip_member_of_fields_and_block() {
        let block = vec![Bytes::from_static(b"a: "), Bytes::from_static(b"b\r\n")];
        let record = Record::new(
            "metadata",
            "<urn:uuid:1>",
            1_500,
            "application/warc-fields",
            block,
        )
        .with("WARC-Target-URI", "http://a.test/\r\nWARC-Type: warcinfo")
        .with_some("WARC-Truncated", None);
        let mut member = Vec::new();
        record.write(&mut member).unwrap();
        let mut text = String::new();
        flate2::bufread::GzDecoder::new(&member[..])
            .read_to_string(&mut text)
            .unwrap();
        let digest = Digest::of(b"a: b\r\n");
        let expected = format!(
            "WARC/1.1\r\nWARC-Type: metadata\r\nWARC-Record-ID: <urn:uuid:1>\r\nWARC-Date: 1970-01-01T00:00:01.500Z\r\nContent-Type: application/warc-fields\r\nContent-Length: 6\r\nWARC-Block-Digest: sha256:{digest}\r\nWARC-Target-URI: http://a.test/  WARC-Type: warcinfo\r\n\r\na: b\r\n\r\n\r\n"
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn dates_are_read_as_they_are_written() {
        for at in [0, 1, 1_764_343_320_123, LAST_MILLIS] {
            assert_eq!(parse_date(&format_date(at)), Some(at));
        }
        assert_eq!(format_date(u64::MAX), format_date(LAST_MILLIS));
        assert_eq!(parse_date("2016-01-11T23:24:25Z"), Some(1_452_554_665_000));
        assert_eq!(
            parse_date("2016-01-11T23:24:25.412030Z"),
            Some(1_452_554_665_412)
        );
        assert_eq!(parse_date("yesterday"), None);
    }

    #[test]
    fn ids_are_random_uuids() {
        let (one, other) = (new_id(), new_id());
        assert_ne!(one, other);
        assert_eq!(one.len(), "<urn:uuid:>".len() + 36);
        assert_eq!(&one[23..25], "-4", "{one}");
    }
}
