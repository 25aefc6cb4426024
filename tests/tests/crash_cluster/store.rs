//! Data that a killed process has left on its disk, read without the process: records that belong together, and
//! line files of every run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use crawler_data::DataRoot;
use crawler_frontier::reader::FrontierReader;
use crawler_model::id::{ResourceId, ResourceName, Run};
use crawler_model::plugin::PluginRecord;
use crawler_model::resource::{Assignment, Deleting, Resource, ShardId, ShardRecord, ShardState};
use crawler_sink::items::{Extent, Extents, ItemStore as _};
use crawler_sink::lines::{LineFolders, LineSettings};
use crawler_store::catalog::Catalog;
use crawler_store::embedded::{EmbeddedStore, Settings};
use crawler_store::keys::Keys;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A resource and its shard, as they were at the kill.
pub(crate) struct Left {
    pub(crate) resource: Resource,
    pub(crate) shard: ShardRecord,
}

/// Reads every record of a killed process, and checks it against the others. It reads a copy, because the next
/// process has to find writes that were cut short.
pub(crate) async fn records(data: &Path) -> BTreeMap<ResourceName, Left> {
    let copy = tempfile::tempdir().expect("a temporary folder");
    let Ok(files) = fs::read_dir(data.join("store")) else {
        return BTreeMap::new();
    };
    for file in files {
        let file = file.expect("the store's folder is listed");
        fs::copy(file.path(), copy.path().join(file.file_name())).expect("a file is copied");
    }
    let store = EmbeddedStore::open(copy.path(), Settings::default())
        .unwrap_or_else(|e| panic!("the store does not open after a kill: {e}"));
    let catalog = Catalog::new(Arc::new(store), Keys::default());
    let keys = catalog.keys();

    let resources: BTreeMap<String, Resource> = scan(&catalog, &keys.resources()).await;
    let mut shards: BTreeMap<String, ShardRecord> = scan(&catalog, &keys.shards()).await;
    let mut assignments: BTreeMap<String, Assignment> = scan(&catalog, &keys.assignments()).await;
    let deleting: BTreeMap<String, Deleting> = scan(&catalog, &keys.deleting_all()).await;
    let plugins: BTreeMap<String, PluginRecord> = scan(&catalog, &keys.plugins()).await;

    let mut left = BTreeMap::new();
    for (key, resource) in resources {
        let name = resource.spec.name.clone();
        assert_eq!(key, keys.resource(&name));
        let id = ShardId::only(resource.id);
        let shard = shards.remove(&keys.shard(id));
        let shard = shard.unwrap_or_else(|| panic!("resource {name} has no shard"));
        assert_eq!(shard.resource, name);
        if matches!(shard.state, ShardState::Assigned | ShardState::Idle) {
            let owner = shard.owner.as_ref().expect("what is assigned has an owner");
            let mirror = assignments.remove(&keys.assignment(&owner.node, id));
            let mirror = mirror.unwrap_or_else(|| panic!("shard {id} has no assignment"));
            let (epoch, generation) = (shard.epoch, resource.generation);
            assert_eq!((mirror.epoch, mirror.generation), (epoch, generation));
            assert_eq!(
                (mirror.name, mirror.incarnation),
                (name.clone(), owner.incarnation)
            );
        }
        let pinned = resource
            .pinned
            .as_ref()
            .expect("it was added with its plugin");
        let plugin = keys.plugin(&resource.spec.plugin.name, &pinned.version);
        assert_eq!(plugins[&plugin].digest, pinned.digest);
        left.insert(name, Left { resource, shard });
    }
    assert_eq!(shards, BTreeMap::new(), "shards without a resource");
    assert_eq!(assignments, BTreeMap::new(), "assignments without a shard");
    let ids: BTreeSet<ResourceId> = left.values().map(|left| left.resource.id).collect();
    assert!(
        deleting
            .values()
            .all(|deleting| !ids.contains(&deleting.id))
    );
    for plugin in plugins.values() {
        let bytes = data.join("plugins").join(format!("{}.wasm", plugin.digest));
        assert!(
            bytes.is_file(),
            "plugin {}@{} has no bytes",
            plugin.name,
            plugin.version
        );
    }
    left
}

async fn scan<T: DeserializeOwned>(catalog: &Catalog, prefix: &str) -> BTreeMap<String, T> {
    let scan = catalog.scan::<T>(prefix).await.expect("the store answers");
    assert!(scan.broken.is_empty(), "{:?}", scan.broken);
    let records = scan.records.into_iter();
    records.map(|(key, record)| (key, record.value)).collect()
}

/// Returns the items of every run of a resource, oldest run first: whole, and none twice in one run.
pub(crate) async fn items(data: &Path, id: ResourceId) -> Vec<Vec<Value>> {
    let root = DataRoot::open(&data.display().to_string()).expect("the data root opens");
    let lines = LineFolders::new(
        root.items_root().expect("it is a folder"),
        LineSettings::default(),
    );
    let extents = Arc::new(extents(&root, id).await);
    let newest = lines.newest_run(id, &extents).await;
    let newest = newest.expect("line files are listed");
    let mut runs = Vec::new();
    for run in 1..=newest.map_or(0, |run| run.0) {
        let mut reader = lines.reader(id, Run(run));
        let (mut keys, mut items) = (BTreeSet::new(), Vec::new());
        loop {
            let read = reader.read(&extents, 1_000).await;
            let read = read.unwrap_or_else(|e| panic!("run {run} of {id} cannot be read: {e}"));
            for (_, record) in read.items {
                assert_eq!(record.run, Run(run));
                assert!(
                    keys.insert(record.key),
                    "{} is there twice in run {run}",
                    record.url
                );
                items.push(serde_json::from_str(record.item.get()).expect("an item is JSON"));
            }
            if read.is_end {
                break;
            }
        }
        runs.push(items);
    }
    runs
}

/// Returns the part of a resource's line files that counts, by its frontier.
async fn extents(root: &DataRoot, resource: ResourceId) -> Extents {
    let shard = ShardId::only(resource);
    let reader = FrontierReader::open(root.object_store(), shard).await;
    let Some(reader) = reader.unwrap_or_else(|e| panic!("{e}")) else {
        return Extents::new();
    };
    let marks = reader.marks().await.unwrap_or_else(|e| panic!("{e}"));
    reader.close().await;
    Extents::from([(shard.shard, Extent::Marks(marks))])
}
