//! Tests of statistics of a run, read from the frontiers of all shards.

use super::*;
use crate::control::items::ItemQuery;
use crawler_frontier::durable::{DurableSettings, Frontiers, OpenOptions};
use crawler_frontier::suite::{commit_of, new, ready, take};
use crawler_frontier::{Ended, Frontier};
use crawler_model::crawl::Done;
use crawler_model::id::{ResourceId, Run, Shard};
use crawler_model::resource::{ShardId, ShardRecord, ShardState};
use crawler_model::statistics::{Kind, Observed};
use crawler_store::Txn;
use crawler_store::catalog::{Versioned, encode};

/// Crawls one page in a run of a shard, which is answered with status 404.
async fn crawl(bench: &Bench, resource: ResourceId, shard: u32, run: u64) {
    let observed = Observed {
        status: 404,
        ..Observed::default()
    };
    crawl_as(bench, resource, shard, run, observed).await;
}

/// Crawls one page in a run of a shard, of which this is observed.
async fn crawl_as(bench: &Bench, resource: ResourceId, shard: u32, run: u64, observed: Observed) {
    let shard = ShardId {
        resource,
        shard: Shard(shard),
    };
    let objects = bench.data().object_store();
    let frontiers = Arc::new(Frontiers::new(objects, DurableSettings::default()));
    let storage_epoch = frontiers.storage_epoch(shard).await.unwrap();
    let open_options = OpenOptions {
        run: Run(run),
        created: storage_epoch > 0,
        storage_epoch,
        ..OpenOptions::first(shard)
    };
    let opened = Box::pin(frontiers.open(open_options)).await.unwrap();
    let frontier: Arc<dyn Frontier> = Arc::new(opened);
    frontier.seed(vec![new("http://a/")]).await.unwrap();
    let claim = ready(take(&frontier, 1_000, 1).await);
    let mut commit = commit_of(claim, Ended::Done(Done::Gone));
    commit.result.observed = observed;
    frontier.commit(commit).await.unwrap();
    frontier.close().await.unwrap();
    change(bench, shard, |record| record.created = true).await;
}

/// Changes the record of a shard.
async fn change(bench: &Bench, shard: ShardId, change: impl FnOnce(&mut ShardRecord)) {
    let key = bench.catalog().keys().shard(shard);
    let record: Option<Versioned<ShardRecord>> = bench.catalog().read(&key).await.unwrap();
    let mut record = record.unwrap().value;
    change(&mut record);
    bench.write(Txn::new().put(key, encode(&record))).await;
}

#[tokio::test]
async fn statistics_are_those_of_all_shards_in_the_present_run() {
    let bench = bench().await;
    let mut spec = spec("a", "books");
    spec.placement.shards = 2;
    let request = RequestId::random();
    let added = bench.control.add_resource(spec, &request).await.unwrap();
    let resource = added.resource.id;
    let name = "a".parse().unwrap();
    check_refused(
        bench.control.statistics(&name).await,
        Code::FailedPrecondition,
        "resource a was never crawled: it has no frontier yet",
    );
    crawl(&bench, resource, 0, 1).await;
    crawl(&bench, resource, 1, 1).await;
    let found = bench.control.statistics(&name).await.unwrap();
    assert_eq!(found.counts.outcomes["gone"], 2);
    assert_eq!(found.statistics.statuses, [(404, 2)].into());
    bench.restart("a").await.unwrap();
    crawl(&bench, resource, 0, 2).await;
    // The other shard is still in the run before.
    let found = bench.control.statistics(&name).await.unwrap();
    assert_eq!((found.run, found.counts.outcomes["gone"]), (Run(2), 1));
    assert_eq!(found.statistics.statuses, [(404, 1)].into());
}

#[tokio::test]
async fn statistics_tell_why_the_run_has_ended() {
    let bench = bench().await;
    let resource = bench.add("a").await.unwrap().resource.id;
    crawl(&bench, resource, 0, 1).await;
    let shard = ShardId {
        resource,
        shard: Shard(0),
    };
    let name = "a".parse().unwrap();
    let end = async || bench.control.statistics(&name).await.unwrap().end;
    assert_eq!(end().await, "");
    change(&bench, shard, |record| record.state = ShardState::Finished).await;
    assert_eq!(end().await, "nothing is left to fetch");
    let reason = "the plugin is gone".to_owned();
    let failed = ShardState::Failed { reason };
    change(&bench, shard, |record| record.state = failed).await;
    assert_eq!(end().await, "the crawl failed: the plugin is gone");
}

#[tokio::test]
async fn a_kind_of_a_deleted_version_is_read_while_its_run_goes_on() {
    let bench = bench().await;
    let resource = bench.add("a").await.unwrap().resource.id;
    let emitted = Kind {
        items: 1,
        ..Kind::default()
    };
    let observed = Observed {
        kinds: [("novel".to_owned(), emitted)].into(),
        ..Observed::default()
    };
    crawl_as(&bench, resource, 0, 1, observed).await;
    let items = async |kind: &str| {
        let query = ItemQuery {
            kind: Some(kind.to_owned()),
            ..ItemQuery::default()
        };
        bench.control.items("a", query).await.map(drop)
    };
    items("novel").await.unwrap();
    check_refused(
        items("novle").await,
        Code::InvalidArgument,
        "plugin books has no items of kind \"novle\"",
    );
    bench.restart("a").await.unwrap();
    check_refused(
        items("novel").await,
        Code::InvalidArgument,
        "plugin books has no items of kind \"novel\"",
    );
}
