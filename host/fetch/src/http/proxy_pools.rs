//! Ways of a hop: directly to its host, or through one of the proxies of a name.
//!
//! Each proxy has a client of its own, because a client keeps its connections by host and not by the way that
//! they take. If no connection came about, nothing was asked, so the page is sent through the next proxy at
//! once: if that one works, the first is to blame. Later failures are failures of the page.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, Proxy};
use tokio::net::TcpStream;
use tokio::time::Instant;
use url::Url;

use super::client::{self, SetupError};
use super::hop::{Exchange, Hop, Outcome};
use super::{FetchSettings, FilteringResolver};
use crate::FetchError;
use crate::proxy_rotation::{Doubt, ProxyRotation};
use crawler_model::crawl::host_of;
use crawler_model::settings::{AccessName, ProxyChoice};

/// Name of the proxies that are used if a resource names none.
const DEFAULT: &str = "default";
/// Maximum number of proxies that a page is sent through in a row. Its host waits meanwhile, for a connection
/// of each.
const MAX_TRIES: usize = 3;

/// A proxy, as set up by the operator.
#[derive(Clone)]
pub struct ProxySettings {
    /// URL with scheme `http`, `https`, `socks5` or `socks5h`, without user.
    pub url: Url,
    /// User and password.
    pub login: Option<(String, String)>,
}

impl std::fmt::Debug for ProxySettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.url)
    }
}

/// Ways out of this process.
pub(super) struct ProxyPools {
    pub(super) direct: Client,
    pools: BTreeMap<AccessName, Arc<ProxyPool>>,
}

/// The proxies of one name.
pub(super) struct ProxyPool {
    name: AccessName,
    proxies: Vec<Member>,
    rotation: ProxyRotation,
}

struct Member {
    client: Client,
    resolver: FilteringResolver,
    url: Url,
    /// Name of the pool and place in it, as recorded with pages.
    label: Arc<str>,
}

impl std::fmt::Debug for ProxyPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.name)
    }
}

impl ProxyPools {
    pub(super) fn new(
        settings: &FetchSettings,
        resolver: &FilteringResolver,
    ) -> Result<Self, SetupError> {
        let member = |(name, n, proxy): (&AccessName, usize, &ProxySettings)| {
            let resolver = resolver.for_proxy(&proxy.url);
            Ok(Member {
                client: client::build(settings, resolver.clone(), Some(through(proxy)?))?,
                resolver,
                label: format!("{name}/{n}").into(),
                url: proxy.url.clone(),
            })
        };
        let pool = |(name, proxies): (&AccessName, &Vec<ProxySettings>)| {
            let members = (1..).zip(proxies).map(|(n, proxy)| (name, n, proxy));
            let pool = ProxyPool {
                name: name.clone(),
                rotation: ProxyRotation::new(proxies.len()),
                proxies: members.map(member).collect::<Result<_, _>>()?,
            };
            Ok((name.clone(), Arc::new(pool)))
        };
        Ok(Self {
            direct: client::build(settings, resolver.clone(), None)?,
            pools: settings
                .proxies
                .iter()
                .map(pool)
                .collect::<Result<_, _>>()?,
        })
    }

    /// Returns the proxies that a resource asks for, if it asks for any.
    pub(super) fn pool(
        &self,
        choice: Option<&ProxyChoice>,
    ) -> Result<Option<Arc<ProxyPool>>, FetchError> {
        match choice {
            Some(ProxyChoice::Direct) => Ok(None),
            None => Ok(self.pools.get(DEFAULT).cloned()),
            Some(ProxyChoice::Through(name)) => match self.pools.get(name) {
                Some(pool) => Ok(Some(Arc::clone(pool))),
                None => Err(FetchError::NotSetUp {
                    setting: "proxy",
                    name: name.to_string(),
                    table: "proxies",
                }),
            },
        }
    }

    /// Returns the names of all pools.
    pub(super) fn names(&self) -> impl Iterator<Item = &AccessName> {
        self.pools.keys()
    }

