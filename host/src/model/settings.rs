//! Settings of a crawl: the range and pace that a user may set, and the defaults.
//!
//! Every interface (gRPC, HTTP, command line, config file) takes the same settings under the same names.
//! Messages and counts of refused links name a setting as the command line does.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::crawl::URL_MAX;
use super::scope::HostPattern;

mod access;
mod choices;
mod content;
mod identity;
mod list;
mod pace;

pub use access::{AccessName, CredentialNames, ProxyChoice};
pub use choices::{Cookies, Robots, Unchanged};
pub use content::ContentTypes;
pub use identity::{Agent, CookieSeed, USUAL_AGENT};
pub use pace::{Hours, Rate, Rates};

/// Range and pace of a crawl.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CrawlSettings {
    /// Time between the end of a response and the next request to the same host, in milliseconds. If `None`, 1 s,
    /// and 0 in the networks that the operator allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// Upper bound of a random addition to that time, in milliseconds. If `None`, 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub random_delay_ms: Option<u64>,
    /// Rates of requests to one host, by all crawls of a worker that visit it: the strictest rates hold, for as
    /// long as a crawl asks for them. If `None`, unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_rate: Option<Rates>,
    /// Rates of pages that the crawl begins, on all hosts; its shards share them. If `None`, unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rates>,
    /// Hours in which pages are begun. If `None`, all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hours: Option<Hours>,
    /// Number of pages in flight at once. If `None`, [`DEFAULT_CONCURRENCY`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// Number of pages fetched in one run. If `None`, [`DEFAULT_MAX_PAGES`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_pages: Option<u64>,
    /// Bytes of bodies in one run. Pages in flight when it is reached still count. If `None`,
    /// [`DEFAULT_MAX_BYTES`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// Number of links followed from the root requests. If `None`, [`DEFAULT_MAX_DEPTH`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<u32>,
    /// Bytes of a URL, without its fragment. If `None`, [`DEFAULT_MAX_URL_LENGTH`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_url_length: Option<u32>,
    /// Number of times that one segment may occur in a path. If `None`, [`DEFAULT_MAX_SEGMENT_REPEATS`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_segment_repeats: Option<u32>,
    /// Number of URLs of one host and one pattern in one run. If `None`, [`DEFAULT_MAX_PATTERN_URLS`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_pattern_urls: Option<u64>,
    /// Number of hosts with a URL in one run; the shards share it. If `None`, [`DEFAULT_MAX_HOSTS`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_hosts: Option<u64>,
    /// Bytes of the frontier on disk, shared by the shards. At this size, links that are found are no longer
    /// followed. If `None`, [`DEFAULT_MAX_DISK`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_disk: Option<u64>,
    /// Bytes of items that wait for their sink, shared by the shards. At this size, no page is begun until the
    /// sink has caught up. If `None`, [`DEFAULT_MAX_UNDELIVERED`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_undelivered: Option<u64>,
    /// Number of attempts at one page before it is given up. If `None`, [`DEFAULT_MAX_ATTEMPTS`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// Longest wait before another attempt, in milliseconds; a longer one that a server or a rule asks for is cut
    /// to it. If `None`, [`DEFAULT_MAX_RETRY_WAIT`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retry_wait_ms: Option<u64>,
    /// Treatment of a page that has not changed since the last run. If `None`, [`Unchanged::Parse`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unchanged: Option<Unchanged>,
    /// Treatment of the robots.txt of a site. If `None`, [`Robots::Obey`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub robots: Option<Robots>,
    /// Longest `crawl-delay` of a robots.txt that is kept, in milliseconds; a longer one is cut to it. If `None`,
    /// [`DEFAULT_MAX_CRAWL_DELAY`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_crawl_delay_ms: Option<u64>,
    /// User agents of the crawl; if there are several, they are divided among the hosts. If empty,
    /// [`Agent::Honest`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub user_agents: Vec<Agent>,
    /// Treatment of cookies. If `None`, [`Cookies::Keep`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cookies: Option<Cookies>,
    /// Cookies that the crawl begins with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cookie_seeds: Vec<CookieSeed>,
    /// Content types that are wanted; other pages are left out before their bodies are read. If `None`, all are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_types: Option<ContentTypes>,
    /// Choice of proxy for pages. If `None`, the worker's proxies called `default`, if it has such.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<ProxyChoice>,
    /// Credentials that are sent to hosts. If `None`, none are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<CredentialNames>,
    /// Hosts that the crawl may visit beyond those of its root requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<HostPattern>,
}

