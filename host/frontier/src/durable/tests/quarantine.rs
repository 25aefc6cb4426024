//! Tests of items that wait or are held: a process may end between any two batches, readers see holds, and comparisons see
//! what enters the outbox.

use std::collections::BTreeSet;

use super::*;
use crate::durable::quarantine::MAX_ITEMS;
use crate::reader::FrontierReader;
use crate::{ItemComparison, ItemOutbox as _, Judgement, Quarantine as _};
use crawler_model::changes::ItemKeys;
use crawler_model::crawl::ItemKey;
use crawler_model::drift::{Action, Decision, Departs, Departure, GroupName};

pub(super) fn why() -> (GroupName, Departure) {
    let group = GroupName {
        kind: "thing".to_owned(),
        host: "a:80".to_owned(),
    };
    let departure = Departure {
        field: "n".to_owned(),
        departs: Departs::Number,
        before: "size mostly 1 to 2".to_owned(),
        now: "size mostly 10 to 20".to_owned(),
    };
    (group, departure)
}

/// Ends the next page with items that wait.
async fn commit_watched(frontier: &Arc<DurableFrontier>, n_items: u32) {
    let open: Arc<dyn Frontier> = frontier.clone();
    let mut commit = parsed(ready(next(&open, 0).await));
    commit.result.watched = (0..n_items).map(|n| item_of(&commit.claim, n)).collect();
    frontier.commit(commit).await.unwrap();
    frontier.settle().await.unwrap();
}

pub(super) fn numbers(frontier: &DurableFrontier) -> Vec<u64> {
    let pages = frontier.waiting(0);
    let items = pages.iter().flat_map(|page| &page.items);
    items.map(|(number, _)| *number).collect()
}

async fn keys_of(frontier: &DurableFrontier) -> Vec<ItemKey> {
    let batch = frontier.outbox(&SinkName::lines(), 10_000).await.unwrap();
    batch.items.into_iter().map(|item| item.key).collect()
}

#[tokio::test]
async fn an_item_is_in_one_place_after_any_history() {
    for seed in 0..5 {
        let objects = Arc::new(InMemory::new());
        let first = frontiers_in(&objects, settings());
        let two: suite::Two = [first, frontiers_in(&objects, settings())];
        suite::an_item_is_in_one_place_after_any_history(two, seed).await;
    }
}

/// The process ends after each batch of a verdict that needs several, and of a decision.
#[tokio::test]
async fn a_verdict_and_a_decision_go_on_where_they_were_cut_off() {
    let n_items = 2 * MAX_ITEMS as u32 + 7;
    for action in [Action::Release, Action::Drop] {
        let objects = Arc::new(InMemory::new());
        let mut frontier = open(&objects, 1).await;
        frontier.seed(urls(&["1"])).await.unwrap();
        commit_watched(&frontier, n_items).await;
        let mut n_batches = 0;
        while frontier.kept_back().n_waiting > 0 {
            let waiting = numbers(&frontier);
            let judgement = Judgement {
                numbers: waiting.clone(),
                hold: Some(why()),
            };
            frontier
                .inner
                .judge_some(&waiting, &judgement)
                .await
                .unwrap();
            frontier.settle().await.unwrap();
            frontier = open(&objects, 1).await;
            let kept_back = frontier.kept_back();
            assert_eq!(kept_back.n_waiting + kept_back.n_held, u64::from(n_items));
            n_batches += 1;
        }
        assert_eq!((n_batches, frontier.holds().len()), (3, 1));
        let decision = Decision::of(action, &frontier.holds());
        let mut n_decided = 0;
        while frontier.kept_back().n_held > 0 {
            let (number, until) = decision.holds.first_key_value().expect("one hold");
            let decided = frontier.inner.decide_some(*number, 0..*until, action);
            let (n, next) = decided.await.unwrap().expect("items are left");
            n_decided += n;
            assert_eq!(next, n_decided, "the next scan begins behind them");
            frontier.settle().await.unwrap();
            frontier = open(&objects, 1).await;
            let n_out = frontier.n_undelivered() + frontier.kept_back().n_held;
            assert!(action == Action::Drop || n_out == u64::from(n_items));
        }
        assert_eq!(frontier.decide(&decision).await.unwrap(), 0);
        let keys = keys_of(&frontier).await;
        let distinct: BTreeSet<&ItemKey> = keys.iter().collect();
        let expected = if action == Action::Drop {
            0
        } else {
            n_items as usize
        };
        assert_eq!((keys.len(), distinct.len()), (expected, expected));
        let is_empty = frontier.check_empty().await.is_ok();
        assert_eq!(is_empty, action == Action::Drop);
    }
}

