//! Tests of decisions while the view of the state is behind, and of the number of passes until they are carried
//! out.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use super::*;
use crate::replica::Replica;
use crawler_model::node::Role;
use crawler_process::task::TaskScope;
use crawler_store::catalog::encode;
use crawler_store::election::take_lead;
use crawler_store::racing_store::Read;

const DEADLINE: Duration = Duration::from_secs(30);

/// Returns the present replica, which is not fed any more.
pub(super) async fn frozen(bench: &Bench) -> Replica {
    let (mut replica, feeder) = Replica::new(bench.catalog().clone(), Strategy::default());
    let scope = TaskScope::new();
    scope.spawn("replica", feeder.run(scope.stop_signal()));
    replica.after(None).await;
    scope.stop(DEADLINE).await;
    replica
}

#[tokio::test]
async fn an_add_passes_over_a_worker_that_has_gone_without_being_seen() {
    let mut bench = bench().await;
    bench.control.parts.replica = frozen(&bench).await;
    let added = bench.add("a").await.unwrap();
    let first = added.resource.assigned_node;
    let (gone, _) = first.split_once('|').unwrap();
    let gone = bench
        .catalog()
        .keys()
        .node(Role::Worker, &gone.parse().unwrap());
    bench.delete("a").await.unwrap();
    bench.write(Txn::new().delete(gone)).await;
    // With the same loads, the same worker would get the resource.
    let again = bench.add("a").await.unwrap();
    assert_eq!(again.phase, Phase::Running);
    assert_ne!(again.resource.assigned_node, first);
}

#[tokio::test]
async fn an_addition_that_is_in_no_doubt_reads_nothing() {
    let mut bench = bench().await;
    // The first addition reserves ids for some time, which takes two reads.
    bench.add("first").await.unwrap();
    bench.control.parts.replica = frozen(&bench).await;
    for read in [Read::Get, Read::Range] {
        bench.store.race_after(read, 1, Txn::new());
        bench.control.decided = AtomicU64::default();
        let name = format!("{read:?}").to_lowercase();
        bench.add(&name).await.unwrap();
        assert!(!bench.store.has_raced(), "{read:?}");
    }
}

#[tokio::test]
async fn an_addition_by_a_view_that_is_behind_is_refused_as_by_the_records() {
    let mut bench = bench().await;
    let mut resource = bench.add("first").await.unwrap().resource;
    bench.control.parts.replica = frozen(&bench).await;
    let keys = bench.catalog().keys().clone();
    // This write bypasses the master, so its view does not include it.
    resource.spec.name = "a".parse().unwrap();
    let key = keys.resource(&resource.spec.name);
    bench.write(Txn::new().put(key, encode(&resource))).await;
    let refused = bench.add("a").await.unwrap_err();
    assert_eq!(refused.code(), Code::AlreadyExists, "{refused}");
    let plugin = keys.plugin(&"books".parse().unwrap(), &"1.0.0".parse().unwrap());
    bench.write(Txn::new().delete(plugin)).await;
    let refused = bench.add("b").await.unwrap_err();
    assert!(
        matches!(refused, ControlError::NoPluginFor { .. }),
        "{refused}"
    );
}

#[tokio::test]
async fn an_addition_pins_what_was_pushed_a_moment_ago() {
    let mut bench = bench().await;
    bench.control.parts.replica = frozen(&bench).await;
    bench.push("books@2.0.0").await.unwrap();
    let pinned = bench.add("a").await.unwrap().resource.pinned.unwrap();
    assert_eq!(pinned.version.to_string(), "2.0.0");
    // The answer to that push was lost, and the push is repeated.
    bench.control.decided = AtomicU64::default();
    bench.push("books@2.0.0").await.unwrap();
    let pinned = bench.add("b").await.unwrap().resource.pinned.unwrap();
    assert_eq!(pinned.version.to_string(), "2.0.0");
    // An earlier leader pushed the plugin.
    bench.control.decided = AtomicU64::default();
    let before = format!("{}test", bench.catalog().keys().election());
    bench.write(Txn::new().delete(before)).await;
    bench.control.parts.election_status = take_lead(bench.catalog()).await;
    let pinned = bench.add("c").await.unwrap().resource.pinned.unwrap();
    assert_eq!(pinned.version.to_string(), "2.0.0");
}

