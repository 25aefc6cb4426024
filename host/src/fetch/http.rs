//! How a page is fetched: one request at a time, bounded while it streams, and its redirects within
//! the host.
//!
//! Every hop, the first included, is judged by the guard and by the site's robots.txt, waits for its turn
//! at the gate, and has setting `timeout` of the table `[fetch]` from being sent to the last byte of its
//! body. The delay of a host starts when the hop is over, however it ended. A body is measured after its
//! content-encoding is removed, so a small archive of a large page is cut like the page. Within that
//! timeout, the headers of an answer and each stretch of its body have bounds of their own.
//!
//! What an exchange says of its host is told to the gate. When a page is tried again is for the caller,
//! who gets the answer with its headers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;
use url::Url;

use super::gate::{Gate, Pace, Paused};
use super::guard::Guard;
use super::resolve::GuardedResolver;
use super::robots::Cache;
use super::{Answer, Failure, Fetch, FetchError, FetchRequest, Fetched, charset};
use crate::clock::Clock;
use crate::model::crawl::{Page, UnixMillis, host_of, is_same_host};
use crate::model::resource::DEFAULT_DELAY;
use crate::model::settings::{AccessName, USUAL_AGENT};
use failed::within;
use hop::{Exchange, Hop, Outcome};
use judge::Manner;
use routes::Routes;

mod body;
mod client;
mod failed;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
mod hop;
mod judge;
mod routes;
mod settings;
mod sign;

pub use client::SetupError;
pub use routes::ProxySettings;
pub use settings::FetchSettings;
pub use sign::retry_after;

/// Fetches over HTTP/1.1 and HTTP/2.
pub struct HttpFetcher {
    settings: FetchSettings,
    routes: Routes,
    guard: Arc<Guard>,
    resolver: GuardedResolver,
    gate: Arc<Gate>,
    robots: Cache,
    clock: Arc<dyn Clock>,
    /// Sites were asked by one who does not tell how to reach him.
    is_nameless: AtomicBool,
}

