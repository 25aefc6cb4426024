//! Suite for a frontier's knowledge of hosts: which are ready, and which could not be reached.

use std::sync::Arc;

use super::{commit_of, new, parsed, ready, take};
use crate::{Claim, Ended, Frontier, HostFailure, HostUpdate, Take, TakeLimits};
use crawler_model::crawl::UnixMillis;
use crawler_model::frontier::{DelaySource, HostState};

const READY: HostUpdate = HostUpdate::Ready {
    not_before: 0,
    delay_by: DelaySource::Setting,
    has_answered: false,
};

/// Takes up to 9 URLs of each ready host.
const OF_READY: TakeLimits = TakeLimits {
    ready: Some(9),
    answered: None,
    unreached: None,
};
/// Takes one URL of each host that is not ready.
const OF_UNREADY: TakeLimits = TakeLimits {
    ready: None,
    answered: Some(1),
    unreached: Some(1),
};

fn failure(until: UnixMillis, gives_up: bool) -> HostFailure {
    HostFailure {
        until,
        reason: "resolve".to_owned(),
        gives_up,
    }
}

/// Makes `n_hosts` hosts ready, one URL of each after the other.
pub fn make_ready(frontier: &Arc<dyn Frontier>, n_hosts: usize) {
    for _ in 0..n_hosts {
        match frontier
            .take_within(0, OF_UNREADY)
            .expect("the frontier is open")
        {
            Take::Ready(claim) => frontier.give_back(claim, READY),
            other => panic!("no host waits: {other:?}"),
        }
    }
}

async fn take_within(frontier: &Arc<dyn Frontier>, now: UnixMillis, limits: TakeLimits) -> Take {
    frontier.settle().await.expect("the frontier is open");
    frontier
        .take_within(now, limits)
        .expect("the frontier is open")
}

fn path(claim: &Claim) -> &str {
    claim.request.url.path()
}

pub async fn hosts_that_are_ready_have_places_of_their_own(frontier: Arc<dyn Frontier>) {
    let urls = ["http://a/1", "http://a/2", "http://b/1", "http://b/2"];
    frontier.seed(urls.map(new).into()).await.unwrap();
    assert_eq!(take_within(&frontier, 0, OF_READY).await, Take::Blocked);
    let claim = ready(take_within(&frontier, 0, OF_UNREADY).await);
    assert_eq!(
        (claim.request.host(), claim.host.is_ready),
        ("a:80".into(), false)
    );
    frontier.give_back(claim, READY);
    assert_eq!(frontier.n_ready_hosts(), 1);
    for expected in ["/1", "/2"] {
        let claim = ready(take_within(&frontier, 0, OF_READY).await);
        assert_eq!((path(&claim), claim.host.is_ready), (expected, true));
        frontier.commit(parsed(claim)).await.unwrap();
    }
    assert_eq!(take_within(&frontier, 0, OF_READY).await, Take::Blocked);
    let claim = ready(take_within(&frontier, 0, OF_UNREADY).await);
    assert_eq!(claim.request.host(), "b:80");
    assert_eq!(take_within(&frontier, 0, OF_UNREADY).await, Take::Blocked);
    frontier.give_back(claim, READY);
    let claim = ready(take_within(&frontier, 0, OF_READY).await);
    frontier.give_back(claim, HostUpdate::Unready);
    assert_eq!(take_within(&frontier, 0, OF_READY).await, Take::Blocked);
}

pub async fn a_host_that_was_asked_while_it_became_ready_waits(frontier: Arc<dyn Frontier>) {
    frontier.seed(vec![new("http://a/1")]).await.unwrap();
    let claim = ready(take_within(&frontier, 0, OF_UNREADY).await);
    let update = HostUpdate::Ready {
        not_before: 700,
        delay_by: DelaySource::Setting,
        has_answered: true,
    };
    frontier.give_back(claim, update);
    let early = take_within(&frontier, 699, OF_READY).await;
    assert_eq!(early, Take::WaitUntil(700));
    let claim = ready(take_within(&frontier, 700, OF_READY).await);
    assert!(claim.host.has_answered);
}

pub async fn a_host_that_could_not_be_reached_waits_with_all_its_urls(frontier: Arc<dyn Frontier>) {
    let urls = ["http://a/1", "http://a/2", "http://b/1"];
    frontier.seed(urls.map(new).into()).await.unwrap();
    let (first, second) = (
        ready(take(&frontier, 0, 2).await),
        ready(take(&frontier, 0, 1).await),
    );
    assert_eq!(
        (first.request.host(), second.request.host()),
        ("a:80".into(), "b:80".into())
    );
    let beside = ready(take(&frontier, 0, 2).await);
    assert_eq!(beside.request.host(), "a:80");
    frontier
        .put_off(first.clone(), failure(500, false))
        .await
        .unwrap();
    frontier.put_off(beside, failure(400, false)).await.unwrap();
    frontier.commit(parsed(second)).await.unwrap();
    assert_eq!(take(&frontier, 499, 2).await, Take::WaitUntil(500));
    // It is the same attempt at the page, and the host has failed once.
    let again = ready(take(&frontier, 500, 2).await);
    assert_eq!(
        (path(&again), again.attempt, again.host.n_failures),
        ("/1", 1, 1)
    );
    let mut answered = parsed(again);
    answered.result.host_answered = true;
    frontier.commit(answered).await.unwrap();
    let last = ready(take(&frontier, 500, 2).await);
    assert_eq!((path(&last), last.host.n_failures), ("/2", 0));
    assert!(last.host.has_answered);
    // A failure that comes late changes nothing.
    frontier.put_off(first, failure(900, true)).await.unwrap();
    frontier.commit(parsed(last)).await.unwrap();
    assert_eq!(take(&frontier, 500, 2).await, Take::Empty);
}