/// Number of pages in flight at once, for one resource.
pub const DEFAULT_CONCURRENCY: u32 = 16;
/// Number of pages fetched in one run.
pub const DEFAULT_MAX_PAGES: u64 = 1_000_000;
/// Bytes of bodies in one run: ten times the size of a million pages on most sites, so that the page limit
/// is reached first unless something is odd.
pub const DEFAULT_MAX_BYTES: u64 = 1 << 40;
/// Number of links followed from the root requests.
pub const DEFAULT_MAX_DEPTH: u32 = 50;
/// Bytes of a URL: the length that sitemaps may contain and that every browser, proxy and server accepts.
/// Longer URLs nearly always come from links that append to themselves.
pub const DEFAULT_MAX_URL_LENGTH: u32 = 2_048;
/// Number of times that one segment may occur in a path: relative links that append to themselves form
/// every word over a few segments, and the number of such words grows like a factorial with this bound.
pub const DEFAULT_MAX_SEGMENT_REPEATS: u32 = 3;
/// Number of URLs of one host and one pattern: a tenth of the pages of a run, so that an endless calendar
/// cannot use it up, and more products, threads or articles than most sites have.
pub const DEFAULT_MAX_PATTERN_URLS: u64 = 100_000;
/// Number of hosts with a URL in one run: a worker keeps about 120 bytes in memory for each host that has
/// something left to fetch.
pub const DEFAULT_MAX_HOSTS: u64 = 1_000_000;
/// Bytes of a frontier on disk: a URL takes half a kilobyte with its records, so that the bound is reached
/// at about 60 million URLs, far more than the pages of a run.
pub const DEFAULT_MAX_DISK: u64 = 32 << 30;
/// Bytes of items that wait for their sink.
pub const DEFAULT_MAX_UNDELIVERED: u64 = 256 << 20;
/// Largest value of `max_undelivered`: a frontier takes no page above it.
pub const MAX_UNDELIVERED: u64 = 256 << 20;
/// Number of attempts at one page before it is given up.
pub const DEFAULT_MAX_ATTEMPTS: u32 = 5;
/// Longest wait before another attempt.
pub const DEFAULT_MAX_RETRY_WAIT: Duration = Duration::from_secs(300);
/// Longest `crawl-delay` that is kept.
pub const DEFAULT_MAX_CRAWL_DELAY: Duration = Duration::from_secs(300);
/// Time between two requests to one host outside the allowed networks.
pub const DEFAULT_DELAY: Duration = Duration::from_secs(1);
/// Longest delay that a setting may ask for: all crawls of a host keep the longest that one asks for.
pub const MAX_DELAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Largest number of user agents; more are no longer a rotation.
const MAX_AGENTS: usize = 64;
/// Largest number of cookie seeds: as many as a site may set.
const MAX_COOKIE_SEEDS: usize = 50;
/// Largest number of pages in flight that a setting may ask for.
pub const MAX_CONCURRENCY: u32 = 1_024;

impl CrawlSettings {
    /// Returns the number of pages in flight at once.
    pub fn concurrency(&self) -> u32 {
        self.concurrency.unwrap_or(DEFAULT_CONCURRENCY)
    }

    /// Returns the number of pages fetched in one run.
    pub fn max_pages(&self) -> u64 {
        self.max_pages.unwrap_or(DEFAULT_MAX_PAGES)
    }

    /// Returns the bytes of bodies in one run.
    pub fn max_bytes(&self) -> u64 {
        self.max_bytes.unwrap_or(DEFAULT_MAX_BYTES)
    }

    /// Returns the number of links followed from the root requests.
    pub fn max_depth(&self) -> u32 {
        self.max_depth.unwrap_or(DEFAULT_MAX_DEPTH)
    }

    /// Returns the bytes of a URL.
    pub fn max_url_length(&self) -> u32 {
        self.max_url_length.unwrap_or(DEFAULT_MAX_URL_LENGTH)
    }

    /// Returns the number of times that one segment may occur in a path.
    pub fn max_segment_repeats(&self) -> u32 {
        self.max_segment_repeats
            .unwrap_or(DEFAULT_MAX_SEGMENT_REPEATS)
    }

    /// Returns the number of URLs of one host and one pattern in one run.
    pub fn max_pattern_urls(&self) -> u64 {
        self.max_pattern_urls.unwrap_or(DEFAULT_MAX_PATTERN_URLS)
    }

