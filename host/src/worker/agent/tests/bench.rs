//! An agent with a store and a data root of its own, and twins of fetcher and rules, on one clock.

use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use object_store::memory::InMemory;
use tokio::runtime::Handle;
use tokio::time::Instant;
use url::Url;

use super::super::*;
use crate::clock::SystemClock;
use crate::fetch::{Answer, Failure, FetchRequest, Fetched};
use crate::frontier::durable::{DurableSettings, OpenAs};
use crate::frontier::suite::hanging::{Hanging, Hangs};
use crate::frontier::{Frontier as _, FrontierError};
use crate::model::crawl::{Item, Page, PageContext, RuleError};
use crate::model::id::{Digest, Incarnation, ResourceId, Run};
use crate::model::node::Role;
use crate::model::plugin::Description;
use crate::model::resource::{CrawlSettings, Owner, PinnedPlugin, ShardRecord, ShardState};
use crate::plugin::{CallConfig, CallFailure, CallOutput, CallReport, PluginError, Rules};
use crate::store::Txn;
use crate::store::catalog::encode;
use crate::store::embedded::{EmbeddedStore, Settings};
use crate::store::keys::Keys;
use crate::worker::crawl::tests::{page, report, requests};

pub(super) fn shard() -> ShardId {
    ShardId::only(ResourceId(7))
}

/// Without an end that a test would run into.
pub(super) fn settings() -> CrawlSettings {
    CrawlSettings {
        max_depth: Some(1_000_000),
        max_retry_wait_ms: Some(24 * 60 * 60_000),
        ..CrawlSettings::default()
    }
}

/// The clock of the runtime, which the tests pause.
#[derive(Clone, Copy)]
struct RuntimeClock(Instant);

impl Clock for RuntimeClock {
    fn unix_nanos(&self) -> u64 {
        let passed = u64::try_from(self.0.elapsed().as_nanos()).unwrap();
        1_000_000_000_000_000_000 + passed
    }
}

/// One rule that turns each page into an item and a link to the next.
struct Chain {
    description: Description,
    site: Arc<Site>,
}

#[async_trait]
impl Rules for Chain {
    fn description(&self) -> &Description {
        &self.description
    }

    async fn root(&self, _config: CallConfig, _now: u64) -> CallReport {
        report(Ok(CallOutput {
            requests: requests("http://site.test/", &["/0"]),
            ..Default::default()
        }))
    }

    async fn parse(
        &self,
        _config: CallConfig,
        _rule: &str,
        page: Arc<Page>,
        _context: PageContext,
    ) -> CallReport {
        if let Some(objects) = self.site.hangs.lock().unwrap().take() {
            objects.set(Hangs::All);
        }
        if let Some(after) = self.site.not_before.lock().unwrap().take() {
            return report(Err(CallFailure::Rule(RuleError::Retry {
                after_ms: Some(u64::try_from(after.as_millis()).unwrap()),
                why: "not yet".into(),
            })));
        }
        let n: u64 = page.url.path()[1..].parse().unwrap();
        let next = format!("/{}", n + 1);
        report(Ok(CallOutput {
            items: vec![Item {
                schema: "page".into(),
                json: format!("{{\"n\":{n}}}"),
            }],
            requests: requests("http://site.test/", &[&next]),
            n_bad_urls: 0,
        }))
    }
}

struct OneRule(Arc<Site>);

#[async_trait]
impl LoadRules for OneRule {
    async fn load(&self, _digest: Digest) -> Result<Arc<dyn Rules>, PluginError> {
        let description = Description {
            name: "books".parse().unwrap(),
            version: "1.0.0".parse().unwrap(),
            rules: vec!["page".into()],
            schemas: Vec::new(),
            hosts: Vec::new(),
            limits: BTreeMap::new(),
        };
        let site = self.0.clone();
        Ok(Arc::new(Chain { description, site }))
    }
}

