//! Fetching: layers around one trait, outermost first.
//!
//! ```text
//! guard   what may be reached: http and https, public addresses, never our own nodes
//! robots  what the site wants left alone
//! gate    when: the clock and the connections of each host, shared by all resources
//! http    how: one request, limits while streaming, redirects within the host
//! ```
//!
//! No rule and no resource can widen what addresses the guard lets through; only the operator's
//! `--allow-networks` does. A resource can name ports of hosts that are public.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use url::Url;

use crate::model::crawl::{Page, UnixMillis};
use crate::model::frontier::Validators;
use crate::model::settings::{Rates, Robots};
use agents::Identity;
use cookies::CookieJar;
use robots::RuleLine;

pub mod agents;
pub mod charset;
pub mod cookies;
pub mod gate;
pub mod guard;
pub mod http;
mod resolve;
pub mod robots;

/// One page to fetch.
#[derive(Debug, Clone)]
pub struct FetchRequest {
    /// Absolute.
    pub url: Url,
    /// The resource itself names the port, which may be any then.
    pub names_port: bool,
    /// In capitals.
    pub method: String,
    /// Beyond those that every request carries.
    pub headers: Vec<(String, String)>,
    /// As whom it is asked for; headers of the request win. None: as the process calls itself.
    pub identity: Option<Identity>,
    /// Those of the crawl: sent, and taken from the answer. None: neither.
    pub cookies: Option<Arc<CookieJar>>,
    /// Sent as it is.
    pub body: Option<Bytes>,
    /// Bytes of a URL, without its fragment, that a redirect may lead to: setting `max-url-length`.
    pub max_url_length: u32,
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
}

/// What came of a fetch.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// The answer, or where it led.
    pub answer: Answer,
    /// No request to the host before this moment.
    pub host_ready_at: UnixMillis,
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

/// Fetches pages. Called by many tasks at once.
#[async_trait]
pub trait Fetch: Send + Sync + 'static {
    /// Waits for the host's turn, fetches one page, and tells when the host may be asked again.
    async fn fetch(&self, request: FetchRequest) -> Result<Fetched, Failure>;

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
}

/// Why there is no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum FetchError {
    /// Not http or https.
    #[error("{url}: only http and https are fetched")]
    Scheme {
        /// What was asked for.
        url: String,
    },
    /// The address is not one that may be reached.
    #[error(
        "{host} is at {address}, which is not a public address; the operator can allow it with --allow-networks"
    )]
    Address {
        /// As the URL has it.
        host: String,
        /// As resolved.
        address: String,
    },
    /// The port is not one that may be fetched from.
    #[error(
        "port {port} is not fetched from; the resource can name {host}:{port} in setting scope, or the operator allow the port with --allow-ports"
    )]
    Port {
        /// As the URL has it.
        host: String,
        /// As the URL has it.
        port: u16,
    },
    /// One of the cluster's own nodes.
    #[error("{host} is a node of this cluster")]
    OwnNode {
        /// As the URL has it.
        host: String,
    },
    /// The request cannot be sent as it is.
    #[error("the request cannot be sent: {why}")]
    Request {
        /// What is wrong with it.
        why: String,
    },
    /// No address for the name.
    #[error("{host} cannot be resolved: {why}")]
    Resolve {
        /// As the URL has it.
        host: String,
        /// What the resolver said.
        why: String,
    },
    /// No connection, or it broke.
    #[error("the connection failed: {why}")]
    Connection {
        /// The whole chain.
        why: String,
    },
    /// Too slow.
    #[error(
        "no complete answer within {limit:?}; settings timeout and connect-timeout of [fetch] in the config file"
    )]
    Timeout {
        /// The setting `timeout` of `[fetch]`.
        limit: Duration,
    },
    /// Its host is in trouble, or its rate is used up: it is left alone until the moment that the failure
    /// tells, and nothing was asked.
    #[error(
        "{host} is left alone for another {pause:?}: it failed, asked for it, or had as many requests as host-rate lets it"
    )]
    Paused {
        /// Name and port.
        host: String,
        /// At most setting `max-host-pause` of `[fetch]`, or the time of a rate.
        pause: Duration,
    },
    /// The site wants it left alone.
    #[error("{url} forbids it: {rule}")]
    Robots {
        /// Of the robots.txt.
        url: String,
        /// Which says so.
        rule: RuleLine,
    },
    /// The site does not tell what it wants left alone, so all of it is.
    #[error("{url} cannot be had, and nothing of the site is fetched without it: {why}")]
    RobotsUnavailable {
        /// Of the robots.txt.
        url: String,
        /// What the site answers.
        why: String,
    },
    /// A redirect leads to a URL that is too long.
    #[error("a redirect leads to a URL of {length} bytes, and setting max-url-length allows {max}")]
    UrlLength {
        /// Without the fragment.
        length: usize,
        /// As set.
        max: u32,
    },
    /// The body is in no form that can be read.
    #[error("the body cannot be decoded, its content-encoding is {encoding:?}: {why}")]
    Encoding {
        /// As the answer has it.
        encoding: String,
        /// What is wrong with it.
        why: String,
    },
    /// Too many redirects, or a loop.
    #[error("more than {n} redirects")]
    Redirects {
        /// How many were followed.
        n: usize,
    },
}

impl FetchError {
    /// The word that counts and dead letters are kept by.
    pub fn reason(&self) -> &'static str {
        match self {
            FetchError::Scheme { .. } => "scheme",
            FetchError::Address { .. } => "address-denied",
            FetchError::OwnNode { .. } => "own-node",
            FetchError::Port { .. } => "port-denied",
            FetchError::Request { .. } => "bad-request",
            FetchError::Resolve { .. } => "resolve",
            FetchError::Connection { .. } => "connection",
            FetchError::Timeout { .. } => "timeout",
            FetchError::Paused { .. } => "paused",
            FetchError::Robots { .. } => "robots",
            FetchError::RobotsUnavailable { .. } => "robots-unavailable",
            FetchError::UrlLength { .. } => "max-url-length",
            FetchError::Encoding { .. } => "content-encoding",
            FetchError::Redirects { .. } => "redirects",
        }
    }

    /// What whoever asks for the page later is to know beyond the reason; empty: nothing.
    pub fn detail(&self) -> String {
        match self {
            FetchError::Robots { .. } | FetchError::RobotsUnavailable { .. } => self.to_string(),
            FetchError::Scheme { .. }
            | FetchError::Address { .. }
            | FetchError::OwnNode { .. }
            | FetchError::Port { .. }
            | FetchError::Request { .. }
            | FetchError::Resolve { .. }
            | FetchError::Connection { .. }
            | FetchError::Timeout { .. }
            | FetchError::Paused { .. }
            | FetchError::UrlLength { .. }
            | FetchError::Encoding { .. }
            | FetchError::Redirects { .. } => String::new(),
        }
    }

    /// Whether another attempt may go better.
    pub fn is_transient(&self) -> bool {
        match self {
            FetchError::Resolve { .. }
            | FetchError::Connection { .. }
            | FetchError::Timeout { .. }
            | FetchError::Paused { .. }
            | FetchError::RobotsUnavailable { .. } => true,
            FetchError::Scheme { .. }
            | FetchError::Address { .. }
            | FetchError::OwnNode { .. }
            | FetchError::Port { .. }
            | FetchError::Request { .. }
            | FetchError::Robots { .. }
            | FetchError::UrlLength { .. }
            | FetchError::Encoding { .. }
            | FetchError::Redirects { .. } => false,
        }
    }
}
