//! Crawls of many hosts, each asked slowly, compared with a crawl of one host that is asked at once.
//!
//! The sites are one server on loopback under many names, which answers after 20 ms; it is a process of its
//! own, and checks that each name is left alone for the delay. The worker's crawl is measured with its fetcher, throttle and frontier. The rules are plain functions, so
//! that a page costs as little as possible.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use crawler_crawl::incidents::CrawlIncidents;
use crawler_crawl::limit_uses::LimitUses;
use crawler_crawl::log::CrawlLog;
use crawler_crawl::pacing::Pacing;
use crawler_crawl::permit::Always;
use crawler_crawl::{CrawlConfig, CrawlEnd, CrawlParts};
use crawler_fetch::address_policy::AddressPolicy;
use crawler_fetch::http::{FetchSettings, HttpFetcher};
use crawler_fetch::throttle::{Throttle, ThrottleSettings};
use crawler_frontier::Frontier;
use crawler_frontier::memory::{MemoryFrontier, MemorySettings};
use crawler_model::crawl::{ItemRecord, Page, PageContext, Request};
use crawler_model::id::{ResourceId, Run};
use crawler_model::plugin::{Description, Limits};
use crawler_model::settings::CrawlSettings;
use crawler_plugin::{CallConfig, CallOutput, CallReport, Rules, Usage};
use crawler_process::clock::{Clock, SystemClock};
use crawler_process::memory::CrawlMemory;
use crawler_sink::{Sink, SinkError, Written};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

#[path = "common/frontier.rs"]
mod frontier;
#[path = "common/loopback.rs"]
mod loopback;
#[path = "wide/million.rs"]
mod million;
#[path = "wide/sites.rs"]
mod sites;

/// The program's allocator.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Time from a request to its answer.
const LATENCY: Duration = Duration::from_millis(20);
const DELAY: Duration = Duration::from_secs(1);
/// Time by which a request may be early, because moments are whole milliseconds.
const ROUNDING: Duration = Duration::from_millis(2);

/// A crawl of many hosts with the same number of pages each.
#[derive(Clone, Copy)]
struct Wide {
    n_hosts: u32,
    n_pages: u32,
    /// Number of further names that have no address.
    n_dead: u32,
    delay: Duration,
    concurrency: u32,
    is_durable: bool,
    /// Number of pages with which the crawl ends.
    max_pages: Option<u64>,
}

#[expect(clippy::print_stdout, reason = "a benchmark reports to its terminal")]
fn main() {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next();
    if let Some(step) = first.as_deref().and_then(million::Step::of) {
        return step.run(arguments);
    }
    if first.as_deref() == Some(loopback::SERVE) {
        return loopback::serve(sites::router());
    }
    let server = loopback::Server::start(&[]);
    let port = server.base.port().expect("it has one");
    let runtime = Runtime::new().expect("a runtime starts");
    let run = |wide: Wide| runtime.block_on(wide.crawl(port));
    let one = Wide {
        n_hosts: 1,
        n_pages: 20_000,
        n_dead: 0,
        delay: Duration::ZERO,
        concurrency: 512,
        is_durable: true,
        max_pages: None,
    };
    let small = Wide {
        n_hosts: 1_000,
        n_pages: 1,
        delay: DELAY,
        ..one
    };
    println!("1 000 hosts of one page, delay 1 s, answers after 20 ms");
    for is_durable in [true, false] {
        for concurrency in [1, 16, 256] {
            let wide = Wide {
                concurrency,
                is_durable,
                ..small
            };
            let kept = if is_durable { "durable" } else { "in memory" };
            let took = run(wide);
            println!(
                "  concurrency {concurrency:3}, {kept:9}: {:.2} s",
                took.as_secs_f64()
            );
        }
    }
    let alone = Wide {
        n_pages: 2_000,
        concurrency: 8,
        ..one
    };
    let rate = |wide: Wide| f64::from(wide.n_hosts * wide.n_pages) / run(wide).as_secs_f64();
    println!("2 000 pages of one live site at concurrency 8");
    let (alone, beside) = (
        rate(alone),
        rate(Wide {
            n_dead: 1_900,
            ..alone
        }),
    );
    println!(
        "  alone {alone:.0} pages/s, beside 1 900 dead names {beside:.0}: {:.2}",
        beside / alone
    );
    println!("10 000 hosts of 2 pages, delay 1 s, durable; memory at the most so far");
    for concurrency in [16, 64, 256] {
        let pages = rate(Wide {
            n_hosts: 10_000,
            n_pages: 2,
            delay: DELAY,
            concurrency,
            ..one
        });
        let memory = million::memory("VmHWM:");
        println!("  concurrency {concurrency:3}: {pages:5.0} pages/s, {memory} MiB");
    }
    println!("concurrency 512, durable");
    let many = Wide {
        n_hosts: 10_000,
        n_pages: 5,
        delay: DELAY,
        ..one
    };
    let (single, many_rate) = (rate(one), rate(many));
    println!("  one host of 20 000 pages, no delay: {single:.0} pages/s");
    println!(
        "  10 000 hosts of 5 pages, delay 1 s: {many_rate:.0} pages/s, {:.2} times as many",
        many_rate / single
    );
    million::run(port, many_rate);
}

