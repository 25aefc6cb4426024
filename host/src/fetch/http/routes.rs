//! Through what a hop goes: straight to its host, or through one of the proxies of a name.
//!
//! Each proxy has a client of its own, because a client keeps its connections by host and not by the way
//! that they take. Where no connection came about, nobody was asked for the page, so it is sent through
//! the next proxy at once: if that one can, the first is to blame. What fails later is the page's matter.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, Proxy};
use tokio::time::Instant;
use url::Url;

use super::client::{self, SetupError};
use super::hop::{Exchange, Hop, Outcome};
use super::{FetchSettings, GuardedResolver};
use crate::fetch::FetchError;
use crate::fetch::proxies::Turns;
use crate::model::crawl::host_of;
use crate::model::settings::{AccessName, ProxyChoice};

/// Proxies that are used where a resource says nothing.
const DEFAULT: &str = "default";
/// Proxies that a page is sent through on end. Its host waits meanwhile, for a connection of each.
const MAX_TRIES: usize = 3;

/// A proxy, as the operator set it up.
#[derive(Clone)]
pub struct ProxySettings {
    /// `http`, `https`, `socks5` or `socks5h`, without user.
    pub url: Url,
    /// User and password.
    pub login: Option<(String, String)>,
}

impl std::fmt::Debug for ProxySettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.url)
    }
}

/// All ways out of this process.
pub(super) struct Routes {
    pub(super) direct: Client,
    pools: BTreeMap<AccessName, Arc<Pool>>,
}

/// The proxies of one name.
#[derive(Debug)]
pub(super) struct Pool {
    name: AccessName,
    proxies: Vec<Member>,
    turns: Turns,
}

#[derive(Debug)]
struct Member {
    client: Client,
    url: Url,
    /// Its name and its place there, as pages tell of it.
    label: Arc<str>,
}

