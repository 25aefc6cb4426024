//! Settings of a stream of items.

use std::time::Duration;

use super::subject::SubjectTemplate;
use crawler_sink::settings::{SettingError, check_number, check_size, check_time};

/// Settings of a stream of items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NatsSettings {
    /// Template of the subjects of items.
    pub subject: SubjectTemplate,
    /// Template of the subjects of items that are too large for a message.
    pub reject_subject: SubjectTemplate,
    /// Largest number of items that are published before the first acknowledgement.
    pub batch_items: usize,
    /// Size in bytes of the items that are published before the first acknowledgement, with their envelopes. A single item
    /// may be larger.
    pub batch_bytes: u64,
    /// Time for which items gather until fewer are published.
    pub max_wait: Duration,
    /// Time that a connection, and the acknowledgements of a batch, may take.
    pub timeout: Duration,
}

impl Default for NatsSettings {
    fn default() -> Self {
        let template = |text: &str| text.parse().expect("the template of this file is one");
        Self {
            subject: template("crawler.{resource}.{kind}"),
            reject_subject: template("crawler.rejects"),
            batch_items: 1_000,
            batch_bytes: 8 << 20,
            max_wait: Duration::from_secs(1),
            timeout: Duration::from_secs(30),
        }
    }
}

impl NatsSettings {
    /// Returns the default template of the subjects of changes.
    pub fn change_subject() -> SubjectTemplate {
        let template = "crawler.{resource}.{kind}.changes".parse();
        template.expect("the template of this file is one")
    }

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
        check_time(
            "timeout",
            self.timeout,
            seconds(1)..=seconds(600),
            ("1s", "10m"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_a_stream_has_its_range() {
        let default = NatsSettings::default();
        assert_eq!(default.check(), Ok(()));
        let seconds = |n| Duration::from_secs(n);
        let of = |change: fn(&mut NatsSettings)| {
            let mut settings = NatsSettings::default();
            change(&mut settings);
            settings.check().unwrap_err().to_string()
        };
        for (why, expected) in [
            (
                of(|s| s.batch_items = 0),
                "batch-items is 0; it goes from 1 to 10000",
            ),
            (
                of(|s| s.batch_bytes = (64 << 20) + 1),
                "batch-bytes is 67108865; it goes from 1 to 64MiB",
            ),
            (
                of(|s| s.max_wait = Duration::from_secs(61)),
                "max-wait is 1m 1s; it goes from 0s to 1m",
            ),
            (
                of(|s| s.timeout = Duration::ZERO),
                "timeout is 0s; it goes from 1s to 10m",
            ),
        ] {
            assert_eq!(why, expected);
        }
        assert_eq!(default.timeout, seconds(30));
    }
}
