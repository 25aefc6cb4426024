//! Tests of the item streams that a caller sees, with a twin of the frontiers and real line files.

use std::sync::Mutex;

use futures::FutureExt as _;
use serde_json::value::RawValue;

use super::super::tests::bench::{Bench, bench, check_refused};
use super::*;
use crate::Code;
use crawler_frontier::durable::{DurableSettings, Frontiers, OpenOptions};
use crawler_frontier::reader::pool::Readers;
use crawler_frontier::{Frontier as _, FrontierError, ItemOutbox as _};
use crawler_model::crawl::ItemKey;
use crawler_model::id::{Epoch, Shard};
use crawler_model::resource::{Deleting, ShardId};
use crawler_sink::Sink as _;
use crawler_sink::items::{Extent, ItemStore as _};
use crawler_sink::lines::{LineFiles, LineFolders, LineSettings};
use crawler_store::Txn;
use crawler_store::catalog::{Versioned, encode};

/// Answers of the frontiers.
#[derive(Default)]
struct Said {
    /// Extents according to readers that stay open, a moment behind.
    extents: Extents,
    /// Extents according to readers that are opened now.
    fresh: Extents,
    is_over: bool,
    fails: bool,
    n_asked: u32,
}

#[derive(Clone, Default)]
struct Twin(Arc<Mutex<Said>>);

#[async_trait]
impl Sources for Twin {
    async fn is_over(&mut self, _run: Run) -> Result<bool, ControlError> {
        Ok(self.0.lock().unwrap().is_over)
    }

    async fn extents(&mut self, last: bool) -> Result<Arc<Extents>, ControlError> {
        let mut said = self.0.lock().unwrap();
        said.n_asked += 1;
        if said.fails {
            return Err(FrontierError::Missing { shard: shard(7) }.into());
        }
        let extents = if last { &said.fresh } else { &said.extents };
        Ok(Arc::new(extents.clone()))
    }
}

fn shard(id: u64) -> ShardId {
    ShardId::only(ResourceId(id))
}

fn record(n: usize) -> ItemRecord {
    ItemRecord {
        key: ItemKey(format!("key-{n}")),
        url: "http://a.test/".into(),
        rule: "page".into(),
        schema: "thing".into(),
        run: Run(1),
        fetched_at: 7,
        item: RawValue::from_string("{}".into()).unwrap(),
        change: None,
    }
}

/// Writes items, and makes them visible to readers that are opened from now on.
async fn write(twin: &Twin, files: &mut LineFiles, range: std::ops::Range<usize>) {
    let records: Vec<ItemRecord> = range.map(record).collect();
    let mark = files.write(0, &records).await.unwrap().mark.unwrap();
    let mut said = twin.0.lock().unwrap();
    let extent = said.fresh.entry(Shard(0));
    let Extent::Marks(marks) = extent.or_insert(Extent::Marks(Vec::new())) else {
        panic!("marks")
    };
    marks.retain(|known| known.key != mark.key);
    marks.push(mark);
}

/// Makes the items visible to open readers too.
fn catch_up(twin: &Twin) {
    let mut said = twin.0.lock().unwrap();
    said.extents = said.fresh.clone();
}

async fn next(items: &mut ItemsOfShards, n: usize) -> Vec<String> {
    let items = items.take(n).map_ok(|(_, item)| item.key.0);
    items.try_collect().await.unwrap()
}

fn keys(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|n| format!("key-{n}")).collect()
}

