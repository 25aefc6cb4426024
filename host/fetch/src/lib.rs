//! Fetching: layers around one trait, outermost first.
//!
//! ```text
//! address_policy  what may be reached: http and https, public addresses, never our own nodes
//! robots          what the site wants left alone
//! turns           whose turn it is: the clock of each host, shared by all workers of a cluster
//! throttle        when: the clock and the connections of each host, shared by all resources
//! cache           answers of earlier runs in the place of requests, for development
//! http            how: one request, limits while streaming, redirects within the host, through which proxy
//! tape            a record of what was sent and received, for an archive
//! webhook         signed calls to receivers that the operator names
//! ```
//!
//! No rule and no resource can widen what addresses the address policy lets through; only the operator's
//! `--allow-networks` does. A resource can name ports of hosts that are public.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use url::Url;

use agents::{Identity, identity};
use cookies::CookieJar;
use crawler_model::accept_status::AcceptStatus;
use crawler_model::crawl::{Page, Request, UnixMillis};
use crawler_model::frontier::{DelaySource, Validators};
use crawler_model::settings::{
    ContentTypes, CrawlSettings, CredentialNames, ProxyChoice, Rates, Robots,
};
use crawler_process::memory::Account;
use robots::RobotsStore;
use tape::Tape;
use throttle::Requester;

pub mod address_policy;
pub mod agents;
pub mod cache;
pub mod charset;
pub mod cookies;
pub mod credentials;
mod error;
pub mod http;
mod phases;
mod proxy_rotation;
mod resolve;
pub mod robots;
pub mod tape;
pub mod throttle;
pub mod turns;
pub mod webhook;

pub use error::FetchError;
pub use resolve::{NameSettings, Resolver};

/// One page to fetch.
#[derive(Debug, Clone)]
pub struct FetchRequest {
    /// Absolute URL of the page.
    pub url: Url,
    /// True if the resource itself names the port; any port is allowed then.
    pub names_port: bool,
    /// HTTP method in capital letters.
    pub method: Cow<'static, str>,
    /// Headers beyond those that every request carries.
    pub headers: Vec<(String, String)>,
    /// User agent to present; headers of the request override it. If `None`, the process's own name is sent.
    pub identity: Option<Identity>,
    /// Cookies of the crawl: sent with the request, and updated from the answer. If `None`, cookies are
    /// neither sent nor stored.
    pub cookies: Option<Arc<CookieJar>>,
    /// Proxies to use. If `None`, the proxies called `default` are used, if there are any.
    pub proxy: Option<ProxyChoice>,
    /// Names of credentials to send to the hosts that they are for, unless the headers already have an
    /// `authorization`.
    pub credentials: CredentialNames,
    /// Body of the request, sent unchanged.
    pub body: Option<Bytes>,
    /// Maximum length in bytes, without the fragment, of a URL that a redirect leads to: setting `max-url-length`.
    pub max_url_length: u32,
    /// Statuses that the caller wants to see. A redirect with one of them is an answer like any other.
    pub accept_status: AcceptStatus,
    /// Content types that are wanted. Bodies of other types are not read.
    pub content_types: ContentTypes,
    /// Maximum length of the body in bytes. Longer bodies are cut there and marked.
    pub max_body: u64,
    /// Maximum length in bytes of the body of a successful answer that is wanted whole, instead of `max_body`: setting
    /// `max-file`. A longer one is an error. Only a body of at most `max_body` bytes is decoded as text. If `None`, no
    /// body is wanted whole.
    pub max_file: Option<u64>,
    /// Time between the end of an answer and the next request to the host. If `None`, the throttle's default
    /// applies.
    pub delay: Option<Duration>,
    /// Upper bound of a random time that is added to the delay.
    pub random_delay: Duration,
    /// Number of requests that one host may get within each period.
    pub host_rate: Rates,
    /// The page is wanted only if it has changed since; if not, the answer has status 304. Redirects
    /// are followed without this condition, because it is not about the URL they lead to.
    pub validators: Option<Validators>,
    /// True if the site is asked whatever the cache has: for another attempt, because a rule may have refused the kept
    /// answer, and for a reload.
    pub asks_site: bool,
    /// Treatment of the site's robots.txt.
    pub robots: Robots,
    /// Store of robots.txt that outlives the process. If `None`, each process asks the sites.
    pub robots_store: Option<Arc<dyn RobotsStore>>,
    /// The longest `crawl-delay` that is honoured; a longer one is reduced to it.
    pub max_crawl_delay: Duration,
    /// Memory account that the body is charged to while it is read.
    pub account: Account,
    /// Crawl or other caller that asks for the turn of the host.
    pub requester: Requester,
    /// Slot of the request among the requests in flight. If `None`, it occupies no slot.
    pub slot: Option<Arc<dyn FetchSlot>>,
    /// Tape that records the exchanges with the site, for an archive. If `None`, nothing is recorded.
    pub tape: Option<Arc<Tape>>,
}

