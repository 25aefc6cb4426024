//! Tests of the events of nodes, and of those that only workers know.

use std::time::Duration;

use futures::stream::StreamExt as _;

use super::watching::{SOON, caught_up, followed};
use super::*;
use crate::control::events::{EventQuery, ToldEvent};
use crate::events::{EventBounds, Teller, keep, tell};
use crawler_model::event::{EventKind, FoldedEvent};
use crawler_model::guest_text::GuestText;
use crawler_model::id::{Incarnation, NodeId, Run};
use crawler_model::node::Role as NodeRole;
use crawler_model::resource::ShardId;
use crawler_model::status::{ProcessTotals, WorkerStatus};
use crawler_process::clock::SystemClock;
use crawler_store::catalog::encode;

/// Time in which a leader has looked at everything at least twice.
const TWO_LOOKS: Duration = Duration::from_secs(40);

fn worker(n: u32) -> NodeId {
    format!("worker-{n}").parse().unwrap()
}

async fn history(bench: &Bench) -> Vec<ToldEvent> {
    let events = bench.control.node_history(None, EventQuery::default());
    events.await.unwrap().map(Result::unwrap).collect().await
}

/// Returns the node and the kind of each event.
async fn words(bench: &Bench) -> Vec<String> {
    let events = history(bench).await;
    let words = events.iter().map(|told| {
        let node = told.node.as_ref().expect("it is about a node");
        format!("{node} {}", told.event.kind)
    });
    words.collect()
}

