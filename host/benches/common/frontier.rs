//! A new durable frontier in a folder, as a worker opens one.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crawler::clock::{Clock as _, SystemClock};
use crawler::frontier::Frontier;
use crawler::frontier::durable::{DurableSettings, Frontiers, OpenAs};
use crawler::model::id::{Digest, Epoch, ResourceId, Run};
use crawler::model::resource::ShardId;
use object_store::local::LocalFileSystem;

pub(crate) async fn durable(folder: &Path) -> Arc<dyn Frontier> {
    let objects = LocalFileSystem::new_with_prefix(folder).expect("it is there");
    let objects = Arc::new(objects.with_fsync(true));
    let frontiers = Arc::new(Frontiers::new(objects, DurableSettings::default()));
    let open_as = OpenAs {
        shard: ShardId::only(ResourceId(1)),
        cluster: "bench".to_owned(),
        epoch: Epoch(1),
        run: Run(1),
        plugin: Digest::of(b"plugin"),
        created: false,
        storage_epoch: 0,
        now: SystemClock.unix_millis(),
        delay: Duration::ZERO,
        carry: None,
    };
    Arc::new(frontiers.open(open_as).await.expect("it opens"))
}
