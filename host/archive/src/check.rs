//! Check of archives: every record is parsed, and its digests are compared with its bytes.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufRead, Read};
use std::path::Path;

use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256};
use serde::Deserialize;

use super::error::ReadError;
use super::http::MessageHead;
use super::read::{Head, Records};
use super::record::parse_date;
use super::source::{Source, open};

/// Number of faults of a file that are told one by one.
const MAX_FAULTS: usize = 20;
/// Maximum size in bytes of the description of a WACZ file.
const MAX_PACKAGE: u64 = 64 << 20;
/// Description of a WACZ file, and its digest.
const PACKAGE: &str = "datapackage.json";
const PACKAGE_DIGEST: &str = "datapackage-digest.json";

/// Result of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// Number of records by their types.
    pub records: BTreeMap<String, u64>,
    /// Number of digests that are those of the bytes.
    pub n_digests: u64,
    /// Number of digests that were not compared: those of payloads that other records have, and of unknown kinds.
    pub n_not_compared: u64,
    /// The first faults, in order.
    pub faults: Vec<Fault>,
    /// Number of all faults.
    pub n_faults: u64,
}

/// A fault of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Path of the file, with the name in its container.
    pub path: String,
    /// Offset of the record.
    pub offset: u64,
    /// Description of the fault.
    pub why: String,
}

impl Checked {
    fn fault(&mut self, path: &str, offset: u64, why: impl Into<String>) {
        self.n_faults += 1;
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(Fault {
                path: path.to_owned(),
                offset,
                why: why.into(),
            });
        }
    }

    fn read_fault(&mut self, error: ReadError) -> Result<(), ReadError> {
        match error {
            ReadError::Damaged { path, offset, why } => {
                self.fault(&path, offset, why);
                Ok(())
            }
            error @ (ReadError::File { .. } | ReadError::TooMany { .. }) => Err(error),
        }
    }

    /// Returns the number of all records.
    pub fn n_records(&self) -> u64 {
        self.records.values().sum()
    }
}

/// Checks a WARC or WACZ file. Records of more than `max_record` bytes are faults. What follows a damaged record in a file
/// is not read.
///
/// # Errors
///
/// The file cannot be read.
pub fn check(path: &Path, max_record: u64) -> Result<Checked, ReadError> {
    let mut checked = Checked::default();
    let opened = match open(path) {
        Ok(opened) => opened,
        Err(error) => {
            checked.read_fault(error)?;
            return Ok(checked);
        }
    };
    for warc in &opened.warcs {
        check_warc(warc, max_record, &mut checked)?;
    }
    if let Some(parts) = &opened.parts {
        check_package(&path.display().to_string(), parts, &mut checked)?;
    }
    Ok(checked)
}

/// Findings in one record.
#[derive(Debug, Default)]
struct Found {
    kind: String,
    n_digests: u64,
    n_not_compared: u64,
    faults: Vec<String>,
}

fn check_warc(warc: &Source, max_record: u64, checked: &mut Checked) -> Result<(), ReadError> {
    let mut records = Records::of(warc, max_record)?;
    if warc.n_bytes() == 0 {
        checked.fault(warc.name(), 0, "the file is empty");
    }
    loop {
        match records.next(check_record) {
            Ok(Some(read)) => {
                let found = read.value;
                *checked.records.entry(found.kind).or_default() += 1;
                checked.n_digests += found.n_digests;
                checked.n_not_compared += found.n_not_compared;
                for why in found.faults {
                    checked.fault(warc.name(), read.offset, why);
                }
            }
            Ok(None) => return Ok(()),
            Err(error) => return checked.read_fault(error),
        }
    }
}

