//! Tests of what the data root keeps, refuses and removes.

use std::collections::BTreeSet;

use super::*;
use crawler_model::id::Digest;

fn open(folder: &tempfile::TempDir) -> DataRoot {
    DataRoot::open(&folder.path().display().to_string()).unwrap()
}

fn plugin_file(folder: &tempfile::TempDir, digest: Digest) -> PathBuf {
    folder.path().join("plugins").join(format!("{digest}.wasm"))
}

#[tokio::test]
async fn a_plugin_is_read_back_whole_and_in_pieces() {
    let folder = tempfile::tempdir().unwrap();
    let root = open(&folder);
    let bytes = Bytes::from("0123456789");
    let digest = Digest::of(&bytes);
    assert_eq!(root.plugin(digest).await.unwrap(), None);
    for _ in 0..2 {
        root.put_plugin(digest, bytes.clone()).await.unwrap();
    }
    assert_eq!(root.plugin(digest).await.unwrap(), Some(bytes));
    for (offset, piece) in [(0, "0123"), (4, "4567"), (8, "89"), (10, ""), (99, "")] {
        assert_eq!(root.plugin_piece(digest, offset, 4).await.unwrap(), piece);
    }
    for _ in 0..2 {
        root.delete_plugin(digest).await.unwrap();
    }
    assert_eq!(root.plugin(digest).await.unwrap(), None);
    let error = root.plugin_piece(digest, 0, 4).await.unwrap_err();
    assert!(matches!(error, DataError::Missing { .. }), "{error}");
}

#[tokio::test]
async fn bytes_of_plugins_that_are_not_kept_go_and_other_files_stay() {
    let folder = tempfile::tempdir().unwrap();
    let root = open(&folder);
    let (now, hour) = (SystemClock.unix_millis(), 60 * 60 * 1_000);
    assert_eq!(
        root.keep_plugins(&BTreeSet::new(), now, || true)
            .await
            .unwrap(),
        0
    );
    let [kept, orphan] = ["kept", "orphan"].map(Bytes::from);
    let [kept_digest, orphan_digest] = [&kept, &orphan].map(|bytes| Digest::of(bytes));
    root.put_plugin(kept_digest, kept).await.unwrap();
    root.put_plugin(orphan_digest, orphan).await.unwrap();
    let beside = |name: &str| folder.path().join("plugins").join(name);
    for file in [&beside("notes.txt"), &beside("mine.wasm")] {
        std::fs::write(file, "").unwrap();
    }
    let kept = [kept_digest].into();
    // The push of these bytes may be under way.
    let early = now + hour - 60_000;
    assert_eq!(root.keep_plugins(&kept, early, || true).await.unwrap(), 0);
    let n_deleted = root
        .keep_plugins(&kept, now + hour + 60_000, || true)
        .await
        .unwrap();
    assert_eq!(n_deleted, 1);
    root.put_plugin(orphan_digest, Bytes::from("orphan"))
        .await
        .unwrap();
    let late = now + hour + 60_000;
    assert_eq!(root.keep_plugins(&kept, late, || false).await.unwrap(), 0);
    assert_eq!(root.keep_plugins(&kept, late, || true).await.unwrap(), 1);
    assert!(!plugin_file(&folder, orphan_digest).exists());
    assert!(beside("notes.txt").exists() && beside("mine.wasm").exists());
    assert!(root.plugin(kept_digest).await.unwrap().is_some());
}

#[tokio::test]
async fn bytes_that_were_changed_are_damage_and_a_push_repairs_them() {
    let folder = tempfile::tempdir().unwrap();
    let root = open(&folder);
    let bytes = Bytes::from("0123456789");
    let digest = Digest::of(&bytes);
    root.put_plugin(digest, bytes.clone()).await.unwrap();
    std::fs::write(plugin_file(&folder, digest), "0123456780").unwrap();
    let error = root.plugin(digest).await.unwrap_err();
    assert!(matches!(error, DataError::Damaged { .. }), "{error}");
    assert!(!error.is_transient());
    root.put_plugin(digest, bytes.clone()).await.unwrap();
    assert_eq!(root.plugin(digest).await.unwrap(), Some(bytes));
}

#[tokio::test]
async fn bytes_of_another_digest_are_not_stored() {
    let folder = tempfile::tempdir().unwrap();
    let root = open(&folder);
    let digest = Digest::of(b"announced");
    let error = root
        .put_plugin(digest, Bytes::from("sent"))
        .await
        .unwrap_err();
    assert!(matches!(error, DataError::WrongDigest { .. }), "{error}");
    assert!(!plugin_file(&folder, digest).exists());
}

#[tokio::test]
async fn a_folder_belongs_to_one_cluster() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        open(&folder).bind_cluster("one").await.unwrap();
    }
    let error = open(&folder).bind_cluster("two").await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("belongs to cluster one, and this is cluster two"),
        "{error}"
    );
    std::fs::write(folder.path().join("cluster.json"), "{").unwrap();
    let error = open(&folder).bind_cluster("one").await.unwrap_err();
    assert!(matches!(error, DataError::ClusterFile { .. }), "{error}");
}

