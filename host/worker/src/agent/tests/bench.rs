//! An agent with a store and a data root of its own, and twins of fetcher and rules, on one clock.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use object_store::memory::InMemory;
use serde_json::json;
use tokio::runtime::Handle;
use tokio::time::Instant;
use url::Url;

use super::super::*;
use super::faulty_store::FaultyStore;
use crate::crawls::Crawls;
use crate::links::{LinkDelivery, LinkDeliveryError, SendLinks};
use crawler_crawl::doubles::{page, report, requests};
use crawler_data::DataRoot;
use crawler_fetch::{Answer, Failure, Fetch, FetchRequest, Fetched};
use crawler_frontier::durable::{DurableSettings, Frontiers, OpenOptions};
use crawler_frontier::suite::hanging::{Hanging, Hangs};
use crawler_frontier::{FrontierError, OpenFrontiers as _};
use crawler_model::crawl::{Item, Page, PageContext, RuleError, UnixMillis};
use crawler_model::exchange::{BodyForm, Exchange};
use crawler_model::frontier::DelaySource;
use crawler_model::id::{Digest, Incarnation, ResourceId, ResourceName, Run, Shard};
use crawler_model::node::{CallToken, Node, Role};
use crawler_model::plugin::Description;
use crawler_model::resource::{CrawlSettings, Order, Owner, PinnedPlugin, ShardRecord, ShardState};
use crawler_plugin::{
    CallConfig, CallFailure, CallOutput, CallReport, LoadRules, PluginError, Rules,
};
use crawler_process::clock::{Clock, SystemClock};
use crawler_process::memory::Memory;
use crawler_sink::lines::{LineFolders, LineSettings};
use crawler_store::Txn;
use crawler_store::catalog::{Catalog, encode};
use crawler_store::embedded::{EmbeddedStore, Settings};
use crawler_store::keys::Keys;
use crawler_store::lease::LeaseKeeper;

/// TTL of leases. It is long, because the paused clock runs while the store's own thread writes.
pub(super) const LEASE_TTL: Duration = Duration::from_secs(120);

pub(super) fn shard() -> ShardId {
    ShardId::only(ResourceId(7))
}

/// Returns settings without a limit that a test would reach.
pub(super) fn settings() -> CrawlSettings {
    CrawlSettings {
        max_depth: Some(1_000_000),
        max_retry_wait_ms: Some(24 * 60 * 60_000),
        ..CrawlSettings::default()
    }
}

/// Clock of the runtime, which the tests pause.
#[derive(Clone, Copy)]
pub(super) struct RuntimeClock(pub(super) Instant);

impl Clock for RuntimeClock {
    fn unix_nanos(&self) -> u64 {
        let passed = u64::try_from(self.0.elapsed().as_nanos()).unwrap();
        1_000_000_000_000_000_000 + passed
    }
}

/// Plugin with one rule that turns each page into an item and a link to the next.
struct Chain {
    description: Description,
    site: Arc<Site>,
}

#[async_trait]
impl Rules for Chain {
    fn description(&self) -> &Description {
        &self.description
    }

    async fn root(&self, config: CallConfig, now: u64) -> CallReport {
        self.site.roots.lock().unwrap().push(now);
        report(Ok(CallOutput {
            requests: requests("http://site.test/", &[&config.params["first"]]),
            ..Default::default()
        }))
    }

    async fn parse(
        &self,
        config: CallConfig,
        _rule: &str,
        page: Arc<Page>,
        _context: PageContext,
    ) -> CallReport {
        self.site.limits.lock().unwrap().push(config.limits);
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
        if self.0.has_no_plugin.load(Ordering::Relaxed) {
            return Err(PluginError::Host {
                doing: "fetch the plugin from a master",
                why: "none is registered".to_owned(),
            });
        }
        let description = Description {
            name: "books".parse().unwrap(),
            version: "1.0.0".parse().unwrap(),
            rules: vec!["page".into()],
            schemas: Vec::new(),
            plans: Vec::new(),
            hosts: Vec::new(),
            params: None,
            limits: BTreeMap::new(),
        };
        let site = self.0.clone();
        Ok(Arc::new(Chain { description, site }))
    }
}

