//! Tests of the removal of a resource whose items are part objects: no item is lost, and none is there twice.

use object_store::memory::InMemory;
use object_store::path::Path as ObjectPath;
use tempfile::TempDir;

use super::*;
use crawler_frontier::Frontier;
use crawler_frontier::durable::{DurableSettings, Frontiers, OpenOptions};
use crawler_frontier::suite::{item_of, new, parsed, ready, take};
use crawler_model::id::Run;
use crawler_model::settings::SinkName;
use crawler_sink::items::{Extent, Extents};
use crawler_sink::parts::{PartFolders, PartSettings};

const RESOURCE: ResourceId = ResourceId(7);

struct Bench {
    cleanup: DataRootCleanup,
    /// Folder of the frontiers. The items are in memory, as if in a bucket.
    _folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = DataRoot::open(folder.path().to_str().unwrap()).unwrap();
        let bucket = Arc::new(InMemory::new());
        let items = ObjectPath::from("items");
        let items = PartFolders::new(bucket, items, PartSettings::default());
        Self {
            cleanup: DataRootCleanup {
                objects: data.object_store(),
                data: Arc::new(data),
                items: Arc::new(items),
            },
            _folder: folder,
        }
    }

    /// Crawls a page with three items. The owner has delivered so many, in one part; the frontier knows of so many.
    async fn crawl(&self, resource: ResourceId, n_delivered: usize, n_known: usize) {
        let shard = ShardId::only(resource);
        let objects = self.cleanup.objects.clone();
        let frontiers = Arc::new(Frontiers::new(objects, DurableSettings::default()));
        let open_options = OpenOptions {
            created: false,
            storage_epoch: 0,
            ..OpenOptions::first(shard)
        };
        let frontier = Box::pin(frontiers.open(open_options)).await.unwrap();
        let frontier: Arc<dyn Frontier> = Arc::new(frontier);
        frontier.seed(vec![new("http://a.test/")]).await.unwrap();
        let mut commit = parsed(ready(take(&frontier, 0, 1).await));
        commit.result.items = (0..3).map(|n| item_of(&commit.claim, n)).collect();
        frontier.commit(commit).await.unwrap();
        frontier.settle().await.unwrap();
        let batch = frontier.outbox(&SinkName::lines(), 9).await.unwrap();
        let (first, items) = (batch.first(), &batch.items[..n_delivered]);
        let mut sink = self.cleanup.items.open_rest(shard, 0);
        let written = sink.write(first, items).await.unwrap();
        assert_eq!(written.n_items, n_delivered as u64);
        if n_known > 0 {
            let end = first + n_known as u64;
            frontier
                .clear_outbox(&SinkName::lines(), end, None)
                .await
                .unwrap();
        }
        frontier.close().await.unwrap();
    }

    /// Returns the items of the first shard of a resource, in the order in which they were emitted.
    async fn items(&self, resource: ResourceId) -> Vec<String> {
        let extents = Arc::new(Extents::from([(Shard(0), Extent::Whole)]));
        let mut reader = self.cleanup.items.reader(resource, Run(1));
        let batch = reader.read(&extents, 99).await.unwrap();
        let items = batch.items.iter();
        items.map(|(_, item)| item.item.get().to_owned()).collect()
    }
}

fn all() -> Vec<String> {
    (0..3).map(|n| format!(r#"{{"n":{n}}}"#)).collect()
}

#[tokio::test]
async fn items_of_parts_are_there_once_whatever_was_delivered() {
    for (n_delivered, n_known) in [(0, 0), (1, 0), (3, 0), (2, 2), (3, 3)] {
        let bench = Bench::new();
        bench.crawl(RESOURCE, n_delivered, n_known).await;
        let cleanup = &bench.cleanup;
        for by in [1, 2] {
            cleanup.settle_items(RESOURCE, by).await.unwrap();
            cleanup.publish_items(RESOURCE, by).await.unwrap();
            assert_eq!(
                bench.items(RESOURCE).await,
                all(),
                "{n_delivered} {n_known}"
            );
        }
        assert!(cleanup.delete_frontiers(RESOURCE).await.unwrap() > 0);
        cleanup.settle_items(RESOURCE, 3).await.unwrap();
        assert_eq!(
            bench.items(RESOURCE).await,
            all(),
            "{n_delivered} {n_known}"
        );
    }
}

#[tokio::test]
async fn a_purge_removes_the_parts_of_one_resource_and_no_others() {
    let bench = Bench::new();
    let others = [ResourceId(77), ResourceId(70)];
    for resource in [RESOURCE, others[0], others[1]] {
        bench.crawl(resource, 3, 3).await;
    }
    for _ in 0..2 {
        bench.cleanup.delete_items(RESOURCE).await.unwrap();
        assert_eq!(bench.items(RESOURCE).await, [""; 0]);
    }
    bench.cleanup.delete_frontiers(RESOURCE).await.unwrap();
    for other in others {
        assert_eq!(bench.items(other).await, all());
        let shards = bench.cleanup.data.frontier_shards(other).await.unwrap();
        assert_eq!(shards, [Shard(0)]);
    }
}
