//! Settings of a crawl: the range and pace that a user may set, and the defaults.
//!
//! Every interface (gRPC, HTTP, command line, config file) takes the same settings under the same names, from the
//! rows of `settings/table.rs`. Messages and counts of refused links name a setting as the command line does.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::crawl::URL_MAX;
use super::drift::Sensitivity;

mod access;
mod choices;
mod content;
#[macro_use]
mod define;
mod error;
mod host_pattern;
mod identity;
mod list;
mod pace;
mod setting;
mod sinks;
mod table;

pub use access::{AccessName, CredentialNames, ProxyChoice};
pub use choices::{ArchiveForm, Cookies, Robots, Unchanged};
pub use content::ContentTypes;
pub use error::SettingError;
pub use host_pattern::HostPattern;
pub use identity::{Agent, CookieSeed, USUAL_AGENT};
pub use pace::{Hours, Rate, Rates};
use setting::Field;
pub use setting::{Applies, Fallback, Kind, Setting, Value};
use sinks::MAX_SINKS;
pub use sinks::{SinkName, SinkNames};
use table::{DAY, YEAR};
pub use table::{
    DEFAULT_CONCURRENCY, DEFAULT_DELAY, DEFAULT_MAX_ATTEMPTS, DEFAULT_MAX_CRAWL_DELAY,
    DEFAULT_MAX_URL_LENGTH, MAX_DELAY,
};

// Defines CrawlSettings and SETTINGS.
crate::crawl_settings!(define);

impl CrawlSettings {
    /// Refuses values that make no sense.
    pub fn check(&self) -> Result<(), SettingError> {
        SETTINGS
            .iter()
            .try_for_each(|setting| setting.check(self))?;
        self.scope
            .iter()
            .try_for_each(|pattern| pattern.check("scope"))
    }

    /// Returns the sinks of the crawl: setting `sink`.
    pub fn sink_names(&self) -> SinkNames {
        SinkNames::of(self.sinks.iter().cloned())
    }
}

impl Setting {
    /// Returns the setting of this name on the command line and in the config file.
    pub fn named(name: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.name == name)
    }
}

/// Returns the example of every setting.
#[cfg(any(test, feature = "testing"))]
pub fn examples() -> CrawlSettings {
    let mut settings = CrawlSettings::default();
    for setting in SETTINGS {
        let set = setting.set(&mut settings, example(setting));
        set.expect("the example is a value of the setting");
    }
    settings
}