#[tokio::test]
async fn a_plugin_is_not_pinned_while_somebody_decides_that_nobody_runs_it() {
    let bench = bench().await;
    bench.push("books@2.0.0").await.unwrap();
    let spec_of_one = |spec: &mut ResourceSpec| spec.plugin = "books@1.0.0".parse().unwrap();
    bench.add("a").await.unwrap();
    bench.update("a", spec_of_one).await.unwrap();
    let deciding = bench.control.decision_lock.lock().await;
    let mut update = std::pin::pin!(bench.update("a", |spec| {
        spec.plugin = "books@2.0.0".parse().unwrap();
    }));
    let early = tokio::time::timeout(Duration::from_millis(200), &mut update).await;
    assert!(early.is_err(), "{early:?}");
    drop(deciding);
    let pinned = update.await.unwrap().resource.pinned.unwrap();
    assert_eq!(pinned.version.to_string(), "2.0.0");
}

#[tokio::test]
async fn all_shards_of_a_resource_are_placed_in_one_turn() {
    let bench = bench().await;
    let mut spec = spec("a", "books");
    spec.placement.shards = 5;
    let request = RequestId::random();
    bench.control.add_resource(spec, &request).await.unwrap();
    bench.restart("a").await.unwrap();
    let mut reconciler = bench.reconciler();
    let observed = reconciler.parts.replica.after(None).await;
    assert_eq!(reconciler.pass(&observed).await, 0);
    let view = bench.control.resource(&"a".parse().unwrap()).await.unwrap();
    let states = view.shards.iter().map(|shard| &shard.record.state);
    assert!(
        states.clone().all(|state| *state == ShardState::Assigned),
        "{view:?}"
    );
}

#[tokio::test]
async fn a_plan_for_other_workers_is_not_carried_out() {
    let bench = bench().await;
    bench.add("a").await.unwrap();
    bench.restart("a").await.unwrap();
    let mut reconciler = bench.reconciler();
    let before = reconciler.parts.replica.after(None).await;
    bench.register("worker-3", 1_000).await;
    let now = reconciler.parts.replica.after(Some(before.n_changes)).await;
    reconciler.pass(&before).await;
    assert_eq!(bench.shard("a").await.1.state, ShardState::Free);
    reconciler.pass(&now).await;
    assert_eq!(bench.shard("a").await.1.state, ShardState::Assigned);
}

#[tokio::test(start_paused = true)]
async fn a_change_that_no_watch_tells_is_found_where_it_stands_in_the_way() {
    let bench = bench().await;
    bench.add("a").await.unwrap();
    bench.restart("a").await.unwrap();
    bench.store.silence_watches();
    let reconciler = bench.reconciler();
    reconciler.parts.replica.clone().after(None).await;
    for gone in ["worker-1", "worker-2"] {
        let gone = bench
            .catalog()
            .keys()
            .node(Role::Worker, &gone.parse().unwrap());
        bench.write(Txn::new().delete(gone)).await;
    }
    bench.register("worker-3", 1_000).await;
    let scope = TaskScope::new();
    scope.spawn("reconciler", reconciler.run(scope.stop_signal()));
    // This is well before the next read of all records.
    let deadline = tokio::time::Instant::now() + Duration::from_secs(300);
    while bench.shard("a").await.1.state != ShardState::Assigned {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let now = tokio::time::Instant::now();
        assert!(now < deadline, "{:?}", bench.shard("a").await);
    }
    let owner = bench.shard("a").await.1.owner.unwrap().node;
    assert_eq!(owner.as_str(), "worker-3");
    scope.stop(DEADLINE).await;
}
