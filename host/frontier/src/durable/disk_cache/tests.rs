//! Tests of the bound of a cache, of the pieces that stay in it, and of disks that fail.

use super::*;
use crawler_process::telemetry::testing::told;

const PIECE: usize = PIECE_BYTES as usize;

struct Bench {
    cache: DiskCache,
    /// The file of the cache, as a disk with faults sees it.
    file: File,
}

impl Bench {
    /// Creates a cache of so many pieces.
    fn new(n_slots: u64) -> Self {
        let file = tempfile::tempfile().unwrap();
        Self {
            file: file.try_clone().unwrap(),
            cache: DiskCache::in_file(file, n_slots * PIECE_BYTES),
        }
    }

    /// Keeps a piece of a table of many pieces.
    fn write(&self, table: &str, number: u64) {
        let bytes = bytes_of(table, number);
        self.cache.write_slot(table, 1 << 40, number, &bytes);
    }

    /// Returns true if a piece is cached. Its bytes must be those that were written.
    fn has(&self, table: &str, number: u64) -> bool {
        let found = self.cache.slots().find(table, number..number + 1);
        let found = found.map(|(_, found)| found).unwrap_or_default();
        let read = found.first().and_then(|f| self.cache.read_slot(table, f));
        if let Some(read) = &read {
            assert_eq!(*read, (number, Bytes::from(bytes_of(table, number))));
        }
        read.is_some()
    }
}

fn bytes_of(table: &str, number: u64) -> Vec<u8> {
    let mut bytes = format!("{table} {number} ").into_bytes().repeat(PIECE / 4);
    bytes.truncate(PIECE);
    bytes
}

#[test]
fn blocks_on_disk_stay_within_their_bound() {
    let bench = Bench::new(4);
    for number in 0..100 {
        bench.write("a", number);
        assert!(bench.has("a", number));
        assert!(bench.file.metadata().unwrap().len() <= 4 * PIECE_BYTES);
    }
    let tables: Vec<String> = (0..100).map(|n| format!("table {n}")).collect();
    for table in &tables {
        bench.write(table, 0);
    }
    assert!(bench.file.metadata().unwrap().len() <= 4 * PIECE_BYTES);
    assert!(!bench.has("a", 99));
    let n_cached = tables.iter().filter(|table| bench.has(table, 0)).count();
    assert_eq!(n_cached, 4);
    let none = Bench::new(0);
    none.write("a", 0);
    assert!(!none.has("a", 0));
}

#[test]
fn pieces_that_are_read_again_stay_whatever_a_scan_reads() {
    let bench = Bench::new(32);
    for number in 0..8 {
        bench.write("hot", number);
    }
    for number in 0..1_000 {
        bench.write("scan", number);
        // A scan reads the blocks of a piece one after the other.
        assert!((0..15).all(|_| bench.has("scan", number)), "{number}");
        assert!(bench.has("hot", number % 8), "{number}");
    }
}

#[test]
fn a_piece_that_is_there_takes_no_slot_of_another_one() {
    let bench = Bench::new(3);
    for number in 0..3 {
        bench.write("a", number);
    }
    for _ in 0..9 {
        bench.write("a", 1);
    }
    assert!((0..3).all(|number| bench.has("a", number)));
}

#[test]
fn a_slot_that_has_another_piece_by_now_is_not_read_as_the_one_that_was_found() {
    let bench = Bench::new(1);
    bench.write("a", 0);
    let (_, found) = bench.cache.slots().find("a", 0..1).unwrap();
    bench.write("b", 7);
    assert_eq!(bench.cache.read_slot("a", &found[0]), None);
    assert!(bench.has("b", 7), "the other piece stays");
}

#[tokio::test]
async fn a_disk_that_hangs_holds_nobody_up() {
    let bench = Bench::new(4);
    bench.write("a", 0);
    let cache = Arc::new(bench.cache);
    // All reads and writes that may be under way wait for the disk.
    let reads = Arc::clone(&cache.reads);
    let _reads = reads.acquire_many(READS_MAX as u32).await.unwrap();
    let writes = Arc::clone(&cache.writes);
    let writes = writes.acquire_many(WRITES_MAX as u32).await.unwrap();
    tokio::time::pause();
    let found = cache.read("a", 0..1).await;
    assert_eq!(found, Some((1 << 40, Pieces::new())));
    cache.write("a", 1 << 40, Pieces::from([(1, Bytes::new())]));
    drop(writes);
    cache.settled().await;
    assert_eq!(cache.slots().find("a", 1..2).unwrap().1.len(), 0);
}

#[test]
fn a_table_that_is_forgotten_leaves_room() {
    let bench = Bench::new(4);
    for table in ["a", "b"] {
        bench.write(table, 0);
        bench.write(table, 1);
    }
    bench.cache.forget("a");
    bench.cache.forget("a");
    assert!(!bench.has("a", 0) && !bench.has("a", 1));
    for number in [2, 3] {
        bench.write("b", number);
    }
    assert!((0..4).all(|number| bench.has("b", number)));
}

#[test]
fn bytes_that_the_disk_has_changed_are_not_read() {
    let bench = Bench::new(4);
    for number in 0..3 {
        bench.write("a", number);
    }
    bench.file.write_all_at(b"garbage", 9).unwrap();
    let lines = told("warn", || assert!(!bench.has("a", 0)));
    assert_eq!(lines, [""; 0]);
    assert!(bench.has("a", 1));
    bench.file.set_len(PIECE_BYTES + 1).unwrap();
    let lines = told("warn", || assert!(!bench.has("a", 1) && !bench.has("a", 2)));
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains(" has failed; "), "{lines:?}");
    for number in 0..3 {
        bench.write("a", number);
        assert!(bench.has("a", number));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_once() {
    let full = File::options().read(true).write(true).open("/dev/full");
    let full = full.unwrap();
    let bench = Bench {
        file: full.try_clone().unwrap(),
        cache: DiskCache::in_file(full, 4 * PIECE_BYTES),
    };
    let lines = told("warn", || {
        for number in 0..9 {
            bench.write("a", number);
            assert!(!bench.has("a", number));
        }
    });
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("os error 28"), "{lines:?}");
}

#[test]
fn a_folder_that_cannot_be_used_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    DiskCache::create(&file, 1 << 20).unwrap_err();
    let below = folder.path().join("a/b");
    DiskCache::create(&below, 1 << 20).unwrap();
    // The file has no name, so nothing can be left.
    assert_eq!(std::fs::read_dir(&below).unwrap().count(), 0);
}