pub async fn a_host_that_is_given_up_brings_its_urls_at_once(frontier: Arc<dyn Frontier>) {
    let urls = ["http://a/1", "http://a/2", "http://a/3"];
    frontier.seed(urls.map(new).into()).await.unwrap();
    let claim = ready(take(&frontier, 0, 1).await);
    frontier.put_off(claim, failure(500, true)).await.unwrap();
    for expected in ["/1", "/2"] {
        let claim = ready(take(&frontier, 10, 1).await);
        assert_eq!(path(&claim), expected);
        let reason = claim.host.given_up.clone().expect("its host is given up");
        let dead = Ended::Dead { reason };
        frontier.commit(commit_of(claim, dead)).await.unwrap();
    }
    assert_eq!(frontier.counts().dead_by_reason["resolve"], 2);
    // The time is over, and the host is tried again. A claim that is given back has tried nothing.
    let claim = ready(take(&frontier, 500, 1).await);
    assert_eq!(claim.host.given_up, None);
    frontier.give_back(claim, HostUpdate::NotBefore(600));
    assert_eq!(take(&frontier, 510, 1).await, Take::WaitUntil(600));
    let claim = ready(take(&frontier, 600, 1).await);
    assert_eq!(
        (claim.host.n_failures, claim.host.given_up.clone()),
        (1, None)
    );
    frontier.commit(parsed(claim)).await.unwrap();
    assert_eq!(take(&frontier, 600, 1).await, Take::Empty);
}

pub async fn a_failure_from_before_an_answer_puts_nothing_off(frontier: Arc<dyn Frontier>) {
    let urls = ["http://a/1", "http://a/2", "http://a/3"];
    frontier.seed(urls.map(new).into()).await.unwrap();
    let claim = ready(take(&frontier, 0, 3).await);
    frontier.put_off(claim, failure(10, false)).await.unwrap();
    let (late, well) = (
        ready(take(&frontier, 10, 3).await),
        ready(take(&frontier, 10, 3).await),
    );
    let mut answered = parsed(well);
    answered.result.host_answered = true;
    frontier.commit(answered).await.unwrap();
    frontier.put_off(late, failure(9_000, true)).await.unwrap();
    let again = ready(take(&frontier, 10, 3).await);
    assert_eq!((again.host.n_failures, again.host.given_up), (0, None));
}

pub async fn hosts_that_have_answered_leave_the_others_an_eighth(frontier: Arc<dyn Frontier>) {
    let url = |kind: &str, n: u32| new(&format!("http://{kind}{n}/"));
    let answered = (0..9).map(|n| url("answered", n));
    frontier.seed(answered.collect()).await.unwrap();
    let mut claims = Vec::new();
    for _ in 0..9 {
        claims.push(ready(take(&frontier, 0, 1).await));
    }
    for claim in claims {
        let well = HostUpdate::Ready {
            not_before: 0,
            delay_by: DelaySource::Setting,
            has_answered: true,
        };
        frontier.give_back(claim, well);
        let claim = ready(take(&frontier, 0, 1).await);
        assert!(claim.host.is_ready);
        frontier.give_back(claim, HostUpdate::Unready);
    }
    let mut linking = parsed(ready(take(&frontier, 0, 1).await));
    linking.result.requests = (0..9).map(|n| url("unreached", n)).collect();
    frontier.commit(linking).await.unwrap();
    let mut is_unreached = Vec::new();
    for _ in 0..9 {
        let claim = ready(take(&frontier, 0, 1).await);
        is_unreached.push(!claim.host.has_answered);
    }
    assert_eq!(is_unreached.iter().filter(|is| **is).count(), 1);
}

pub async fn hosts_are_counted_by_what_they_wait_for(frontier: Arc<dyn Frontier>) {
    let roots = [
        "http://a.test/1",
        "http://b.test/1",
        "http://c.test/1",
        "http://d.test/1",
    ];
    frontier.seed(roots.map(new).into()).await.unwrap();
    let by_state = |now, expected: &[(HostState, u64)]| {
        let expected = expected.iter().copied().collect();
        assert_eq!(frontier.present_hosts(now).by_state, expected);
    };
    let mut claims = Vec::new();
    for _ in roots {
        claims.push(ready(take(&frontier, 1_000, 1).await));
    }
    // A host whose last URL is in flight is not idle.
    by_state(1_000, &[(HostState::Ready, 4)]);
    let failure = |gives_up| HostFailure {
        until: 9_000,
        reason: "resolve".to_owned(),
        gives_up,
    };
    for claim in claims {
        match claim.request.url.host_str().unwrap() {
            "a.test" => {
                let mut commit = parsed(claim);
                commit.result.host_ready_at = 5_000;
                commit.result.requests = vec![new("http://a.test/2")];
                frontier.commit(commit).await.unwrap();
            }
            "b.test" => drop(frontier.commit(parsed(claim)).await.unwrap()),
            "c.test" => frontier.put_off(claim, failure(false)).await.unwrap(),
            _ => frontier.put_off(claim, failure(true)).await.unwrap(),
        }
    }
    let states = [
        (HostState::Waiting, 1),
        (HostState::BackingOff, 1),
        (HostState::GivenUp, 1),
        (HostState::Idle, 1),
    ];
    by_state(1_000, &states);
    // Once their time is over, all but the one without URLs may be asked, also if nobody takes a page.
    by_state(9_000, &[(HostState::Ready, 3), (HostState::Idle, 1)]);
}
