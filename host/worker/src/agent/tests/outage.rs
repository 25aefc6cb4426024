//! Tests of a worker whose lease cannot be counted on, and of one that is registered again.

use super::bench::LEASE_TTL;
use super::faulty_store::Network;
use super::*;
use crawler_store::{Store as _, Txn};

/// Returns a crawl under way whose worker has lost its lease, with the store away.
pub(super) async fn cut_off() -> Bench {
    let bench = Bench::new().await;
    bench.assign(1).await;
    bench
        .wait_for("crawled", MINUTE, async |bench| bench.n_asked() > 2)
        .await;
    bench.store.turns(Network::Away);
    bench
        .wait_for("over", LEASE_TTL, async |bench| !bench.is_registered())
        .await;
    bench
}

async fn check_that_nothing_is_asked(bench: &Bench, time: Duration) {
    let asked = bench.asked();
    bench.pass(time).await;
    assert_eq!(bench.asked(), asked);
}

#[tokio::test(start_paused = true)]
async fn s17_nothing_is_fetched_while_the_store_is_away_and_then_the_crawl_goes_on_as_it_was() {
    let bench = Bench::new().await;
    bench.assign(1).await;
    bench
        .wait_for("crawled", MINUTE, async |bench| bench.n_asked() > 2)
        .await;
    let before = bench.record().await;
    bench.store.turns(Network::Away);
    let since = tokio::time::Instant::now();
    let n_asked = bench.n_asked();
    bench
        .wait_for("over", LEASE_TTL, async |bench| !bench.is_registered())
        .await;
    assert!(
        since.elapsed() <= LEASE_TTL * 2 / 3,
        "{:?}",
        since.elapsed()
    );
    assert!(bench.n_asked() > n_asked, "it crawls until then");
    // The answers to earlier requests are committed, and their items are written.
    bench
        .wait_for("written", MINUTE, async |bench| {
            bench.n_items() == bench.n_asked()
        })
        .await;
    check_that_nothing_is_asked(&bench, LEASE_TTL * 3).await;
    assert!(bench.is_open());

    let n_asked = bench.n_asked();
    bench.store.turns(Network::Good);
    bench
        .wait_for("goes on", MINUTE, async |bench| {
            bench.n_asked() > n_asked + 2
        })
        .await;
    assert_eq!(bench.record().await, before, "not opened again");
    assert_eq!(bench.n_roots(), 1);
    let mut asked = bench.asked();
    let n_asked = asked.len();
    asked.dedup();
    assert_eq!(asked.len(), n_asked, "no page is fetched again");
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn f06_a_crawl_that_was_given_to_another_meanwhile_ends_without_a_word() {
    let bench = cut_off().await;
    let keys = bench.parts.catalog.keys();
    let mirror = keys.assignment(&bench.parts.node.id, bench::shard());
    let given = Txn::new().delete(mirror);
    bench.store.store.commit(given).await.unwrap();
    let shard = keys.shard(bench::shard());
    let before = bench.store.store.get(&shard).await.unwrap();
    let asked = bench.asked();
    // The node is registered well before it has seen what it has lost.
    bench.store.turns(Network::SlowLists);
    bench
        .wait_for("ended", MINUTE, async |bench| bench.epoch().is_none())
        .await;
    bench.pass(MINUTE).await;
    assert!(bench.is_registered());
    assert_eq!(bench.asked(), asked);
    assert_eq!(bench.store.store.get(&shard).await.unwrap(), before);
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn f06_a_lost_shard_is_left_within_seconds_though_no_watch_tells() {
    let bench = Bench::after(async |_, store| store.store.silence_watches()).await;
    bench.assign(1).await;
    bench
        .wait_for("crawled", MINUTE, async |bench| bench.n_asked() > 2)
        .await;
    let mirror = bench.parts.catalog.keys();
    let mirror = mirror.assignment(&bench.parts.node.id, bench::shard());
    let given = Txn::new().delete(mirror);
    bench.store.store.commit(given).await.unwrap();
    bench
        .wait_for("ended", 8 * SECOND, async |bench| bench.epoch().is_none())
        .await;
    assert!(bench.is_registered());
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn f06_a_crawl_that_came_back_under_another_epoch_is_opened_again() {
    let bench = cut_off().await;
    let before = {
        bench.store.turns(Network::NoLists);
        bench.assign(2).await;
        bench.record().await
    };
    check_that_nothing_is_asked(&bench, LEASE_TTL).await;
    let n_asked = bench.n_asked();
    bench.store.turns(Network::Good);
    bench
        .wait_for("goes on", MINUTE, async |bench| bench.n_asked() > n_asked)
        .await;
    assert_eq!(bench.epoch(), Some(Epoch(2)));
    assert!(bench.record().await.storage_epoch > before.storage_epoch);
    assert_eq!(bench.n_roots(), 1);
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_fetched_under_a_new_lease_before_the_assignments_were_seen() {
    let bench = cut_off().await;
    bench.store.turns(Network::NoLists);
    bench
        .wait_for("registered", MINUTE, async |bench| bench.is_registered())
        .await;
    check_that_nothing_is_asked(&bench, MINUTE).await;
    assert!(bench.is_open());
    let n_asked = bench.n_asked();
    bench.store.turns(Network::Good);
    bench
        .wait_for("goes on", MINUTE, async |bench| bench.n_asked() > n_asked)
        .await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_not_answered_at_the_deadline_is_given_up_and_sent_again_later() {
    let bench = Bench::new().await;
    bench.assign(1).await;
    bench
        .wait_for("crawled", MINUTE, async |bench| bench.n_asked() > 2)
        .await;
    bench.site.is_mute.store(true, Ordering::Relaxed);
    bench
        .wait_for("unanswered", MINUTE, async |bench| {
            bench.parts.crawls.status(None)[0].in_flight == 1
        })
        .await;
    bench.pass(MINUTE).await;
    let asked = bench.asked();
    bench.store.turns(Network::Away);
    bench
        .wait_for("put back", LEASE_TTL, async |bench| {
            bench.parts.crawls.status(None)[0].in_flight == 0
        })
        .await;
    assert!(!bench.is_registered());
    assert!(bench.is_open());
    bench.site.is_mute.store(false, Ordering::Relaxed);
    bench.store.turns(Network::Good);
    bench
        .wait_for("goes on", MINUTE, async |bench| {
            bench.n_asked() > asked.len() + 1
        })
        .await;
    let last = asked.last().unwrap();
    let n_sent = bench.asked().iter().filter(|path| *path == last).count();
    assert_eq!(n_sent, 2);
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_is_cut_off_can_be_stopped() {
    let bench = cut_off().await;
    bench.stop().await;
}
