//! Records of URLs and hosts in a frontier: their state, the validators that tell whether a page has
//! changed, and the marks of sinks.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::crawl::{Counts, Done, Page, Request, UnixMillis};
use super::id::{Digest, Run, Shard};
use super::parsed_by::ParsedBy;
use super::visit::Visit;

/// State of a URL in its run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UrlState {
    /// The URL waits, or is in flight.
    Due {
        /// Earliest time of the next attempt.
        at: UnixMillis,
        /// Number of the next attempt, from 1.
        attempt: u32,
        /// Failure of the last attempt; empty before the first.
        failure: String,
        /// Record of the host. Set only if the URL is asked for by itself, and this run knows the host.
        host: Option<HostWait>,
    },
    /// The page came to an end that is not a failure.
    Done(Done),
    /// The URL was given up.
    Dead {
        /// Reason: `timeout`, `status-500`, `poison`, …
        reason: String,
        /// Further information; empty if there is none.
        detail: String,
    },
    /// The URL belongs to another shard, which knows its state.
    Sent {
        /// The shard that the URL was sent to.
        to: Shard,
    },
}

/// Record of the host of a URL that waits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostWait {
    /// Time before which the host is not asked.
    pub until: UnixMillis,
    /// Milliseconds between the host's last answer and the next request, as last observed.
    pub delay_ms: u64,
    /// Origin of the delay.
    pub delay_by: DelaySource,
    /// Number of times in a row that the host could not be reached.
    pub n_failures: u32,
    /// Reason of the last of these failures, as it is counted: `resolve`, `connection`, …
    pub reason: String,
}

impl UrlState {
    /// Returns the word for the state: `due`, `done`, `dead` or `sent`.
    pub fn as_str(&self) -> &'static str {
        match self {
            UrlState::Due { .. } => "due",
            UrlState::Done(_) => "done",
            UrlState::Dead { .. } => "dead",
            UrlState::Sent { .. } => "sent",
        }
    }
}

/// A URL that a frontier has stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlEntry {
    /// The request that is or was to be made.
    pub request: Request,
    /// Depth of the request that first stored the URL.
    pub depth: u32,
    /// Run that the state belongs to.
    pub run: Run,
    /// State of the URL.
    pub state: UrlState,
    /// Time at which the URL reached this state; 0 if it was never tried.
    pub since: UnixMillis,
}

impl UrlEntry {
    /// Returns the entry with the record of its host, if the URL waits.
    pub fn at_host(mut self, wait: Option<HostWait>) -> Self {
        if let UrlState::Due { host, .. } = &mut self.state {
            *host = wait;
        }
        self
    }
}

/// Cookies of a crawl, as a frontier stores them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptCookies {
    /// Number that grows with each change; 0 for cookies that were kept before there were versions.
    pub version: u64,
    /// Encoded cookies, which only the jar can read.
    pub jar: Bytes,
}

impl KeptCookies {
    /// Replaces the kept cookies unless those are as new. Returns true if it did.
    pub fn replace(self, kept: &mut Option<Self>) -> bool {
        let is_newer = kept.as_ref().is_none_or(|kept| kept.version < self.version);
        if is_newer {
            *kept = Some(self);
        }
        is_newer
    }
}

/// Selection of URLs in a list, by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlFilter {
    /// URLs that wait.
    Due,
    /// URLs that came to their end.
    Done,
    /// URLs that were given up.
    Dead,
}

/// State of a host, by what it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostState {
    /// The host may be asked now.
    Ready,
    /// The host is not asked before its delay, or the time that it asked for, is over.
    Waiting,
    /// The host could not be reached, and is tried again later.
    BackingOff,
    /// The host failed as often as it is tried: its URLs are given up.
    GivenUp,
    /// The host has no URL left to fetch.
    Idle,
}

impl HostState {
    /// Returns the state of a host: whether it has URLs left, whether it may not be asked yet, and if there are failures to
    /// reach it, whether they have given it up.
    pub fn of(has_urls: bool, is_held: bool, is_given_up: Option<bool>) -> Self {
        match is_given_up {
            _ if !has_urls => Self::Idle,
            _ if !is_held => Self::Ready,
            Some(true) => Self::GivenUp,
            Some(false) => Self::BackingOff,
            None => Self::Waiting,
        }
    }

    /// All states, in the order in which they are reported.
    pub const ALL: [Self; 5] = [
        Self::Ready,
        Self::Waiting,
        Self::BackingOff,
        Self::GivenUp,
        Self::Idle,
    ];

