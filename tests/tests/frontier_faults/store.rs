//! Faults of the object store under a crawl: it refuses, breaks off, is full or slow, and loses answers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crawler_crawl::CrawlEnd;
use crawler_frontier::Frontier as _;
use crawler_frontier::durable::{DurableFrontier, DurableSettings, Frontiers};
use crawler_tests::faulty::{Fault, Faults, FaultyStore};
use crawler_tests::random::Random;
use crawler_tests::twin::{Kept, Tree};
use object_store::memory::InMemory;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::shard::{counted, open};

const N_PAGES: u64 = 1_500;
pub(crate) const PACE: Duration = Duration::from_millis(20);
/// Deadline of a crawl with faults in it, on a busy machine.
const DEADLINE: Duration = Duration::from_secs(90);

pub(crate) fn settings() -> DurableSettings {
    DurableSettings {
        deadline: Duration::from_secs(5),
        stall_after: Duration::from_millis(500),
        // A short interval makes many calls, and so many faults.
        flush_interval: Duration::from_millis(5),
        ..DurableSettings::default()
    }
}

pub(crate) fn frontiers(faults: &Faults, settings: DurableSettings) -> Arc<Frontiers> {
    let objects = FaultyStore::new(Arc::new(InMemory::new()), faults.clone());
    Arc::new(Frontiers::new(Arc::new(objects), settings))
}

/// State of a crawl that is seen while it runs.
#[derive(Default)]
pub(crate) struct Seen {
    /// Frontier that was opened last.
    frontier: Option<Arc<DurableFrontier>>,
    /// Reasons why it could not be used, with their numbers.
    pub(crate) why: BTreeMap<&'static str, u32>,
}

/// Crawls to the end and reopens the frontier whenever it cannot be used, as a worker does; counts the reasons.
/// Everything must be there in the end, and durable.
pub(crate) async fn crawl(frontiers: &Arc<Frontiers>, pace: Duration, seen: &watch::Sender<Seen>) {
    let (tree, kept) = (Tree::new(N_PAGES, pace, |_| {}), Kept::default());
    let started = Instant::now();
    let mut was_opened = false;
    loop {
        assert!(
            started.elapsed() < DEADLINE,
            "not finished: {:?}",
            seen.borrow().why
        );
        let error = match open(frontiers, was_opened).await {
            Ok(frontier) => {
                was_opened = true;
                seen.send_modify(|seen| seen.frontier = Some(frontier.clone()));
                let stop = CancellationToken::new();
                let end = tree
                    .crawl(frontier.clone(), Box::new(kept.clone()), stop)
                    .await;
                let (counts, stalled) = (frontier.counts(), frontier.stalled());
                let _closed = frontier.close().await;
                match end {
                    CrawlEnd::Finished => {
                        assert_eq!(kept.pages(), (0..N_PAGES).collect::<Vec<_>>());
                        assert_eq!(counted(&counts), (N_PAGES, N_PAGES, 0));
                        assert_eq!(stalled, None);
                        return;
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
        seen.send_modify(|seen| *seen.why.entry(error.condition()).or_default() += 1);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until a crawl is as wished.
pub(crate) async fn until<T>(what: &str, wished: impl Fn() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = wished() {
            return found;
        }
        assert!(started.elapsed() < DEADLINE, "no {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until a tenth of the pages is read.
pub(crate) async fn has_come_some_way(seen: &watch::Receiver<Seen>) -> Arc<DurableFrontier> {
    let begun = || {
        let frontier = seen.borrow().frontier.clone();
        frontier.filter(|frontier| frontier.counts().parsed > N_PAGES / 10)
    };
    until("pages", begun).await
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
    let frontiers = frontiers(&faults, settings());
    let (seen, _) = watch::channel(Seen::default());
    crawl(&frontiers, Duration::from_millis(3), &seen).await;
    let why = seen.borrow().why.clone();
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

/// Gives the store a fault until it is seen from outside, and checks that the crawl then goes on.
async fn outage(fault: Fault) {
    let faults = Faults::default();
    let frontiers = frontiers(&faults, settings());
    let (seen, present) = watch::channel(Seen::default());
    let outage = async {
        let frontier = has_come_some_way(&present).await;
        assert_eq!(frontier.stalled(), None);
        faults.always(fault);
        let why = until("word of it", || frontier.stalled()).await;
        let n_read = frontier.counts().parsed;
        faults.none();
        assert!(n_read < N_PAGES, "there was nothing left to wait");
        why
    };
    let ((), why) = tokio::join!(crawl(&frontiers, PACE, &seen), outage);
    println!("{why}");
    assert!(why.starts_with("nothing could be written for "), "{why}");
    assert!(faults.met()[&fault] > 0);
    // It was over long before the deadline of a call.
    assert_eq!(seen.borrow().why, BTreeMap::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_of_the_store_is_said_and_waited_for() {
    outage(Fault::Unavailable).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_store_is_said_and_waited_for() {
    outage(Fault::Full).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_away_at_the_opening_is_waited_for_by_name() {
    let faults = Faults::default();
    let settings = DurableSettings {
        deadline: Duration::from_secs(1),
        ..settings()
    };
    let frontiers = frontiers(&faults, settings);
    let (seen, present) = watch::channel(Seen::default());
    faults.always(Fault::Unavailable);
    let heal = async {
        until("opening that failed", || {
            (!present.borrow().why.is_empty()).then_some(())
        })
        .await;
        faults.none();
    };
    tokio::join!(crawl(&frontiers, Duration::ZERO, &seen), heal);
    let why: Vec<&str> = seen.borrow().why.keys().copied().collect();
    assert_eq!(why, ["StorageUnavailable"]);
}
