//! Fetching of one page over HTTP: one request at a time, bounded while it streams, with its redirects within
//! the host.
//!
//! Every hop, the first included, is judged by the address policy and by the site's robots.txt and waits for its
//! turn in the throttle. Setting `timeout` of the table `[fetch]` bounds the time from sending it to the last byte
//! of its body. The delay of a host starts when the hop is over, however it ended. A body is measured after its
//! content-encoding is removed, so a small archive of a large page is cut like the page. Within that timeout, the
//! headers of an answer and each stretch of its body have bounds of their own.
//!
//! The throttle is told the outcome of each exchange. The caller, who gets the answer with its headers, decides
//! when a page is tried again.

use std::pin::pin;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tracing::Instrument as _;
use url::{Host, Url};

use super::address_policy::AddressPolicy;
use super::cache::HttpCache;
use super::resolve::{FilteringResolver, ResolveError};
use super::robots::{Cache, product_of};
use super::throttle::{Pace, Requester, Throttle};
use super::turns::Turns;
use super::{Answer, Failure, Fetch, FetchError, FetchRequest, Fetched, Prepared};
use crate::throttle::after;
use answer::{is_new_page, page};
use crawler_model::crawl::{UnixMillis, clock_of_host, is_same_host};
use crawler_model::frontier::DelaySource;
use crawler_model::resource::DEFAULT_DELAY;
use crawler_model::settings::AccessName;
use crawler_process::clock::Clock;
use failed::within;
use hop::{Exchange, Hop, Outcome};
use politeness::Politeness;
use proxy_pools::ProxyPools;
use sent::{OPEN_FILES_WAIT, Sent};

mod answer;
mod body;
mod cached;
mod client;
mod counts;
mod failed;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
mod head;
mod hop;
mod hop_checks;
mod host_signal;
mod politeness;
pub mod post;
mod proxied;
mod proxy_pools;
mod recorded;
mod request_log;
mod send;
mod sent;
mod settings;

pub use client::SetupError;
pub use counts::FetchCounts;
pub(crate) use head::OF_CODING;
pub use host_signal::retry_after;
pub use recorded::Recorded;
pub use settings::{FetchSettings, ProxySettings};

/// Fetcher over HTTP/1.1 and HTTP/2.
pub struct HttpFetcher {
    settings: FetchSettings,
    proxy_pools: ProxyPools,
    address_policy: Arc<AddressPolicy>,
    resolver: FilteringResolver,
    throttle: Arc<Throttle>,
    /// Turns shared with other workers. If not set, no other worker is asked.
    turns: OnceLock<Turns>,
    robots: Cache,
    /// Permits for hosts that are being prepared.
    preparing: Semaphore,
    clock: Arc<dyn Clock>,
    /// Answers of earlier runs, for development.
    cache: Option<HttpCache>,
    /// Answers in the place of all sites.
    recorded: Option<Arc<dyn Recorded>>,
    /// True once a site outside the operator's networks was asked without a contact in the user agent.
    is_nameless: AtomicBool,
    counts: FetchCounts,
}

