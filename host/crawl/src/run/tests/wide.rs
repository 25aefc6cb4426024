//! Tests of crawls of many hosts, in paused time.

use std::collections::HashMap;

use super::*;
use crawler_fetch::Prepared;
use crawler_fetch::throttle::{Address, Pace, Paused, SharedAddress, Throttle, ThrottleSettings};
use crawler_frontier::RestingHost;
use crawler_model::crawl::clock_of_host;

mod addresses;

const DELAY: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Time from a request to its answer.
const LATENCY: Duration = Duration::from_millis(20);
/// Time until the lookup of an unknown name fails.
const LOOKUP: Duration = Duration::from_secs(5);

/// Time as tokio counts it, which tests pause.
struct PausedClock(Instant);

impl Clock for PausedClock {
    fn unix_nanos(&self) -> u64 {
        let since = Duration::from_secs(1_000_000) + self.0.elapsed();
        u64::try_from(since.as_nanos()).unwrap()
    }
}

/// Hosts that have a robots.txt and are asked slowly, and unknown names, which begin with `dead`.
struct Web {
    throttle: Throttle,
    /// Function that returns the address of a host, where its turns count.
    address_of: fn(&str) -> Option<Address>,
    clock: PausedClock,
    /// Hosts whose robots.txt was read, with the times at which their names were looked up.
    known: Mutex<HashMap<String, Instant>>,
    /// Time for which an address counts.
    ttl: Duration,
    /// Requests with their hosts, kinds and times.
    asked: Mutex<Vec<(String, &'static str, Instant)>>,
    n_lookups: AtomicUsize,
}

impl Web {
    fn new() -> Arc<Self> {
        Self::at(|_| None)
    }

    fn at(address_of: fn(&str) -> Option<Address>) -> Arc<Self> {
        Arc::new(Self {
            throttle: Throttle::new(ThrottleSettings::default()),
            address_of,
            clock: PausedClock(Instant::now()),
            known: Mutex::default(),
            ttl: DAY,
            asked: Mutex::default(),
            n_lookups: AtomicUsize::new(0),
        })
    }

    /// Makes one request, and returns when its host may be asked again.
    async fn ask(&self, request: &FetchRequest, what: &'static str) -> Result<UnixMillis, Failure> {
        let host = request.url.host_str().unwrap().to_owned();
        let shared = (self.address_of)(&host).map(|address| SharedAddress {
            address,
            is_begun: false,
        });
        let entered = self
            .throttle
            .enter_at(&host, shared, &Pace::of_delay(DELAY), request.requester)
            .await;
        let permit = entered.map_err(|Paused { pause, .. }| Failure {
            error: FetchError::Paused {
                host: host.clone(),
                pause,
            },
            host_ready_at: self.clock.unix_millis() + u64::try_from(pause.as_millis()).unwrap(),
            delay_by: DelaySource::default(),
            is_of_host: false,
        })?;
        self.asked
            .lock()
            .unwrap()
            .push((host, what, Instant::now()));
        tokio::time::sleep(LATENCY).await;
        let pause = u64::try_from(permit.finish(None).time.as_millis()).unwrap();
        Ok(self.clock.unix_millis() + pause)
    }

    fn paths_of(&self, host: &str) -> Vec<Instant> {
        let asked = self.asked.lock().unwrap();
        let of_host = asked
            .iter()
            .filter(|(other, what, _)| other == host && *what == "page");
        of_host.map(|(_, _, at)| *at).collect()
    }

    /// Returns the shortest time between two requests to one host.
    fn shortest_gap(&self) -> Duration {
        let mut last = BTreeMap::new();
        let mut shortest = Duration::MAX;
        for (host, _, at) in self.asked.lock().unwrap().iter() {
            if let Some(before) = last.insert(host.clone(), *at) {
                shortest = shortest.min(*at - before);
            }
        }
        shortest
    }
}

#[async_trait]
impl Fetch for Web {
    fn is_prepared(&self, request: &FetchRequest) -> bool {
        let known = self.known.lock().unwrap();
        let looked_up = known.get(request.url.host_str().unwrap());
        looked_up.is_some_and(|at| at.elapsed() < self.ttl)
    }

