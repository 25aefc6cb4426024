//! Suite for items that wait for a verdict, and for held ones. Each case has the frontiers of two processes over one object
//! store, which is empty at first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::fencing::{Two, open, open_run};
use super::{item_of, new, parsed, take};
use crate::{Claim, Frontier, Judgement, OpenFrontier, Take};
use crawler_model::crawl::ItemKey;
use crawler_model::drift::{
    Action, Decision, Departs, Departure, GroupName, MIN_PAGES, Profile, Sample,
};
use crawler_model::id::Run;
use crawler_model::settings::SinkName;

const DEADLINE: Duration = Duration::from_secs(20);
const KIND: &str = "thing";
const HOST: &str = "a:80";

fn group() -> GroupName {
    GroupName {
        kind: KIND.to_owned(),
        host: HOST.to_owned(),
    }
}

fn why() -> Option<(GroupName, Departure)> {
    let departure = Departure {
        field: "n".to_owned(),
        departs: Departs::Presence,
        before: "missing in 0 of 40 items".to_owned(),
        now: "missing in 40 of 40 items".to_owned(),
    };
    Some((group(), departure))
}

async fn seed(frontier: &Arc<dyn OpenFrontier>) {
    let roots = (0..100).map(|n| new(&format!("http://a/{n}"))).collect();
    frontier.seed(roots).await.unwrap();
    frontier.settle().await.unwrap();
}

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

/// Ends the next page with items for the outbox and others that wait; returns the keys of the latter.
async fn commit(frontier: &Arc<dyn OpenFrontier>, n_items: u32, n_watched: u32) -> Vec<ItemKey> {
    let mut commit = parsed(claim(frontier).await);
    let item = |n| item_of(&commit.claim, n);
    let items = (0..n_items).map(item).collect();
    let watched: Vec<_> = (n_items..n_items + n_watched).map(item).collect();
    let keys = watched.iter().map(|item| item.key.clone()).collect();
    (commit.result.items, commit.result.watched) = (items, watched);
    frontier.commit(commit).await.unwrap();
    frontier.settle().await.unwrap();
    keys
}

/// Returns the keys in the outbox.
async fn keys_of(frontier: &Arc<dyn OpenFrontier>) -> Vec<ItemKey> {
    frontier.settle().await.unwrap();
    let batch = frontier.outbox(&SinkName::lines(), 1_000).await.unwrap();
    batch.items.into_iter().map(|item| item.key).collect()
}

/// Returns the numbers of the items that wait.
fn waiting(frontier: &Arc<dyn OpenFrontier>) -> Vec<u64> {
    let pages = frontier.waiting(0);
    let numbers = pages.iter().flat_map(|page| &page.items);
    numbers.map(|(number, _)| *number).collect()
}

async fn judge(
    frontier: &Arc<dyn OpenFrontier>,
    numbers: &[u64],
    hold: Option<(GroupName, Departure)>,
) {
    let numbers = numbers.to_vec();
    let judged = frontier.judge(Judgement { numbers, hold });
    judged.await.unwrap();
}

async fn decide(frontier: &Arc<dyn OpenFrontier>, action: Action) -> u64 {
    let decision = Decision::of(action, &frontier.holds());
    frontier.decide(&decision).await.unwrap()
}

pub async fn items_that_wait_reach_no_sink_until_they_pass([first, second]: Two) {
    let frontier = open(&first).await;
    seed(&frontier).await;
    let keys = commit(&frontier, 1, 2).await;
    assert_eq!(keys_of(&frontier).await.len(), 1);
    assert_eq!(frontier.counts().items, 3);
    let kept_back = frontier.kept_back();
    assert_eq!((kept_back.n_waiting, kept_back.n_held), (2, 0));
    assert!(kept_back.waiting_bytes > 0);
    let page = &frontier.waiting(0)[0];
    assert_eq!(page.items.len(), 2);
    let (numbers, later) = (waiting(&frontier), commit(&frontier, 0, 1).await);
    assert_eq!(frontier.waiting(numbers[1] + 1).len(), 1);
    // They still wait when the process is gone.
    let again = open(&second).await;
    assert_eq!(again.kept_back().n_waiting, 3);
    assert_eq!(
        again.kept_back().waiting_bytes,
        frontier.kept_back().waiting_bytes
    );
    // A verdict that is made known twice moves each item once.
    for _twice in 0..2 {
        judge(&again, &numbers, None).await;
    }
    assert_eq!(keys_of(&again).await[1..], keys);
    judge(&again, &waiting(&again), None).await;
    assert_eq!(keys_of(&again).await[3..], later);
    assert_eq!(again.kept_back(), Default::default());
    assert_eq!(again.n_undelivered(), 4);
}

