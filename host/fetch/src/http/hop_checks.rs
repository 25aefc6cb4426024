//! Checks before a hop: if the address policy and the site's robots.txt allow it, and after which delay.

use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use tokio::time::Instant;
use tracing::Instrument as _;
use url::Url;

use super::failed::within;
use super::hop::{Hop, Outcome};
use super::politeness::Politeness;
use super::sent::{HostReadyAt, Sent};
use super::{HttpFetcher, request_log};
use crate::robots::{MAX_BYTES, MAX_REDIRECTS, OriginRules, ProxyName, Received, name_of};
use crate::throttle::after;
use crate::throttle::{Pace, Requester};
use crate::{Failure, FetchError};
use crawler_model::crawl::host_of;
use crawler_model::frontier::DelaySource;
use crawler_model::robots::KeptRobots;
use crawler_model::settings::Robots;

impl HttpFetcher {
    /// Returns the pace that a hop has to keep, if it may be made at all.
    pub(super) async fn admit(&self, url: &Url, politeness: &Politeness) -> Result<Pace, Failure> {
        if politeness.ignores_robots() {
            self.address_policy.check(url).map_err(Failure::of_page)?;
            return Ok(politeness.pace(self.delay(url, politeness.delay)));
        }
        let (wanted, pause) = self.origin_rules(url, politeness).await?;
        let judged = self.check_rules(url, politeness, &wanted);
        judged.map_err(|error| Failure {
            error,
            host_ready_at: pause.ready_at,
            delay_by: pause.by,
            is_of_host: false,
        })
    }

    /// Returns true if the robots.txt of a URL is known, or ignored.
    pub(super) fn are_rules_known(&self, url: &Url, robots: Robots, proxy: ProxyName<'_>) -> bool {
        robots == Robots::Ignore || self.robots.is_known(url, proxy)
    }

    /// Returns what the origin of a URL wants, and how long its host is left alone.
    pub(super) async fn origin_rules(
        &self,
        url: &Url,
        politeness: &Politeness,
    ) -> Result<(OriginRules, HostReadyAt), Failure> {
        self.address_policy.check(url).map_err(Failure::of_page)?;
        let pause = Mutex::new(HostReadyAt::default());
        // Seldom, so that it takes no room in the page's future.
        let find = || self.kept_robots(url, politeness).boxed();
        let get = |robots| self.new_robots(robots, politeness, &pause).boxed();
        let proxy = politeness.proxy();
        let wanted = self.robots.origin_rules(url, proxy, find, get).await;
        let mut pause = pause.into_inner().unwrap_or_else(PoisonError::into_inner);
        wanted.map(|wanted| (wanted, pause)).map_err(|error| {
            // Until then the same would be said of every page of the host.
            if let FetchError::RobotsUnavailable { .. } = error {
                let hold = self
                    .robots
                    .hold(url, politeness.proxy())
                    .unwrap_or_default();
                pause.lengthen(after(self.clock.unix_millis(), hold), DelaySource::Trouble);
            }
            Failure {
                // Proxies may be to blame for one page and not for the next.
                is_of_host: politeness.pool.is_none() && error.is_transient() && !error.is_held(),
                error,
                host_ready_at: pause.ready_at,
                delay_by: pause.by,
            }
        })
    }

    /// Returns what the origin of a URL told an earlier process, and the time since then.
    async fn kept_robots(
        &self,
        url: &Url,
        politeness: &Politeness,
    ) -> Option<(KeptRobots, Duration)> {
        let kept = politeness.robots_store.as_ref()?.kept(url).await?;
        let age = kept.age(self.clock.unix_millis())?;
        let is_its_own = kept.origin == name_of(url, politeness.proxy());
        let is_for_us = kept.agent == self.robots.agent();
        (is_its_own && is_for_us).then_some((kept, age))
    }

    /// Fetches a robots.txt, and keeps it for later processes.
    async fn new_robots(
        &self,
        robots: Url,
        politeness: &Politeness,
        pause: &Mutex<HostReadyAt>,
    ) -> Result<Received, FetchError> {
        let received = self.robots_file(robots.clone(), politeness, pause).await?;
        let file = match &received {
            Received::File(file) if file.len() <= KeptRobots::MAX_FILE => Some(file.clone()),
            Received::None => None,
            Received::File(_) | Received::Unavailable { .. } => return Ok(received),
        };
        if let Some(store) = &politeness.robots_store {
            let kept = KeptRobots {
                origin: name_of(&robots, politeness.proxy()).into_owned(),
                agent: self.robots.agent().to_owned(),
                at: self.clock.unix_millis(),
                file,
            };
            store.keep(&robots, kept);
        }
        Ok(received)
    }

