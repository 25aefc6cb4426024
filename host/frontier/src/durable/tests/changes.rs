//! Tests of items that are compared from run to run.

use std::collections::BTreeMap;

use futures::future::join_all;
use prost::Message as _;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::value::RawValue;
use slatedb::WriteBatch;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::ItemComparison;
use crate::durable::removals::MAX_REMOVED;
use crate::reader::FrontierReader;
use crawler_model::changes::{Change, ChangeTotals, ItemChange, ItemKeys};
use crawler_model::crawl::ItemRecord;
use crawler_model::plugin::Schema;

pub(super) const NOW: UnixMillis = 1_000_000;

/// Opens a frontier that compares the books of a run by their numbers, if `n_runs` is not 0.
async fn open_comparing(objects: &Arc<InMemory>, run: u64, n_runs: u32) -> Arc<DurableFrontier> {
    open_flushing(objects, run, n_runs, settings()).await
}

async fn open_flushing(
    objects: &Arc<InMemory>,
    run: u64,
    n_runs: u32,
    settings: DurableSettings,
) -> Arc<DurableFrontier> {
    let sinks = SinkNames::default();
    open_for(objects, run, n_runs, settings, sinks).await
}

pub(super) async fn open_for(
    objects: &Arc<InMemory>,
    run: u64,
    n_runs: u32,
    settings: DurableSettings,
    sinks: SinkNames,
) -> Arc<DurableFrontier> {
    let book = Schema {
        name: "book".into(),
        json_schema: r#"{"x-key": "isbn"}"#.into(),
    };
    let frontiers = frontiers_in(objects, settings);
    let open_options = OpenOptions {
        changes: ItemComparison {
            n_runs,
            keys: ItemKeys::of(&[book]),
        },
        sinks,
        ..open_options(&frontiers, run).await
    };
    Arc::new(frontiers.open(open_options).await.unwrap())
}

pub(super) fn book(claim: &Claim, json: &str) -> ItemRecord {
    ItemRecord {
        schema: "book".into(),
        item: RawValue::from_string(json.into()).unwrap(),
        ..item_of(claim, 0)
    }
}

/// Crawls what is left of a run whose pages have these books.
pub(super) async fn crawl_books(durable: &Arc<DurableFrontier>, pages: &[(&str, &[&str])]) {
    let frontier: Arc<dyn Frontier> = durable.clone();
    let paths: Vec<&str> = pages.iter().map(|(path, _)| *path).collect();
    frontier.seed(urls(&paths)).await.unwrap();
    loop {
        let claim = match next(&frontier, NOW).await {
            Take::Ready(claim) => claim,
            Take::Empty => break,
            other @ (Take::WaitUntil(_) | Take::Blocked) => panic!("{other:?}"),
        };
        let path = claim.request.url.path().trim_start_matches('/');
        let page = pages.iter().find(|(page, _)| *page == path);
        let (_, books) = page.expect("a page of the run");
        let mut commit = parsed(claim);
        let run = durable.inner.run;
        let items = books.iter().map(|json| ItemRecord {
            run,
            ..book(&commit.claim, json)
        });
        commit.result.items = items.collect();
        frontier.commit(commit).await.unwrap();
    }
}

/// Crawls a whole run, which has seen all that there is.
async fn crawl_run(objects: &Arc<InMemory>, run: u64, n_runs: u32, pages: &[(&str, &[&str])]) {
    let durable = open_comparing(objects, run, n_runs).await;
    crawl_books(&durable, pages).await;
    let is_told = durable.tell_removed(&CancellationToken::new()).await;
    assert_eq!(is_told, Ok(true));
    durable.close().await.unwrap();
}

/// Returns the changes of a run, read in small pages, and its totals. Returns `None` if nothing is kept of them.
pub(super) async fn told(
    objects: &Arc<InMemory>,
    run: u64,
) -> Option<(Vec<ItemChange>, ChangeTotals)> {
    let reader = FrontierReader::open(objects.clone(), shard()).await;
    let reader = reader.unwrap().expect("there is a frontier");
    let (mut changes, mut from) = (Vec::new(), 0);
    loop {
        let page = reader.changes(Run(run), from, 7, 1 << 20).await.unwrap()?;
        changes.extend(page.changes);
        match page.next {
            Some(next) => from = next,
            None => {
                reader.close().await;
                return Some((changes, page.totals));
            }
        }
    }
}