    async fn prepare(&self, request: FetchRequest) -> Result<Prepared, Failure> {
        let host = request.url.host_str().unwrap();
        if host.starts_with("dead") {
            self.n_lookups.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(LOOKUP).await;
            return Err(Failure {
                error: FetchError::Resolve {
                    host: host.to_owned(),
                    why: "nobody knows it".to_owned(),
                },
                host_ready_at: 0,
                delay_by: DelaySource::default(),
                is_of_host: true,
            });
        }
        let is_known = self.known.lock().unwrap().contains_key(host);
        if is_known {
            tokio::time::sleep(LATENCY).await;
            self.known
                .lock()
                .unwrap()
                .insert(host.to_owned(), Instant::now());
            return Ok(Prepared::default());
        }
        let host_ready_at = self.ask(&request, "robots").await?;
        self.known
            .lock()
            .unwrap()
            .insert(host.to_owned(), Instant::now());
        Ok(Prepared {
            host_ready_at,
            delay_by: DelaySource::default(),
            has_answered: true,
        })
    }

    async fn fetch(&self, request: FetchRequest) -> Result<Fetched, Failure> {
        assert!(
            self.is_prepared(&request),
            "{} was not prepared",
            request.url
        );
        let host_ready_at = self.ask(&request, "page").await?;
        Ok(Fetched {
            answer: Answer::Page(page(&request.url, &request.url, 200)),
            host_ready_at,
            delay_by: DelaySource::default(),
        })
    }

    fn rest(&self, host: &str, until: UnixMillis) {
        let pause = until.saturating_sub(self.clock.unix_millis());
        let pause = Duration::from_millis(pause);
        self.throttle.rest(&clock_of_host(host), pause);
    }

    fn per_host(&self, _host: &Url, _delay: Option<Duration>) -> u32 {
        1
    }
}

/// Plugin with these URLs and no others.
struct Listed {
    description: Description,
    urls: Vec<String>,
}

#[async_trait]
impl Rules for Listed {
    fn description(&self) -> &Description {
        &self.description
    }

    async fn root(&self, _config: CallConfig, _now: u64) -> CallReport {
        let request = |url: &String| Request::get(url.parse().unwrap(), "page");
        report(Ok(CallOutput {
            requests: self.urls.iter().map(request).collect(),
            ..CallOutput::default()
        }))
    }

