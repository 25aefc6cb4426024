//! Scope of a crawl: the rules by which links are followed or refused.
//!
//! These are pure rules over a request and its depth. A worker sorts links by them, and explanations of URLs apply
//! the same rules, so both give the same answer. Bounds that depend on stored data (space, URLs per pattern) are
//! counted by the frontier.
//!
//! Root requests are what the user asked for; only links are judged.

use std::fmt;
use std::sync::Arc;

use url::{Position, Url};

use super::crawl::{Request, URL_MAX, host_of};
use super::number;
use super::settings::{CrawlSettings, HostPattern};

/// Bounds on the links that a crawl follows from its root requests.
#[derive(Debug, Clone, Copy)]
pub struct Bounds<'a> {
    /// Hosts of the run's root requests.
    pub root_hosts: &'a RootHosts,
    /// Settings of the resource.
    pub settings: &'a CrawlSettings,
}

impl Bounds<'_> {
    /// Returns the reason why a link found at this depth is not followed, or `None` if it is followed.
    pub fn refusal(&self, request: &Request, depth: u32) -> Option<Refusal> {
        let (url, settings) = (&request.url, self.settings);
        let (host, port) = place_of(url);
        let length = url[..Position::AfterQuery].len();
        let max_length = settings.max_url_length();
        if !matches!(url.scheme(), "http" | "https") {
            Some(Refusal::Scheme)
        } else if length > URL_MAX.min(max_length as usize) {
            Some(Refusal::UrlLength {
                length,
                max: max_length,
            })
        } else if !self.root_hosts.has(host) && !settings.scope.iter().any(|p| p.admits(host, port))
        {
            Some(Refusal::OutOfScope)
        } else if depth > settings.max_depth() {
            Some(Refusal::Depth {
                depth,
                max: settings.max_depth(),
            })
        } else if repeats_segment(url.path(), settings.max_segment_repeats()) {
            Some(Refusal::SegmentRepeats {
                max: settings.max_segment_repeats(),
            })
        } else {
            None
        }
    }

    /// True if the resource itself names the port of a URL: a root request goes to that host and port, or setting
    /// `scope` has both.
    pub fn names_port(&self, url: &Url) -> bool {
        let (host, port) = place_of(url);
        let names = |p: &HostPattern| p.port().is_some() && p.admits(host, port);
        self.root_hosts.has_place(url) || self.settings.scope.iter().any(names)
    }
}

fn place_of(url: &Url) -> (&str, Option<u16>) {
    let host = url.host_str().unwrap_or_default();
    (host, url.port_or_known_default())
}

/// True if one segment occurs in the path more than `max` times. A repeated sequence of segments is found by each
/// segment in it.
fn repeats_segment(path: &str, max: u32) -> bool {
    let max = max as usize;
    let n_segments = path.bytes().filter(|&b| b == b'/').count();
    if n_segments <= max {
        return false;
    }
    let mut segments: Vec<&str> = path.split('/').skip(1).collect();
    segments.sort_unstable();
    segments
        .chunk_by(|a, b| a == b)
        .any(|same| same.len() > max)
}

/// Reason why a link is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The scheme is neither http nor https.
    Scheme,
    /// The URL is longer than setting `max-url-length` allows.
    UrlLength {
        /// Length in bytes, without the fragment.
        length: usize,
        /// Value of the setting.
        max: u32,
    },
    /// The host is outside setting `scope`.
    OutOfScope,
    /// The link is deeper than setting `max-depth` allows.
    Depth {
        /// Number of links between the root requests and this one.
        depth: u32,
        /// Value of the setting.
        max: u32,
    },
    /// A segment occurs more often than setting `max-segment-repeats` allows.
    SegmentRepeats {
        /// Value of the setting.
        max: u32,
    },
    /// The frontier has reached setting `max-disk`. [`Bounds::refusal`] cannot know that; the worker checks the
    /// frontier.
    Disk {
        /// Value of the setting, in bytes.
        max: u64,
    },
    /// The pattern has reached setting `max-pattern-urls`. [`Bounds::refusal`] cannot know that; the frontier
    /// counts.
    PatternUrls {
        /// Value of the setting.
        max: u64,
    },
    /// The crawl has reached setting `max-hosts`. [`Bounds::refusal`] cannot know that; the frontier counts.
    Hosts {
        /// Value of the setting: a number of hosts.
        max: u64,
    },
}

