//! Tests of changes on their way to sinks: with the items that have changed, and as removed items behind them.

use tokio_util::sync::CancellationToken;

use super::changes::{NOW, book, crawl_books, open_for, told};
use super::quarantine::{numbers, why};
use super::*;
use crate::durable::removals::MAX_REMOVED;
use crate::records::{FORMAT, FORMAT_WITH_REMOVALS, FORMAT_WITH_SINKS};
use crate::{ItemOutbox as _, Judgement, Quarantine as _};
use crawler_model::crawl::ItemRecord;
use crawler_model::drift::{Action, Decision};

fn feed() -> SinkName {
    "feed".parse().unwrap()
}

/// Opens a frontier that has a sink beside the one in the data root.
async fn open_with_feed(objects: &Arc<InMemory>, run: u64) -> Arc<DurableFrontier> {
    let sinks = SinkNames::of([SinkName::lines(), feed()]);
    open_for(objects, run, 9, settings(), sinks).await
}

/// Tells what the run has not seen, and returns all that waits for a sink.
async fn ended(durable: &DurableFrontier, sink: &SinkName) -> Vec<ItemRecord> {
    let is_told = durable.tell_removed(&CancellationToken::new()).await;
    assert_eq!(is_told, Ok(true));
    durable.outbox(sink, 1_000).await.unwrap().items
}

/// Returns what has changed of items, as lines.
fn lines(items: &[ItemRecord]) -> Vec<String> {
    let line = |item: &ItemRecord| match item.change.as_deref() {
        Some(told) => {
            let (run, old, json) = (item.run.0, &told.old, item.item.get());
            let place = format!("{run}.{}", told.number);
            format!("{place} {} {} {old} {json}", told.change, told.key)
        }
        None => format!("as before {}", item.item.get()),
    };
    items.iter().map(line).collect()
}