#[tokio::test(start_paused = true)]
async fn whoever_follows_gets_each_item_once_across_owners_and_the_last_ones_too() {
    let folder = tempfile::tempdir().unwrap();
    let open = |storage_epoch| {
        let folder = folder.path().join("7/0");
        LineFiles::open(folder, storage_epoch, LineSettings::default())
    };
    let twin = Twin::default();
    let lines = LineFolders::new(folder.path().to_owned(), LineSettings::default());
    let reader = lines.reader(ResourceId(7), Run(1));
    let mut items = read(reader, Run(1), Box::new(twin.clone()), None);
    assert!(items.next().now_or_never().is_none());
    let mut first = open(9);
    write(&twin, &mut first, 0..1_200).await;
    catch_up(&twin);
    assert_eq!(next(&mut items, 1_200).await, keys(0..1_200));
    // The owner ends without a mark for these items; the next one writes them again.
    first
        .write(0, &[record(1_200), record(1_201)])
        .await
        .unwrap();
    let mut second = open(10);
    write(&twin, &mut second, 1_200..1_203).await;
    catch_up(&twin);
    assert_eq!(next(&mut items, 3).await, keys(1_200..1_203));
    let n_asked = twin.0.lock().unwrap().n_asked;
    assert!(n_asked < 10, "asked {n_asked} times");
    write(&twin, &mut second, 1_203..1_205).await;
    twin.0.lock().unwrap().is_over = true;
    assert_eq!(next(&mut items, 9).await, keys(1_203..1_205));
    assert!(items.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_frontier_that_cannot_be_read_ends_the_items_with_its_condition() {
    let folder = tempfile::tempdir().unwrap();
    let twin = Twin::default();
    twin.0.lock().unwrap().fails = true;
    let lines = LineFolders::new(folder.path().to_owned(), LineSettings::default());
    let reader = lines.reader(ResourceId(7), Run(1));
    let mut items = read(reader, Run(1), Box::new(twin), None);
    let error = items.next().await.unwrap().unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition);
    assert!(
        error.to_string().starts_with("FrontierMissing: "),
        "{error}"
    );
    assert!(items.next().await.is_none());
}

fn all() -> ItemQuery {
    ItemQuery::default()
}

fn following() -> ItemQuery {
    ItemQuery {
        follow: true,
        ..ItemQuery::default()
    }
}

#[tokio::test]
async fn a_resource_that_no_worker_began_has_no_items() {
    let bench = Bench::new().await;
    bench.push("books@1.0.0").await.unwrap();
    bench.add("a").await.unwrap();
    let items = bench.control.items("a", all()).await.unwrap();
    assert_eq!(items.count().await, 0);
    for unknown in ["b", "12345", "a/b", "a//b"] {
        check_refused(
            bench.control.items(unknown, all()).await.map(drop),
            Code::NotFound,
            &format!("there is no resource {unknown}"),
        );
    }
}

/// Brings a deletion as far as cutting the line files.
async fn cut(bench: &Bench, id: ResourceId) {
    let key = bench.catalog().keys().deleting(id);
    let deleting: Versioned<Deleting> = bench.catalog().read(&key).await.unwrap().unwrap();
    let deleting = Deleting {
        items_cut: true,
        ..deleting.value
    };
    bench.write(Txn::new().put(key, encode(&deleting))).await;
}

#[tokio::test]
async fn items_of_a_deleted_resource_are_read_by_its_id_while_its_frontier_is_taken_apart() {
    let bench = bench().await;
    let id = bench.add("a").await.unwrap().resource.id;
    let folder = bench.control.parts.data.items_folder(id).unwrap().join("0");
    let mut files = LineFiles::open(folder, 4, LineSettings::default());
    files.write(0, &[record(0), record(1)]).await.unwrap();
    bench.delete("a").await.unwrap();
    cut(&bench, id).await;
    let items = bench.control.items(&id.to_string(), following()).await;
    let items = items.unwrap().map_ok(|placed| (Shard(0), placed.item));
    assert_eq!(next(&mut items.boxed(), 9).await, keys(0..2));
}

#[tokio::test]
async fn a_reader_that_was_cut_off_goes_on_in_its_run_whatever_became_of_the_resource() {
    let bench = bench().await;
    let id = bench.add("a").await.unwrap().resource.id;
    let folder = bench.control.parts.data.items_folder(id).unwrap().join("0");
    let mut files = LineFiles::open(folder, 4, LineSettings::default());
    let records: Vec<ItemRecord> = (0..1_200).map(record).collect();
    files.write(0, &records).await.unwrap();
    bench.delete("a").await.unwrap();
    cut(&bench, id).await;
    let next = |name: &'static str, follow, after: Option<String>| {
        let bench = &bench;
        async move {
            let query = ItemQuery {
                follow,
                after: after.map(|text| text.parse().unwrap()),
                ..ItemQuery::default()
            };
            let items = bench.control.items(name, query).await.unwrap();
            let items = items.map_ok(|placed| (placed.item.key.0, placed.next.to_string()));
            items.try_collect::<Vec<_>>().await.unwrap()
        }
    };
    let behind = |n: u64| Some(format!("{id}.1.0:{n}"));
    let rest = next("a", true, behind(1_190)).await;
    let expected = keys(1_190..1_200).into_iter().zip(1_191..);
    let expected: Vec<_> = expected
        .map(|(key, n)| (key, format!("{id}.1.0:{n}")))
        .collect();
    assert_eq!(rest, expected);
    // Earlier versions counted all shards together.
    let rest = next("a", true, Some(format!("{id}.1.1199"))).await;
    assert_eq!(rest, expected[9..]);
    assert_eq!(next("a", true, behind(1_200)).await, []);
    assert_eq!(next("a", true, behind(9_999)).await, []);
    // Another resource of the same name has its own items.
    bench.add("a").await.unwrap();
    assert_eq!(next("a", true, behind(1_199)).await, expected[9..]);
    assert_eq!(next("a", false, None).await, []);
}

