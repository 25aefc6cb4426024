//! Tests of the embedded store beyond the suite: reopening, damage, snapshots, watches and leases.

use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::sync::Arc;

use tempfile::TempDir;

use super::*;
use crate::{Guard, WatchEvent};

crate::store_conformance!(async || {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    Some((Arc::new(store) as Arc<dyn Store>, folder))
});

fn open(folder: &TempDir) -> EmbeddedStore {
    EmbeddedStore::open(folder.path(), Settings::default()).unwrap()
}

fn open_again(folder: &TempDir) -> Result<EmbeddedStore, StoreError> {
    EmbeddedStore::open(folder.path(), Settings::default())
}

async fn put(store: &EmbeddedStore, key: &str, value: &str) -> Revision {
    let txn = Txn::new().put(key, value.to_owned());
    match store.commit(txn).await.unwrap() {
        Outcome::Done(revision) => revision,
        other => panic!("{other:?}"),
    }
}

fn log_path(folder: &TempDir) -> std::path::PathBuf {
    folder.path().join("store.log")
}

fn log_len(folder: &TempDir) -> u64 {
    std::fs::metadata(log_path(folder)).unwrap().len()
}

fn flip_bit(folder: &TempDir, offset: u64) {
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(log_path(folder));
    let mut file = file.unwrap();
    let mut byte = [0];
    file.seek(SeekFrom::Start(offset)).unwrap();
    file.read_exact(&mut byte).unwrap();
    file.seek(SeekFrom::Start(offset)).unwrap();
    file.write_all(&[byte[0] ^ 4]).unwrap();
}

fn cut(folder: &TempDir, len: u64) {
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(log_path(folder))
        .unwrap();
    file.set_len(len).unwrap();
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_opening_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    put(&store, "/a", "1").await;
    put(&store, "/b", "2").await;
    store
        .commit(Txn::new().put("/a", "3").delete("/b").put("/c", "4"))
        .await
        .unwrap();
    let before = store.list("/").await.unwrap();
    drop(store);
    let store = open(&folder);
    assert_eq!(store.list("/").await.unwrap(), before);
    assert!(put(&store, "/d", "5").await > before.revision);
}

#[tokio::test]
async fn leased_keys_are_not_there_after_opening_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    put(&store, "/lasting", "1").await;
    put(&store, "/both", "unleased").await;
    let lease = store.grant_lease(Duration::from_secs(60)).await.unwrap();
    let txn = Txn::new()
        .put_leased("/leased", "1", lease)
        .put_leased("/both", "leased", lease);
    let outcome = store.commit(txn).await.unwrap();
    drop(store);
    let store = open(&folder);
    let listing = store.list("/").await.unwrap();
    let keys: Vec<&str> = listing
        .entries
        .iter()
        .map(|entry| entry.key.as_str())
        .collect();
    assert_eq!(keys, ["/lasting"]);
    assert_eq!(outcome, Outcome::Done(listing.revision));
    assert!(matches!(
        store.renew_lease(lease).await,
        Err(StoreError::LeaseGone)
    ));
}

#[tokio::test]
async fn a_second_opening_is_told_who_has_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let error = open_again(&folder).unwrap_err();
    let pid = std::process::id();
    assert!(
        error
            .to_string()
            .contains(&format!("in use by process {pid}")),
        "{error}"
    );
    drop(store);
    open(&folder);
}

#[tokio::test]
async fn the_last_process_of_a_folder_is_known_without_its_lock() {
    let folder = tempfile::tempdir().unwrap();
    let last = || EmbeddedStore::last_holder(folder.path()).unwrap();
    assert_eq!(last(), None);
    let _store = open(&folder);
    assert_eq!(last(), Some(std::process::id()));
}

