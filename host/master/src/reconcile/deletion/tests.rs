//! Tests of the remains of a deleted resource over time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use object_store::ObjectStoreExt as _;
use tempfile::TempDir;

use super::super::ReconcileParts;
use super::*;
use crate::cleanup::DataRootCleanup;
use crate::placement::Strategy;
use crate::reconcile::{DeletionSettings, PlacementSettings};
use crate::replica::Replica;
use crate::twin::{Answer, Workers};
use crawler_data::DataRoot;
use crawler_frontier::durable::{DurableSettings, Frontiers, OpenOptions};
use crawler_frontier::suite::hanging::{Hanging, Hangs};
use crawler_frontier::suite::{item_of, new, of_another_format, parsed, ready, take};
use crawler_frontier::{Frontier, path_of};
use crawler_model::crawl::UnixMillis;
use crawler_model::id::{Digest, Epoch, Incarnation, ResourceId, Run};
use crawler_model::node::{CallToken, Node, Role};
use crawler_model::resource::{Owner, ShardId};
use crawler_model::settings::SinkName;
use crawler_model::status::CrawlStatus;
use crawler_process::clock::Clock;
use crawler_process::task::TaskScope;
use crawler_sink::Sink as _;
use crawler_sink::items::{Extent, Extents, ItemStore};
use crawler_sink::lines::{LineFiles, LineFolders, LineSettings};
use crawler_store::catalog::Catalog;
use crawler_store::election::take_lead;
use crawler_store::embedded::{EmbeddedStore, Settings};
use crawler_store::keys::Keys;

const MIN_AGE: Duration = Duration::from_secs(3_600);
const DELETED_AT: UnixMillis = 5_000_000;

/// Clock that shows the time it is set to plus, under a paused clock, the time that has passed since the start.
struct TestClock {
    millis: AtomicU64,
    began: tokio::time::Instant,
    n_asked: AtomicUsize,
}

impl Clock for TestClock {
    fn unix_nanos(&self) -> u64 {
        self.n_asked.fetch_add(1, Ordering::Relaxed);
        let passed = u64::try_from(self.began.elapsed().as_nanos()).unwrap();
        self.millis.load(Ordering::Relaxed) * 1_000_000 + passed
    }
}

struct Bench {
    reconciler: Reconciler,
    data: Arc<DataRoot>,
    clock: Arc<TestClock>,
    workers: Arc<Workers>,
    unresponsive: UnresponsiveWorkers,
    folder: TempDir,
}

fn shard() -> ShardId {
    ShardId::only(ResourceId(7))
}

fn owner() -> Owner {
    Owner {
        node: "worker-1".parse().unwrap(),
        incarnation: Incarnation(1),
    }
}