#[tokio::test]
async fn an_error_among_the_items_that_are_passed_over_is_told() {
    let error = || ControlError::Frontier(FrontierError::Missing { shard: shard(7) });
    let item = |n| Ok((Shard(0), record(n)));
    let items = stream::iter([item(0), Err(error()), item(1)]).boxed();
    let start = "7.1.0:5".parse().unwrap();
    let first = placed(items, start, ItemQuery::default())
        .next()
        .await
        .unwrap();
    assert!(matches!(first, Err(ControlError::Frontier(_))));
}

/// Checks which items are read after a position, each with the position after it.
async fn check_after(position: &str, order: &[(u32, usize)], expected: &[(usize, &str)]) {
    let items: Vec<Result<_, ControlError>> = order
        .iter()
        .map(|(shard, n)| Ok((Shard(*shard), record(*n))))
        .collect();
    let start = format!("7.1.{position}").parse().unwrap();
    let found: Vec<(String, String)> =
        placed(stream::iter(items).boxed(), start, ItemQuery::default())
            .map_ok(|placed| (placed.item.key.0, placed.next.to_string()))
            .try_collect()
            .await
            .unwrap();
    let expected: Vec<(String, String)> = expected
        .iter()
        .map(|(n, next)| (format!("key-{n}"), format!("7.1.{next}")))
        .collect();
    assert_eq!(found, expected, "{position}");
}

#[tokio::test]
async fn a_reader_gets_each_item_once_in_any_order_of_the_shards() {
    let first = [(0, 0), (1, 10), (0, 1)];
    let all = [(0, "0:1"), (10, "0:1,1:1"), (1, "0:2,1:1")];
    check_after("0:0", &first, &all).await;
    // The next reader finds more of a shard before it comes to the other.
    let next = [(0, 0), (0, 1), (0, 2), (1, 10), (1, 11)];
    let rest = [(1, "0:2,1:1"), (2, "0:3,1:1"), (11, "0:3,1:2")];
    check_after("0:1,1:1", &next, &rest).await;
    check_after("0:2,1:1", &next, &rest[1..]).await;
    // Earlier versions counted all shards together.
    let rest = [(10, "0:3,1:1"), (11, "0:3,1:2")];
    check_after("3", &next, &rest).await;
}

