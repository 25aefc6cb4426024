//! Tests of pausing, draining, shards, and changes that need a new run.

use super::*;
use crate::ResourceView;
use crate::control::items::ItemQuery;
use crawler_model::drift::{Action, Decision};
use crawler_model::id::{NodeId, Run, Shard};
use crawler_model::resource::{Redrive, ShardId, ShardRecord};
use crawler_model::settings::SinkName;
use crawler_store::catalog::encode;

fn name(text: &str) -> ResourceName {
    text.parse().unwrap()
}

async fn pause(bench: &Bench, pause: bool) -> Result<ResourceView, ControlError> {
    let request = RequestId::random();
    bench
        .control
        .pause_resource(&name("a"), pause, &request)
        .await
}

async fn add_parts(bench: &Bench, n: u32) -> ResourceView {
    let mut spec = spec("a", "books");
    spec.placement.shards = n;
    let request = RequestId::random();
    let added = bench.control.add_resource(spec, &request);
    added.await.unwrap()
}

async fn restart_with(bench: &Bench, change: impl Fn(&mut ResourceSpec)) -> ResourceView {
    let change = |present: &Resource| {
        let mut spec = present.spec.clone();
        change(&mut spec);
        Ok(spec)
    };
    let (name, request) = (name("a"), RequestId::random());
    let restarted = bench.control.restart_resource(&name, change, &request);
    restarted.await.unwrap()
}

fn states(view: &ResourceView) -> Vec<ShardState> {
    let shards = view.shards.iter();
    shards.map(|shard| shard.record.state.clone()).collect()
}

#[tokio::test]
async fn a_paused_resource_says_so_until_it_is_resumed() {
    let bench = bench().await;
    bench.add("a").await.unwrap();
    let paused = pause(&bench, true).await.unwrap();
    let owner = paused.shards[0].record.owner.clone().unwrap().node;
    let expected = Phase::Paused(format!("{owner} brings it to an end"));
    assert_eq!(paused.phase, expected);
    bench.record("a", |shard| *shard = shard.freed()).await;
    let paused = pause(&bench, true).await.unwrap();
    assert_eq!(paused.phase, Phase::Paused(String::new()));
    // The user's specification has not changed.
    assert_eq!(paused.resource.generation, Generation(1));
    let resumed = pause(&bench, false).await.unwrap();
    assert!(
        matches!(resumed.phase, Phase::Pending(_)),
        "{:?}",
        resumed.phase
    );
    check_refused(
        {
            let request = RequestId::random();
            bench
                .control
                .pause_resource(&name("b"), true, &request)
                .await
        },
        Code::NotFound,
        "there is no resource b",
    );
}

#[tokio::test]
async fn what_is_deleted_while_it_is_handed_over_is_gone_and_can_be_paused_no_more() {
    let bench = bench().await;
    bench.add("a").await.unwrap();
    bench
        .record("a", |shard| shard.state = ShardState::Revoking)
        .await;
    bench.delete("a").await.unwrap();
    assert_eq!(bench.loads().await, [0, 0]);
    let refused = pause(&bench, true).await;
    check_refused(refused, Code::NotFound, "there is no resource a");
}

#[tokio::test]
async fn s20_the_parts_of_a_resource_are_spread_over_the_workers() {
    let bench = bench().await;
    let view = add_parts(&bench, 4).await;
    assert_eq!(states(&view), vec![ShardState::Assigned; 4]);
    assert_eq!(bench.loads().await, [2, 2]);
    let first = view.shards[0].record.owner.as_ref().unwrap();
    let named = format!("{}|{}:1", first.node, first.node);
    assert_eq!(view.resource.assigned_node, named);
    assert_eq!(view.phase, Phase::Running);
}

