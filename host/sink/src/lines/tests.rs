//! Tests of what a reader sees, whatever happened to the writer.

use std::ops::Range;

use super::super::items::{Extent, Extents, ItemBatch, ReadItems as _};
use super::*;
use crawler_model::crawl::ItemKey;
use crawler_model::frontier::SinkMark;
use crawler_model::id::Shard;

pub(crate) fn record(n: u32, json: &str) -> ItemRecord {
    ItemRecord {
        key: ItemKey(format!("key-{n}")),
        url: "http://a.test/".into(),
        rule: "page".into(),
        schema: "thing".into(),
        run: Run(1),
        fetched_at: 7,
        item: serde_json::value::RawValue::from_string(json.into()).unwrap(),
        change: None,
    }
}

fn records(range: Range<u32>) -> Vec<ItemRecord> {
    range.map(|n| record(n, "{\n\"a\": 1}")).collect()
}

fn records_of(run: u64, range: Range<u32>) -> Vec<ItemRecord> {
    let mut records = records(range);
    records.iter_mut().for_each(|record| record.run = Run(run));
    records
}

fn keys(range: Range<u32>) -> Vec<String> {
    range.map(|n| format!("key-{n}")).collect()
}

/// A resource's folder, and the extents that its frontiers would give.
struct Bench {
    folder: tempfile::TempDir,
    extents: Extents,
    reader: LineReader,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            reader: LineReader::new(folder.path().join("7"), Run(1)),
            folder,
            extents: Extents::new(),
        }
    }

    fn folder(&self) -> PathBuf {
        self.folder.path().join("7")
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder().join(file)
    }

    fn open(&self, shard: u32, storage_epoch: u64) -> LineFiles {
        self.open_with(shard, storage_epoch, LineSettings::default())
    }

    fn open_with(&self, shard: u32, storage_epoch: u64, settings: LineSettings) -> LineFiles {
        LineFiles::open(
            self.folder().join(shard.to_string()),
            storage_epoch,
            settings,
        )
    }

    /// Writes items, and keeps the mark as a frontier does.
    async fn write(&mut self, shard: u32, files: &mut LineFiles, items: &[ItemRecord]) -> SinkMark {
        let mark = files.write(0, items).await.unwrap().mark.unwrap();
        let extent = self.extents.entry(Shard(shard));
        let Extent::Marks(marks) = extent.or_insert(Extent::Marks(Vec::new())) else {
            panic!("the frontier is gone")
        };
        marks.retain(|known| known.key != mark.key);
        marks.push(mark.clone());
        mark
    }

    async fn read(&mut self, max: usize) -> Vec<String> {
        let lines = self.try_read(max).await.unwrap();
        let items = lines.items.into_iter();
        items.map(|(_, item)| item.key.0).collect()
    }

    async fn try_read(&mut self, max: usize) -> Result<ItemBatch, SinkError> {
        let extents = Arc::new(self.extents.clone());
        self.reader.read(&extents, max).await
    }

    async fn newest_run(&self) -> Option<Run> {
        let extents = Arc::new(self.extents.clone());
        reader::newest_run(self.folder(), &extents).await.unwrap()
    }

    fn append(&self, file: &str, bytes: &str) {
        let mut file = OpenOptions::new()
            .append(true)
            .open(self.path(file))
            .unwrap();
        file.write_all(bytes.as_bytes()).unwrap();
    }
}

#[tokio::test]
async fn what_is_written_is_read_in_order_and_once() {
    let mut bench = Bench::new();
    assert_eq!(bench.read(9).await, keys(0..0));
    let mut files = bench.open(0, 4);
    assert_eq!(files.write(0, &[]).await.unwrap(), Written::default());
    assert!(!bench.folder().exists(), "made before the first item");
    bench.write(0, &mut files, &records(0..3)).await;
    assert_eq!(bench.read(2).await, keys(0..2));
    let mark = bench.write(0, &mut files, &records(3..5)).await;
    let text = std::fs::read_to_string(bench.path("0/4-0.jsonl")).unwrap();
    assert_eq!(text.lines().count(), 5);
    let expected = LineMark {
        file: FileId {
            storage_epoch: 4,
            n: 0,
        },
        length: text.len() as u64,
        runs: (Run(1), Run(1)),
    };
    assert_eq!(mark, expected.encode());
    assert_eq!(bench.read(9).await, keys(2..5));
    assert_eq!(bench.read(9).await, keys(0..0));
}