/// Returns the changes of a run as lines, sorted: several pages may end in any order.
async fn lines(objects: &Arc<InMemory>, run: u64) -> Vec<String> {
    let (changes, _) = told(objects, run).await.expect("items were compared");
    let line = |change: ItemChange| {
        let fields = change.fields.join(",");
        format!("{} {} {fields} {}", change.change, change.key, change.old)
    };
    let mut lines: Vec<String> = changes.into_iter().map(line).collect();
    lines.sort();
    lines
}

/// Waits until the sweep of the run is done.
async fn swept(durable: &DurableFrontier, run: u64) {
    let swept = async {
        while durable.inner.state().head.swept_before < run {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(30), swept).await;
    in_time.expect("the sweep ends");
}

#[tokio::test]
async fn each_run_tells_what_differs_from_the_one_before() {
    let objects = Arc::new(InMemory::new());
    let first: &[(&str, &[&str])] = &[
        ("1", &[r#"{"isbn": "a", "price": 1}"#]),
        ("2", &[r#"{"isbn": "b", "price": 2}"#, r#"{"isbn": "c"}"#]),
    ];
    crawl_run(&objects, 1, 9, first).await;
    assert_eq!(
        lines(&objects, 1).await,
        ["added a  ", "added b  ", "added c  "]
    );
    // The book `b` has moved to another page, and `a` is written otherwise.
    let second: &[(&str, &[&str])] = &[
        (
            "1",
            &[
                r#"{"price": 1.0, "isbn": "a"}"#,
                r#"{"isbn": "b", "price": 3}"#,
            ],
        ),
        ("3", &[r#"{"isbn": "d"}"#]),
    ];
    crawl_run(&objects, 2, 9, second).await;
    let expected = [
        "added d  ",
        r#"changed b price {"price":2}"#,
        r#"removed c  {"isbn": "c"}"#,
    ];
    assert_eq!(lines(&objects, 2).await, expected);
    let (_, totals) = told(&objects, 2).await.unwrap();
    let expected = ChangeTotals {
        added: 1,
        changed: 1,
        unchanged: 1,
        removed: 1,
        is_complete: true,
        ..ChangeTotals::default()
    };
    assert_eq!(totals, expected);
    // What was removed is new when it comes back, and the changes of earlier runs stay.
    crawl_run(&objects, 3, 9, first).await;
    let third = lines(&objects, 3).await;
    assert!(third.contains(&"added c  ".to_owned()), "{third:?}");
    assert_eq!(lines(&objects, 1).await.len(), 3);
}

#[tokio::test]
async fn nothing_is_removed_by_a_run_that_has_not_seen_all() {
    let objects = Arc::new(InMemory::new());
    crawl_run(
        &objects,
        1,
        9,
        &[("1", &[r#"{"isbn": "a"}"#]), ("2", &[r#"{"isbn": "b"}"#])],
    )
    .await;
    // The second run is restarted before it is complete.
    let durable = open_comparing(&objects, 2, 9).await;
    crawl_books(&durable, &[("1", &[r#"{"isbn": "a"}"#])]).await;
    durable.close().await.unwrap();
    assert!(lines(&objects, 2).await.is_empty());
    crawl_run(&objects, 3, 9, &[("2", &[r#"{"isbn": "b"}"#])]).await;
    assert_eq!(lines(&objects, 3).await, [r#"removed a  {"isbn": "a"}"#]);
}

#[tokio::test]
async fn a_page_that_a_crash_undoes_is_compared_with_what_was_before() {
    let objects = Arc::new(InMemory::new());
    crawl_run(&objects, 1, 9, &[("1", &[r#"{"isbn": "a", "n": 1}"#])]).await;
    let never = DurableSettings {
        flush_interval: Duration::from_secs(3_600),
        ..settings()
    };
    let durable = open_flushing(&objects, 2, 9, never).await;
    let frontier: Arc<dyn Frontier> = durable.clone();
    frontier.seed(urls(&["1"])).await.unwrap();
    let mut commit = parsed(ready(next(&frontier, NOW).await));
    commit.result.items = vec![book(&commit.claim, r#"{"isbn": "a", "n": 2}"#)];
    frontier.commit(commit).await.unwrap();
    assert_eq!(durable.change_totals().unwrap().changed, 1);
    let again = open_comparing(&objects, 2, 9).await;
    assert_eq!(again.change_totals().unwrap().changed, 0);
    crawl_books(&again, &[("1", &[r#"{"isbn": "a", "n": 3}"#])]).await;
    again.close().await.unwrap();
    assert_eq!(lines(&objects, 2).await, [r#"changed a n {"n":1}"#]);
}

#[tokio::test]
async fn an_item_that_comes_twice_is_compared_with_itself() {
    let objects = Arc::new(InMemory::new());
    let durable = open_comparing(&objects, 1, 9).await;
    let frontier: Arc<dyn Frontier> = durable.clone();
    frontier.seed(urls(&["1", "2", "3"])).await.unwrap();
    let mut commits = Vec::new();
    for n in [1, 1, 2] {
        let mut commit = parsed(ready(frontier.take(NOW, 9).unwrap()));
        let json = format!(r#"{{"isbn": "a", "n": {n}}}"#);
        commit.result.items = vec![book(&commit.claim, &json)];
        commits.push(frontier.commit(commit));
    }
    // They are polled in turn, so that they share a batch.
    for committed in join_all(commits).await {
        committed.unwrap();
    }
    let totals = durable.change_totals().unwrap();
    let found = (
        totals.added,
        totals.changed,
        totals.unchanged,
        totals.repeated,
    );
    assert_eq!(found, (1, 1, 0, 2));
    durable.close().await.unwrap();
    let expected = ["added a  ", r#"changed a n {"n":1}"#];
    assert_eq!(lines(&objects, 1).await, expected);
}

#[tokio::test]
async fn an_item_is_known_by_the_page_that_redirects_led_to() {
    let objects = Arc::new(InMemory::new());
    // The link to the page itself comes first in the second run, so that the other one is a duplicate.
    for (run, path) in [(1, "1"), (2, "1-name")] {
        let durable = open_comparing(&objects, run, 9).await;
        let frontier: Arc<dyn Frontier> = durable.clone();
        frontier.seed(urls(&[path])).await.unwrap();
        let mut commit = parsed(ready(next(&frontier, NOW).await));
        commit.result.items = vec![book(&commit.claim, r#"{"n": 1}"#)];
        if path == "1" {
            commit.result.final_url = Some(urls(&["1-name"])[0].request.clone());
        }
        frontier.commit(commit).await.unwrap();
        let is_told = durable.tell_removed(&CancellationToken::new()).await;
        assert_eq!(is_told, Ok(true));
        durable.close().await.unwrap();
    }
    assert_eq!(lines(&objects, 1).await, ["added http://a/1-name  "]);
    assert!(lines(&objects, 2).await.is_empty());
}

#[tokio::test]
async fn a_crash_among_the_removed_items_leaves_none_out() {
    let objects = Arc::new(InMemory::new());
    let books: Vec<String> = (0..40)
        .map(|n| format!(r#"{{"isbn": "{n:02}"}}"#))
        .collect();
    let books: Vec<&str> = books.iter().map(String::as_str).collect();
    crawl_run(&objects, 1, 9, &[("1", &books)]).await;
    let durable = open_comparing(&objects, 2, 9).await;
    crawl_books(&durable, &[("1", &books[..1])]).await;
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    assert_eq!(durable.tell_removed(&cancelled).await, Ok(false));
    let mut durable = durable;
    for _ in 0..3 {
        durable.inner.tell_some_removed(7).await.unwrap();
        // The next process has the last piece, or has it not.
        durable = open_comparing(&objects, 2, 9).await;
    }
    assert!(!durable.change_totals().unwrap().is_complete);
    let is_told = durable.tell_removed(&CancellationToken::new()).await;
    assert_eq!(is_told, Ok(true));
    durable.close().await.unwrap();
    let lines = lines(&objects, 2).await;
    let expected = (1..40).map(|n| format!(r#"removed {n:02}  {{"isbn": "{n:02}"}}"#));
    assert_eq!(lines, expected.collect::<Vec<_>>());
}

#[tokio::test]
async fn a_piece_has_few_removed_items() {
    let objects = Arc::new(InMemory::new());
    let books = (0..=MAX_REMOVED).map(|n| format!(r#"{{"isbn": "{n}"}}"#));
    let books: Vec<String> = books.collect();
    let books: Vec<&str> = books.iter().map(String::as_str).collect();
    crawl_run(&objects, 1, 9, &[("1", &books)]).await;
    let durable = open_comparing(&objects, 2, 9).await;
    for n_removed in [MAX_REMOVED, MAX_REMOVED + 1] {
        durable.inner.tell_some_removed(1_024).await.unwrap();
        let totals = durable.change_totals().unwrap();
        assert_eq!(totals.removed, n_removed as u64);
    }
    durable.close().await.unwrap();
}

#[tokio::test]
async fn a_run_that_is_not_compared_ends_what_is_known() {
    let objects = Arc::new(InMemory::new());
    let pages: &[(&str, &[&str])] = &[("1", &[r#"{"isbn": "a"}"#])];
    crawl_run(&objects, 1, 9, pages).await;
    let durable = open_comparing(&objects, 2, 0).await;
    crawl_books(&durable, pages).await;
    assert_eq!(durable.change_totals(), None);
    swept(&durable, 2).await;
    for prefix in [
        crate::keys::KNOWN,
        crate::keys::KNOWN_ITEMS,
        crate::keys::CHANGES,
    ] {
        let mut found = durable.inner.scan_prefix(prefix).await.unwrap();
        assert_eq!(found.next().await.unwrap(), None);
    }
    durable.close().await.unwrap();
    assert!(told(&objects, 1).await.is_none() && told(&objects, 2).await.is_none());
    crawl_run(&objects, 3, 9, pages).await;
    assert_eq!(lines(&objects, 3).await, ["added a  "]);
}

#[tokio::test]
async fn a_run_is_compared_as_a_whole_or_not_at_all() {
    let objects = Arc::new(InMemory::new());
    for (run, n_runs, is_compared) in [(1, 0, false), (1, 9, false), (2, 9, true), (2, 0, true)] {
        let durable = open_comparing(&objects, run, n_runs).await;
        let found = durable.change_totals().is_some();
        assert_eq!(found, is_compared, "run {run} with {n_runs}");
        durable.close().await.unwrap();
    }
}

#[tokio::test]
async fn changes_of_the_latest_runs_are_kept() {
    let objects = Arc::new(InMemory::new());
    for run in 1..=3 {
        let json = format!(r#"{{"isbn": "a", "n": {run}}}"#);
        crawl_run(&objects, run, 2, &[("1", &[json.as_str()])]).await;
    }
    let durable = open_comparing(&objects, 4, 2).await;
    swept(&durable, 4).await;
    durable.close().await.unwrap();
    assert!(told(&objects, 2).await.is_none());
    assert_eq!(lines(&objects, 3).await, [r#"changed a n {"n":2}"#]);
}

#[tokio::test]
async fn a_list_that_is_being_swept_is_not_read() {
    let objects = Arc::new(InMemory::new());
    let books: &[&str] = &[r#"{"isbn": "a"}"#, r#"{"isbn": "b"}"#, r#"{"isbn": "c"}"#];
    crawl_run(&objects, 1, 9, &[("1", books)]).await;
    let durable = open_comparing(&objects, 2, 9).await;
    // A reader may have found the totals before they were removed.
    let mut batch = WriteBatch::new();
    batch.delete(crate::keys::change(Run(1), 0));
    let guard = durable.inner.writer.lock().await;
    durable.inner.write(&guard, batch, 0).await.unwrap();
    drop(guard);
    durable.close().await.unwrap();
    assert!(told(&objects, 1).await.is_none());
    // Later readers do not find them.
    let compared = crate::records::Comparison {
        run: 9,
        generation: 1,
        n_runs: 2,
    };
    for comparison in [Some(compared), None] {
        let [first, ..] = crate::durable::changes::over(comparison);
        assert!(first.contains(&crate::keys::change_counts(Run(1))));
    }
}

/// A program of an earlier version knows nothing of the comparison, and may be the owner for a while.
#[tokio::test]
async fn items_that_were_stored_without_a_comparison_are_noticed() {
    let objects = Arc::new(InMemory::new());
    let durable = open_comparing(&objects, 1, 9).await;
    let frontier: Arc<dyn Frontier> = durable.clone();
    frontier.seed(urls(&["1", "2"])).await.unwrap();
    durable.inner.state().comparison = None;
    let mut commit = parsed(ready(next(&frontier, NOW).await));
    commit.result.items = vec![book(&commit.claim, r#"{"isbn": "a"}"#)];
    frontier.commit(commit).await.unwrap();
    frontier.settle().await.unwrap();
    for _ in 0..2 {
        let again = open_comparing(&objects, 1, 9).await;
        assert!(again.change_totals().unwrap().is_torn);
    }
    let next_run = open_comparing(&objects, 2, 9).await;
    assert!(!next_run.change_totals().unwrap().is_torn);
}

#[tokio::test]
async fn a_whole_run_without_a_comparison_ends_what_is_known() {
    let objects = Arc::new(InMemory::new());
    crawl_run(&objects, 1, 9, &[("1", &[r#"{"isbn": "a"}"#])]).await;
    let generation = |durable: &DurableFrontier| {
        let state = durable.inner.state();
        let comparison = state.comparison.as_ref().expect("items are compared");
        (comparison.record, comparison.record.generation)
    };
    let durable = open_comparing(&objects, 2, 9).await;
    let (second, kept) = generation(&durable);
    assert_eq!(kept, 1);
    durable.close().await.unwrap();
    // An earlier version opens run 3, and leaves the record as it is.
    let durable = open_comparing(&objects, 3, 0).await;
    let mut batch = WriteBatch::new();
    batch.put(crate::keys::COMPARISON, second.encode_to_vec());
    let guard = durable.inner.writer.lock().await;
    durable.inner.write(&guard, batch, 0).await.unwrap();
    drop(guard);
    durable.close().await.unwrap();
    let durable = open_comparing(&objects, 4, 9).await;
    let (_, begun) = generation(&durable);
    assert_eq!(begun, 4);
    durable.close().await.unwrap();
}

/// A shop as it is, and as it is known from the changes that were told: books by number, with page and price.
struct Shop {
    random: StdRng,
    books: BTreeMap<u32, (u32, u32)>,
    next: u32,
    table: BTreeMap<String, serde_json::Value>,
}

const N_PAGES: u32 = 30;

impl Shop {
    fn new(seed: u64) -> Self {
        Self {
            random: StdRng::seed_from_u64(seed),
            books: BTreeMap::new(),
            next: 0,
            table: BTreeMap::new(),
        }
    }

    /// Adds, changes, moves or removes a book.
    fn edit(&mut self) {
        let page = self.random.random_range(0..N_PAGES);
        let price = self.random.random_range(1..1_000);
        let n_books = self.books.len();
        let nth = self.random.random_range(0..n_books.max(1));
        let known = self.books.keys().nth(nth).copied();
        match (self.random.random_range(0..4), known) {
            (0, Some(book)) => {
                self.books.remove(&book);
            }
            (1, Some(book)) => {
                self.books.insert(book, (page, price));
            }
            (2, Some(book)) => {
                let (_, price) = self.books[&book];
                self.books.insert(book, (page, price));
            }
            _ => {
                self.books.insert(self.next, (page, price));
                self.next += 1;
            }
        }
    }

    fn value(&self, book: u32) -> serde_json::Value {
        let (_, price) = self.books[&book];
        serde_json::json!({"isbn": format!("{book}"), "price": price})
    }

    /// Returns the books of a page, each written in one of several forms that say the same. Some are on a second page
    /// too.
    fn written(&mut self, page: u32) -> Vec<String> {
        let on_page = self.books.iter().filter(|(book, (home, _))| {
            *home == page || (*book % 9 == 0 && (*home + 1) % N_PAGES == page)
        });
        let on_page: Vec<(u32, u32)> = on_page.map(|(book, (_, price))| (*book, *price)).collect();
        let random = &mut self.random;
        let write = |(book, price): (u32, u32)| match random.random_range(0..3) {
            0 => format!(r#"{{"isbn":"{book}","price":{price}}}"#),
            1 => format!(r#"{{ "price": {price}.0, "isbn": "{book}" }}"#),
            _ => format!(r#"{{"price": {price}0e-1, "isbn": "{book}"}}"#),
        };
        on_page.into_iter().map(write).collect()
    }

    /// Applies a change to the table, which has to be as the change says that it was.
    fn apply(&mut self, change: &ItemChange) {
        let json = |text: &str| -> serde_json::Value { serde_json::from_str(text).unwrap() };
        let before = self.table.get(&change.key);
        match change.change {
            Change::Added => assert_eq!(before, None, "{change:?}"),
            Change::Changed => {
                let before = before.expect("it is known");
                let old = json(&change.old);
                assert_eq!(change.fields, ["price"], "{change:?}");
                assert_eq!(
                    old["price"].as_f64(),
                    before["price"].as_f64(),
                    "{change:?}"
                );
            }
            Change::Removed => {
                let before = before.expect("it is known");
                assert_eq!(
                    json(&change.old)["price"].as_f64(),
                    before["price"].as_f64()
                );
            }
        }
        match change.change {
            Change::Removed => {
                self.table.remove(&change.key);
            }
            Change::Added | Change::Changed => {
                self.table.insert(change.key.clone(), json(&change.item));
            }
        }
    }

    /// Checks that the table has all books, and nothing else.
    fn check(&self) {
        let prices = |value: &serde_json::Value| value["price"].as_f64();
        let table: BTreeMap<&str, Option<f64>> = self
            .table
            .iter()
            .map(|(key, value)| (key.as_str(), prices(value)))
            .collect();
        let keys: Vec<(String, Option<f64>)> = self
            .books
            .keys()
            .map(|book| (book.to_string(), prices(&self.value(*book))))
            .collect();
        let shop: BTreeMap<&str, Option<f64>> = keys
            .iter()
            .map(|(key, price)| (key.as_str(), *price))
            .collect();
        assert_eq!(table, shop);
    }

    /// Crawls the shop in one run, whose process ends again and again, and tells what is removed.
    async fn crawl(&mut self, objects: &Arc<InMemory>, run: u64) {
        let mut durable = open_comparing(objects, run, 9).await;
        loop {
            let frontier: Arc<dyn Frontier> = durable.clone();
            let pages: Vec<String> = (0..N_PAGES).map(|page| page.to_string()).collect();
            let pages: Vec<&str> = pages.iter().map(String::as_str).collect();
            frontier.seed(urls(&pages)).await.unwrap();
            if self.crawl_some(&frontier).await {
                break;
            }
            durable = open_comparing(objects, run, 9).await;
        }
        for _ in 0..self.random.random_range(0..4) {
            durable.inner.tell_some_removed(5).await.unwrap();
            durable = open_comparing(objects, run, 9).await;
        }
        let is_told = durable.tell_removed(&CancellationToken::new()).await;
        assert_eq!(is_told, Ok(true));
        durable.close().await.unwrap();
    }

    /// Crawls a few pages, several at once. Returns true if none are left.
    async fn crawl_some(&mut self, frontier: &Arc<dyn Frontier>) -> bool {
        for _ in 0..self.random.random_range(1..8) {
            let mut claim = match next(frontier, NOW).await {
                Take::Ready(claim) => Some(claim),
                Take::Empty => return true,
                other @ (Take::WaitUntil(_) | Take::Blocked) => panic!("{other:?}"),
            };
            let mut commits = Vec::new();
            while let Some(taken) = claim.take() {
                let page = taken.request.url.path().trim_start_matches('/');
                let books = self.written(page.parse().unwrap());
                let mut commit = parsed(taken);
                let items = books.iter().map(|json| book(&commit.claim, json));
                commit.result.items = items.collect();
                commits.push(frontier.commit(commit));
                if commits.len() < 3
                    && let Take::Ready(another) = frontier.take(NOW, 9).unwrap()
                {
                    claim = Some(another);
                }
            }
            for committed in join_all(commits).await {
                committed.unwrap();
            }
            if self.random.random_range(0..3) > 0 {
                frontier.settle().await.unwrap();
            }
        }
        false
    }
}

#[tokio::test]
async fn a_table_made_of_the_changes_is_the_shop_after_any_crash() {
    for seed in 0..3 {
        let objects = Arc::new(InMemory::new());
        let mut shop = Shop::new(seed);
        for run in 1..=5 {
            for _ in 0..200 {
                shop.edit();
            }
            shop.crawl(&objects, run).await;
            let (changes, totals) = told(&objects, run).await.unwrap();
            for change in &changes {
                shop.apply(change);
            }
            shop.check();
            let n_changes = totals.added + totals.changed + totals.removed;
            assert_eq!(n_changes, changes.len() as u64, "seed {seed}, run {run}");
            assert!(totals.is_complete && !totals.is_torn);
        }
    }
}