    /// Returns the word for the state: `ready`, `waiting`, `backing-off`, `given-up` or `idle`.
    pub fn as_str(self) -> &'static str {
        match self {
            HostState::Ready => "ready",
            HostState::Waiting => "waiting",
            HostState::BackingOff => "backing-off",
            HostState::GivenUp => "given-up",
            HostState::Idle => "idle",
        }
    }
}

/// Origin of the time for which a host is left alone after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DelaySource {
    /// The resource's own setting.
    #[default]
    Setting,
    /// `crawl-delay` of the site's robots.txt.
    Robots,
    /// Another crawl of this worker, which keeps a longer delay at the same host.
    OtherCrawl,
    /// Response times of the host, which are longer than its delay.
    Answers,
    /// Trouble of the host: `Retry-After`, or failures in a row.
    Trouble,
}

impl DelaySource {
    /// All origins, in the order of their numbers in records.
    pub const ALL: [Self; 5] = [
        Self::Setting,
        Self::Robots,
        Self::OtherCrawl,
        Self::Answers,
        Self::Trouble,
    ];

    /// Returns the word for the origin: `setting`, `robots`, `other-crawl`, `answers` or `trouble`.
    pub fn as_str(self) -> &'static str {
        match self {
            DelaySource::Setting => "setting",
            DelaySource::Robots => "robots",
            DelaySource::OtherCrawl => "other-crawl",
            DelaySource::Answers => "answers",
            DelaySource::Trouble => "trouble",
        }
    }

    /// Returns the origin in words for users; `None` for the resource's own setting.
    pub fn explanation(self) -> Option<&'static str> {
        match self {
            DelaySource::Setting => None,
            DelaySource::Robots => Some("crawl-delay of its robots.txt"),
            DelaySource::OtherCrawl => Some("another crawl of this worker keeps it"),
            DelaySource::Answers => Some("its answers take so long"),
            DelaySource::Trouble => Some("it has asked for it, or failed"),
        }
    }
}

/// Record of a host that has, or had, a URL in this run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostEntry {
    /// Name and port of the host.
    pub name: String,
    /// State of the host.
    pub state: HostState,
    /// [Hash](crate::links::host_hash) by which frontiers store it.
    pub hash: u64,
    /// Number of its URLs that wait or are in flight, counted up to [`MAX_DUE`](Self::MAX_DUE).
    pub n_due: u64,
    /// Number of them that are in flight now. `None` if nobody crawls the shard, or its owner does not answer.
    pub n_in_flight: Option<u64>,
    /// Time before which the host is not asked.
    pub not_before: UnixMillis,
    /// Milliseconds between the host's last answer and the next request, as last observed.
    pub delay_ms: u64,
    /// Origin of the delay.
    pub delay_by: DelaySource,
    /// True if the host has answered in this run.
    pub has_answered: bool,
    /// Number of times in a row that the host could not be reached.
    pub n_failures: u32,
    /// Reason of the last of these failures, as it is counted: `resolve`, `connection`, …
    pub reason: String,
}

impl HostEntry {
    /// Largest number of URLs of one host that are counted.
    pub const MAX_DUE: u64 = 1_000;
}

/// Totals of a frontier.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FrontierStats {
    /// The present run.
    pub run: Run,
    /// True if `root` ran in the present run.
    pub seeded: bool,
    /// Hosts of the root requests.
    pub root_hosts: Vec<String>,
    /// Hosts with a URL that waits.
    pub n_hosts: u64,
    /// Number of hosts in each state, of all that have, or had, a URL.
    pub hosts_by_state: BTreeMap<HostState, u64>,
    /// Number of items that no sink has yet.
    pub n_undelivered: u64,
    /// Number of dead letters: URLs that `redrive` would try again.
    pub n_dead_letters: u64,
    /// Number of pages that may have ended the process, and are tried alone.
    pub n_suspects: u64,
    /// Number of times in a row that the process ended without closing the frontier.
    pub n_unclean_stops: u32,
    /// Totals of the run.
    pub counts: Counts,
}

impl FrontierStats {
    /// Adds the totals of another shard. The sum is in the earliest run of its shards.
    pub fn add(&mut self, other: &FrontierStats) {
        self.run = self.run.min(other.run);
        self.seeded &= other.seeded;
        for host in &other.root_hosts {
            if !self.root_hosts.contains(host) {
                self.root_hosts.push(host.clone());
            }
        }
        self.n_hosts += other.n_hosts;
        for (state, n) in &other.hosts_by_state {
            *self.hosts_by_state.entry(*state).or_default() += n;
        }
        self.n_undelivered += other.n_undelivered;
        self.n_dead_letters += other.n_dead_letters;
        self.n_suspects += other.n_suspects;
        self.n_unclean_stops = self.n_unclean_stops.max(other.n_unclean_stops);
        self.counts.add(&other.counts);
    }
}

