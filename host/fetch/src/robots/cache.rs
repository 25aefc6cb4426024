//! Cache of the robots.txt of many origins: each is fetched once for many requests, and kept for a day.
//!
//! While a robots.txt cannot be fetched, nothing of its origin is fetched, unless an older one is known,
//! which stays valid (RFC 9309, 2.3.1.4 and 2.4). A request for one that is being fetched waits for the
//! result; if the fetching one gives up, the next takes its place.
//!
//! The cache is in memory and bounded. What an earlier process was told is found where the caller has kept it; a file that
//! was evicted and is not found there is fetched anew.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use url::{Position, Url};

use super::rules::Rules;
use crate::FetchError;
use crawler_model::robots::KeptRobots;
use crawler_model::settings::AccessName;

/// Time after which a site whose robots.txt could not be fetched counts as one without (RFC 9309, 2.3.1.4).
const LONG_GONE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Time after a failure before the file is requested again; doubled by each further failure.
const FIRST_HOLD: Duration = Duration::from_secs(10);
const LONGEST_HOLD: Duration = Duration::from_secs(10 * 60);
/// Maximum number of origins.
const MAX_ORIGINS: usize = 65_536;
/// Maximum size in bytes of all rules.
const MAX_BYTES: usize = 64 << 20;

/// Result of requesting a robots.txt.
#[derive(Debug)]
pub(crate) enum Received {
    /// The content of the file.
    File(Bytes),
    /// The site has no file, so everything may be fetched.
    None,
    /// The site answers, but not with a file that can be used.
    Unavailable {
        /// Description of the answer.
        why: String,
    },
}

/// Cached rules of many origins.
#[derive(Debug)]
pub(crate) struct Cache {
    /// Product token that files refer to this crawler by.
    agent: String,
    origins: Mutex<Origins>,
}

#[derive(Debug, Default)]
struct Origins {
    by_name: HashMap<String, Arc<Origin>>,
    n_bytes: usize,
}

#[derive(Debug)]
struct Origin {
    /// Lock held by the request that fetches the file.
    turn: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    last_used: Instant,
    /// Rules of the origin, and when they were fetched.
    known: Option<(Arc<Rules>, Instant)>,
    /// Failure to fetch the file, since the last success.
    failed: Option<Failed>,
}

#[derive(Debug)]
struct Failed {
    error: FetchError,
    /// Times of the first and of the last failure.
    since: Instant,
    last: Instant,
    /// Time after the last failure before the file is requested again.
    hold: Duration,
}

/// Name of the proxies that an origin is asked through, because an answer may come from the proxy itself.
pub(crate) type ProxyName<'a> = Option<&'a AccessName>;

/// Rules of an origin.
#[derive(Debug, Clone)]
pub(crate) struct OriginRules {
    pub(crate) rules: Arc<Rules>,
    /// True if the file was fetched for this call.
    pub(crate) is_new: bool,
}

impl Cache {
    /// Creates an empty cache.
    pub(crate) fn new(agent: String) -> Self {
        Self {
            agent,
            origins: Mutex::default(),
        }
    }

    /// Returns the product token that files refer to this crawler by.
    pub(crate) fn agent(&self) -> &str {
        &self.agent
    }

