//! Suite for the sinks of a frontier: each has a position of its own. Each case has the frontiers of two processes over
//! one object store, which is empty at first.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::fencing::{Two, open_options};
use super::{item_of, new, parsed, take};
use crate::{Claim, Frontier, FrontierError, OpenFrontier, OpenFrontiers, OpenOptions, Take};
use crawler_model::crawl::ItemKey;
use crawler_model::frontier::SinkMark;
use crawler_model::settings::{SinkName, SinkNames};

const DEADLINE: Duration = Duration::from_secs(20);

fn sink(name: &str) -> SinkName {
    name.parse().unwrap()
}

async fn open(frontiers: &Arc<dyn OpenFrontiers>, sinks: &[&str]) -> Arc<dyn OpenFrontier> {
    let open_options = OpenOptions {
        sinks: SinkNames::of(sinks.iter().map(|name| sink(name))),
        ..open_options(frontiers).await
    };
    frontiers.clone().open(open_options).await.unwrap()
}

/// Stores a hundred root requests.
async fn seed(frontier: &Arc<dyn OpenFrontier>) {
    let roots = (0..100).map(|n| new(&format!("http://a/{n}"))).collect();
    frontier.seed(roots).await.unwrap();
    frontier.settle().await.unwrap();
}

/// Ends the next page with some items, and returns their keys.
async fn commit(frontier: &Arc<dyn OpenFrontier>, n_items: u32) -> Vec<ItemKey> {
    let mut commit = parsed(claim(frontier).await);
    commit.result.items = (0..n_items).map(|n| item_of(&commit.claim, n)).collect();
    let items = commit.result.items.iter();
    let keys = items.map(|item| item.key.clone()).collect();
    frontier.commit(commit).await.unwrap();
    frontier.settle().await.unwrap();
    keys
}

/// Takes the next page, once URLs are read in.
async fn claim(frontier: &Arc<dyn OpenFrontier>) -> Box<Claim> {
    let frontier: Arc<dyn Frontier> = frontier.clone();
    loop {
        if let Take::Ready(claim) = take(&frontier, 1_000_000, 9).await {
            return claim;
        }
        let changed = tokio::time::timeout(DEADLINE, frontier.take_changed());
        changed.await.expect("a URL is read in");
    }
}

async fn keys_of(frontier: &Arc<dyn OpenFrontier>, name: &str) -> Vec<ItemKey> {
    let batch = frontier.outbox(&sink(name), 1_000).await.unwrap();
    batch.items.into_iter().map(|item| item.key).collect()
}

fn mark(key: &'static str, value: &'static str) -> SinkMark {
    SinkMark {
        key: key.into(),
        value: value.into(),
    }
}

pub async fn each_sink_has_a_position_of_its_own([first, second]: Two) {
    let (lines, db) = (SinkName::lines(), sink("db"));
    let frontier = open(&first, &["lines", "db"]).await;
    seed(&frontier).await;
    let keys = commit(&frontier, 5).await;
    let (of_lines, of_db) = (mark("file", "5"), mark("file", "2"));
    let cleared = frontier.clear_outbox(&lines, 5, Some(of_lines.clone()));
    cleared.await.unwrap();
    let cleared = frontier.clear_outbox(&db, 2, Some(of_db.clone()));
    cleared.await.unwrap();
    frontier.settle().await.unwrap();
    let waiting = frontier.undelivered(&lines);
    assert_eq!((waiting.n_items, waiting.n_bytes), (0, 0));
    assert_eq!(frontier.undelivered(&db).n_items, 3);
    assert_eq!(
        frontier.undelivered(&db).n_bytes,
        frontier.undelivered_bytes()
    );
    assert_eq!(frontier.n_undelivered(), 3);
    assert_eq!(frontier.sinks(), SinkNames::of([db.clone(), lines.clone()]));
    let again = open(&second, &["db", "lines"]).await;
    assert_eq!(keys_of(&again, "lines").await, []);
    assert_eq!(keys_of(&again, "db").await, keys[2..]);
    assert_eq!(again.marks(&lines).await.unwrap(), [of_lines]);
    assert_eq!(again.marks(&db).await.unwrap(), [of_db]);
    assert_eq!(again.undelivered(&db).n_items, 3);
    // The slower sink alone decides when an item goes.
    let more = commit(&again, 1).await;
    assert_eq!(keys_of(&again, "lines").await, more);
    again.clear_outbox(&db, 6, None).await.unwrap();
    assert_eq!(again.n_undelivered(), 1);
    again.clear_outbox(&lines, 6, None).await.unwrap();
    again.clear_outbox(&lines, 1, None).await.unwrap();
    assert_eq!((again.n_undelivered(), again.undelivered_bytes()), (0, 0));
}