#[tokio::test]
async fn a_folder_that_cannot_be_one_is_named_with_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    for path in [file.as_path(), Path::new("/proc/no/such/place")] {
        let error = EmbeddedStore::open(path, Settings::default()).unwrap_err();
        assert!(matches!(error, StoreError::Folder { .. }), "{error:?}");
        assert!(
            error.to_string().contains(&path.display().to_string()),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_last_frame_cut_short_anywhere_is_dropped_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    put(&store, "/kept", "1").await;
    let good = log_len(&folder);
    put(&store, "/cut", "2").await;
    drop(store);
    let whole = std::fs::read(log_path(&folder)).unwrap();
    for len in good..whole.len() as u64 {
        std::fs::write(log_path(&folder), &whole).unwrap();
        cut(&folder, len);
        let store = open(&folder);
        assert_eq!(
            store.list("/").await.unwrap().entries.len(),
            1,
            "cut at {len}"
        );
        assert_eq!(log_len(&folder), good);
        put(&store, "/after", "3").await;
        drop(store);
        assert!(open(&folder).get("/after").await.unwrap().is_some());
    }
}

#[tokio::test]
async fn a_file_that_grew_without_being_written_is_cut_back() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    put(&store, "/kept", "1").await;
    let good = log_len(&folder);
    put(&store, "/torn", &"x".repeat(2000)).await;
    drop(store);
    let whole = std::fs::read(log_path(&folder)).unwrap();
    for first_zero in [good as usize, good as usize + 12, 512, 1024] {
        let mut torn = whole.clone();
        torn[first_zero..].fill(0);
        std::fs::write(log_path(&folder), &torn).unwrap();
        let store = open_again(&folder).unwrap_or_else(|e| panic!("zeros from {first_zero}: {e}"));
        assert_eq!(store.list("/").await.unwrap().entries.len(), 1);
        assert_eq!(log_len(&folder), good);
    }
}

#[tokio::test]
async fn a_flipped_bit_anywhere_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    for key in ["/a", "/b", "/c"] {
        put(&store, key, "value").await;
    }
    drop(store);
    for offset in 0..log_len(&folder) {
        flip_bit(&folder, offset);
        match open_again(&folder) {
            Err(StoreError::Damaged { offset: at, .. }) => assert!(at <= offset, "{at} > {offset}"),
            Err(StoreError::Format { .. }) => assert!((12..16).contains(&offset)),
            other => panic!("byte {offset}: {other:?}"),
        }
        flip_bit(&folder, offset);
    }
    assert_eq!(open(&folder).list("/").await.unwrap().entries.len(), 3);
}

#[tokio::test]
async fn a_frame_that_is_missing_or_there_twice_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let mut ends = vec![log_len(&folder) as usize];
    for key in ["/a", "/b", "/c"] {
        put(&store, key, "value").await;
        ends.push(log_len(&folder) as usize);
    }
    drop(store);
    let whole = std::fs::read(log_path(&folder)).unwrap();
    let without_b = [&whole[..ends[1]], &whole[ends[2]..]].concat();
    let twice_b = [&whole[..ends[2]], &whole[ends[1]..]].concat();
    for (log, offset) in [(without_b, ends[1]), (twice_b, ends[2])] {
        std::fs::write(log_path(&folder), log).unwrap();
        let error = open_again(&folder).unwrap_err();
        let expected = format!("damaged at byte {offset}: a gap in the revisions");
        assert!(error.to_string().contains(&expected), "{error}");
    }
}

#[tokio::test]
async fn a_later_format_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(&folder));
    let mut log = std::fs::read(log_path(&folder)).unwrap();
    log[12] = 2;
    std::fs::write(log_path(&folder), &log).unwrap();
    let error = open_again(&folder).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("has format 2 and this version knows 1"),
        "{error}"
    );
}

#[tokio::test]
async fn the_log_is_replaced_by_a_snapshot_when_it_has_grown() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings {
        snapshot_bytes: 4096,
        ..Settings::default()
    };
    let store = EmbeddedStore::open(folder.path(), settings.clone()).unwrap();
    let created = put(&store, "/old", "stays").await;
    let lease = store.grant_lease(Duration::from_secs(60)).await.unwrap();
    store
        .commit(Txn::new().put_leased("/leased", "1", lease))
        .await
        .unwrap();
    for n in 0..1000 {
        put(&store, "/n", &n.to_string()).await;
        assert!(log_len(&folder) < 3 * 4096);
    }
    let revision = store.list("/").await.unwrap().revision;
    drop(store);
    let store = EmbeddedStore::open(folder.path(), settings).unwrap();
    let listing = store.list("/").await.unwrap();
    assert_eq!(listing.revision, revision);
    let values: Vec<&[u8]> = listing
        .entries
        .iter()
        .map(|entry| entry.value.as_ref())
        .collect();
    assert_eq!(values, [b"999".as_slice(), b"stays"]);
    assert_eq!(listing.entries[1].created, created);
}