    /// Returns the rules of a URL's origin. If no valid robots.txt of it is known, `find` returns what an earlier process was
    /// told, with the time since then, and `get` fetches it. An error of `get` becomes that of the page, which would fail in
    /// the same way.
    pub(crate) async fn origin_rules<E, F, G>(
        &self,
        url: &Url,
        proxy: ProxyName<'_>,
        find: impl FnOnce() -> E,
        get: G,
    ) -> Result<OriginRules, FetchError>
    where
        E: Future<Output = Option<(KeptRobots, Duration)>>,
        F: Future<Output = Result<Received, FetchError>>,
        G: FnOnce(Url) -> F,
    {
        let asked_at = Instant::now();
        let origin = self.origin(url, proxy);
        let known = |rules: Result<Arc<Rules>, FetchError>| {
            let is_new = false;
            rules.map(|rules| OriginRules { rules, is_new })
        };
        if let Some(rules) = origin.state().answer(None) {
            return known(rules);
        }
        let _turn = origin.turn.lock().await;
        if let Some(rules) = origin.state().answer(Some(asked_at)) {
            return known(rules);
        }
        if let Some((robots, age)) = find().await {
            let (before, after, rules) = {
                let mut state = origin.state();
                let before = state.n_bytes();
                state.restore(robots, age, &self.agent);
                (before, state.n_bytes(), state.answer(None))
            };
            self.grown(before, after);
            if let Some(rules) = rules {
                return known(rules);
            }
        }
        let robots = robots_url(url);
        let received = get(robots.clone()).await;
        let is_new = matches!(received, Ok(Received::File(_) | Received::None));
        let (before, after, rules) = {
            let mut state = origin.state();
            let before = state.n_bytes();
            let rules = match state.note(received, &robots, &self.agent) {
                Some(own) => Err(own),
                None => state.present(),
            };
            (before, state.n_bytes(), rules)
        };
        self.grown(before, after);
        rules.map(|rules| OriginRules { rules, is_new })
    }

    /// Returns how long the origin of a URL is not asked again after a failure.
    pub(crate) fn hold(&self, url: &Url, proxy: ProxyName<'_>) -> Option<Duration> {
        let origins = self.origins();
        let origin = origins.by_name.get(&*name_of(url, proxy))?;
        let state = origin.state();
        let failed = state.failed.as_ref()?;
        Some((failed.last + failed.hold).saturating_duration_since(Instant::now()))
    }

    /// Returns the delay that the origin of a URL is known to ask for.
    pub(crate) fn delay(&self, url: &Url, proxy: ProxyName<'_>) -> Option<Duration> {
        let origins = self.origins();
        let origin = origins.by_name.get(&*name_of(url, proxy))?;
        let (rules, _) = origin.state().known.clone()?;
        rules.delay()
    }

    /// Shrinks the cache to a quarter of its limits. Not all is evicted, because sites have to be asked anew
    /// for it.
    pub(crate) fn shrink(&self) {
        self.origins().make_room(MAX_ORIGINS / 4, MAX_BYTES / 4);
    }

    /// Returns true if [`origin_rules`](Self::origin_rules) would not ask the site.
    pub(crate) fn is_known(&self, url: &Url, proxy: ProxyName<'_>) -> bool {
        let origin = self.origins().by_name.get(&*name_of(url, proxy)).cloned();
        origin.is_some_and(|origin| origin.state().answer(None).is_some())
    }

    fn origin(&self, url: &Url, proxy: ProxyName<'_>) -> Arc<Origin> {
        let name = name_of(url, proxy);
        let mut origins = self.origins();
        if let Some(origin) = origins.by_name.get(&*name) {
            return Arc::clone(origin);
        }
        if origins.by_name.len() >= MAX_ORIGINS {
            origins.make_room(MAX_ORIGINS / 4 * 3, MAX_BYTES / 4 * 3);
        }
        let origin = Arc::new(Origin {
            turn: tokio::sync::Mutex::default(),
            state: Mutex::new(State {
                last_used: Instant::now(),
                known: None,
                failed: None,
            }),
        });
        (origins.by_name).insert(name.into_owned(), Arc::clone(&origin));
        origin
    }

    fn grown(&self, before: usize, after: usize) {
        let mut origins = self.origins();
        origins.n_bytes = (origins.n_bytes + after).saturating_sub(before);
        if origins.n_bytes > MAX_BYTES {
            origins.make_room(MAX_ORIGINS / 4 * 3, MAX_BYTES / 4 * 3);
        }
    }

