//! Tests of what readers see of part objects, whoever wrote them and whenever the writers ended.

use std::collections::BTreeMap;
use std::ops::Range;

use futures::TryStreamExt as _;
use object_store::memory::InMemory;

use super::*;
use crate::items::{Extent, Extents, ItemStore as _, ReadItems};
use crate::lines::tests::record;
use crawler_model::id::{ResourceId, Run, Shard};
use crawler_model::resource::ShardId;

const RESOURCE: ResourceId = ResourceId(7);

fn shard(n: u32) -> ShardId {
    ShardId {
        resource: RESOURCE,
        shard: Shard(n),
    }
}

fn records(range: Range<u32>) -> Vec<ItemRecord> {
    range.map(|n| record(n, "{\n\"a\": 1}")).collect()
}

fn of_run(run: u64, range: Range<u32>) -> Vec<ItemRecord> {
    let mut records = records(range);
    records.iter_mut().for_each(|record| record.run = Run(run));
    records
}

fn keys(range: Range<u32>) -> Vec<String> {
    range.map(|n| format!("key-{n}")).collect()
}

struct Bench {
    objects: Arc<InMemory>,
    folders: PartFolders,
    extents: Arc<Extents>,
}

impl Bench {
    fn new() -> Self {
        Self::with(PartSettings::default())
    }

    fn with(settings: PartSettings) -> Self {
        let objects = Arc::new(InMemory::new());
        let shards = [Shard(0), Shard(1)].map(|shard| (shard, Extent::Whole));
        Self {
            folders: PartFolders::new(objects.clone(), ObjectPath::from("items"), settings),
            objects,
            extents: Arc::new(shards.into()),
        }
    }

    fn sink(&self, n: u32) -> Box<dyn Sink> {
        self.folders.open_rest(shard(n), 1)
    }

    fn reader(&self, run: u64) -> Box<dyn ReadItems> {
        self.folders.reader(RESOURCE, Run(run))
    }

    async fn read(&self, reader: &mut Box<dyn ReadItems>, max: usize) -> Vec<String> {
        let batch = reader.read(&self.extents, max).await.unwrap();
        batch
            .items
            .into_iter()
            .map(|(_, item)| item.key.0)
            .collect()
    }

    async fn paths(&self) -> Vec<String> {
        let all: Vec<_> = self.objects.list(None).try_collect().await.unwrap();
        all.into_iter()
            .map(|object| object.location.to_string())
            .collect()
    }
}

fn written(n_items: u64) -> Written {
    Written {
        n_items,
        ..Written::default()
    }
}

#[tokio::test]
async fn what_is_written_is_read_in_order_and_once() {
    let bench = Bench::new();
    let mut reader = bench.reader(1);
    assert_eq!(bench.read(&mut reader, 9).await, keys(0..0));
    let mut sink = bench.sink(0);
    assert_eq!(sink.write(0, &[]).await.unwrap(), Written::default());
    assert_eq!(sink.write(5, &records(0..3)).await.unwrap(), written(3));
    assert_eq!(bench.read(&mut reader, 2).await, keys(0..2));
    assert_eq!(sink.write(8, &records(3..5)).await.unwrap(), written(2));
    let expected = [
        "items/7/0/1/00000000000000000005-key-0.jsonl",
        "items/7/0/1/00000000000000000008-key-3.jsonl",
    ];
    assert_eq!(bench.paths().await, expected);
    assert_eq!(bench.read(&mut reader, 9).await, keys(2..5));
    assert_eq!(bench.read(&mut reader, 9).await, keys(0..0));
    let text = bench.objects.get(&ObjectPath::from(expected[1])).await;
    let text = text.unwrap().bytes().await.unwrap();
    let lines = text.split(|byte| *byte == b'\n').filter(|l| !l.is_empty());
    assert_eq!(lines.count(), 2, "a line for each item");
}

#[tokio::test]
async fn a_part_has_items_of_one_run_and_ends_at_its_size() {
    let bench = Bench::with(PartSettings {
        part_bytes: 1,
        ..PartSettings::default()
    });
    let mut sink = bench.sink(0);
    assert_eq!(sink.write(0, &records(0..9)).await.unwrap(), written(1));
    let bench = Bench::new();
    let mut sink = bench.sink(0);
    let items: Vec<ItemRecord> = [of_run(1, 0..2), of_run(2, 2..4)].concat();
    assert_eq!(sink.write(0, &items).await.unwrap(), written(2));
    assert_eq!(sink.write(2, &items[2..]).await.unwrap(), written(2));
    let newest = bench.folders.newest_run(RESOURCE, &bench.extents).await;
    assert_eq!(newest.unwrap(), Some(Run(2)));
    assert_eq!(bench.read(&mut bench.reader(2), 9).await, keys(2..4));
}

