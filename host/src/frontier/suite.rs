//! What every frontier must do, as statements over `Arc<dyn Frontier>`: each backend runs all of
//! them on an empty frontier that was not seeded.
//!
//! Moments are plain numbers here; nothing waits for real time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::{Claim, Commit, Committed, Ended, Frontier, FrontierError, NewRequest, Take};
use crate::model::crawl::{Done, Item, ItemKey, ItemRecord, Request, UnixMillis};
use crate::model::id::{ResourceId, Run};

mod patterns;

pub(crate) use patterns::f25_links_of_one_pattern_are_stored_up_to_their_bound;

pub(crate) fn new(url: &str) -> NewRequest {
    NewRequest {
        request: Request::get(url.parse().unwrap(), "page"),
        depth: 0,
    }
}

pub(crate) fn item_of(claim: &Claim, ordinal: u32) -> ItemRecord {
    let rule = claim.request.rule.clone();
    let item = Item {
        schema: "thing".into(),
        json: format!(r#"{{"n":{ordinal}}}"#),
    };
    ItemRecord {
        key: ItemKey::of(
            ResourceId(1),
            Run(1),
            claim.fingerprint,
            claim.visit,
            &rule,
            ordinal,
        ),
        url: claim.request.url.to_string(),
        rule,
        schema: item.schema,
        run: Run(1),
        fetched_at: 0,
        item: serde_json::value::RawValue::from_string(item.json).unwrap(),
    }
}

pub(crate) fn commit_of(claim: Box<Claim>, ended: Ended) -> Commit {
    Commit {
        claim,
        ended,
        bytes: 0,
        requests: Vec::new(),
        max_pattern_urls: u64::MAX,
        refused: Vec::new(),
        items: Vec::new(),
        host_ready_at: 0,
        final_url: None,
        validators: None,
    }
}

pub(crate) fn retry(at: UnixMillis) -> Ended {
    Ended::Retry {
        at,
        reason: "timeout".into(),
    }
}

pub(crate) fn parsed(claim: Box<Claim>) -> Commit {
    commit_of(claim, Ended::Done(Done::Parsed))
}

#[track_caller]
pub(crate) fn ready(take: Take) -> Box<Claim> {
    match take {
        Take::Ready(claim) => claim,
        Take::WaitUntil(_) | Take::Blocked | Take::Empty => panic!("nothing is ready: {take:?}"),
    }
}

pub(crate) async fn the_run_is_over_only_after_the_last_page_in_flight(
    frontier: Arc<dyn Frontier>,
) {
    assert_eq!(frontier.roots(), None);
    assert_eq!(frontier.take(0, 1), Take::Blocked);
    let seeded = frontier.seed(vec![new("http://a/")]).await.unwrap();
    assert_eq!(seeded.n_new, 1);
    assert_eq!(frontier.roots(), Some(vec!["http://a/".parse().unwrap()]));
    let claim = ready(frontier.take(0, 1));
    assert_eq!((claim.attempt, claim.visit, claim.depth), (1, 0, 0));
    assert_eq!((frontier.in_flight(), frontier.counts().due), (1, 1));
    assert_eq!(frontier.take(0, 1), Take::Blocked);
    frontier.commit(parsed(claim)).await.unwrap();
    assert_eq!(frontier.take(0, 1), Take::Empty);
    assert_eq!((frontier.counts().parsed, frontier.counts().due), (1, 0));
}

pub(crate) async fn f03_a_second_seed_changes_nothing(frontier: Arc<dyn Frontier>) {
    frontier.seed(vec![new("http://a/")]).await.unwrap();
    let second = frontier.seed(vec![new("http://a/2")]).await.unwrap();
    assert_eq!(second, Committed::default());
    let claim = ready(frontier.take(0, 9));
    assert_eq!(claim.request.url.as_str(), "http://a/");
    assert_eq!(frontier.take(0, 9), Take::Blocked);
}

pub(crate) async fn f24_a_failed_page_is_not_lost(frontier: Arc<dyn Frontier>) {
    frontier.seed(vec![new("http://a/")]).await.unwrap();
    let claim = ready(frontier.take(0, 1));
    let failed = commit_of(claim, retry(500));
    frontier.commit(failed).await.unwrap();
    assert_eq!(frontier.take(0, 1), Take::WaitUntil(500));
    let again = ready(frontier.take(500, 1));
    assert_eq!((again.attempt, again.visit), (2, 0));
    let dead = Ended::Dead {
        reason: "timeout".into(),
    };
    frontier.commit(commit_of(again, dead)).await.unwrap();
    assert_eq!(frontier.take(501, 1), Take::Empty);
    let counts = frontier.counts();
    assert_eq!((counts.retries, counts.dead), (1, 1));
    assert_eq!(counts.dead_by_reason["timeout"], 1);
}

pub(crate) async fn f26_failures_are_tried_again_at_their_time_and_hold_up_nothing(
    frontier: Arc<dyn Frontier>,
) {
    let urls = vec![new("http://a/1"), new("http://a/2"), new("http://b/1")];
    frontier.seed(urls).await.unwrap();
    let failed = commit_of(ready(frontier.take(0, 1)), retry(9_000));
    frontier.commit(failed).await.unwrap();
    for _ in 0..2 {
        let claim = ready(frontier.take(1, 1));
        assert_ne!(claim.request.url.as_str(), "http://a/1");
        frontier.commit(parsed(claim)).await.unwrap();
    }
    assert_eq!(frontier.take(8_999, 1), Take::WaitUntil(9_000));
    let claim = ready(frontier.take(9_000, 1));
    assert_eq!(claim.request.url.as_str(), "http://a/1");
}

pub(crate) async fn f25_a_url_is_stored_once_unless_it_asks_to_be_reloaded(
    frontier: Arc<dyn Frontier>,
) {
    let twice = vec![new("http://a/"), new("http://a/#part")];
    assert_eq!(frontier.seed(twice).await.unwrap().n_new, 1);
    let mut commit = parsed(ready(frontier.take(0, 1)));
    let mut reload = new("http://a/");
    reload.request.reload = true;
    reload.depth = 7;
    commit.requests = vec![new("http://a/"), reload.clone(), reload];
    let committed = frontier.commit(commit).await.unwrap();
    assert_eq!(committed, Committed::default());
    let again = ready(frontier.take(0, 1));
    assert_eq!((again.visit, again.attempt, again.depth), (1, 1, 0));
    frontier.commit(parsed(again)).await.unwrap();
    assert_eq!(frontier.take(0, 1), Take::Empty);
}

pub(crate) async fn a_claim_that_is_given_back_is_as_it_was(frontier: Arc<dyn Frontier>) {
    let urls = vec![new("http://a/1"), new("http://a/2")];
    frontier.seed(urls).await.unwrap();
    let claim = ready(frontier.take(0, 1));
    frontier.give_back(claim.clone());
    assert_eq!(frontier.in_flight(), 0);
    assert_eq!(ready(frontier.take(0, 1)), claim);
}

pub(crate) async fn a_claim_ends_once(frontier: Arc<dyn Frontier>) {
    frontier.seed(vec![new("http://a/")]).await.unwrap();
    let claim = ready(frontier.take(0, 1));
    let failed = commit_of(claim.clone(), retry(0));
    frontier.commit(failed).await.unwrap();
    let again = ready(frontier.take(0, 1));
    let mut late = parsed(claim.clone());
    late.items = vec![item_of(&late.claim, 0)];
    let error = frontier.commit(late).await.unwrap_err();
    assert!(
        matches!(error, FrontierError::NotInFlight { .. }),
        "{error}"
    );
    frontier.give_back(claim);
    assert_eq!((frontier.in_flight(), frontier.counts().items), (1, 0));
    frontier.commit(parsed(again)).await.unwrap();
    assert_eq!(frontier.take(0, 1), Take::Empty);
}

pub(crate) async fn a_host_is_left_alone_until_its_clock(frontier: Arc<dyn Frontier>) {
    let urls = vec![new("http://a/1"), new("http://a/2"), new("http://a:8080/")];
    frontier.seed(urls).await.unwrap();
    let mut commit = parsed(ready(frontier.take(0, 1)));
    commit.host_ready_at = 1_000;
    frontier.commit(commit).await.unwrap();
    let other_port = ready(frontier.take(10, 1));
    assert_eq!(other_port.request.url.as_str(), "http://a:8080/");
    assert_eq!(frontier.take(10, 1), Take::WaitUntil(1_000));
    assert_eq!(ready(frontier.take(1_000, 1)).request.url.path(), "/2");
}

pub(crate) async fn a_host_has_as_many_in_flight_as_it_may(frontier: Arc<dyn Frontier>) {
    let urls = (0..4).map(|n| new(&format!("http://a/{n}"))).collect();
    frontier.seed(urls).await.unwrap();
    let claim = ready(frontier.take(0, 2));
    ready(frontier.take(0, 2));
    assert_eq!(frontier.take(0, 2), Take::Blocked);
    frontier.commit(parsed(claim)).await.unwrap();
    ready(frontier.take(0, 2));
    assert_eq!(frontier.take(0, 2), Take::Blocked);
}

pub(crate) async fn items_stay_in_the_outbox_in_order_until_cleared(frontier: Arc<dyn Frontier>) {
    frontier.seed(vec![new("http://a/")]).await.unwrap();
    let mut commit = parsed(ready(frontier.take(0, 1)));
    commit.items = (0..5).map(|n| item_of(&commit.claim, n)).collect();
    let keys: Vec<ItemKey> = commit.items.iter().map(|item| item.key.clone()).collect();
    frontier.commit(commit).await.unwrap();
    for _ in 0..2 {
        let batch = frontier.outbox(2).await.unwrap();
        let found: Vec<_> = batch.items.iter().map(|item| &item.key).collect();
        assert_eq!((found, batch.end), (vec![&keys[0], &keys[1]], 2));
    }
    frontier.clear_outbox(2, None).await.unwrap();
    frontier.clear_outbox(1, None).await.unwrap();
    let batch = frontier.outbox(9).await.unwrap();
    assert_eq!(
        (batch.items[0].key.clone(), batch.end),
        (keys[2].clone(), 5)
    );
    frontier.clear_outbox(batch.end, None).await.unwrap();
    let batch = frontier.outbox(9).await.unwrap();
    assert_eq!((batch.items.len(), batch.end), (0, 5));
    assert_eq!(frontier.counts().items, 5);
}

pub(crate) async fn where_redirects_led_to_is_known_like_a_stored_url(frontier: Arc<dyn Frontier>) {
    let target = new("http://a/target");
    let request = target.request.clone();
    frontier.seed(vec![new("http://a/moved")]).await.unwrap();
    assert!(!frontier.knows(&request).await.unwrap());
    let mut commit = parsed(ready(frontier.take(0, 1)));
    commit.final_url = Some(request.fingerprint());
    commit.requests = vec![target];
    frontier.commit(commit).await.unwrap();
    assert!(frontier.knows(&request).await.unwrap());
    assert_eq!(frontier.take(0, 1), Take::Empty);
}

/// One URL as the plainest possible model knows it.
#[derive(Debug, Clone, PartialEq)]
struct Known {
    url: String,
    host: String,
    priority: i32,
    due: UnixMillis,
    age: usize,
    attempt: u32,
    in_flight: bool,
}

/// Takes, ends, fails and gives back at random for a while, then to the end, and compares each
/// answer with a list that is searched from front to back.
pub(crate) async fn any_order_of_calls_gives_what_a_plain_list_gives(
    frontier: Arc<dyn Frontier>,
    seed: u64,
) {
    let mut rng = StdRng::seed_from_u64(seed);
    // A URL is due from the moment that `take` last heard of.
    let (mut now, mut heard, mut list) = (0, 0, Vec::<Known>::new());
    let mut clocks = BTreeMap::<String, UnixMillis>::new();
    let (mut claims, mut ended) = (Vec::<Box<Claim>>::new(), BTreeSet::new());
    let mut stored = BTreeSet::new();

    let mut links = |rng: &mut StdRng, list: &mut Vec<Known>, due| -> Vec<NewRequest> {
        let mut links = Vec::new();
        for _ in 0..rng.random_range(0..6) {
            let host = ["a", "b", "c:81"][rng.random_range(0..3)];
            let mut link = new(&format!("http://{host}/{}", rng.random_range(0..200)));
            link.request.priority = rng.random_range(-1..2);
            let url = link.request.url.to_string();
            if stored.insert(url.clone()) {
                list.push(Known {
                    url,
                    host: link.request.host(),
                    priority: link.request.priority,
                    due,
                    age: stored.len(),
                    attempt: 1,
                    in_flight: false,
                });
            }
            links.push(link);
        }
        links
    };
    let roots = links(&mut rng, &mut list, 0);
    frontier.seed(roots).await.unwrap();

    for step in 0..4_000 {
        let draining = step > 2_000;
        if rng.random_range(0..3) == 0 {
            now += rng.random_range(0..40);
        }
        if claims.is_empty() || rng.random_range(0..2) == 0 {
            let per_host = rng.random_range(1..4);
            let take = frontier.take(now, per_host);
            heard = now;
            check_take(&take, &mut list, &clocks, now, per_host);
            match take {
                Take::Ready(claim) => claims.push(claim),
                Take::WaitUntil(at) if draining => now = at,
                Take::Empty if draining => break,
                Take::WaitUntil(_) | Take::Empty | Take::Blocked => {}
            }
            continue;
        }
        let claim = claims.swap_remove(rng.random_range(0..claims.len()));
        let index = list
            .iter()
            .position(|known| known.url == claim.request.url.as_str())
            .unwrap();
        let draw = if draining { 9 } else { rng.random_range(0..10) };
        if draw == 0 {
            list[index].in_flight = false;
            frontier.give_back(claim);
            continue;
        }
        let mut commit = if draw < 3 {
            let at = now + rng.random_range(0..300);
            (list[index].in_flight, list[index].due) = (false, at);
            list[index].attempt += 1;
            commit_of(claim, retry(at))
        } else {
            assert!(ended.insert(list.remove(index).url), "ended twice");
            parsed(claim)
        };
        if !draining {
            commit.requests = links(&mut rng, &mut list, heard);
        }
        commit.host_ready_at = now + rng.random_range(0..30);
        let clock = clocks.entry(commit.claim.request.host()).or_default();
        *clock = commit.host_ready_at.max(*clock);
        frontier.commit(commit).await.unwrap();
    }
    assert_eq!(list, [], "left over, seed {seed}");
    assert_eq!(ended, stored, "seed {seed}");
    assert_eq!(frontier.counts().parsed, stored.len() as u64);
}

#[track_caller]
fn check_take(
    take: &Take,
    list: &mut [Known],
    clocks: &BTreeMap<String, UnixMillis>,
    now: UnixMillis,
    per_host: u32,
) {
    let mut n_in_flight = BTreeMap::<&str, u32>::new();
    for known in list.iter().filter(|known| known.in_flight) {
        *n_in_flight.entry(&known.host).or_default() += 1;
    }
    let may = |known: &&Known| {
        !known.in_flight && n_in_flight.get(&*known.host).is_none_or(|&n| n < per_host)
    };
    let turn = |known: &Known| known.due.max(clocks.get(&known.host).copied().unwrap_or(0));
    let soonest = list.iter().filter(may).map(turn).min();
    match take {
        Take::Ready(claim) => {
            let host = claim.request.host();
            let best = list
                .iter()
                .filter(may)
                .filter(|known| known.host == host && turn(known) <= now)
                .min_by_key(|known| (-known.priority, known.due, known.age));
            let best = best.expect("the host has its turn").clone();
            assert_eq!(claim.request.url.as_str(), best.url);
            assert_eq!(claim.attempt, best.attempt);
            let taken = list.iter_mut().find(|known| known.url == best.url);
            taken.expect("in the list").in_flight = true;
        }
        Take::WaitUntil(at) => {
            assert_eq!(Some(*at), soonest);
            assert!(*at > now, "{at} is not after {now}");
        }
        Take::Blocked => assert!(soonest.is_none() && !list.is_empty()),
        Take::Empty => assert!(list.is_empty(), "{list:?}"),
    }
}
