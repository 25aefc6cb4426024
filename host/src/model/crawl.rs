//! One crawl: requests, pages, items, and what becomes of each.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use url::{Position, Url};

use super::canonical::canonical;
pub use super::counts::{Counts, NO_RULE};
use super::guest_text::GuestText;
use super::id::{ResourceId, Run};
pub use super::page::{CharsetSource, FetchRecord, Page, PageContext, PageText};

/// Milliseconds since 1970.
pub type UnixMillis = u64;

/// A page to be fetched and handed to a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Absolute.
    pub url: Url,
    /// In capitals: `GET`.
    pub method: Cow<'static, str>,
    /// Beyond those that every request carries.
    pub headers: Vec<(String, String)>,
    /// Sent as it is.
    pub body: Option<Bytes>,
    /// The rule that parses the answer, by name.
    pub rule: Arc<str>,
    /// Higher comes first among the ready pages of one host.
    pub priority: i32,
    /// Handed back with the page. At most [`STATE_MAX`] bytes.
    pub state: Bytes,
    /// Fetch even if this run has already seen it.
    pub reload: bool,
}

/// Bytes of state that a request may carry.
pub const STATE_MAX: usize = 4 << 10;
/// Bytes of a URL; a longer one is refused.
pub const URL_MAX: usize = 8 << 10;

impl Request {
    /// The request that a redirect leads to, where it is one of its own.
    ///
    /// It asks for the page and hands over nothing that was meant for another origin: no body, and
    /// of the headers only those that every site may see. Any header of a rule can be a secret
    /// (`x-api-key`), so the neutral ones are named, not the others. As in the fetch standard and in
    /// reqwest, a change of scheme or port is another origin, even from http to https. To another origin
    /// the request never reloads, or two pages that redirect to each other would be fetched without end.
    pub fn redirected(&self, to: Url) -> Self {
        let is_same_host = self.is_same_host(&to);
        let stays = |name: &str| match is_same_host {
            true => !name.starts_with("content-"),
            false => is_neutral(name),
        };
        let headers = self.headers.iter();
        let headers = headers.filter(|(name, _)| stays(&name.to_ascii_lowercase()));
        Self {
            method: if self.method == "HEAD" { "HEAD" } else { "GET" }.into(),
            headers: headers.cloned().collect(),
            body: None,
            url: to,
            rule: self.rule.clone(),
            priority: self.priority,
            state: self.state.clone(),
            reload: self.reload && is_same_host,
        }
    }

    /// Whether a URL is of the same scheme, host and port.
    pub fn is_same_host(&self, url: &Url) -> bool {
        is_same_host(&self.url, url)
    }

    /// A plain `GET`.
    pub fn get(url: Url, rule: impl Into<Arc<str>>) -> Self {
        Self {
            url,
            method: "GET".into(),
            headers: Vec::new(),
            body: None,
            rule: rule.into(),
            priority: 0,
            state: Bytes::new(),
            reload: false,
        }
    }

    /// What this request is known by in the seen-set. Allocates nothing where the URL is canonical.
    pub fn fingerprint(&self) -> Fingerprint {
        use sha2::Digest as _;
        let mut hash = sha2::Sha256::new();
        let mut part = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_be_bytes());
            hash.update(bytes);
        };
        part(self.method.as_bytes());
        part(canonical(&self.url).as_bytes());
        part(self.body.as_deref().unwrap_or_default());
        let digest: [u8; 32] = hash.finalize().into();
        let mut fingerprint = [0; 16];
        fingerprint.copy_from_slice(&digest[..16]);
        Fingerprint(fingerprint)
    }

    /// The host that it is stored by: name and port.
    pub fn host(&self) -> String {
        host_of(&self.url)
    }
}

/// True if two URLs are of the same scheme, host and port.
pub fn is_same_host(one: &Url, other: &Url) -> bool {
    one.scheme() == other.scheme() && host_of(one) == host_of(other)
}

/// True if a request header, in lower case, says only how a page is wanted.
fn is_neutral(name: &str) -> bool {
    const NEUTRAL: &[&str] = &[
        "accept",
        "cache-control",
        "dnt",
        "pragma",
        "upgrade-insecure-requests",
        "user-agent",
    ];
    NEUTRAL.contains(&name) || name.starts_with("accept-")
}

/// Name of the clock that all requests to a host share: http and https of one name have one, with and
/// without a dot at its end; another port has its own.
pub fn clock_of(url: &Url) -> String {
    let name = url.host_str().unwrap_or_default();
    let name = name.strip_suffix('.').unwrap_or(name);
    match url.port_or_known_default() {
        Some(80 | 443) | None => name.to_owned(),
        Some(port) => format!("{name}:{port}"),
    }
}

/// The host that URLs are stored by: name and port.
pub fn host_of(url: &Url) -> String {
    let written = &url[Position::BeforeHost..Position::AfterPort];
    match url.port_or_known_default() {
        Some(port) if url.port().is_none() => format!("{written}:{port}"),
        Some(_) | None => written.to_owned(),
    }
}

/// Method, canonical URL and body, hashed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub [u8; 16]);

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