fn check_record(head: &Head, block: &mut dyn BufRead) -> io::Result<Found> {
    let mut found = Found {
        // The type may be any text, and is counted.
        kind: head.kind().chars().take(40).collect(),
        ..Found::default()
    };
    for (field, name) in [
        ("warc-type", "WARC-Type"),
        ("warc-record-id", "WARC-Record-ID"),
    ] {
        if head.get(field).is_none_or(str::is_empty) {
            found.faults.push(format!("it has no {name}"));
        }
    }
    if head.get("warc-date").and_then(parse_date).is_none() {
        found.faults.push("it has no valid WARC-Date".to_owned());
    }
    let mut of_block = Expected::of(head.get("warc-block-digest"), &mut found);
    let is_revisit = head.kind() == "revisit";
    let payload = head.get("warc-payload-digest");
    // The payload is in another record, or in several.
    let is_elsewhere = is_revisit || head.get("warc-segment-number").is_some();
    found.n_not_compared += u64::from(payload.is_some() && is_elsewhere);
    let mut of_payload = Expected::of(payload.filter(|_| !is_elsewhere), &mut found);
    let mut block = Tee {
        inner: block,
        expected: &mut of_block,
    };
    if head.is_http() {
        match MessageHead::read(&mut block) {
            Ok(message) if message.status().is_none() && message.method().is_none() => {
                found
                    .faults
                    .push("its block is no message of HTTP".to_owned());
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                found.faults.push(error.to_string());
                of_payload = Expected::default();
            }
            Err(error) => return Err(error),
        }
    }
    let mut payload = Tee {
        inner: &mut block,
        expected: &mut of_payload,
    };
    io::copy(&mut payload, &mut io::sink())?;
    of_block.compare("block", &mut found);
    of_payload.compare("payload", &mut found);
    Ok(found)
}

/// Digest that a field tells, and the one of the bytes so far.
#[derive(Default)]
struct Expected {
    told: String,
    context: Option<Context>,
}

impl Expected {
    fn of(field: Option<&str>, found: &mut Found) -> Self {
        let Some((kind, told)) = field.and_then(|field| field.split_once(':')) else {
            return Self::default();
        };
        let algorithm = match kind.to_ascii_lowercase().as_str() {
            "sha1" | "sha-1" => &SHA1_FOR_LEGACY_USE_ONLY,
            "sha256" | "sha-256" => &SHA256,
            _ => {
                found.n_not_compared += 1;
                return Self::default();
            }
        };
        Self {
            told: told.trim().to_owned(),
            context: Some(Context::new(algorithm)),
        }
    }

    fn compare(self, what: &str, found: &mut Found) {
        let Some(context) = self.context else { return };
        let digest = context.finish();
        let told = self.told.trim_end_matches('=').to_ascii_uppercase();
        match told == base32(digest.as_ref()) || told == base16(digest.as_ref()) {
            true => found.n_digests += 1,
            false => found
                .faults
                .push(format!("the digest of its {what} is not that of the bytes")),
        }
    }
}

fn base16(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// Returns bytes in the letters of RFC 4648, 6, without padding.
fn base32(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut text = String::new();
    let (mut bits, mut n_bits) = (0_u32, 0);
    for byte in bytes {
        bits = (bits << 8) | u32::from(*byte);
        n_bits += 8;
        while n_bits >= 5 {
            n_bits -= 5;
            text.push(char::from(LETTERS[(bits >> n_bits) as usize & 31]));
        }
        bits &= 31;
    }
    if n_bits > 0 {
        text.push(char::from(LETTERS[(bits << (5 - n_bits)) as usize & 31]));
    }
    text
}

/// Reader that adds what it reads to a digest.
struct Tee<'a> {
    inner: &'a mut dyn BufRead,
    expected: &'a mut Expected,
}

impl Read for Tee<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        if let Some(context) = &mut self.expected.context {
            context.update(&buffer[..n]);
        }
        Ok(n)
    }
}

impl BufRead for Tee<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, n: usize) {
        if let Some(context) = &mut self.expected.context
            && let Ok(buffer) = self.inner.fill_buf()
        {
            context.update(&buffer[..n.min(buffer.len())]);
        }
        self.inner.consume(n);
    }
}

/// Description of a WACZ file, as far as it is checked.
#[derive(Debug, Deserialize)]
struct Package {
    resources: Vec<Resource>,
}

#[derive(Debug, Deserialize)]
struct Resource {
    path: String,
    hash: String,
    bytes: u64,
}

#[derive(Debug, Deserialize)]
struct PackageDigest {
    hash: String,
}