    /// Returns the number of hosts with a URL in one run, for all shards together.
    pub fn max_hosts(&self) -> u64 {
        self.max_hosts.unwrap_or(DEFAULT_MAX_HOSTS)
    }

    /// Returns the bytes of the frontier on disk.
    pub fn max_disk(&self) -> u64 {
        self.max_disk.unwrap_or(DEFAULT_MAX_DISK)
    }

    /// Returns the bytes of items that wait for their sink.
    pub fn max_undelivered(&self) -> u64 {
        self.max_undelivered.unwrap_or(DEFAULT_MAX_UNDELIVERED)
    }

    /// Returns the number of attempts at one page before it is given up.
    pub fn max_attempts(&self) -> u32 {
        self.max_attempts.unwrap_or(DEFAULT_MAX_ATTEMPTS)
    }

    /// Returns the longest wait before another attempt.
    pub fn max_retry_wait(&self) -> Duration {
        self.max_retry_wait_ms
            .map_or(DEFAULT_MAX_RETRY_WAIT, Duration::from_millis)
    }

    /// Returns the treatment of a page that has not changed since the last run.
    pub fn unchanged(&self) -> Unchanged {
        self.unchanged.unwrap_or_default()
    }

    /// Returns the treatment of the robots.txt of a site.
    pub fn robots(&self) -> Robots {
        self.robots.unwrap_or_default()
    }

    /// Returns the treatment of cookies.
    pub fn cookies(&self) -> Cookies {
        self.cookies.unwrap_or_default()
    }

    /// Returns the longest `crawl-delay` that is kept.
    pub fn max_crawl_delay(&self) -> Duration {
        self.max_crawl_delay_ms
            .map_or(DEFAULT_MAX_CRAWL_DELAY, Duration::from_millis)
    }

    /// Returns the delay that is set, if any.
    pub fn delay(&self) -> Option<Duration> {
        self.delay_ms.map(Duration::from_millis)
    }

    /// Returns the upper bound of the random addition to the delay.
    pub fn random_delay(&self) -> Duration {
        Duration::from_millis(self.random_delay_ms.unwrap_or_default())
    }

    /// Returns these settings, completed by those of `present`.
    pub fn over(self, present: Self) -> Self {
        Self {
            delay_ms: self.delay_ms.or(present.delay_ms),
            random_delay_ms: self.random_delay_ms.or(present.random_delay_ms),
            host_rate: self.host_rate.or(present.host_rate),
            rate: self.rate.or(present.rate),
            hours: self.hours.or(present.hours),
            concurrency: self.concurrency.or(present.concurrency),
            max_pages: self.max_pages.or(present.max_pages),
            max_bytes: self.max_bytes.or(present.max_bytes),
            max_depth: self.max_depth.or(present.max_depth),
            max_url_length: self.max_url_length.or(present.max_url_length),
            max_segment_repeats: self.max_segment_repeats.or(present.max_segment_repeats),
            max_pattern_urls: self.max_pattern_urls.or(present.max_pattern_urls),
            max_hosts: self.max_hosts.or(present.max_hosts),
            max_disk: self.max_disk.or(present.max_disk),
            max_undelivered: self.max_undelivered.or(present.max_undelivered),
            max_attempts: self.max_attempts.or(present.max_attempts),
            max_retry_wait_ms: self.max_retry_wait_ms.or(present.max_retry_wait_ms),
            unchanged: self.unchanged.or(present.unchanged),
            robots: self.robots.or(present.robots),
            max_crawl_delay_ms: self.max_crawl_delay_ms.or(present.max_crawl_delay_ms),
            user_agents: or_present(self.user_agents, present.user_agents),
            cookies: self.cookies.or(present.cookies),
            cookie_seeds: or_present(self.cookie_seeds, present.cookie_seeds),
            content_types: self.content_types.or(present.content_types),
            proxy: self.proxy.or(present.proxy),
            credentials: self.credentials.or(present.credentials),
            scope: or_present(self.scope, present.scope),
        }
    }

