//! Tests of the watch of resources.

use std::time::Duration;

use futures::stream::{BoxStream, StreamExt as _};

use super::*;
use crate::control::resource_watch::{ResourceChange, ResourceEvent, WatchQuery};
use crate::replica::Replica;
use crawler_process::task::TaskScope;

const SOON: Duration = Duration::from_secs(30);

type Events = BoxStream<'static, Result<ResourceEvent, ControlError>>;

/// Creates a bench whose replica follows the store until the scope ends.
async fn followed() -> (Bench, TaskScope) {
    let mut bench = bench().await;
    let (replica, feeder) = Replica::new(bench.catalog().clone(), Strategy::default());
    let scope = TaskScope::new();
    scope.spawn("replica", feeder.run(scope.stop_signal()));
    bench.control.parts.replica = replica;
    (bench, scope)
}

/// Waits until the replica has all that is written.
async fn caught_up(bench: &Bench) {
    let catalog = bench.catalog();
    let written = catalog.store().list(&catalog.keys().resources()).await;
    let revision = written.unwrap().revision;
    let reached = bench.control.parts.replica.reaches(revision);
    tokio::time::timeout(SOON, reached)
        .await
        .expect("it follows");
}

/// Returns the next event as words, and its version.
async fn next(events: &mut Events) -> (String, Option<u64>) {
    let event = tokio::time::timeout(SOON, events.next()).await;
    let event = event.expect("an event comes").unwrap().unwrap();
    let words = match event.change {
        ResourceChange::Begin => "begin".to_owned(),
        ResourceChange::Added(view) => format!("added {}", view.resource.spec.name),
        ResourceChange::Changed(view) => {
            format!(
                "changed {} {}",
                view.resource.spec.name,
                view.phase.as_str()
            )
        }
        ResourceChange::Deleted(name) => format!("deleted {name}"),
        ResourceChange::Complete => "complete".to_owned(),
        ResourceChange::Heartbeat => "heartbeat".to_owned(),
    };
    (words, event.version)
}

/// Passes over events until one has these words, and returns its version.
async fn until(events: &mut Events, words: &str) -> Option<u64> {
    loop {
        let (found, version) = next(events).await;
        if found == words {
            return version;
        }
    }
}

fn query(after: Option<u64>) -> WatchQuery {
    WatchQuery {
        after,
        grants: Grants::all(),
        ..WatchQuery::default()
    }
}

#[tokio::test]
async fn a_watch_tells_what_is_there_and_then_what_changes() {
    let (bench, scope) = followed().await;
    for name in ["a", "b"] {
        bench.add(name).await.unwrap();
    }
    caught_up(&bench).await;
    let mut events = bench.control.resource_events(query(None));
    for expected in ["begin", "added a", "added b"] {
        let (words, version) = next(&mut events).await;
        assert_eq!((words.as_str(), version), (expected, None));
    }
    let (words, version) = next(&mut events).await;
    assert_eq!(words, "complete");
    assert!(version.is_some());
    bench.add("c").await.unwrap();
    until(&mut events, "added c").await;
    bench.end("a", ShardState::Finished).await;
    until(&mut events, "changed a Finished").await;
    bench.delete("b").await.unwrap();
    until(&mut events, "deleted b").await;
    scope.stop(SOON).await;
}

#[tokio::test]
async fn a_reader_that_comes_back_is_told_what_it_missed_or_to_begin_anew() {
    let (bench, scope) = followed().await;
    for name in ["a", "b", "c"] {
        bench.add(name).await.unwrap();
    }
    caught_up(&bench).await;
    let mut events = bench.control.resource_events(query(None));
    let version = until(&mut events, "complete").await;
    drop(events);
    let mut events = bench.control.resource_events(query(version));
    until(&mut events, "complete").await;
    drop(events);
    bench.delete("b").await.unwrap();
    bench.end("c", ShardState::Finished).await;
    bench.add("d").await.unwrap();
    caught_up(&bench).await;
    let mut events = bench.control.resource_events(query(version));
    for expected in ["deleted b", "changed c Finished", "added d", "complete"] {
        let (words, version) = next(&mut events).await;
        assert_eq!(words, expected);
        assert_eq!(
            version.is_some(),
            matches!(expected, "added d" | "complete")
        );
    }
    // A version that this cluster never had.
    let mut events = bench.control.resource_events(query(Some(u64::MAX)));
    assert_eq!(next(&mut events).await.0, "begin");
    // A version from before the master began to look.
    let mut events = bench.control.resource_events(query(Some(0)));
    assert_eq!(next(&mut events).await.0, "begin");
    scope.stop(SOON).await;
}

#[tokio::test]
async fn a_watch_tells_only_names_that_the_reader_may_see() {
    let (bench, scope) = followed().await;
    for name in ["other/a", "team/a"] {
        bench.add(name).await.unwrap();
    }
    let grants = Grants {
        roles: [Role::Viewer].into(),
        namespaces: ["team".parse().unwrap()].into(),
    };
    let team = WatchQuery {
        grants,
        ..WatchQuery::default()
    };
    let prefixed = WatchQuery {
        name_prefix: "team/".to_owned(),
        ..query(None)
    };
    let mut streams = [team, prefixed].map(|query| bench.control.resource_events(query));
    for events in &mut streams {
        until(events, "complete").await;
    }
    bench.add("other/b").await.unwrap();
    bench.delete("other/a").await.unwrap();
    bench.add("team/b").await.unwrap();
    for events in &mut streams {
        loop {
            let (words, _) = next(events).await;
            assert!(!words.contains("other"), "{words}");
            if words == "added team/b" {
                break;
            }
        }
    }
    scope.stop(SOON).await;
}
