//! A million ready URLs on one host, next to a thousand hosts of ten: the time that the small hosts take, and
//! the time that they take alone.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crawler_frontier::durable::DurableSettings;
use crawler_frontier::{Claim, Ended, Frontier as _, NewRequest, Take};

use super::work;

const BIG: u32 = 0;
const N_BIG: u64 = 1_000_000;
const N_SMALL_HOSTS: u32 = 1_000;
const N_EACH: u64 = 10;
/// Number of pages in flight; the time of each and the delay between two pages of a host follow.
const CONCURRENCY: usize = 64;
const FETCH: Duration = Duration::from_millis(5);
const DELAY_MS: u64 = 20;

pub(crate) async fn run() {
    println!("a thousand hosts of ten URLs");
    let alone = small_hosts(0).await;
    println!("  alone {:.2} s", alone.as_secs_f64());
    let beside = small_hosts(N_BIG).await;
    let ratio = beside.as_secs_f64() / alone.as_secs_f64();
    println!(
        "  beside one of {N_BIG} {:.2} s: {ratio:.2} (goal: at most 1.1)",
        beside.as_secs_f64()
    );
}

async fn small_hosts(n_big: u64) -> Duration {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let frontiers = work::frontiers(folder.path(), DurableSettings::default());
    let frontier = work::open(&frontiers).await;
    frontier
        .seed(vec![work::request(u32::MAX, 0)])
        .await
        .expect("it is open");
    let mut pages: Vec<Vec<NewRequest>> = (0..n_big / 1_000)
        .map(|n| {
            (0..1_000)
                .map(|page| work::request(BIG, n * 1_000 + page))
                .collect()
        })
        .collect();
    for host in 1..=N_SMALL_HOSTS {
        pages.push((0..N_EACH).map(|page| work::request(host, page)).collect());
    }
    // The next URL, whichever it is, stores the links and waits again.
    for links in pages {
        let claim = work::take(&frontier, 1).await;
        let mut commit = work::commit(claim, links);
        commit.result.items = Vec::new();
        let reason = "again".to_owned();
        commit.result.ended = Ended::Retry { at: 1, reason };
        frontier.commit(commit).await.expect("it is open");
    }
    frontier.settle().await.expect("it is open");

    let began = Instant::now();
    let now = || 1_000 + began.elapsed().as_millis() as u64;
    let mut in_flight: VecDeque<(Instant, Box<Claim>)> = VecDeque::new();
    let mut n_left = u64::from(N_SMALL_HOSTS) * N_EACH;
    while n_left > 0 {
        while in_flight.len() < CONCURRENCY
            && let Take::Ready(claim) = frontier.take(now(), 1).expect("it is open")
        {
            in_flight.push_back((Instant::now() + FETCH, claim));
        }
        let Some((at, claim)) = in_flight.pop_front() else {
            tokio::time::sleep(Duration::from_millis(1)).await;
            continue;
        };
        tokio::time::sleep(at.saturating_duration_since(Instant::now())).await;
        let host = claim.request.host();
        let is_small = host != "host-0.test:80";
        n_left -= u64::from(is_small);
        let mut commit = work::commit(claim, Vec::new());
        commit.result.host_ready_at = now() + DELAY_MS;
        frontier.commit(commit).await.expect("it is open");
        if n_left.is_multiple_of(500) {
            work::drain(&frontier).await;
        }
    }
    let took = began.elapsed();
    frontier.close().await.expect("it closes");
    took
}
