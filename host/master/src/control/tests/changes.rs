//! Tests of the changes of items, read from the frontier of a resource.

use tokio_util::sync::CancellationToken;

use super::*;
use crate::control::ChangesBetween;
use crate::control::changes::ChangeQuery;
use crawler_frontier::durable::{DurableSettings, Frontiers, OpenOptions};
use crawler_frontier::suite::{item_of, new, parsed, ready, take};
use crawler_frontier::{Frontier, ItemComparison};
use crawler_model::changes::Change;
use crawler_model::id::{ResourceId, Run};
use crawler_model::resource::{ShardId, ShardRecord};
use crawler_store::Txn;
use crawler_store::catalog::{Versioned, encode};

/// Crawls one page with some items in a run, whose items are compared if `n_runs` is not 0.
async fn crawl(bench: &Bench, resource: ResourceId, run: u64, n_runs: u32, n_items: u32) {
    let shard = ShardId::only(resource);
    let objects = bench.data().object_store();
    let frontiers = Arc::new(Frontiers::new(objects, DurableSettings::default()));
    let storage_epoch = frontiers.storage_epoch(shard).await.unwrap();
    let open_options = OpenOptions {
        run: Run(run),
        created: storage_epoch > 0,
        storage_epoch,
        changes: ItemComparison {
            n_runs,
            ..ItemComparison::default()
        },
        ..OpenOptions::first(shard)
    };
    let opened = Box::pin(frontiers.open(open_options)).await.unwrap();
    let frontier: Arc<dyn Frontier> = Arc::new(opened);
    frontier.seed(vec![new("http://a/")]).await.unwrap();
    let mut commit = parsed(ready(take(&frontier, 1_000, 1).await));
    commit.result.items = (0..n_items).map(|n| item_of(&commit.claim, n)).collect();
    frontier.commit(commit).await.unwrap();
    let is_told = frontier.tell_removed(&CancellationToken::new()).await;
    assert_eq!(is_told, Ok(true));
    frontier.close().await.unwrap();
    let key = bench.catalog().keys().shard(shard);
    let record: Option<Versioned<ShardRecord>> = bench.catalog().read(&key).await.unwrap();
    let mut record = record.unwrap().value;
    record.created = true;
    bench.write(Txn::new().put(key, encode(&record))).await;
}

#[tokio::test]
async fn changes_are_read_by_run_and_page() {
    let bench = bench().await;
    let resource = bench.add("a").await.unwrap().resource.id;
    let name = "a".parse().unwrap();
    let of_run = |run: u64, from: u64| ChangeQuery {
        run: Some(Run(run)),
        from,
        max: 2,
    };
    check_refused(
        bench.control.changes(&name, of_run(1, 0)).await,
        Code::FailedPrecondition,
        "resource a was never crawled: it has no frontier yet",
    );
    crawl(&bench, resource, 1, 9, 3).await;
    bench.restart("a").await.unwrap();
    crawl(&bench, resource, 2, 9, 2).await;
    let first = bench.control.changes(&name, of_run(1, 0)).await.unwrap();
    assert_eq!((first.changes.len(), first.next), (2, Some(2)));
    assert_eq!((first.totals.added, first.totals.removed), (3, 0));
    let rest = bench.control.changes(&name, of_run(1, 2)).await.unwrap();
    assert_eq!((rest.changes.len(), rest.next), (1, None));
    let present = ChangeQuery {
        max: 9,
        ..ChangeQuery::default()
    };
    let second = bench.control.changes(&name, present).await.unwrap();
    let found: Vec<_> = second
        .changes
        .iter()
        .map(|change| (change.change, change.key.as_str(), change.run))
        .collect();
    assert_eq!(found, [(Change::Removed, "http://a/#3", Run(2))]);
    check_refused(
        bench.control.changes(&name, of_run(3, 0)).await,
        Code::NotFound,
        "resource a has no run 3: the newest is 2",
    );
}

