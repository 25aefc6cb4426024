//! Tests of hosts on disk: their records while they are not in memory, and their lists.

use std::collections::BTreeMap;
use std::time::Duration;

use slatedb::WriteBatch;

use super::*;
use crate::keys;
use crate::reader::{FrontierReader, HostPage};
use crate::{HostFailure, HostUpdate};
use crawler_model::frontier::{DelaySource, HostState};
use crawler_model::links::host_hash;
use crawler_model::robots::KeptRobots;

/// Ends a page of a host that has answered and has a crawl-delay, with these links.
async fn end(
    frontier: &Arc<dyn Frontier>,
    claim: Box<Claim>,
    ready_at: UnixMillis,
    links: &[&str],
) {
    let mut commit = parsed(claim);
    commit.result.host_answered = true;
    commit.result.delay_by = DelaySource::Robots;
    (commit.answered_at, commit.result.host_ready_at) = (ready_at.saturating_sub(500), ready_at);
    commit.result.requests = links.iter().map(|url| new(url)).collect();
    frontier.commit(commit).await.unwrap();
}

fn url_of(claim: &Claim) -> &str {
    claim.request.url.as_str()
}

#[tokio::test]
async fn a_forgotten_host_is_known_again_by_the_next_link() {
    let objects = Arc::new(InMemory::new());
    let durable = open(&objects, 1).await;
    let frontier: Arc<dyn Frontier> = durable.clone();
    frontier
        .seed(vec![new("http://a/1"), new("http://b/1")])
        .await
        .unwrap();
    let claims = [
        take(&frontier, 1_000, 1).await,
        take(&frontier, 1_000, 1).await,
    ]
    .map(ready);
    let (a, b): (Vec<_>, Vec<_>) = claims.into_iter().partition(|c| url_of(c) == "http://a/1");
    for claim in a {
        end(&frontier, claim, 1_500, &[]).await;
    }
    // The clock of the host is over, and none of its URLs is left.
    let id = keys::host_of(&new("http://a/1").request);
    ready_none(take(&frontier, 2_000, 0).await);
    durable.inner.state().bench.forget_idle(2_000);
    assert!(!durable.inner.state().bench.knows(id));
    for claim in b {
        end(&frontier, claim, 2_500, &["http://a/2"]).await;
    }
    assert_eq!(frontier.counts().hosts, 2);
    let again = ready(take(&frontier, 2_000, 1).await);
    assert_eq!(url_of(&again), "http://a/2");
    assert!(again.host.has_answered);
    drop(frontier);

    // The same holds after a restart, when no cache knows which hosts were met.
    let frontier: Arc<dyn Frontier> = reopen(&objects, 1).await;
    let again = ready(next(&frontier, 5_000).await);
    end(
        &frontier,
        again,
        5_500,
        &["http://a/3", "http://b/2", "http://c/1"],
    )
    .await;
    assert_eq!(frontier.counts().hosts, 3);
}

fn ready_none(take: Take) {
    assert!(!matches!(take, Take::Ready(_)), "{take:?}");
}

#[tokio::test]
async fn hosts_are_listed_with_what_each_waits_for() {
    let objects = Arc::new(InMemory::new());
    let frontier: Arc<dyn Frontier> = open(&objects, 1).await;
    let hosts = ["asked", "done", "lost", "new", "off"];
    let roots = hosts.map(|host| new(&format!("http://{host}:81/")));
    frontier.seed(roots.into()).await.unwrap();
    let mut claims = Vec::new();
    for _ in hosts {
        claims.push(ready(take(&frontier, 10_000, 1).await));
    }
    for claim in claims {
        let failure = |gives_up| HostFailure {
            until: 90_000,
            reason: "resolve".to_owned(),
            gives_up,
        };
        match claim.request.url.host_str().unwrap() {
            "asked" => end(&frontier, claim, 70_000, &["http://asked:81/1"]).await,
            "done" => end(&frontier, claim, 10_500, &[]).await,
            "lost" => frontier.put_off(claim, failure(true)).await.unwrap(),
            "off" => frontier.put_off(claim, failure(false)).await.unwrap(),
            _ => frontier.give_back(claim, HostUpdate::None),
        }
    }
    let present = frontier.present_hosts(20_000);
    frontier.close().await.unwrap();
    let reader = FrontierReader::open(objects.clone(), shard()).await;
    let reader = reader.unwrap().unwrap();
    let list = async |only, from, max| reader.hosts(only, from, max, 20_000).await.unwrap();
    let mut found = Vec::new();
    let mut from = None;
    loop {
        let HostPage { entries, next } = list(None, from, 2).await;
        found.extend(entries);
        from = next;
        if from.is_none() {
            break;
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    let told = found.iter().map(|host| {
        let state = host.state.as_str();
        let (n_due, n_failures, reason) = (host.n_due, host.n_failures, &host.reason);
        let (name, delay, by) = (&host.name, host.delay_ms, host.delay_by.as_str());
        format!("{name} {state} {n_due} {delay} {by} {n_failures} {reason}")
    });
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            "asked:81 waiting 1 60000 robots 0 ",
            "done:81 idle 0 500 robots 0 ",
            "lost:81 given-up 1 0 setting 1 resolve",
            "new:81 ready 1 0 setting 0 ",
            "off:81 backing-off 1 0 setting 1 resolve",
        ]
    );
    let lost = list(Some(HostState::GivenUp), None, 9).await;
    assert_eq!(lost.entries, found[2..3]);
    assert_eq!(lost.next, None);
    let stats = reader.stats(20_000).await.unwrap();
    assert_eq!(stats.n_hosts, 4);
    assert!(stats.hosts_by_state.values().all(|n| *n == 1), "{stats:?}");
    assert_eq!(stats.hosts_by_state.len(), HostState::ALL.len());
    // The owner says the same of that moment.
    assert_eq!(present.by_state, stats.hosts_by_state);
    assert_eq!(present.in_flight, BTreeMap::new());
    reader.close().await;
}