#[tokio::test]
async fn what_no_mark_covers_is_never_read_and_a_later_life_leaves_it_alone() {
    let mut bench = Bench::new();
    let mut first = bench.open(0, 9);
    bench.write(0, &mut first, &records(0..2)).await;
    // The frontier never heard of these items: the process ended in between.
    first.write(0, &records(2..4)).await.unwrap();
    bench.append("0/9-0.jsonl", "{\"ke");
    let left = std::fs::read(bench.path("0/9-0.jsonl")).unwrap();
    assert_eq!(bench.read(9).await, keys(0..2));
    let mut second = bench.open(0, 10);
    bench.write(0, &mut second, &records(2..5)).await;
    assert_eq!(bench.read(9).await, keys(2..5));
    assert_eq!(std::fs::read(bench.path("0/9-0.jsonl")).unwrap(), left);
}

#[tokio::test]
async fn files_are_read_in_the_order_of_storage_epochs_as_numbers() {
    let mut bench = Bench::new();
    for (n, storage_epoch) in [2, 9, 10, 11, 100].into_iter().enumerate() {
        let n = u32::try_from(n).unwrap();
        let mut files = bench.open(0, storage_epoch);
        bench.write(0, &mut files, &records(n..n + 1)).await;
    }
    assert_eq!(bench.read(9).await, keys(0..5));
}

#[tokio::test]
async fn f33_a_batch_that_failed_half_way_is_written_whole_and_once_on_the_next_try() {
    let mut bench = Bench::new();
    let mut files = bench.open(0, 4);
    bench.write(0, &mut files, &records(0..1)).await;
    // The lines are appended, and then the file turns out to have no name any more.
    let (path, aside) = (bench.path("0/4-0.jsonl"), bench.path("aside"));
    std::fs::rename(&path, &aside).unwrap();
    let error = files
        .write(0, &records(1..3))
        .await
        .unwrap_err()
        .to_string();
    assert!(error.ends_with("7/0/4-0.jsonl"), "{error}");
    std::fs::rename(&aside, &path).unwrap();
    bench.append("0/4-0.jsonl", &"{\"torn\": 1}\n".repeat(100));
    bench.write(0, &mut files, &records(1..4)).await;
    assert_eq!(bench.read(9).await, keys(0..4));
    let text = std::fs::read_to_string(path).unwrap();
    assert_eq!(text.lines().count(), 4);
}

#[tokio::test]
async fn f33_what_follows_a_file_that_was_taken_away_goes_into_the_next_and_is_read_once() {
    let spoil: [fn(&Path, &Path); 3] = [
        |path, aside| std::fs::rename(path, aside).unwrap(),
        |path, aside| {
            std::fs::copy(path, aside).unwrap();
            File::create(path).unwrap();
        },
        |path, aside| {
            std::fs::rename(path, aside).unwrap();
            File::create(path).unwrap();
        },
    ];
    for spoil in spoil {
        let mut bench = Bench::new();
        let mut files = bench.open(0, 4);
        bench.write(0, &mut files, &records(0..2)).await;
        let (path, aside) = (bench.path("0/4-0.jsonl"), bench.path("aside"));
        spoil(&path, &aside);
        files.write(0, &records(2..4)).await.unwrap_err();
        let mark = bench.write(0, &mut files, &records(2..4)).await;
        assert_eq!(mark.key, "4-1.jsonl");
        bench.write(0, &mut files, &records(4..5)).await;
        bench.try_read(9).await.unwrap_err();
        // After it is put back, the file counts as far as it did.
        std::fs::rename(&aside, &path).unwrap();
        assert_eq!(bench.read(9).await, keys(0..5));
        bench.write(0, &mut files, &records(5..6)).await;
        assert_eq!(bench.read(9).await, keys(5..6));
    }
}

#[tokio::test]
async fn f33_a_folder_that_was_taken_away_is_not_filled_with_files_that_nobody_is_told_of() {
    let mut bench = Bench::new();
    let mut files = bench.open(0, 4);
    bench.write(0, &mut files, &records(0..2)).await;
    let (folder, aside) = (bench.folder(), bench.folder.path().join("aside"));
    std::fs::rename(&folder, &aside).unwrap();
    // No folder can be made in its place.
    std::fs::write(&folder, "in the way").unwrap();
    for _ in 0..3 {
        files.write(0, &records(2..4)).await.unwrap_err();
    }
    std::fs::remove_file(&folder).unwrap();
    std::fs::rename(&aside, &folder).unwrap();
    bench.write(0, &mut files, &records(2..4)).await;
    assert_eq!(bench.read(9).await, keys(0..4));
    assert_eq!(std::fs::read_dir(bench.path("0")).unwrap().count(), 1);
}