#[tokio::test]
async fn items_of_a_deleted_resource_are_read_by_its_id_before_and_after_its_frontier_goes() {
    let bench = bench().await;
    let id = bench.add("a").await.unwrap().resource.id;
    let data = bench.control.parts.data.clone();
    let shard = ShardId::only(id);
    crate::reconcile::crawl(&data, shard).await;
    bench.delete("a").await.unwrap();
    let count = || async {
        let items = bench.control.items(&id.to_string(), all()).await;
        items.unwrap().try_collect::<Vec<_>>().await.unwrap().len()
    };
    assert_eq!(count().await, 2);
    let mut reconciler = bench.reconciler();
    reconciler.parts.deletion.frontier_min_age = Duration::ZERO;
    let scope = crawler_process::task::TaskScope::new();
    scope.spawn("reconciler", reconciler.run(scope.stop_signal()));
    let key = bench.catalog().keys().deleting(id);
    let gone = async {
        while bench
            .catalog()
            .read::<Deleting>(&key)
            .await
            .unwrap()
            .is_some()
        {
            // The third item waits for its sink; the leader delivers it in the end.
            assert!((2..=3).contains(&count().await));
            tokio::task::yield_now().await;
        }
    };
    let deadline = Duration::from_secs(60);
    tokio::time::timeout(deadline, gone)
        .await
        .expect("taken apart");
    assert!(
        !data
            .folder()
            .unwrap()
            .join("frontiers")
            .join(id.to_string())
            .exists()
    );
    assert_eq!(count().await, 3);
    scope.stop(deadline).await;
}

#[tokio::test(start_paused = true)]
async fn who_follows_a_run_gets_its_last_items_though_another_was_asked_for_meanwhile() {
    Box::pin(check_followed_to_the_end(2)).await;
}

#[tokio::test(start_paused = true)]
async fn who_follows_a_run_comes_to_its_end_without_a_kept_reader() {
    Box::pin(check_followed_to_the_end(1)).await;
}

/// Follows a run, whose last items come after another run was asked for, with a pool of so many readers. Half of them
/// are kept.
async fn check_followed_to_the_end(n_readers: usize) {
    let mut bench = bench().await;
    let objects = bench.data().object_store();
    bench.control.readers = Arc::new(Readers::new(objects, n_readers));
    let id = bench.add("a").await.unwrap().resource.id;
    let data = bench.control.parts.data.clone();
    let shard = shard(id.0);
    // One of three items is not delivered yet.
    crate::reconcile::crawl(&data, shard).await;
    bench.record("a", |record| record.created = true).await;
    let mut items = bench.control.items("a", following()).await.unwrap();
    bench.restart("a").await.unwrap();
    let mut next = async |n| {
        let next = tokio::time::timeout(FOLLOW_PAUSE * 20, items.next());
        let next = next.await.map(|item| item.map(|item| item.unwrap().next));
        let expected = ItemPosition {
            resource: id,
            run: Run(1),
            before: ItemsBefore::ByShard([(Shard(0), n)].into()),
        };
        match next {
            Ok(place) => {
                assert_eq!(place, Some(expected));
                true
            }
            Err(_elapsed) => false,
        }
    };
    assert!(next(1).await && next(2).await && !next(3).await);
    let settings = DurableSettings::default();
    let frontiers = Arc::new(Frontiers::new(data.object_store(), settings));
    let storage_epoch = frontiers.storage_epoch(shard).await.unwrap();
    let open_options = OpenOptions {
        epoch: Epoch(2),
        run: Run(2),
        created: true,
        storage_epoch,
        ..OpenOptions::first(shard)
    };
    let frontier = Box::pin(frontiers.open(open_options)).await.unwrap();
    assert!(!next(3).await);
    let batch = frontier.outbox(&SinkName::lines(), 9).await.unwrap();
    let folder = data.items_folder(id).unwrap().join("0");
    let mut files = LineFiles::open(folder, frontier.storage_epoch(), LineSettings::default());
    let mark = files.write(0, &batch.items).await.unwrap().mark;
    frontier
        .clear_outbox(&SinkName::lines(), batch.end, mark)
        .await
        .unwrap();
    assert!(next(3).await);
    let end = tokio::time::timeout(FOLLOW_PAUSE * 20, items.next());
    assert!(end.await.expect("the end").is_none());
    frontier.close().await.unwrap();
}