    /// Sends a hop on its way.
    pub(super) async fn exchange(
        &self,
        hop: &Hop,
        settings: &FetchSettings,
        max_body: u64,
    ) -> Exchange {
        match &hop.pool {
            // The future is boxed, because most requests do not need it.
            Some(pool) => Box::pin(pool.exchange(hop, settings, max_body)).await,
            None => hop.exchange(&self.direct, settings, max_body).await,
        }
    }
}

impl ProxyPool {
    async fn exchange(&self, hop: &Hop, settings: &FetchSettings, max_body: u64) -> Exchange {
        let host = host_of(&hop.url);
        let (mut tried, mut doubted) = (Vec::new(), Vec::new());
        let mut last = None;
        while tried.len() < MAX_TRIES {
            let Some((index, proxy)) = self.next(&tried) else {
                break;
            };
            tried.push(index);
            let begun = Instant::now();
            let mut exchange = match is_itself(proxy, &hop.url) {
                Some(refused) => return nothing(refused),
                None => hop.exchange(&proxy.client, settings, max_body).await,
            };
            match proxy.blame(&hop.url, &exchange, settings).await {
                Blame::Nobody => {
                    if exchange.outcome.is_ok() {
                        self.rotation.well(index, begun);
                        for other in doubted {
                            self.rest(other, "another proxy connected where it did not");
                        }
                    }
                    if let Ok(Outcome::Received(answer)) = &mut exchange.outcome {
                        answer.record.proxy = Some(Arc::clone(&proxy.label));
                        // The address is that of the proxy, and rules are not told it.
                        answer.record.address = None;
                    }
                    return exchange;
                }
                Blame::Either { was_asked: true } => {
                    let rests = self.doubt(index, &host);
                    if exchange.outcome.is_ok() {
                        let proxy = proxy.label.to_string();
                        exchange.outcome = Err(match rests {
                            true => self.resting(Duration::ZERO),
                            false => FetchError::Proxy { proxy },
                        });
                    }
                    return exchange;
                }
                Blame::Either { was_asked: false } => {
                    self.doubt(index, &host);
                    doubted.push(index);
                    last = Some(exchange);
                }
                Blame::Proxy(why) => self.rest(index, why),
            }
        }
        // Either all proxies that could be tried failed at this host, or all of them rest, which is not the
        // page's fault.
        let resting = || nothing(self.check().err().unwrap_or(self.resting(Duration::ZERO)));
        last.unwrap_or_else(resting)
    }

    fn rest(&self, index: usize, why: &str) {
        let rest = self.rotation.rest(index, Instant::now());
        self.tell(index, rest, why);
    }

    /// Notes a doubt about a proxy. Returns true if it rests now.
    fn doubt(&self, index: usize, host: &str) -> bool {
        let doubt = self.rotation.doubt(index, host, Instant::now());
        if let Doubt::Begins(rest) = doubt {
            self.tell(index, rest, "pages of several hosts failed on end");
        }
        doubt != Doubt::GoesOn
    }

    pub(super) fn name(&self) -> &AccessName {
        &self.name
    }

    fn next(&self, tried: &[usize]) -> Option<(usize, &Member)> {
        let index = self.rotation.next(Instant::now(), tried)?;
        Some((index, self.proxies.get(index)?))
    }

    /// Returns an error if all of the proxies rest.
    pub(super) fn check(&self) -> Result<(), FetchError> {
        let checked = self.rotation.check(Instant::now());
        checked.map_err(|pause| self.resting(pause))
    }

    fn resting(&self, pause: Duration) -> FetchError {
        FetchError::NoProxy {
            name: self.name.to_string(),
            pause,
        }
    }

    fn tell(&self, index: usize, rest: Duration, why: &str) {
        if let Some(proxy) = self.proxies.get(index) {
            let (name, url) = (&*proxy.label, proxy.url.as_str());
            tracing::warn!(proxy = name, url, ?rest, why, "a proxy rests");
        }
    }
}

