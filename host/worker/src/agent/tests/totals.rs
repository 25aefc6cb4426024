//! Tests of the totals of a worker, as others read them.

use super::bench::Wanted;
use super::*;
use crawler_model::event::EventKind;
use crawler_model::id::Run;
use crawler_model::status::WorkerStatus;
use crawler_store::Revision;
use crawler_store::catalog::Versioned;

/// Time for the next write, also after one with events.
const SOON: Duration = Duration::from_secs(8);

async fn told(bench: &Bench) -> Option<Versioned<WorkerStatus>> {
    let key = bench.parts.catalog.keys().status(&bench.parts.node.id);
    bench.parts.catalog.read(&key).await.unwrap()
}

async fn wait_for_crawls(bench: &Bench, running: u64, waiting: u64) {
    bench
        .wait_for("told", SOON, async |bench| {
            let told = told(bench).await.map(|told| told.value);
            told.is_some_and(|told| (told.running, told.waiting) == (running, waiting))
        })
        .await;
}

/// Returns the number of revisions of the record in `seconds` seconds, looking ten times a second.
async fn n_writes(bench: &Bench, seconds: u32, each: impl Fn()) -> usize {
    let mut seen = vec![told(bench).await.map_or(Revision(0), |told| told.revision)];
    for _ in 0..seconds * 10 {
        each();
        bench.pass(SECOND / 10).await;
        seen.extend(told(bench).await.map(|told| told.revision));
    }
    seen.dedup();
    seen.len() - 1
}

#[tokio::test(start_paused = true)]
async fn others_see_what_a_worker_does_when_a_crawl_begins_waits_and_ends() {
    let bench = Bench::new().await;
    wait_for_crawls(&bench, 0, 0).await;
    bench.want(Wanted::default()).await;
    wait_for_crawls(&bench, 1, 0).await;
    bench.pass(MINUTE).await;
    let seen = told(&bench).await.unwrap().value;
    assert!(
        seen.pages > 20 && seen.items > 20 && seen.bytes > 80,
        "{seen:?}"
    );
    assert_eq!(seen.incarnation, bench.parts.node.incarnation);

    let items = bench.data.items_folder(bench::shard().resource).unwrap();
    std::fs::remove_dir_all(&items).unwrap();
    std::fs::write(&items, "in the way").unwrap();
    bench.unassign().await;
    wait_for_crawls(&bench, 0, 0).await;
    bench.assign(2).await;
    wait_for_crawls(&bench, 0, 1).await;
    std::fs::remove_file(&items).unwrap();
    bench
        .wait_for("goes on", MINUTE, async |bench| bench.waits().is_none())
        .await;
    wait_for_crawls(&bench, 1, 0).await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_worker_has_done_outlasts_its_crawls() {
    let bench = Bench::new().await;
    bench.want(Wanted::default()).await;
    bench.pass(MINUTE).await;
    bench.unassign().await;
    wait_for_crawls(&bench, 0, 0).await;
    let left = told(&bench).await.unwrap().value;
    let done = left.since_start.unwrap();
    assert_eq!((left.pages, left.items), (0, 0));
    assert!(done.pages > 20 && done.items > 20, "{done:?}");
    // The crawl comes back with the pages of its run, which are no growth.
    bench.assign(2).await;
    bench
        .wait_for("told of more", 3 * MINUTE, async |bench| {
            let told = told(bench).await.unwrap().value;
            told.since_start.unwrap().pages > done.pages
        })
        .await;
    let back = told(&bench).await.unwrap().value;
    let grown = back.since_start.unwrap().pages - done.pages;
    assert!(grown + 10 < back.pages, "{grown}: {back:?}");
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn totals_are_written_every_half_minute_and_at_most_once_a_second() {
    let bench = Bench::new().await;
    bench.want(Wanted::default()).await;
    bench.pass(SOON).await;
    let n = n_writes(&bench, 120, || {}).await;
    assert!((3..=4).contains(&n), "{n}");
    let n = n_writes(&bench, 10, || bench.parts.crawls.changed.notify_one()).await;
    assert!((5..=10).contains(&n), "{n}");
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn totals_with_events_are_written_more_rarely() {
    let bench = Bench::new().await;
    bench.want(Wanted::default()).await;
    wait_for_crawls(&bench, 1, 0).await;
    let incidents = &bench.parts.crawls.incidents;
    let crawl = incidents.of_crawl(bench::shard().resource, Run(1));
    crawl.add(EventKind::RuleKilled, "out-of-fuel in rule page");
    bench
        .wait_for("shown", 3 * MINUTE, async |bench| {
            let told = told(bench).await;
            told.is_some_and(|told| !told.value.events.is_empty())
        })
        .await;
    let n = n_writes(&bench, 20, || bench.parts.crawls.changed.notify_one()).await;
    assert!((3..=5).contains(&n), "{n}");
    // The leader has seen it since.
    bench
        .wait_for("shown no more", 4 * MINUTE, async |bench| {
            let told = told(bench).await;
            told.is_some_and(|told| told.value.events.is_empty())
        })
        .await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn totals_go_with_the_lease_and_are_told_again_under_the_next() {
    let bench = Bench::new().await;
    wait_for_crawls(&bench, 0, 0).await;
    let term = bench.parts.registered.borrow().clone().unwrap();
    let store = bench.parts.catalog.store();
    store.revoke_lease(term.id()).await.unwrap();
    assert!(told(&bench).await.is_none());
    bench
        .wait_for("told again", bench::LEASE_TTL, async |bench| {
            told(bench).await.is_some()
        })
        .await;
    assert!(!term.is_held());
    bench.stop().await;
}
