//! Fetching: layers around one trait, outermost first.
//!
//! ```text
//! guard   what may be reached: http and https, public addresses, never our own nodes
//! robots  what the site wants left alone
//! turns   whose turn it is: the clock of each host, shared by all workers of a cluster
//! gate    when: the clock and the connections of each host, shared by all resources
//! http    how: one request, limits while streaming, redirects within the host, through which proxy
//! ```
//!
//! No rule and no resource can widen what addresses the guard lets through; only the operator's
//! `--allow-networks` does. A resource can name ports of hosts that are public.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use url::Url;

use crate::memory::Account;
use crate::model::crawl::{Page, UnixMillis};
use crate::model::frontier::{DelayBy, Validators};
use crate::model::settings::{ContentTypes, CredentialNames, ProxyChoice, Rates, Robots};
use agents::Identity;
use cookies::CookieJar;
use gate::Asker;

pub mod agents;
pub mod charset;
pub mod cookies;
pub mod credentials;
mod error;
pub mod gate;
pub mod guard;
pub mod http;
mod phases;
mod proxies;
mod resolve;
pub mod robots;
pub mod turns;

pub use error::FetchError;
pub use resolve::{NameSettings, Resolver};

/// One page to fetch.
#[derive(Debug, Clone)]
pub struct FetchRequest {
    /// Absolute.
    pub url: Url,
    /// The resource itself names the port, which may be any then.
    pub names_port: bool,
    /// In capitals.
    pub method: Cow<'static, str>,
    /// Beyond those that every request carries.
    pub headers: Vec<(String, String)>,
    /// As whom it is asked for; headers of the request win. None: as the process calls itself.
    pub identity: Option<Identity>,
    /// Those of the crawl: sent, and taken from the answer. None: neither.
    pub cookies: Option<Arc<CookieJar>>,
    /// Through what. None: the proxies called `default`, if there are such.
    pub proxy: Option<ProxyChoice>,
    /// What its hosts want to see, where its headers do not have it.
    pub credentials: CredentialNames,
    /// Sent as it is.
    pub body: Option<Bytes>,
    /// Bytes of a URL, without its fragment, that a redirect may lead to: setting `max-url-length`.
    pub max_url_length: u32,
    /// Bodies of other kinds are not read.
    pub content_types: ContentTypes,
    /// Longer bodies are cut there and marked.
    pub max_body: u64,
    /// Between the end of an answer and the next request to the host. None: the gate's default.
    pub delay: Option<Duration>,
    /// Beyond the delay, up to so much more by chance.
    pub random_delay: Duration,
    /// Requests to one host in any such time.
    pub host_rate: Rates,
    /// The page is wanted only if it has changed since; if not, the answer has status 304. Redirects
    /// are followed without this condition, because it is not about the URL they lead to.
    pub unless: Option<Validators>,
    /// Whether the site's robots.txt counts.
    pub robots: Robots,
    /// The longest `crawl-delay` that is kept; a longer one is cut to it.
    pub max_crawl_delay: Duration,
    /// Where the body is counted while it is read.
    pub account: Account,
    /// The asker for the turn of its host.
    pub asker: Asker,
    /// Its place among the requests in flight. None: it takes nobody's.
    pub place: Option<Arc<dyn Place>>,
}

/// A place among the requests in flight, which is given up where a redirect has to wait for its host.
#[async_trait]
pub trait Place: std::fmt::Debug + Send + Sync {
    /// Gives it up.
    fn leave(&self);

    /// Waits until there is one again. Whoever gives up waiting has none.
    async fn take(&self);
}

/// What came of a fetch.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// The answer, or where it led.
    pub answer: Answer,
    /// No request to the host before this moment.
    pub host_ready_at: UnixMillis,
    /// Origin of the delay until then.
    pub delay_by: DelayBy,
}

/// The answer, or where it led.
#[derive(Debug, Clone)]
pub enum Answer {
    /// An answer of any status, after redirects within the host.
    Page(Box<Page>),
    /// A redirect to another host, or to one of the same that is left alone just now: a request of its
    /// own.
    Elsewhere {
        /// The target.
        to: Url,
    },
}

/// Findings about a host before its pages are fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Prepared {
    /// No request to the host before this moment; 0 where nothing was asked of it.
    pub host_ready_at: UnixMillis,
    /// Origin of the delay until then.
    pub delay_by: DelayBy,
    /// True if the host has answered now; what is known of it may be older.
    pub has_answered: bool,
}

/// Fetches pages. Called by many tasks at once.
#[async_trait]
pub trait Fetch: Send + Sync + 'static {
    /// Fetches one page, and tells when the host may be asked again. What [`prepare`](Self::prepare)
    /// would find out is found out here where it is not known.
    async fn fetch(&self, request: FetchRequest) -> Result<Fetched, Failure>;

    /// True if everything is known that comes before a page of the request's host: the addresses of its
    /// name and its robots.txt. Always true where nothing has to be known.
    fn is_prepared(&self, _request: &FetchRequest) -> bool {
        true
    }

    /// Looks the host's name up and reads its robots.txt, where that is not known. An error that no other attempt can mend is that of the page alone, and
    /// [`fetch`](Self::fetch) tells it too.
    async fn prepare(&self, _request: FetchRequest) -> Result<Prepared, Failure> {
        Ok(Prepared::default())
    }

    /// How many requests to one host may run at once, given the delay that a resource asks for.
    fn per_host(&self, host: &Url, delay: Option<Duration>) -> u32;
}

/// A fetch that brought no answer, and when the host may be asked again.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Failure {
    /// What went wrong.
    #[source]
    pub error: FetchError,
    /// No request to the host before this moment; 0 where nothing was asked of it.
    pub host_ready_at: UnixMillis,
    /// Origin of the delay until then.
    pub delay_by: DelayBy,
    /// True if the host could not be reached: the same would come of each of its pages.
    pub is_of_host: bool,
}

impl Failure {
    /// Nothing was asked of the host, and what is wrong is the page's own.
    pub(crate) fn of_page(error: FetchError) -> Self {
        Self {
            error,
            host_ready_at: 0,
            delay_by: DelayBy::default(),
            is_of_host: false,
        }
    }
}