/// Site that has every page and answers once per second.
pub(super) struct Site {
    clock: RuntimeClock,
    /// Requests in order.
    pub(super) asked: Mutex<Vec<FetchRequest>>,
    /// Limits with which the rule was called for each page.
    pub(super) limits: Mutex<Vec<Limits>>,
    /// Time before which the next page is of no use.
    pub(super) not_before: Mutex<Option<Duration>>,
    /// Object store that stops answering before the next page ends.
    pub(super) hangs: Mutex<Option<Arc<Hanging>>>,
    /// True if the site takes requests and answers none.
    pub(super) is_mute: AtomicBool,
    /// True if the plugin is not available.
    pub(super) has_no_plugin: AtomicBool,
    /// Present moments with which `root` was called.
    pub(super) roots: Mutex<Vec<UnixMillis>>,
}

#[async_trait]
impl Fetch for Site {
    async fn fetch(&self, request: FetchRequest) -> Result<Fetched, Failure> {
        let url = &request.url;
        self.asked.lock().unwrap().push(request.clone());
        if self.is_mute.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        if let Some(tape) = &request.tape {
            tape.push(exchange(url));
        }
        Ok(Fetched {
            answer: Answer::Page(page(url, url, 200)),
            host_ready_at: self.clock.unix_millis() + 1_000,
            delay_by: DelaySource::default(),
        })
    }

    fn per_host(&self, _host: &Url, _delay: Option<Duration>) -> u32 {
        1
    }
}

/// Returns the exchange of a page, for an archive.
fn exchange(url: &Url) -> Exchange {
    Exchange {
        url: url.clone(),
        method: "GET".to_owned(),
        request_headers: Vec::new(),
        request_body: Default::default(),
        status: 200,
        headers: Vec::new(),
        body: Default::default(),
        body_form: BodyForm::Sent,
        began_at: 0,
        ended_at: 0,
        record: Default::default(),
    }
}

pub(super) struct Bench {
    pub(super) parts: Arc<AgentParts>,
    pub(super) store: Arc<FaultyStore>,
    pub(super) data: DataRoot,
    pub(super) objects: Arc<Hanging>,
    pub(super) site: Arc<Site>,
    /// Number of background tasks of an agent that crawls nothing.
    pub(super) n_tasks: usize,
    scope: TaskScope,
    _folder: tempfile::TempDir,
}

impl Bench {
    pub(super) async fn new() -> Self {
        Self::after(async |_, _| {}).await
    }

    /// Creates a bench whose agent starts after `before` has run.
    pub(super) async fn after(before: impl AsyncFnOnce(&AgentParts, &FaultyStore)) -> Self {
        Self::made(|_parts| {}, before).await
    }

    /// Creates a bench whose agent has other parts.
    pub(super) async fn with_parts(change: impl FnOnce(&mut AgentParts)) -> Self {
        Self::made(change, async |_parts: &AgentParts, _store: &FaultyStore| {}).await
    }

