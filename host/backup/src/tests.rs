//! Backups of a small cluster: a store and a data root with a few objects.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt as _;
use object_store::ObjectStoreExt as _;
use object_store::path::Path as ObjectPath;
use tempfile::TempDir;

use super::*;
use crawler_data::DataRoot;
use crawler_model::node::Role;
use crawler_store::Txn;
use crawler_store::catalog::{Catalog, encode};
use crawler_store::embedded::{EmbeddedStore, Settings};
use crawler_store::keys::Keys;

/// Bytes of an object that is copied in parts.
const LARGE: usize = (20 << 20) + 7;

/// A cluster in a folder.
struct Cluster {
    folder: TempDir,
    catalog: Catalog,
    data: DataRoot,
}

impl Cluster {
    fn empty() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data").display().to_string();
        let store = EmbeddedStore::open(&folder.path().join("data/store"), Settings::default());
        Self {
            data: DataRoot::open(&data).expect("a data root"),
            catalog: Catalog::new(Arc::new(store.expect("a store")), Keys::default()),
            folder,
        }
    }

    /// Makes a cluster with more records than one transaction takes, and objects of several sizes.
    async fn with_crawls() -> Self {
        let cluster = Self::empty();
        cluster
            .put_record(&cluster.catalog.keys().cluster(), "one")
            .await;
        for n in 0..300 {
            let name = format!("crawl-{n}").parse().expect("a name");
            let key = cluster.catalog.keys().resource(&name);
            cluster.put_record(&key, &format!("{n}")).await;
        }
        cluster.data.bind_cluster("one").await.expect("bound");
        for (path, n_bytes) in [
            ("frontiers/7/0/fence", 0),
            ("frontiers/7/0/table", 70_000),
            ("items/7/0/1.jsonl", LARGE),
        ] {
            let path = ObjectPath::from(path);
            let body = vec![7; n_bytes];
            let put = cluster.data.object_store().put(&path, body.into()).await;
            put.expect("written");
        }
        cluster
    }

    async fn put_record(&self, key: &str, value: &str) {
        let txn = Txn::new().put(key, encode(&value));
        self.catalog.store().commit(txn).await.expect("written");
    }

    fn archive(&self) -> std::path::PathBuf {
        self.folder.path().join("archive")
    }

    async fn back_up(&self) -> Result<Manifest, BackupError> {
        let made_by = ("1.2.3", 1_700_000_000_000);
        let archive = self.archive();
        Box::pin(create(
            &self.catalog,
            &self.data,
            &archive,
            made_by,
            &|_, _| (),
        ))
        .await
    }

    async fn restore(&self, archive: &Path) -> Result<Manifest, BackupError> {
        let archive = Archive::at(archive);
        Box::pin(restore(&archive, &self.catalog, &self.data, &|_, _| ())).await
    }

    async fn records(&self) -> BTreeMap<String, Vec<u8>> {
        let listing = self.catalog.store().list("").await.expect("listed");
        let entries = listing.entries.into_iter();
        entries
            .map(|entry| (entry.key, entry.value.to_vec()))
            .collect()
    }

    async fn objects(&self) -> BTreeMap<String, Vec<u8>> {
        let contents: Vec<_> = self.data.contents().try_collect().await.expect("listed");
        let mut objects = BTreeMap::new();
        for object in contents {
            let read = self.data.object_store().get(&object.location).await;
            let body = read.expect("found").bytes().await.expect("read");
            objects.insert(object.location.to_string(), body.to_vec());
        }
        objects
    }
}

