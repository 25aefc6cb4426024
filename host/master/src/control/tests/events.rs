//! Tests of the events of resources: each change makes one, in its own transaction, and readers get them in order.

use std::time::Duration;

use futures::stream::StreamExt as _;

use super::watching::{SOON, caught_up, followed};
use super::*;
use crate::ResourceView;
use crate::control::events::{EventQuery, ToldEvent};
use crate::events::{EventBounds, keep};
use crawler_model::event::EventKind;
use crawler_model::id::NodeId;
use crawler_store::election::take_lead;

/// Creates a bench with one worker.
async fn with_one_worker() -> Bench {
    let bench = Bench::new().await;
    bench.push("books@1.0.0").await.unwrap();
    bench.register("worker-1", 1_000).await;
    bench
}

async fn id(bench: &Bench) -> ResourceId {
    bench.control.resource_id(&a()).await.unwrap()
}

fn a() -> ResourceName {
    "a".parse().unwrap()
}

/// Returns the events of a life of `a` that are kept.
async fn events(bench: &Bench, id: ResourceId) -> Vec<ToldEvent> {
    let query = EventQuery::default();
    let events = bench.control.events(&a(), id, query).await.unwrap();
    let events: Vec<Result<ToldEvent, ControlError>> = events.collect().await;
    events.into_iter().map(Result::unwrap).collect()
}

/// Returns their kinds.
async fn kinds(bench: &Bench, id: ResourceId) -> Vec<&'static str> {
    let events = events(bench, id).await;
    events.iter().map(|told| told.event.kind.as_str()).collect()
}

async fn pause(bench: &Bench, pause: bool) -> Result<ResourceView, ControlError> {
    let request = RequestId::random();
    bench.control.pause_resource(&a(), pause, &request).await
}

/// Makes one pass of the reconciler, over all records as they are now.
async fn pass(bench: &Bench) {
    let mut reconciler = bench.reconciler();
    let observed = reconciler.parts.replica.after(None).await;
    reconciler.pass(&observed).await;
}

async fn give_back(bench: &Bench) {
    bench.record("a", |shard| *shard = shard.freed()).await;
}

async fn revision(bench: &Bench) -> Revision {
    let listing = bench.catalog().store().list("/none").await;
    listing.unwrap().revision
}

#[tokio::test]
async fn each_change_of_a_resource_is_one_event() {
    let bench = with_one_worker().await;
    bench.add("a").await.unwrap();
    let id = id(&bench).await;
    let more_pages = |spec: &mut ResourceSpec| spec.crawl.max_pages = Some(7);
    bench.update("a", more_pages).await.unwrap();
    for _ in 0..2 {
        pause(&bench, true).await.unwrap();
    }
    pass(&bench).await;
    give_back(&bench).await;
    pause(&bench, false).await.unwrap();
    pass(&bench).await;
    bench.restart("a").await.unwrap();
    pass(&bench).await;
    bench.end("a", ShardState::Idle).await;
    pass(&bench).await;
    bench.delete("a").await.unwrap();
    let expected = [
        "added",
        "placed",
        "updated",
        "paused",
        "moving",
        "resumed",
        "placed",
        "run-stopped",
        "run-started",
        "placed",
        "finished",
        "deleted",
    ];
    assert_eq!(kinds(&bench, id).await, expected);
    let events = events(&bench, id).await;
    let why = |n: usize| events[n].event.why.as_str();
    assert_eq!(why(2), "max-pages");
    assert_eq!(why(4), "the resource is paused");
    assert_eq!(why(9), "strategy least-load");
    let runs: Vec<u64> = events.iter().map(|told| told.event.run.0).collect();
    assert_eq!(runs, [1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2]);
    assert!(events[10].event.counts.is_some());
}

#[tokio::test]
async fn an_event_is_written_with_its_change() {
    let bench = with_one_worker().await;
    bench.add("a").await.unwrap();
    bench.restart("a").await.unwrap();
    let before = revision(&bench).await;
    pass(&bench).await;
    assert_eq!(revision(&bench).await.0, before.0 + 1, "one transaction");
    let id = id(&bench).await;
    assert_eq!(kinds(&bench, id).await.last(), Some(&"placed"));
    // The last event of a write has its revision.
    let told = events(&bench, id).await;
    let versions: Vec<bool> = told.iter().map(|told| told.version.is_some()).collect();
    assert_eq!(versions, [false, true, false, true, true]);
    assert_eq!(told[4].version, Some(before.0 + 1));
}

#[tokio::test]
async fn a_call_that_is_sent_again_makes_no_second_event() {
    let bench = with_one_worker().await;
    let (added, paused) = (RequestId::random(), RequestId::random());
    for _ in 0..2 {
        let spec = spec("a", "books");
        bench.control.add_resource(spec, &added).await.unwrap();
        bench
            .control
            .pause_resource(&a(), true, &paused)
            .await
            .unwrap();
    }
    let id = id(&bench).await;
    assert_eq!(kinds(&bench, id).await, ["added", "placed", "paused"]);
}

