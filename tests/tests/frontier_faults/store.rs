//! The object store under a crawl: it refuses, breaks off, is full or slow, and loses answers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crawler::frontier::Frontier as _;
use crawler::frontier::durable::{DurableSettings, Frontiers};
use crawler::worker::crawl::CrawlEnd;
use crawler_tests::faulty::{Fault, Faults, FaultyStore};
use crawler_tests::random::Random;
use crawler_tests::twin::{Kept, Tree};
use object_store::memory::InMemory;
use tokio_util::sync::CancellationToken;

use crate::shard::{counted, open};

const N_PAGES: u64 = 1_500;
/// For a crawl with faults in it, on a busy machine.
const DEADLINE: Duration = Duration::from_secs(240);

fn frontiers(faults: &Faults) -> Arc<Frontiers> {
    let objects = FaultyStore::new(Arc::new(InMemory::new()), faults.clone());
    let settings = DurableSettings {
        deadline: Duration::from_secs(5),
        stall_after: Duration::from_millis(500),
        // Many calls make many faults.
        flush_interval: Duration::from_millis(5),
        ..DurableSettings::default()
    };
    Arc::new(Frontiers::new(Arc::new(objects), settings))
}

/// Crawls to the end and opens again whenever the frontier cannot be used, as a worker does; counts
/// why. Everything must be there in the end.
async fn crawl(frontiers: &Arc<Frontiers>, pace: Duration) -> BTreeMap<&'static str, u32> {
    let (tree, kept) = (Tree::new(N_PAGES, pace, |_| {}), Kept::default());
    let mut why = BTreeMap::new();
    let started = Instant::now();
    let mut was_opened = false;
    loop {
        assert!(started.elapsed() < DEADLINE, "not finished: {why:?}");
        let error = match open(frontiers, was_opened).await {
            Ok(frontier) => {
                was_opened = true;
                let stop = CancellationToken::new();
                let end = tree
                    .crawl(frontier.clone(), Box::new(kept.clone()), stop)
                    .await;
                let counts = frontier.counts();
                let _closed = frontier.close().await;
                match end {
                    CrawlEnd::Finished => {
                        assert_eq!(kept.pages(), (0..N_PAGES).collect::<Vec<_>>());
                        assert_eq!(counted(&counts), (N_PAGES, N_PAGES, 0));
                        return why;
                    }
                    CrawlEnd::Frontier(error) => error,
                    other => panic!("{other:?}"),
                }
            }
            Err(error) => error,
        };
        println!(
            "after {:?}: {}: {error}",
            started.elapsed(),
            error.condition()
        );
        *why.entry(error.condition()).or_default() += 1;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_the_store_lose_nothing() {
    let faults = Faults::default();
    let all = [
        Fault::Unavailable,
        Fault::TooMany,
        Fault::Reset,
        Fault::AnswerLost,
        Fault::Full,
        Fault::Slow(Duration::from_millis(30)),
    ];
    faults.chance(25, &all, Random::new("faults"));
    let why = crawl(&frontiers(&faults), Duration::from_millis(3)).await;
    let met = faults.met();
    println!(
        "{met:?} of {} calls; opened again for {why:?}",
        faults.n_calls()
    );
    assert_eq!(met.len(), all.len(), "{met:?}");
    let known = ["StorageUnavailable", "FrontierFenced"];
    assert!(
        why.keys().all(|condition| known.contains(condition)),
        "{why:?}"
    );
}

async fn outage(fault: Fault) {
    let faults = Faults::default();
    let frontiers = frontiers(&faults);
    let (theirs, switch) = (frontiers.clone(), faults.clone());
    let outage = async {
        let n_usual = 40;
        while switch.n_calls() < n_usual {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        switch.always(fault);
        tokio::time::sleep(Duration::from_secs(3)).await;
        switch.none();
    };
    let (why, ()) = tokio::join!(crawl(&theirs, Duration::from_millis(20)), outage);
    assert!(faults.met()[&fault] > 0);
    assert!(why.keys().all(|c| *c == "StorageUnavailable"), "{why:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_of_the_store_is_waited_for() {
    outage(Fault::Unavailable).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_store_is_waited_for() {
    outage(Fault::Full).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_does_not_answer_is_said_to_be_stalled() {
    let faults = Faults::default();
    let frontier = open(&frontiers(&faults), false).await.unwrap();
    assert_eq!(frontier.stalled(), None);
    faults.always(Fault::Unavailable);
    let tree = Tree::new(50, Duration::ZERO, |_| {});
    let stop = CancellationToken::new();
    let kept = Kept::default();
    let crawl = tree.crawl(frontier.clone(), Box::new(kept.clone()), stop);
    let heal = async {
        let started = Instant::now();
        while frontier.stalled().is_none() {
            assert!(started.elapsed() < DEADLINE, "nobody says that it stalls");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        faults.none();
    };
    let (end, ()) = tokio::join!(crawl, heal);
    println!("{end:?}");
    assert!(
        matches!(end, CrawlEnd::Finished | CrawlEnd::Frontier(_)),
        "{end:?}"
    );
}
