//! A site of many hosts whose pages link to one another, for crawls of several shards.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{page, report};
use crate::end::CrawlEnd;
use crate::incidents::CrawlIncidents;
use crate::limit_uses::LimitUses;
use crate::log::CrawlLog;
use crate::pacing::Pacing;
use crate::parts::{CrawlConfig, CrawlParts};
use crate::peers::PeerShards;
use crate::permit::Always;
use crate::run::run;
use crawler_fetch::{Answer, Failure, Fetch, FetchRequest, Fetched};
use crawler_frontier::Frontier;
use crawler_frontier::memory::{MemoryFrontier, MemorySettings};
use crawler_model::crawl::{Item, ItemRecord, Page, PageContext, Request};
use crawler_model::frontier::DelaySource;
use crawler_model::id::{Digest, ResourceId, Run};
use crawler_model::plugin::{Description, Limits};
use crawler_model::resource::CrawlSettings;
use crawler_plugin::{CallConfig, CallOutput, CallReport, Rules};
use crawler_process::clock::{Clock, SystemClock};
use crawler_process::memory::CrawlMemory;
use crawler_sink::{Gathering, Sink, SinkError, Written};

const N_PAGES: u64 = 300;
const N_HOSTS: u64 = 64;

fn url_of(page: u64) -> Url {
    let url = format!("http://host-{}.test/{page}", page % N_HOSTS);
    url.parse().expect("a good URL")
}

fn number(url: &Url) -> u64 {
    url.path()[1..].parse().expect("pages have numbers")
}

/// Site that has every page; one in ten is a redirect to another host.
#[derive(Debug, Clone, Copy, Default)]
pub struct Site;

#[async_trait]
impl Fetch for Site {
    async fn fetch(&self, request: FetchRequest) -> Result<Fetched, Failure> {
        let url = &request.url;
        let n = number(url);
        // Others have their turn meanwhile.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let answer = match n % 10 {
            7 => Answer::Redirect { to: url_of(n + 1) },
            _ => Answer::Page(page(url, url, 200)),
        };
        Ok(Fetched {
            answer,
            host_ready_at: 0,
            delay_by: DelaySource::default(),
        })
    }

    fn per_host(&self, _host: &Url, _delay: Option<Duration>) -> u32 {
        2
    }
}

/// Plugin with one item per page, and links to pages of other hosts; some ask for a reload of the first page.
pub struct Graph(Description);

impl Default for Graph {
    fn default() -> Self {
        Self(Description {
            name: "graph".parse().expect("a good name"),
            version: "1.0.0".parse().expect("a good version"),
            rules: vec!["page".into()],
            schemas: Vec::new(),
            plans: Vec::new(),
            hosts: Vec::new(),
            params: None,
            limits: BTreeMap::new(),
        })
    }
}

#[async_trait]
impl Rules for Graph {
    fn description(&self) -> &Description {
        &self.0
    }

    async fn root(&self, _config: CallConfig, _now: u64) -> CallReport {
        let roots = [0, 1, 2].map(|n| Request::get(url_of(n), "page"));
        report(Ok(CallOutput {
            requests: roots.into(),
            ..CallOutput::default()
        }))
    }

    async fn parse(
        &self,
        _config: CallConfig,
        _rule: &str,
        page: Arc<Page>,
        context: PageContext,
    ) -> CallReport {
        let n = number(&page.url);
        let links = (1..5).map(|k| (n * 31 + k * k * 17 + 5) % N_PAGES);
        let links = links.map(|link| Request::get(url_of(link), "page"));
        report(Ok(CallOutput {
            items: vec![Item {
                schema: "page".into(),
                json: format!(r#"{{"n":{n},"is_root":{}}}"#, context.depth == 0),
            }],
            requests: links.collect(),
            n_bad_urls: 0,
        }))
    }
}

/// Sink that keeps its items.
#[derive(Clone, Default)]
pub(crate) struct Kept(Arc<Mutex<Vec<ItemRecord>>>);

#[async_trait]
impl Sink for Kept {
    async fn write(&mut self, _first: u64, items: &[ItemRecord]) -> Result<Written, SinkError> {
        self.lock().extend_from_slice(items);
        Ok(Written::all(items, None))
    }

    /// Returns a time longer than any test: items are written only when the crawl waits for them.
    fn gathering(&self) -> Gathering {
        Gathering {
            max_items: usize::MAX,
            n_bytes: u64::MAX,
            max_wait: Duration::from_secs(3_600),
        }
    }
}

impl Kept {
    fn lock(&self) -> MutexGuard<'_, Vec<ItemRecord>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many items came, each as often as it came.
    pub(crate) fn n_items(&self) -> usize {
        self.lock().len()
    }

    /// Returns the items by their keys.
    pub(crate) fn items(&self) -> BTreeMap<String, String> {
        let items = self.lock();
        let item = |item: &ItemRecord| (item.key.0.clone(), item.item.get().to_owned());
        items.iter().map(item).collect()
    }
}

/// Returns settings by which all hosts are crawled.
pub fn settings() -> CrawlSettings {
    CrawlSettings {
        scope: vec!["*".parse().expect("a good scope")],
        ..CrawlSettings::default()
    }
}

/// Returns the parts of a crawl of the graph.
pub(crate) fn parts(
    frontier: Arc<dyn Frontier>,
    peers: Option<PeerShards>,
    settings: CrawlSettings,
) -> CrawlParts {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let limits = Limits::default();
    CrawlParts {
        resource: ResourceId(1),
        run: Run(1),
        run_started_at: 0,
        plugin: Some(Digest::of(b"plugin")),
        params: Arc::default(),
        config: watch::channel(CrawlConfig { limits, settings }).1,
        rules: Arc::new(Graph::default()),
        frontier,
        fetch: Arc::new(Site),
        files: None,
        archive: None,
        log: CrawlLog::new(clock.clone()),
        clock,
        permit: Arc::new(Always),
        pacing: Pacing::default(),
        incidents: CrawlIncidents::default(),
        limit_uses: LimitUses::default(),
        peers,
        rest_after: None,
        crawl_memory: CrawlMemory::default(),
        tracer: Default::default(),
    }
}

/// Creates a frontier in memory.
pub(crate) fn memory() -> Arc<dyn Frontier> {
    Arc::new(MemoryFrontier::new(MemorySettings::default()))
}

/// Returns what a future gives, which has a minute for it.
pub(crate) async fn in_time<T>(future: impl Future<Output = T>) -> T {
    let deadline = Duration::from_secs(60);
    tokio::time::timeout(deadline, future)
        .await
        .expect("it ends")
}

/// Returns the items of a crawl with one shard by their keys, and how many came.
pub async fn whole() -> (BTreeMap<String, String>, usize) {
    let kept = Kept::default();
    let parts = parts(memory(), None, settings());
    let crawl = run(parts, Box::new(kept.clone()), CancellationToken::new());
    assert_eq!(in_time(crawl).await, CrawlEnd::Finished);
    (kept.items(), kept.n_items())
}