#[tokio::test]
async fn a_run_with_fewer_parts_leaves_the_others_and_one_with_more_makes_them() {
    let bench = bench().await;
    add_parts(&bench, 3).await;
    let fewer = restart_with(&bench, |spec| spec.placement.shards = 1).await;
    assert_eq!(
        (fewer.resource.run, fewer.resource.generation),
        (Run(2), Generation(2))
    );
    assert_eq!(states(&fewer), [ShardState::Free]);
    let keys = bench.catalog().keys();
    let id = ShardId {
        resource: fewer.resource.id,
        shard: Shard(2),
    };
    let left: Versioned<ShardRecord> = bench
        .catalog()
        .read(&keys.shard(id))
        .await
        .unwrap()
        .unwrap();
    // A deletion has to wait for the former owner.
    assert_eq!(left.value.state, ShardState::Finished);
    assert_eq!(left.value.former_owners.len(), 1);
    let more = restart_with(&bench, |spec| spec.placement.shards = 4).await;
    assert_eq!(states(&more), vec![ShardState::Free; 4]);
    assert_eq!(more.shards[2].record.epoch, left.value.epoch.next());
    // The owner of a frontier in a later run is told since when hosts belong to other shards.
    let same = restart_with(&bench, |_| ()).await.resource;
    assert_eq!((same.run, same.resharded_at), (Run(4), Run(3)));
}

#[tokio::test]
async fn a_run_with_fewer_parts_waits_until_those_that_go_have_nothing_left() {
    let bench = bench().await;
    let view = add_parts(&bench, 3).await;
    let keys = bench.catalog().keys();
    let last = view.shards[2].clone();
    let id = ShardId {
        resource: view.resource.id,
        shard: last.shard,
    };
    let set = async |state| {
        let record = ShardRecord {
            created: true,
            state,
            ..last.record.clone()
        };
        bench
            .write(Txn::new().put(keys.shard(id), encode(&record)))
            .await;
    };
    let (name, request) = (name("a"), RequestId::random());
    let fewer = |present: &Resource| {
        let mut spec = present.spec.clone();
        spec.placement.shards = 2;
        Ok(spec)
    };
    let why = "shard 2 of resource a is at work, or has items that its sink does not have yet; \
               a run with fewer shards begins when this one is over";
    let reason = "for a test".to_owned();
    for state in [
        ShardState::Assigned,
        ShardState::Free,
        ShardState::Revoking,
        ShardState::Failed { reason },
    ] {
        set(state).await;
        let refused = bench.control.restart_resource(&name, fewer, &request).await;
        check_refused(refused, Code::FailedPrecondition, why);
    }
    set(ShardState::Finished).await;
    let restarted = bench.control.restart_resource(&name, fewer, &request);
    assert_eq!(restarted.await.unwrap().shards.len(), 2);
}

#[tokio::test]
async fn a_shard_with_held_items_does_not_go() {
    let bench = bench().await;
    let view = add_parts(&bench, 3).await;
    let last = view.shards[2].clone();
    let id = ShardId {
        resource: view.resource.id,
        shard: last.shard,
    };
    let set = async |n_held, decisions: Vec<Decision>| {
        let mut record = ShardRecord {
            created: true,
            state: ShardState::Finished,
            decisions,
            ..last.record.clone()
        };
        record.counts.held = n_held;
        let key = bench.catalog().keys().shard(id);
        bench.write(Txn::new().put(key, encode(&record))).await;
    };
    let (name, request) = (name("a"), RequestId::random());
    let fewer = |present: &Resource| {
        let mut spec = present.spec.clone();
        spec.placement.shards = 2;
        Ok(spec)
    };
    let decision = Decision {
        action: Action::Drop,
        holds: [(1, 9)].into(),
    };
    for (n_held, decisions) in [(7, Vec::new()), (0, vec![decision])] {
        set(n_held, decisions).await;
        let refused = bench.control.restart_resource(&name, fewer, &request).await;
        let hint = refused.as_ref().err().map(|error| error.hint());
        assert!(hint.is_some_and(|hint| hint.contains("crawler quarantine list a")));
        check_refused(
            refused,
            Code::FailedPrecondition,
            "shard 2 of resource a holds items, which would stay there in a run with fewer shards",
        );
    }
    set(0, Vec::new()).await;
    let restarted = bench.control.restart_resource(&name, fewer, &request);
    assert_eq!(restarted.await.unwrap().shards.len(), 2);
}

#[tokio::test]
async fn f20_a_shard_that_nobody_can_read_is_named_and_goes_with_its_resource() {
    let bench = bench().await;
    add_parts(&bench, 2).await;
    let (id, _) = bench.shard("a").await;
    let key = bench.catalog().keys().shard(id);
    bench.write(Txn::new().put(key.clone(), "?")).await;
    for refused in [
        bench.restart("a").await,
        bench
            .update("a", |spec| spec.crawl.concurrency = Some(3))
            .await,
    ] {
        let error = refused.unwrap_err().to_string();
        assert!(
            error.contains(&format!("record {key} does not decode")),
            "{error}"
        );
    }
    bench.delete("a").await.unwrap();
    assert!(bench.catalog().store().get(&key).await.unwrap().is_none());
}

