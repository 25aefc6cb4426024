//! Tests of the log of a resource: from where each line comes.

use futures::TryStreamExt as _;

use super::*;
use crawler_frontier::durable::{DurableSettings, Frontiers, OpenOptions};
use crawler_frontier::suite::of_another_format;
use crawler_frontier::{Frontier as _, LogStore as _};
use crawler_model::id::{Incarnation, ResourceId, Run, Shard};
use crawler_model::resource::{Owner, ShardId, ShardRecord};
use crawler_model::status::LogLine;
use crawler_store::catalog::encode;

/// Bench with a resource of two shards.
struct TwoShards {
    bench: Bench,
    workers: Arc<Workers>,
    resource: ResourceId,
}

async fn two_shards() -> TwoShards {
    let workers = Arc::new(Workers::at_rest());
    let bench = Bench::with(workers.clone()).await;
    bench.push("books@1.0.0").await.unwrap();
    bench.register("worker-1", 1_000).await;
    bench.register("worker-2", 1_000).await;
    let mut spec = spec("a", "books");
    spec.placement.shards = 2;
    let request = RequestId::random();
    let added = bench.control.add_resource(spec, &request).await.unwrap();
    TwoShards {
        resource: added.resource.id,
        workers,
        bench,
    }
}

impl TwoShards {
    fn id(&self, shard: u32) -> ShardId {
        ShardId {
            resource: self.resource,
            shard: Shard(shard),
        }
    }

    /// Writes the record of a shard that this process crawls.
    async fn assign(&self, shard: u32, node: &str, incarnation: u64) {
        let catalog = self.bench.catalog();
        let key = catalog.keys().shard(self.id(shard));
        let record: Option<Versioned<ShardRecord>> = catalog.read(&key).await.unwrap();
        let record = ShardRecord {
            owner: Some(Owner {
                node: node.parse().unwrap(),
                incarnation: Incarnation(incarnation),
            }),
            state: ShardState::Assigned,
            created: true,
            ..record.unwrap().value
        };
        self.bench.write(Txn::new().put(key, encode(&record))).await;
    }

    /// Stores a line in the frontier of a shard.
    async fn store(&self, shard: u32, line: LogLine) {
        let objects = self.bench.data().object_store();
        let frontiers = Arc::new(Frontiers::new(objects, DurableSettings::default()));
        let open_options = OpenOptions {
            created: false,
            storage_epoch: 0,
            ..OpenOptions::first(self.id(shard))
        };
        let opened = Box::pin(frontiers.open(open_options)).await.unwrap();
        opened.store_line(Arc::new(line));
        opened.close().await.unwrap();
    }

    /// Returns the messages of the log, in the order of their texts.
    async fn told(&self) -> Vec<String> {
        let name = "a".parse().unwrap();
        let lines = self.bench.control.logs(&name, false).await.unwrap();
        let lines: Vec<LogLine> = lines.try_collect().await.unwrap();
        let mut told: Vec<String> = lines.into_iter().map(|line| line.message).collect();
        told.sort_unstable();
        told
    }
}

fn line(shard: u32, number: u64, message: &str) -> LogLine {
    LogLine {
        at: 0,
        level: "info",
        url: String::new(),
        rule: String::new(),
        message: message.to_owned(),
        run: Run(1),
        shard: Shard(shard),
        number,
        more: 0,
    }
}

#[tokio::test]
async fn lines_of_a_shard_that_has_moved_come_once() {
    let two_shards = two_shards().await;
    two_shards.assign(0, "worker-2", 1).await;
    two_shards.assign(1, "worker-1", 1).await;
    // Worker 1 had shard 0 before.
    let lines = vec![line(0, 1, "moved"), line(1, 1, "other shard")];
    two_shards.workers.set_log("worker-1:1", lines);
    let lines = vec![line(0, 1, "moved"), line(0, 2, "new")];
    two_shards.workers.set_log("worker-2:1", lines);
    assert_eq!(two_shards.told().await, ["moved", "new", "other shard"]);
}

#[tokio::test]
async fn the_log_of_a_shard_whose_owner_is_gone_is_read() {
    let two_shards = two_shards().await;
    two_shards.store(0, line(0, 1, "stored 0")).await;
    two_shards.store(1, line(1, 1, "stored 1")).await;
    // The owner of shard 1 has been replaced by another process under its id.
    two_shards.assign(0, "worker-9", 1).await;
    two_shards.assign(1, "worker-1", 7).await;
    let lines = vec![line(1, 1, "stored 1"), line(1, 2, "unstored")];
    two_shards.workers.set_log("worker-1:1", lines);
    let expected = ["stored 0", "stored 1", "unstored"];
    assert_eq!(two_shards.told().await, expected);
}

#[tokio::test]
async fn a_frontier_that_cannot_be_read_hides_no_other_lines() {
    let two_shards = two_shards().await;
    let objects = two_shards.bench.data().object_store();
    of_another_format(&objects, two_shards.id(0)).await;
    two_shards.assign(0, "worker-9", 1).await;
    two_shards.assign(1, "worker-1", 1).await;
    let lines = vec![line(1, 1, "crawled")];
    two_shards.workers.set_log("worker-1:1", lines);
    let told = two_shards.told().await;
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(told[0], "crawled");
    let missing = "lines of shard 0 are missing: the frontier ";
    assert!(told[1].starts_with(missing), "{told:?}");
}