pub async fn held_items_reach_a_sink_only_once_they_are_released([first, second]: Two) {
    let frontier = open(&first).await;
    seed(&frontier).await;
    let keys = commit(&frontier, 0, 3).await;
    judge(&frontier, &waiting(&frontier), why()).await;
    assert_eq!(keys_of(&frontier).await, []);
    let kept_back = frontier.kept_back();
    assert_eq!(
        (kept_back.n_waiting, kept_back.n_held, kept_back.n_holds),
        (0, 3, 1)
    );
    assert_eq!(frontier.counts().held, 3);
    let holds = frontier.holds();
    assert_eq!(
        (holds[0].number, holds[0].run, holds[0].n_items),
        (1, Run(1), 3)
    );
    assert_eq!(holds[0].group, group());
    frontier.settle().await.unwrap();
    let again = open(&second).await;
    assert_eq!((again.holds(), again.kept_back()), (holds, kept_back));
    let decision = Decision::of(Action::Release, &again.holds());
    assert_eq!(again.decide(&decision).await.unwrap(), 3);
    assert_eq!(keys_of(&again).await, keys);
    assert_eq!(again.kept_back(), Default::default());
    // A decision that is carried out again finds nothing left.
    assert_eq!(again.decide(&decision).await.unwrap(), 0);
    assert_eq!(again.n_undelivered(), 3);
    let last = open(&first).await;
    assert_eq!((last.holds(), last.n_undelivered()), (Vec::new(), 3));
}

pub async fn a_decision_leaves_what_was_held_since([first, _]: Two) {
    let frontier = open(&first).await;
    seed(&frontier).await;
    commit(&frontier, 0, 2).await;
    judge(&frontier, &waiting(&frontier), why()).await;
    let drop = Decision::of(Action::Drop, &frontier.holds());
    let later = commit(&frontier, 0, 1).await;
    judge(&frontier, &waiting(&frontier), why()).await;
    let hold = &frontier.holds()[0];
    assert_eq!(
        (hold.n_items, hold.is_decided),
        (3, false),
        "one hold has them all"
    );
    assert_eq!(frontier.decide(&drop).await.unwrap(), 2);
    assert_eq!(keys_of(&frontier).await, []);
    let hold = &frontier.holds()[0];
    assert_eq!((hold.n_items, hold.is_decided), (1, true));
    assert_eq!(decide(&frontier, Action::Release).await, 1);
    assert_eq!(keys_of(&frontier).await, later);
    // The number of a hold that is gone is not given again.
    commit(&frontier, 0, 1).await;
    judge(&frontier, &waiting(&frontier), why()).await;
    assert_eq!(frontier.holds()[0].number, 2);
}