fn through(proxy: &ProxySettings) -> Result<Proxy, SetupError> {
    let mut url = proxy.url.clone();
    if let Some((user, password)) = &proxy.login {
        // The client decodes percent-encoded text, so each percent sign is encoded.
        let (user, password) = (user.replace('%', "%25"), password.replace('%', "%25"));
        // This cannot fail, because the URL has a host.
        let _set = (url.set_username(&user), url.set_password(Some(&password)));
    }
    Proxy::all(url).map_err(|source| SetupError::Proxy {
        url: proxy.url.to_string(),
        source: source.without_url(),
    })
}

/// Returns an exchange in which nothing was asked.
fn nothing(why: FetchError) -> Exchange {
    Exchange {
        outcome: Err(why),
        took: Duration::ZERO,
        was_not_connected: true,
    }
}

/// Refuses a page on the proxy's own host, because its name would be looked up like the proxy's, without a check.
fn is_itself(proxy: &Member, url: &Url) -> Option<FetchError> {
    let why =
        || "it is on the host of its proxy; ask for it with setting proxy as direct".to_owned();
    let is_name = url.domain().is_some() && proxy.url.host_str() == url.host_str();
    is_name.then(|| FetchError::Request { why: why() })
}

/// Party to blame for a failed exchange.
#[derive(Debug, PartialEq, Eq)]
enum Blame {
    Nobody,
    /// The proxy or the host; `was_asked` is true if one of them was asked for the page.
    Either {
        was_asked: bool,
    },
    /// The proxy, with a description of its fault.
    Proxy(&'static str),
}

impl Member {
    async fn blame(&self, url: &Url, exchange: &Exchange, settings: &FetchSettings) -> Blame {
        // These are answers that a proxy itself gives where it does not tunnel; a site may give them too, then.
        let is_forwarded = url.scheme() == "http" && self.url.scheme().starts_with("http");
        let has_failed = matches!(
            exchange.outcome,
            Err(FetchError::Connection { .. }
                | FetchError::Timeout { .. }
                | FetchError::Headers { .. })
        );
        if !exchange.was_not_connected {
            let is_407 = matches!(&exchange.outcome, Ok(Outcome::Received(a)) if a.status == 407);
            return match is_forwarded && (is_407 || has_failed) {
                true => Blame::Either { was_asked: true },
                false => Blame::Nobody,
            };
        }
        let is_proxys = |host: &str| self.url.host_str() == Some(host);
        match &exchange.outcome {
            Err(FetchError::Resolve { host, .. }) if is_proxys(host) => {
                Blame::Proxy("its name cannot be resolved")
            }
            Err(_) if has_failed && is_forwarded => Blame::Proxy("it cannot be connected to"),
            // The words are those of hyper-util, which offers no other way to tell.
            Err(FetchError::Connection { why }) => {
                let says = |words: &str| why.contains(words);
                if says("failed to create underlying connection") {
                    Blame::Proxy("it cannot be connected to")
                } else if says("proxy authorization required") || says("credentials not accepted") {
                    Blame::Proxy("it does not accept user and password")
                } else {
                    Blame::Either { was_asked: false }
                }
            }
            Err(FetchError::Timeout { .. }) => {
                match self.is_there(settings.connect_timeout).await {
                    true => Blame::Either { was_asked: false },
                    false => Blame::Proxy("it cannot be connected to in time"),
                }
            }
            Ok(_) | Err(_) => Blame::Nobody,
        }
    }

    /// Returns true if the proxy itself can be connected to.
    async fn is_there(&self, limit: Duration) -> bool {
        let connect = async {
            let host = self.url.host_str().unwrap_or_default();
            let port = self.url.port_or_known_default().unwrap_or_default();
            let addresses = self.resolver.found(host).await.unwrap_or_default();
            let addresses: Vec<_> = addresses.into_iter().map(|ip| (ip, port).into()).collect();
            TcpStream::connect(&addresses[..]).await.is_ok()
        };
        tokio::time::timeout(limit, connect).await.unwrap_or(false)
    }
}