pub async fn a_sink_that_is_added_gets_the_items_from_then_on([first, second]: Two) {
    let frontier = open(&first, &["lines"]).await;
    seed(&frontier).await;
    let before = commit(&frontier, 3).await;
    let again = open(&second, &["lines", "db"]).await;
    assert_eq!(keys_of(&again, "lines").await, before);
    assert_eq!(keys_of(&again, "db").await, []);
    let after = commit(&again, 2).await;
    assert_eq!(keys_of(&again, "db").await, after);
    assert_eq!(keys_of(&again, "lines").await, [before, after].concat());
}

pub async fn a_sink_that_is_gone_holds_nothing_back([first, second]: Two) {
    let frontier = open(&first, &["lines", "db"]).await;
    seed(&frontier).await;
    commit(&frontier, 3).await;
    frontier
        .clear_outbox(&SinkName::lines(), 3, None)
        .await
        .unwrap();
    let db = sink("db");
    let cleared = frontier.clear_outbox(&db, 1, Some(mark("file", "1")));
    cleared.await.unwrap();
    frontier.settle().await.unwrap();
    assert!(frontier.dropped().is_empty());
    let again = open(&second, &["lines"]).await;
    assert_eq!(again.dropped(), [(sink("db"), 2)]);
    assert_eq!((again.n_undelivered(), again.undelivered_bytes()), (0, 0));
    let error = again.outbox(&sink("db"), 9).await.unwrap_err();
    assert_eq!(error, FrontierError::NoSink { sink: sink("db") });
    let error = again.clear_outbox(&sink("db"), 9, None).await.unwrap_err();
    assert_eq!(error, FrontierError::NoSink { sink: sink("db") });
    let after = commit(&again, 1).await;
    assert_eq!(keys_of(&again, "lines").await, after);
    // It comes back with the marks of what it has, and behind the items of meanwhile.
    let back = open(&first, &["db", "lines"]).await;
    assert!(back.dropped().is_empty());
    assert_eq!(keys_of(&back, "db").await, []);
    assert_eq!(keys_of(&back, "lines").await, after);
    assert_eq!(back.marks(&sink("db")).await.unwrap(), [mark("file", "1")]);
    assert_eq!(back.marks(&SinkName::lines()).await.unwrap(), []);
}

/// Commits, delivers and crashes at random. A sink that has taken items may lose the answer: it gets them again, under
/// the same numbers.
pub async fn sinks_have_the_same_items_after_any_history(frontiers: Two, seed_of_history: u64) {
    const SINKS: [&str; 3] = ["lines", "db", "slow"];
    let mut rng = StdRng::seed_from_u64(seed_of_history);
    let mut taken: BTreeMap<&str, BTreeMap<u64, ItemKey>> =
        SINKS.map(|name| (name, BTreeMap::new())).into();
    let mut frontier = open(&frontiers[0], &SINKS).await;
    seed(&frontier).await;
    for n_step in 1..60 {
        match rng.random_range(0..10) {
            0 => frontier = open(&frontiers[n_step % 2], &SINKS).await,
            1..4 => {
                let mut commit = parsed(claim(&frontier).await);
                let n_items = rng.random_range(0..4);
                commit.result.items = (0..n_items).map(|n| item_of(&commit.claim, n)).collect();
                frontier.commit(commit).await.unwrap();
            }
            _ => {
                let name = SINKS[rng.random_range(0..SINKS.len())];
                let n_items = rng.random_range(1..5);
                deliver(&frontier, name, n_items, &mut taken).await;
                if rng.random_range(0..3) == 0 {
                    frontier.settle().await.unwrap();
                }
            }
        }
    }
    frontier.settle().await.unwrap();
    for name in SINKS {
        while frontier.undelivered(&sink(name)).n_items > 0 {
            deliver(&frontier, name, 7, &mut taken).await;
        }
    }
    let n_items = frontier.counts().items;
    let of_sinks = SINKS
        .iter()
        .map(|name| taken[name].values().collect::<Vec<_>>());
    let keys: Vec<Vec<&ItemKey>> = of_sinks.collect();
    assert_eq!(keys[0].len() as u64, n_items);
    assert!(keys.iter().all(|of_sink| *of_sink == keys[0]));
    assert_eq!(
        (frontier.n_undelivered(), frontier.undelivered_bytes()),
        (0, 0)
    );
    frontier.close().await.unwrap();
}

/// Gives items to a sink, and checks that those that it has had are the same.
async fn deliver<'a>(
    frontier: &Arc<dyn OpenFrontier>,
    name: &'a str,
    n_items: usize,
    taken: &mut BTreeMap<&'a str, BTreeMap<u64, ItemKey>>,
) {
    let sink = sink(name);
    let batch = frontier.outbox(&sink, n_items).await.unwrap();
    let taken = taken.entry(name).or_default();
    for (number, item) in (batch.first()..).zip(&batch.items) {
        let before = taken.insert(number, item.key.clone());
        assert!(before.is_none_or(|before| before == item.key));
    }
    let cleared = frontier.clear_outbox(&sink, batch.end, None);
    cleared.await.unwrap();
}