impl Bench {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(&folder.path().join("store"), Settings::default()).unwrap();
        let data = folder.path().join("data");
        let data = Arc::new(DataRoot::open(data.to_str().unwrap()).unwrap());
        let clock = Arc::new(TestClock {
            millis: AtomicU64::new(DELETED_AT),
            began: tokio::time::Instant::now(),
            n_asked: AtomicUsize::default(),
        });
        let workers = Arc::new(Workers::at_rest());
        let catalog = Catalog::new(Arc::new(store), Keys::default());
        let election_status = take_lead(&catalog).await;
        let leadership = election_status.borrow().leadership().unwrap().clone();
        let parts = ReconcileParts {
            catalog: catalog.clone(),
            cleanup: Arc::new(DataRootCleanup {
                objects: data.object_store(),
                items: line_folders(&data),
                data: data.clone(),
            }),
            clock: clock.clone(),
            deletion: DeletionSettings {
                frontier_min_age: MIN_AGE,
            },
            workers: workers.clone(),
            replica: Replica::new(catalog.clone(), Strategy::default()).0,
            placement: PlacementSettings::default(),
            lease_ttl: Duration::from_secs(10),
            counts: Arc::default(),
        };
        let reconciler = Reconciler { parts, leadership };
        Self {
            reconciler,
            data,
            clock,
            workers,
            unresponsive: UnresponsiveWorkers::default(),
            folder,
        }
    }

    /// Runs the reconciler and the replica that it follows. Returns the folder of the data.
    fn run(mut self, scope: &TaskScope) -> TempDir {
        let catalog = self.reconciler.parts.catalog.clone();
        let (replica, feeder) = Replica::new(catalog, Strategy::default());
        scope.spawn("replica", feeder.run(scope.stop_signal()));
        self.reconciler.parts.replica = replica;
        scope.spawn("reconciler", self.reconciler.run(scope.stop_signal()));
        self.folder
    }

    async fn crawl(&self) {
        crawl(&self.data, shard()).await;
    }

    fn items(&self) -> std::path::PathBuf {
        let items = self.data.items_folder(shard().resource).unwrap();
        items.join(shard().shard.to_string())
    }

    fn frontier(&self) -> std::path::PathBuf {
        self.folder
            .path()
            .join("data")
            .join(path_of(shard()).as_ref())
    }

    async fn put(&self, deleting: &Deleting) {
        let key = self.reconciler.parts.catalog.keys().deleting(deleting.id);
        let txn = Txn::new().put(key, encode(deleting));
        self.reconciler
            .parts
            .catalog
            .store()
            .commit(txn)
            .await
            .unwrap();
    }

    async fn delete(&self, purge: bool, owners: Vec<Owner>) {
        let deleting = Deleting {
            name: "books".parse().unwrap(),
            id: shard().resource,
            requests: Vec::new(),
            owners,
            deleted_at: DELETED_AT,
            purge,
            stopped_at: None,
            items_cut: false,
            rest: None,
        };
        self.put(&deleting).await;
    }

    async fn register_worker(&self) {
        let node = Node {
            id: owner().node,
            role: Role::Worker,
            address: "worker-1:1".into(),
            http: String::new(),
            pprof: String::new(),
            incarnation: owner().incarnation,
            labels: Default::default(),
            capacity: 1,
            version: "0".into(),
            interface: String::new(),
            draining: false,
            started_at: 0,
            call_token: CallToken::default(),
            shares_turns: false,
            tls: false,
        };
        let key = self
            .reconciler
            .parts
            .catalog
            .keys()
            .node(Role::Worker, &node.id);
        let txn = Txn::new().put(key, encode(&node));
        self.reconciler
            .parts
            .catalog
            .store()
            .commit(txn)
            .await
            .unwrap();
    }

    async fn record(&self) -> Option<Deleting> {
        let key = self
            .reconciler
            .parts
            .catalog
            .keys()
            .deleting(shard().resource);
        let record = self.reconciler.parts.catalog.read(&key).await.unwrap();
        record.map(|record| record.value)
    }

    fn set_age(&self, age: Duration) {
        let age = u64::try_from(age.as_millis()).unwrap();
        self.clock.millis.store(DELETED_AT + age, Ordering::Relaxed);
    }

    /// Makes passes until nothing is due any more.
    async fn settle(&self) -> Duration {
        loop {
            let catalog = &self.reconciler.parts.catalog;
            let observed = Observed::read(catalog, Strategy::default()).await.unwrap();
            let taken = self.reconciler.delete_due(&observed, &self.unresponsive);
            let pause = taken.await.unwrap();
            if !pause.is_zero() {
                return pause;
            }
        }
    }

    async fn n_items(&self, extent: Extent) -> usize {
        let extents = Arc::new(Extents::from([(shard().shard, extent)]));
        let mut reader = line_folders(&self.data).reader(shard().resource, Run(1));
        reader.read(&extents, 99).await.unwrap().items.len()
    }
}

/// Returns the items in line files.
pub(crate) fn line_folders(data: &DataRoot) -> Arc<dyn ItemStore> {
    let settings = LineSettings::default();
    Arc::new(LineFolders::new(data.items_root().unwrap(), settings))
}