/// Every page is there, one each second.
pub(super) struct Site {
    clock: RuntimeClock,
    /// In order.
    pub(super) asked: Mutex<Vec<String>>,
    /// The next page is of no use before so much time has passed.
    pub(super) not_before: Mutex<Option<Duration>>,
    /// Before the next page ends, this object store stops to answer.
    pub(super) hangs: Mutex<Option<Arc<Hanging>>>,
}

#[async_trait]
impl Fetch for Site {
    async fn fetch(&self, request: FetchRequest) -> Result<Fetched, Failure> {
        let url = &request.url;
        self.asked.lock().unwrap().push(url.path().to_owned());
        Ok(Fetched {
            answer: Answer::Page(page(url, url, 200)),
            host_ready_at: self.clock.unix_millis() + 1_000,
        })
    }

    fn per_host(&self, _host: &Url, _delay: Option<Duration>) -> u32 {
        1
    }
}

pub(super) struct Bench {
    pub(super) parts: Arc<AgentParts>,
    pub(super) objects: Arc<Hanging>,
    pub(super) site: Arc<Site>,
    /// Background tasks of an agent that crawls nothing.
    pub(super) n_tasks: usize,
    scope: TaskScope,
    _folder: tempfile::TempDir,
}

impl Bench {
    pub(super) async fn new() -> Self {
        let clock = RuntimeClock(Instant::now());
        let site = Arc::new(Site {
            clock,
            asked: Mutex::default(),
            not_before: Mutex::default(),
            hangs: Mutex::default(),
        });
        let objects = Arc::new(Hanging::new(Arc::new(InMemory::new())));
        let (folder, mut parts) = parts(Arc::new(OneRule(site.clone())), site.clone());
        parts.clock = Arc::new(clock);
        let settings = DurableSettings::default();
        parts.frontiers = Arc::new(Frontiers::new(objects.clone(), settings));
        let parts = Arc::new(parts);
        let scope = TaskScope::new();
        scope.spawn("agent", run(parts.clone(), scope.stop_signal()));
        let mut bench = Self {
            parts,
            objects,
            site,
            n_tasks: 0,
            scope,
            _folder: folder,
        };
        bench.pass(Duration::from_secs(1)).await;
        bench.n_tasks = Handle::current().metrics().num_alive_tasks();
        bench
    }