#[tokio::test]
async fn a_restart_takes_what_an_update_refuses() {
    let bench = bench().await;
    bench.push("other@2.0.0").await.unwrap();
    let added = bench.add("a").await.unwrap().resource;
    assert!(added.run_started_at.is_some());
    let long_ago = Resource {
        run_started_at: Some(1),
        ..added
    };
    let key = bench.catalog().keys().resource(&name("a"));
    let txn = Txn::new().put(key, encode(&long_ago));
    bench.catalog().store().commit(txn).await.unwrap();
    let changed = restart_with(&bench, |spec| {
        spec.plugin = "other".parse().unwrap();
        spec.params.insert("start".into(), "x".into());
    });
    let changed = changed.await.resource;
    assert_eq!(changed.spec.params["start"], "x");
    assert!(changed.run_started_at > Some(1));
    assert_eq!(changed.pinned.unwrap().version.to_string(), "2.0.0");
    let unknown = |present: &Resource| {
        let mut spec = present.spec.clone();
        spec.plugin = "nobody".parse().unwrap();
        Ok(spec)
    };
    let (name, request) = (name("a"), RequestId::random());
    let refused = bench.control.restart_resource(&name, unknown, &request);
    let expected = "there is no plugin nobody";
    check_refused(refused.await, Code::FailedPrecondition, expected);
}

#[tokio::test]
async fn an_update_takes_another_version_of_the_plugin_and_refuses_what_needs_a_new_run() {
    let bench = bench().await;
    bench.push("books@2.0.0").await.unwrap();
    bench.add("a").await.unwrap();
    // Pending redrives stay.
    let timeout = Some(Redrive::of(Some("timeout")));
    bench.record("a", |shard| shard.redrive = timeout).await;
    let older = bench.update("a", |spec| spec.plugin = "books@1.0.0".parse().unwrap());
    let older = older.await.unwrap().resource;
    assert_eq!(older.pinned.unwrap().version.to_string(), "1.0.0");
    // The epoch is a new one, so that the version before records nothing any more.
    let (_, shard) = bench.shard("a").await;
    assert_eq!((shard.state, shard.epoch.0), (ShardState::Free, 2));
    let reasons = shard.redrive.unwrap().reasons;
    assert_eq!(Vec::from_iter(reasons), ["no-rule", "timeout"]);
    // A finished shard has nothing to try again.
    bench
        .record("a", |shard| {
            (shard.state, shard.redrive) = (ShardState::Finished, None);
        })
        .await;
    let newer = bench.update("a", |spec| spec.plugin = "books@2.0.0".parse().unwrap());
    newer.await.unwrap();
    let (_, shard) = bench.shard("a").await;
    assert_eq!((shard.state, shard.redrive), (ShardState::Finished, None));
    assert_eq!(older.run, Run(1));
    let few = bench
        .update("a", |spec| spec.crawl.max_pages = Some(0))
        .await;
    let expected = "setting max-pages must be above zero";
    check_refused(few, Code::InvalidArgument, expected);
    let few = bench
        .update("a", |spec| {
            spec.crawl.max_pages = Some(3);
            spec.placement.shards = 4;
        })
        .await;
    let expected = "max-pages is 3, and 4 shards take a page each at least";
    check_refused(few, Code::InvalidArgument, expected);
    let changes = bench
        .update("a", |spec| {
            spec.crawl.changes = Some(30);
            spec.placement.shards = 4;
        })
        .await;
    let expected = "setting changes is 30, and the resource has 4 shards, which do not know each other's items; set --shards 1, or set changes to 0";
    check_refused(changes, Code::InvalidArgument, expected);
    let revisit = bench.update("a", |spec| spec.crawl.revisit_ms = Some(3_600_000));
    let expected = "setting revisit is 1h, and setting unchanged is parse: pages that only a page leads to that is not due would be lost; set unchanged to skip, or revisit to 0";
    check_refused(revisit.await, Code::InvalidArgument, expected);
    let shards = bench.update("a", |spec| spec.placement.shards = 4).await;
    let error = shards.unwrap_err();
    assert_eq!(
        error.hint(),
        "`crawler resource restart a --shards 4` begins one"
    );
    check_refused(
        Err::<ResourceView, _>(error),
        Code::FailedPrecondition,
        "shards of resource a can only change with a new run",
    );
}

