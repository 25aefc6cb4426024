//! What is known of URLs: where each stands, what tells whether a page has changed, and what a sink
//! says of the items it has.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::crawl::{Counts, Done, Page, Request, UnixMillis};
use super::id::{Run, Shard};

/// Where a URL stands in its run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UrlState {
    /// It waits, or is in flight.
    Due {
        /// Not before.
        at: UnixMillis,
        /// Of the next attempt, from 1.
        attempt: u32,
        /// Why the last attempt failed; empty before the first.
        failure: String,
        /// Its host, where that could not be reached lately. Only of a URL that is asked for by itself.
        host: Option<UnreachedHost>,
    },
    /// It came to its end.
    Done(Done),
    /// It was given up.
    Dead {
        /// `timeout`, `status-500`, `poison`, …
        reason: String,
        /// What is known beyond that; empty: nothing.
        detail: String,
    },
    /// It is another shard's, which knows where it stands.
    Sent {
        /// Whose.
        to: Shard,
    },
}

/// A host that could not be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreachedHost {
    /// Times on end.
    pub n: u32,
    /// The word by which the last one is counted: `resolve`, `connection`, …
    pub reason: String,
    /// It is left alone until this moment.
    pub until: UnixMillis,
}

impl UrlState {
    /// `due`, `done`, `dead` or `sent`.
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
    /// What is, or was, to be fetched.
    pub request: Request,
    /// Of the request that first stored it.
    pub depth: u32,
    /// The run that this state is of.
    pub run: Run,
    /// Where it stands.
    pub state: UrlState,
    /// When it came to stand there. 0 for one that was never tried.
    pub since: UnixMillis,
}

impl UrlEntry {
    /// The same with what is known of its host, where it waits for that.
    pub fn at_host(mut self, unreached: Option<UnreachedHost>) -> Self {
        if let UrlState::Due { host, .. } = &mut self.state {
            *host = unreached;
        }
        self
    }
}

/// The cookies of a crawl, as a frontier keeps them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptCookies {
    /// Grows with each change. 0 for cookies that were kept before there were versions.
    pub version: u64,
    /// Understood by the jar alone.
    pub jar: Bytes,
}

impl KeptCookies {
    /// Takes the place of the cookies that are kept, unless those are as new. True if it did.
    pub fn replace(self, kept: &mut Option<Self>) -> bool {
        let is_newer = kept.as_ref().is_none_or(|kept| kept.version < self.version);
        if is_newer {
            *kept = Some(self);
        }
        is_newer
    }
}

/// Which URLs are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlFilter {
    /// Those that wait.
    Due,
    /// Those that came to their end.
    Done,
    /// Those given up.
    Dead,
}

/// State of a host: the thing that it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostState {
    /// It may be asked now.
    Ready,
    /// It is not asked before its delay, or what it has asked for, is over.
    Waiting,
    /// It could not be reached, and is tried again later.
    BackingOff,
    /// It could not be reached as often as it is tried: its URLs are given up.
    GivenUp,
    /// Nothing of it is left to fetch.
    Idle,
}

impl HostState {
    /// All states, in the order in which they are told.
    pub const ALL: [Self; 5] = [
        Self::Ready,
        Self::Waiting,
        Self::BackingOff,
        Self::GivenUp,
        Self::Idle,
    ];

    /// Returns the word for it: `ready`, `waiting`, `backing-off`, `given-up` or `idle`.
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
pub enum DelayBy {
    /// The resource's own setting.
    #[default]
    Setting,
    /// `crawl-delay` of the site's robots.txt.
    Robots,
    /// Another crawl of this worker, which keeps a longer delay at the same host.
    OtherCrawl,
    /// Answers of the host, which take longer than its delay.
    Answers,
    /// Trouble of the host: `Retry-After`, or failures on end.
    Trouble,
}

impl DelayBy {
    /// All origins, in the order of their numbers in records.
    pub const ALL: [Self; 5] = [
        Self::Setting,
        Self::Robots,
        Self::OtherCrawl,
        Self::Answers,
        Self::Trouble,
    ];