#[tokio::test]
async fn sinks_get_what_has_changed_and_what_is_gone() {
    let objects = Arc::new(InMemory::new());
    let first: &[(&str, &[&str])] = &[
        ("1", &[r#"{"isbn":"a","n":1}"#]),
        ("2", &[r#"{"isbn":"b"}"#, r#"{"isbn":"c"}"#]),
    ];
    let durable = open_with_feed(&objects, 1).await;
    crawl_books(&durable, first).await;
    let items = ended(&durable, &feed()).await;
    assert_eq!(durable.inner.state().head.format, FORMAT_WITH_SINKS);
    durable.close().await.unwrap();
    let second: &[&str] = &[r#"{"isbn":"b"}"#, r#"{"isbn":"a","n":2}"#];
    let durable = open_with_feed(&objects, 2).await;
    crawl_books(&durable, &[("2", second)]).await;
    let all = ended(&durable, &feed()).await;
    assert_eq!(lines(&all[..3]), lines(&items), "they still wait");
    let expected = [
        r#"1.0 added a  {"isbn":"a","n":1}"#,
        r#"1.1 added b  {"isbn":"b"}"#,
        r#"1.2 added c  {"isbn":"c"}"#,
        r#"as before {"isbn":"b"}"#,
        r#"2.0 changed a {"n":1} {"isbn":"a","n":2}"#,
        r#"2.1 removed c  {"isbn":"c"}"#,
    ];
    assert_eq!(lines(&all), expected);
    let removed = &all[5];
    assert!(removed.is_removal() && removed.fetched_at >= all[4].fetched_at);
    assert_eq!((&*removed.schema, &removed.url), ("book", &all[2].url));
    // A program that knows no removed items would deliver this one.
    assert_eq!(durable.inner.state().head.format, FORMAT_WITH_REMOVALS);
    durable.close().await.unwrap();
    // What is stored is what was in memory.
    let again = open_with_feed(&objects, 2).await;
    assert_eq!(lines(&ended(&again, &feed()).await), expected);
}

/// Ends the next page, with books for the outbox and others that wait for a verdict.
async fn end_page(durable: &Arc<DurableFrontier>, books: &[&str], waiting: &[&str]) {
    let frontier: Arc<dyn Frontier> = durable.clone();
    let mut commit = parsed(ready(next(&frontier, NOW).await));
    let run = durable.inner.run;
    let item = |json: &&str| ItemRecord {
        run,
        ..book(&commit.claim, json)
    };
    let items = books.iter().map(item).collect();
    let watched = waiting.iter().map(item).collect();
    (commit.result.items, commit.result.watched) = (items, watched);
    frontier.commit(commit).await.unwrap();
    frontier.settle().await.unwrap();
}

/// An item of the run before is among them, and a process ends before the verdict and before the decision.
#[tokio::test]
async fn items_that_waited_are_told_with_their_own_changes() {
    let objects = Arc::new(InMemory::new());
    let durable = open_with_feed(&objects, 1).await;
    durable.seed(urls(&["1", "2"])).await.unwrap();
    let first = [
        r#"{"isbn":"a","n":1}"#,
        r#"{"isbn":"b"}"#,
        r#"{"isbn":"c"}"#,
    ];
    end_page(&durable, &first, &[]).await;
    end_page(&durable, &[], &[r#"{"isbn":"z"}"#]).await;
    durable.close().await.unwrap();
    let durable = open_with_feed(&objects, 2).await;
    durable.seed(urls(&["1"])).await.unwrap();
    let second = [
        r#"{"isbn":"a","n":2}"#,
        r#"{"isbn":"b"}"#,
        r#"{"isbn":"d"}"#,
    ];
    end_page(&durable, &[], &second).await;
    let totals = durable.change_totals().unwrap();
    assert_eq!((totals.added, totals.changed), (0, 0), "they wait");
    let durable = open_with_feed(&objects, 2).await;
    let numbers = numbers(&durable);
    assert_eq!(numbers, [0, 1, 2, 3]);
    for (numbers, hold) in [(&numbers[..3], None), (&numbers[3..], Some(why()))] {
        let numbers = numbers.to_vec();
        durable.judge(Judgement { numbers, hold }).await.unwrap();
    }
    durable.settle().await.unwrap();
    let durable = open_with_feed(&objects, 2).await;
    let release = Decision::of(Action::Release, &durable.holds());
    assert_eq!(durable.decide(&release).await.unwrap(), 1);
    let expected = [
        r#"1.0 added a  {"isbn":"a","n":1}"#,
        r#"1.1 added b  {"isbn":"b"}"#,
        r#"1.2 added c  {"isbn":"c"}"#,
        r#"as before {"isbn":"z"}"#,
        r#"2.0 changed a {"n":1} {"isbn":"a","n":2}"#,
        r#"as before {"isbn":"b"}"#,
        r#"2.1 added d  {"isbn":"d"}"#,
        r#"2.2 removed c  {"isbn":"c"}"#,
    ];
    assert_eq!(lines(&ended(&durable, &feed()).await), expected);
    durable.close().await.unwrap();
    // What is stored is what was in memory, and the list has the same numbers.
    let again = open_with_feed(&objects, 2).await;
    assert_eq!(lines(&ended(&again, &feed()).await), expected);
    again.close().await.unwrap();
    let (listed, totals) = told(&objects, 2).await.unwrap();
    let listed: Vec<&str> = listed.iter().map(|change| change.key.as_str()).collect();
    assert_eq!(listed, ["a", "d", "c"]);
    assert_eq!((totals.unchanged, totals.is_torn), (1, false));
}

#[tokio::test]
async fn the_sink_in_the_data_root_alone_needs_no_changes() {
    let objects = Arc::new(InMemory::new());
    for (run, books) in [(1, &[r#"{"isbn":"a"}"#][..]), (2, &[][..])] {
        let sinks = SinkNames::default();
        let durable = open_for(&objects, run, 9, settings(), sinks).await;
        crawl_books(&durable, &[("1", books)]).await;
        let items = ended(&durable, &SinkName::lines()).await;
        assert_eq!(lines(&items), [r#"as before {"isbn":"a"}"#]);
        assert_eq!(durable.inner.state().head.format, FORMAT);
        durable.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_crash_among_removed_items_puts_each_into_the_outbox_once() {
    let objects = Arc::new(InMemory::new());
    let books: Vec<String> = (0..40).map(|n| format!(r#"{{"isbn":"{n:02}"}}"#)).collect();
    let books: Vec<&str> = books.iter().map(String::as_str).collect();
    let durable = open_with_feed(&objects, 1).await;
    crawl_books(&durable, &[("1", &books)]).await;
    ended(&durable, &feed()).await;
    durable.close().await.unwrap();
    let mut durable = open_with_feed(&objects, 2).await;
    crawl_books(&durable, &[("1", &books[..1])]).await;
    for _ in 0..3 {
        durable.inner.tell_some_removed(7).await.unwrap();
        // The next process has the last piece, or has it not.
        durable = open_with_feed(&objects, 2).await;
    }
    let items = ended(&durable, &feed()).await;
    let removed: Vec<(u64, &str)> = items
        .iter()
        .filter(|item| item.is_removal())
        .filter_map(|item| item.change.as_deref())
        .map(|told| (told.number, told.key.as_str()))
        .collect();
    durable.close().await.unwrap();
    let (listed, _) = told(&objects, 2).await.unwrap();
    let listed = (0..).zip(listed.iter().map(|change| change.key.as_str()));
    assert_eq!(removed, listed.collect::<Vec<(u64, &str)>>());
    assert_eq!(removed.len(), 39);
}

/// Delivers all that waits for the sinks, and returns how much it was.
async fn clear(durable: &DurableFrontier, sinks: &SinkNames) -> usize {
    let mut n_items = 0;
    for sink in sinks.iter() {
        let batch = durable.outbox(sink, 1_000).await.unwrap();
        n_items = batch.items.len();
        durable.clear_outbox(sink, batch.end, None).await.unwrap();
    }
    n_items
}

#[tokio::test]
async fn removed_items_wait_for_room_in_the_outbox() {
    const N_BOOKS: usize = 200;
    const MAX_ITEMS: usize = 10;
    let objects = Arc::new(InMemory::new());
    let small = || DurableSettings {
        max_outbox_items: MAX_ITEMS,
        ..settings()
    };
    let sinks = SinkNames::of([SinkName::lines(), feed()]);
    let books = (0..N_BOOKS).map(|n| format!(r#"{{"isbn":"{n}"}}"#));
    let books: Vec<String> = books.collect();
    let books: Vec<&str> = books.iter().map(String::as_str).collect();
    let durable = open_for(&objects, 1, 9, small(), sinks.clone()).await;
    crawl_books(&durable, &[("1", &books)]).await;
    durable.settle().await.unwrap();
    assert_eq!(clear(&durable, &sinks).await, N_BOOKS);
    durable.close().await.unwrap();
    let durable = open_for(&objects, 2, 9, small(), sinks.clone()).await;
    crawl_books(&durable, &[("1", &[])]).await;
    // Without room, a stop ends the call.
    let stop = CancellationToken::new();
    let stopped = async {
        while durable.n_undelivered() == 0 {
            durable.outbox_changed().await;
        }
        stop.cancel();
    };
    let (is_told, ()) = tokio::join!(durable.tell_removed(&stop), stopped);
    assert_eq!(is_told, Ok(false));
    let stop = CancellationToken::new();
    let deliver = async {
        let mut n_removed = 0;
        loop {
            let n_waiting = durable.n_undelivered() as usize;
            assert!(n_waiting < MAX_ITEMS + MAX_REMOVED, "{n_waiting}");
            n_removed += clear(&durable, &sinks).await;
            if n_removed == N_BOOKS {
                return;
            }
            durable.outbox_changed().await;
        }
    };
    let both = async { tokio::join!(durable.tell_removed(&stop), deliver) };
    let in_time = tokio::time::timeout(Duration::from_secs(60), both).await;
    assert_eq!(in_time.expect("all are told").0, Ok(true));
    durable.close().await.unwrap();
}