#[tokio::test]
async fn a_snapshot_that_a_crash_left_half_written_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    put(&store, "/a", "1").await;
    drop(store);
    let leftover = folder.path().join("store.log.next");
    std::fs::write(&leftover, "half").unwrap();
    let store = open(&folder);
    assert!(store.get("/a").await.unwrap().is_some());
    assert!(!leftover.exists());
}

#[tokio::test]
async fn concurrent_transactions_share_syncs_and_each_has_its_revision() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let started = log_len(&folder);
    let puts = (0..500).map(|n| store.commit(Txn::new().put(format!("/{n:03}"), "x")));
    let outcomes = futures::future::try_join_all(puts).await.unwrap();
    let revisions = outcomes.into_iter().map(|outcome| match outcome {
        Outcome::Done(revision) => revision.0,
        other => panic!("{other:?}"),
    });
    let different: std::collections::BTreeSet<u64> = revisions.collect();
    assert!(different.into_iter().eq(1..=500));
    let grown = (log_len(&folder) - started) as usize;
    let without_heads = 500 * (8 + 4 + 1 + 4 + "/000".len() + 4 + "x".len() + 8);
    let n_frames = (grown - without_heads) / frame::HEAD_LEN;
    assert!(n_frames < 50, "{n_frames} syncs for 500 transactions");
}

#[tokio::test]
async fn guards_see_what_is_staged_before_them_in_the_same_sync() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let txns = (0..100).map(|n| {
        let txn = Txn::new().guard(Guard::Absent("/one".to_owned()));
        store.commit(txn.put("/one", n.to_string()))
    });
    let outcomes = futures::future::try_join_all(txns).await.unwrap();
    let n_done = outcomes
        .iter()
        .filter(|outcome| matches!(outcome, Outcome::Done(_)))
        .count();
    assert_eq!(n_done, 1);
}

#[tokio::test]
async fn a_watch_from_before_the_history_starts_over() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings {
        history_bytes: 1000,
        ..Settings::default()
    };
    let store = EmbeddedStore::open(folder.path(), settings).unwrap();
    let first = put(&store, "/a", "1").await;
    let mut last = first;
    for _ in 0..20 {
        last = put(&store, "/a", "2").await;
    }
    for from in [first, Revision(last.0 + 100)] {
        let mut watch = store.watch("/", from).await.unwrap();
        assert_eq!(watch.next().await.unwrap(), WatchEvent::StartOver);
        let revision = put(&store, "/a", "3").await;
        let event = watch.next().await.unwrap();
        assert!(matches!(event, WatchEvent::Put(entry) if entry.revision == revision));
    }
}

#[tokio::test]
async fn a_watch_that_lags_too_far_starts_over_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings {
        n_watch_buffer: 4,
        ..Settings::default()
    };
    let store = EmbeddedStore::open(folder.path(), settings).unwrap();
    let mut watch = store.watch("/", Revision(0)).await.unwrap();
    for _ in 0..5 {
        put(&store, "/a", "1").await;
    }
    assert_eq!(watch.next().await.unwrap(), WatchEvent::StartOver);
    let revision = put(&store, "/a", "2").await;
    let event = watch.next().await.unwrap();
    assert!(matches!(event, WatchEvent::Put(entry) if entry.revision == revision));
}

#[tokio::test]
async fn a_watch_ends_with_its_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let mut watch = store.watch("/", Revision(0)).await.unwrap();
    put(&store, "/a", "1").await;
    drop(store);
    assert!(matches!(watch.next().await.unwrap(), WatchEvent::Put(_)));
    assert!(matches!(
        watch.next().await,
        Err(StoreError::Unavailable { .. })
    ));
}

#[tokio::test(start_paused = true)]
async fn a_lease_ends_when_it_is_not_renewed_and_not_before() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let lease = store.grant_lease(Duration::from_secs(10)).await.unwrap();
    store
        .commit(Txn::new().put_leased("/a", "1", lease))
        .await
        .unwrap();
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_secs(9)).await;
        store.renew_lease(lease).await.unwrap();
    }
    let from = store.list("/").await.unwrap().revision;
    let mut watch = store.watch("/", from).await.unwrap();
    let asked = Instant::now();
    let event = watch.next().await.unwrap();
    assert!(
        matches!(event, WatchEvent::Delete { ref key, .. } if key == "/a"),
        "{event:?}"
    );
    assert!(asked.elapsed() >= Duration::from_secs(10));
    assert!(matches!(
        store.renew_lease(lease).await,
        Err(StoreError::LeaseGone)
    ));
}