/// One record that a rule emitted: a JSON object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The schema's name.
    pub schema: String,
    /// As the rule wrote it; known to be one JSON object.
    pub json: String,
}

/// Makes writing an item twice harmless: the same page of the same run gives the same key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ItemKey(pub String);

impl ItemKey {
    /// The key of the `ordinal`-th item of one visit of a page.
    pub fn of(
        resource: ResourceId,
        run: Run,
        fingerprint: Fingerprint,
        visit: u32,
        rule: &str,
        ordinal: u32,
    ) -> Self {
        use sha2::Digest as _;
        let mut hash = sha2::Sha256::new();
        hash.update(resource.0.to_be_bytes());
        hash.update(run.0.to_be_bytes());
        hash.update(fingerprint.0);
        hash.update(visit.to_be_bytes());
        hash.update((rule.len() as u64).to_be_bytes());
        hash.update(rule.as_bytes());
        hash.update(ordinal.to_be_bytes());
        Self(hex::encode(&hash.finalize()[..16]))
    }
}

/// An item on its way to the sinks: the line of a line file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ItemRecord {
    /// Writing it twice is harmless.
    pub key: ItemKey,
    /// The page it came from.
    pub url: String,
    /// The rule that emitted it.
    pub rule: String,
    /// Its schema's name.
    pub schema: String,
    /// The pass it belongs to.
    pub run: Run,
    /// When the page was fetched.
    pub fetched_at: UnixMillis,
    /// As the rule wrote it.
    pub item: Box<serde_json::value::RawValue>,
}

/// Why a rule gave up on a page. What the host does to a rule is [`Kill`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleError {
    /// Try again, at least this many milliseconds from now.
    Retry {
        /// None leaves it to the back-off.
        after_ms: Option<u64>,
        /// In the rule's words.
        why: GuestText,
    },
    /// Nothing to take; the page counts as done.
    Skip(GuestText),
    /// The site refuses us.
    Blocked(GuestText),
    /// The resource fails.
    Fatal(GuestText),
    /// A case of a later interface.
    Other(u32, GuestText),
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuleError::Retry { why, .. } => write!(f, "retry: {why}"),
            RuleError::Skip(why) => write!(f, "skip: {why}"),
            RuleError::Blocked(why) => write!(f, "blocked: {why}"),
            RuleError::Fatal(why) => write!(f, "fatal: {why}"),
            RuleError::Other(code, why) => write!(f, "error {code}: {why}"),
        }
    }
}

/// Why the host ended a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kill {
    /// It did what its code must not: unreachable, out of bounds, a panic.
    Trapped,
    /// The call stack was used up.
    StackOverflow,
    /// Limit `fuel`.
    OutOfFuel,
    /// Limit `cpu`.
    OutOfCpu,
    /// Limit `timeout`.
    OutOfTime,
    /// Limit `memory`.
    OutOfMemory,
    /// Limits `items`, `item-bytes` or `requests`, exceeded again and again.
    OverBudget,
    /// It called what it was not granted.
    Denied,
    /// The host had no room for the call; the page is tried again.
    NoRoom,
}

impl Kill {
    /// As logs and the API name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Kill::Trapped => "trapped",
            Kill::StackOverflow => "stack-overflow",
            Kill::OutOfFuel => "out-of-fuel",
            Kill::OutOfCpu => "out-of-cpu",
            Kill::OutOfTime => "out-of-time",
            Kill::OutOfMemory => "out-of-memory",
            Kill::OverBudget => "over-budget",
            Kill::Denied => "denied",
            Kill::NoRoom => "no-room",
        }
    }

    /// The setting that a user could change, where a limit did it.
    pub fn limit(self) -> Option<&'static str> {
        match self {
            Kill::OutOfFuel => Some("fuel"),
            Kill::OutOfCpu => Some("cpu"),
            Kill::OutOfTime => Some("timeout"),
            Kill::OutOfMemory => Some("memory"),
            Kill::Trapped
            | Kill::StackOverflow
            | Kill::OverBudget
            | Kill::Denied
            | Kill::NoRoom => None,
        }
    }
}

impl fmt::Display for Kill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What became of a page for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Done {
    /// A rule has read it.
    Parsed,
    /// A rule wanted nothing of it.
    Skipped,
    /// As an earlier run saw it; no rule has read it again.
    NotModified,
    /// It led to another host; the target is a request of its own.
    Redirected,
    /// It led to a page that is already done.
    Duplicate,
    /// 404 or 410.
    Gone,
    /// Its content-type is none that the resource wants.
    Denied,
}

impl Done {
    /// As the API and the command line name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Done::Parsed => "parsed",
            Done::Skipped => "skipped",
            Done::NotModified => "not-modified",
            Done::Redirected => "redirected",
            Done::Duplicate => "duplicate",
            Done::Gone => "gone",
            Done::Denied => "denied",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(url: &str) -> Request {
        Request::get(url.parse().unwrap(), "page")
    }