#[tokio::test]
async fn a_run_is_not_over_while_items_wait_for_a_verdict() {
    let frontier = open(&Arc::new(InMemory::new()), 1).await;
    frontier.seed(urls(&["1"])).await.unwrap();
    commit_watched(&frontier, 1).await;
    let error = frontier.check_empty().await.unwrap_err();
    assert!(error.to_string().contains("waits for a verdict"), "{error}");
    let judgement = Judgement {
        numbers: numbers(&frontier),
        hold: Some(why()),
    };
    frontier.judge(judgement).await.unwrap();
    // What is held waits for a person.
    frontier.check_empty().await.unwrap();
}

#[tokio::test]
async fn readers_see_holds_and_their_items() {
    let objects = Arc::new(InMemory::new());
    let frontier = open(&objects, 1).await;
    frontier.seed(urls(&["1"])).await.unwrap();
    commit_watched(&frontier, 5).await;
    let judgement = Judgement {
        numbers: numbers(&frontier),
        hold: Some(why()),
    };
    frontier.judge(judgement).await.unwrap();
    frontier.settle().await.unwrap();
    let holds = frontier.holds();
    frontier.close().await.unwrap();
    let reader = FrontierReader::open(objects, shard())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(reader.holds().await.unwrap(), holds);
    assert_eq!(holds[0].departure, why().1);
    let (mut from, mut found) = (0, Vec::new());
    loop {
        let page = reader
            .held_items(holds[0].number, from, 2, 1 << 20)
            .await
            .unwrap();
        found.extend(page.items.iter().map(|(number, _)| *number));
        match page.next {
            Some(next) => from = next,
            None => break,
        }
    }
    assert_eq!(found, [0, 1, 2, 3, 4]);
    let page = reader.held_items(holds[0].number, 0, 9, 1).await.unwrap();
    assert_eq!((page.items.len(), page.next), (1, Some(1)), "one at least");
    assert!(
        reader
            .held_items(7, 0, 9, 1 << 20)
            .await
            .unwrap()
            .items
            .is_empty()
    );
    reader.close().await;
}

/// Items of the run are told as changes when they enter the outbox, and not before.
#[tokio::test]
async fn items_are_compared_when_they_enter_the_outbox() {
    let objects = Arc::new(InMemory::new());
    let frontiers = frontiers_in(&objects, settings());
    let open_options = OpenOptions {
        changes: ItemComparison {
            n_runs: 3,
            keys: ItemKeys::default(),
        },
        ..open_options(&frontiers, 1).await
    };
    let frontier = Arc::new(frontiers.open(open_options).await.unwrap());
    frontier.seed(urls(&["1", "2"])).await.unwrap();
    commit_watched(&frontier, 2).await;
    commit_watched(&frontier, 1).await;
    let added = || frontier.change_totals().unwrap().added;
    assert_eq!(added(), 0);
    let numbers = numbers(&frontier);
    let judgement = |numbers: &[u64], hold| Judgement {
        numbers: numbers.to_vec(),
        hold,
    };
    frontier
        .judge(judgement(&numbers[..1], None))
        .await
        .unwrap();
    assert_eq!(added(), 1);
    frontier
        .judge(judgement(&numbers[1..], Some(why())))
        .await
        .unwrap();
    assert_eq!(added(), 1);
    let release = Decision::of(Action::Release, &frontier.holds());
    assert_eq!(frontier.decide(&release).await.unwrap(), 2);
    let totals = frontier.change_totals().unwrap();
    assert_eq!(
        (totals.added, totals.repeated, totals.is_torn),
        (3, 0, false)
    );
    frontier.settle().await.unwrap();
    drop(frontier);
    // The number of compared items agrees with that of stored ones.
    let frontiers = frontiers_in(&objects, settings());
    let again = frontiers
        .open(super::open_options(&frontiers, 1).await)
        .await
        .unwrap();
    assert!(!again.change_totals().unwrap().is_torn);
}
