//! Data of a crawl: requests, pages, items, and their outcomes.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use url::{Position, Url};

use super::accept_status::AcceptStatus;
use super::canonical::canonical;
pub use super::counts::{Counts, LOST_ROOTS, NO_RULE};
use super::guest_text::GuestText;
pub use super::item::{GoneItem, ItemKey, ItemRecord};
pub use super::page::{CharsetSource, FetchRecord, Page, PageContext, PageText};
pub use super::time::UnixMillis;

/// Request for a page that is fetched and handed to a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Absolute URL.
    pub url: Url,
    /// Method in capitals, such as `GET`.
    pub method: Cow<'static, str>,
    /// Headers beyond those that every request carries.
    pub headers: Vec<(String, String)>,
    /// Body, sent unchanged.
    pub body: Option<Bytes>,
    /// Name of the rule that parses the response.
    pub rule: Arc<str>,
    /// Priority among the ready pages of one host; higher comes first.
    pub priority: i32,
    /// State that is handed back with the page; at most [`STATE_MAX`] bytes.
    pub state: Bytes,
    /// True if the page is fetched even if this run has already seen it.
    pub reload: bool,
    /// Statuses that are handed to the rule.
    pub accept_status: AcceptStatus,
    /// True if the body of a successful answer is kept as a file, by [`Request::keeps`].
    pub keep_body: bool,
    /// URL of the page whose link first led here; at most [`REFERRER_MAX`] bytes. `None` for a root request.
    pub referrer: Option<Arc<str>>,
}

/// Largest number of bytes of a referrer. It is kept with each link of a page, and one call may follow thousands.
pub const REFERRER_MAX: usize = 2 << 10;

/// Key of the hint of a request that asks to keep the body of its answer.
pub const KEEP_BODY: &str = "keep-body";

/// Largest number of bytes of a request's state.
pub const STATE_MAX: usize = 4 << 10;
/// Largest number of bytes of a URL; a longer one is refused.
pub const URL_MAX: usize = 8 << 10;
/// Number of headers that one request of a rule may have.
pub const HEADERS_MAX: usize = 64;
/// Bytes of all requests of one call of a rule: URLs, headers, bodies, states, hints.
pub const REQUEST_BYTES_MAX: usize = 16 << 20;

impl Request {
    /// Returns the request that a redirect leads to.
    ///
    /// The new request asks for the page and hands over nothing that was meant for another origin: no body, and
    /// only those headers that every site may see. Any header of a rule can be a secret (`x-api-key`), so the
    /// list names the neutral headers, not the secret ones. As in the fetch standard and in reqwest, a change
    /// of scheme or port is another origin, even from http to https. A request to another origin never reloads:
    /// otherwise, two pages that redirect to each other would be fetched without end.
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
            accept_status: self.accept_status.clone(),
            keep_body: self.keep_body,
            referrer: self.referrer.clone(),
        }
    }

    /// Returns true if the body of an answer with this status is kept as a file. Neither the answer to HEAD nor a part of
    /// a body (206) is the file.
    pub fn keeps(&self, status: u16) -> bool {
        self.keep_body && self.method != "HEAD" && matches!(status, 200..=299) && status != 206
    }

    /// Returns the referrer of the links of a page: its URL without the fragment. Returns `None` if that is too long to
    /// be kept with each link.
    pub fn referrer_of(page: &Url) -> Option<Arc<str>> {
        let url = &page[..Position::AfterQuery];
        (url.len() <= REFERRER_MAX).then(|| url.into())
    }

    /// True if a URL has the same scheme, host and port.
    pub fn is_same_host(&self, url: &Url) -> bool {
        is_same_host(&self.url, url)
    }

    /// Creates a plain `GET` request.
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
            accept_status: AcceptStatus::default(),
            keep_body: false,
            referrer: None,
        }
    }

    /// Returns the hash that identifies this request in the seen-set. Allocates nothing if the URL is
    /// canonical.
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

    /// Returns the host under which the request is stored: name and port.
    pub fn host(&self) -> String {
        host_of(&self.url)
    }
}

/// True if two URLs have the same scheme, host and port.
pub fn is_same_host(one: &Url, other: &Url) -> bool {
    one.scheme() == other.scheme() && host_of(one) == host_of(other)
}

/// True if a request header, in lower case, only describes the wanted form of the page.
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

/// Returns the name of the clock that all requests to a host share. The http and https URLs of a name share one,
/// with and without a trailing dot; another port has its own.
pub fn clock_of(url: &Url) -> String {
    let name = url.host_str().unwrap_or_default();
    clock(name, url.port_or_known_default())
}

/// Returns the name of the clock of a [host](host_of).
pub fn clock_of_host(host: &str) -> String {
    match host.rsplit_once(':') {
        Some((name, port)) => clock(name, port.parse().ok()),
        None => clock(host, None),
    }
}

fn clock(name: &str, port: Option<u16>) -> String {
    let name = name.strip_suffix('.').unwrap_or(name);
    match port {
        Some(80 | 443) | None => name.to_owned(),
        Some(port) => format!("{name}:{port}"),
    }
}