// The order of the writes without a caller and the other one depends on the threads; in either order they
// must change nothing.
#[tokio::test]
async fn a_write_whose_caller_went_away_is_taken_back_by_the_next() {
    let mut bench = Bench::new();
    let mut files = bench.open(0, 4);
    let items = records(0..2);
    for _ in 0..2 {
        // The thread that writes starts when its caller has gone away.
        let writer = Arc::clone(&files.writer);
        let held = writer.lock().unwrap();
        let write = files.write(0, &items);
        assert!(futures::FutureExt::now_or_never(write).is_none());
        drop(held);
    }
    bench.write(0, &mut files, &records(0..3)).await;
    while Arc::strong_count(&files.writer) > 1 {
        tokio::task::yield_now().await;
    }
    // This write comes as late as possible.
    let n_writes = std::mem::take(&mut files.n_writes);
    files.write(0, &items).await.unwrap_err();
    files.n_writes = n_writes;
    let text = std::fs::read_to_string(bench.path("0/4-0.jsonl")).unwrap();
    assert_eq!(text.lines().count(), 3);
    assert_eq!(bench.read(9).await, keys(0..3));
}

#[tokio::test]
async fn a_data_root_that_was_taken_away_does_not_come_back_half_empty() {
    let mut bench = Bench::new();
    let mut files = bench.open(0, 4);
    let aside = tempfile::tempdir().unwrap().keep();
    let root = bench.folder.path().to_owned();
    std::fs::remove_dir(&aside).unwrap();
    std::fs::rename(&root, &aside).unwrap();
    let error = files
        .write(0, &records(0..1))
        .await
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("cannot create"), "{error}");
    assert!(!root.exists());
    std::fs::rename(&aside, &root).unwrap();
    bench.write(0, &mut files, &records(0..1)).await;
    assert_eq!(bench.read(9).await, keys(0..1));
}

#[tokio::test]
async fn a_file_is_followed_by_the_next_at_its_bound_and_none_is_written_over() {
    let mut bench = Bench::new();
    let settings = LineSettings {
        max_file_bytes: 400,
    };
    std::fs::create_dir_all(bench.path("0")).unwrap();
    std::fs::write(bench.path("0/4-1.jsonl"), "not ours").unwrap();
    let mut files = bench.open_with(0, 4, settings);
    for n in 0..4 {
        bench.write(0, &mut files, &records(3 * n..3 * n + 1)).await;
        bench
            .write(0, &mut files, &records(3 * n + 1..3 * n + 3))
            .await;
    }
    let last = bench.write(0, &mut files, &records(12..13)).await;
    assert_eq!(last.key, "4-5.jsonl");
    let other = std::fs::read_to_string(bench.path("0/4-1.jsonl"));
    assert_eq!(other.unwrap(), "not ours");
    assert_eq!(bench.read(5).await, keys(0..5));
    assert_eq!(bench.read(99).await, keys(5..13));
}

#[tokio::test]
async fn shards_take_turns() {
    let mut bench = Bench::new();
    for shard in [2, 10] {
        let mut files = bench.open(shard, 1);
        let first = shard * 10;
        bench
            .write(shard, &mut files, &records(first..first + 2))
            .await;
    }
    for (shard, n) in [(2, 20), (10, 100), (2, 21), (10, 101)] {
        let lines = bench.try_read(1).await.unwrap();
        let (of, item) = &lines.items[0];
        assert_eq!((*of, &item.key.0), (Shard(shard), &format!("key-{n}")));
        assert_eq!(lines.is_end, n == 101);
    }
}