/// Crawls a page, with two items that the frontier knows to be delivered and one that it does not.
pub(crate) async fn crawl(data: &DataRoot, shard: ShardId) {
    let settings = DurableSettings::default();
    let frontiers = Arc::new(Frontiers::new(data.object_store(), settings));
    let open_options = OpenOptions {
        created: false,
        storage_epoch: 0,
        ..OpenOptions::first(shard)
    };
    let frontier = Box::pin(frontiers.open(open_options)).await.unwrap();
    let storage_epoch = frontier.storage_epoch();
    let frontier: Arc<dyn Frontier> = Arc::new(frontier);
    frontier.seed(vec![new("http://a.test/")]).await.unwrap();
    let mut commit = parsed(ready(take(&frontier, 0, 1).await));
    commit.result.items = (0..3).map(|n| item_of(&commit.claim, n)).collect();
    frontier.commit(commit).await.unwrap();
    frontier.settle().await.unwrap();
    let batch = frontier.outbox(&SinkName::lines(), 9).await.unwrap();
    let folder = data.items_folder(shard.resource).unwrap();
    let folder = folder.join(shard.shard.to_string());
    let mut files = LineFiles::open(folder, storage_epoch, LineSettings::default());
    let mark = files.write(0, &batch.items[..2]).await.unwrap().mark;
    frontier
        .clear_outbox(&SinkName::lines(), batch.end - 1, mark)
        .await
        .unwrap();
    files.write(0, &batch.items[2..]).await.unwrap();
    frontier.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_frontier_goes_at_its_age_and_the_items_stay_as_they_were_read() {
    let bench = Bench::new().await;
    bench.crawl().await;
    bench.delete(false, vec![owner()]).await;
    assert_eq!(bench.settle().await, RESYNC);
    let stopped = bench.record().await.unwrap();
    assert!(stopped.stopped_at.is_some());
    bench.set_age(MIN_AGE - Duration::from_secs(20));
    let left = bench.settle().await;
    assert!(left <= Duration::from_secs(20), "{left:?}");
    assert_eq!(bench.n_items(Extent::Whole).await, 3);
    assert!(bench.frontier().join("manifest").exists());
    bench.set_age(MIN_AGE);
    assert_eq!(bench.settle().await, RESYNC);
    assert!(!bench.frontier().parent().unwrap().exists());
    assert_eq!(bench.record().await, None);
    // The item that had waited for its sink is there too, once.
    assert_eq!(bench.n_items(Extent::Whole).await, 3);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_deletion_takes_earlier_runs_along() {
    let bench = Bench::new().await;
    let catalog = bench.reconciler.parts.catalog.clone();
    let runs = catalog.keys().runs(shard().resource);
    let txn = Txn::new().put(runs.clone(), "{}");
    catalog.store().commit(txn).await.unwrap();
    bench.delete(false, vec![owner()]).await;
    bench.settle().await;
    bench.set_age(MIN_AGE);
    bench.settle().await;
    assert_eq!(bench.record().await, None);
    assert_eq!(catalog.store().get(&runs).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_frontier_of_another_version_is_left_to_a_leader_that_can_read_it() {
    let bench = Bench::new().await;
    bench.crawl().await;
    of_another_format(&bench.data.object_store(), shard()).await;
    bench.delete(false, vec![owner()]).await;
    bench.settle().await;
    bench.set_age(MIN_AGE * 2);
    bench.settle().await;
    // Without the frontier, the items that no sink has would be lost.
    assert!(bench.frontier().join("manifest").exists());
    assert!(bench.record().await.is_some_and(|record| !record.items_cut));
}

#[tokio::test(start_paused = true)]
async fn items_that_no_sink_has_are_delivered_however_often_the_step_is_done() {
    let bench = Bench::new().await;
    bench.crawl().await;
    // The sink was away during the whole crawl.
    std::fs::remove_dir_all(bench.items()).unwrap();
    let id = shard().resource;
    let cleanup = &bench.reconciler.parts.cleanup;
    for by in [8, 9] {
        cleanup.settle_items(id, by).await.unwrap();
        assert_eq!(bench.n_items(Extent::Whole).await, 0, "nobody reads it yet");
    }
    for _ in 0..2 {
        cleanup.publish_items(id, 8).await.unwrap();
        assert_eq!(bench.n_items(Extent::Whole).await, 1);
    }
    // A process that slept in the middle of another try does no harm.
    cleanup.settle_items(id, 10).await.unwrap();
    assert_eq!(bench.n_items(Extent::Whole).await, 1);
    std::fs::remove_dir_all(bench.data.items_folder(shard().resource).unwrap()).unwrap();
    bench.delete(false, vec![owner()]).await;
    bench.set_age(MIN_AGE);
    bench.settle().await;
    bench.set_age(MIN_AGE * 2);
    bench.settle().await;
    assert_eq!(bench.n_items(Extent::Whole).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_gives_no_answer_is_asked_seldom_however_much_of_it_was_deleted() {
    let bench = Bench::new().await;
    bench.register_worker().await;
    bench.delete(false, vec![owner()]).await;
    let first = bench.record().await.unwrap();
    for id in 100..150 {
        let id = ResourceId(id);
        bench
            .put(&Deleting {
                id,
                ..first.clone()
            })
            .await;
    }
    bench.workers.set(Answer::Away);
    let mut pauses = Vec::new();
    for n in 1..=12 {
        let pause = bench.settle().await;
        // Questions at the same time do not know of each other.
        let n_asked = bench.workers.n_asked();
        assert!(n_asked <= n * DELETIONS_AT_ONCE, "{n_asked} in {n} passes");
        assert_eq!(bench.settle().await, pause);
        assert_eq!(bench.workers.n_asked(), n_asked);
        tokio::time::sleep(pause).await;
        pauses.push(pause);
    }
    assert!(pauses[0] <= OWNER_PAUSE, "{pauses:?}");
    assert!(pauses[11] >= 15 * Duration::from_secs(1), "{pauses:?}");
    bench.workers.set(Answer::Crawls(Vec::new()));
    bench.settle().await;
    assert!(bench.record().await.unwrap().stopped_at.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_purge_waits_for_those_who_may_still_write_and_the_frontier_for_its_age() {
    let bench = Bench::new().await;
    bench.crawl().await;
    let files = bench.data.files(shard().resource);
    let keep = || files.keep(Digest::of(b"abc"), "abc".into());
    let kept = bench.data.folder().unwrap().join("files");
    let kept = kept.join(shard().resource.to_string());
    keep().await.unwrap();
    bench.register_worker().await;
    bench.delete(true, vec![owner()]).await;
    let crawl = CrawlStatus {
        last_errors: Vec::new(),
        name: "books".parse().unwrap(),
        id: shard().resource,
        shard: shard().shard,
        epoch: Epoch(1),
        run: Run(1),
        counts: None,
        in_flight: 0,
        hosts: None,
        limits_used: [].into(),
        waits: None,
    };
    for answer in [Answer::Away, Answer::Crawls(vec![crawl])] {
        bench.workers.set(answer);
        let pause = bench.settle().await;
        assert!(
            pause >= OWNER_PAUSE / 2 && pause <= OWNER_PAUSE,
            "{pause:?}"
        );
        assert!(bench.items().exists() && kept.exists());
        tokio::time::sleep(pause).await;
    }
    bench.set_age(MIN_AGE * 2);
    bench.workers.set(Answer::Crawls(Vec::new()));
    bench.settle().await;
    assert!(!bench.items().exists() && !kept.exists());
    // The age counts from the end of the last process that could write.
    assert!(bench.frontier().join("manifest").exists());
    // A process that slept all the time and has the frontier open goes on until it looks.
    std::fs::create_dir_all(bench.items()).unwrap();
    std::fs::write(bench.items().join("1-1.jsonl"), "{}\n").unwrap();
    keep().await.unwrap();
    bench.set_age(MIN_AGE * 3);
    bench.settle().await;
    assert!(!bench.frontier().exists());
    assert!(!bench.items().exists(), "what was written late");
    assert!(!kept.exists(), "what was written late");
    assert_eq!(bench.record().await, None);
}

#[tokio::test]
async fn a_data_root_that_is_away_holds_a_deletion_up_and_spoils_nothing() {
    let bench = Bench::new().await;
    bench.crawl().await;
    bench.delete(false, Vec::new()).await;
    bench.settle().await;
    bench.set_age(MIN_AGE);
    let (data, aside) = (
        bench.folder.path().join("data"),
        bench.folder.path().join("aside"),
    );
    for items_cut in [false, true] {
        let before = bench.record().await.unwrap();
        assert_eq!(before.items_cut, items_cut);
        std::fs::rename(&data, &aside).unwrap();
        assert_eq!(bench.settle().await, DATA_PAUSE);
        // A folder that was taken away looks as if the items were deleted.
        let cleanup = &bench.reconciler.parts.cleanup;
        cleanup.delete_items(shard().resource).await.unwrap_err();
        std::fs::rename(&aside, &data).unwrap();
        assert_eq!(bench.record().await, Some(before.clone()));
        bench
            .put(&Deleting {
                items_cut: true,
                ..before
            })
            .await;
    }
    bench.settle().await;
    assert_eq!(bench.record().await, None);
    assert!(!bench.frontier().exists());
}

#[tokio::test]
async fn a_frontier_that_cannot_say_what_counts_goes_too_and_its_items_stay() {
    let bench = Bench::new().await;
    bench.crawl().await;
    for manifest in std::fs::read_dir(bench.frontier().join("manifest")).unwrap() {
        std::fs::write(manifest.unwrap().path(), "").unwrap();
    }
    bench.delete(false, Vec::new()).await;
    bench.settle().await;
    bench.set_age(MIN_AGE);
    bench.settle().await;
    assert_eq!(bench.record().await, None);
    assert!(!bench.frontier().exists());
    assert_eq!(bench.n_items(Extent::Whole).await, 3);
}

#[tokio::test]
async fn what_a_kill_left_of_a_frontier_goes_and_other_resources_keep_theirs() {
    let bench = Bench::new().await;
    let objects = bench.data.object_store();
    let other = ShardId::only(ResourceId(70));
    for shard in [shard(), other] {
        let path = path_of(shard).join("wal").join("1.sst");
        objects.put(&path, "1".into()).await.unwrap();
    }
    bench.delete(false, Vec::new()).await;
    bench.settle().await;
    let stopped = bench.record().await.unwrap();
    bench
        .put(&Deleting {
            items_cut: true,
            ..stopped
        })
        .await;
    bench.set_age(MIN_AGE);
    bench.settle().await;
    assert_eq!(bench.record().await, None);
    assert!(!bench.frontier().exists());
    let kept = path_of(other).join("wal").join("1.sst");
    objects.head(&kept).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_loop_wakes_when_a_frontier_may_go_and_not_all_the_time() {
    let mut bench = Bench::new().await;
    // The time differs from that of the loop's regular looks.
    let min_age = MIN_AGE + RESYNC / 2;
    bench.reconciler.parts.deletion.frontier_min_age = min_age;
    let data = bench.data.clone();
    let path = path_of(shard()).join("wal").join("1.sst");
    data.object_store().put(&path, "1".into()).await.unwrap();
    bench.delete(false, Vec::new()).await;
    let (frontier, clock) = (bench.frontier(), bench.clock.clone());
    let scope = TaskScope::new();
    let began = tokio::time::Instant::now();
    let _folder = bench.run(&scope);
    while frontier.exists() {
        assert!(began.elapsed() < min_age + Duration::from_secs(5));
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(began.elapsed() >= min_age);
    let n_turns = clock.n_asked.load(Ordering::Relaxed);
    assert!(n_turns < 100, "{n_turns} passes");
    scope.stop(Duration::from_secs(10)).await;
}

#[tokio::test(start_paused = true)]
async fn a_frontier_that_does_not_answer_holds_up_neither_placement_nor_other_deletions() {
    let mut bench = Bench::new().await;
    bench.crawl().await;
    bench.delete(false, Vec::new()).await;
    bench.settle().await;
    bench.set_age(MIN_AGE);
    let other = Deleting {
        id: ResourceId(70),
        ..bench.record().await.unwrap()
    };
    bench.put(&other).await;
    let store = Arc::new(Hanging::new(bench.data.object_store()));
    store.set(Hangs::All);
    bench.reconciler.parts.cleanup = Arc::new(DataRootCleanup {
        items: line_folders(&bench.data),
        data: bench.data.clone(),
        objects: store.clone(),
    });
    let catalog = bench.reconciler.parts.catalog.clone();
    let stray = catalog.keys().assignment(&owner().node, shard());
    let txn = Txn::new().put(stray.clone(), "{}");
    catalog.store().commit(txn).await.unwrap();
    let is_gone = async |key: &str| {
        let listed = catalog.store().list(key).await.unwrap();
        listed.entries.is_empty()
    };
    let began = tokio::time::Instant::now();
    let scope = TaskScope::new();
    let _folder = bench.run(&scope);
    let wait_for = async |key: &str, deadline: Duration| {
        while !is_gone(key).await {
            assert!(began.elapsed() < deadline, "{key} is there");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    wait_for(&stray, Duration::from_secs(1)).await;
    let keys = catalog.keys();
    // Each step takes one pass.
    wait_for(&keys.deleting(other.id), DATA_DEADLINE + DATA_PAUSE).await;
    assert!(!is_gone(&keys.deleting(shard().resource)).await);
    store.set(Hangs::Nothing);
    let deadline = began.elapsed() + DATA_DEADLINE + DATA_PAUSE * 2;
    wait_for(&keys.deleting(shard().resource), deadline).await;
    scope.stop(Duration::from_secs(10)).await;
}
