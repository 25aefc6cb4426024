//! Tests of the placement that resources ask for, through the calls.

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::lists::records;
use crate::placement::testing::worker;
use crawler_model::id::{Incarnation, NodeId};
use crawler_model::node::{Node, Role};
use crawler_model::resource::{PlacementSpec, ShardId};
use crawler_store::catalog::encode;

async fn register(bench: &Bench, node: Node) {
    let key = bench.catalog().keys().node(Role::Worker, &node.id);
    bench.write(Txn::new().put(key, encode(&node))).await;
}

async fn leave(bench: &Bench, id: &str) {
    let keys = bench.catalog().keys();
    let key = keys.node(Role::Worker, &id.parse().unwrap());
    bench.write(Txn::new().delete(key)).await;
}

async fn add(
    bench: &Bench,
    name: &str,
    ask: impl FnOnce(&mut PlacementSpec),
) -> Result<Phase, ControlError> {
    let mut spec = spec(name, "books");
    ask(&mut spec.placement);
    Ok(bench
        .control
        .add_resource(spec, &RequestId::random())
        .await?
        .phase)
}

/// Returns the worker that has the shard according to its assignment, and the assignment.
async fn assignment(bench: &Bench, name: &str) -> Option<(String, Assignment)> {
    let (id, _) = bench.shard(name).await;
    let keys = bench.catalog().keys();
    let all = records::<Assignment>(bench.catalog(), &keys.assignments())
        .await
        .unwrap();
    let mut found = all.into_iter().filter_map(|(key, a)| {
        let (node, shard): (NodeId, ShardId) = keys.parse_assignment(&key)?;
        (shard == id).then(|| (node.to_string(), a.value))
    });
    let only = found.next();
    assert!(found.next().is_none(), "two workers have {name}");
    only
}

async fn has(bench: &Bench, name: &str) -> String {
    let assignment = assignment(bench, name).await;
    assignment.map(|(node, _)| node).unwrap_or_default()
}

