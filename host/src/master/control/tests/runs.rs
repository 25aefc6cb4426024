//! New runs, and dead letters that are tried again.

use std::time::Duration;

use super::*;
use crate::model::crawl::Counts;
use crate::model::id::Run;
use crate::model::resource::{Redrive, ShardRecord, Waits};

/// A crawl that was opened, has numbers and, by `state`, is over or not.
async fn opened(state: ShardState) -> Bench {
    let bench = bench().await;
    bench.add("a").await.unwrap();
    bench
        .record("a", |shard| {
            shard.state = state;
            (shard.created, shard.storage_epoch, shard.counts.parsed) = (true, 7, 12);
            shard.redrive = Some(Redrive::default());
        })
        .await;
    bench
}

#[tokio::test]
async fn s24_a_restart_begins_a_new_run_out_of_every_phase() {
    let failed = ShardState::Failed {
        reason: "root gave up".into(),
    };
    for state in [
        ShardState::Assigned,
        ShardState::Idle,
        ShardState::Finished,
        failed,
    ] {
        let bench = opened(state).await;
        let (id, before) = bench.shard("a").await;
        let resource = bench.restart("a").await.unwrap().resource;
        assert_eq!(
            (resource.run, resource.assigned_node.as_str()),
            (Run(2), "")
        );
        assert_eq!(
            (resource.id, resource.generation),
            (id.resource, Generation(1))
        );
        let (_, after) = bench.shard("a").await;
        let expected = ShardRecord {
            owner: None,
            state: ShardState::Free,
            epoch: before.epoch.next(),
            redrive: None,
            counts: Counts::default(),
            ..before
        };
        assert_eq!(after, expected);
        assert_eq!(bench.loads().await, [0, 0], "no assignment is left");
    }
}

#[tokio::test]
async fn s24_what_waits_for_its_plugin_is_restarted_too() {
    let bench = bench().await;
    bench
        .control
        .seed_resource(spec("a", "other"))
        .await
        .unwrap();
    let restarted = bench.restart("a").await.unwrap();
    assert_eq!(restarted.resource.run, Run(2));
    let waits = Phase::Pending("plugin other is not pushed yet".into());
    assert_eq!(restarted.phase, waits);
}

#[tokio::test]
async fn a_restarted_crawl_is_assigned_again_and_its_old_owner_may_record_nothing() {
    let bench = opened(ShardState::Finished).await;
    let (_, before) = bench.shard("a").await;
    let restarted = bench.restart("a").await.unwrap();
    let reason = restarted.phase.reason();
    assert!(reason.ends_with(" takes it in a moment"), "{restarted:?}");
    assert!(bench.shard("a").await.1.epoch > before.epoch);

    let scope = crate::task::TaskScope::new();
    scope.spawn("reconciler", bench.reconciler().run(scope.stop_signal()));
    let assigned = async {
        while bench.phase("a").await != Phase::Running {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), assigned)
        .await
        .unwrap();
    scope.stop(Duration::from_secs(10)).await;
    let (_, after) = bench.shard("a").await;
    assert!(after.owner.is_some());
    assert_eq!(bench.check_consistent().await, 1);
}

#[tokio::test]
async fn a_restart_gives_up_a_frontier_that_is_missing_and_no_other() {
    for (condition, created) in [("FrontierMissing", false), ("StorageUnavailable", true)] {
        let bench = opened(ShardState::Assigned).await;
        let (condition, why) = (condition.to_owned(), "why".to_owned());
        bench
            .record("a", |shard| shard.waits = Some(Waits { condition, why }))
            .await;
        bench.restart("a").await.unwrap();
        let (_, after) = bench.shard("a").await;
        assert_eq!((after.created, after.waits), (created, None));
    }
}

#[tokio::test]
async fn a_restart_of_nothing_is_refused_and_two_at_once_are_two_runs() {
    let bench = bench().await;
    check_refused(
        bench.restart("a").await,
        Code::NotFound,
        "there is no resource a",
    );
    bench.add("a").await.unwrap();
    let (one, other) = futures::join!(bench.restart("a"), bench.restart("a"));
    let runs = [one, other].map(|view| view.unwrap().resource.run);
    assert!(runs.contains(&Run(3)), "{runs:?}");
}