/// Compares the parts of a WACZ file with their description.
fn check_package(
    path: &str,
    parts: &[(String, Source)],
    checked: &mut Checked,
) -> Result<(), ReadError> {
    // The first part of a name counts.
    let by_name: HashMap<&str, &Source> = parts
        .iter()
        .rev()
        .map(|(name, part)| (name.as_str(), part))
        .collect();
    let part = |name: &str| by_name.get(name).copied();
    let whole = |part: &Source| -> Result<Vec<u8>, ReadError> {
        let mut bytes = Vec::new();
        let section = part.section(0);
        let read = section.and_then(|part| part.take(MAX_PACKAGE).read_to_end(&mut bytes));
        read.map_err(|error| ReadError::at(part.name(), 0, error))?;
        Ok(bytes)
    };
    let Some(described) = part(PACKAGE) else {
        checked.fault(
            path,
            0,
            format!("it has no {PACKAGE}, so it is no WACZ file"),
        );
        return Ok(());
    };
    let described = whole(described)?;
    if let Some(digest) = part(PACKAGE_DIGEST) {
        let told = serde_json::from_slice::<PackageDigest>(&whole(digest)?);
        compare_part(
            path,
            PACKAGE,
            told.ok().map(|told| told.hash),
            &described[..],
            checked,
        )?;
    }
    let package = match serde_json::from_slice::<Package>(&described) {
        Ok(package) => package,
        Err(error) => {
            checked.fault(path, 0, format!("{PACKAGE} cannot be parsed: {error}"));
            return Ok(());
        }
    };
    for Resource {
        path: name,
        hash,
        bytes,
    } in package.resources
    {
        match part(&name) {
            Some(part) if part.n_bytes() == bytes => {
                let section = part.section(0);
                let section = section.map_err(|error| ReadError::at(part.name(), 0, error))?;
                compare_part(path, &name, Some(hash), section, checked)?;
            }
            Some(part) => {
                let n = part.n_bytes();
                checked.fault(path, 0, format!("{name} has {n} bytes, not {bytes}"));
            }
            None => checked.fault(path, 0, format!("{name} is missing, or is compressed")),
        }
    }
    Ok(())
}

fn compare_part(
    path: &str,
    name: &str,
    hash: Option<String>,
    mut bytes: impl Read,
    checked: &mut Checked,
) -> Result<(), ReadError> {
    let mut found = Found::default();
    let mut expected = Expected::of(hash.as_deref(), &mut found);
    let mut piece = vec![0; 64 << 10];
    loop {
        let n = bytes.read(&mut piece);
        let n = n.map_err(|error| ReadError::at(path, 0, error))?;
        if n == 0 {
            break;
        }
        if let Some(context) = &mut expected.context {
            context.update(&piece[..n]);
        }
    }
    expected.compare("part", &mut found);
    checked.n_digests += found.n_digests;
    checked.n_not_compared += found.n_not_compared;
    for _ in found.faults {
        checked.fault(path, 0, format!("{name} is not what {PACKAGE} describes"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_compared_in_both_spellings() {
        // The vectors of RFC 4648, 10.
        for (bytes, text) in [
            ("", ""),
            ("f", "MY"),
            ("fo", "MZXQ"),
            ("foobar", "MZXW6YTBOI"),
        ] {
            assert_eq!(base32(bytes.as_bytes()), text);
        }
        let check = |told: &str| {
            let mut found = Found::default();
            let mut expected = Expected::of(Some(told), &mut found);
            if let Some(context) = &mut expected.context {
                context.update(b"abc");
            }
            expected.compare("block", &mut found);
            (found.n_digests, found.n_not_compared, found.faults.len())
        };
        let good = [
            "sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5",
            "sha1:a9993e364706816aba3e25717850c26c9cd0d89d",
            "SHA-256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        ];
        for told in good {
            assert_eq!(check(told), (1, 0, 0), "{told}");
        }
        assert_eq!(check("sha1:AAAA"), (0, 0, 1));
        assert_eq!(check("md5:900150983cd24fb0d6963f7d28e17f72"), (0, 1, 0));
    }
}
