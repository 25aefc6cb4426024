//! The durable frontier in a process that is killed, or that a page ends: everything that was reported durable is
//! there, nothing comes to a halt, and a page that ends the process is set aside.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "the figures are part of the result")]
#![expect(
    clippy::print_stderr,
    reason = "how a process that is killed tells what it has done"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crawler_frontier::durable::{DurableFrontier, DurableSettings, Frontiers, OpenOptions};
use crawler_model::id::{Digest, Epoch, ResourceId, Run};
use crawler_model::resource::ShardId;
use crawler_process::clock::StillClock;
use object_store::local::LocalFileSystem;

mod abort;
mod crawl;
mod quick;

fn shard() -> ShardId {
    ShardId::only(ResourceId(1))
}

/// Opens the one frontier of a folder, as its next owner.
async fn open(folder: &Path, settings: DurableSettings) -> Arc<DurableFrontier> {
    let objects = LocalFileSystem::new_with_prefix(folder).unwrap();
    let objects = Arc::new(objects.with_fsync(true));
    let frontiers = Arc::new(Frontiers::new(objects, settings));
    let storage_epoch = frontiers.storage_epoch(shard()).await.unwrap();
    let open = OpenOptions {
        shard: shard(),
        cluster: "crashes".to_owned(),
        epoch: Epoch(1),
        run: Run(1),
        plugin: Digest::of(b"plugin"),
        created: storage_epoch > 0,
        storage_epoch,
        clock: Arc::new(StillClock(0)),
        delay: Duration::ZERO,
        carry: None,
        sinks: Default::default(),
        division: None,
        changes: Default::default(),
    };
    Arc::new(Box::pin(frontiers.open(open)).await.unwrap())
}
