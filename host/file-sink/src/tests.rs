//! Tests of what readers see of files, whoever wrote them and whenever the writers ended.

use std::collections::BTreeMap;
use std::ops::Range;

use futures::TryStreamExt as _;
use object_store::ObjectStoreExt as _;
use object_store::memory::InMemory;
use serde_json::value::RawValue;

use super::*;
use crawler_model::crawl::ItemKey;
use crawler_model::frontier::SinkMark;
use crawler_model::id::{ResourceId, Run};
use crawler_model::plugin::Schema;

mod bucket;
mod compaction;

pub(crate) fn record(n: u32, json: &str) -> ItemRecord {
    ItemRecord {
        key: ItemKey(format!("key-{n}")),
        url: format!("http://a.test/{n}"),
        rule: "page".to_owned(),
        schema: "thing".to_owned(),
        run: Run(1),
        fetched_at: 1_795_881_600_123,
        item: RawValue::from_string(json.to_owned()).unwrap(),
        change: None,
    }
}

/// Returns items of three kinds, which take turns.
fn records(range: Range<u32>) -> Vec<ItemRecord> {
    let of_kind = |n: u32| ItemRecord {
        schema: format!("kind-{}", n % 3),
        ..record(n, "{\"a\":1}")
    };
    range.map(of_kind).collect()
}

fn settings(partition: &str) -> FileSettings {
    FileSettings {
        partition: partition.parse().unwrap(),
        ..FileSettings::default()
    }
}

/// Bucket, and the marks that the frontier of one shard keeps.
struct Bench {
    objects: Arc<InMemory>,
    settings: FileSettings,
    marks: Vec<SinkMark>,
}

impl Bench {
    fn new() -> Self {
        Self {
            objects: Arc::new(InMemory::new()),
            settings: settings("{resource}/{kind}"),
            marks: Vec::new(),
        }
    }

