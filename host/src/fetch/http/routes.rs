//! Through what a hop goes: straight to its host, or through one of the proxies of a name.
//!
//! Each proxy has a client of its own, because a client keeps its connections by host and not by the way
//! that they take. A proxy that fails before the host was asked is replaced at once by the next.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, Proxy};
use tokio::net::TcpStream;
use tokio::time::Instant;
use url::Url;

use super::client::{self, SetupError};
use super::hop::{Hop, Outcome};
use super::{FetchSettings, GuardedResolver};
use crate::fetch::FetchError;
use crate::fetch::proxies::Turns;
use crate::model::crawl::host_of;
use crate::model::settings::{AccessName, ProxyChoice};

/// What pools are used where a resource says nothing.
const DEFAULT: &str = "default";

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
    /// As pages tell of it.
    label: Arc<str>,
}

impl Routes {
    pub(super) fn new(
        settings: &FetchSettings,
        resolver: &GuardedResolver,
    ) -> Result<Self, SetupError> {
        let member = |proxy: &ProxySettings| {
            let resolver = resolver.knowing_proxy(&proxy.url);
            Ok(Member {
                client: client::build(settings, resolver, Some(through(proxy)?))?,
                label: proxy.url.as_str().trim_end_matches('/').into(),
                url: proxy.url.clone(),
            })
        };
        let pool = |(name, proxies): (&AccessName, &Vec<ProxySettings>)| {
            let pool = Pool {
                name: name.clone(),
                turns: Turns::new(proxies.len()),
                proxies: proxies.iter().map(member).collect::<Result<_, _>>()?,
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

    /// Sends a hop on its way, by another proxy where one is to blame.
    pub(super) async fn exchange(
        &self,
        hop: &Hop,
        settings: &FetchSettings,
        max_body: u64,
    ) -> Result<Outcome, FetchError> {
        let Some(pool) = &hop.pool else {
            return hop.exchange(&self.direct, settings, max_body).await;
        };
        loop {
            let (index, proxy) = pool.next()?;
            let mut outcome = hop.exchange(&proxy.client, settings, max_body).await;
            match blame(proxy, &outcome, settings.connect_timeout).await {
                Blame::Nobody => pool.turns.well(index),
                Blame::Either => {
                    let rest = pool.turns.doubt(index, &host_of(&hop.url), Instant::now());
                    if let Some(rest) = rest {
                        pool.tell(proxy, rest, "no page came through it from several hosts");
                    }
                }
                Blame::Proxy(why) => {
                    let rest = pool.turns.rest(index, Instant::now());
                    pool.tell(proxy, rest, &why);
                    continue;
                }
            }
            if let Ok(Outcome::Received(answer)) = &mut outcome {
                answer.record.proxy = Some(Arc::clone(&proxy.label));
            }
            return outcome;
        }
    }
}

impl Pool {
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

    fn tell(&self, proxy: &Member, rest: Duration, why: &str) {
        let (proxies, proxy) = (self.name.as_str(), &*proxy.label);
        tracing::warn!(proxies, proxy, ?rest, why, "a proxy rests");
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

/// Who is to blame that no page came.
enum Blame {
    Nobody,
    Either,
    /// The proxy, and what it did.
    Proxy(String),
}

async fn blame(proxy: &Member, outcome: &Result<Outcome, FetchError>, limit: Duration) -> Blame {
    let refused = || Blame::Proxy("it does not accept user and password".to_owned());
    let why = match outcome {
        Ok(Outcome::Received(answer)) if answer.status == 407 => return refused(),
        Err(FetchError::Connection { why }) => why.as_str(),
        Err(FetchError::Timeout { .. }) => "",
        Ok(_) | Err(_) => return Blame::Nobody,
    };
    // In the words of hyper-util, which tells it in no other way.
    if why.contains("proxy authorization required") || why.contains("credentials not accepted") {
        return refused();
    }
    let host = proxy
        .url
        .host_str()
        .unwrap_or_default()
        .trim_matches(['[', ']']);
    let port = proxy.url.port_or_known_default().unwrap_or_default();
    match tokio::time::timeout(limit, TcpStream::connect((host, port))).await {
        Ok(Ok(_)) => Blame::Either,
        Ok(Err(error)) => Blame::Proxy(format!("it cannot be connected to: {error}")),
        Err(_elapsed) => Blame::Proxy("it cannot be connected to in time".to_owned()),
    }
}