impl Wide {
    /// Returns the time until its live pages are parsed. The sites must have been left alone for the delay.
    async fn crawl(self, port: u16) -> Duration {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let (frontier, fetcher) = (self.frontier(folder.path()).await, self.fetcher());
        // The crawl before asked the same names.
        sites::shortest_gap(port).await;
        let took = self.crawl_on(&frontier, fetcher, port).await;
        let gap = sites::shortest_gap(port).await;
        let gap = gap.expect("each site is asked for its robots.txt and a page");
        assert!(
            gap + ROUNDING >= self.delay,
            "a site was left alone for {gap:?}"
        );
        let counts = frontier.counts();
        let expected = (
            u64::from(self.n_hosts * self.n_pages),
            u64::from(self.n_dead),
        );
        assert_eq!(
            (counts.parsed, counts.dead),
            expected,
            "{:?}",
            counts.dead_by_reason
        );
        frontier.close().await.expect("it closes");
        took
    }

    /// Returns the time until its last page is parsed.
    async fn crawl_on(
        self,
        frontier: &Arc<dyn Frontier>,
        fetcher: HttpFetcher,
        port: u16,
    ) -> Duration {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let rules = Arc::new(Listed::new(self, port));
        let (_config, config) = watch::channel(CrawlConfig {
            limits: Limits::default(),
            settings: CrawlSettings {
                concurrency: Some(self.concurrency),
                delay_ms: Some(u64::try_from(self.delay.as_millis()).expect("it is short")),
                max_attempts: Some(1),
                max_pages: self.max_pages,
                ..CrawlSettings::default()
            },
        });
        let parts = CrawlParts {
            resource: ResourceId(1),
            run: Run(1),
            run_started_at: 0,
            plugin: None,
            params: Arc::default(),
            config,
            rules: rules.clone(),
            frontier: frontier.clone(),
            fetch: Arc::new(fetcher),
            files: None,
            archive: None,
            log: CrawlLog::new(clock.clone()),
            clock,
            permit: Arc::new(Always),
            rest_after: None,
            crawl_memory: CrawlMemory::default(),
            pacing: Pacing::default(),
            incidents: CrawlIncidents::default(),
            limit_uses: LimitUses::default(),
            peers: None,
            tracer: Default::default(),
        };
        let began = Instant::now();
        let end = crawler_crawl::run(parts, Box::new(Nowhere), CancellationToken::new()).await;
        assert_eq!(end, CrawlEnd::Finished);
        let last = rules
            .last
            .lock()
            .expect("nobody panics")
            .expect("a page was parsed");
        last - began
    }

    async fn frontier(self, folder: &std::path::Path) -> Arc<dyn Frontier> {
        if !self.is_durable {
            return Arc::new(MemoryFrontier::new(MemorySettings::default()));
        }
        Arc::new(frontier::durable(frontier::in_folder(folder)).await)
    }

    fn fetcher(self) -> HttpFetcher {
        let loopback = "127.0.0.0/8".parse().expect("it is a network");
        let address_policy = Arc::new(AddressPolicy::new(vec![loopback]));
        let throttle = Arc::new(Throttle::new(ThrottleSettings::default()));
        let at = |n: u32| {
            (
                format!("site{n}.test"),
                vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
            )
        };
        let settings = FetchSettings {
            hosts: (0..self.n_hosts).map(at).collect(),
            ..FetchSettings::default()
        };
        HttpFetcher::new(settings, address_policy, throttle, Arc::new(SystemClock))
            .expect("it has no odd settings")
    }
}

/// Rules with root requests for all pages; a page leads nowhere.
struct Listed {
    description: Description,
    wide: Wide,
    port: u16,
    /// Time at which the last page was parsed.
    last: std::sync::Mutex<Option<Instant>>,
}

impl Listed {
    fn new(wide: Wide, port: u16) -> Self {
        Self {
            description: Description {
                name: "listed".parse().expect("it is a name"),
                version: "1.0.0".parse().expect("it is a version"),
                rules: vec!["page".into()],
                schemas: Vec::new(),
                plans: Vec::new(),
                hosts: Vec::new(),
                params: None,
                limits: BTreeMap::new(),
            },
            wide,
            port,
            last: std::sync::Mutex::new(None),
        }
    }
}

fn report(output: CallOutput) -> CallReport {
    CallReport {
        result: Ok(output),
        logs: Vec::new(),
        n_logs_dropped: 0,
        usage: Usage::default(),
        place: None,
        reads: Vec::new(),
    }
}

#[async_trait]
impl Rules for Listed {
    fn description(&self) -> &Description {
        &self.description
    }

    async fn root(&self, _config: CallConfig, _now: u64) -> CallReport {
        let Wide {
            n_hosts,
            n_pages,
            n_dead,
            ..
        } = self.wide;
        let port = self.port;
        let page = |n: u32| format!("http://site{}.test:{port}/{}", n % n_hosts, n / n_hosts);
        let live = (0..n_hosts * n_pages).map(page);
        let dead = (0..n_dead).map(|n| format!("http://dead{n}.invalid/"));
        let request = |url: String| Request::get(url.parse().expect("it is a URL"), "page");
        report(CallOutput {
            requests: live.chain(dead).map(request).collect(),
            ..CallOutput::default()
        })
    }

    async fn parse(
        &self,
        _config: CallConfig,
        _rule: &str,
        _page: Arc<Page>,
        _context: PageContext,
    ) -> CallReport {
        *self.last.lock().expect("nobody panics") = Some(Instant::now());
        report(CallOutput::default())
    }
}

/// Sink that gets no items.
struct Nowhere;

#[async_trait]
impl Sink for Nowhere {
    async fn write(&mut self, _first: u64, items: &[ItemRecord]) -> Result<Written, SinkError> {
        Ok(Written::all(items, None))
    }
}