    fn delivery(&self) -> Delivery {
        Delivery {
            sink: "out".parse().unwrap(),
            shard: ShardId::only(ResourceId(7)),
            cluster: "c1".to_owned(),
            run: Run(1),
            storage_epoch: 1,
            spec: serde_json::from_str(r#"{"name":"team/books","plugin":"books"}"#).unwrap(),
            schemas: Vec::new(),
            other_kinds: None,
            marks: self.marks.clone(),
        }
    }

    async fn open(&self) -> Box<dyn Sink> {
        let (objects, settings) = (self.objects.clone(), self.settings.clone());
        let sinks = FileSinks::in_bucket(objects, "s3://b".to_owned(), settings).unwrap();
        sinks.open(&self.delivery()).await.unwrap()
    }

    /// Keeps the mark of a write, as a frontier does.
    fn keep(&mut self, written: &Written) {
        self.marks.clear();
        self.marks.extend(written.mark.clone());
    }

    /// Returns a sink that has planned these items, as the frontier knows.
    async fn planned(&mut self, first: u64, items: &[ItemRecord]) -> Box<dyn Sink> {
        let mut sink = self.open().await;
        for _ in 0..2 {
            let written = sink.write(first, items).await.unwrap();
            assert_eq!(written.n_items, 0);
            self.keep(&written);
        }
        sink
    }

    async fn paths(&self) -> Vec<ObjectPath> {
        let all: Vec<_> = self.objects.list(None).try_collect().await.unwrap();
        all.into_iter().map(|object| object.location).collect()
    }

    /// Returns how many times each key is there.
    async fn keys(&self) -> BTreeMap<String, u32> {
        let mut keys = BTreeMap::new();
        for path in self.paths().await {
            let bytes = self.objects.get(&path).await.unwrap().bytes().await;
            let text = String::from_utf8(bytes.unwrap().to_vec()).unwrap();
            for line in text.lines() {
                let record: ItemRecord = serde_json::from_str(line).unwrap();
                *keys.entry(record.key.0).or_default() += 1;
            }
        }
        keys
    }
}

fn once(range: Range<u32>) -> BTreeMap<String, u32> {
    range.map(|n| (format!("key-{n}"), 1)).collect()
}

#[tokio::test]
async fn the_frontier_knows_all_files_before_the_first() {
    let mut bench = Bench::new();
    let items = records(0..5);
    let mut sink = bench.open().await;
    assert_eq!(sink.write(0, &[]).await.unwrap(), Written::default());
    assert_eq!(sink.gathering().max_wait, bench.settings.max_wait);
    let gathers = sink.write(0, &items[..1]).await.unwrap();
    assert_eq!(gathers, announced(&Plan::default()));
    let planned = sink.write(0, &items).await.unwrap();
    assert_eq!(planned.n_items, 0);
    assert_eq!(sink.gathering().max_wait, Duration::ZERO);
    bench.keep(&planned);
    assert!(bench.paths().await.is_empty());
    let plan = Plan::pending(&bench.marks).unwrap().unwrap();
    let folders = [
        "team%2Fbooks/kind-0",
        "team%2Fbooks/kind-1",
        "team%2Fbooks/kind-2",
    ];
    for (path, folder) in plan.paths.iter().zip(folders) {
        assert!(path.starts_with(folder), "{path}");
    }
    // More items have come, which are for the next plan.
    let written = sink.write(0, &records(0..9)).await.unwrap();
    assert_eq!(written.n_items, 5);
    bench.keep(&written);
    assert_eq!(Plan::pending(&bench.marks).unwrap(), None);
    let paths = bench.paths().await;
    let paths: Vec<&str> = paths.iter().map(AsRef::as_ref).collect();
    assert_eq!(paths, plan.paths);
    assert_eq!(bench.keys().await, once(0..5));
}

#[tokio::test]
async fn files_that_are_there_are_taken_over() {
    for n_lost in 0..=3 {
        let mut bench = Bench::new();
        let items = records(0..6);
        let mut first = bench.planned(4, &items).await;
        first.write(4, &items).await.unwrap();
        // The process ended before the last files were written, and others follow with more items or fewer.
        for path in bench.paths().await.into_iter().take(n_lost) {
            bench.objects.delete(&path).await.unwrap();
        }
        let mut second = bench.open().await;
        let asks = second.write(4, &items[..2]).await.unwrap();
        assert_eq!((asks.n_items, asks.mark), (6, None));
        let written = second.write(4, &records(0..9)).await.unwrap();
        assert_eq!(written.n_items, 6);
        assert_eq!(bench.keys().await, once(0..6), "{n_lost} are lost");
        // A late write of the earlier owner, which does not know, changes nothing.
        let mut late = bench.open().await;
        late.write(4, &items).await.unwrap();
        assert_eq!(bench.keys().await, once(0..6), "{n_lost} are lost");
    }
}

#[tokio::test]
async fn another_schema_does_not_disturb_a_takeover() {
    let mut bench = Bench::new();
    bench.settings.format = Format::Csv;
    let items = [record(1, r#"{"a":1}"#), record(2, "{}")];
    let mut first = bench.planned(0, &items).await;
    first.write(0, &items).await.unwrap();
    let before = bench.paths().await;
    let sinks = FileSinks::in_bucket(
        bench.objects.clone(),
        "s3://b".to_owned(),
        bench.settings.clone(),
    );
    let delivery = Delivery {
        schemas: vec![Schema {
            name: "thing".to_owned(),
            json_schema: r#"{"properties":{"a":{"type":"integer"}}}"#.to_owned(),
        }],
        ..bench.delivery()
    };
    let mut second = sinks.unwrap().open(&delivery).await.unwrap();
    assert_eq!(second.write(0, &items).await.unwrap().n_items, 2);
    assert_eq!(bench.paths().await, before);
    for n in 0..2 {
        let written = second.write(2, &items).await.unwrap();
        assert_eq!(written.n_items, 2 * n);
    }
    let paths = bench.paths().await;
    let mut heads = Vec::new();
    for path in paths {
        let bytes = bench.objects.get(&path).await.unwrap().bytes().await;
        let text = String::from_utf8(bytes.unwrap().to_vec()).unwrap();
        heads.push(text.lines().next().unwrap().to_owned());
    }
    let own = "_key,_resource,_kind,_url,_run,_at";
    assert_eq!(heads, [format!("{own},_rest"), format!("{own},a,_rest")]);
}

#[tokio::test]
async fn other_settings_replace_unfinished_files() {
    let mut bench = Bench::new();
    let items = records(0..6);
    let mut first = bench.planned(0, &items).await;
    first.write(0, &items).await.unwrap();
    bench.settings = settings("all/{run}");
    let mut second = bench.open().await;
    let planned = second.write(0, &items).await.unwrap();
    assert_eq!(planned.n_items, 0);
    bench.keep(&planned);
    assert!(bench.paths().await.is_empty());
    let written = second.write(0, &items).await.unwrap();
    assert_eq!(written.n_items, 6);
    assert_eq!(bench.keys().await, once(0..6));
    let paths = bench.paths().await;
    assert!(paths.iter().all(|path| path.as_ref().starts_with("all/1/")));
}

#[tokio::test]
async fn another_choice_of_items_replaces_unfinished_files() {
    let mut bench = Bench::new();
    let only = |kinds: &[&str]| kinds.iter().map(|kind| format!("kind={kind}")).collect();
    bench.settings.only = only(&["kind-0", "kind-1"]);
    let items = records(0..2);
    let mut first = bench.planned(0, &items).await;
    first.write(0, &items).await.unwrap();
    assert_eq!(bench.keys().await, once(0..2));
    // The second item has number 9, and is the first one that is chosen now.
    bench.settings.only = only(&["kind-1"]);
    let mut second = bench.open().await;
    let planned = second.write(9, &items[1..]).await.unwrap();
    assert_eq!(planned.n_items, 0);
    bench.keep(&planned);
    assert!(bench.paths().await.is_empty());
    assert_eq!(second.write(9, &items[1..]).await.unwrap().n_items, 1);
    assert_eq!(bench.keys().await, once(1..2));
}

#[tokio::test]
async fn items_that_are_gone_from_the_outbox_are_planned_anew() {
    let mut bench = Bench::new();
    let items = records(0..6);
    let mut first = bench.planned(0, &items).await;
    first.write(0, &items).await.unwrap();
    // The choice of items has changed: the outbox has no six of them.
    let mut second = bench.open().await;
    assert_eq!(second.write(0, &items[..3]).await.unwrap().n_items, 6);
    let planned = second.write(0, &items[..3]).await.unwrap();
    assert_eq!(planned.n_items, 0);
    let written = second.write(0, &items[..3]).await.unwrap();
    assert_eq!(written.n_items, 3);
    assert_eq!(bench.keys().await, once(0..3));
}

#[tokio::test]
async fn files_of_items_that_were_dropped_stay() {
    let mut bench = Bench::new();
    let items = records(0..3);
    let mut first = bench.planned(0, &items).await;
    first.write(0, &items).await.unwrap();
    // The sink was removed from the resource, and added again.
    let mut second = bench.open().await;
    let later = records(7..9);
    assert_eq!(second.write(7, &later).await.unwrap().n_items, 0);
    assert_eq!(second.write(7, &later).await.unwrap().n_items, 2);
    let mut expected = once(0..3);
    expected.extend(once(7..9));
    assert_eq!(bench.keys().await, expected);
}

/// Owners take turns at random moments: each may end before its plan is known, before it has written all files, or before
/// the frontier knows that it has.
#[tokio::test]
async fn whatever_owners_do_each_item_is_there_once() {
    const N_ITEMS: u64 = 60;
    for seed in 0..200 {
        let mut random = SmallRandom(seed);
        let mut bench = Bench::new();
        let all = records(0..N_ITEMS as u32);
        let mut cursor = 0;
        while cursor < N_ITEMS {
            let mut sink = bench.open().await;
            let mut n_asked = 0;
            while cursor < N_ITEMS {
                let n_given = (1 + random.below(9)).max(n_asked).min(N_ITEMS - cursor);
                let given = &all[cursor as usize..][..n_given as usize];
                let written = sink.write(cursor, given).await.unwrap();
                let is_done = written.n_items > 0 && written.n_items <= n_given;
                if random.below(4) == 0 {
                    // It ends before the frontier knows of this write. Some of its files were not written, either.
                    let plan = Plan::pending(&bench.marks).unwrap();
                    let paths = plan.filter(|_| is_done).map(|plan| plan.paths);
                    for path in paths.unwrap_or_default() {
                        if random.below(2) == 0 {
                            let path = ObjectPath::parse(&path).unwrap();
                            bench.objects.delete(&path).await.unwrap();
                        }
                    }
                    break;
                }
                match written.n_items <= n_given {
                    true => {
                        bench.keep(&written);
                        cursor += written.n_items;
                        n_asked = 0;
                    }
                    false => n_asked = written.n_items,
                }
            }
        }
        assert_eq!(cursor, N_ITEMS, "seed {seed}");
        assert_eq!(bench.keys().await, once(0..N_ITEMS as u32), "seed {seed}");
    }
}

/// Generator of numbers that look random.
struct SmallRandom(u64);

impl SmallRandom {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Returns a sink in this folder that has planned items.
async fn planned_in(folder: &std::path::Path, items: &[ItemRecord]) -> Box<dyn Sink> {
    let sinks = FileSinks::in_folder(folder.to_owned(), settings("{kind}")).unwrap();
    let mut sink = sinks.open(&Bench::new().delivery()).await.unwrap();
    for _ in 0..2 {
        assert_eq!(sink.write(0, items).await.unwrap().n_items, 0);
    }
    sink
}

/// Returns the names in a folder, in order.
fn names(folder: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_file_of_a_folder_has_its_name_once_it_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let items = [record(1, "{}"), record(2, "{}")];
    let mut sink = planned_in(folder.path(), &items).await;
    assert_eq!(names(folder.path()), [""; 0]);
    assert_eq!(sink.write(0, &items).await.unwrap().n_items, 2);
    assert_eq!(names(folder.path()), [".crawler-unfinished", "thing"]);
    assert_eq!(names(&folder.path().join(".crawler-unfinished")), [""; 0]);
    let files = names(&folder.path().join("thing"));
    assert_eq!(files.len(), 1);
    // Whoever takes the file over leaves it as it is.
    let path = folder.path().join("thing").join(&files[0]);
    std::fs::write(&path, "as it is").unwrap();
    let mut second = planned_in(folder.path(), &items).await;
    assert_eq!(second.write(0, &items).await.unwrap().n_items, 2);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "as it is");
    assert_eq!(names(&folder.path().join(".crawler-unfinished")), [""; 0]);
}

#[tokio::test]
async fn a_place_that_refuses_keeps_the_items() {
    let folder = tempfile::tempdir().unwrap();
    let items = [record(1, "{}")];
    let mut sink = planned_in(folder.path(), &items).await;
    let in_the_way = folder.path().join("thing");
    std::fs::write(&in_the_way, "").unwrap();
    let error = sink.write(0, &items).await.unwrap_err();
    assert!(matches!(error, SinkError::Retry { .. }), "{error}");
    let expected = format!("cannot write {}/thing/7-0-", folder.path().display());
    assert!(error.to_string().starts_with(&expected), "{error}");
    std::fs::remove_file(&in_the_way).unwrap();
    assert_eq!(sink.write(0, &items).await.unwrap().n_items, 1);
}

#[tokio::test]
async fn a_folder_that_is_away_stays_away() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("items");
    let items = [record(1, "{}")];
    let mut sink = planned_in(&folder, &items).await;
    let error = sink.write(0, &items).await.unwrap_err();
    assert!(matches!(error, SinkError::Retry { .. }), "{error}");
    let expected = format!("cannot open the folder {}", folder.display());
    assert_eq!(error.to_string(), expected);
    assert!(!folder.exists());
    std::fs::create_dir(&folder).unwrap();
    assert_eq!(sink.write(0, &items).await.unwrap().n_items, 1);
    // It goes, and another one comes.
    let mut sink = planned_in(&folder, &items).await;
    sink.write(0, &items).await.unwrap();
    let more = [record(2, "{}")];
    assert_eq!(sink.write(1, &more).await.unwrap().n_items, 0);
    std::fs::rename(&folder, home.path().join("old")).unwrap();
    let error = sink.write(1, &more).await.unwrap_err();
    assert!(matches!(error, SinkError::Retry { .. }), "{error}");
    assert!(!folder.exists());
    std::fs::create_dir(&folder).unwrap();
    assert_eq!(sink.write(1, &more).await.unwrap().n_items, 1);
}

#[tokio::test]
async fn a_check_leaves_nothing_and_tells_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let sinks = |path: PathBuf| FileSinks::in_folder(path, FileSettings::default()).unwrap();
    let check = sinks(folder.path().to_owned()).check().await.unwrap();
    let expected = format!(
        "files of jsonl: {}/{{resource}}/{{kind}}/dt={{date}}/RESOURCE-ID-SHARD-NUMBER-DIGEST.jsonl",
        folder.path().display()
    );
    assert_eq!(check.would_create, [expected]);
    assert_eq!(names(folder.path()), [""; 0]);
    let gone = folder.path().join("gone");
    let error = sinks(gone.clone()).check().await.unwrap_err();
    let expected = format!("cannot open the folder {}", gone.display());
    assert_eq!(error.to_string(), expected);
}
