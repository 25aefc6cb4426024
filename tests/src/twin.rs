//! A crawl without a network and without a sandbox: a site that is a tree of numbered pages, whose rule does what
//! a test wants on each, and sinks that keep their items. It is for tests of the layers below: the crawl itself is
//! the product's.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use crawler_crawl::incidents::CrawlIncidents;
use crawler_crawl::limit_uses::LimitUses;
use crawler_crawl::log::CrawlLog;
use crawler_crawl::pacing::Pacing;
use crawler_crawl::permit::Always;
use crawler_crawl::{CrawlConfig, CrawlEnd, CrawlParts, run};
use crawler_fetch::{Answer, Failure, Fetch, FetchRequest, Fetched};
use crawler_frontier::Frontier;
use crawler_model::crawl::{
    CharsetSource, FetchRecord, Item, ItemRecord, Page, PageContext, PageText, Request,
};
use crawler_model::frontier::DelaySource;
use crawler_model::id::{ResourceId, Run};
use crawler_model::plugin::{Description, Limits};
use crawler_model::resource::CrawlSettings;
use crawler_plugin::{CallConfig, CallOutput, CallReport, Rules, Usage};
use crawler_process::clock::{Clock, SystemClock};
use crawler_process::memory::CrawlMemory;
use crawler_sink::{Sink, SinkError, Written};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use url::Url;

/// Number of pages below each page.
const N_LINKS: u64 = 3;

/// Purpose of a call of a tree's rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// The call of `root`.
    Root,
    /// The call for this page.
    Page(u64),
}

/// Tree of the pages 0 to `n_pages`, page 0 first. Each page gives one item, and leads to those below it, to the
/// one above it, and to two beside it.
#[derive(Clone)]
pub struct Tree {
    n_pages: u64,
    pace: Duration,
    on_call: Arc<dyn Fn(Call) + Send + Sync>,
    description: Description,
}

impl Tree {
    /// Makes a tree whose pages take `pace` to be fetched, and whose rule calls `on_call` first.
    pub fn new(
        n_pages: u64,
        pace: Duration,
        on_call: impl Fn(Call) + Send + Sync + 'static,
    ) -> Self {
        Self {
            n_pages,
            pace,
            on_call: Arc::new(on_call),
            description: Description {
                name: "tree".parse().expect("a good name"),
                version: "1.0.0".parse().expect("a good version"),
                rules: vec!["page".into()],
                schemas: Vec::new(),
                plans: Vec::new(),
                hosts: Vec::new(),
                params: None,
                limits: BTreeMap::new(),
            },
        }
    }

    /// Crawls it to its end, or until `stop`.
    pub async fn crawl(
        &self,
        frontier: Arc<dyn Frontier>,
        sink: Box<dyn Sink>,
        stop: CancellationToken,
    ) -> CrawlEnd {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let config = CrawlConfig {
            limits: Limits::default(),
            settings: CrawlSettings {
                // The depth of a page is left to chance: it depends on which of several ways to the page comes
                // first.
                max_depth: Some(u32::MAX),
                ..CrawlSettings::default()
            },
        };
        // The sender stays here, because nothing changes while the crawl runs.
        let (_config, receiver) = watch::channel(config);
        let parts = CrawlParts {
            resource: ResourceId(1),
            run: Run(1),
            run_started_at: 0,
            plugin: None,
            params: Arc::default(),
            config: receiver,
            rules: Arc::new(self.clone()),
            frontier,
            fetch: Arc::new(self.clone()),
            files: None,
            archive: None,
            log: CrawlLog::new(Arc::clone(&clock)),
            clock,
            permit: Arc::new(Always),
            pacing: Pacing::default(),
            incidents: CrawlIncidents::default(),
            limit_uses: LimitUses::default(),
            peers: None,
            rest_after: None,
            crawl_memory: CrawlMemory::default(),
            tracer: Default::default(),
        };
        run(parts, sink, stop).await
    }
}

fn number_of(url: &Url) -> u64 {
    let number = url.path().trim_start_matches('/').parse();
    number.unwrap_or_else(|e| panic!("{url} is no page of a tree: {e}"))
}