/// Bounds on what the links of a crawl may add to its frontier. Root requests are stored all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrowthBounds {
    /// Number of URLs of one host and one [pattern](crate::pattern::path_pattern): setting
    /// `max-pattern-urls`.
    pub pattern_urls: u64,
    /// Number of hosts with a URL in the frontier's run: setting `max-hosts`, or this shard's share of it.
    pub hosts: u64,
}

impl GrowthBounds {
    /// No bounds.
    pub const NONE: Self = Self {
        pattern_urls: u64::MAX,
        hosts: u64::MAX,
    };
}

/// Reason under which links are counted that setting `max-pattern-urls` refuses.
pub const PATTERN_URLS: &str = "max-pattern-urls";

/// Reason under which links are counted that setting `max-hosts` refuses.
pub const HOSTS: &str = "max-hosts";

/// Reason under which links are counted that setting `max-disk` refuses.
pub const DISK: &str = "max-disk";

impl Refusal {
    /// Returns the word under which refused links are counted.
    pub fn as_str(self) -> &'static str {
        match self {
            Refusal::Scheme => "scheme",
            Refusal::UrlLength { .. } => "max-url-length",
            Refusal::OutOfScope => "out-of-scope",
            Refusal::Depth { .. } => "max-depth",
            Refusal::SegmentRepeats { .. } => "max-segment-repeats",
            Refusal::Disk { .. } => DISK,
            Refusal::PatternUrls { .. } => PATTERN_URLS,
            Refusal::Hosts { .. } => HOSTS,
        }
    }
}

/// Writes part of a sentence about the URL, without a full stop.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Scheme => f.write_str("only http and https are fetched"),
            Refusal::UrlLength { length, max } => write!(
                f,
                "it is {length} bytes long, and setting max-url-length allows {max}"
            ),
            Refusal::OutOfScope => {
                f.write_str("its host is not one of the root requests' and not in setting scope")
            }
            Refusal::Depth { depth, max } => write!(
                f,
                "it is {} away from the root requests, and setting max-depth allows {max}",
                number(u64::from(*depth), "link")
            ),
            Refusal::SegmentRepeats { max } => write!(
                f,
                "its path has one segment more than {}, and setting max-segment-repeats allows no more",
                number(u64::from(*max), "time")
            ),
            Refusal::Disk { max } => write!(
                f,
                "the frontier has as many bytes on disk as setting max-disk allows, which is {max} for all shards together"
            ),
            Refusal::PatternUrls { max } => write!(
                f,
                "{max} URLs that differ from it only in numbers, tokens or query values are stored, and setting max-pattern-urls allows no more"
            ),
            Refusal::Hosts { max } => write!(
                f,
                "it would be the first of its host, and setting max-hosts allows {} for all shards together",
                number(*max, "host")
            ),
        }
    }
}

/// Hosts of the root requests, which are always in scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootHosts {
    hosts: Arc<[String]>,
    /// Hosts with their ports; empty if only the hosts are known.
    places: Arc<[String]>,
}

impl RootHosts {
    /// Collects the hosts of these URLs.
    pub fn of(urls: &[Url]) -> Self {
        let hosts = urls.iter().filter_map(Url::host_str);
        Self {
            hosts: sorted(hosts.map(str::to_owned)),
            places: sorted(urls.iter().map(host_of)),
        }
    }

    fn has(&self, host: &str) -> bool {
        has(&self.hosts, host)
    }

    fn has_place(&self, url: &Url) -> bool {
        has(&self.places, &host_of(url))
    }
}

impl FromIterator<String> for RootHosts {
    fn from_iter<T: IntoIterator<Item = String>>(hosts: T) -> Self {
        Self {
            hosts: sorted(hosts),
            places: Arc::default(),
        }
    }
}

fn sorted(texts: impl IntoIterator<Item = String>) -> Arc<[String]> {
    let mut texts: Vec<String> = texts.into_iter().collect();
    texts.sort_unstable();
    texts.dedup();
    texts.into()
}