    /// Returns the word for it: `setting`, `robots`, `other-crawl`, `answers` or `trouble`.
    pub fn as_str(self) -> &'static str {
        match self {
            DelayBy::Setting => "setting",
            DelayBy::Robots => "robots",
            DelayBy::OtherCrawl => "other-crawl",
            DelayBy::Answers => "answers",
            DelayBy::Trouble => "trouble",
        }
    }
}

/// A host that this run has, or had, a URL of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostEntry {
    /// Name and port.
    pub name: String,
    /// State of the host.
    pub state: HostState,
    /// Number of its URLs that wait or are in flight, counted up to [`MAX_DUE`](Self::MAX_DUE).
    pub n_due: u64,
    /// It is not asked before this moment.
    pub not_before: UnixMillis,
    /// Milliseconds between its last answer and the next request, as they were kept last.
    pub delay_ms: u64,
    /// Origin of that delay.
    pub delay_by: DelayBy,
    /// True if it has answered in this run.
    pub has_answered: bool,
    /// Number of times on end that it could not be reached.
    pub n_failures: u32,
    /// The word by which the last of these is counted: `resolve`, `connection`, …
    pub reason: String,
}

impl HostEntry {
    /// URLs of one host that are counted.
    pub const MAX_DUE: u64 = 1_000;
}

/// Totals of a frontier.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FrontierStats {
    /// The present run.
    pub run: Run,
    /// `root` ran in it.
    pub seeded: bool,
    /// Of the root requests.
    pub root_hosts: Vec<String>,
    /// Hosts with a URL that waits.
    pub n_hosts: u64,
    /// Number of hosts in each state, of all that have, or had, a URL.
    pub hosts_by_state: BTreeMap<HostState, u64>,
    /// Items that no sink has yet.
    pub n_undelivered: u64,
    /// Dead letters: URLs that `redrive` would try again.
    pub n_dead_letters: u64,
    /// Pages that may have ended the process, and are tried alone.
    pub n_suspects: u64,
    /// How often the process ended without closing the frontier, in a row.
    pub n_unclean_stops: u32,
    /// Totals of the run.
    pub counts: Counts,
}

impl FrontierStats {
    /// Counts another shard's in. All of them are in a run once the last is.
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

/// What tells whether a page has changed since it was last fetched.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Validators {
    /// Header `etag`, as received.
    pub etag: Option<String>,
    /// Header `last-modified`, as received.
    pub last_modified: Option<String>,
    /// Of the body.
    pub content: Option<ContentHash>,
}

/// Bytes of an `etag` or a `last-modified`; a longer one is not kept.
pub const VALIDATOR_MAX: usize = 1 << 10;

impl Validators {
    /// Of a page as it was received. Headers that cannot be sent back are not kept, nor are those of
    /// a page that redirects led to: they belong to another URL than the one that is asked for.
    pub fn of(page: &Page) -> Self {
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
            content: Some(ContentHash::of(&page.body)),
        }
    }

    /// Whether a server can be asked for the page only if it has changed.
    pub fn make_a_condition(&self) -> bool {
        self.etag.is_some() || self.last_modified.is_some()
    }
}

/// A body, hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentHash(pub [u8; 16]);

impl ContentHash {
    /// Of a body without its content-encoding, cut where it was cut.
    pub fn of(body: &[u8]) -> Self {
        use sha2::Digest as _;
        let digest: [u8; 32] = sha2::Sha256::digest(body).into();
        let mut hash = [0; 16];
        hash.copy_from_slice(&digest[..16]);
        Self(hash)
    }
}

/// How much of one file of items counts: the rest of it was never delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinkMark {
    /// The file's name in its folder.
    pub file: String,
    /// Its committed bytes.
    pub length: u64,
    /// The runs of the items in it: the first and the last.
    pub runs: (Run, Run),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::page::{CharsetSource, FetchRecord, PageText};

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
        let validators = Validators::of(&page);
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
