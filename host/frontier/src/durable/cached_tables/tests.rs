//! Tests of which reads reach the store, and that no read gets other bytes than the store has.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::{Mutex, PoisonError};

use object_store::ObjectStoreExt as _;
use object_store::memory::InMemory;
use slatedb::config::Settings;
use slatedb::object_store_tag::RetryReason;
use slatedb::{Db, WriteBatch};

use super::*;

/// Size of the table that is read, in bytes: ten pieces, and a short one.
const TABLE_BYTES: usize = 10 * PIECE_BYTES as usize + 1_234;
const NONE: [Range<u64>; 0] = [];

/// A store that remembers the ranges that were read.
#[derive(Debug, Default)]
struct Counted {
    inner: InMemory,
    gets: Mutex<Vec<(ObjectPath, Option<GetRange>)>>,
}

impl Counted {
    /// Returns the ranges of tables that were read since the last call.
    fn take_gets(&self) -> Vec<Range<u64>> {
        let mut gets = self.gets.lock().unwrap_or_else(PoisonError::into_inner);
        let gets = gets.drain(..).filter_map(|(path, range)| match range {
            Some(GetRange::Bounded(range)) if is_table(&path) => Some(range),
            _ => None,
        });
        gets.collect()
    }
}

fn is_table(path: &ObjectPath) -> bool {
    path.parts().any(|part| part.as_ref() == "compacted")
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("counted")
    }
}

#[async_trait]
impl ObjectStore for Counted {
    async fn put_opts(
        &self,
        location: &ObjectPath,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &ObjectPath,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &ObjectPath, options: GetOptions) -> Result<GetResult> {
        {
            let mut gets = self.gets.lock().unwrap_or_else(PoisonError::into_inner);
            gets.push((location.clone(), options.range.clone()));
        }
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<ObjectPath>>,
    ) -> BoxStream<'static, Result<ObjectPath>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&ObjectPath>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&ObjectPath>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(
        &self,
        from: &ObjectPath,
        to: &ObjectPath,
        options: CopyOptions,
    ) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

struct Bench {
    store: Arc<Counted>,
    cached: CachedTables,
    /// The file of the cache, as a disk with faults sees it.
    file: File,
}

impl Bench {
    /// Creates a cache of so many pieces before a store with one table.
    async fn new(n_slots: u64) -> Self {
        let store = Arc::new(Counted::default());
        let file = tempfile::tempfile().unwrap();
        let cache = DiskCache::in_file(file.try_clone().unwrap(), n_slots * PIECE_BYTES);
        let bench = Self {
            cached: CachedTables::new(store.clone(), cache),
            store,
            file,
        };
        bench.put(&content(1)).await;
        bench
    }

    async fn put(&self, bytes: &Bytes) {
        let bytes = bytes.clone().into();
        self.store.put(&table(), bytes).await.unwrap();
    }

    /// Reads a range for this purpose.
    async fn read_for(&self, tag: ObjectStoreCallTag, range: Range<u64>) -> Result<Bytes> {
        let options = GetOptions {
            range: Some(GetRange::Bounded(range.clone())),
            extensions: tag.into(),
            ..GetOptions::default()
        };
        let result = self.cached.get_opts(&table(), options).await?;
        assert_eq!(result.meta.size, TABLE_BYTES as u64);
        let end = range.end.min(TABLE_BYTES as u64);
        assert_eq!(result.range, range.start..end);
        let bytes = result.bytes().await;
        self.cached.cache.settled().await;
        bytes
    }

    /// Reads a range for a page, and returns the ranges that reached the store.
    async fn read(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let bytes = self.read_for(for_pages(), range.clone()).await.unwrap();
        let end = TABLE_BYTES.min(range.end as usize);
        assert_eq!(bytes, content(1).slice(range.start as usize..end));
        self.store.take_gets()
    }
}

fn table() -> ObjectPath {
    ObjectPath::from("frontiers/7/0/compacted/01J.sst")
}

fn for_pages() -> ObjectStoreCallTag {
    ObjectStoreCallTag::new(TableStoreKind::Main, SstType::Compacted)
}

/// Returns the bytes of a table, which differ by its seed.
fn content(seed: usize) -> Bytes {
    (0..TABLE_BYTES).map(|n| (n * seed / 7) as u8).collect()
}

fn pieces(numbers: Range<u64>) -> Range<u64> {
    numbers.start * PIECE_BYTES..numbers.end * PIECE_BYTES
}

#[tokio::test]
async fn each_piece_of_a_table_is_fetched_once() {
    let bench = Bench::new(99).await;
    let end = TABLE_BYTES as u64;
    assert_eq!(bench.read(70_000..70_001).await, [pieces(1..2)]);
    assert_eq!(bench.read(65_536..131_072).await, NONE);
    // One request for all pieces that are missing, with those between them.
    assert_eq!(bench.read(0..200_000).await, [pieces(0..4)]);
    assert_eq!(bench.read(1..199_999).await, NONE);
    assert_eq!(bench.read(end - 1..end).await, [pieces(10..11)]);
    assert_eq!(bench.read(end - 9..end + 9).await, NONE);
    assert_eq!(bench.read(0..end).await, [pieces(4..10)]);
    assert_eq!(bench.read(0..end).await, NONE);
}