impl std::fmt::Debug for HttpFetcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpFetcher")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl HttpFetcher {
    /// A fetcher with its own connections. Guard and gate are those of the process.
    pub fn new(
        settings: FetchSettings,
        guard: Arc<Guard>,
        gate: Arc<Gate>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, SetupError> {
        let (fixed, ttl) = (settings.hosts.clone(), settings.dns_ttl);
        let resolver = GuardedResolver::new(Arc::clone(&guard), fixed, ttl);
        Self::resolving(resolver, settings, guard, gate, clock)
    }

    fn resolving(
        resolver: GuardedResolver,
        settings: FetchSettings,
        guard: Arc<Guard>,
        gate: Arc<Gate>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, SetupError> {
        Ok(Self {
            routes: Routes::new(&settings, &resolver)?,
            robots: Cache::new(judge::product_of(&settings.user_agent)),
            settings,
            guard,
            resolver,
            gate,
            clock,
            is_nameless: AtomicBool::new(false),
        })
    }

    /// Where memory is short: forgets the robots.txt of sites that were asked least lately.
    pub fn shrink(&self) {
        self.robots.shrink();
    }

    /// Whoever runs a site should know whom to ask about a crawl; once a process is enough.
    fn want_contact(&self, url: &Url) {
        let is_usual = self.settings.user_agent == USUAL_AGENT;
        if is_usual
            && !self.resolver.is_inside(url)
            && !self.is_nameless.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(
                "sites see {USUAL_AGENT:?} and cannot tell whom to ask about it; set contact of [fetch] in the config file"
            );
        }
    }

    /// Once its host has its turn. Names behind proxies are judged here, because nobody else does.
    async fn exchange(&self, hop: &Hop, max_body: u64) -> Exchange {
        if hop.pool.is_some() && !self.is_proxys_to_resolve(hop) {
            let begun = Instant::now();
            let check = self.resolver.check_name(&hop.url, hop.names_port);
            if let Err(error) = self.while_connecting(check).await {
                return Exchange {
                    outcome: Err(error),
                    took: begun.elapsed(),
                    was_not_connected: true,
                };
            }
        }
        let _want = self.resolver.want(&hop.url, hop.names_port);
        self.routes.exchange(hop, &self.settings, max_body).await
    }

    /// Nobody but the proxy asks for the addresses of its host.
    fn is_proxys_to_resolve(&self, hop: &Hop) -> bool {
        hop.pool.is_some() && self.settings.proxy_resolves
    }

    /// What has to be known of a name before anything is sent.
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

    /// What the request asks of the way, and its first hop.
    fn prepared(&self, request: FetchRequest) -> Result<(Manner, Hop), FetchError> {
        let pool = self.routes.pool(request.proxy.as_ref())?;
        let is_absent = |name: &&AccessName| !self.settings.credentials.contains_key(*name);
        if let Some(absent) = request.credentials.iter().find(is_absent) {
            return Err(FetchError::NotSetUp {
                setting: "credentials",
                name: absent.to_string(),
                table: "credentials",
            });
        }
        let manner = Manner::of(&request, pool.clone());
        Ok((manner, Hop::first(request, pool)?))
    }

    /// One hop, and when its host may be asked again; 0 where nothing was asked of it.
    async fn send(
        &self,
        hop: &Hop,
        max_body: u64,
        pace: &Pace,
    ) -> (Result<Outcome, FetchError>, UnixMillis) {
        if let Err(denied) = self.guard.check(&hop.url) {
            return (Err(denied), 0);
        }
        if let Some(pool) = &hop.pool
            && let Err(resting) = pool.check()
        {
            let rest = rest_of(&resting);
            return (Err(resting), after(self.clock.unix_millis(), rest));
        }
        let may_look_up = !self.is_proxys_to_resolve(hop);
        // Nearly always; then no clock is needed.
        if !self.resolver.is_port_open(&hop.url, hop.names_port) {
            let check = (self.resolver).check_port(&hop.url, hop.names_port, may_look_up);
            if let Err(denied) = self.while_connecting(check).await {
                return (Err(denied), 0);
            }
        }
        let host = host_of(&hop.url);
        let asked = Instant::now();
        let permit = match self.gate.enter(&host, pace).await {
            Ok(permit) => permit,
            Err(Paused { pause }) => {
                let host_ready_at = after(self.clock.unix_millis(), pause);
                return (Err(FetchError::Paused { host, pause }), host_ready_at);
            }
        };
        let Exchange {
            mut outcome, took, ..
        } = self.exchange(hop, max_body).await;
        // Now, because it is known where the host is.
        if outcome.is_ok() {
            self.want_contact(&hop.url);
        }
        if let Ok(Outcome::Received(answer)) = &mut outcome {
            answer.record.waited = permit.entered().duration_since(asked);
        }
        let now = self.clock.unix_millis();
        let left_alone = permit.finish(sign::of(&outcome, took, now));
        let rest = outcome.as_ref().err().map(rest_of).unwrap_or_default();
        (outcome, after(now, left_alone.max(rest)))
    }
}

/// How long the proxies of a page rest, where that is why it was not sent.
fn rest_of(error: &FetchError) -> Duration {
    match error {
        FetchError::NoProxy { pause, .. } => *pause,
        _ => Duration::ZERO,
    }
}

/// One line for each hop, sent or not, for `CRAWLER_LOG=crawler::fetch=debug`. What it took includes what
/// it waited, of a page also for its robots.txt.
fn tell(hop: &Hop, outcome: &Result<Outcome, FetchError>, begun: Instant) {
    if !tracing::enabled!(tracing::Level::DEBUG) {
        return;
    }
    let (url, took) = (hop.url.as_str(), begun.elapsed().as_millis());
    match outcome {
        Ok(Outcome::Received(answer)) => {
            let record = &answer.record;
            let millis = |time: Option<Duration>| time.map(|time| time.as_millis());
            tracing::debug!(
                url,
                status = answer.status,
                bytes = record.n_received,
                address = record.address.map(tracing::field::display),
                version = record.version,
                wait_ms = record.waited.as_millis(),
                lookup_ms = millis(record.lookup),
                connect_ms = millis(record.connect),
                first_byte_ms = record.first_byte.as_millis(),
                body_ms = record.body.as_millis(),
                "fetched"
            );
        }
        Ok(Outcome::Redirect { to, status }) => {
            let (status, to) = (status.as_u16(), to.as_str());
            tracing::debug!(url, status, to, took_ms = took, "redirected");
        }
        Err(error) => {
            let reason = error.reason();
            tracing::debug!(url, reason, %error, took_ms = took, "not fetched");
        }
    }
}

