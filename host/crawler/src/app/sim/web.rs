//! The fetcher of each process, on pages of the sites.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use url::Url;

use super::fault::Fault;
use super::site::{DELAY, parse};
use super::world::SimWorld;
use crawler_fetch::throttle::{Pace, Throttle, ThrottleSettings};
use crawler_fetch::{Answer, Failure, Fetch, FetchError, FetchRequest, Fetched, Prepared};
use crawler_model::crawl::{CharsetSource, FetchRecord, Page, PageText, UnixMillis};
use crawler_model::frontier::DelaySource;
use crawler_model::headers::Headers;
use crawler_process::clock::Clock;

/// Fetcher of one process.
pub(super) struct Web {
    pub(super) world: Arc<SimWorld>,
    pub(super) throttle: Throttle,
    pub(super) clock: Arc<dyn Clock>,
    /// Label of the process.
    pub(super) label: String,
    /// Time until which the answers that precede a host's pages are known.
    prepared: Mutex<BTreeMap<String, Duration>>,
}

/// Time for which the answers that precede a host's pages are known.
const PREPARED_FOR: Duration = Duration::from_secs(20);

impl Web {
    pub(super) fn new(world: Arc<SimWorld>, clock: Arc<dyn Clock>, label: String) -> Self {
        Self {
            world,
            throttle: Throttle::new(ThrottleSettings::default()),
            clock,
            label,
            prepared: Mutex::default(),
        }
    }

    fn prepared(&self) -> MutexGuard<'_, BTreeMap<String, Duration>> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks a host for something when the host has its turn; what the host says of itself counts for all its
    /// pages.
    async fn ask<T>(
        &self,
        request: &FetchRequest,
        answer: impl Future<Output = Result<T, FetchError>>,
    ) -> Result<(T, UnixMillis), Failure> {
        self.world.on_attempt();
        let (host, life, page) = parse(&request.url).expect("a URL of the site");
        let delay = request.delay.unwrap_or(DELAY);
        let pace = Pace::of_delay(delay);
        let entered = self.throttle.enter(&host, &pace, request.requester).await;
        let permit = entered.map_err(|paused| Failure {
            host_ready_at: paused.ready_at(self.clock.unix_millis()),
            delay_by: DelaySource::default(),
            error: FetchError::Paused {
                host: host.clone(),
                pause: paused.pause,
            },
            is_of_host: false,
        })?;
        let world = &self.world;
        world.note(format_args!("{} asks {host}/{page}", self.label));
        let found = world
            .checker()
            .on_request(&self.label, life, &host, world.now());
        world.judge(found);
        let asked = Asked {
            web: self,
            host: host.clone(),
        };
        let is_of_host = world.fault(Fault::NoConnection, 2);
        let answer = match is_of_host {
            true => {
                world.checker().on_host_failure(&host);
                let why = "refused".to_owned();
                Err(FetchError::Connection { why })
            }
            false => answer.await,
        };
        drop(permit);
        drop(asked);
        let host_ready_at = self.clock.unix_millis() + in_millis(delay);
        let failure = |error| Failure {
            error,
            host_ready_at,
            delay_by: DelaySource::default(),
            is_of_host,
        };
        Ok((answer.map_err(failure)?, host_ready_at))
    }

    async fn answer(&self, url: &Url) -> Result<Page, FetchError> {
        let world = &self.world;
        if world.fault(Fault::SlowPage, 1) {
            let limit = world.millis(5_000, 20_000);
            tokio::time::sleep(limit).await;
            let setting = "timeout";
            return Err(FetchError::Timeout { limit, setting });
        }
        tokio::time::sleep(world.millis(5, 300)).await;
        if world.fault(Fault::Reset, 4) {
            let why = "reset".to_owned();
            return Err(FetchError::Connection { why });
        }
        let (host, life, page) = parse(url).expect("a URL of the site");
        let site = world.checker().site_of(life);
        let is_broken = site.is_some_and(|site| site.is_broken(page));
        let body = Bytes::from(format!("{host}/{page}"));
        Ok(Page {
            url: url.clone(),
            requested_url: url.clone(),
            status: if is_broken { 500 } else { 200 },
            headers: Headers::default(),
            redirects: Vec::new(),
            fetched_at: 1,
            truncated: false,
            body,
            text: PageText {
                charset: "UTF-8",
                source: CharsetSource::Valid,
                decoded: None,
            },
            record: FetchRecord::default(),
        })
    }
}

fn in_millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[async_trait]
impl Fetch for Web {
    async fn fetch(&self, request: FetchRequest) -> Result<Fetched, Failure> {
        let (_, life, page) = parse(&request.url).expect("a URL of the site");
        let answer = async {
            let answer = self.answer(&request.url).await;
            if answer.as_ref().map_or(true, |page| page.status == 500) {
                self.world.checker().on_failure(life, page);
            }
            answer
        };
        let (page, host_ready_at) = self.ask(&request, answer).await?;
        Ok(Fetched {
            answer: Answer::Page(Box::new(page)),
            host_ready_at,
            delay_by: DelaySource::default(),
        })
    }

    fn is_prepared(&self, request: &FetchRequest) -> bool {
        let (host, ..) = parse(&request.url).expect("a URL of the site");
        let until = self.prepared().get(&host).copied();
        until.is_some_and(|until| self.world.now() < until)
    }

    async fn prepare(&self, request: FetchRequest) -> Result<Prepared, Failure> {
        let (host, ..) = parse(&request.url).expect("a URL of the site");
        let world = &self.world;
        tokio::time::sleep(world.millis(5, 800)).await;
        if world.fault(Fault::NoAddress, 12) {
            let until = world.now() + world.millis(5_000, 90_000);
            world.checker().has_no_address(&host, until);
        }
        let is_nameless = world.checker().is_nameless(&host, world.now());
        if is_nameless && world.injects_faults() {
            world.checker().on_host_failure(&host);
            let why = "it has no address".to_owned();
            return Err(Failure {
                error: FetchError::Resolve { host, why },
                host_ready_at: 0,
                delay_by: DelaySource::default(),
                is_of_host: true,
            });
        }
        let robots = async {
            tokio::time::sleep(world.millis(5, 300)).await;
            Ok(())
        };
        let ((), host_ready_at) = self.ask(&request, robots).await?;
        let until = world.now() + PREPARED_FOR;
        self.prepared().insert(host, until);
        Ok(Prepared {
            host_ready_at,
            delay_by: DelaySource::default(),
            has_answered: true,
        })
    }

    fn per_host(&self, _host: &Url, delay: Option<Duration>) -> u32 {
        self.throttle
            .parallel(&Pace::of_delay(delay.unwrap_or(DELAY)))
    }
}

/// A request that is under way. Its end is recorded however it ends.
struct Asked<'a> {
    web: &'a Web,
    host: String,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let world = &self.web.world;
        world
            .checker()
            .on_answer(&self.web.label, &self.host, world.now());
    }
}