impl std::fmt::Debug for HttpFetcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpFetcher")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl HttpFetcher {
    /// Creates a fetcher with its own connections. Address policy and throttle are those of the process.
    pub fn new(
        settings: FetchSettings,
        address_policy: Arc<AddressPolicy>,
        throttle: Arc<Throttle>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, SetupError> {
        let fixed = settings.hosts.clone();
        let resolver = FilteringResolver::new(Arc::clone(&address_policy), fixed, &settings.names);
        Self::resolving(resolver, settings, address_policy, throttle, clock)
    }

    fn resolving(
        resolver: FilteringResolver,
        settings: FetchSettings,
        address_policy: Arc<AddressPolicy>,
        throttle: Arc<Throttle>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, SetupError> {
        Ok(Self {
            proxy_pools: ProxyPools::new(&settings, &resolver)?,
            robots: Cache::new(product_of(&settings.user_agent)),
            preparing: Semaphore::new(settings.preparing),
            settings,
            address_policy,
            resolver,
            throttle,
            turns: OnceLock::new(),
            clock,
            cache: None,
            recorded: None,
            is_nameless: AtomicBool::new(false),
            counts: FetchCounts::default(),
        })
    }

    /// Forgets the robots.txt of the sites that were asked least recently, to free memory.
    pub fn shrink(&self) {
        self.robots.shrink();
    }

    /// Performs one exchange once its host has its turn. Names behind proxies are judged here, because no
    /// other code does that.
    async fn exchange(&self, hop: &Hop, max_body: u64) -> Exchange {
        if hop.pool.is_some() && !self.is_proxys_to_resolve(hop) {
            let begun = Instant::now();
            let check = self.resolver.check_name(&hop.url, hop.names_port);
            if let Err(error) = self.while_connecting(check).await {
                return Exchange {
                    outcome: Err(error),
                    took: begun.elapsed(),
                    was_not_connected: true,
                    draft: None,
                };
            }
        }
        let _port = self.resolver.announce_port(&hop.url, hop.names_port);
        self.proxy_pools
            .exchange(hop, &self.settings, max_body)
            .await
    }

    /// Returns true if only the proxy resolves the host's name.
    fn is_proxys_to_resolve(&self, hop: &Hop) -> bool {
        hop.pool.is_some() && self.settings.proxy_resolves
    }

    /// Runs a check of the name that comes before anything is sent, within `connect-timeout`.
    async fn while_connecting(
        &self,
        check: impl Future<Output = Result<(), FetchError>>,
    ) -> Result<(), FetchError> {
        within(self.settings.connect_timeout, "connect-timeout", check).await
    }

    fn delay(&self, url: &Url, asked_for: Option<Duration>) -> Duration {
        match asked_for {
            Some(delay) => delay,
            None if self.resolver.is_inside(url) => Duration::ZERO,
            None => DEFAULT_DELAY,
        }
    }

    /// Returns the politeness of the fetch and its first hop.
    fn prepared(&self, mut request: FetchRequest) -> Result<(Politeness, Hop), FetchError> {
        self.without_ways(&mut request);
        let pool = self.proxy_pools.pool(request.proxy.as_ref())?;
        let is_absent = |name: &&AccessName| !self.settings.credentials.contains_key(*name);
        if let Some(absent) = request.credentials.iter().find(is_absent) {
            return Err(FetchError::NotSetUp {
                setting: "credentials",
                name: absent.to_string(),
                table: "credentials",
            });
        }
        let politeness = Politeness::of(&request, pool.clone());
        let cache = self.cache_for(&mut request);
        let mut hop = Hop::first(request, pool)?;
        hop.cache = cache;
        Ok((politeness, hop))
    }
}

#[async_trait]
impl Fetch for HttpFetcher {
    async fn fetch(&self, request: FetchRequest) -> Result<Fetched, Failure> {
        let (max_body, max_url_length) = (request.max_body, request.max_url_length);
        let (politeness, mut hop) = self.prepared(request).map_err(Failure::of_page)?;
        // The hops so far would be lost: the page would begin again from its first URL.
        let mut requester = politeness.requester;
        let mut on_the_way = Vec::new();
        // After all hops so far: a later one that is not made gives the host no less time.
        let (mut host_ready_at, mut delay_by) = (0, DelaySource::default());
        loop {
            let request = async {
                let begun = Instant::now();
                let sent = self.ask(&hop, max_body, &politeness, requester).await;
                self.note_outcome(&sent.outcome, begun);
                sent
            };
            let request = request.instrument(request_log::span(&hop));
            let sent = request_log::trace(&hop).around(pin!(request)).await;
            let Sent {
                outcome,
                is_of_host,
                ..
            } = sent;
            if sent.host_ready_at > host_ready_at {
                (host_ready_at, delay_by) = (sent.host_ready_at, sent.delay_by);
            }
            let failure = |error| Failure {
                error,
                host_ready_at,
                delay_by,
                is_of_host,
            };
            let now = self.clock.unix_millis();
            hop.record(&outcome, now);
            let answer = match outcome {
                // Otherwise the hops so far would be repeated. The rest becomes a page of its own, if that is
                // possible.
                Err(error) if error.is_held() && !on_the_way.is_empty() => {
                    if !is_new_page(&hop, &on_the_way) {
                        let why = error.to_string();
                        return Err(failure(FetchError::Interrupted { why }));
                    }
                    Answer::Redirect { to: hop.url }
                }
                Err(error) => return Err(failure(error)),
                Ok(Outcome::Received(answer)) => {
                    let fetched_at = answer.record.stored_at.unwrap_or(now);
                    let page = page(hop.url, on_the_way, answer, fetched_at, max_body);
                    Answer::Page(Box::new(page))
                }
                // Another scheme counts as another host: headers of a rule do not go from https to http at
                // one port.
                Ok(Outcome::Redirect { to, .. }) if !is_same_host(&to, &hop.url) => {
                    Answer::Redirect { to }
                }
                Ok(Outcome::Redirect { to, .. })
                    if on_the_way.len() >= self.settings.max_redirects =>
                {
                    let n = self.settings.max_redirects;
                    let last = to.to_string();
                    return Err(failure(FetchError::Redirects { n, last }));
                }
                Ok(Outcome::Redirect { to, .. }) if to.as_str().len() > max_url_length as usize => {
                    let (length, max) = (to.as_str().len(), max_url_length);
                    return Err(failure(FetchError::UrlLength { length, max }));
                }
                Ok(Outcome::Redirect { to, status }) => {
                    on_the_way.push(hop.redirect(to, status));
                    requester = Requester::waiting();
                    continue;
                }
            };
            return Ok(Fetched {
                answer,
                host_ready_at,
                delay_by,
            });
        }
    }

    fn is_prepared(&self, request: &FetchRequest) -> bool {
        if self.recorded.is_some() {
            return true;
        }
        // The fetch reports a proxy that is not set up.
        let Ok(pool) = self.proxy_pools.pool(request.proxy.as_ref()) else {
            return true;
        };
        let proxy = pool.as_ref().map(|pool| pool.name());
        // Where no delay is kept, connections are open while a name is looked up anew. With a cache, only these do it.
        let needs_name = pool.is_none()
            && self.cache.is_none()
            && !self.delay(&request.url, request.delay).is_zero();
        (!needs_name || self.resolver.is_known(&request.url))
            && self.are_rules_known(&request.url, request.robots, proxy)
    }

    async fn prepare(&self, request: FetchRequest) -> Result<Prepared, Failure> {
        let (politeness, hop) = self.prepared(request).map_err(Failure::of_page)?;
        if self.recorded.is_some() {
            return Ok(Prepared::default());
        }
        let url = &hop.url;
        self.address_policy.check(url).map_err(Failure::of_page)?;
        // The semaphore is never closed.
        let _place = self.preparing.acquire().await;
        if hop.pool.is_none()
            && hop.cache.is_none()
            && let Some(Host::Domain(name)) = url.host()
        {
            let found = async {
                let found = self.resolver.found(name).await;
                found.map(drop).map_err(ResolveError::into_fetch_error)
            };
            let looked_up = self.while_connecting(found).await;
            looked_up.map_err(|error| match error {
                FetchError::OpenFiles => Failure {
                    error,
                    host_ready_at: after(self.clock.unix_millis(), OPEN_FILES_WAIT),
                    delay_by: DelaySource::default(),
                    is_of_host: false,
                },
                error => Failure {
                    error,
                    host_ready_at: 0,
                    delay_by: DelaySource::default(),
                    is_of_host: true,
                },
            })?;
        }
        if politeness.ignores_robots() {
            return Ok(Prepared::default());
        }
        let (wanted, pause) = self.origin_rules(url, &politeness).await?;
        Ok(Prepared {
            host_ready_at: pause.ready_at,
            delay_by: pause.by,
            // An answer of the cache says nothing about the host.
            has_answered: wanted.is_new && pause.ready_at > 0,
        })
    }

    fn rest(&self, host: &str, until: UnixMillis) {
        let pause = until.saturating_sub(self.clock.unix_millis());
        self.throttle
            .rest(&clock_of_host(host), Duration::from_millis(pause));
    }

    fn per_host(&self, host: &Url, delay: Option<Duration>) -> u32 {
        if self.recorded.is_some() {
            return self.throttle.parallel(&Pace::of_delay(Duration::ZERO));
        }
        // It is not known here which proxies the pages go through; the throttle keeps the delay of each.
        let proxies = self.proxy_pools.names().map(Some).chain([None]);
        let wanted = proxies
            .filter_map(|proxy| self.robots.delay(host, proxy))
            .max();
        let wanted = wanted.unwrap_or_default();
        let delay = self.delay(host, delay).max(wanted);
        self.throttle.parallel(&Pace::of_delay(delay))
    }
}

#[cfg(test)]
mod tests;