#[tokio::test]
async fn pages_in_flight_are_told_by_host() {
    let objects = Arc::new(InMemory::new());
    let frontier: Arc<dyn Frontier> = open(&objects, 1).await;
    let roots = ["http://a/1", "http://a/2", "http://a/3", "http://b/1"];
    frontier.seed(roots.map(new).into()).await.unwrap();
    let mut claims = Vec::new();
    for _ in 0..3 {
        claims.push(ready(take(&frontier, 1_000, 2).await));
    }
    let hash = |url: &str| host_hash(&url.parse().unwrap());
    let (a, b) = (hash("http://a/"), hash("http://b/"));
    assert_eq!(
        frontier.present_hosts(1_000).in_flight,
        [(a, 2), (b, 1)].into()
    );
    for claim in claims {
        end(&frontier, claim, 2_000, &[]).await;
    }
    assert_eq!(frontier.present_hosts(1_000).in_flight, BTreeMap::new());
}

#[tokio::test]
async fn robots_are_known_to_later_openings() {
    let objects = Arc::new(InMemory::new());
    let robots = |origin: &str, file| KeptRobots {
        origin: origin.to_owned(),
        agent: "crawler".to_owned(),
        at: 1_000,
        file,
    };
    let url = |url: &str| url.parse().unwrap();
    let frontier: Arc<dyn Frontier> = open(&objects, 1).await;
    let (a, b) = (
        robots("http://a", Some("x".into())),
        robots("http://b", None),
    );
    frontier.keep_robots(&url("http://a/1"), a.clone());
    frontier.keep_robots(&url("http://b/1"), b.clone());
    // There is no room for what would fill the memory.
    let large = Some(vec![b' '; 1 << 20].into());
    frontier.keep_robots(&url("http://c/1"), robots("http://c", large));
    frontier.seed(vec![new("http://a/1")]).await.unwrap();
    // Of this opening, only its process knows them.
    let kept = async |frontier: &Arc<dyn Frontier>, host: &str| {
        let kept = frontier.kept_robots(&url(host)).await;
        kept.unwrap()
    };
    assert_eq!(kept(&frontier, "http://a/2").await, None);
    // There is room again, once those are written.
    let half = || Some(vec![b' '; 600 << 10].into());
    frontier.keep_robots(&url("http://d/1"), robots("http://d", half()));
    let claim = ready(take(&frontier, 1_000, 1).await);
    end(&frontier, claim, 1_000, &["http://e/1"]).await;
    let e = robots("http://e", half());
    frontier.keep_robots(&url("http://e/1"), e.clone());
    let claim = ready(next(&frontier, 1_000).await);
    end(&frontier, claim, 1_000, &[]).await;
    frontier.settle().await.unwrap();
    drop(frontier);
    let frontier: Arc<dyn Frontier> = reopen(&objects, 1).await;
    assert_eq!(kept(&frontier, "http://e/2").await, Some(e));
    assert_eq!(kept(&frontier, "http://a/2").await, Some(a));
    assert_eq!(kept(&frontier, "http://b/2").await, Some(b));
    assert_eq!(kept(&frontier, "http://c/2").await, None);
}

#[tokio::test]
async fn robots_that_cannot_be_read_stop_no_crawl() {
    let objects = Arc::new(InMemory::new());
    let durable = open(&objects, 1).await;
    let frontier: Arc<dyn Frontier> = durable.clone();
    frontier.seed(vec![new("http://a/1")]).await.unwrap();
    let url = "http://a/1".parse().unwrap();
    let mut batch = WriteBatch::new();
    batch.put(keys::robots(keys::host_of_url(&url)), b"\xff");
    durable.inner.db.write(batch).await.unwrap();
    durable.inner.db.flush().await.unwrap();
    drop((durable, frontier));
    let frontier: Arc<dyn Frontier> = reopen(&objects, 1).await;
    frontier.kept_robots(&url).await.unwrap_err();
    // The next host costs no further try.
    assert_eq!(frontier.kept_robots(&url).await.unwrap(), None);
    let claim = ready(take(&frontier, 1_000, 1).await);
    end(&frontier, claim, 1_000, &[]).await;
    drop(frontier);
    // The next run removes what cannot be read.
    let durable = open(&objects, 2).await;
    let frontier: Arc<dyn Frontier> = durable.clone();
    frontier.seed(Vec::new()).await.unwrap();
    let swept = async {
        while durable.inner.has_kept_robots().await.unwrap() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(30), swept).await;
    in_time.expect("it is swept");
}