/// Returns the host under which URLs are stored: name and port.
pub fn host_of(url: &Url) -> String {
    let written = &url[Position::BeforeHost..Position::AfterPort];
    match url.port_or_known_default() {
        Some(port) if url.port().is_none() => format!("{written}:{port}"),
        Some(_) | None => written.to_owned(),
    }
}

/// Hash of method, canonical URL and body.
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
    /// Name of the schema.
    pub schema: String,
    /// Text as the rule wrote it: exactly one JSON object.
    pub json: String,
}

/// Reason why a rule gave up on a page. If the host ends the rule's call, the reason is a [`Kill`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleError {
    /// The page is tried again, no sooner than this number of milliseconds from now.
    Retry {
        /// Shortest wait in milliseconds. If `None`, the back-off decides.
        after_ms: Option<u64>,
        /// Explanation by the rule.
        why: GuestText,
    },
    /// The page has nothing of use; it counts as done.
    Skip(GuestText),
    /// The site refuses the crawler.
    Blocked(GuestText),
    /// The whole resource fails.
    Fatal(GuestText),
    /// The page is not as the rule expects. A code other than 0 is one of a later interface.
    Other(u32, GuestText),
}

impl RuleError {
    /// Returns the explanation by the rule.
    pub fn why(&self) -> &GuestText {
        match self {
            RuleError::Retry { why, .. }
            | RuleError::Skip(why)
            | RuleError::Blocked(why)
            | RuleError::Fatal(why)
            | RuleError::Other(_, why) => why,
        }
    }
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuleError::Retry { why, .. } => write!(f, "retry: {why}"),
            RuleError::Skip(why) => write!(f, "skip: {why}"),
            RuleError::Blocked(why) => write!(f, "blocked: {why}"),
            RuleError::Fatal(why) => write!(f, "fatal: {why}"),
            RuleError::Other(0, why) => write!(f, "error: {why}"),
            RuleError::Other(code, why) => write!(f, "error {code}: {why}"),
        }
    }
}

/// Reason why the host ended a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kill {
    /// The code trapped: unreachable, out of bounds, a panic.
    Trapped,
    /// The call stack was used up.
    StackOverflow,
    /// Limit `fuel` was exceeded.
    OutOfFuel,
    /// Limit `cpu` was exceeded.
    OutOfCpu,
    /// Limit `timeout` was exceeded.
    OutOfTime,
    /// Limit `memory` was exceeded.
    OutOfMemory,
    /// Limits `items`, `item-bytes` or `requests` were exceeded again and again.
    OverBudget,
    /// The guest called a function that it was not granted.
    Denied,
    /// The host had no room for the call; the page is tried again.
    NoRoom,
}

impl Kill {
    /// Returns the word that logs and the API use.
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

    /// Returns the limit that ended the call, if a user could change it.
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

/// Final outcome of a page that was not given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Done {
    /// A rule has parsed the page.
    Parsed,
    /// A rule skipped the page.
    Skipped,
    /// The page has not changed since an earlier run; no rule has read it again.
    NotModified,
    /// The page was parsed by an earlier run, and is not due again; its server was not asked.
    NotDue,
    /// The page redirected to another host; the target is a request of its own.
    Redirected,
    /// The page redirected to a page that is already done.
    Duplicate,
    /// The site answered with status 404 or 410.
    Gone,
    /// The resource does not want pages of this content type.
    Denied,
}

impl Done {
    /// Returns the word that the API and the command line use.
    pub fn as_str(self) -> &'static str {
        match self {
            Done::Parsed => "parsed",
            Done::Skipped => "skipped",
            Done::NotModified => "not-modified",
            Done::NotDue => "not-due",
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
    fn answers_to_head_parts_and_failures_are_no_files() {
        let mut request = request("http://a.test/1.png");
        assert!(!request.keeps(200));
        request.keep_body = true;
        assert!(request.keeps(200) && request.keeps(203));
        assert!(!request.keeps(206) && !request.keeps(404));
        request.method = "HEAD".into();
        assert!(!request.keeps(200));
    }

    #[test]
    fn a_redirect_keeps_referrer_statuses_and_the_wish_for_a_file() {
        let mut page = request("http://a.test/");
        page.keep_body = true;
        page.referrer = Request::referrer_of(&"http://a.test/list".parse().unwrap());
        page.accept_status = "404".parse().unwrap();
        let target = page.redirected("http://b.test/".parse().unwrap());
        assert_eq!(target.referrer.as_deref(), Some("http://a.test/list"));
        assert!(target.accept_status.takes(404) && target.keep_body);
    }

    #[test]
    fn a_referrer_is_short_and_has_no_fragment() {
        let referrer = |url: &str| Request::referrer_of(&url.parse().unwrap());
        let expected = Some("http://a.test/?p=2".into());
        assert_eq!(referrer("http://a.test/?p=2#top"), expected);
        let longest = format!("http://a.test/{}", "x".repeat(REFERRER_MAX - 14));
        assert_eq!(referrer(&longest), Some(longest.as_str().into()));
        assert_eq!(referrer(&(longest + "x")), None);
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
        other.accept_status = "any".parse().unwrap();
        other.referrer = Some("http://a.test/".into());
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