    async fn made(
        change: impl FnOnce(&mut AgentParts),
        before: impl AsyncFnOnce(&AgentParts, &FaultyStore),
    ) -> Self {
        let clock = RuntimeClock(Instant::now());
        let site = Arc::new(Site {
            clock,
            asked: Mutex::default(),
            limits: Mutex::default(),
            not_before: Mutex::default(),
            hangs: Mutex::default(),
            is_mute: AtomicBool::default(),
            has_no_plugin: AtomicBool::default(),
            roots: Mutex::default(),
        });
        let objects = Arc::new(Hanging::new(Arc::new(InMemory::new())));
        let (folder, store, mut parts) = parts(Arc::new(OneRule(site.clone())), site.clone());
        parts.clock = Arc::new(clock);
        let settings = DurableSettings::default();
        parts.frontiers = Arc::new(Frontiers::new(objects.clone(), settings));
        let scope = TaskScope::new();
        let registered = watch::Sender::new(None);
        parts.registered = registered.subscribe();
        let stop = scope.stop_signal();
        let node = store.clone();
        scope.spawn("registration", async move {
            let _stopped = stop
                .run_until_cancelled(stay_registered(node, registered))
                .await;
        });
        change(&mut parts);
        let parts = Arc::new(parts);
        before(&parts, &store).await;
        scope.spawn("agent", run(parts.clone(), scope.stop_signal()));
        let mut bench = Self {
            parts,
            store,
            data: data_in(&folder),
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

    /// Lets this much time pass, with everything that happens in it.
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

    pub(super) async fn want(&self, wanted: Wanted) {
        let txn = wanted.txn(&self.parts);
        self.parts.catalog.store().commit(txn).await.unwrap();
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

    /// Returns the epoch of the crawl that others see, if there is one.
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
        self.parts.crawls.is_open(shard())
    }

    pub(super) fn n_asked(&self) -> usize {
        self.site.asked.lock().unwrap().len()
    }

    /// Returns the requested paths, in order.
    pub(super) fn asked(&self) -> Vec<String> {
        let asked = self.site.asked.lock().unwrap();
        asked.iter().map(|r| r.url.path().to_owned()).collect()
    }

    /// Returns the number of calls of `root`.
    pub(super) fn n_roots(&self) -> usize {
        self.site.roots.lock().unwrap().len()
    }

    /// Returns the number of lines in the files of items.
    pub(super) fn n_items(&self) -> usize {
        let items = self.data.items_folder(shard().resource).unwrap();
        let folder = items.join(shard().shard.to_string());
        let files = std::fs::read_dir(folder).into_iter().flatten();
        let read = |file: std::io::Result<std::fs::DirEntry>| {
            std::fs::read_to_string(file.unwrap().path()).unwrap()
        };
        files.map(|file| read(file).lines().count()).sum()
    }

    pub(super) fn is_registered(&self) -> bool {
        let registered = self.parts.registered.borrow();
        registered.as_ref().is_some_and(Term::is_held)
    }

    /// Opens the frontier, as the next owner would.
    pub(super) async fn steal(&self) -> Result<(), FrontierError> {
        let settings = DurableSettings::default();
        let frontiers = Arc::new(Frontiers::new(self.objects.clone(), settings));
        let storage_epoch = frontiers.storage_epoch(shard()).await?;
        let open_options = OpenOptions {
            cluster: self.parts.cluster.clone(),
            plugin: Digest::of(b""),
            created: true,
            storage_epoch,
            clock: self.parts.clock.clone(),
            ..OpenOptions::first(shard())
        };
        frontiers.open(open_options).await?.close().await
    }

    pub(super) async fn stop(self) {
        let cut = self.scope.stop(Duration::from_secs(60)).await;
        assert!(cut.is_empty(), "{cut:?}");
    }
}

/// Keeps a node's lease, and registers it anew when it was lost.
pub(super) async fn stay_registered(
    store: Arc<FaultyStore>,
    registered: watch::Sender<Option<Term>>,
) {
    let renewals = TaskScope::new();
    loop {
        match LeaseKeeper::grant(store.clone(), LEASE_TTL, &renewals).await {
            Ok(lease) => {
                registered.send_replace(Some(lease.term()));
                lease.lost().cancelled().await;
            }
            Err(_away) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

pub(super) fn data_in(folder: &tempfile::TempDir) -> DataRoot {
    DataRoot::open(&folder.path().display().to_string()).unwrap()
}

/// Creates all dependencies of an agent, in a folder that is removed with the test.
pub(super) fn parts(
    plugins: Arc<dyn LoadRules>,
    fetch: Arc<dyn Fetch>,
) -> (tempfile::TempDir, Arc<FaultyStore>, AgentParts) {
    let folder = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(&folder.path().join("store"), Settings::default()).unwrap();
    let store = Arc::new(FaultyStore::new(store));
    let data = data_in(&folder);
    let settings = DurableSettings::default();
    let node = Node {
        id: "worker-1".parse().unwrap(),
        role: Role::Worker,
        address: "127.0.0.1:1".to_owned(),
        http: String::new(),
        pprof: String::new(),
        incarnation: Incarnation(1),
        labels: BTreeMap::new(),
        capacity: 1,
        version: "0".to_owned(),
        interface: String::new(),
        draining: false,
        started_at: 0,
        call_token: CallToken::default(),
        shares_turns: false,
        tls: false,
    };
    let parts = AgentParts {
        node,
        registered: watch::Sender::new(None).subscribe(),
        catalog: Catalog::new(store.clone(), Keys::default()),
        cluster: "c1".to_owned(),
        frontiers: Arc::new(Frontiers::new(data.object_store(), settings)),
        data: data.clone(),
        sinks: Arc::new(LineFolders::new(
            data.items_root().unwrap(),
            LineSettings::default(),
        )),
        plugins,
        fetch,
        clock: Arc::new(SystemClock),
        links: Arc::new(NoOtherWorker),
        limit_ceilings: LimitOverrides::default(),
        memory: Memory::unwatched(),
        tracer: Default::default(),
        crawls: Crawls::default(),
    };
    (folder, store, parts)
}

/// Links of a cluster with one worker.
struct NoOtherWorker;

#[async_trait]
impl SendLinks for NoOtherWorker {
    async fn send(&self, worker: &Node, _links: LinkDelivery) -> Result<u64, LinkDeliveryError> {
        panic!("links for {worker:?}")
    }
}

/// Assigns a shard whose record was `present` before.
pub(super) async fn assign(
    parts: &AgentParts,
    present: ShardRecord,
    epoch: Epoch,
    generation: Generation,
    crawl: CrawlSettings,
) {
    let wanted = Wanted {
        present: Some(present),
        epoch,
        generation,
        crawl,
        ..Wanted::default()
    };
    let txn = wanted.txn(parts);
    parts.catalog.store().commit(txn).await.unwrap();
}

/// Assignment as a test wants it.
pub(super) struct Wanted {
    pub(super) name: &'static str,
    pub(super) id: u64,
    pub(super) worker: &'static str,
    pub(super) incarnation: u64,
    /// Present record. If `None`, the shard has had no owner before.
    pub(super) present: Option<ShardRecord>,
    pub(super) epoch: Epoch,
    pub(super) generation: Generation,
    /// Limits as JSON.
    pub(super) limits: &'static str,
    pub(super) crawl: CrawlSettings,
    /// Number of its first page.
    pub(super) first: u64,
    /// Bytes of its plugin.
    pub(super) plugin: &'static str,
    /// Number of the shard, and the number of shards.
    pub(super) shard: (u32, u32),
    pub(super) run: u64,
    /// First run with this number of shards.
    pub(super) resharded_at: u64,
    pub(super) run_started_at: Option<UnixMillis>,
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            name: "books",
            id: shard().resource.0,
            worker: "worker-1",
            incarnation: 1,
            present: None,
            epoch: Epoch(1),
            generation: Generation(1),
            limits: "{}",
            crawl: settings(),
            first: 0,
            plugin: "",
            shard: (0, 1),
            run: 1,
            resharded_at: 1,
            run_started_at: None,
        }
    }
}

impl Wanted {
    /// Returns the transaction that a master would write.
    pub(super) fn txn(self, parts: &AgentParts) -> Txn {
        let id = ShardId {
            resource: ResourceId(self.id),
            shard: Shard(self.shard.0),
        };
        let name: ResourceName = self.name.parse().unwrap();
        let resource = Resource {
            requests: Vec::new(),
            id: id.resource,
            assigned_node: String::new(),
            creation_time: 0,
            generation: self.generation,
            run: Run(self.run),
            resharded_at: Run(self.resharded_at),
            run_started_at: self.run_started_at,
            paused: false,
            pinned: Some(PinnedPlugin {
                version: "1.0.0".parse().unwrap(),
                digest: Digest::of(self.plugin.as_bytes()),
                interface: String::new(),
            }),
            spec: serde_json::from_value(json!({
                "name": name,
                "plugin": "books",
                "params": {"first": self.first.to_string()},
                "limits": serde_json::from_str::<serde_json::Value>(self.limits).unwrap(),
                "crawl": self.crawl,
                "placement": {"shards": self.shard.1},
            }))
            .unwrap(),
        };
        let present = self.present;
        let shard = ShardRecord {
            owner: Some(Owner {
                node: self.worker.parse().unwrap(),
                incarnation: Incarnation(self.incarnation),
            }),
            epoch: self.epoch,
            state: ShardState::Assigned,
            ..present.unwrap_or_else(|| ShardRecord::new(name.clone()))
        };
        let incarnation = Incarnation(self.incarnation);
        let mirror = Assignment::of(&resource, self.epoch, incarnation, Order::Crawl);
        let keys = parts.catalog.keys();
        let worker = self.worker.parse().unwrap();
        Txn::new()
            .put(keys.resource(&name), encode(&resource))
            .put(keys.shard(id), encode(&shard))
            .put(keys.assignment(&worker, id), encode(&mirror))
    }
}