#[tokio::test]
async fn a_restored_cluster_has_the_same_records_and_objects() {
    let cluster = Cluster::with_crawls().await;
    let manifest = cluster.back_up().await.unwrap();
    assert_eq!((manifest.records.n, manifest.objects.n), (301, 4));
    let archive = Archive::at(&cluster.archive());
    assert_eq!(archive.verify(&|_, _| ()).await.unwrap(), manifest);

    let other = Cluster::empty();
    assert_eq!(other.restore(&cluster.archive()).await.unwrap(), manifest);
    assert_eq!(other.records().await, cluster.records().await);
    assert_eq!(other.objects().await, cluster.objects().await);
    assert_eq!(other.data.marked_restore().await.unwrap(), None);
    assert_eq!(other.data.cluster().await.unwrap().as_deref(), Some("one"));
}

#[tokio::test]
async fn keys_under_leases_and_those_of_this_store_are_left_out() {
    let cluster = Cluster::with_crawls().await;
    let store = cluster.catalog.store();
    let lease = store.grant_lease(Duration::from_secs(60)).await.unwrap();
    let key = cluster.catalog.keys().status(&"worker-1".parse().unwrap());
    let txn = Txn::new().put_leased(key, "{}", lease);
    store.commit(txn).await.unwrap();
    let webhook = "chat".parse().unwrap();
    let position = cluster.catalog.keys().webhook_position(&webhook);
    cluster.put_record(&position, "7").await;
    let store_id = cluster.catalog.keys().store_id();
    cluster.put_record(&store_id, "one").await;
    assert_eq!(cluster.back_up().await.unwrap().records.n, 301);
}

#[tokio::test]
async fn a_backup_needs_a_cluster_without_nodes_and_its_data_root() {
    let empty = Cluster::empty();
    let error = empty.back_up().await.unwrap_err();
    assert!(matches!(error, BackupError::NoCluster), "{error}");

    let cluster = Cluster::with_crawls().await;
    let apart = Cluster {
        catalog: cluster.catalog.clone(),
        ..Cluster::empty()
    };
    let error = apart.back_up().await.unwrap_err();
    assert!(matches!(error, BackupError::Apart { .. }), "{error}");

    let keys = cluster.catalog.keys();
    let node = keys.node(Role::Worker, &"worker-1".parse().unwrap());
    cluster.put_record(&node, "x").await;
    let error = cluster.back_up().await.unwrap_err();
    let message = "the cluster has nodes that run: worker-1";
    assert_eq!(error.to_string(), message);
    assert!(!cluster.archive().exists());
}

#[tokio::test]
async fn a_folder_that_is_in_use_or_in_the_data_root_is_refused() {
    let cluster = Cluster::with_crawls().await;
    cluster.back_up().await.unwrap();
    let error = cluster.back_up().await.unwrap_err();
    assert!(matches!(error, BackupError::NotEmpty { .. }), "{error}");
    let root = cluster.data.folder().unwrap();
    let link = cluster.folder.path().join("link");
    std::os::unix::fs::symlink(root, &link).unwrap();
    let back = cluster.folder.path().join("link/../data");
    for inside in [root, &link, &back] {
        let inside = inside.join("backup");
        let made = create(
            &cluster.catalog,
            &cluster.data,
            &inside,
            ("", 0),
            &|_, _| (),
        );
        let error = Box::pin(made).await.unwrap_err();
        assert!(matches!(error, BackupError::Inside { .. }), "{error}");
    }
}

/// Changes the text of a file of an archive, and its digest in the manifest.
async fn forge(archive: &Path, file: &str, from: &str, to: &str) {
    let path = archive.join(file);
    let before = lines::digest(&path).await.expect("read").to_string();
    let text = std::fs::read_to_string(&path).expect("read");
    std::fs::write(&path, text.replacen(from, to, 1)).expect("written");
    let after = lines::digest(&path).await.expect("read").to_string();
    assert_ne!(before, after, "{file} has no {from}");
    let manifest = archive.join("manifest.json");
    let text = std::fs::read_to_string(&manifest).expect("read");
    std::fs::write(&manifest, text.replace(&before, &after)).expect("written");
}

