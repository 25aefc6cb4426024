//! Tests of the watch of resources.

use std::time::Duration;

use futures::stream::{BoxStream, StreamExt as _};

use super::*;
use crate::control::resource_watch::{ResourceChange, ResourceEvent, WatchQuery};
use crate::replica::Replica;
use crawler_process::task::TaskScope;

pub(super) const SOON: Duration = Duration::from_secs(30);

type Events = BoxStream<'static, Result<ResourceEvent, ControlError>>;

/// Creates a bench whose replica follows the store until the scope ends.
pub(super) async fn followed() -> (Bench, TaskScope) {
    let mut bench = bench().await;
    let (replica, feeder) = Replica::new(bench.catalog().clone(), Strategy::default());
    let scope = TaskScope::new();
    scope.spawn("replica", feeder.run(scope.stop_signal()));
    bench.control.parts.replica = replica;
    (bench, scope)
}

/// Waits until the replica has all that is written.
pub(super) async fn caught_up(bench: &Bench) {
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
    let mut passed = Vec::new();
    loop {
        let (found, version) = next(events).await;
        if found == words {
            return version;
        }
        // A heartbeat comes only after a long silence.
        assert!(found != "heartbeat", "no {words:?} after {passed:?}");
        passed.push(found);
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
    for (expected, known) in [("begin", Some(0)), ("added a", None), ("added b", None)] {
        let (words, version) = next(&mut events).await;
        assert_eq!((words.as_str(), version), (expected, known));
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
    let (mut bench, scope) = followed().await;
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
    let mut found = Vec::new();
    while found.last().is_none_or(|last| last != "complete") {
        let (words, _) = next(&mut events).await;
        found.push(words);
    }
    for expected in ["deleted b", "changed c Finished", "added d"] {
        assert!(found.iter().any(|words| words == expected), "{found:?}");
    }
    assert!(!found.iter().any(|words| words == "begin"), "{found:?}");
    // A master that reads all records anew does not know what was there in between.
    let (replica, feeder) = Replica::new(bench.catalog().clone(), Strategy::default());
    scope.spawn("other replica", feeder.run(scope.stop_signal()));
    bench.control.parts.replica = replica;
    let mut events = bench.control.resource_events(query(version));
    assert_eq!(next(&mut events).await.0, "begin");
    // A version that this cluster never had.
    let mut events = bench.control.resource_events(query(Some(u64::MAX)));
    assert_eq!(next(&mut events).await.0, "begin");
    // A version from before the master began to look.
    let mut events = bench.control.resource_events(query(Some(0)));
    assert_eq!(next(&mut events).await.0, "begin");
    scope.stop(SOON).await;
}

#[tokio::test(start_paused = true)]
async fn a_reader_goes_on_after_all_records_were_read_anew() {
    let (bench, scope) = followed().await;
    for name in ["a", "b"] {
        bench.add(name).await.unwrap();
    }
    caught_up(&bench).await;
    let mut events = bench.control.resource_events(query(None));
    let version = until(&mut events, "complete").await;
    drop(events);
    bench.delete("b").await.unwrap();
    caught_up(&bench).await;
    let mut replica = bench.control.parts.replica.clone();
    let n_changes = replica.after(None).await.n_changes;
    replica.doubt();
    let read_anew = replica.after(Some(n_changes));
    let read_anew = tokio::time::timeout(SOON, read_anew).await;
    read_anew.expect("all records are read anew");
    let mut events = bench.control.resource_events(query(version));
    for expected in ["deleted b", "complete"] {
        assert_eq!(next(&mut events).await.0, expected);
    }
    scope.stop(SOON).await;
}

#[tokio::test]
async fn a_record_that_a_later_version_has_written_is_no_deletion() {
    let (bench, scope) = followed().await;
    bench.add("a").await.unwrap();
    caught_up(&bench).await;
    let mut events = bench.control.resource_events(query(None));
    until(&mut events, "complete").await;
    let key = bench.catalog().keys().resource(&"a".parse().unwrap());
    bench.write(Txn::new().put(key, "from the future")).await;
    bench.add("b").await.unwrap();
    loop {
        let (words, _) = next(&mut events).await;
        assert!(words != "deleted a" && words != "heartbeat", "{words}");
        if words == "added b" {
            break;
        }
    }
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
            assert!(!words.contains("other") && words != "heartbeat", "{words}");
            if words == "added team/b" {
                break;
            }
        }
    }
    scope.stop(SOON).await;
}

#[tokio::test(start_paused = true)]
async fn a_master_that_has_lost_the_store_does_not_say_that_all_is_well() {
    let (bench, scope) = followed().await;
    bench.add("a").await.unwrap();
    caught_up(&bench).await;
    let mut events = bench.control.resource_events(query(None));
    until(&mut events, "complete").await;
    assert_eq!(next(&mut events).await.0, "heartbeat");
    bench.control.parts.replica.lose();
    let error = events.next().await.unwrap().unwrap_err();
    assert!(matches!(error, ControlError::NotFollowing), "{error}");
    let mut events = bench.control.resource_events(query(None));
    let error = events.next().await.unwrap().unwrap_err();
    assert!(matches!(error, ControlError::NotFollowing), "{error}");
    scope.stop(SOON).await;
}

#[tokio::test]
async fn many_changes_at_once_are_sent_with_the_version_at_their_end() {
    let (bench, scope) = followed().await;
    caught_up(&bench).await;
    let mut events = bench.control.resource_events(query(None));
    until(&mut events, "complete").await;
    let n_added = 250;
    for n in 0..n_added {
        bench.add(&format!("r{n:03}")).await.unwrap();
    }
    let mut names = std::collections::BTreeSet::new();
    let mut last = None;
    while names.len() < n_added {
        let (words, version) = next(&mut events).await;
        let (_, name) = words.split_once(" r").unwrap();
        names.insert(name.to_owned());
        last = version.or(last);
    }
    assert!(last.is_some(), "no version among so many events");
    scope.stop(SOON).await;
}
