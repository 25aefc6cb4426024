//! A durable frontier, new or not, as a worker opens one.

use std::path::Path;
use std::sync::Arc;

use crawler_frontier::durable::{DurableFrontier, DurableSettings, Frontiers, OpenOptions};
use crawler_model::id::ResourceId;
use crawler_model::resource::ShardId;
use crawler_process::clock::SystemClock;
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;

/// Returns the object store of a folder.
pub(crate) fn in_folder(folder: &Path) -> Arc<dyn ObjectStore> {
    let objects = LocalFileSystem::new_with_prefix(folder).expect("it is there");
    Arc::new(objects.with_fsync(true))
}

pub(crate) async fn durable(objects: Arc<dyn ObjectStore>) -> DurableFrontier {
    let frontiers = Arc::new(Frontiers::new(objects, DurableSettings::default()));
    let shard = ShardId::only(ResourceId(1));
    let storage_epoch = frontiers.storage_epoch(shard).await;
    let storage_epoch = storage_epoch.expect("it can be read");
    let open_options = OpenOptions {
        cluster: "bench".to_owned(),
        created: storage_epoch > 0,
        storage_epoch,
        clock: Arc::new(SystemClock),
        ..OpenOptions::first(shard)
    };
    frontiers.open(open_options).await.expect("it opens")
}