#[tokio::test]
async fn an_archive_with_anything_else_than_a_cluster_is_refused() {
    for (file, from, to) in [
        ("records.jsonl", "/crawler/resources/", "/other/"),
        (
            "records.jsonl",
            "/crawler/resources/",
            "/crawler/nodes/worker/",
        ),
        ("objects.jsonl", "frontiers/7/0/fence", "store/log"),
        ("objects.jsonl", "frontiers/7/0/fence", "../fence"),
    ] {
        let cluster = Cluster::with_crawls().await;
        cluster.back_up().await.unwrap();
        forge(&cluster.archive(), file, from, to).await;
        let other = Cluster::empty();
        let error = other.restore(&cluster.archive()).await.unwrap_err();
        assert!(
            matches!(error, BackupError::Damaged { .. }),
            "{to}: {error}"
        );
        assert_eq!(other.records().await, BTreeMap::new(), "{to}");
        assert_eq!(other.objects().await, BTreeMap::new(), "{to}");
    }
}

#[tokio::test]
async fn records_that_hold_for_one_store_are_not_restored() {
    for (from, to) in [
        ("/crawler/resources/crawl-0", "/crawler/store-id"),
        ("/crawler/resources/crawl-0", "/crawler/webhooks/chat"),
    ] {
        let cluster = Cluster::with_crawls().await;
        cluster.back_up().await.unwrap();
        forge(&cluster.archive(), "records.jsonl", from, to).await;
        let other = Cluster::empty();
        other.restore(&cluster.archive()).await.unwrap();
        let mut expected = cluster.records().await;
        expected.remove(from);
        assert_eq!(other.records().await, expected, "{to}");
    }
}

#[tokio::test]
async fn a_backup_of_a_bucket_is_not_restored_into_a_folder() {
    let cluster = Cluster::with_crawls().await;
    cluster.back_up().await.unwrap();
    let manifest = cluster.archive().join("manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replace("\"folder\"", "\"bucket\"")).unwrap();
    let other = Cluster::empty();
    let error = other.restore(&cluster.archive()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the backup is of a data root in a bucket, and this one is in a folder"
    );
    assert_eq!(other.records().await, BTreeMap::new());
}

#[tokio::test]
async fn a_write_during_the_backup_is_noticed() {
    let cluster = Cluster::with_crawls().await;
    let written = cluster.data.folder().unwrap().join("items/7/0/2.jsonl");
    let write = |_: u64, _: u64| std::fs::write(&written, "late").unwrap();
    let archive = cluster.archive();
    let made = create(&cluster.catalog, &cluster.data, &archive, ("", 0), &write);
    let error = Box::pin(made).await.unwrap_err();
    assert!(matches!(error, BackupError::Changed { .. }), "{error}");
    let verified = Archive::at(&archive).verify(&|_, _| ()).await;
    let error = verified.unwrap_err();
    assert!(matches!(error, BackupError::Incomplete { .. }), "{error}");
}

#[tokio::test]
async fn a_damaged_archive_is_told_and_nothing_is_restored() {
    let cluster = Cluster::with_crawls().await;
    cluster.back_up().await.unwrap();
    let table = cluster.archive().join("data/frontiers/7/0/table");
    let mut body = std::fs::read(&table).unwrap();
    body[69_999] ^= 1;
    std::fs::write(&table, body).unwrap();
    std::fs::remove_file(cluster.archive().join("data/frontiers/7/0/fence")).unwrap();

    let other = Cluster::empty();
    let error = other.restore(&cluster.archive()).await.unwrap_err();
    let BackupError::Damaged { mut faults, .. } = error else {
        panic!("{error}")
    };
    faults.sort();
    let expected = [
        "frontiers/7/0/fence is missing",
        "frontiers/7/0/table has another digest",
    ];
    assert_eq!(faults, expected);
    assert_eq!(other.records().await, BTreeMap::new());
    assert_eq!(other.objects().await, BTreeMap::new());

    let records = cluster.archive().join("records.jsonl");
    let text = std::fs::read_to_string(&records).unwrap();
    std::fs::write(&records, text.replacen("crawl-1", "crawl-2", 1)).unwrap();
    let error = other.restore(&cluster.archive()).await.unwrap_err();
    let message = error.to_string();
    assert!(
        message.ends_with("records.jsonl has another digest"),
        "{message}"
    );
}

