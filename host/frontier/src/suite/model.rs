//! Suite that compares any order of calls with the plainest possible model.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::{commit_of, new, parsed, retry, take};
use crate::{Claim, Frontier, HostFailure, HostUpdate, NewRequest, Take};
use crawler_model::crawl::UnixMillis;
use crawler_model::frontier::DelaySource;

/// A URL in the plainest possible model.
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

/// Takes, ends, fails, gives back and puts off at random for a while, then to the end, and compares each answer with a
/// list that is searched from front to back.
pub async fn any_order_of_calls_gives_what_a_plain_list_gives(
    frontier: Arc<dyn Frontier>,
    seed: u64,
) {
    let mut rng = StdRng::seed_from_u64(seed);
    // A URL is due from the moment that `take` was last called with.
    let (mut now, mut heard, mut list) = (0, 0, Vec::<Known>::new());
    let mut clocks = BTreeMap::<String, UnixMillis>::new();
    let mut failures = BTreeMap::<String, u32>::new();
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
            let take = take(&frontier, now, per_host).await;
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
        let draw = if draining { 9 } else { rng.random_range(0..14) };
        let until = now + rng.random_range(0..60);
        let host = claim.request.host();
        let clock = clocks.entry(host.clone()).or_default();
        if draw > 9 {
            let n_failures = failures.entry(host).or_default();
            let is_first = claim.host.n_failures == *n_failures;
            list[index].in_flight = false;
            match draw {
                10 => frontier.give_back(claim, HostUpdate::Unready),
                11 => {
                    *clock = until.max(*clock);
                    frontier.give_back(claim, HostUpdate::NotBefore(until));
                }
                12 => {
                    *clock = until.max(*clock);
                    *n_failures = 0;
                    let ready = HostUpdate::Ready {
                        not_before: until,
                        delay_by: DelaySource::Setting,
                        has_answered: true,
                    };
                    frontier.give_back(claim, ready);
                }
                _ => {
                    // Requests that fail side by side count once.
                    if is_first {
                        *clock = until.max(*clock);
                        *n_failures += 1;
                    }
                    let failure = HostFailure {
                        until,
                        reason: "connect".to_owned(),
                        gives_up: false,
                    };
                    frontier.put_off(claim, failure).await.unwrap();
                }
            }
            continue;
        }
        if draw == 0 {
            list[index].in_flight = false;
            frontier.give_back(claim, HostUpdate::None);
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
            commit.result.requests = links(&mut rng, &mut list, heard);
        }
        commit.result.host_ready_at = now + rng.random_range(0..30);
        *clock = commit.result.host_ready_at.max(*clock);
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
    let next_at = |known: &Known| known.due.max(clocks.get(&known.host).copied().unwrap_or(0));
    let soonest = list.iter().filter(may).map(next_at).min();
    match take {
        Take::Ready(claim) => {
            let host = claim.request.host();
            let best = list
                .iter()
                .filter(may)
                .filter(|known| known.host == host && next_at(known) <= now)
                .min_by_key(|known| (-known.priority, known.due, known.age));
            let best = best.expect("a URL of the host is due").clone();
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