/// Starts processes of three clusters at once on a root that belongs to none. One cluster gets it, and all processes of
/// the others learn which.
pub(super) async fn race_for_the_root(open: impl Fn() -> DataRoot) {
    let clusters = ["one", "two", "three"].repeat(4);
    let starts = clusters.into_iter().map(|cluster| {
        let root = open();
        async move {
            loop {
                match root.bind_cluster(cluster).await {
                    Err(error) if error.is_transient() => tokio::task::yield_now().await,
                    bound => return (cluster, bound),
                }
            }
        }
    });
    let ends = futures::future::join_all(starts);
    let ends = tokio::time::timeout(Duration::from_secs(60), ends).await;
    let ends = ends.expect("all processes learn whose root it is");
    let won = ends.iter().filter(|(_, bound)| bound.is_ok());
    let winners: BTreeSet<&str> = won.map(|(cluster, _)| *cluster).collect();
    assert_eq!(winners.len(), 1, "{winners:?}");
    for (cluster, bound) in ends {
        match bound {
            Ok(()) => {}
            Err(DataError::OtherCluster { found, .. }) => {
                assert!(winners.contains(found.as_str()), "{found}");
                assert!(!winners.contains(cluster), "{cluster} has it");
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn of_clusters_that_start_at_once_one_gets_the_folder() {
    for _ in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        race_for_the_root(|| open(&folder)).await;
    }
}

#[tokio::test]
async fn what_was_taken_away_with_the_root_is_not_called_deleted() {
    let place = tempfile::tempdir().unwrap();
    let (folder, aside) = (place.path().join("data"), place.path().join("aside"));
    let root = DataRoot::open(&folder.display().to_string()).unwrap();
    root.check().await.unwrap();
    std::fs::rename(&folder, &aside).unwrap();
    root.check().await.unwrap_err();
    root.delete_frontiers(ResourceId(1)).await.unwrap_err();
    std::fs::rename(&aside, &folder).unwrap();
    root.delete_frontiers(ResourceId(1)).await.unwrap();
}

#[tokio::test]
async fn the_frontiers_of_one_resource_are_deleted_to_the_last_file_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let root = open(&folder);
    let objects = root.object_store();
    let files = |id: u64| {
        ["0/wal/1.sst", "0/manifest/2.manifest", "1/wal/3.sst"]
            .map(|file| ObjectPath::from(format!("frontiers/{id}/{file}")))
    };
    for path in files(1).iter().chain(&files(11)) {
        objects.put(path, "1".into()).await.unwrap();
    }
    let in_frontiers = |name: &str| folder.path().join("frontiers").join(name);
    std::fs::write(in_frontiers("1/0/wal/4.sst#1"), "").unwrap();
    std::fs::create_dir(in_frontiers("1/0/empty")).unwrap();
    let id = ResourceId(1);
    assert_eq!(root.delete_frontiers(id).await.unwrap(), 3);
    assert_eq!(root.delete_frontiers(id).await.unwrap(), 0);
    assert!(!in_frontiers("1").exists());
    for path in files(11) {
        objects.head(&path).await.unwrap();
    }
}

#[tokio::test]
async fn writes_that_were_cut_off_are_swept_after_an_hour_and_nothing_else_is() {
    let folder = tempfile::tempdir().unwrap();
    let root = open(&folder);
    let files = [
        "frontiers/1/0/wal/1.sst#1",
        "plugins/a.wasm#12",
        "probe/0123",
        "files/1/ab/abcd#7",
        "frontiers/1/0/wal/1.sst",
        "frontiers/1/0/wal/1.sst#a",
        "plugins/a.wasm",
        "items/1/0/1-0.jsonl#1",
        ".tmpA1b2C3",
        ".tmp-of-others",
        "lost+found/.tmpA1b2C3",
    ]
    .map(|file| folder.path().join(file));
    for file in &files {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "").unwrap();
    }
    let written = files.map(|file| (std::fs::metadata(&file).unwrap().modified().unwrap(), file));
    let last = written.iter().map(|(at, _)| *at).max().unwrap();
    let last = last.duration_since(std::time::UNIX_EPOCH).unwrap();
    let last = u64::try_from(last.as_millis()).unwrap();
    let n_left = || written.iter().filter(|(_, file)| file.exists()).count();
    assert_eq!(root.sweep(last + 3_500_000).await.unwrap(), 0);
    assert_eq!(n_left(), 11);
    assert_eq!(root.sweep(last + 3_600_001).await.unwrap(), 4);
    assert_eq!(n_left(), 7);
    assert!(written[4..].iter().all(|(_, file)| file.exists()));
}

#[tokio::test]
async fn a_folder_that_keeps_writers_apart_passes_and_the_probe_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let root = open(&folder);
    for _ in 0..5 {
        root.probe().await.unwrap();
    }
    let probes = std::fs::read_dir(folder.path().join("probe")).unwrap();
    assert_eq!(probes.count(), 0);
}

#[tokio::test]
async fn why_the_store_fails_is_told_until_it_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let root = open(&folder);
    root.object_store()
        .put(&"a".into(), "1".into())
        .await
        .unwrap();
    let in_the_way = ObjectPath::from("a/b");
    let put = root.object_store();
    put.put(&in_the_way, "1".into()).await.unwrap_err();
    assert!(root.last_error().is_some());
    put.put(&"b".into(), "1".into()).await.unwrap();
    assert_eq!(root.last_error(), None);
}

#[test]
fn a_place_that_cannot_hold_data_is_refused_with_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let file = file.display().to_string();
    for place in [
        "s3:///path",
        "http://host/",
        "file://relative",
        &file,
        "/proc/no/such/place",
    ] {
        let error = DataRoot::open(place).unwrap_err().to_string();
        assert!(error.contains(place) && error.contains("--data"), "{error}");
    }
}

#[test]
fn a_missing_folder_is_created() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("a/b");
    DataRoot::open(&format!("file://{}", inner.display())).unwrap();
    assert!(inner.is_dir());
}
