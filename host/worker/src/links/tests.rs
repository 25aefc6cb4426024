//! Tests of crawls of several shards in one process, over a site of many hosts.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use object_store::memory::InMemory;
use url::Url;

use super::*;
use crate::crawl;
use crate::crawl::tests::{page, report};
use crate::end::CrawlEnd;
use crate::part::{HandOver, HandOverError, Quiet};
use crate::parts::{CrawlConfig, CrawlParts};
use crate::permit::Always;
use crate::report::CrawlLog;
use crate::starts::Starts;
use crawler_fetch::{Answer, Failure, Fetch, FetchRequest, Fetched};
use crawler_frontier::durable::{DurableSettings, Frontiers};
use crawler_frontier::memory::{MemoryFrontier, MemorySettings};
use crawler_frontier::suite::links::ALL;
use crawler_frontier::{Frontier, LinkBatch, OpenAs, OpenFrontiers as _};
use crawler_model::crawl::{Item, ItemRecord, Page, PageContext, Request};
use crawler_model::frontier::{DelayBy, SinkMark};
use crawler_model::id::{Digest, Epoch, ResourceId, Run};
use crawler_model::plugin::{Description, Limits};
use crawler_model::resource::{CrawlSettings, ShardId};
use crawler_plugin::{CallConfig, CallOutput, CallReport, Rules};
use crawler_process::clock::{Clock, SystemClock};
use crawler_process::memory::Seat;
use crawler_process::task::TaskScope;
use crawler_sink::{Sink, SinkError};

mod nobody;

const N_PAGES: u64 = 300;
const N_HOSTS: u64 = 64;

fn url_of(page: u64) -> String {
    format!("http://host-{}.test/{page}", page % N_HOSTS)
}

fn number(url: &Url) -> u64 {
    url.path()[1..].parse().unwrap()
}

/// Site that has every page; one in ten is a redirect to another host.
pub(crate) struct Site;

#[async_trait]
impl Fetch for Site {
    async fn fetch(&self, request: FetchRequest) -> Result<Fetched, Failure> {
        let url = &request.url;
        let n = number(url);
        // Others have their turn meanwhile.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let answer = match n % 10 {
            7 => Answer::Elsewhere {
                to: url_of(n + 1).parse().unwrap(),
            },
            _ => Answer::Page(page(url, url, 200)),
        };
        Ok(Fetched {
            answer,
            host_ready_at: 0,
            delay_by: DelayBy::default(),
        })
    }

    fn per_host(&self, _host: &Url, _delay: Option<Duration>) -> u32 {
        2
    }
}

/// Plugin with one item per page, and links to pages of other hosts; some ask for a reload of the first page.
pub(crate) struct Graph(Description);