#[tokio::test]
async fn a_lost_answer_makes_no_second_event() {
    let bench = with_one_worker().await;
    bench.add("a").await.unwrap();
    let id = id(&bench).await;
    let events = bench.catalog().keys().events_of(id);
    bench.store.lose_answer_below(events.clone());
    pause(&bench, true).await.unwrap();
    assert!(!bench.store.is_to_lose_an_answer());
    assert_eq!(kinds(&bench, id).await, ["added", "placed", "paused"]);
    // That of an action is found out by the next pass.
    pass(&bench).await;
    give_back(&bench).await;
    pause(&bench, false).await.unwrap();
    bench.store.lose_answer_below(events);
    for _ in 0..2 {
        pass(&bench).await;
    }
    assert!(!bench.store.is_to_lose_an_answer());
    let expected = ["added", "placed", "paused", "moving", "resumed", "placed"];
    assert_eq!(kinds(&bench, id).await, expected);
}

#[tokio::test]
async fn an_event_names_who_asked_for_the_change() {
    let bench = with_one_worker().await;
    bench.add("a").await.unwrap();
    let request = RequestId::random();
    let asked = Asked {
        request: &request,
        by: "alice\u{1b}[2J",
    };
    bench
        .control
        .pause_resource(&a(), true, asked)
        .await
        .unwrap();
    let events = events(&bench, id(&bench).await).await;
    assert_eq!(events[0].event.by.as_str(), "");
    assert_eq!(events[2].event.by.as_str(), "alice\\u{1b}[2J");
}