    /// Lets this much time pass, and everything happen that happens in it.
    pub(super) async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// Waits for a state, at most this long.
    pub(super) async fn wait_for(
        &self,
        what: &str,
        deadline: Duration,
        mut is_so: impl AsyncFnMut(&Self) -> bool,
    ) {
        let began = Instant::now();
        while !is_so(self).await {
            assert!(began.elapsed() < deadline, "{what}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(super) async fn assign(&self, epoch: u64) {
        self.assign_with(epoch, Generation(1), settings()).await;
    }

    pub(super) async fn assign_with(
        &self,
        epoch: u64,
        generation: Generation,
        crawl: CrawlSettings,
    ) {
        let present = self.record().await;
        assign(&self.parts, present, Epoch(epoch), generation, crawl).await;
    }

    pub(super) async fn unassign(&self) {
        let keys = self.parts.catalog.keys();
        let txn = Txn::new().delete(keys.assignment(&self.parts.node.id, shard()));
        self.parts.catalog.store().commit(txn).await.unwrap();
    }

    pub(super) async fn record(&self) -> ShardRecord {
        let key = self.parts.catalog.keys().shard(shard());
        let present = self.parts.catalog.read(&key).await.unwrap();
        present.map_or_else(
            || ShardRecord::new("books".parse().unwrap()),
            |record| record.value,
        )
    }

    pub(super) async fn put(&self, record: &ShardRecord) {
        let key = self.parts.catalog.keys().shard(shard());
        let txn = Txn::new().put(key, encode(record));
        self.parts.catalog.store().commit(txn).await.unwrap();
    }

    /// The crawl that others are told of, if there is one.
    pub(super) fn epoch(&self) -> Option<Epoch> {
        let status = self.parts.crawls.status(None);
        status.first().map(|crawl| crawl.epoch)
    }

    pub(super) fn waits(&self) -> Option<String> {
        let status = self.parts.crawls.status(None);
        let waits = status.into_iter().find_map(|crawl| crawl.waits);
        waits.map(|waits| waits.condition)
    }

    pub(super) fn is_open(&self) -> bool {
        let known = self.parts.crawls.known();
        let running = known.running.get(&shard());
        running.is_some_and(|crawl| crawl.live.standing().frontier.is_some())
    }

    pub(super) fn n_asked(&self) -> usize {
        self.site.asked.lock().unwrap().len()
    }

    /// Opens the frontier, as the next owner would.
    pub(super) async fn steal(&self) -> Result<(), FrontierError> {
        let settings = DurableSettings::default();
        let frontiers = Arc::new(Frontiers::new(self.objects.clone(), settings));
        let storage_epoch = frontiers.storage_epoch(shard()).await?;
        let open_as = OpenAs {
            shard: shard(),
            cluster: self.parts.cluster.clone(),
            epoch: Epoch(1),
            run: Run(1),
            plugin: Digest::of(b""),
            created: true,
            storage_epoch,
            now: self.parts.clock.unix_millis(),
            delay: Duration::ZERO,
            carry: false,
        };
        frontiers.open(open_as).await?.close().await
    }

    pub(super) async fn stop(self) {
        let cut = self.scope.stop(Duration::from_secs(60)).await;
        assert!(cut.is_empty(), "{cut:?}");
    }
}

/// All that an agent needs, in a folder that goes with the test.
pub(super) fn parts(
    plugins: Arc<dyn LoadRules>,
    fetch: Arc<dyn Fetch>,
) -> (tempfile::TempDir, AgentParts) {
    let folder = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(&folder.path().join("store"), Settings::default()).unwrap();
    let data = DataRoot::open(&folder.path().display().to_string()).unwrap();
    let settings = DurableSettings::default();
    let node = Node {
        id: "worker-1".parse().unwrap(),
        role: Role::Worker,
        address: "127.0.0.1:1".to_owned(),
        incarnation: Incarnation(1),
        labels: BTreeMap::new(),
        capacity: 1,
        version: "0".to_owned(),
        draining: false,
        started_at: 0,
    };
    let parts = AgentParts {
        node,
        catalog: Catalog::new(Arc::new(store), Keys::default()),
        cluster: "c1".to_owned(),
        frontiers: Arc::new(Frontiers::new(data.object_store(), settings)),
        data: Arc::new(data),
        plugins,
        fetch,
        clock: Arc::new(SystemClock),
        limit_ceilings: LimitOverrides::default(),
        crawls: Crawls::default(),
    };
    (folder, parts)
}

/// Assigns a shard that was as `present` says.
pub(super) async fn assign(
    parts: &AgentParts,
    present: ShardRecord,
    epoch: Epoch,
    generation: Generation,
    crawl: CrawlSettings,
) {
    let (node, id) = (&parts.node, shard());
    let resource = Resource {
        id: id.resource,
        assigned_node: String::new(),
        creation_time: 0,
        generation,
        run: Run(1),
        pinned: Some(PinnedPlugin {
            version: "1.0.0".parse().unwrap(),
            digest: Digest::of(b""),
        }),
        spec: ResourceSpec {
            name: "books".parse().unwrap(),
            plugin: "books".parse().unwrap(),
            params: BTreeMap::new(),
            limits: LimitOverrides::default(),
            crawl,
        },
    };
    let name = resource.spec.name.clone();
    let shard = ShardRecord {
        owner: Some(Owner {
            node: node.id.clone(),
            incarnation: node.incarnation,
        }),
        epoch,
        state: ShardState::Assigned,
        ..present
    };
    let mirror = Assignment {
        name: name.clone(),
        epoch,
        incarnation: node.incarnation,
        generation,
    };
    let keys = parts.catalog.keys();
    let txn = Txn::new()
        .put(keys.resource(&name), encode(&resource))
        .put(keys.shard(id), encode(&shard))
        .put(keys.assignment(&node.id, id), encode(&mirror));
    parts.catalog.store().commit(txn).await.unwrap();
}
