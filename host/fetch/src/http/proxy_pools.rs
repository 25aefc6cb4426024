//! Proxies by the names that resources use, and the clients that go through them.
//!
//! Each proxy has a client of its own, because a client keeps its connections by host and not by the way that
//! they take.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, Proxy};
use tokio::time::Instant;
use url::Url;

use super::client::{self, SetupError};
use super::settings::{FetchSettings, ProxySettings};
use crate::FetchError;
use crate::proxy_rotation::{Doubt, ProxyRotation};
use crate::resolve::FilteringResolver;
use crawler_model::settings::{AccessName, ProxyChoice};

/// Name of the proxies that are used if a resource names none.
const DEFAULT: &str = "default";

/// Ways out of this process.
pub(super) struct ProxyPools {
    pub(super) direct: Client,
    pools: BTreeMap<AccessName, Arc<ProxyPool>>,
}

/// The proxies of one name.
pub(super) struct ProxyPool {
    name: AccessName,
    proxies: Vec<PooledProxy>,
    rotation: ProxyRotation,
}

/// One proxy, with its own client.
pub(super) struct PooledProxy {
    pub(super) client: Client,
    pub(super) resolver: FilteringResolver,
    pub(super) url: Url,
    /// Name of the pool and place in it, as recorded with pages.
    pub(super) label: Arc<str>,
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
            Ok(PooledProxy {
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
}

impl ProxyPool {
    /// Records an answer through a proxy to a request made at `begun`.
    pub(super) fn worked(&self, index: usize, begun: Instant) {
        self.rotation.well(index, begun);
    }

    /// Makes a proxy rest that is to blame.
    pub(super) fn rest(&self, index: usize, why: &str) {
        let rest = self.rotation.rest(index, Instant::now());
        self.tell(index, rest, why);
    }

    /// Notes a doubt about a proxy. Returns true if it rests now.
    pub(super) fn doubt(&self, index: usize, host: &str) -> bool {
        let doubt = self.rotation.doubt(index, host, Instant::now());
        if let Doubt::Begins(rest) = doubt {
            self.tell(index, rest, "pages of several hosts failed on end");
        }
        doubt != Doubt::GoesOn
    }

    pub(super) fn name(&self) -> &AccessName {
        &self.name
    }

    /// Returns the next proxy that neither rests nor was tried, if there is one.
    pub(super) fn next(&self, tried: &[usize]) -> Option<(usize, &PooledProxy)> {
        let index = self.rotation.next(Instant::now(), tried)?;
        Some((index, self.proxies.get(index)?))
    }

    /// Returns an error if all of the proxies rest.
    pub(super) fn check(&self) -> Result<(), FetchError> {
        let checked = self.rotation.check(Instant::now());
        checked.map_err(|pause| self.resting(pause))
    }

    /// Returns the error of a page that has to wait until a proxy may be used again.
    pub(super) fn resting(&self, pause: Duration) -> FetchError {
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