fn has(sorted: &[String], text: &str) -> bool {
    let found = sorted.binary_search_by(|known| known.as_str().cmp(text));
    found.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(settings: &CrawlSettings, url: &str, depth: u32, reason: &str) {
        let root_hosts = ["b.test", "a.test"]
            .map(str::to_owned)
            .into_iter()
            .collect();
        let bounds = Bounds {
            root_hosts: &root_hosts,
            settings,
        };
        let request = Request::get(url.parse().unwrap(), "page");
        let refusal = bounds.refusal(&request, depth);
        assert_eq!(refusal.map_or("", Refusal::as_str), reason, "{url}");
    }

    #[test]
    fn f25_links_go_to_root_hosts_and_scope_and_no_deeper_than_they_may() {
        let settings = CrawlSettings {
            scope: vec!["*.c.test".parse().unwrap()],
            max_depth: Some(3),
            ..CrawlSettings::default()
        };
        for (url, reason) in [
            ("http://a.test/1", ""),
            ("http://b.test:8080/1", ""),
            ("https://www.c.test/", ""),
            ("http://d.test/", "out-of-scope"),
            ("http://www.a.test/", "out-of-scope"),
            ("mailto:x@a.test", "scheme"),
        ] {
            check(&settings, url, 3, reason);
        }
        check(&settings, "http://a.test/1", 4, "max-depth");
    }

    #[test]
    fn a_url_that_is_too_long_is_not_followed() {
        let mut settings = CrawlSettings::default();
        let long = |length: usize| format!("{:x<length$}", "http://a.test/");
        check(&settings, &long(2_048), 1, "");
        check(&settings, &format!("{}#part", long(2_048)), 1, "");
        check(&settings, &long(2_049), 1, "max-url-length");
        settings.max_url_length = Some(20);
        check(&settings, &long(20), 1, "");
        check(&settings, &long(21), 1, "max-url-length");
    }

    #[test]
    fn a_path_that_repeats_itself_is_not_followed() {
        let mut settings = CrawlSettings::default();
        let trap = "max-segment-repeats";
        for (path, reason) in [
            ("/a/a/a/", ""),
            ("/a/b/a/c/a/d", ""),
            ("/2011/11/11/11/", ""),
            ("/a/a/a/a", trap),
            ("/a/b/a/c/a/d/a", trap),
            ("/a/b/a/b/a/b/a/b/", trap),
            ("/x////", trap),
        ] {
            check(&settings, &format!("http://a.test{path}"), 1, reason);
        }
        settings.max_segment_repeats = Some(1);
        check(&settings, "http://a.test/a/b/c/", 1, "");
        check(&settings, "http://a.test/a/b/a", 1, trap);
    }

    /// The path is the longest that a rule can emit, on a page with as many links as a page may have.
    #[test]
    fn a_page_of_the_worst_links_is_judged_in_no_time() {
        let started = std::time::Instant::now();
        let path: String = (0..URL_MAX / 4)
            .map(|n| format!("/{:03x}", n % 4_096))
            .collect();
        for _ in 0..500 {
            assert!(!repeats_segment(&path, 3));
        }
        let elapsed = started.elapsed();
        assert!(elapsed.as_secs() < 5, "{elapsed:?}");
    }

    #[test]
    fn every_refusal_by_a_setting_names_it() {
        for refusal in [
            Refusal::UrlLength { length: 9, max: 8 },
            Refusal::Depth { depth: 9, max: 8 },
            Refusal::SegmentRepeats { max: 8 },
            Refusal::Disk { max: 8 },
            Refusal::PatternUrls { max: 8 },
            Refusal::Hosts { max: 8 },
        ] {
            let text = refusal.to_string();
            assert!(
                text.contains(&format!("setting {}", refusal.as_str())),
                "{text}"
            );
            assert!(text.contains('8'), "{text}");
        }
        assert!(Refusal::OutOfScope.to_string().ends_with("setting scope"));
    }

    #[test]
    fn a_port_is_named_by_a_root_request_to_it_or_in_scope_and_of_that_host_alone() {
        let settings = CrawlSettings {
            scope: ["b.test", "*.c.test:9000"]
                .map(|pattern| pattern.parse().unwrap())
                .into(),
            ..CrawlSettings::default()
        };
        let bounds = Bounds {
            root_hosts: &RootHosts::of(&["http://a.test:81/x".parse().unwrap()]),
            settings: &settings,
        };
        for (url, is_named) in [
            ("http://a.test:81/y", true),
            ("https://a.test:81/", true),
            ("http://a.test:82/", false),
            ("http://a.test/", false),
            ("http://b.test:81/", false),
            ("http://b.test/", false),
            ("http://www.c.test:9000/", true),
            ("http://www.c.test:81/", false),
            ("http://d.test:9000/", false),
        ] {
            assert_eq!(bounds.names_port(&url.parse().unwrap()), is_named, "{url}");
        }
    }
}