#[tokio::test]
async fn a_cache_that_is_too_small_gives_the_same_bytes() {
    let end = TABLE_BYTES as u64;
    for n_slots in [0, 1, 3] {
        let bench = Bench::new(n_slots).await;
        for start in 0..20 {
            let range = start * 30_000..(start * 50_000 + 1).min(end);
            bench.read(range).await;
        }
        bench.read(0..end).await;
        let n_bytes = bench.file.metadata().unwrap().len();
        assert!(n_bytes <= n_slots * PIECE_BYTES, "{n_bytes}");
    }
}

#[tokio::test]
async fn only_reads_of_tables_for_pages_and_clients_are_cached() {
    let bench = Bench::new(99).await;
    let tag = ObjectStoreCallTag::new;
    let compacted = SstType::Compacted;
    for (tag, is_cached) in [
        (tag(TableStoreKind::Main, SstType::Wal), false),
        (tag(TableStoreKind::Compactor, compacted), false),
        (tag(TableStoreKind::GC, compacted), false),
        (tag(TableStoreKind::Reader, compacted), true),
        (tag(TableStoreKind::Main, compacted), true),
    ] {
        for _ in 0..2 {
            let read = bench.read_for(tag.clone(), 1..2).await;
            assert_eq!(read.unwrap(), content(1).slice(1..2), "{tag:?}");
        }
        let expected = match (is_cached, tag.kind) {
            (false, _) => vec![1..2, 1..2],
            (true, TableStoreKind::Reader) => vec![pieces(0..1)],
            // The other one has fetched it.
            (true, _) => vec![],
        };
        assert_eq!(bench.store.take_gets(), expected, "{tag:?}");
    }
    // An object that may change is read anew each time.
    for seed in [1, 2] {
        bench.put(&content(seed)).await;
        let read = bench.cached.get(&table()).await.unwrap();
        assert_eq!(read.bytes().await.unwrap(), content(seed));
        let head = bench.cached.head(&table()).await.unwrap();
        assert_eq!(head, bench.store.head(&table()).await.unwrap());
    }
}

#[tokio::test]
async fn a_read_after_a_wrong_checksum_reaches_the_store() {
    let bench = Bench::new(99).await;
    bench.read(0..200_000).await;
    bench.put(&content(2)).await;
    let cached = bench.read_for(for_pages(), 9..99).await.unwrap();
    assert_eq!(cached, content(1).slice(9..99));
    let mut again = for_pages();
    again.retry = Some(RetryReason::CrcMismatch);
    for tag in [again, for_pages()] {
        let read = bench.read_for(tag, 9..99).await.unwrap();
        assert_eq!(read, content(2).slice(9..99));
    }
}

#[tokio::test]
async fn a_disk_that_fails_gives_no_wrong_bytes() {
    let bench = Bench::new(99).await;
    let end = TABLE_BYTES as u64;
    bench.read(0..end).await;
    bench.file.write_all_at(&[7; 100_000], 10_000).unwrap();
    // The first two pieces are wrong.
    assert_eq!(bench.read(0..end).await, [pieces(0..2)]);
    assert_eq!(bench.read(0..end).await, NONE);
    bench.file.set_len(0).unwrap();
    assert_eq!(bench.read(0..end).await, [pieces(0..11)]);
    assert_eq!(bench.read(0..end).await, NONE);
}

#[tokio::test]
async fn a_table_that_is_deleted_is_not_kept() {
    let bench = Bench::new(99).await;
    bench.read(0..9).await;
    bench.cached.delete(&table()).await.unwrap();
    let gone = bench.read_for(for_pages(), 0..9).await.unwrap_err();
    assert!(matches!(gone, Error::NotFound { .. }), "{gone}");
}

#[tokio::test]
async fn a_range_behind_the_end_is_an_error() {
    let bench = Bench::new(99).await;
    let end = TABLE_BYTES as u64;
    for _ in 0..2 {
        let read = bench.read_for(for_pages(), end..end + 1).await;
        read.unwrap_err();
        bench.read(0..end).await;
    }
}

/// Opens a database that keeps no blocks in memory.
async fn open(objects: Arc<dyn ObjectStore>) -> Db {
    let settings = Settings {
        compactor_options: None,
        garbage_collector_options: None,
        ..Settings::default()
    };
    let db = Db::builder("db", objects).with_settings(settings);
    Box::pin(db.with_db_cache_disabled().build()).await.unwrap()
}

#[tokio::test]
async fn blocks_that_left_memory_are_not_fetched_again() {
    const N_KEYS: u32 = 5_000;
    let store = Arc::new(Counted::default());
    let db = open(store.clone()).await;
    let mut batch = WriteBatch::new();
    for n in 0..N_KEYS {
        batch.put(n.to_be_bytes(), [n as u8; 100]);
    }
    db.write(batch).await.unwrap();
    db.close().await.unwrap();
    let cache = DiskCache::in_file(tempfile::tempfile().unwrap(), 64 << 20);
    let cached = Arc::new(CachedTables::new(store.clone(), cache));
    let db = open(cached.clone()).await;
    store.take_gets();
    for round in 0..3 {
        for n in (0..N_KEYS).step_by(50) {
            let value = db.get(n.to_be_bytes()).await.unwrap();
            assert_eq!(value.as_deref(), Some(&[n as u8; 100][..]), "{n}");
            cached.cache.settled().await;
        }
        let n_gets = store.take_gets().len();
        // Without a cache, each of the hundred keys would take a request for its block alone.
        let expected = if round == 0 { 1..50 } else { 0..1 };
        assert!(expected.contains(&n_gets), "{n_gets} in round {round}");
    }
    db.close().await.unwrap();
}