/// Evidence that tells whether a page has changed since it was last fetched.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Validators {
    /// Header `etag`, as received.
    pub etag: Option<String>,
    /// Header `last-modified`, as received.
    pub last_modified: Option<String>,
    /// Hash of the body.
    pub content: Option<ContentHash>,
    /// Plugin, params and settings that the page was parsed by. `None` in records from before the field existed.
    pub parsed_by: Option<ParsedBy>,
    /// Last visit of the page. `None` in records from before the field existed.
    pub visit: Option<Visit>,
}

/// Largest number of bytes of an `etag` or a `last-modified`; a longer one is not kept.
pub const VALIDATOR_MAX: usize = 1 << 10;

impl Validators {
    /// Returns the validators of a page as it was received, with the hash of its body and what parses it. Headers that
    /// cannot be sent back are not kept, nor are those of a page that redirects led to: they belong to another URL than the
    /// requested one.
    pub fn of(page: &Page, content: ContentHash, parsed_by: Option<ParsedBy>) -> Self {
        let header = |name| {
            let value = page.header(name).filter(|_| page.redirects.is_empty())?;
            let can_be_sent = !value.is_empty()
                && value.len() <= VALIDATOR_MAX
                && value.bytes().all(|b| (b' '..=b'~').contains(&b));
            can_be_sent.then(|| value.to_owned())
        };
        Self {
            etag: header("etag"),
            last_modified: header("last-modified"),
            content: Some(content),
            parsed_by,
            visit: None,
        }
    }

    /// True if a conditional request can be made for the page.
    pub fn make_a_condition(&self) -> bool {
        self.etag.is_some() || self.last_modified.is_some()
    }
}

/// Hash of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentHash(pub [u8; 16]);

impl ContentHash {
    /// Hashes a body without its content encoding. A truncated body is hashed as truncated.
    pub fn of(body: &[u8]) -> Self {
        Digest::of(body).into()
    }
}

impl From<Digest> for ContentHash {
    /// Returns the hash of the bytes that have this digest.
    fn from(digest: Digest) -> Self {
        let mut hash = [0; 16];
        hash.copy_from_slice(&digest.as_bytes()[..16]);
        Self(hash)
    }
}

/// Progress of a sink, which only the kind of sink that returned it can read. A frontier stores it in the batch
/// that removes the delivered items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkMark {
    /// Key of the mark, among those of all sinks of the frontier. A later mark of the same key takes its place.
    pub key: Bytes,
    /// Value, as the sink has encoded it.
    pub value: Bytes,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{CharsetSource, FetchRecord, PageText};

    #[track_caller]
    fn check(etag: &str, redirects: &[&str], kept: Option<&str>) {
        let url: url::Url = "http://a.test/".parse().unwrap();
        let page = Page {
            url: url.clone(),
            requested_url: url,
            status: 200,
            headers: [("etag", etag)].into_iter().collect(),
            redirects: redirects.iter().map(|url| url.parse().unwrap()).collect(),
            fetched_at: 0,
            truncated: false,
            body: Bytes::from_static(b"body"),
            text: PageText {
                charset: "UTF-8",
                source: CharsetSource::Valid,
                decoded: None,
            },
            record: FetchRecord::default(),
        };
        let validators = Validators::of(&page, ContentHash::of(&page.body), None);
        assert_eq!(validators.etag.as_deref(), kept);
        assert_eq!(validators.content, Some(ContentHash::of(b"body")));
        assert_eq!(validators.make_a_condition(), kept.is_some());
    }

    #[test]
    fn only_what_can_be_sent_back_to_the_same_url_is_kept() {
        check("W/\"v 1\"", &[], Some("W/\"v 1\""));
        check("\"v1\"", &["http://a.test/moved"], None);
        check("", &[], None);
        check("\"\u{fffd}\"", &[], None);
        check("\"a\r\nb\"", &[], None);
        check(
            &"x".repeat(VALIDATOR_MAX),
            &[],
            Some(&"x".repeat(VALIDATOR_MAX)),
        );
        check(&"x".repeat(VALIDATOR_MAX + 1), &[], None);
    }

    #[test]
    fn a_body_that_differs_in_one_byte_has_another_hash() {
        assert_ne!(ContentHash::of(b"body"), ContentHash::of(b"bodz"));
    }
}