impl Routes {
    pub(super) fn new(
        settings: &FetchSettings,
        resolver: &GuardedResolver,
    ) -> Result<Self, SetupError> {
        let member = |(name, n, proxy): (&AccessName, usize, &ProxySettings)| {
            let resolver = resolver.knowing_proxy(&proxy.url);
            Ok(Member {
                client: client::build(settings, resolver, Some(through(proxy)?))?,
                label: format!("{name}/{n}").into(),
                url: proxy.url.clone(),
            })
        };
        let pool = |(name, proxies): (&AccessName, &Vec<ProxySettings>)| {
            let members = (1..).zip(proxies).map(|(n, proxy)| (name, n, proxy));
            let pool = Pool {
                name: name.clone(),
                turns: Turns::new(proxies.len()),
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

    /// The proxies that a resource asks for. None: none.
    pub(super) fn pool(
        &self,
        choice: Option<&ProxyChoice>,
    ) -> Result<Option<Arc<Pool>>, FetchError> {
        let default = || self.pools.iter().find(|(name, _)| name.as_str() == DEFAULT);
        match choice {
            Some(ProxyChoice::Direct) => Ok(None),
            None => Ok(default().map(|(_, pool)| Arc::clone(pool))),
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

    /// Sends a hop on its way.
    pub(super) async fn exchange(
        &self,
        hop: &Hop,
        settings: &FetchSettings,
        max_body: u64,
    ) -> Exchange {
        match &hop.pool {
            Some(pool) => pool.exchange(hop, settings, max_body).await,
            None => hop.exchange(&self.direct, settings, max_body).await,
        }
    }
}

impl Pool {
    async fn exchange(&self, hop: &Hop, settings: &FetchSettings, max_body: u64) -> Exchange {
        let host = host_of(&hop.url);
        let mut tried: Vec<usize> = Vec::new();
        let mut last = None;
        for _ in 0..MAX_TRIES {
            let (index, proxy) = match self.next() {
                Ok(next) => next,
                Err(resting) => return last.unwrap_or_else(|| nothing(resting)),
            };
            if tried.contains(&index) {
                break;
            }
            let begun = Instant::now();
            let mut exchange = match is_itself(proxy, &hop.url) {
                Some(refused) => return nothing(refused),
                None => hop.exchange(&proxy.client, settings, max_body).await,
            };
            match blame(proxy, &hop.url, &exchange) {
                Blame::Nobody => {
                    if exchange.outcome.is_ok() {
                        self.turns.well(index, begun);
                        for other in tried {
                            self.rest(other, "another proxy connected where it did not");
                        }
                    }
                    if let Ok(Outcome::Received(answer)) = &mut exchange.outcome {
                        answer.record.proxy = Some(Arc::clone(&proxy.label));
                        // The proxy's own, which is no business of rules.
                        answer.record.address = None;
                    }
                    return exchange;
                }
                Blame::Either { was_asked } => {
                    self.doubt(index, &host);
                    if was_asked {
                        let proxy = proxy.label.to_string();
                        let outcome = Err(FetchError::Proxy { proxy });
                        return Exchange {
                            outcome,
                            ..exchange
                        };
                    }
                    tried.push(index);
                    last = Some(exchange);
                }
                Blame::Proxy(why) => {
                    self.rest(index, why);
                    // Not the host's failure, whatever comes next.
                    last = last.or_else(|| self.check().err().map(nothing));
                }
            }
        }
        // Those that were tried rest, or all of them failed at this host.
        last.unwrap_or_else(|| nothing(self.resting(Duration::ZERO)))
    }

    fn rest(&self, index: usize, why: &str) {
        let rest = self.turns.rest(index, Instant::now());
        self.tell(index, rest, why);
    }

    fn doubt(&self, index: usize, host: &str) {
        if let Some(rest) = self.turns.doubt(index, host, Instant::now()) {
            self.tell(index, rest, "pages of several hosts failed on end");
        }
    }

    fn next(&self) -> Result<(usize, &Member), FetchError> {
        let index = self.turns.next(Instant::now());
        let index = index.map_err(|pause| self.resting(pause))?;
        let proxy = self.proxies.get(index);
        Ok((index, proxy.ok_or_else(|| self.resting(Duration::ZERO))?))
    }

    /// Whether not all of them rest.
    pub(super) fn check(&self) -> Result<(), FetchError> {
        let checked = self.turns.check(Instant::now());
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
        // It takes any text: the URL has a host.
        let _set = (url.set_username(user), url.set_password(Some(password)));
    }
    Proxy::all(url).map_err(|source| SetupError::Proxy {
        url: proxy.url.to_string(),
        source: source.without_url(),
    })
}

/// Nobody was asked for anything.
fn nothing(why: FetchError) -> Exchange {
    Exchange {
        outcome: Err(why),
        took: Duration::ZERO,
        was_not_connected: true,
    }
}

/// A page of the proxy's own host would be looked up as the proxy is: unjudged.
fn is_itself(proxy: &Member, url: &Url) -> Option<FetchError> {
    let why =
        || "it is on the host of its proxy; ask for it with setting proxy as direct".to_owned();
    let is_name = url.domain().is_some() && proxy.url.host_str() == url.host_str();
    is_name.then(|| FetchError::Request { why: why() })
}

/// Who is to blame that no page came.
#[derive(Debug, PartialEq, Eq)]
enum Blame {
    Nobody,
    /// The proxy or the host. Whether one of them was asked for the page.
    Either {
        was_asked: bool,
    },
    /// The proxy, and what it did.
    Proxy(&'static str),
}

fn blame(proxy: &Member, url: &Url, exchange: &Exchange) -> Blame {
    // What the proxy itself answers with where it is no tunnel; then a site may say so, too.
    let is_forwarded = url.scheme() == "http" && proxy.url.scheme().starts_with("http");
    if let Ok(Outcome::Received(answer)) = &exchange.outcome
        && answer.status == 407
        && is_forwarded
    {
        return Blame::Either { was_asked: true };
    }
    if !exchange.was_not_connected {
        return Blame::Nobody;
    }
    let is_proxys = |host: &str| proxy.url.host_str() == Some(host);
    match &exchange.outcome {
        Ok(_) => Blame::Nobody,
        Err(FetchError::Resolve { host, .. }) if is_proxys(host) => {
            Blame::Proxy("its name cannot be resolved")
        }
        Err(FetchError::Connection { .. } | FetchError::Timeout { .. }) if is_forwarded => {
            Blame::Proxy("it cannot be connected to")
        }
        // In the words of hyper-util, which tells it in no other way.
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
        Err(FetchError::Timeout { .. }) => Blame::Either { was_asked: false },
        Err(_) => Blame::Nobody,
    }
}