fn page(n: u64) -> Request {
    let url = format!("http://tree.test/{n}");
    Request::get(url.parse().expect("a good URL"), "page")
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
impl Fetch for Tree {
    async fn fetch(&self, request: FetchRequest) -> Result<Fetched, Failure> {
        tokio::time::sleep(self.pace).await;
        let page = Page {
            url: request.url.clone(),
            requested_url: request.url,
            status: 200,
            headers: Default::default(),
            redirects: Vec::new(),
            fetched_at: 1,
            truncated: false,
            body: Bytes::from_static(b"page"),
            text: PageText {
                charset: "UTF-8",
                source: CharsetSource::Valid,
                decoded: None,
            },
            record: FetchRecord::default(),
        };
        Ok(Fetched {
            answer: Answer::Page(Box::new(page)),
            host_ready_at: 0,
            delay_by: DelaySource::default(),
        })
    }

    fn per_host(&self, _host: &Url, _delay: Option<Duration>) -> u32 {
        64
    }
}

#[async_trait]
impl Rules for Tree {
    fn description(&self) -> &Description {
        &self.description
    }

    async fn root(&self, _config: CallConfig, _now: u64) -> CallReport {
        (self.on_call)(Call::Root);
        report(CallOutput {
            requests: vec![page(0)],
            ..CallOutput::default()
        })
    }

    async fn parse(
        &self,
        _config: CallConfig,
        _rule: &str,
        seen: Arc<Page>,
        _context: PageContext,
    ) -> CallReport {
        let n = number_of(&seen.url);
        (self.on_call)(Call::Page(n));
        let below = (N_LINKS * n + 1)..=(N_LINKS * n + N_LINKS);
        let links = below.chain([n.saturating_sub(1) / N_LINKS, n + 1, n + 7]);
        let item = Item {
            schema: "page".to_owned(),
            json: format!("{{\"n\":{n}}}"),
        };
        report(CallOutput {
            items: vec![item],
            requests: links.filter(|n| *n < self.n_pages).map(page).collect(),
            n_bad_urls: 0,
        })
    }
}

/// Sink that keeps items in memory, where others see them.
#[derive(Debug, Clone, Default)]
pub struct Kept(Arc<Mutex<Vec<ItemRecord>>>);

impl Kept {
    /// Returns the pages of the items, each key counted once.
    pub fn pages(&self) -> Vec<u64> {
        let items = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pages_of(&items)
    }
}

#[async_trait]
impl Sink for Kept {
    async fn write(&mut self, _first: u64, items: &[ItemRecord]) -> Result<Written, SinkError> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(items);
        Ok(Written::all(items, None))
    }
}

/// Sink that keeps items in a file, synced; later processes can add to it.
#[derive(Debug)]
pub struct KeptFile {
    path: PathBuf,
    pace: Duration,
}

impl KeptFile {
    /// Makes a sink for this file, which need not exist. Each write takes `pace`.
    pub fn new(path: impl Into<PathBuf>, pace: Duration) -> Self {
        let path = path.into();
        Self { path, pace }
    }

    /// Returns the pages of the items in a file, each key counted once. A line that a kill has cut short is
    /// ignored.
    pub fn pages(path: &Path) -> Vec<u64> {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let items = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        pages_of(&items.collect::<Vec<ItemRecord>>())
    }

    fn add(&self, items: &[ItemRecord]) -> std::io::Result<()> {
        let mut lines = Vec::from(b"\n");
        for item in items {
            serde_json::to_writer(&mut lines, item)?;
            lines.push(b'\n');
        }
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.path)?;
        file.write_all(&lines)?;
        file.sync_all()
    }
}

#[async_trait]
impl Sink for KeptFile {
    async fn write(&mut self, _first: u64, items: &[ItemRecord]) -> Result<Written, SinkError> {
        tokio::time::sleep(self.pace).await;
        self.add(items)
            .map_err(|source| SinkError::of_file("write", self.path.display(), source))?;
        Ok(Written::all(items, None))
    }
}

fn pages_of(items: &[ItemRecord]) -> Vec<u64> {
    let mut keys = BTreeSet::new();
    let once = items.iter().filter(|item| keys.insert(&item.key));
    let mut pages: Vec<u64> = once
        .map(|item| number_of(&item.url.parse().expect("items have the URL of their page")))
        .collect();
    pages.sort_unstable();
    pages
}

#[cfg(test)]
mod tests {
    use crawler_frontier::memory::{MemoryFrontier, MemorySettings};

    use super::*;

    #[tokio::test]
    async fn a_crawl_of_a_tree_gives_every_page_once() {
        let tree = Tree::new(100, Duration::ZERO, |_| {});
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("items");
        std::fs::write(&path, "{\"cut").unwrap();
        let sinks: [Box<dyn Sink>; 2] = [
            Box::new(KeptFile::new(&path, Duration::ZERO)),
            Box::new(KeptFile::new(&path, Duration::ZERO)),
        ];
        for sink in sinks {
            let frontier = Arc::new(MemoryFrontier::new(MemorySettings::default()));
            let end = tree.crawl(frontier, sink, CancellationToken::new()).await;
            assert_eq!(end, CrawlEnd::Finished);
            assert_eq!(KeptFile::pages(&path), (0..100).collect::<Vec<_>>());
        }
    }
}