#[tokio::test]
async fn a_run_that_may_not_have_begun_is_told_from_others() {
    let bench = bench().await;
    let resource = bench.add("a").await.unwrap().resource.id;
    let compared = bench.update("a", |spec| spec.crawl.changes = Some(9)).await;
    compared.unwrap();
    crawl(&bench, resource, 1, 9, 3).await;
    bench.restart("a").await.unwrap();
    let name = "a".parse().unwrap();
    let present = ChangeQuery {
        max: 9,
        ..ChangeQuery::default()
    };
    let error = bench.control.changes(&name, present).await.unwrap_err();
    assert_eq!(
        error.hint(),
        "the run has not begun yet, or began before setting changes was set; \
         `crawler items a --changes --run 1` prints those of the run before"
    );
    check_refused(
        Err::<(), _>(error),
        Code::FailedPrecondition,
        "there are no changes of run 2 of resource a",
    );
}

#[tokio::test]
async fn a_run_that_was_not_compared_has_no_changes() {
    let bench = bench().await;
    let resource = bench.add("a").await.unwrap().resource.id;
    crawl(&bench, resource, 1, 0, 3).await;
    let name = "a".parse().unwrap();
    let query = ChangeQuery {
        max: 9,
        ..ChangeQuery::default()
    };
    let error = bench.control.changes(&name, query).await.unwrap_err();
    assert_eq!(
        error.hint(),
        "`crawler resource update a --changes 30` keeps those of 30 runs, from the next run on"
    );
    check_refused(
        Err::<(), _>(error),
        Code::FailedPrecondition,
        "there are no changes of run 1 of resource a",
    );
}

#[tokio::test]
async fn two_runs_are_compared_with_the_changes_between() {
    let bench = bench().await;
    let resource = bench.add("a").await.unwrap().resource.id;
    let name = "a".parse().unwrap();
    let compared = bench.update("a", |spec| spec.crawl.changes = Some(9));
    compared.await.unwrap();
    crawl(&bench, resource, 1, 9, 3).await;
    bench.restart("a").await.unwrap();
    crawl(&bench, resource, 2, 9, 2).await;
    let updated = bench.update("a", |spec| spec.crawl.max_pages = Some(7));
    updated.await.unwrap();
    bench.restart("a").await.unwrap();
    let diff = |before, after| bench.control.diff_runs(&name, Run(before), Run(after));
    for (before, after, settings, n_removed, n_compared, n_uncompared) in [
        // The setting was changed in run 2, which had begun without it.
        (1, 2, Vec::new(), Some(1), 1, 0),
        // Nobody has opened the frontier in run 3.
        (1, 3, vec!["max-pages".to_owned()], Some(1), 1, 1),
        (2, 3, vec!["max-pages".to_owned()], None, 0, 1),
    ] {
        let found = diff(before, after).await.unwrap();
        assert_eq!(found.settings, Some(settings), "{before} and {after}");
        let changes = found.changes;
        assert_eq!(changes.totals.map(|totals| totals.removed), n_removed);
        let n = (changes.n_compared, changes.n_uncompared);
        assert_eq!(n, (n_compared, n_uncompared), "{before} and {after}");
    }
    for (before, after, code, why) in [
        (
            2,
            2,
            Code::InvalidArgument,
            "run 2 does not come after run 2; name the earlier one first",
        ),
        (
            2,
            9,
            Code::NotFound,
            "resource a has no run 9: the newest is 3",
        ),
        (
            0,
            2,
            Code::InvalidArgument,
            "field before is missing: it takes the earlier one of two runs",
        ),
    ] {
        check_refused(diff(before, after).await, code, why);
    }
    let history = bench.catalog().keys().runs(resource);
    bench.write(Txn::new().delete(history)).await;
    check_refused(
        diff(1, 3).await,
        Code::NotFound,
        "run 1 of resource a is not remembered",
    );
}

#[tokio::test]
async fn runs_whose_frontier_is_lost_are_compared_without_changes() {
    let bench = bench().await;
    bench.add("a").await.unwrap();
    let compared = bench.update("a", |spec| spec.crawl.changes = Some(9));
    compared.await.unwrap();
    bench
        .record("a", |shard| {
            (shard.created, shard.storage_epoch) = (true, 7)
        })
        .await;
    bench.restart("a").await.unwrap();
    let name = "a".parse().unwrap();
    let diff = bench.control.diff_runs(&name, Run(1), Run(2)).await;
    let diff = diff.unwrap();
    assert_eq!(diff.settings, Some(Vec::new()));
    let unknown = ChangesBetween {
        n_uncompared: 1,
        ..ChangesBetween::default()
    };
    assert_eq!(diff.changes, unknown);
}