    fn check_rules(
        &self,
        url: &Url,
        politeness: &Politeness,
        wanted: &OriginRules,
    ) -> Result<Pace, FetchError> {
        let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
        if let Some(rule) = wanted.rules.forbidding(path) {
            return Err(FetchError::Robots {
                url: format!("{}/robots.txt", url.origin().ascii_serialization()),
                rule: rule.clone(),
            });
        }
        let crawl_delay = wanted.rules.delay().unwrap_or_default();
        if wanted.is_new && crawl_delay > politeness.max_crawl_delay {
            tracing::warn!(
                origin = url.origin().ascii_serialization(),
                crawl_delay = crawl_delay.as_secs(),
                kept = politeness.max_crawl_delay.as_secs(),
                "robots.txt asks for a longer crawl-delay than setting max-crawl-delay lets it"
            );
        }
        // The delay is computed now, because the answer may have told if the host is within the allowed networks.
        let delay = self.delay(url, politeness.delay);
        let crawl_delay = crawl_delay.min(politeness.max_crawl_delay);
        Ok(match crawl_delay > delay {
            true => Pace {
                delay_by: DelaySource::Robots,
                ..politeness.pace(crawl_delay)
            },
            false => politeness.pace(delay),
        })
    }

    /// Fetches a robots.txt, redirects included. An error is that of its host; what is wrong elsewhere
    /// is no error of the page. Each hop keeps the delay of its host; `pause` is that of the first one.
    async fn robots_file(
        &self,
        robots: Url,
        politeness: &Politeness,
        pause: &Mutex<HostReadyAt>,
    ) -> Result<Received, FetchError> {
        // One byte more tells that the file is longer.
        let max_body = MAX_BYTES as u64 + 1;
        let mut hop = Hop::get(robots, politeness.names_port, politeness.pool.clone());
        // Pages that are not in the cache are asked for by these rules. An answer of the cache counts as new once it is
        // taken, so at the end of a long run the rules may be two days old.
        let cache = self.cache.clone();
        hop.cache = cache.map(|cache| cache.within(KeptRobots::VALID));
        for n_followed in 0..=MAX_REDIRECTS {
            let pace = politeness.pace(self.delay(&hop.url, politeness.delay));
            let is_first = n_followed == 0;
            let request = async {
                let begun = Instant::now();
                let sent = if is_first {
                    self.send(&hop, max_body, &pace, politeness.requester).await
                } else {
                    // The time is bounded, however many requests wait for that other host.
                    let limit = self.settings.timeout;
                    let sent = self.send(&hop, max_body, &pace, Requester::waiting());
                    let sent = within(limit, "timeout", sent.map(Ok)).await;
                    sent.unwrap_or_else(|slow| Sent::nothing(slow, 0))
                };
                self.note_outcome(&sent.outcome, begun);
                sent
            };
            let request = request.instrument(request_log::span(&hop));
            let sent = request_log::trace(&hop).around(pin!(request)).await;
            if is_first || sent.outcome.as_ref().is_err_and(FetchError::is_held) {
                lengthen(pause, &sent);
            }
            match sent.outcome {
                Ok(Outcome::Received(answer)) => {
                    return Ok(match answer.status {
                        200..=299 => Received::File(answer.body),
                        // The RFC counts 429 among the answers without rules, but such a site wants fewer
                        // requests.
                        429 => unavailable("it answers with status 429"),
                        400..=499 => Received::None,
                        status => unavailable(&format!("it answers with status {status}")),
                    });
                }
                Ok(Outcome::Redirect { to, status }) => {
                    // The port that the resource names is one of that host alone.
                    hop.names_port &= host_of(&to) == host_of(&hop.url);
                    hop.redirect(to, status);
                }
                // There is a file, but it cannot be read.
                Err(error @ (FetchError::Encoding { .. } | FetchError::Headers { .. })) => {
                    return Ok(unavailable(&error.to_string()));
                }
                Err(error) if is_first || error.is_held() => return Err(error),
                Err(error) => {
                    let url = &hop.url;
                    return Ok(unavailable(&format!("it leads to {url}: {error}")));
                }
            }
        }
        Ok(Received::None)
    }
}

fn lengthen(pause: &Mutex<HostReadyAt>, sent: &Sent) {
    let mut pause = pause.lock().unwrap_or_else(PoisonError::into_inner);
    pause.lengthen(sent.host_ready_at, sent.delay_by);
}

fn unavailable(why: &str) -> Received {
    Received::Unavailable {
        why: why.to_owned(),
    }
}