    fn origins(&self) -> MutexGuard<'_, Origins> {
        self.origins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Origins {
    /// Evicts the origins that were used least recently, down to these limits. Origins that are in use stay.
    fn make_room(&mut self, n_origins: usize, n_bytes: usize) {
        let mut unused: Vec<(Instant, String)> = self
            .by_name
            .iter()
            .filter(|(_, origin)| Arc::strong_count(origin) == 1)
            .map(|(name, origin)| (origin.state().last_used, name.clone()))
            .collect();
        unused.sort();
        for (_, name) in unused {
            if self.by_name.len() < n_origins && self.n_bytes < n_bytes {
                break;
            }
            if let Some(origin) = self.by_name.remove(&name) {
                self.n_bytes = self.n_bytes.saturating_sub(origin.state().n_bytes());
            }
        }
    }
}

impl Origin {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns the answer that can be given without asking the site, or `None` if it has to be asked. A
    /// failure also answers requests that have waited for it since `asked_at`.
    fn answer(&mut self, asked_at: Option<Instant>) -> Option<Result<Arc<Rules>, FetchError>> {
        let now = Instant::now();
        self.last_used = now;
        let is_fresh = matches!(self.known, Some((_, at)) if now < at + KeptRobots::VALID);
        let is_held = self.failed.as_ref().is_some_and(|failed| {
            now < failed.last + failed.hold || asked_at.is_some_and(|asked| asked <= failed.last)
        });
        (is_fresh || is_held).then(|| self.present())
    }

    /// Returns the known rules, even if they are old, or why there are none.
    fn present(&self) -> Result<Arc<Rules>, FetchError> {
        match (&self.known, &self.failed) {
            (Some((rules, _)), _) => Ok(Arc::clone(rules)),
            (None, Some(failed)) if failed.since.elapsed() < LONG_GONE => Err(failed.error.clone()),
            (None, Some(_) | None) => Ok(Arc::default()),
        }
    }

    /// Stores what an earlier process was told some time ago, unless something newer is known.
    fn restore(&mut self, robots: KeptRobots, age: Duration, agent: &str) {
        // Where no moment before the start of the machine can be told, the site is asked.
        let at = Instant::now().checked_sub(age);
        let is_new = |at: &Instant| self.known.as_ref().is_none_or(|(_, known)| known < at);
        if let Some(at) = at.filter(is_new) {
            let rules = robots.file.map(|file| Rules::parse(&file, agent));
            self.known = Some((Arc::new(rules.unwrap_or_default()), at));
        }
    }

    /// Stores a result. Returns the error if it concerns this request alone.
    fn note(
        &mut self,
        received: Result<Received, FetchError>,
        robots: &Url,
        agent: &str,
    ) -> Option<FetchError> {
        let now = Instant::now();
        let (error, is_told) = match received {
            Ok(Received::File(file)) => {
                self.known = Some((Arc::new(Rules::parse(&file, agent)), now));
                self.failed = None;
                return None;
            }
            Ok(Received::None) => {
                self.known = Some((Arc::default(), now));
                self.failed = None;
                return None;
            }
            Ok(Received::Unavailable { why }) => {
                let url = robots.to_string();
                (FetchError::RobotsUnavailable { url, why }, true)
            }
            // An error of one request says nothing about the next, which may name the port.
            Err(error) if error.is_held() || !error.is_transient() => return Some(error),
            Err(error) => (error, false),
        };
        let (since, hold) = match &self.failed {
            Some(failed) => (failed.since, failed.hold * 2),
            None => (now, FIRST_HOLD),
        };
        if self.known.is_some() {
            tracing::warn!(%robots, %error, "robots.txt cannot be fetched anew; the old one goes on counting");
        }
        // A host that cannot be reached is asked at the pace of the pages that need it.
        let may_hold = is_told || self.known.is_some();
        self.failed = Some(Failed {
            error,
            since,
            last: now,
            hold: if may_hold {
                hold.min(LONGEST_HOLD)
            } else {
                Duration::ZERO
            },
        });
        None
    }

    fn n_bytes(&self) -> usize {
        self.known.as_ref().map_or(0, |(rules, _)| rules.n_bytes())
    }
}

/// Returns scheme, host and port: each of them has a robots.txt of its own (RFC 9309, 2.3).
pub(crate) fn name_of<'a>(url: &'a Url, proxy: ProxyName<'_>) -> Cow<'a, str> {
    // The URL has no user: the address policy refuses those.
    let origin = &url[..Position::BeforePath];
    match proxy {
        Some(proxies) => format!("{origin} {proxies}").into(),
        None => origin.into(),
    }
}

fn robots_url(url: &Url) -> Url {
    let mut robots = url.clone();
    robots.set_path("/robots.txt");
    robots.set_query(None);
    robots.set_fragment(None);
    robots
}

#[cfg(test)]
mod tests;