#[cfg(any(test, feature = "testing"))]
fn example(setting: &Setting) -> Value {
    use crate::plugin::{parse_bytes, parse_millis};

    let text = setting.example.concat();
    let number = match setting.kind {
        Kind::U32 | Kind::U64 => text.parse().ok(),
        Kind::Bytes => parse_bytes(&text),
        Kind::Time => parse_millis(&text),
        Kind::Text => return Value::Text(text),
        Kind::Texts | Kind::List => {
            return Value::Texts(setting.example.iter().map(ToString::to_string).collect());
        }
    };
    Value::Number(number.expect("the example is a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(set: impl FnOnce(&mut CrawlSettings), refusal: &str) {
        let mut settings = CrawlSettings::default();
        set(&mut settings);
        let found = settings.check().map_err(|e| e.to_string());
        assert_eq!(found.err().unwrap_or_default(), refusal);
    }

    #[test]
    fn a_setting_that_cannot_be_meant_is_refused_by_its_name() {
        let zero = |name| format!("setting {name} must be above zero");
        check(|s| s.concurrency = Some(0), &zero("concurrency"));
        check(|s| s.max_pages = Some(0), &zero("max-pages"));
        check(|s| s.max_bytes = Some(0), &zero("max-bytes"));
        check(|s| s.max_url_length = Some(0), &zero("max-url-length"));
        check(
            |s| s.max_segment_repeats = Some(0),
            &zero("max-segment-repeats"),
        );
        check(|s| s.max_pattern_urls = Some(0), &zero("max-pattern-urls"));
        check(|s| s.max_hosts = Some(0), &zero("max-hosts"));
        check(|s| s.max_disk = Some(0), &zero("max-disk"));
        check(|s| s.max_undelivered = Some(0), &zero("max-undelivered"));
        check(
            |s| s.max_undelivered = Some((256 << 20) + 1),
            "setting max-undelivered is 268435457; at most 268435456 are allowed",
        );
        check(|s| s.max_log = Some(0), &zero("max-log"));
        check(
            |s| s.max_log = Some(100_001),
            "setting max-log is 100001; at most 100000 are allowed",
        );
        check(
            |s| s.max_log_size = Some(100),
            "setting max-log-size is 100; at least 16384 are needed",
        );
        check(
            |s| s.archive_size = Some(100),
            "setting archive-size is 100; at least 1048576 are needed",
        );
        check(|s| s.max_attempts = Some(0), &zero("max-attempts"));
        check(|s| s.max_retry_wait_ms = Some(0), &zero("max-retry-wait"));
        check(
            |s| s.concurrency = Some(1_025),
            "setting concurrency is 1025; at most 1024 are allowed",
        );
        check(
            |s| s.max_url_length = Some(8_193),
            "setting max-url-length is 8193; at most 8192 are allowed",
        );
        check(
            |s| s.max_retry_wait_ms = Some(86_400_001),
            "setting max-retry-wait is longer than a day",
        );
        check(
            |s| s.max_crawl_delay_ms = Some(86_400_001),
            "setting max-crawl-delay is longer than a day",
        );
        check(
            |s| s.revisit_ms = Some(366 * DAY + 1),
            "setting revisit is longer than 366 days",
        );
        check(
            |s| s.user_agents = vec![Agent::Honest; 65],
            "setting user-agent has 65 entries; at most 64 are allowed",
        );
        check(
            |s| s.cookie_seeds = vec!["a.test:b=c".parse().unwrap(); 51],
            "setting cookie has 51 entries; at most 50 are allowed",
        );
        check(
            |s| s.sinks = vec![SinkName::lines(); 9],
            "setting sink has 9 entries; at most 8 are allowed",
        );
        check(|s| s.max_url_length = Some(8_192), "");
        check(|s| s.max_depth = Some(0), "");
    }

    #[test]
    fn a_delay_that_would_close_a_host_to_all_is_refused() {
        check(|s| s.delay_ms = Some(86_400_000), "");
        for delay_ms in [86_400_001, u64::MAX] {
            check(
                |s| s.delay_ms = Some(delay_ms),
                "setting delay is longer than a day",
            );
            check(
                |s| s.random_delay_ms = Some(delay_ms),
                "setting random-delay is longer than a day",
            );
        }
    }

    #[test]
    fn what_a_change_does_not_name_stays() {
        let all = examples();
        let nothing = CrawlSettings::default();
        assert_eq!(nothing.clone().over(all.clone()), all);
        assert_eq!(all.clone().over(nothing.clone()), all);
        let other = CrawlSettings {
            delay_ms: Some(11),
            unchanged: Some(Unchanged::Parse),
            ..nothing
        };
        let mixed = other.over(all.clone());
        assert_eq!(
            (mixed.delay_ms, mixed.unchanged, mixed.max_bytes),
            (Some(11), Some(Unchanged::Parse), all.max_bytes)
        );
    }

    #[test]
    fn every_example_sets_its_field_and_is_in_range() {
        assert_eq!(examples().check(), Ok(()));
        for setting in SETTINGS {
            let mut alone = CrawlSettings::default();
            assert_eq!(setting.value(&alone), None);
            setting.set(&mut alone, example(setting)).unwrap();
            let mut again = CrawlSettings::default();
            let value = setting.value(&alone).unwrap();
            setting.set(&mut again, value).unwrap();
            assert_eq!(again, alone);
            let json = serde_json::to_value(&alone).unwrap();
            let fields: Vec<&String> = json.as_object().unwrap().keys().collect();
            assert_eq!(fields, [setting.field]);
        }
    }

    #[test]
    fn a_default_in_words_is_that_of_the_code() {
        let words = |name| Setting::named(name).unwrap().default.to_string();
        for setting in SETTINGS {
            if let (Kind::Time, range) = (setting.kind, &setting.range) {
                let max = match setting.name {
                    "revisit" | "revisit-max" => Duration::from_millis(YEAR),
                    _ => MAX_DELAY,
                };
                assert_eq!(Duration::from_millis(*range.end()), max);
            }
        }
        let delay = humantime::format_duration(DEFAULT_DELAY);
        assert_eq!(
            words("delay"),
            format!("{delay}, and 0 in allowed networks")
        );
        assert_eq!(words("user-agent").parse(), Ok(Agent::Honest));
        assert_eq!(words("robots"), "obey");
        assert_eq!(words("max-bytes"), "1TiB");
        assert_eq!(words("max-retry-wait"), "5m");
        assert_eq!(words("random-delay"), "0s");
        for (name, absent) in [("rate", "none"), ("hours", "all"), ("content-types", "all")] {
            assert_eq!(words(name), absent);
        }
    }
}
