//! Tests of the versions of items.

use super::*;
use crawler_model::changes::{Change, ToldChange};

/// All versions, in their order.
const VERSIONS: &str = "SELECT _natural_key, CAST(price AS TEXT), CAST(_run AS TEXT), substr(_valid_from, -4), substr(_valid_to, -4) FROM books_thing_history ORDER BY _version";

fn bench() -> Bench {
    let mut bench = Bench::new();
    bench.settings.history = true;
    bench
}

/// Returns an item that was fetched at `at`, as its run tells it.
fn told(run: u64, number: u64, at: u64, change: Change, isbn: &str, price: &str) -> ItemRecord {
    let json = format!(r#"{{"title":"{isbn}","price":{price}}}"#);
    ItemRecord {
        change: Some(Box::new(ToldChange {
            change,
            number,
            key: isbn.to_owned(),
            fields: Vec::new(),
            old: String::new(),
        })),
        ..record(&format!("item-{run}-{at}"), run, at, &json)
    }
}

/// Returns the items of two runs, and what is removed at the end of the second.
fn two_runs() -> [ItemRecord; 5] {
    [
        told(1, 0, 10, Change::Added, "a", "1"),
        told(1, 1, 11, Change::Added, "b", "5"),
        told(2, 0, 20, Change::Changed, "a", "2"),
        // It is as it was.
        record("item-2-21", 2, 21, r#"{"title":"b","price":5}"#),
        told(2, 1, 30, Change::Removed, "b", "5"),
    ]
}

const OF_TWO_RUNS: [&str; 3] = [
    "a|1.0|1|010Z|020Z",
    "b|5.0|1|011Z|030Z",
    "a|2.0|2|020Z|NULL",
];

#[tokio::test]
async fn each_version_of_an_item_has_a_row() {
    let bench = bench();
    let mut sink = bench.sink(BOOK);
    for item in two_runs() {
        write(&mut sink, &[item]).await;
    }
    assert_eq!(bench.ask(VERSIONS).await, OF_TWO_RUNS);
    // The removed item is no row of its own, and takes none away.
    let items = "SELECT title, CAST(_run AS TEXT) FROM books_thing ORDER BY _run, _at";
    assert_eq!(bench.ask(items).await, ["a|1", "b|1", "a|2", "b|2"]);
    let joined = "SELECT h._natural_key FROM books_thing_history h JOIN books_thing i ON i._item = h._item WHERE h._valid_to IS NULL";
    assert_eq!(bench.ask(joined).await, ["a"]);
    let keys = "SELECT COUNT(DISTINCT _key) || '' FROM books_thing_history";
    assert_eq!(bench.ask(keys).await, ["2"]);
}

#[tokio::test]
async fn items_that_come_again_leave_the_history_as_it_is() {
    let items = two_runs();
    for (first, second) in [
        (0..5, 0..5),
        (0..3, 0..5),
        (0..5, 1..3),
        (0..5, 4..5),
        (0..4, 2..5),
    ] {
        let bench = bench();
        for part in [first.clone(), second.clone(), 0..5, first.clone()] {
            // Each owner has a sink of its own.
            write(&mut bench.sink(BOOK), &items[part]).await;
        }
        assert_eq!(
            bench.ask(VERSIONS).await,
            OF_TWO_RUNS,
            "{first:?} {second:?}"
        );
    }
}

#[tokio::test]
async fn versions_of_one_write_follow_each_other() {
    let bench = bench();
    let items = [
        told(1, 0, 10, Change::Added, "a", "1"),
        told(1, 1, 20, Change::Changed, "a", "2"),
        told(1, 2, 30, Change::Removed, "a", "2"),
        told(2, 0, 40, Change::Added, "a", "3"),
        told(2, 1, 50, Change::Changed, "a", "4"),
    ];
    write(&mut bench.sink(BOOK), &items).await;
    let expected = [
        "a|1.0|1|010Z|020Z",
        "a|2.0|1|020Z|030Z",
        "a|3.0|2|040Z|050Z",
        "a|4.0|2|050Z|NULL",
    ];
    assert_eq!(bench.ask(VERSIONS).await, expected);
}

#[tokio::test]
async fn the_versions_of_many_items_end_in_one_write() {
    let bench = bench();
    let items = |run: u64, change: Change| {
        let item = |n: u64| {
            let (isbn, price) = (format!("{n:03}"), run.to_string());
            told(run, n, 1_000 * run + n, change, &isbn, &price)
        };
        (0..200).map(item).collect::<Vec<ItemRecord>>()
    };
    write(&mut bench.sink(BOOK), &items(1, Change::Added)).await;
    write(&mut bench.sink(BOOK), &items(2, Change::Changed)).await;
    let ended =
        "SELECT COUNT(*) || '' FROM books_thing_history WHERE _valid_to LIKE '%:02.%' AND _run = 1";
    assert_eq!(bench.ask(ended).await, ["200"]);
    write(&mut bench.sink(BOOK), &items(3, Change::Removed)).await;
    let valid = "SELECT COUNT(*) || '' FROM books_thing_history WHERE _valid_to IS NULL";
    assert_eq!(bench.ask(valid).await, ["0"]);
}

#[tokio::test]
async fn a_version_that_does_not_fit_ends_none() {
    let bench = bench();
    let mut sink = bench.sink(BOOK);
    let items = [
        told(1, 0, 10, Change::Added, "a", "1"),
        told(2, 0, 20, Change::Changed, "a", "\"free\""),
        told(2, 1, 21, Change::Added, "b", "2"),
    ];
    write_rejecting(1, &mut sink, &items).await;
    let expected = ["a|1.0|1|010Z|NULL", "b|2.0|2|021Z|NULL"];
    assert_eq!(bench.ask(VERSIONS).await, expected);
    let rejects = bench.ask("SELECT _item FROM crawler_rejects").await;
    assert_eq!(rejects, ["item-2-20"]);
}

#[tokio::test]
async fn the_history_follows_the_schema() {
    let bench = bench();
    let first = told(1, 0, 10, Change::Added, "a", "1");
    let title = r#"{"properties":{"title":{"type":"string"}}}"#;
    write(&mut bench.sink(title), std::slice::from_ref(&first)).await;
    let second = told(2, 0, 20, Change::Changed, "a", "2");
    write(&mut bench.sink(BOOK), &[second]).await;
    let all = "SELECT COALESCE(_rest, ''), COALESCE(CAST(price AS TEXT), '') FROM books_thing_history ORDER BY _version";
    assert_eq!(bench.ask(all).await, [r#"{"price":1}|"#, "|2.0"]);
}

#[tokio::test]
async fn items_without_changes_have_no_history() {
    let bench = bench();
    write(&mut bench.sink(BOOK), &[book(1, "a"), book(2, "b")]).await;
    assert_eq!(bench.ask(VERSIONS).await, [""; 0]);
    assert_eq!(
        bench
            .ask("SELECT title FROM books_thing ORDER BY _key")
            .await,
        ["a", "b"]
    );
}

#[tokio::test]
async fn items_and_versions_never_share_a_table() {
    let bench = bench();
    let mut sink = bench.sink(BOOK);
    let other = ItemRecord {
        schema: "thing_history".to_owned(),
        ..book(1, "a")
    };
    let written = sink.write(0, &[other]).await;
    let why = "table books_thing_history would have items and versions, because there are the kinds \"thing\" and \"thing_history\"";
    let error = written.unwrap_err();
    let text = telemetry::chain(&error);
    assert!(text.contains(why), "{text}");
}
