//! Settings of files of items, and the ranges that their numbers have.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crawler_sink::settings::{SettingError, check_size, check_time};

use crate::partition::Partition;

/// Format of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// Items with their envelopes, one JSON object a line.
    Lines,
    /// Tables of text, as in RFC 4180.
    Csv,
    /// Tables in columns, compressed with Zstandard.
    Parquet,
}

impl Format {
    const ALL: [Self; 3] = [Self::Lines, Self::Csv, Self::Parquet];

    /// Returns the name of the format, which is the ending of its files, too.
    pub fn as_str(self) -> &'static str {
        match self {
            Format::Lines => "jsonl",
            Format::Csv => "csv",
            Format::Parquet => "parquet",
        }
    }

    /// Returns the media type of the files.
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Format::Lines => "application/x-ndjson",
            Format::Csv => "text/csv; charset=utf-8; header=present",
            Format::Parquet => "application/vnd.apache.parquet",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Format {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        let known = Self::ALL.into_iter().find(|format| format.as_str() == text);
        known.ok_or_else(|| FormatError(text.to_owned()))
    }
}

/// Name that is no format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no format: there are jsonl, csv and parquet")]
pub struct FormatError(String);

/// Settings of files of items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSettings {
    /// Format of the files.
    pub format: Format,
    /// Template of the folders that files are put into.
    pub partition: Partition,
    /// Conditions by which items are chosen before the sink gets them. A plan that was made under others is replaced.
    pub only: Vec<String>,
    /// Size in bytes of the items at which files are written. A single item may be larger. It goes up to 8 MiB, because all
    /// items of a write are in memory.
    pub max_file_bytes: u64,
    /// Time for which items gather until smaller files are written.
    pub max_wait: Duration,
}

impl Default for FileSettings {
    fn default() -> Self {
        Self {
            format: Format::Lines,
            partition: Partition::default(),
            only: Vec::new(),
            max_file_bytes: 8 << 20,
            max_wait: Duration::from_secs(60),
        }
    }
}

impl FileSettings {
    /// Checks that all numbers are in their ranges.
    ///
    /// # Errors
    ///
    /// Names the first setting that is out of its range.
    pub fn check(&self) -> Result<(), SettingError> {
        let sizes = 64 << 10..=8 << 20;
        check_size("max-file", self.max_file_bytes, sizes, ("64KiB", "8MiB"))?;
        let times = Duration::ZERO..=Duration::from_secs(3_600);
        check_time("max-wait", self.max_wait, times, ("0s", "1h"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_known_by_its_name() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        let error = "xml".parse::<Format>().unwrap_err();
        let why = "\"xml\" is no format: there are jsonl, csv and parquet";
        assert_eq!(error.to_string(), why);
    }

    #[test]
    fn a_number_out_of_its_range_is_named() {
        let default = FileSettings::default();
        default.check().unwrap();
        let small = FileSettings {
            max_file_bytes: 1,
            ..default.clone()
        };
        let error = small.check().unwrap_err().to_string();
        assert_eq!(error, "max-file is 1; it goes from 64KiB to 8MiB");
        let large = FileSettings {
            max_file_bytes: (8 << 20) + 1,
            ..default.clone()
        };
        let error = large.check().unwrap_err().to_string();
        assert_eq!(error, "max-file is 8388609; it goes from 64KiB to 8MiB");
        let slow = FileSettings {
            max_wait: Duration::from_secs(7_200),
            ..default
        };
        let error = slow.check().unwrap_err().to_string();
        assert_eq!(error, "max-wait is 2h; it goes from 0s to 1h");
    }
}