#[tokio::test]
async fn a_restore_that_was_cut_off_is_repeated() {
    let cluster = Cluster::with_crawls().await;
    cluster.back_up().await.unwrap();
    let manifest = Archive::at(&cluster.archive()).manifest().await.unwrap();

    // It was cut off after some records.
    let other = Cluster::empty();
    let name = restore::name_of(&manifest);
    other.data.mark_restore(&name).await.unwrap();
    other.data.bind_cluster("one").await.unwrap();
    let records = cluster.records().await;
    let (key, value) = records.iter().next_back().unwrap();
    assert_ne!(*key, other.catalog.keys().cluster());
    let txn = Txn::new().put(key.as_str(), value.clone());
    other.catalog.store().commit(txn).await.unwrap();
    other.restore(&cluster.archive()).await.unwrap();
    assert_eq!(other.records().await, records);
    assert_eq!(other.objects().await, cluster.objects().await);

    // It was cut off before the mark was removed. What nodes have written since stays.
    other.data.mark_restore(&name).await.unwrap();
    other.put_record(key, "new").await;
    let after = other.records().await;
    other.restore(&cluster.archive()).await.unwrap();
    assert_eq!(other.records().await, after);
    assert_eq!(other.data.marked_restore().await.unwrap(), None);
}

#[tokio::test]
async fn a_repeated_restore_writes_only_what_is_not_there() {
    use std::os::unix::fs::MetadataExt as _;
    let cluster = Cluster::with_crawls().await;
    let manifest = cluster.back_up().await.unwrap();
    let other = Cluster::empty();
    let root = other.data.folder().unwrap();
    let inode = |path: &str| std::fs::metadata(root.join(path)).unwrap().ino();
    // It was cut off after two objects, and a third has the right size alone.
    let name = restore::name_of(&manifest);
    other.data.mark_restore(&name).await.unwrap();
    for (path, byte, n_bytes) in [
        ("items/7/0/1.jsonl", 7, LARGE),
        ("frontiers/7/0/table", 8, 70_000),
        ("frontiers/7/0/fence", 7, 0),
    ] {
        let file = root.join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, vec![byte; n_bytes]).unwrap();
    }
    let paths = [
        "items/7/0/1.jsonl",
        "frontiers/7/0/fence",
        "frontiers/7/0/table",
    ];
    let before = paths.map(inode);
    other.restore(&cluster.archive()).await.unwrap();
    let after = paths.map(inode);
    assert_eq!(after[..2], before[..2]);
    assert_ne!(after[2], before[2]);
    assert_eq!(other.objects().await, cluster.objects().await);
    assert_eq!(other.data.marked_restore().await.unwrap(), None);
}

/// Restores an archive that is changed when all of its objects have been verified.
async fn restore_while_it_changes(
    archive: &Path,
    n_objects: u64,
    change: impl Fn() + Sync,
) -> Cluster {
    let other = Cluster::empty();
    let progress = |n: u64, _: u64| {
        if n == n_objects {
            change();
        }
    };
    let of = Archive::at(archive);
    let restored = Box::pin(restore(&of, &other.catalog, &other.data, &progress)).await;
    let error = restored.unwrap_err();
    let message = error.to_string();
    assert!(
        message.ends_with("has changed since it was verified"),
        "{message}"
    );
    // Nothing that has changed was written.
    assert_eq!(other.records().await, BTreeMap::new());
    let table = "frontiers/7/0/table";
    assert!(!other.objects().await.contains_key(table));
    other
}