fn after(now: UnixMillis, pause: Duration) -> UnixMillis {
    now.saturating_add(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX))
}

#[async_trait]
impl Fetch for HttpFetcher {
    async fn fetch(&self, request: FetchRequest) -> Result<Fetched, Failure> {
        let (max_body, max_url_length) = (request.max_body, request.max_url_length);
        let prepared = self.prepared(request).map_err(|error| Failure {
            error,
            host_ready_at: 0,
        });
        let (manner, mut hop) = prepared?;
        let mut on_the_way = Vec::new();
        // After all hops so far: a later one that is not made gives the host no less time.
        let mut host_ready_at = 0;
        loop {
            let begun = Instant::now();
            let (outcome, ready_at) = match self.judge(&hop.url, &manner).await {
                Ok(pace) => self.send(&hop, max_body, &pace).await,
                Err(Failure {
                    error,
                    host_ready_at,
                }) => (Err(error), host_ready_at),
            };
            tell(&hop, &outcome, begun);
            host_ready_at = host_ready_at.max(ready_at);
            let failure = |error| Failure {
                error,
                host_ready_at,
            };
            let answer = match outcome {
                // The hops so far would be made again: the rest is a page of its own, if it can be.
                Err(error) if error.is_held() && !on_the_way.is_empty() => {
                    if !is_new_page(&hop, &on_the_way) {
                        let why = error.to_string();
                        return Err(failure(FetchError::Interrupted { why }));
                    }
                    Answer::Elsewhere { to: hop.url }
                }
                Err(error) => return Err(failure(error)),
                Ok(Outcome::Received(answer)) => {
                    let now = self.clock.unix_millis();
                    Answer::Page(Box::new(page(hop.url, on_the_way, answer, now)))
                }
                // Of another scheme too: headers of a rule do not go from https to http at one port.
                Ok(Outcome::Redirect { to, .. }) if !is_same_host(&to, &hop.url) => {
                    Answer::Elsewhere { to }
                }
                Ok(Outcome::Redirect { .. }) if on_the_way.len() >= self.settings.max_redirects => {
                    let n = self.settings.max_redirects;
                    return Err(failure(FetchError::Redirects { n }));
                }
                Ok(Outcome::Redirect { to, .. }) if to.as_str().len() > max_url_length as usize => {
                    let (length, max) = (to.as_str().len(), max_url_length);
                    return Err(failure(FetchError::UrlLength { length, max }));
                }
                Ok(Outcome::Redirect { to, status }) => {
                    on_the_way.push(hop.redirect(to, status));
                    continue;
                }
            };
            return Ok(Fetched {
                answer,
                host_ready_at,
            });
        }
    }

    fn per_host(&self, host: &Url, delay: Option<Duration>) -> u32 {
        // Which way its pages go is not known here; the gate keeps the delay of each.
        let ways = self.routes.names().map(Some).chain([None]);
        let wanted = ways.filter_map(|way| self.robots.delay(host, way)).max();
        let wanted = wanted.unwrap_or_default();
        let delay = self.delay(host, delay).max(wanted);
        self.gate.parallel(&Pace::of_delay(delay))
    }
}

/// Whether a hop of the way can be a page of its own: it asks for what no earlier one did.
fn is_new_page(hop: &Hop, on_the_way: &[Url]) -> bool {
    hop.is_plain() && !on_the_way.contains(&hop.url)
}

fn page(url: Url, redirects: Vec<Url>, answer: hop::Received, fetched_at: UnixMillis) -> Page {
    let content_type = answer.headers.get("content-type");
    let text = charset::decode(&answer.body, content_type, url.domain());
    Page {
        requested_url: redirects.first().unwrap_or(&url).clone(),
        url,
        status: answer.status,
        redirects,
        fetched_at,
        truncated: answer.truncated,
        text,
        headers: answer.headers,
        body: answer.body,
        record: answer.record,
    }
}

#[cfg(test)]
mod tests;