#[tokio::test]
async fn runs_are_apart_also_within_a_file_and_the_newest_is_known() {
    let mut bench = Bench::new();
    assert_eq!(bench.newest_run().await, None);
    let mut files = bench.open(0, 3);
    bench.write(0, &mut files, &records_of(1, 0..2)).await;
    let mark = bench.write(0, &mut files, &records_of(2, 2..4)).await;
    let mark = LineMark::decode(&mark, &bench.folder()).unwrap();
    assert_eq!(mark.runs, (Run(1), Run(2)));
    let mut files = bench.open(0, 4);
    bench.write(0, &mut files, &records_of(10, 4..5)).await;
    assert_eq!(bench.newest_run().await, Some(Run(10)));
    // A file without an item of the run need not even exist.
    std::fs::remove_file(bench.path("0/4-0.jsonl")).unwrap();
    for (run, expected) in [(1, keys(0..2)), (2, keys(2..4)), (3, keys(0..0))] {
        bench.reader = LineReader::new(bench.folder(), Run(run));
        assert_eq!(bench.read(9).await, expected);
    }
}

#[tokio::test]
async fn a_read_ends_within_its_bound_also_among_items_of_other_runs() {
    let mut bench = Bench::new();
    let mut files = bench.open(0, 3);
    let large = format!("\"{}\"", "x".repeat(6 << 20));
    let mut items: Vec<ItemRecord> = (0..6).map(|n| record(n, &large)).collect();
    items.iter_mut().for_each(|item| item.run = Run(2));
    items.push(record(6, "{}"));
    bench.write(0, &mut files, &items).await;
    let lines = bench.try_read(9).await.unwrap();
    assert!(lines.items.is_empty() && !lines.is_end);
    let lines = bench.try_read(9).await.unwrap();
    assert!(lines.items.is_empty() && !lines.is_end);
    let lines = bench.try_read(9).await.unwrap();
    assert_eq!((lines.items.len(), lines.is_end), (1, true));
}

#[tokio::test]
async fn a_file_that_lost_committed_bytes_is_an_error() {
    let mut bench = Bench::new();
    let mut files = bench.open(0, 4);
    bench.write(0, &mut files, &records(0..1)).await;
    let path = bench.path("0/4-0.jsonl");
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(10).unwrap();
    let error = crawler_process::telemetry::chain(&bench.try_read(9).await.unwrap_err());
    assert!(error.contains("it ends within the"), "{error}");
    let error =
        crawler_process::telemetry::chain(&files.write(0, &records(1..2)).await.unwrap_err());
    assert!(error.contains("it has 10 of the"), "{error}");
    std::fs::remove_file(path).unwrap();
    bench.try_read(9).await.unwrap_err();
}

#[tokio::test]
async fn files_that_were_cut_to_their_marks_are_read_without_them() {
    let mut bench = Bench::new();
    let mut first = bench.open(0, 9);
    bench.write(0, &mut first, &records_of(1, 0..2)).await;
    first.write(0, &records_of(1, 2..4)).await.unwrap();
    let mut unmarked = bench.open(0, 10);
    unmarked.write(0, &records_of(1, 2..3)).await.unwrap();
    let mut last = bench.open(0, 11);
    bench.write(0, &mut last, &records_of(1, 2..3)).await;
    bench.write(0, &mut last, &records_of(2, 3..4)).await;
    let Some(Extent::Marks(marks)) = bench.extents.insert(Shard(0), Extent::Whole) else {
        panic!("no marks")
    };
    for _ in 0..2 {
        let folder = bench.path("0");
        truncate::truncate_to_marks(folder, marks.clone())
            .await
            .unwrap();
    }
    assert_eq!(bench.newest_run().await, Some(Run(2)));
    assert_eq!(bench.read(9).await, keys(0..3));
    // The reader sees only whole lines of a file that lost its end.
    bench.append("0/11-0.jsonl", "{\"ke");
    assert_eq!(bench.newest_run().await, Some(Run(2)));
    bench.reader = LineReader::new(bench.folder(), Run(2));
    let lines = bench.try_read(9).await.unwrap();
    assert_eq!((lines.items.len(), lines.is_end), (1, true));
}

#[tokio::test]
async fn the_last_line_is_found_however_long_it_is() {
    let mut bench = Bench::new();
    let mut files = bench.open(0, 1);
    let large = format!("\"{}\"", "x".repeat(300 << 10));
    let mut items = [record(0, "{}"), record(1, &large)];
    items[1].run = Run(3);
    bench.write(0, &mut files, &items).await;
    bench.extents.insert(Shard(0), Extent::Whole);
    assert_eq!(bench.newest_run().await, Some(Run(3)));
    bench.append("0/1-0.jsonl", &large);
    assert_eq!(bench.newest_run().await, Some(Run(3)));
    std::fs::write(bench.path("0/1-0.jsonl"), &large).unwrap();
    assert_eq!(bench.newest_run().await, None);
}