fn profile(n_pages: u64) -> Profile {
    let mut profile = Profile::default();
    (0..n_pages).for_each(|_| profile.add(KIND, HOST, &Sample::of(r#"{"n": 1}"#)));
    profile
}

pub async fn a_run_with_nothing_left_is_what_the_next_is_judged_by([first, second]: Two) {
    let is_judged = |frontier: &Arc<dyn OpenFrontier>| {
        let profiles = frontier.profiles().unwrap();
        profiles.baseline.judges(KIND, HOST).is_some()
    };
    let frontier = open(&first).await;
    frontier.seed(vec![new("http://a/1")]).await.unwrap();
    frontier.store_profile(&profile(MIN_PAGES)).await.unwrap();
    assert!(
        !is_judged(&frontier),
        "nothing is known before the first run"
    );
    frontier.settle().await.unwrap();
    // Its run is not over: the page is left.
    let early = open_run(&second, Run(2)).await;
    assert!(!is_judged(&early));
    early.seed(vec![new("http://a/1")]).await.unwrap();
    early.settle().await.unwrap();
    commit(&early, 0, 0).await;
    early.store_profile(&profile(MIN_PAGES)).await.unwrap();
    early.settle().await.unwrap();
    for _opening in 0..2 {
        let next = open_run(&first, Run(3)).await;
        assert!(is_judged(&next));
        assert_eq!(next.profiles().unwrap().run, Profile::default());
        // What this run learns leaves the profile that it is judged by.
        next.store_profile(&Profile::default()).await.unwrap();
        next.settle().await.unwrap();
    }
    let next = open_run(&second, Run(3)).await;
    next.seed(vec![new("http://a/1")]).await.unwrap();
    commit(&next, 0, 1).await;
    judge(&next, &waiting(&next), why()).await;
    // Released items are good, so that the look of before is not asked for any more.
    assert_eq!(decide(&next, Action::Release).await, 1);
    assert!(!is_judged(&next));
    next.settle().await.unwrap();
    assert!(!is_judged(&open_run(&first, Run(3)).await));
}

pub async fn a_run_whose_items_were_dropped_is_not_judged_by([first, second]: Two) {
    let frontier = open(&first).await;
    frontier.seed(vec![new("http://a/1")]).await.unwrap();
    commit(&frontier, 0, 1).await;
    judge(&frontier, &waiting(&frontier), why()).await;
    assert_eq!(decide(&frontier, Action::Drop).await, 1);
    frontier.settle().await.unwrap();
    // What the run learns after the decision is a part of the site only.
    let again = open(&second).await;
    let mut learned = again.profiles().unwrap().run;
    (0..MIN_PAGES).for_each(|_| learned.add(KIND, HOST, &Sample::of(r#"{"n": 1}"#)));
    again.store_profile(&learned).await.unwrap();
    again.settle().await.unwrap();
    let next = open_run(&first, Run(2)).await;
    let baseline = next.profiles().unwrap().baseline;
    assert_eq!(baseline.judges(KIND, HOST), None);
}

pub async fn held_items_wait_for_a_decision_over_runs([first, second]: Two) {
    let frontier = open(&first).await;
    frontier.seed(vec![new("http://a/1")]).await.unwrap();
    let keys = commit(&frontier, 0, 2).await;
    judge(&frontier, &waiting(&frontier)[..1], why()).await;
    assert!(!frontier.waiting(0)[0].is_earlier);
    frontier.settle().await.unwrap();
    let next = open_run(&second, Run(2)).await;
    assert_eq!(
        (next.kept_back().n_waiting, next.kept_back().n_held),
        (1, 1)
    );
    assert!(next.waiting(0)[0].is_earlier);
    judge(&next, &waiting(&next), None).await;
    assert_eq!(decide(&next, Action::Release).await, 1);
    let released: BTreeSet<ItemKey> = keys_of(&next).await.into_iter().collect();
    assert_eq!(released, keys.into_iter().collect());
}

pub async fn a_run_remembers_that_items_of_it_were_dropped([first, second]: Two) {
    let has_dropped = |frontier: &Arc<dyn OpenFrontier>| frontier.kept_back().has_dropped;
    let frontier = open(&first).await;
    frontier.seed(vec![new("http://a/1")]).await.unwrap();
    commit(&frontier, 0, 2).await;
    judge(&frontier, &waiting(&frontier), why()).await;
    assert!(!has_dropped(&frontier));
    assert_eq!(decide(&frontier, Action::Drop).await, 2);
    assert!(has_dropped(&frontier));
    frontier.settle().await.unwrap();
    assert!(has_dropped(&open(&second).await));
    assert!(!has_dropped(&open_run(&first, Run(2)).await));
}

pub async fn items_of_an_earlier_run_are_dropped_without_a_trace([first, second]: Two) {
    let frontier = open(&first).await;
    frontier.seed(vec![new("http://a/1")]).await.unwrap();
    commit(&frontier, 0, 2).await;
    judge(&frontier, &waiting(&frontier), why()).await;
    frontier.settle().await.unwrap();
    let next = open_run(&second, Run(2)).await;
    assert_eq!(decide(&next, Action::Drop).await, 2);
    assert_eq!(next.kept_back(), Default::default());
}

/// Commits, judges, decides, delivers and crashes at random. In the end each item was given to the sink once, or dropped by
/// a decision, or is held.
pub async fn an_item_is_in_one_place_after_any_history(frontiers: Two, seed_of_history: u64) {
    let mut rng = StdRng::seed_from_u64(seed_of_history);
    let mut taken: BTreeMap<u64, ItemKey> = BTreeMap::new();
    let mut frontier = open(&frontiers[0]).await;
    seed(&frontier).await;
    for n_step in 1..60 {
        match rng.random_range(0..12) {
            0 | 1 => frontier = open(&frontiers[n_step % 2]).await,
            2..5 => {
                let mut commit = parsed(claim(&frontier).await);
                let n_items = rng.random_range(0..3);
                commit.result.watched = (0..n_items).map(|n| item_of(&commit.claim, n)).collect();
                commit.result.items = vec![item_of(&commit.claim, 9)];
                frontier.commit(commit).await.unwrap();
            }
            5..8 => {
                let numbers = waiting(&frontier);
                let n = rng.random_range(0..=numbers.len());
                let hold = why().filter(|_| rng.random_range(0..2) == 0);
                judge(&frontier, &numbers[..n], hold).await;
            }
            8 => {
                decide(&frontier, Action::Release).await;
            }
            _ => {
                let sink = SinkName::lines();
                let batch = frontier
                    .outbox(&sink, rng.random_range(1..5))
                    .await
                    .unwrap();
                for (number, item) in (batch.first()..).zip(&batch.items) {
                    let before = taken.insert(number, item.key.clone());
                    assert!(before.is_none_or(|before| before == item.key));
                }
                frontier.clear_outbox(&sink, batch.end, None).await.unwrap();
                if rng.random_range(0..3) == 0 {
                    frontier.settle().await.unwrap();
                }
            }
        }
    }
    judge(&frontier, &waiting(&frontier), None).await;
    decide(&frontier, Action::Release).await;
    frontier.settle().await.unwrap();
    let batch = frontier.outbox(&SinkName::lines(), 10_000).await.unwrap();
    for (number, item) in (batch.first()..).zip(&batch.items) {
        taken.insert(number, item.key.clone());
    }
    assert_eq!(taken.len() as u64, frontier.counts().items);
    let keys: BTreeSet<&ItemKey> = taken.values().collect();
    assert_eq!(keys.len(), taken.len(), "no item is there twice");
    assert_eq!(frontier.kept_back(), Default::default());
    frontier.close().await.unwrap();
}