/// Waits until the last event of nodes has these words.
async fn until(bench: &Bench, last: &str) {
    while words(bench).await.last().map(String::as_str) != Some(last) {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Takes these steps while a leader tells events.
async fn telling(bench: &Bench, steps: impl Future<Output = ()>) {
    let leadership = bench.control.leadership().unwrap();
    let ControlParts {
        catalog,
        replica,
        clock,
        ..
    } = &bench.control.parts;
    let leader = "master-1".parse().unwrap();
    let teller = Teller {
        catalog,
        replica,
        leadership: &leadership,
        clock: &**clock,
        leader: &leader,
    };
    tokio::select! {
        biased;
        () = tell(teller) => unreachable!("it goes on"),
        done = tokio::time::timeout(Duration::from_secs(600), steps) => done.unwrap(),
    }
}

async fn remove(bench: &Bench, id: &NodeId) {
    let key = bench.catalog().keys().node(NodeRole::Worker, id);
    bench.write(Txn::new().delete(key)).await;
}

#[tokio::test(start_paused = true)]
async fn what_becomes_of_nodes_is_told_once_whoever_leads() {
    let (bench, scope) = followed().await;
    let keys = bench.catalog().keys();
    bench.store.lose_answer_below(keys.node_events());
    telling(&bench, async {
        until(&bench, "worker-2 joined").await;
        let one = worker(1);
        bench
            .control
            .drain_node(&one, false, "alice")
            .await
            .unwrap();
        until(&bench, "worker-1 drained").await;
    })
    .await;
    assert!(!bench.store.is_to_lose_an_answer());
    // Nobody leads when a worker goes.
    remove(&bench, &worker(2)).await;
    telling(&bench, until(&bench, "worker-2 lost")).await;
    telling(&bench, tokio::time::sleep(TWO_LOOKS)).await;
    let expected = [
        "worker-1 joined",
        "worker-2 joined",
        "worker-1 draining",
        "worker-1 drained",
        "worker-2 lost",
    ];
    assert_eq!(words(&bench).await, expected);
    let events = history(&bench).await;
    assert_eq!(events[0].event.why.as_str(), "version 0 at worker-1:1");
    assert_eq!(events[2].event.by.as_str(), "alice");
    scope.stop(SOON).await;
}

#[tokio::test(start_paused = true)]
async fn shards_that_come_within_a_minute_are_one_event() {
    let (bench, scope) = followed().await;
    telling(&bench, async {
        until(&bench, "worker-2 joined").await;
        // The first minute begins with the first look. The answer to one of the events is lost.
        let events = bench.catalog().keys().node_events();
        bench.store.lose_answer_below(events);
        for n in 0..6 {
            bench.add(&format!("a{n}")).await.unwrap();
        }
        until(&bench, "worker-2 shards").await;
        tokio::time::sleep(TWO_LOOKS).await;
    })
    .await;
    assert!(!bench.store.is_to_lose_an_answer());
    let events = history(&bench).await;
    let shards = events
        .iter()
        .filter(|told| told.event.kind == EventKind::Shards);
    let why: Vec<&str> = shards.map(|told| told.event.why.as_str()).collect();
    assert_eq!(why, ["3 came, 0 left, 3 now"; 2]);
    scope.stop(SOON).await;
}

#[tokio::test(start_paused = true)]
async fn numbers_of_shards_are_told_once_if_a_read_fails_too() {
    let (bench, scope) = followed().await;
    telling(&bench, async {
        until(&bench, "worker-2 joined").await;
        // The store gives no answer to one of the events, and none to the question whether it is there.
        let events = bench.catalog().keys().node_events();
        bench.store.lose_answer_and_read_below(events);
        for n in 0..6 {
            bench.add(&format!("a{n}")).await.unwrap();
        }
        until(&bench, "worker-2 shards").await;
        tokio::time::sleep(TWO_LOOKS).await;
    })
    .await;
    assert!(bench.store.has_failed_a_read());
    let events = history(&bench).await;
    let shards = events
        .iter()
        .filter(|told| told.event.kind == EventKind::Shards);
    let why: Vec<&str> = shards.map(|told| told.event.why.as_str()).collect();
    assert_eq!(why, ["3 came, 0 left, 3 now"; 2]);
    scope.stop(SOON).await;
}

#[tokio::test(start_paused = true)]
async fn a_reader_follows_one_node_and_a_stranger_is_refused() {
    let (bench, scope) = followed().await;
    telling(&bench, async {
        until(&bench, "worker-2 joined").await;
        let query = EventQuery {
            follow: true,
            ..EventQuery::default()
        };
        let two = worker(2);
        let mut reader = bench.control.node_history(Some(&two), query).await.unwrap();
        let first = reader.next().await.unwrap().unwrap();
        assert_eq!(first.event.kind, EventKind::Joined);
        remove(&bench, &worker(1)).await;
        remove(&bench, &two).await;
        let next = reader.next().await.unwrap().unwrap();
        assert_eq!((next.event.kind, next.node), (EventKind::Lost, Some(two)));
    })
    .await;
    let nine = worker(9);
    let unknown = bench
        .control
        .node_history(Some(&nine), EventQuery::default());
    check_refused(
        unknown.await.map(|_events| ()),
        Code::NotFound,
        "there is no node worker-9, and there was none in the last day",
    );
    scope.stop(SOON).await;
}

fn folded(resource: ResourceId, number: u64, kind: EventKind) -> FoldedEvent {
    FoldedEvent {
        number,
        resource,
        run: Run(1),
        kind,
        times: 12,
        why: GuestText::of("out-of-fuel in rule page (12 times)"),
    }
}

/// Shows folded events in the totals of the first worker.
async fn show(bench: &Bench, incarnation: u64, events: Vec<FoldedEvent>) {
    let since_start = ProcessTotals::default();
    let status = WorkerStatus {
        events,
        ..WorkerStatus::of(Incarnation(incarnation), 7, &[], since_start)
    };
    let key = bench.catalog().keys().status(&worker(1));
    bench.write(Txn::new().put(key, encode(&status))).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_worker_has_folded_is_told_once() {
    let (bench, scope) = followed().await;
    bench.add("a").await.unwrap();
    caught_up(&bench).await;
    let name = "a".parse().unwrap();
    let id = bench.control.resource_id(&name).await.unwrap();
    let told = async || {
        let events = bench.control.events(&name, id, EventQuery::default());
        let events: Vec<ToldEvent> = events.await.unwrap().map(Result::unwrap).collect().await;
        events
    };
    let kinds = async || {
        let told = told().await;
        let kinds = told.iter().map(|told| told.event.kind.as_str());
        kinds.collect::<Vec<_>>()
    };
    let until = async |last: &str| {
        while kinds().await.last() != Some(&last) {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    let mut events = vec![
        folded(id, 1, EventKind::RuleKilled),
        folded(ResourceId(77), 2, EventKind::RuleKilled),
        folded(id, 3, EventKind::BreakerOpen),
        // Only a leader tells this.
        folded(id, 4, EventKind::Deleted),
    ];
    show(&bench, 1, events.clone()).await;
    let keys = bench.catalog().keys();
    bench.store.lose_answer_below(keys.events_of(id));
    telling(&bench, until("breaker-open")).await;
    assert!(!bench.store.is_to_lose_an_answer());
    // The worker shows what it has shown, and more.
    events.push(folded(id, 5, EventKind::BreakerClosed));
    show(&bench, 1, events.clone()).await;
    telling(&bench, until("breaker-closed")).await;
    // This is not the process that is registered.
    events.push(folded(id, 6, EventKind::SinkRefused));
    show(&bench, 2, events).await;
    telling(&bench, tokio::time::sleep(TWO_LOOKS)).await;
    let expected = [
        "added",
        "placed",
        "rule-killed",
        "breaker-open",
        "breaker-closed",
    ];
    assert_eq!(kinds().await, expected);
    let killed = &told().await[2].event;
    assert_eq!((killed.times, killed.worker.clone()), (12, Some(worker(1))));
    scope.stop(SOON).await;
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_a_later_version_knows_is_told_of() {
    let (bench, scope) = followed().await;
    bench.add("a").await.unwrap();
    let name = "a".parse().unwrap();
    let id = bench.control.resource_id(&name).await.unwrap();
    let shard = bench.catalog().keys().shard(ShardId::only(id));
    bench
        .write(Txn::new().put(shard, "of a later version"))
        .await;
    caught_up(&bench).await;
    show(&bench, 1, vec![folded(id, 1, EventKind::RuleKilled)]).await;
    let told = async || {
        let events = bench.control.events(&name, id, EventQuery::default());
        let last = events.await.unwrap().map(Result::unwrap);
        last.map(|told| told.event.kind).collect::<Vec<_>>().await
    };
    let until = async {
        while told().await.last() != Some(&EventKind::RuleKilled) {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    telling(&bench, until).await;
    scope.stop(SOON).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_a_later_version_knows_holds_up_no_other() {
    let (bench, scope) = followed().await;
    let key = bench.catalog().keys().told_node(&worker(1));
    bench
        .write(Txn::new().put(key.clone(), "of a later version"))
        .await;
    telling(&bench, until(&bench, "worker-2 joined")).await;
    assert_eq!(words(&bench).await, ["worker-2 joined"]);
    let left = bench.catalog().store().get(&key).await.unwrap().unwrap();
    assert_eq!(left.value, "of a later version");
    scope.stop(SOON).await;
}

/// A clock that is two days ahead.
struct Later;

impl Clock for Later {
    fn unix_nanos(&self) -> u64 {
        SystemClock.unix_nanos() + 2 * 24 * 3_600 * 1_000_000_000
    }
}

#[tokio::test(start_paused = true)]
async fn events_of_a_node_go_a_day_after_it() {
    let (mut bench, scope) = followed().await;
    telling(&bench, until(&bench, "worker-2 joined")).await;
    remove(&bench, &worker(2)).await;
    telling(&bench, until(&bench, "worker-2 lost")).await;
    bench.set_clock(Arc::new(Later));
    telling(&bench, tokio::time::sleep(TWO_LOOKS)).await;
    let leadership = bench.control.leadership().unwrap();
    let catalog = bench.catalog().clone();
    let replica = bench.control.parts.replica.clone();
    let keeping = keep(&catalog, &replica, &leadership, EventBounds::default());
    let gone = async {
        while words(&bench).await != ["worker-1 joined"] {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::select! {
        biased;
        () = keeping => unreachable!("it goes on"),
        gone = tokio::time::timeout(Duration::from_secs(600), gone) => gone.unwrap(),
    }
    scope.stop(SOON).await;
}