    async fn parse(
        &self,
        _config: CallConfig,
        _rule: &str,
        _page: Arc<Page>,
        _context: PageContext,
    ) -> CallReport {
        report(Ok(CallOutput::default()))
    }
}

async fn crawl_all(web: &Arc<Web>, urls: Vec<String>, concurrency: u32) -> Counts {
    let settings = CrawlSettings {
        concurrency: Some(concurrency),
        ..CrawlSettings::default()
    };
    crawl_with(web, urls, settings).await
}

async fn crawl_with(web: &Arc<Web>, urls: Vec<String>, settings: CrawlSettings) -> Counts {
    let frontier = Arc::new(MemoryFrontier::new(MemorySettings::default()));
    crawl_on_frontier(web, frontier, urls, settings).await
}

async fn crawl_on_frontier(
    web: &Arc<Web>,
    frontier: Arc<dyn Frontier>,
    urls: Vec<String>,
    settings: CrawlSettings,
) -> Counts {
    let rules = Arc::new(Listed {
        description: description(),
        urls,
    });
    let clock = Arc::new(PausedClock(web.clock.0));
    let parts = parts(frontier.clone(), rules, web.clone(), clock, settings);
    let end = run(parts, Box::new(Kept::default()), CancellationToken::new());
    let end = tokio::time::timeout(DAY, end).await;
    assert_eq!(end.expect("it ends within a day"), CrawlEnd::Finished);
    frontier.counts()
}

#[tokio::test(start_paused = true)]
async fn r15_many_hosts_take_little_longer_than_one() {
    for concurrency in [1, 16, 256] {
        let (web, began) = (Web::new(), Instant::now());
        let urls = (0..1_000)
            .map(|n| format!("http://site{n}.test/"))
            .collect();
        let counts = crawl_all(&web, urls, concurrency).await;
        assert_eq!(counts.parsed, 1_000);
        let took = began.elapsed();
        // With one page at a time they take 20 s on the wire alone.
        let least = LATENCY * 1_000 / concurrency + DELAY;
        assert!(
            took < least + DELAY,
            "{took:?} at {concurrency}, of {least:?}"
        );
        assert!(web.shortest_gap() >= DELAY, "{:?}", web.shortest_gap());
    }
}

#[tokio::test(start_paused = true)]
async fn r15_dead_names_do_not_slow_a_live_site() {
    // With the second, the name of the site is looked up again and again.
    for ttl in [DAY, Duration::from_secs(10)] {
        let mut web = Web::new();
        Arc::get_mut(&mut web).unwrap().ttl = ttl;
        let began = Instant::now();
        let live = (0..100).map(|n| format!("http://live.test/{n}"));
        let dead = (0..1_900).map(|n| format!("http://dead{n}.test/"));
        let counts = crawl_all(&web, live.chain(dead).collect(), 8).await;
        assert_eq!((counts.parsed, counts.dead), (100, 1_900));
        assert_eq!(counts.dead_by_reason["resolve"], 1_900);
        let pages = web.paths_of("live.test");
        let took = *pages.last().unwrap() - began;
        let alone = (DELAY + LATENCY) * 100;
        assert!(took.mul_f64(0.9) < alone, "{took:?}, and {alone:?} alone");
        // A name is looked up as often as a page that fails is tried.
        assert_eq!(web.n_lookups.load(Ordering::Relaxed), 1_900 * 5);
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_of_https_from_before_an_opening_holds_for_http() {
    let (web, began) = (Web::new(), Instant::now());
    let pause = Duration::from_secs(90);
    let until = web.clock.unix_millis() + u64::try_from(pause.as_millis()).unwrap();
    let name = "site.test:443".to_owned();
    let frontier = Arc::new(FaultyFrontier {
        resting: vec![RestingHost { name, until }],
        ..FaultyFrontier::default()
    });
    let urls = vec!["http://site.test/".to_owned()];
    let counts = crawl_on_frontier(&web, frontier, urls, CrawlSettings::default()).await;
    assert_eq!(counts.parsed, 1);
    let first = web.asked.lock().unwrap()[0].2;
    assert!(first - began >= pause, "{:?}", first - began);
}

#[tokio::test(start_paused = true)]
async fn all_urls_of_a_dead_name_are_given_up_with_it() {
    let web = Web::new();
    let urls = (0..500).map(|n| format!("http://dead.test/{n}")).collect();
    let counts = crawl_all(&web, urls, 8).await;
    assert_eq!((counts.dead, counts.dead_by_reason["resolve"]), (500, 500));
    assert_eq!(web.n_lookups.load(Ordering::Relaxed), 5);
}

#[tokio::test(start_paused = true)]
async fn hosts_that_are_made_ready_are_not_among_the_most_pages() {
    let (web, began) = (Web::new(), Instant::now());
    let live = (0..100).map(|n| format!("http://live.test/{n}"));
    let dead = (0..50).map(|n| format!("http://dead{n}.test/"));
    let settings = CrawlSettings {
        max_pages: Some(10),
        ..CrawlSettings::default()
    };
    let counts = crawl_with(&web, live.chain(dead).collect(), settings).await;
    assert_eq!(counts.parsed, 10);
    let took = began.elapsed();
    assert!(took < (DELAY + LATENCY) * 12 + LOOKUP, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_sent_away_does_not_count_for_the_rate() {
    let (web, began) = (Web::new(), Instant::now());
    let urls = |crawl| {
        (0..20)
            .map(|n| format!("http://site.test/{crawl}/{n}"))
            .collect()
    };
    // The crawl starts as often as it has its turn beside the other.
    let settings = CrawlSettings {
        rate: Some("1/2s".parse().unwrap()),
        ..CrawlSettings::default()
    };
    tokio::join!(
        crawl_with(&web, urls("one"), settings),
        crawl_all(&web, urls("other"), 4),
    );
    let took = began.elapsed();
    assert!(took < (DELAY + LATENCY) * 46, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn r15_a_host_that_another_crawl_asks_holds_no_place() {
    let (web, began) = (Web::new(), Instant::now());
    let shared = |crawl| (0..20).map(move |n| format!("http://shared.test/{crawl}/{n}"));
    let own = (0..200).map(|n| format!("http://site{n}.test/"));
    tokio::join!(
        crawl_all(&web, shared("one").chain(own).collect(), 1),
        crawl_all(&web, shared("other").collect(), 1),
    );
    let last = (0..200).filter_map(|n| web.paths_of(&format!("site{n}.test")).pop());
    let took = last.max().unwrap() - began;
    // The time is that of the delay after each robots.txt, and the pages one after the other.
    assert!(took < DELAY + LATENCY * 225, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn two_crawls_share_the_turns_of_a_host() {
    let (web, began) = (Web::new(), Instant::now());
    let urls = |crawl| {
        (0..20)
            .map(|n| format!("http://site.test/{crawl}/{n}"))
            .collect()
    };
    let (one, other) = tokio::join!(
        crawl_all(&web, urls("one"), 4),
        crawl_all(&web, urls("other"), 4),
    );
    assert_eq!((one.parsed, other.parsed), (20, 20));
    assert!(web.shortest_gap() >= DELAY, "{:?}", web.shortest_gap());
    let took = began.elapsed();
    assert!(took < (DELAY + LATENCY) * 44, "{took:?}");
}