/// Writes items of two kinds and two runs, fetched one after the other, as those of a resource that is being deleted.
/// Returns its id.
async fn two_runs(bench: &Bench) -> ResourceId {
    let id = bench.add("a").await.unwrap().resource.id;
    let folder = bench.control.parts.data.items_folder(id).unwrap().join("0");
    let mut files = LineFiles::open(folder, 4, LineSettings::default());
    let records: Vec<ItemRecord> = (0..8)
        .map(|n| ItemRecord {
            run: Run(1 + n as u64 / 4),
            schema: ["book", "author"][n % 2].to_owned(),
            fetched_at: n as u64,
            ..record(n)
        })
        .collect();
    files.write(0, &records).await.unwrap();
    bench.delete("a").await.unwrap();
    cut(bench, id).await;
    id
}

#[tokio::test]
async fn items_are_those_of_a_run_that_meet_the_conditions() {
    let bench = bench().await;
    let id = two_runs(&bench).await;
    let check = async |query: ItemQuery, expected: &[usize]| {
        let items = bench.control.items(&id.to_string(), query).await.unwrap();
        let keys: Vec<String> = items
            .map_ok(|placed| placed.item.key.0)
            .try_collect()
            .await
            .unwrap();
        let expected: Vec<String> = expected.iter().map(|n| format!("key-{n}")).collect();
        assert_eq!(keys, expected);
    };
    let of_run = |run| ItemQuery {
        run: Some(Run(run)),
        ..all()
    };
    check(all(), &[4, 5, 6, 7]).await;
    check(of_run(1), &[0, 1, 2, 3]).await;
    check(of_run(2), &[4, 5, 6, 7]).await;
    let authors = ItemQuery {
        kind: Some("author".to_owned()),
        ..of_run(1)
    };
    check(authors.clone(), &[1, 3]).await;
    check(
        ItemQuery {
            since: Some(2),
            ..authors.clone()
        },
        &[3],
    )
    .await;
    check(
        ItemQuery {
            since: Some(9),
            ..authors.clone()
        },
        &[],
    )
    .await;
    check(
        ItemQuery {
            limit: Some(1),
            ..authors.clone()
        },
        &[1],
    )
    .await;
    check(
        ItemQuery {
            limit: Some(1),
            follow: true,
            ..authors.clone()
        },
        &[1],
    )
    .await;
    // Positions count all items of the run, so that they are those of any query.
    let after: ItemPosition = format!("{id}.1.0:2").parse().unwrap();
    check(
        ItemQuery {
            after: Some(after),
            ..authors
        },
        &[3],
    )
    .await;
    check_refused(
        bench
            .control
            .items(&id.to_string(), of_run(3))
            .await
            .map(drop),
        Code::NotFound,
        &format!("resource {id} has no run 3: the newest is 2"),
    );
}

#[tokio::test]
async fn a_kind_that_no_plugin_has_is_refused() {
    let bench = bench().await;
    bench.add("a").await.unwrap();
    let query = ItemQuery {
        kind: Some("bok".to_owned()),
        ..all()
    };
    check_refused(
        bench.control.items("a", query.clone()).await.map(drop),
        Code::InvalidArgument,
        "plugin books has no items of kind \"bok\"",
    );
    // Items of an earlier run may be of another plugin.
    bench.restart("a").await.unwrap();
    let earlier = ItemQuery {
        run: Some(Run(1)),
        ..query
    };
    assert_eq!(
        bench
            .control
            .items("a", earlier)
            .await
            .unwrap()
            .count()
            .await,
        0
    );
}
