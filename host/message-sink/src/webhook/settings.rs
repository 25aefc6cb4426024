//! Settings of posts of items.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crawler_sink::settings::{SettingError, check_number, check_size, check_time};

/// Form of the body of a post.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PostFormat {
    /// Items with their envelopes, one JSON object a line.
    Lines,
    /// The same objects in a JSON array.
    Array,
}

impl PostFormat {
    const ALL: [Self; 2] = [Self::Lines, Self::Array];

    /// Returns the name of the format.
    pub fn as_str(self) -> &'static str {
        match self {
            PostFormat::Lines => "jsonl",
            PostFormat::Array => "json",
        }
    }

    /// Returns the media type of a body.
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            PostFormat::Lines => "application/x-ndjson",
            PostFormat::Array => "application/json",
        }
    }
}

impl fmt::Display for PostFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for PostFormat {
    type Err = PostFormatError;

    fn from_str(text: &str) -> Result<Self, PostFormatError> {
        let known = Self::ALL.into_iter().find(|format| format.as_str() == text);
        known.ok_or_else(|| PostFormatError(text.to_owned()))
    }
}

/// Name that is no format of posts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no format of posts: there are jsonl and json")]
pub struct PostFormatError(String);

/// Settings of posts of items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookSettings {
    /// Form of the body.
    pub format: PostFormat,
    /// Largest number of items of a post.
    pub batch_items: usize,
    /// Size in bytes of the items of a post, with their envelopes. A single item may be larger.
    pub batch_bytes: u64,
    /// Time for which items gather until fewer are posted.
    pub max_wait: Duration,
    /// Time that an answer may take.
    pub timeout: Duration,
    /// Longest wait that an answer may ask for with `Retry-After`.
    pub max_retry_wait: Duration,
}

impl Default for WebhookSettings {
    fn default() -> Self {
        Self {
            format: PostFormat::Lines,
            batch_items: 500,
            batch_bytes: 1 << 20,
            max_wait: Duration::from_secs(1),
            timeout: Duration::from_secs(30),
            max_retry_wait: Duration::from_secs(5 * 60),
        }
    }
}

impl WebhookSettings {
    /// Checks that all numbers are in their ranges.
    ///
    /// # Errors
    ///
    /// Names the first setting that is out of its range.
    pub fn check(&self) -> Result<(), SettingError> {
        let n_items = self.batch_items as u64;
        check_number("batch-items", n_items, 1..=10_000, ("1", "10000"))?;
        let range = 1..=64 << 20;
        check_size("batch-bytes", self.batch_bytes, range, ("1", "64MiB"))?;
        let seconds = |n| Duration::from_secs(n);
        let range = Duration::ZERO..=seconds(60);
        check_time("max-wait", self.max_wait, range, ("0s", "1m"))?;
        let range = seconds(1)..=seconds(600);
        check_time("timeout", self.timeout, range, ("1s", "10m"))?;
        let range = seconds(1)..=seconds(24 * 60 * 60);
        check_time("max-retry-wait", self.max_retry_wait, range, ("1s", "1day"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_of_posts_is_known_by_its_name() {
        for format in PostFormat::ALL {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        let error = "csv".parse::<PostFormat>().unwrap_err().to_string();
        assert_eq!(
            error,
            "\"csv\" is no format of posts: there are jsonl and json"
        );
    }

    #[test]
    fn every_number_of_posts_has_its_range() {
        assert_eq!(WebhookSettings::default().check(), Ok(()));
        let of = |change: fn(&mut WebhookSettings)| {
            let mut settings = WebhookSettings::default();
            change(&mut settings);
            settings.check().unwrap_err().to_string()
        };
        for (why, expected) in [
            (
                of(|s| s.batch_items = 10_001),
                "batch-items is 10001; it goes from 1 to 10000",
            ),
            (
                of(|s| s.batch_bytes = 0),
                "batch-bytes is 0; it goes from 1 to 64MiB",
            ),
            (
                of(|s| s.max_wait = Duration::from_secs(61)),
                "max-wait is 1m 1s; it goes from 0s to 1m",
            ),
            (
                of(|s| s.timeout = Duration::from_secs(601)),
                "timeout is 10m 1s; it goes from 1s to 10m",
            ),
            (
                of(|s| s.max_retry_wait = Duration::ZERO),
                "max-retry-wait is 0s; it goes from 1s to 1day",
            ),
        ] {
            assert_eq!(why, expected);
        }
    }
}
