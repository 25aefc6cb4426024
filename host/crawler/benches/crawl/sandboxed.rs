//! The worker's crawl, unchanged: the engine with plugin `rustdoc`, fetcher, frontier and line files.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use crawler_api::client::traces::{DEFAULT_TIMEOUT, ReceiverSettings, SpanSender};
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
use crawler_model::id::{Digest, ResourceId, Run};
use crawler_model::plugin::Limits;
use crawler_model::settings::CrawlSettings;
use crawler_plugin::engine::{Engine, EngineSettings, Plugin};
use crawler_process::clock::{Clock, SystemClock};
use crawler_process::memory::CrawlMemory;
use crawler_process::task::TaskScope;
use crawler_process::traces::{TraceSettings, Tracer};
use crawler_sink::lines::{LineFiles, LineSettings};
use crawler_testing::otlp::Receiver;
use object_store::memory::InMemory;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::Harvest;
use super::components::component;
use super::frontier::{durable, in_folder};

/// Number of pages in flight, here and in the bare loop.
pub(crate) const CONCURRENCY: u32 = 16;

/// Parts that several crawls share.
pub(crate) struct Crawler {
    rules: Arc<Plugin>,
}

impl Crawler {
    pub(crate) async fn new() -> Self {
        let component = component("rustdoc", "plugins/rustdoc");
        let engine = Engine::new(EngineSettings {
            child_program: Some(env!("CARGO_BIN_EXE_crawler").into()),
            ..EngineSettings::default()
        });
        let engine = engine.expect("the engine starts");
        let loaded = engine.load(Digest::of(&component), component).await;
        Self {
            rules: loaded.expect("the plugin is loaded"),
        }
    }

    pub(crate) async fn crawl(&self, start: &Url, kept: Kept) -> Harvest {
        self.crawl_with(start, kept, Tracer::default()).await
    }

    /// Crawls durably. Traces of 1 % of the pages are sent to a receiver, all of them before this returns.
    pub(crate) async fn crawl_traced(&self, start: &Url, receiver: &Receiver) -> Harvest {
        let settings = ReceiverSettings {
            endpoint: receiver.endpoint(),
            headers: Vec::new(),
            ca: None,
            timeout: DEFAULT_TIMEOUT,
        };
        let (tracer, queue) = Tracer::new(TraceSettings::default(), Arc::new(SystemClock));
        let sender = SpanSender::new(settings, queue).expect("the settings are sound");
        let scope = TaskScope::new();
        let sending = sender.run("bench".to_owned(), scope.stop_signal());
        scope.spawn("traces", sending);
        let harvest = self.crawl_with(start, Kept::Durably, tracer.clone()).await;
        scope.stop(DEFAULT_TIMEOUT).await;
        let counts = tracer.counts();
        assert_eq!((counts["failed"], counts["no-room"]), (0, 0));
        harvest
    }

    async fn crawl_with(&self, start: &Url, kept: Kept, tracer: Tracer) -> Harvest {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let lines = LineFiles::open(folder.path().join("0"), 1, LineSettings::default());
        let sink = Box::new(lines);
        let opening = Instant::now();
        let frontier = frontier(kept, folder.path()).await;
        let opening = opening.elapsed();
        let (_config, config) = watch::channel(config());
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let parts = CrawlParts {
            resource: ResourceId(1),
            run: Run(1),
            run_started_at: 0,
            plugin: None,
            params: Arc::new(BTreeMap::from([("start".to_owned(), start.to_string())])),
            config,
            rules: self.rules.clone(),
            frontier: frontier.clone(),
            fetch: Arc::new(fetcher(clock.clone())),
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
            tracer,
        };
        let end = crawler_crawl::run(parts, sink, CancellationToken::new()).await;
        assert_eq!(end, CrawlEnd::Finished);
        frontier.close().await.expect("it closes");
        let counts = frontier.counts();
        assert_eq!(counts.dead, 0, "{:?}", counts.dead_by_reason);
        assert_eq!(counts.items, counts.parsed, "one item a page");
        Harvest {
            n_pages: counts.pages(),
            n_bytes: counts.bytes,
            opening,
        }
    }
}

/// Storage of the URLs.
#[derive(Clone, Copy)]
pub(crate) enum Kept {
    /// In the frontier in memory, as `crawler run` does.
    InMemory,
    /// In the durable frontier over an object store in memory.
    InMemoryObjects,
    /// In the durable frontier over a folder, as a worker does.
    Durably,
}

async fn frontier(kept: Kept, folder: &Path) -> Arc<dyn Frontier> {
    match kept {
        Kept::InMemory => Arc::new(MemoryFrontier::new(MemorySettings::default())),
        Kept::InMemoryObjects => Arc::new(durable(Arc::new(InMemory::new())).await),
        Kept::Durably => Arc::new(durable(in_folder(folder)).await),
    }
}

fn config() -> CrawlConfig {
    CrawlConfig {
        limits: Limits {
            // The list of all items has more links than most pages may have.
            requests: 100_000,
            ..Limits::default()
        },
        settings: CrawlSettings {
            concurrency: Some(CONCURRENCY),
            max_depth: Some(u32::MAX),
            ..CrawlSettings::default()
        },
    }
}

fn fetcher(clock: Arc<dyn Clock>) -> HttpFetcher {
    let loopback = "127.0.0.0/8".parse().expect("it is a network");
    let address_policy = Arc::new(AddressPolicy::new(vec![loopback]));
    let throttle = Arc::new(Throttle::new(ThrottleSettings::default()));
    HttpFetcher::new(FetchSettings::default(), address_policy, throttle, clock)
        .expect("it has no odd settings")
}