/// Reconciles until the resource has an owner.
async fn reconciled(bench: &Bench, name: &str) -> String {
    let stop = CancellationToken::new();
    let placed = async {
        loop {
            let owner = has(bench, name).await;
            if !owner.is_empty() {
                stop.cancel();
                return owner;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let deadline = std::time::Duration::from_secs(20);
    let (owner, ()) = tokio::join!(
        tokio::time::timeout(deadline, placed),
        bench.reconciler().run(stop.clone()),
    );
    owner.unwrap()
}

fn gpu(placement: &mut PlacementSpec) {
    placement.selector = [("gpu".into(), "true".into())].into();
}

fn pending(why: &str) -> Phase {
    Phase::Pending(why.to_owned())
}

#[tokio::test]
async fn s21_a_resource_waits_for_a_worker_with_its_labels_and_says_so() {
    let bench = bench().await;
    let lack = pending("0/2 workers: 2 lack label gpu");
    assert_eq!(add(&bench, "a", gpu).await.unwrap(), lack);
    assert_eq!(bench.phase("a").await, lack);
    register(&bench, worker("worker-3", 9, &[("gpu", "true")])).await;
    let soon = pending("worker-3 takes it in a moment");
    assert_eq!(bench.phase("a").await, soon);
    assert_eq!(reconciled(&bench, "a").await, "worker-3");
    assert_eq!(bench.phase("a").await, Phase::Running);
}

#[tokio::test]
async fn s21_what_runs_is_not_moved_by_an_update_and_weighs_what_it_says_now() {
    let bench = bench().await;
    add(&bench, "a", |_| {}).await.unwrap();
    let owner = has(&bench, "a").await;
    let change = |spec: &mut ResourceSpec| {
        spec.placement.weight = 3;
        spec.placement.apart = Some("c".parse().unwrap());
        gpu(&mut spec.placement);
    };
    let changed = bench.update("a", change).await.unwrap();
    assert_eq!(changed.phase, Phase::Running);
    let (still, mirror) = assignment(&bench, "a").await.unwrap();
    assert_eq!((still, mirror.weight), (owner.clone(), 3));
    // Three of the other resources weigh as much.
    for name in ["c", "d", "e"] {
        add(&bench, name, |_| {}).await.unwrap();
        assert_ne!(has(&bench, name).await, owner);
    }
    bench
        .update("a", |spec| spec.placement.weight = 1)
        .await
        .unwrap();
    for name in ["f", "g"] {
        add(&bench, name, |_| {}).await.unwrap();
        assert_eq!(has(&bench, name).await, owner);
    }
}

#[tokio::test]
async fn s21_resources_are_placed_near_and_apart_through_the_calls() {
    let bench = bench().await;
    let other = |name: &str| Some(name.parse().unwrap());
    add(&bench, "a", |p| p.weight = 9).await.unwrap();
    add(&bench, "b", |p| p.near = other("a")).await.unwrap();
    add(&bench, "c", |p| p.apart = other("a")).await.unwrap();
    let (a, c) = (has(&bench, "a").await, has(&bench, "c").await);
    assert_eq!(has(&bench, "b").await, a);
    assert_ne!(a, c);
    leave(&bench, &c).await;
    let waits = add(&bench, "d", |p| p.apart = other("b")).await.unwrap();
    assert_eq!(waits, pending("0/1 workers: 1 kept apart by b"));
}

#[tokio::test]
async fn s21_what_cannot_be_meant_is_refused_whichever_door_let_it_in() {
    let bench = bench().await;
    check_refused(
        add(&bench, "a", |p| p.weight = 0).await,
        Code::InvalidArgument,
        "setting weight is 0; it goes from 1 to 1000",
    );
    bench.add("a").await.unwrap();
    check_refused(
        bench
            .update("a", |spec| {
                spec.placement.apart = Some("a".parse().unwrap())
            })
            .await,
        Code::InvalidArgument,
        "setting apart names a itself; name another resource",
    );
}

#[tokio::test]
async fn a_resource_whose_worker_is_missing_is_pending_and_says_who_takes_it() {
    let bench = bench().await;
    bench.add("a").await.unwrap();
    let owner = has(&bench, "a").await;
    leave(&bench, &owner).await;
    let other = if owner == "worker-1" {
        "worker-2"
    } else {
        "worker-1"
    };
    let missing = |then: &str| pending(&format!("{owner}, which has it, is missing; {then}"));
    let takes = missing(&format!("{other} takes it unless it comes back"));
    assert_eq!(bench.phase("a").await, takes);
    // A later process under the owner's id is not the owner.
    let anew = Node {
        incarnation: Incarnation(2),
        ..worker(&owner, 10, &[])
    };
    register(&bench, anew).await;
    let said = format!("{owner}, which had it, has started anew; ");
    let phase = bench.phase("a").await;
    assert!(
        matches!(&phase, Phase::Pending(why) if why.starts_with(&said)),
        "{phase:?}"
    );
    leave(&bench, &owner).await;
    leave(&bench, other).await;
    assert_eq!(bench.phase("a").await, missing("no worker is registered"));
    // An idle shard counts as finished.
    bench.end("a", ShardState::Idle).await;
    assert_eq!(bench.phase("a").await, Phase::Running);
}

#[tokio::test]
async fn s05_the_strategy_is_that_of_the_settings_for_calls_and_reconciling() {
    let mut bench = Bench::new().await;
    bench.set_strategy(Strategy::RoundRobin);
    bench.push("books@1.0.0").await.unwrap();
    register(&bench, worker("worker-1", 10, &[])).await;
    register(&bench, worker("worker-2", 10, &[])).await;
    for (n, name) in ["a", "b", "c", "d"].into_iter().enumerate() {
        add(&bench, name, |p| p.weight = 1 + 99 * (n as u32 % 2))
            .await
            .unwrap();
    }
    assert_eq!(bench.loads().await, [2, 2]);
    assert_eq!(
        bench.reconciler().parts.placement.strategy,
        Strategy::RoundRobin
    );
}

#[tokio::test]
async fn f41_a_deleted_resource_counts_no_more_and_its_name_is_free() {
    let bench = Bench::new().await;
    bench.push("books@1.0.0").await.unwrap();
    register(&bench, worker("worker-1", 10, &[])).await;
    register(&bench, worker("worker-2", 10, &[])).await;
    for name in ["a", "b"] {
        add(&bench, name, |_| {}).await.unwrap();
    }
    for _ in 0..3 {
        bench.delete("a").await.unwrap();
        assert_eq!(bench.loads().await.iter().sum::<u32>(), 1);
        // The resource comes to the worker that has nothing.
        add(&bench, "a", |_| {}).await.unwrap();
        assert_eq!(bench.loads().await, [1, 1]);
    }
}

#[tokio::test]
async fn f20_an_assignment_that_does_not_decode_counts_as_one_shard() {
    let bench = bench().await;
    let keys = bench.catalog().keys();
    let id = ShardId::only(ResourceId(7));
    let key = keys.assignment(&"worker-1".parse().unwrap(), id);
    bench
        .write(Txn::new().put(key, Bytes::from_static(b"{")))
        .await;
    assert_eq!(bench.loads().await, [1, 0]);
    bench.add("a").await.unwrap();
    assert_eq!(has(&bench, "a").await, "worker-2");
}