#[tokio::test]
async fn a_worker_that_was_told_to_drain_gets_nothing_more_and_the_last_one_may_drain_too() {
    let bench = bench().await;
    let worker = |n: u32| -> NodeId { format!("worker-{n}").parse().unwrap() };
    bench.add("a").await.unwrap();
    let (_, shard) = bench.shard("a").await;
    let owner = shard.owner.unwrap().node;
    let drained = bench.control.drain_node(&owner, false, "").await.unwrap();
    assert_eq!((drained.load, drained.others), (1, 1));
    // A repetition changes nothing.
    assert_eq!(
        bench.control.drain_node(&owner, false, "").await.unwrap(),
        drained
    );
    let other = bench.add("b").await.unwrap().shards.remove(0).record.owner;
    let other = other.unwrap().node;
    assert_ne!(other, owner);
    let drained = bench.control.drain_node(&other, false, "").await.unwrap();
    assert_eq!((drained.load, drained.others), (1, 0));
    let waits = bench.add("c").await.unwrap().phase;
    assert_eq!(waits, Phase::Pending("0/2 workers: 2 draining".to_owned()));
    let nodes = bench.control.nodes().await.unwrap().nodes;
    assert!(nodes.iter().all(|view| view.node.draining));
    bench.control.drain_node(&owner, true, "").await.unwrap();
    let taken = bench.add("d").await.unwrap().shards.remove(0).record.owner;
    assert_eq!(taken.unwrap().node, owner);
    for (id, undo) in [(worker(9), false), (worker(9), true)] {
        let refused = bench.control.drain_node(&id, undo, "").await;
        check_refused(refused, Code::NotFound, "there is no worker worker-9");
    }
}

#[tokio::test]
async fn a_sink_of_changes_needs_a_resource_that_compares_items() {
    let bench = bench().await;
    bench.add("a").await.unwrap();
    let set = |sinks: &'static [&'static str], changes: u32| {
        move |spec: &mut ResourceSpec| {
            spec.crawl.sinks = sinks.iter().map(|name| name.parse().unwrap()).collect();
            spec.crawl.changes = Some(changes);
        }
    };
    let why = "setting sink names feed, which needs changes, and setting changes is 0: the resource would tell it none; set changes, as with --changes 30, or leave out feed";
    check_refused(
        bench.update("a", set(&["lines", "feed"], 0)).await,
        Code::InvalidArgument,
        why,
    );
    bench
        .update("a", set(&["lines", "feed"], 30))
        .await
        .unwrap();
    check_refused(
        bench.update("a", set(&["lines", "feed"], 0)).await,
        Code::InvalidArgument,
        why,
    );
    bench.update("a", set(&["lines"], 0)).await.unwrap();
}

#[tokio::test]
async fn a_resource_names_declared_sinks_only() {
    let bench = bench().await;
    bench.add("a").await.unwrap();
    let sinks = |names: &[&str]| {
        let names: Vec<SinkName> = names.iter().map(|name| name.parse().unwrap()).collect();
        move |spec: &mut ResourceSpec| spec.crawl.sinks.clone_from(&names)
    };
    let known = bench.update("a", sinks(&["lines", "db"])).await.unwrap();
    assert_eq!(known.resource.spec.crawl.sinks.len(), 2);
    check_refused(
        bench.update("a", sinks(&["db", "gone"])).await,
        Code::InvalidArgument,
        "setting sink names gone, which is not declared; there are db, feed, lines; add [sink.gone] to the config files of masters and workers",
    );
    let mut other = spec("b", "books");
    sinks(&["gone"])(&mut other);
    let request = RequestId::random();
    let added = bench.control.add_resource(other, &request);
    assert_eq!(added.await.unwrap_err().code(), Code::InvalidArgument);
    // The items of this one are read where they go.
    bench.update("a", sinks(&["db"])).await.unwrap();
    let read = bench.control.items("a", ItemQuery::default()).await;
    let error = read.err().unwrap().to_string();
    assert!(
        error.starts_with("the items of resource a go to sink db, "),
        "{error}"
    );
}