impl FetchRequest {
    /// Builds the request for a page by the settings of its resource, for this attempt, counted from 1. Its body
    /// is cut after `max_body` bytes. It has neither cookies nor a condition nor a slot, and waits for the turn
    /// of its host.
    pub fn new(request: &Request, settings: &CrawlSettings, attempt: u32, max_body: u64) -> Self {
        Self {
            url: request.url.clone(),
            names_port: false,
            method: request.method.clone(),
            headers: request.headers.clone(),
            identity: identity(&settings.user_agents, &request.url, attempt),
            cookies: None,
            proxy: settings.proxy.clone(),
            credentials: settings.credentials.clone().unwrap_or_default(),
            body: request.body.clone(),
            max_url_length: settings.max_url_length(),
            accept_status: request.accept_status.clone(),
            content_types: settings.content_types.clone().unwrap_or_default(),
            max_body,
            max_file: request.keep_body.then(|| settings.max_file()),
            delay: settings.delay(),
            random_delay: settings.random_delay(),
            host_rate: settings.host_rate.clone().unwrap_or_default(),
            validators: None,
            asks_site: attempt > 1 || request.reload,
            robots: settings.robots(),
            robots_store: None,
            max_crawl_delay: settings.max_crawl_delay(),
            account: Account::default(),
            requester: Requester::waiting(),
            slot: None,
            tape: None,
        }
    }
}

/// A slot among the requests in flight. It is given up while a redirect waits for its host.
#[async_trait]
pub trait FetchSlot: std::fmt::Debug + Send + Sync {
    /// Gives the slot up.
    fn release(&self);

    /// Waits until there is a free slot again and takes it. A caller that stops waiting has no slot.
    async fn acquire(&self);
}

/// Result of a fetch.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// The answer, or the URL that it redirects to.
    pub answer: Answer,
    /// Time before which the host gets no further request; 0 if nothing was asked of it.
    pub host_ready_at: UnixMillis,
    /// Origin of the delay until `host_ready_at`.
    pub delay_by: DelaySource,
}

/// The answer, or the URL that it redirects to.
#[derive(Debug, Clone)]
pub enum Answer {
    /// An answer of any status, after redirects within the host.
    Page(Box<Page>),
    /// A redirect to another host, or to a URL of the same host while that host is left alone. The target is
    /// to be fetched by a request of its own.
    Redirect {
        /// The target.
        to: Url,
    },
}

/// Findings about a host before its pages are fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Prepared {
    /// Time before which the host gets no further request; 0 if nothing was asked of it.
    pub host_ready_at: UnixMillis,
    /// Origin of the delay until then.
    pub delay_by: DelaySource,
    /// True if the host has answered now; what is known of it may be older.
    pub has_answered: bool,
}

/// Fetches pages. Called by many tasks at once.
#[async_trait]
pub trait Fetch: Send + Sync + 'static {
    /// Fetches one page and tells when the host may be asked again. It does the work of
    /// [`prepare`](Self::prepare) itself where that is still to be done.
    async fn fetch(&self, request: FetchRequest) -> Result<Fetched, Failure>;

    /// Returns true if everything that must be known before fetching a page of the request's host is known:
    /// the addresses of its name and its robots.txt. It is always true where nothing has to be known.
    fn is_prepared(&self, _request: &FetchRequest) -> bool {
        true
    }

    /// Looks up the host's name and reads its robots.txt, where these are not known. An error that no further
    /// attempt can mend concerns this page alone, and [`fetch`](Self::fetch) returns.
    async fn prepare(&self, _request: FetchRequest) -> Result<Prepared, Failure> {
        Ok(Prepared::default())
    }

    /// Leaves a [host](crawler_model::crawl::host_of), and all that share its clock, alone until a moment: that was known before
    /// the frontier was opened.
    fn rest(&self, _host: &str, _until: UnixMillis) {}

    /// Returns the number of requests to one host that may run at once, given the delay that a resource asks for.
    fn per_host(&self, host: &Url, delay: Option<Duration>) -> u32;
}

/// A failed fetch, with the time when the host may be asked again.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Failure {
    /// Cause of the failure.
    #[source]
    pub error: FetchError,
    /// Time before which the host gets no further request; 0 if nothing was asked of it.
    pub host_ready_at: UnixMillis,
    /// Origin of the delay until `host_ready_at`.
    pub delay_by: DelaySource,
    /// True if the host could not be reached, so that all of its pages would fail in the same way.
    pub is_of_host: bool,
}

impl Failure {
    /// Creates a failure that concerns one page alone: nothing was asked of its host.
    pub(crate) fn of_page(error: FetchError) -> Self {
        Self {
            error,
            host_ready_at: 0,
            delay_by: DelaySource::default(),
            is_of_host: false,
        }
    }
}