impl Graph {
    pub(crate) fn new() -> Self {
        Self(Description {
            name: "graph".parse().unwrap(),
            version: "1.0.0".parse().unwrap(),
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
        let roots = [0, 1, 2].map(|n| Request::get(url_of(n).parse().unwrap(), "page"));
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
        let links = links.map(|link| Request::get(url_of(link).parse().unwrap(), "page"));
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

#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<ItemRecord>>>);

#[async_trait]
impl Sink for Kept {
    async fn write(&mut self, items: &[ItemRecord]) -> Result<Option<SinkMark>, SinkError> {
        self.0.lock().unwrap().extend_from_slice(items);
        Ok(None)
    }
}

impl Kept {
    /// Returns the items by their keys.
    fn items(&self) -> BTreeMap<String, String> {
        let items = self.0.lock().unwrap();
        let item = |item: &ItemRecord| (item.key.0.clone(), item.item.get().to_owned());
        items.iter().map(item).collect()
    }
}

/// Owners of the shards; every third call has no answer, and every fifth does not arrive.
struct Process {
    frontiers: Mutex<Vec<Arc<dyn Frontier>>>,
    quiet: Vec<Quiet>,
    n_calls: AtomicUsize,
    receivers: TaskScope,
}

struct Neighbours {
    own: Shard,
    process: Arc<Process>,
}

#[async_trait]
impl HandOver for Neighbours {
    async fn hand_over(&self, to: Shard, batch: &LinkBatch) -> Result<u64, HandOverError> {
        let failed = |why: &str| HandOverError {
            to,
            why: why.to_owned(),
        };
        let n_calls = self.process.n_calls.fetch_add(1, Ordering::Relaxed);
        if n_calls % 5 == 4 {
            return Err(failed("lost"));
        }
        let frontier = self.process.frontiers.lock().unwrap()[to.0 as usize].clone();
        let (from, batch) = (self.own, batch.clone());
        let (tell, told) = tokio::sync::oneshot::channel();
        // The sender of links may be killed meanwhile, which must not affect this task.
        self.process.receivers.spawn("receiver", async move {
            let applied = frontier.apply(from, batch, ALL).await;
            let settled = frontier.settle().await;
            drop(tell.send(settled.and(applied)));
        });
        let applied = told.await.map_err(|_| failed("gone"))?;
        let applied = applied.map_err(|e| failed(&e.to_string()))?;
        self.process.quiet[to.0 as usize].end();
        match n_calls % 3 {
            2 => Err(failed("no answer")),
            _ => Ok(applied),
        }
    }
}

impl Process {
    fn is_over(&self) -> bool {
        let totals = || {
            let frontiers = self.frontiers.lock().unwrap();
            frontiers
                .iter()
                .map(|f| f.link_totals())
                .collect::<Vec<_>>()
        };
        if !self.quiet.iter().all(Quiet::is_on) {
            return false;
        }
        let totals = totals();
        let n = |map: &BTreeMap<u32, u64>, other: usize| map.get(&(other as u32)).copied();
        totals.iter().enumerate().all(|(a, one)| {
            let mut others = totals.iter().enumerate();
            others.all(|(b, other)| n(&one.sent, b) == n(&other.applied, a))
        })
    }
}

pub(crate) fn settings() -> CrawlSettings {
    CrawlSettings {
        scope: vec!["*".parse().unwrap()],
        ..CrawlSettings::default()
    }
}

fn parts(frontier: Arc<dyn Frontier>, part: Option<Part>, settings: CrawlSettings) -> CrawlParts {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let limits = Limits::default();
    CrawlParts {
        resource: ResourceId(1),
        run: Run(1),
        run_started_at: 0,
        params: Arc::default(),
        config: watch::channel(CrawlConfig { limits, settings }).1,
        rules: Arc::new(Graph::new()),
        frontier,
        fetch: Arc::new(Site),
        log: CrawlLog::new(clock.clone()),
        clock,
        permit: Arc::new(Always),
        starts: Starts::default(),
        part,
        rest_after: None,
        seat: Seat::default(),
    }
}

fn memory() -> Arc<dyn Frontier> {
    Arc::new(MemoryFrontier::new(MemorySettings::default()))
}

async fn in_time<T>(future: impl Future<Output = T>) -> T {
    let deadline = Duration::from_secs(60);
    tokio::time::timeout(deadline, future)
        .await
        .expect("it ends")
}

/// Returns the result of a crawl with one shard.
pub(crate) async fn whole() -> (BTreeMap<String, String>, usize) {
    let kept = Kept::default();
    let parts = parts(memory(), None, settings());
    let crawl = crawl::run(parts, Box::new(kept.clone()), CancellationToken::new());
    assert_eq!(in_time(crawl).await, CrawlEnd::Finished);
    let n = kept.0.lock().unwrap().len();
    (kept.items(), n)
}

/// Creates a process with these frontiers.
fn process(frontiers: Vec<Arc<dyn Frontier>>) -> Arc<Process> {
    Arc::new(Process {
        quiet: frontiers.iter().map(|_| Quiet::default()).collect(),
        frontiers: Mutex::new(frontiers),
        n_calls: AtomicUsize::new(0),
        receivers: TaskScope::new(),
    })
}

impl Process {
    fn part(self: &Arc<Self>, own: u32) -> Part {
        let own = Shard(own);
        let others = Arc::new(Neighbours {
            own,
            process: self.clone(),
        });
        Part {
            own,
            n_shards: NonZeroU32::new(self.quiet.len() as u32).unwrap(),
            others,
            quiet: self.quiet[own.0 as usize].clone(),
        }
    }

    async fn crawl(
        self: &Arc<Self>,
        own: u32,
        settings: CrawlSettings,
        kept: Kept,
        stop: CancellationToken,
    ) -> CrawlEnd {
        let frontier = self.frontiers.lock().unwrap()[own as usize].clone();
        let parts = parts(frontier, Some(self.part(own)), settings);
        crawl::run(parts, Box::new(kept), stop).await
    }

    /// Ends all crawls once everything is done.
    async fn stop_when_over(&self, stop: &CancellationToken) {
        while !self.is_over() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stop.cancel();
    }
}

#[tokio::test]
async fn several_shards_give_what_one_gives() {
    let (expected, n_expected) = whole().await;
    assert!(n_expected > 200, "{n_expected}");
    let process = process((0..4).map(|_| memory()).collect());
    let (kept, stop) = (Kept::default(), CancellationToken::new());
    let crawls = (0..4).map(|own| process.crawl(own, settings(), kept.clone(), stop.clone()));
    let crawls = join_all(crawls);
    let (ends, ()) = in_time(async { tokio::join!(crawls, process.stop_when_over(&stop)) }).await;
    assert_eq!(ends, vec![CrawlEnd::Stopped; 4]);
    let n_items = kept.0.lock().unwrap().len();
    assert_eq!((kept.items(), n_items), (expected, n_expected));
    let sent = process.frontiers.lock().unwrap()[0].link_totals().sent;
    assert_eq!(sent.len(), 3, "each other has links of it: {sent:?}");
    let frontiers = process.frontiers.lock().unwrap().clone();
    let hosts: Vec<u64> = frontiers.iter().map(|f| f.counts().parsed).collect();
    assert!(hosts.iter().all(|n| *n > 0), "{hosts:?}");
}

async fn open(objects: &Arc<InMemory>, shard: u32) -> Arc<dyn Frontier> {
    open_with(objects, shard, Duration::from_millis(5)).await
}

/// Opens a frontier whose batches become durable at this interval.
async fn open_with(
    objects: &Arc<InMemory>,
    shard: u32,
    flush_interval: Duration,
) -> Arc<dyn Frontier> {
    let settings = DurableSettings {
        flush_interval,
        ..DurableSettings::default()
    };
    let frontiers = Arc::new(Frontiers::new(objects.clone(), settings));
    let shard = ShardId {
        resource: ResourceId(1),
        shard: Shard(shard),
    };
    let storage_epoch = frontiers.storage_epoch(shard).await.unwrap();
    let open_as = OpenAs {
        shard,
        cluster: "c1".into(),
        epoch: Epoch(1),
        run: Run(1),
        plugin: Digest::of(b"plugin"),
        created: storage_epoch > 0,
        storage_epoch,
        now: 0,
        delay: Duration::ZERO,
        carry: None,
        division: None,
    };
    frontiers.open(open_as).await.unwrap()
}

#[tokio::test]
async fn a_shard_that_is_killed_in_the_middle_and_goes_on_elsewhere_changes_nothing() {
    let (expected, _) = whole().await;
    let objects = Arc::new(InMemory::new());
    let mut frontiers = Vec::new();
    for shard in 0..3 {
        frontiers.push(open(&objects, shard).await);
    }
    let process = process(frontiers);
    let (kept, stop) = (Kept::default(), CancellationToken::new());
    let killed = async {
        for n_parsed in [10, 30, 50] {
            let crawl = process.crawl(1, settings(), kept.clone(), stop.clone());
            let enough = async {
                let frontier = process.frontiers.lock().unwrap()[1].clone();
                while frontier.counts().parsed < n_parsed {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            tokio::select! {
                end = crawl => panic!("it has ended: {end:?}"),
                () = enough => {}
            }
            let opened = open(&objects, 1).await;
            process.frontiers.lock().unwrap()[1] = opened;
        }
        process
            .crawl(1, settings(), kept.clone(), stop.clone())
            .await
    };
    let others = [0, 2].map(|own| process.crawl(own, settings(), kept.clone(), stop.clone()));
    let others = join_all(others);
    let ended = async { tokio::join!(killed, others, process.stop_when_over(&stop)) };
    let (end, others, ()) = in_time(ended).await;
    assert_eq!(
        (end, others),
        (CrawlEnd::Stopped, vec![CrawlEnd::Stopped; 2])
    );
    assert_eq!(kept.items(), expected);
    for frontier in process.frontiers.lock().unwrap().iter() {
        assert_eq!(frontier.counts().due, 0);
    }
}

#[tokio::test]
async fn the_pages_of_a_resource_are_shared_by_its_shards() {
    let process = process((0..4).map(|_| memory()).collect());
    let part = |own| process.part(own);
    assert_eq!([0, 1, 2, 3].map(|own| part(own).share(10)), [3, 3, 2, 2]);
    assert_eq!([0, 1, 2, 3].map(|own| part(own).share(2)), [1, 1, 0, 0]);
    let settings = CrawlSettings {
        max_pages: Some(22),
        ..settings()
    };
    let (kept, stop) = (Kept::default(), CancellationToken::new());
    let crawls = (0..4).map(|own| process.crawl(own, settings.clone(), kept.clone(), stop.clone()));
    let crawls = join_all(crawls);
    in_time(async { tokio::join!(crawls, process.stop_when_over(&stop)) }).await;
    let frontiers = process.frontiers.lock().unwrap().clone();
    let pages: Vec<u64> = frontiers.iter().map(|f| f.counts().pages()).collect();
    assert_eq!(pages, [6, 6, 5, 5]);
}