    #[test]
    fn r10_http_and_https_of_one_name_share_their_clock() {
        for (url, host, clock) in [
            ("http://a.test", "a.test:80", "a.test"),
            ("https://a.test/x", "a.test:443", "a.test"),
            ("HTTP://A.Test:80/", "a.test:80", "a.test"),
            ("https://a.test:80/", "a.test:80", "a.test"),
            (
                "http://ann:p@a.test:8080/?q#f",
                "a.test:8080",
                "a.test:8080",
            ),
            ("https://a.test.:8443/", "a.test.:8443", "a.test:8443"),
            ("http://[::1]/", "[::1]:80", "[::1]"),
            ("http://[0:0::1]:81/", "[::1]:81", "[::1]:81"),
            ("http://127.1/", "127.0.0.1:80", "127.0.0.1"),
            ("http://a.test./", "a.test.:80", "a.test"),
            ("data:text/plain,x", "", ""),
        ] {
            let url: Url = url.parse().unwrap();
            assert_eq!(
                (host_of(&url), clock_of(&url)),
                (host.into(), clock.into()),
                "{url}"
            );
        }
    }

    #[test]
    fn a_redirect_to_another_host_is_given_nothing_that_was_meant_for_the_first() {
        let mut login = request("http://a.test/login");
        login.method = "POST".into();
        login.body = Some(Bytes::from_static(b"password=x"));
        login.reload = true;
        login.headers = ["Authorization", "cookie", "Content-Type", "accept-language"]
            .map(|name| (name.to_owned(), "x".to_owned()))
            .into();
        let names = |to: &str| {
            let request = login.redirected(to.parse().unwrap());
            assert_eq!((&*request.method, request.body), ("GET", None));
            assert!(!request.reload);
            let names = request.headers.into_iter().map(|(name, _)| name);
            names.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names("https://b.test/"), "accept-language");
        assert_eq!(names("http://a.test:8080/"), "accept-language");
        let at_home = login.redirected("http://a.test/other".parse().unwrap());
        assert_eq!((at_home.headers.len(), at_home.reload), (3, true));
    }

    #[test]
    fn r07_only_neutral_headers_follow_a_redirect_to_another_host() {
        let mut page = request("https://a.test/");
        page.headers = [
            "X-Api-Key",
            "x-csrf-token",
            "Referer",
            "Accept",
            "ACCEPT-Language",
            "User-Agent",
            "cache-control",
        ]
        .map(|name| (name.to_owned(), "x".to_owned()))
        .into();
        let names = |to: &str| {
            let request = page.redirected(to.parse().unwrap());
            let names = request.headers.into_iter().map(|(name, _)| name);
            names.collect::<Vec<_>>().join(" ")
        };
        let neutral = "Accept ACCEPT-Language User-Agent cache-control";
        assert_eq!(names("https://b.test/"), neutral);
        assert_eq!(names("https://www.a.test/"), neutral);
        let all = "X-Api-Key x-csrf-token Referer Accept ACCEPT-Language User-Agent cache-control";
        assert_eq!(names("https://a.test/next"), all);
    }

    #[test]
    fn r08_a_change_of_scheme_or_port_is_another_host() {
        let secrets = |from: &str, to: &str| {
            let mut page = request(from);
            page.headers = ["authorization", "cookie", "x-api-key"]
                .map(|name| (name.to_owned(), "x".to_owned()))
                .into();
            page.redirected(to.parse().unwrap()).headers.len()
        };
        for (from, to, n_kept) in [
            ("https://h.test:8443/", "https://h.test:8443/next", 3),
            ("https://h.test/", "https://h.test:443/next", 3),
            ("https://h.test:8443/", "http://h.test:8443/", 0),
            ("https://h.test/", "http://h.test/", 0),
            ("https://h.test/", "https://h.test:8443/", 0),
            ("http://h.test/", "https://h.test/", 0),
        ] {
            assert_eq!(secrets(from, to), n_kept, "{from} {to}");
        }
    }

    #[test]
    fn f25_method_canonical_url_and_body_make_the_fingerprint_and_nothing_else() {
        let plain = request("http://a.test/x");
        assert_eq!(
            plain.fingerprint(),
            request("http://a.test/x#part").fingerprint()
        );
        assert_eq!(
            request("http://a.test/~x").fingerprint(),
            request("http://A.test:80/%7ex?").fingerprint()
        );
        assert_ne!(
            plain.fingerprint(),
            request("http://a.test/y").fingerprint()
        );
        let mut post = plain.clone();
        post.method = "POST".into();
        assert_ne!(plain.fingerprint(), post.fingerprint());
        let mut body = post.clone();
        body.body = Some(Bytes::from_static(b"page=2"));
        assert_ne!(post.fingerprint(), body.fingerprint());
        let mut other = plain.clone();
        other.rule = "detail".into();
        assert_eq!(plain.fingerprint(), other.fingerprint());
    }

    #[test]
    fn the_parts_of_a_fingerprint_cannot_run_into_each_other() {
        let mut one = request("http://a.test/x");
        one.method = "GEThttp".into();
        let mut other = request("http://a.test/x");
        other.method = "GET".into();
        other.body = Some(Bytes::from_static(b"http"));
        assert_ne!(one.fingerprint(), other.fingerprint());
    }
}