#[tokio::test]
async fn a_part_that_is_there_is_taken_over_whole() {
    let bench = Bench::new();
    let (mut earlier, mut later) = (bench.sink(0), bench.sink(0));
    assert_eq!(earlier.write(4, &records(0..3)).await.unwrap(), written(3));
    // The earlier owner's answer was lost, and more items or fewer are given out now.
    assert_eq!(later.write(4, &records(0..5)).await.unwrap(), written(3));
    assert_eq!(later.write(4, &records(0..1)).await.unwrap(), written(3));
    assert_eq!(later.write(7, &records(3..5)).await.unwrap(), written(2));
    // A late write of the earlier one changes nothing.
    assert_eq!(earlier.write(7, &records(3..4)).await.unwrap(), written(2));
    assert_eq!(bench.read(&mut bench.reader(1), 9).await, keys(0..5));
}

#[tokio::test]
async fn a_part_of_other_items_is_refused() {
    let bench = Bench::new();
    let mut sink = bench.sink(0);
    sink.write(0, &records(0..2)).await.unwrap();
    let others = [record(0, "{}"), record(9, "{}")];
    let error = sink.write(0, &others).await.unwrap_err();
    assert!(matches!(error, SinkError::Permanent { .. }), "{error}");
    let path = "items/7/0/1/00000000000000000000-key-0.jsonl";
    let expected = format!("{path} has other items than the frontier, ");
    assert!(error.to_string().starts_with(&expected), "{error}");
    let empty = ObjectPath::from("items/7/0/1/00000000000000000009-key-1.jsonl");
    bench.objects.put(&empty, "".into()).await.unwrap();
    let error = sink.write(9, &records(1..2)).await.unwrap_err();
    assert_eq!(error.to_string(), format!("{empty} is empty; delete it"));
}

/// Owners take turns at random moments: each delivers what the outbox has from the cursor on, and may end before its
/// upload, after it, or after the cursor has moved; one that was replaced may upload once more.
#[tokio::test]
async fn whatever_owners_do_each_item_is_there_once() {
    const N_ITEMS: u64 = 60;
    for seed in 0..200 {
        let mut random = SmallRandom(seed);
        let bench = Bench::new();
        let all = records(0..N_ITEMS as u32);
        let mut cursor = 0;
        let mut late: Option<Range<u64>> = None;
        while cursor < N_ITEMS {
            let end = N_ITEMS.min(cursor + 1 + random.below(9));
            let given = &all[cursor as usize..end as usize];
            match random.below(4) {
                // It ends before the upload has arrived, which may come much later.
                0 => late = Some(cursor..end),
                // It ends before the cursor has moved.
                1 => drop(bench.sink(0).write(cursor, given).await.unwrap()),
                _ => cursor += bench.sink(0).write(cursor, given).await.unwrap().n_items,
            }
            if random.below(3) == 0
                && let Some(late) = late.take()
            {
                let given = &all[late.start as usize..late.end as usize];
                bench.sink(0).write(late.start, given).await.unwrap();
            }
        }
        assert_eq!(cursor, N_ITEMS, "seed {seed}");
        let mut reader = bench.reader(1);
        let mut found: BTreeMap<String, u32> = BTreeMap::new();
        for key in bench.read(&mut reader, 1_000).await {
            *found.entry(key).or_default() += 1;
        }
        let once: BTreeMap<String, u32> = keys(0..N_ITEMS as u32)
            .into_iter()
            .map(|key| (key, 1))
            .collect();
        assert_eq!(found, once, "seed {seed}");
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

#[tokio::test]
async fn shards_take_turns_and_long_lines_are_read() {
    let bench = Bench::new();
    let long = format!("\"{}\"", "x".repeat(3 << 20));
    let items: Vec<ItemRecord> = (0..7).map(|n| record(n, &long)).collect();
    for n in 0..items.len() {
        let one = &items[n..n + 1];
        bench.sink(0).write(n as u64, one).await.unwrap();
    }
    bench.sink(1).write(0, &records(7..9)).await.unwrap();
    let mut reader = bench.reader(1);
    // A read ends at a number of bytes; the next one begins with the other shard.
    assert_eq!(bench.read(&mut reader, 99).await, keys(0..6));
    assert_eq!(bench.read(&mut reader, 1).await, keys(7..8));
    assert_eq!(bench.read(&mut reader, 99).await, ["key-6", "key-8"]);
    let shards = bench.folders.shards(RESOURCE).await.unwrap();
    assert_eq!(shards, [Shard(0), Shard(1)]);
}

#[tokio::test]
async fn the_items_of_one_resource_are_deleted_and_no_others() {
    let bench = Bench::new();
    for id in [RESOURCE, ResourceId(77)] {
        let mut sink = bench.folders.open_rest(ShardId::only(id), 1);
        sink.write(0, &records(0..1)).await.unwrap();
    }
    for _ in 0..2 {
        bench.folders.delete(RESOURCE).await.unwrap();
    }
    let left = ["items/77/0/1/00000000000000000000-key-0.jsonl"];
    assert_eq!(bench.paths().await, left);
}

#[tokio::test]
async fn items_gather_as_the_settings_say() {
    let settings = PartSettings {
        part_bytes: 5,
        max_wait: Duration::from_secs(9),
    };
    let gathering = Bench::with(settings).sink(0).gathering();
    assert_eq!(
        (gathering.n_bytes, gathering.max_wait),
        (5, settings.max_wait)
    );
}