    /// Refuses values that make no sense.
    pub fn check(&self) -> Result<(), SettingError> {
        at_most_entries("user-agent", self.user_agents.len(), MAX_AGENTS)?;
        at_most_entries("cookie", self.cookie_seeds.len(), MAX_COOKIE_SEEDS)?;
        at_least_one("concurrency", self.concurrency)?;
        at_most("concurrency", self.concurrency, MAX_CONCURRENCY)?;
        at_most_a_day("delay", self.delay_ms)?;
        at_most_a_day("random-delay", self.random_delay_ms)?;
        at_least_one("max-pages", self.max_pages)?;
        at_least_one("max-bytes", self.max_bytes)?;
        at_least_one("max-url-length", self.max_url_length)?;
        at_most("max-url-length", self.max_url_length, URL_MAX as u32)?;
        at_least_one("max-segment-repeats", self.max_segment_repeats)?;
        at_least_one("max-pattern-urls", self.max_pattern_urls)?;
        at_least_one("max-hosts", self.max_hosts)?;
        at_least_one("max-disk", self.max_disk)?;
        at_least_one("max-undelivered", self.max_undelivered)?;
        at_most("max-undelivered", self.max_undelivered, MAX_UNDELIVERED)?;
        at_least_one("max-attempts", self.max_attempts)?;
        at_least_one("max-retry-wait", self.max_retry_wait_ms)?;
        at_most_a_day("max-retry-wait", self.max_retry_wait_ms)?;
        at_most_a_day("max-crawl-delay", self.max_crawl_delay_ms)?;
        self.scope
            .iter()
            .try_for_each(|pattern| pattern.check("scope"))
    }
}

fn or_present<T>(list: Vec<T>, present: Vec<T>) -> Vec<T> {
    if list.is_empty() { present } else { list }
}

fn at_most_entries(setting: &'static str, n: usize, max: usize) -> Result<(), SettingError> {
    if n <= max {
        return Ok(());
    }
    let why = format!("has {n} entries; at most {max} are allowed");
    Err(SettingError { setting, why })
}

fn at_least_one(setting: &'static str, value: Option<impl Into<u64>>) -> Result<(), SettingError> {
    match value.map(Into::into) {
        Some(0) => Err(SettingError {
            setting,
            why: "must be above zero".to_owned(),
        }),
        Some(_) | None => Ok(()),
    }
}

fn at_most<T: Into<u64>>(
    setting: &'static str,
    value: Option<T>,
    max: T,
) -> Result<(), SettingError> {
    let max = max.into();
    match value.map(Into::into) {
        Some(n) if n > max => Err(SettingError {
            setting,
            why: format!("is {n}; at most {max} are allowed"),
        }),
        Some(_) | None => Ok(()),
    }
}

fn at_most_a_day(setting: &'static str, millis: Option<u64>) -> Result<(), SettingError> {
    match millis.map(Duration::from_millis) {
        Some(time) if time > MAX_DELAY => Err(SettingError {
            setting,
            why: "is longer than a day".to_owned(),
        }),
        Some(_) | None => Ok(()),
    }
}

/// Reason why a setting makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("setting {setting} {why}")]
pub struct SettingError {
    /// Name of the setting on the command line.
    pub setting: &'static str,
    /// Fault, as the end of a sentence that starts with the setting's name.
    pub why: String,
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
            |s| s.user_agents = vec![Agent::Honest; 65],
            "setting user-agent has 65 entries; at most 64 are allowed",
        );
        check(
            |s| s.cookie_seeds = vec!["a.test:b=c".parse().unwrap(); 51],
            "setting cookie has 51 entries; at most 50 are allowed",
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
        let all = CrawlSettings {
            delay_ms: Some(1),
            random_delay_ms: Some(13),
            host_rate: Some("14/s".parse().unwrap()),
            rate: Some("15/m".parse().unwrap()),
            hours: Some("16:00-17:00".parse().unwrap()),
            concurrency: Some(2),
            max_pages: Some(3),
            max_bytes: Some(4),
            max_depth: Some(5),
            max_url_length: Some(6),
            max_segment_repeats: Some(7),
            max_pattern_urls: Some(8),
            max_hosts: Some(17),
            max_disk: Some(17),
            max_undelivered: Some(18),
            max_attempts: Some(9),
            max_retry_wait_ms: Some(10),
            unchanged: Some(Unchanged::Skip),
            robots: Some(Robots::Ignore),
            max_crawl_delay_ms: Some(12),
            user_agents: vec![Agent::Browser],
            cookies: Some(Cookies::Ignore),
            cookie_seeds: vec!["a.test:b=c".parse().unwrap()],
            content_types: Some("text/*".parse().unwrap()),
            proxy: Some("direct".parse().unwrap()),
            credentials: Some("a".parse().unwrap()),
            scope: vec!["a.test".parse().unwrap()],
        };
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
}