#[tokio::test]
async fn a_change_after_the_verification_is_noticed() {
    for file in ["data/frontiers/7/0/table", "records.jsonl"] {
        let cluster = Cluster::with_crawls().await;
        let manifest = cluster.back_up().await.unwrap();
        let path = cluster.archive().join(file);
        let change = || {
            let mut body = std::fs::read(&path).unwrap();
            // In the list, this is a digit of the last value.
            let digit = body.len() - 4;
            body[digit] ^= 1;
            std::fs::write(&path, body).unwrap();
        };
        restore_while_it_changes(&cluster.archive(), manifest.objects.n, change).await;
    }
}

#[tokio::test]
async fn a_list_that_changes_is_noticed_before_any_object() {
    let cluster = Cluster::with_crawls().await;
    let manifest = cluster.back_up().await.unwrap();
    let list = cluster.archive().join("objects.jsonl");
    let change = || {
        let text = std::fs::read_to_string(&list).unwrap();
        // The list has the same objects in another order.
        let mut lines: Vec<&str> = text.lines().collect();
        lines.reverse();
        std::fs::write(&list, lines.join("\n") + "\n").unwrap();
    };
    let other = restore_while_it_changes(&cluster.archive(), manifest.objects.n, change).await;
    assert_eq!(other.objects().await, BTreeMap::new());
    assert_eq!(other.data.marked_restore().await.unwrap(), None);
}

#[tokio::test]
async fn a_repeated_restore_refuses_other_objects() {
    let cluster = Cluster::with_crawls().await;
    let manifest = cluster.back_up().await.unwrap();
    let other = Cluster::empty();
    let name = restore::name_of(&manifest);
    other.data.mark_restore(&name).await.unwrap();
    let foreign = "items/9/0/1.jsonl";
    let put = other.data.object_store();
    put.put(&foreign.into(), "x".into()).await.unwrap();
    let error = other.restore(&cluster.archive()).await.unwrap_err();
    assert!(
        matches!(&error, BackupError::RootUsed { path } if path == foreign),
        "{error}"
    );
    assert_eq!(other.records().await, BTreeMap::new());
    assert_eq!(other.objects().await.len(), 1);
}

#[tokio::test]
async fn a_store_or_a_data_root_that_is_in_use_is_refused() {
    let cluster = Cluster::with_crawls().await;
    cluster.back_up().await.unwrap();
    let error = cluster.restore(&cluster.archive()).await.unwrap_err();
    assert!(matches!(error, BackupError::StoreUsed { .. }), "{error}");

    let used = Cluster {
        catalog: Cluster::empty().catalog,
        ..Cluster::with_crawls().await
    };
    let error = used.restore(&cluster.archive()).await.unwrap_err();
    assert!(matches!(error, BackupError::RootUsed { .. }), "{error}");

    let other = Cluster::empty();
    other.data.mark_restore("another").await.unwrap();
    let error = other.restore(&cluster.archive()).await.unwrap_err();
    assert!(matches!(error, BackupError::OtherRestore), "{error}");
}

#[tokio::test]
async fn an_archive_of_a_later_format_is_refused() {
    let cluster = Cluster::with_crawls().await;
    cluster.back_up().await.unwrap();
    let path = cluster.archive().join("manifest.json");
    let later = r#"{"format": 2, "other": true}"#;
    std::fs::write(&path, later).unwrap();
    let read = Archive::at(&cluster.archive()).manifest().await;
    let error = read.unwrap_err();
    assert!(
        matches!(error, BackupError::Format { found: 2, .. }),
        "{error}"
    );
}

#[tokio::test]
async fn only_the_owner_may_read_an_archive() {
    use std::os::unix::fs::PermissionsExt as _;
    let cluster = Cluster::with_crawls().await;
    cluster.back_up().await.unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&cluster.archive()), 0o700);
    assert_eq!(mode(&cluster.archive().join("data")), 0o700);
    assert_eq!(mode(&cluster.archive().join("records.jsonl")), 0o600);
}
