//! Names of the files that the sink makes: those of writes, and those that compactions make of them. Files with other names
//! are somebody else's.

use crawler_model::id::ResourceId;

use crate::plan::{DIGEST_DIGITS, DIGITS, digest};
use crate::settings::Format;

/// Smallest number of digits of the number of a compaction, with leading zeros.
pub(super) const NUMBER_DIGITS: usize = 6;

/// Name of a file, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileName {
    pub(super) resource: ResourceId,
    pub(super) format: Format,
    pub(super) origin: Origin,
}

/// Origin of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// A worker wrote it.
    Write,
    /// The compaction of this number in its folder made it.
    Compaction(u64),
}

impl FileName {
    /// Takes a name apart; `None` if it is none of the sink's.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let (stem, ending) = name.rsplit_once('.')?;
        let format = ending.parse().ok()?;
        let parts: Vec<&str> = stem.split('-').collect();
        let (resource, origin, digest) = match parts[..] {
            [resource, shard, first, digest] => {
                number(shard, 1)?;
                let is_first = first.len() == DIGITS && first.bytes().all(|b| b.is_ascii_digit());
                is_first.then_some((resource, Origin::Write, digest))?
            }
            [resource, compaction, digest] => {
                let n = number(compaction.strip_prefix('c')?, NUMBER_DIGITS)?;
                (resource, Origin::Compaction(n), digest)
            }
            _ => return None,
        };
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_digest = digest.len() == DIGEST_DIGITS && digest.bytes().all(is_digit);
        is_digest.then_some(Self {
            resource: ResourceId(number(resource, 1)?),
            format,
            origin,
        })
    }
}

/// Returns the name of the file that a compaction makes of files with these names.
pub(super) fn output(resource: ResourceId, n: u64, format: Format, inputs: &[String]) -> String {
    let digest = digest(inputs.iter().map(String::as_str));
    format!("{resource}-c{n:0NUMBER_DIGITS$}-{digest}.{format}")
}

/// Parses a number that is written with at least this many digits, and with no more leading zeros than that.
pub(super) fn number(text: &str, n_digits: usize) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (format!("{number:0n_digits$}") == text).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "5f0c1d3e9a7b2c4d6e8f0a1b";

    #[test]
    fn names_of_the_sink_are_taken_apart() {
        let name = format!("7-0-00000000000000004096-{DIGEST}.parquet");
        let expected = FileName {
            resource: ResourceId(7),
            format: Format::Parquet,
            origin: Origin::Write,
        };
        assert_eq!(FileName::parse(&name), Some(expected));
        let inputs = [name];
        let output = output(ResourceId(7), 12, Format::Csv, &inputs);
        assert!(output.starts_with("7-c000012-"), "{output}");
        let expected = FileName {
            format: Format::Csv,
            origin: Origin::Compaction(12),
            ..expected
        };
        assert_eq!(FileName::parse(&output), Some(expected));
        let late = super::output(ResourceId(7), 1_234_567, Format::Csv, &inputs);
        let origin = FileName::parse(&late).unwrap().origin;
        assert_eq!(origin, Origin::Compaction(1_234_567));
    }

    #[test]
    fn names_of_others_are_left_alone() {
        for name in [
            "part-0.parquet".to_owned(),
            "notes.csv".to_owned(),
            String::new(),
            format!("7-0-4096-{DIGEST}.csv"),
            format!("07-0-00000000000000004096-{DIGEST}.csv"),
            format!("7-x-00000000000000004096-{DIGEST}.csv"),
            format!("7-+1-00000000000000004096-{DIGEST}.csv"),
            format!("7-0-00000000000000004096-{DIGEST}.csv.crc"),
            format!("7-0-00000000000000004096-{}.csv", DIGEST.to_uppercase()),
            format!("7-0-00000000000000004096-{DIGEST}0.csv"),
            format!("7-0-00000000000000004096-{DIGEST}.xml"),
            format!("7-c12-{DIGEST}.csv"),
            format!("7-c0000012-{DIGEST}.csv"),
            format!("7-d000012-{DIGEST}.csv"),
            format!(".7-c000012-{DIGEST}.csv"),
        ] {
            assert_eq!(FileName::parse(&name), None, "{name}");
        }
    }
}