#[tokio::test]
async fn a_shard_that_leaves_a_draining_worker_is_told_from_where() {
    let bench = bench().await;
    bench.add("a").await.unwrap();
    let from = bench.shard("a").await.1.owner.unwrap().node;
    bench.control.drain_node(&from, false, "").await.unwrap();
    pass(&bench).await;
    give_back(&bench).await;
    pass(&bench).await;
    let to = bench.shard("a").await.1.owner.unwrap().node;
    assert_ne!(to, from);
    let events = events(&bench, id(&bench).await).await;
    let seen = events[2..].iter().map(|told| {
        let event = &told.event;
        let why = event.why.as_str();
        (event.kind, event.from.clone(), event.worker.clone(), why)
    });
    let expected = [
        (
            EventKind::Moving,
            Some(from.clone()),
            Some(to.clone()),
            "the worker is told to drain",
        ),
        (EventKind::Moved, Some(from), Some(to), ""),
    ];
    assert_eq!(seen.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn a_failure_that_a_worker_records_is_told_once() {
    let bench = with_one_worker().await;
    bench.add("a").await.unwrap();
    let reason = "plugin books@1.0.0: no\u{1b}[2J".to_owned();
    bench.end("a", ShardState::Failed { reason }).await;
    let mut reconciler = bench.reconciler();
    let observed = reconciler.parts.replica.after(None).await;
    // The second pass does not know of the first, as after a lost answer.
    for _ in 0..2 {
        reconciler.pass(&observed).await;
    }
    pass(&bench).await;
    let id = id(&bench).await;
    assert_eq!(kinds(&bench, id).await, ["added", "placed", "failed"]);
    let failed = &events(&bench, id).await[2].event;
    assert_eq!(failed.why.as_str(), "plugin books@1.0.0: no\\u{1b}[2J");
    assert_eq!(failed.worker.as_ref().map(NodeId::as_str), Some("worker-1"));
}

#[tokio::test]
async fn a_deposed_leader_writes_neither_change_nor_event() {
    let mut bench = with_one_worker().await;
    bench.add("a").await.unwrap();
    let id = id(&bench).await;
    let lead = format!("{}test", bench.catalog().keys().election());
    bench.write(Txn::new().delete(lead)).await;
    pause(&bench, true).await.unwrap_err();
    assert_eq!(kinds(&bench, id).await, ["added", "placed"]);
    bench.control.parts.election_status = take_lead(bench.catalog()).await;
    pause(&bench, true).await.unwrap();
    assert_eq!(kinds(&bench, id).await, ["added", "placed", "paused"]);
}

struct Early;

impl Clock for Early {
    /// A time long before all others.
    fn unix_nanos(&self) -> u64 {
        1_000_000_000
    }
}

#[tokio::test]
async fn events_are_in_the_order_of_their_writes_whatever_clocks_say() {
    let mut bench = with_one_worker().await;
    bench.add("a").await.unwrap();
    bench.set_clock(Arc::new(Early));
    pause(&bench, true).await.unwrap();
    let events = events(&bench, id(&bench).await).await;
    let kinds: Vec<&str> = events.iter().map(|told| told.event.kind.as_str()).collect();
    assert_eq!(kinds, ["added", "placed", "paused"]);
    assert!(events[2].at < events[0].at);
}

#[tokio::test]
async fn another_life_of_a_name_has_events_of_its_own() {
    let bench = with_one_worker().await;
    bench.add("a").await.unwrap();
    let first = id(&bench).await;
    bench.delete("a").await.unwrap();
    bench.add("a").await.unwrap();
    assert_eq!(kinds(&bench, id(&bench).await).await, ["added", "placed"]);
    let before = ["added", "placed", "deleted"];
    assert_eq!(kinds(&bench, first).await, before);
}

#[tokio::test]
async fn a_reader_follows_goes_on_and_is_told_the_end() {
    let bench = with_one_worker().await;
    bench.add("a").await.unwrap();
    let id = id(&bench).await;
    let follow = async |after: Option<u64>| {
        let query = EventQuery {
            follow: true,
            after,
            ..EventQuery::default()
        };
        bench.control.events(&a(), id, query).await.unwrap()
    };
    let mut reader = follow(None).await;
    let mut next = async || {
        let next = tokio::time::timeout(SOON, reader.next()).await;
        next.expect("an event comes or the stream ends")
            .map(Result::unwrap)
    };
    for expected in ["added", "placed"] {
        assert_eq!(next().await.unwrap().event.kind.as_str(), expected);
    }
    pause(&bench, true).await.unwrap();
    let paused = next().await.unwrap();
    assert_eq!(paused.event.kind, EventKind::Paused);
    drop(reader);
    pause(&bench, false).await.unwrap();
    let mut reader = follow(paused.version).await;
    bench.delete("a").await.unwrap();
    let mut rest = Vec::new();
    while let Some(told) = tokio::time::timeout(SOON, reader.next()).await.unwrap() {
        rest.push(told.unwrap().event.kind);
    }
    assert_eq!(rest, [EventKind::Resumed, EventKind::Deleted]);
}

#[tokio::test]
async fn events_before_a_time_are_left_out() {
    let mut bench = with_one_worker().await;
    let now = bench.control.now();
    bench.set_clock(Arc::new(Early));
    bench.add("a").await.unwrap();
    bench.set_clock(Arc::new(crawler_process::clock::SystemClock));
    pause(&bench, true).await.unwrap();
    let query = EventQuery {
        since: Some(now),
        ..EventQuery::default()
    };
    let id = id(&bench).await;
    let events = bench.control.events(&a(), id, query).await.unwrap();
    let events: Vec<_> = events.map(|told| told.unwrap().event.kind).collect().await;
    assert_eq!(events, [EventKind::Paused]);
}

#[tokio::test]
async fn a_record_that_does_not_decode_hides_no_other_event() {
    let bench = with_one_worker().await;
    bench.add("a").await.unwrap();
    let id = id(&bench).await;
    let key = bench.catalog().keys().event(id, 1, 1);
    bench.write(Txn::new().put(key, "{}")).await;
    pause(&bench, true).await.unwrap();
    assert_eq!(kinds(&bench, id).await, ["added", "placed", "paused"]);
}

async fn n_records(bench: &Bench) -> usize {
    let catalog = bench.catalog();
    let listing = catalog.store().list(&catalog.keys().events()).await;
    listing.unwrap().entries.len()
}

#[tokio::test(start_paused = true)]
async fn the_oldest_events_go_and_those_of_a_resource_that_is_gone() {
    let (bench, scope) = followed().await;
    bench.add("a").await.unwrap();
    let id = id(&bench).await;
    let leadership = bench.control.leadership().unwrap();
    let bounds = EventBounds::of(4);
    let replica = bench.control.parts.replica.clone();
    let catalog = bench.catalog().clone();
    let keeping = keep(&catalog, &replica, &leadership, bounds);
    let until = async |n: usize| {
        while n_records(&bench).await > n {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    let writing = async {
        for n in 0..20 {
            pause(&bench, n % 2 == 0).await.unwrap();
        }
        // A quarter more than the bounds may stay.
        until(5).await;
        let kinds = kinds(&bench, id).await;
        assert!(kinds.len() >= 4, "{kinds:?}");
        assert!(kinds.ends_with(&["paused", "resumed"]), "{kinds:?}");
        // A later version has written a record that this one cannot read.
        let other = bench.catalog().keys().resource(&"other".parse().unwrap());
        bench
            .write(Txn::new().put(other, "of a later version"))
            .await;
        bench.delete("a").await.unwrap();
        // What is written later shows that the deletion has arrived as a whole.
        let key = format!("{}test", bench.catalog().keys().all());
        bench.write(Txn::new().put(key, "")).await;
        caught_up(&bench).await;
        until(0).await;
    };
    tokio::select! {
        biased;
        () = keeping => unreachable!("it goes on"),
        done = tokio::time::timeout(Duration::from_secs(600), writing) => done.unwrap(),
    }
    scope.stop(SOON).await;
}
