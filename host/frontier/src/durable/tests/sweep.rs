//! Tests of the records of earlier runs that a sweep leaves.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::*;
use crate::keys;
use crate::records;
use crawler_model::robots::KeptRobots;

/// URL met in the first run only.
const GONE: &str = "http://gone/";
/// URL met in the first run and in the second.
const AGAIN: &str = "http://again/";
/// URL met in the first run only, whose host is not to be asked for a long time.
const BUSY: &str = "http://busy/";
/// URL met in the third run only.
const LATE: &str = "http://late/";
/// Time of all runs.
const NOW: UnixMillis = 2 * DAY;
const DAY: UnixMillis = KeptRobots::VALID.as_millis() as UnixMillis;
/// Time when the busy host may be asked again.
const LONG: UnixMillis = 1_000_000_000;

/// Crawls these pages and one link of each, whose path has a number, and waits until the sweep of the run is done.
async fn crawl_run(objects: &Arc<InMemory>, run: u64, roots: &[&str]) -> Arc<DurableFrontier> {
    let frontiers = frontiers_in(objects, settings());
    let open_options = OpenOptions {
        clock: Arc::new(StillClock(NOW)),
        ..open_options(&frontiers, run).await
    };
    let durable = Arc::new(frontiers.open(open_options).await.unwrap());
    let frontier: Arc<dyn Frontier> = durable.clone();
    let seeds = roots.iter().map(|root| new(root)).collect();
    frontier.seed(seeds).await.unwrap();
    while let Take::Ready(claim) = take(&frontier, NOW, 1).await {
        let url = claim.request.url.clone();
        let mut commit = parsed(claim);
        if url.path() == "/" {
            commit.result.requests = vec![new(&format!("{url}list/{run}"))];
        }
        if url.as_str() == BUSY {
            commit.result.host_ready_at = LONG;
        }
        frontier.commit(commit).await.unwrap();
    }
    let swept = async {
        while durable.inner.state().head.swept_before < run {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(30), swept).await;
    in_time.expect("the sweep ends");
    durable
}

/// Returns the entries of the database below a prefix.
async fn entries(durable: &DurableFrontier, prefix: &[u8]) -> Vec<(Bytes, Bytes)> {
    let mut found = durable.inner.scan_prefix(prefix).await.unwrap();
    let mut entries = Vec::new();
    while let Some(entry) = found.next().await.unwrap() {
        entries.push(entry);
    }
    entries
}

/// Returns the pages and runs of the URL states, those of the hosts, and the runs of the patterns.
async fn left(
    durable: &DurableFrontier,
) -> (
    BTreeSet<(&'static str, u64)>,
    BTreeSet<(&'static str, u64)>,
    BTreeSet<u64>,
) {
    let site = |key: &[u8]| {
        let host = keys::parse_host(key).unwrap();
        let known = [GONE, AGAIN, BUSY, LATE].into_iter();
        let mut known = known.filter(|root| keys::host_of(&new(root).request) == host);
        known.next().expect("a host of these tests")
    };
    let states = entries(durable, keys::STATES).await.into_iter();
    let states = states.map(|(key, value)| {
        let state: records::State = durable.inner.decode(&value, "state").unwrap();
        (site(&key), state.run)
    });
    let hosts = entries(durable, keys::HOSTS).await.into_iter();
    let hosts = hosts.map(|(key, value)| {
        let host: records::Host = durable.inner.decode(&value, "host").unwrap();
        (site(&key), host.run)
    });
    let mut patterns = BTreeSet::new();
    for run in 0..5 {
        let found = entries(durable, &keys::patterns_of(Run(run))).await;
        patterns.extend((!found.is_empty()).then_some(run));
    }
    (states.collect(), hosts.collect(), patterns)
}

#[tokio::test]
async fn states_hosts_and_patterns_of_earlier_runs_go_once_nothing_needs_them() {
    let objects = Arc::new(InMemory::new());
    let first = crawl_run(&objects, 1, &[GONE, AGAIN, BUSY]).await;
    let all = BTreeSet::from([GONE, AGAIN, BUSY].map(|root| (root, 1)));
    let expected = (all.clone(), all.clone(), BTreeSet::from([1]));
    assert_eq!(left(&first).await, expected);
    first.close().await.unwrap();

    // States of the run before tell what has changed since.
    let second = crawl_run(&objects, 2, &[AGAIN]).await;
    let states = all.into_iter().chain([(AGAIN, 2)]).collect();
    let hosts = BTreeSet::from([(AGAIN, 2), (BUSY, 1)]);
    assert_eq!(left(&second).await, (states, hosts, BTreeSet::from([2])));
    second.close().await.unwrap();

    let third = crawl_run(&objects, 3, &[LATE]).await;
    let states = BTreeSet::from([(AGAIN, 2), (LATE, 3)]);
    let hosts = BTreeSet::from([(BUSY, 1), (LATE, 3)]);
    assert_eq!(left(&third).await, (states, hosts, BTreeSet::from([3])));
    third.close().await.unwrap();
}

#[tokio::test]
async fn robots_go_with_a_later_run_after_their_day() {
    let objects = Arc::new(InMemory::new());
    let first = crawl_run(&objects, 1, &[AGAIN]).await;
    for (root, at) in [(GONE, NOW - DAY), (AGAIN, NOW - DAY + 1)] {
        let robots = KeptRobots {
            origin: root.to_owned(),
            agent: "crawler".to_owned(),
            at,
            file: None,
        };
        first.keep_robots(&root.parse().unwrap(), robots);
    }
    first.close().await.unwrap();
    let second = crawl_run(&objects, 2, &[AGAIN]).await;
    let left = entries(&second, keys::ROBOTS).await;
    let left: Vec<_> = left.iter().map(|(key, _)| keys::parse_host(key)).collect();
    assert_eq!(left, [Some(keys::host_of(&new(AGAIN).request))]);
    second.close().await.unwrap();
}
