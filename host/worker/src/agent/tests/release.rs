//! Tests of what a worker gives back, and when.

use super::bench::{Wanted, shard};
use super::faulty_store::Network;
use super::*;
use crawler_model::crawl::Counts;
use crawler_model::resource::ShardState;
use crawler_store::catalog::encode;
use crawler_store::{Store as _, Txn};

/// Time well below the leader's patience.
const SOON: Duration = Duration::from_secs(5);

/// Returns the transaction of a leader that wants the shard back.
fn revoked(bench: &Bench, record: &ShardRecord) -> Txn {
    let keys = bench.parts.catalog.keys();
    let record = ShardRecord {
        state: ShardState::Revoking,
        ..record.clone()
    };
    let mirror = Assignment {
        name: record.resource.clone(),
        epoch: record.epoch,
        incarnation: bench.parts.node.incarnation,
        generation: Generation(1),
        order: Order::GiveBack,
        weight: 1,
        apart: None,
    };
    Txn::new().put(keys.shard(shard()), encode(&record)).put(
        keys.assignment(&bench.parts.node.id, shard()),
        encode(&mirror),
    )
}

async fn is_free(bench: &Bench) -> bool {
    bench.record().await.state == ShardState::Free
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_is_to_move_is_given_back_once_its_frontier_is_closed() {
    let bench = Bench::new().await;
    bench.want(Wanted::default()).await;
    let crawls = async |bench: &Bench| bench.n_asked() > 3;
    bench.wait_for("crawled", MINUTE, crawls).await;
    let record = bench.record().await;
    let txn = revoked(&bench, &record);
    bench.parts.catalog.store().commit(txn).await.unwrap();
    bench.wait_for("given back", SOON, is_free).await;
    assert!(!bench.is_open());
    let given = bench.record().await;
    assert_eq!(given.owner, None);
    assert_eq!(given.former_owners, record.writers());
    assert_eq!(given.epoch, record.epoch);
    assert!(given.counts.parsed >= 3, "{given:?}");
    // No copy of it is left here, and nothing more is done.
    let mirrors = bench.parts.catalog.keys().assignments();
    let left = bench.parts.catalog.store().list(&mirrors).await.unwrap();
    assert!(left.entries.is_empty());
    let n_asked = bench.n_asked();
    bench.pass(MINUTE).await;
    assert_eq!(bench.n_asked(), n_asked);
    // The shard may come back, and goes on where it was.
    bench.assign(2).await;
    let goes_on = async |bench: &Bench| bench.n_asked() > n_asked + 1;
    bench.wait_for("crawled again", MINUTE, goes_on).await;
    assert_eq!(bench.n_roots(), 1);
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_was_given_to_another_meanwhile_is_not_given_back() {
    let bench = Bench::new().await;
    bench.want(Wanted::default()).await;
    let crawls = async |bench: &Bench| bench.n_asked() > 3;
    bench.wait_for("crawled", MINUTE, crawls).await;
    let record = bench.record().await;
    let txn = revoked(&bench, &record);
    // The order is all that the worker sees before the shard has another owner.
    bench.store.turns(Network::Away);
    bench.store.store.commit(txn).await.unwrap();
    let other = ShardRecord {
        epoch: record.epoch.next(),
        ..record.clone()
    };
    let key = bench.parts.catalog.keys().shard(shard());
    let txn = Txn::new().put(key, encode(&other));
    bench.store.store.commit(txn).await.unwrap();
    bench.store.turns(Network::Good);
    bench.pass(MINUTE).await;
    assert_eq!(bench.record().await, other);
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_to_be_given_back_and_never_ran_here_is_given_back_too() {
    let bench = Bench::after(async |parts, store| {
        let txn = Wanted::default().txn(parts);
        store.store.commit(txn).await.unwrap();
        let key = parts.catalog.keys().shard(shard());
        let record = parts.catalog.read::<ShardRecord>(&key).await.unwrap();
        let record = record.unwrap().value;
        let txn = Txn::new().put(
            key,
            encode(&ShardRecord {
                state: ShardState::Revoking,
                ..record.clone()
            }),
        );
        store.store.commit(txn).await.unwrap();
        let mirror = parts.catalog.keys().assignment(&parts.node.id, shard());
        let present = parts.catalog.read::<Assignment>(&mirror).await.unwrap();
        let order = Assignment {
            order: Order::GiveBack,
            ..present.unwrap().value
        };
        let txn = Txn::new().put(mirror, encode(&order));
        store.store.commit(txn).await.unwrap();
    })
    .await;
    bench.wait_for("given back", SOON, is_free).await;
    assert_eq!(bench.n_asked(), 0);
    bench.stop().await;
}

/// Assigns a shard that was crawled elsewhere before to this worker, which cannot begin.
async fn of_another(bench: &Bench, limits: &'static str) -> Counts {
    bench.site.has_no_plugin.store(true, Ordering::Relaxed);
    let counts = Counts {
        parsed: 5,
        ..Counts::default()
    };
    let present = ShardRecord {
        counts: counts.clone(),
        ..bench.record().await
    };
    let wanted = Wanted {
        present: Some(present),
        limits,
        ..Wanted::default()
    };
    bench.want(wanted).await;
    counts
}

#[tokio::test(start_paused = true)]
async fn what_another_worker_counted_stays_where_this_one_did_not_come_to_open_the_frontier() {
    let bench = Bench::new().await;
    let counts = of_another(&bench, "{}").await;
    let waits = async |bench: &Bench| bench.waits().is_some();
    bench.wait_for("waits", MINUTE, waits).await;
    assert_eq!(bench.parts.crawls.status(None)[0].counts, None);
    let txn = revoked(&bench, &bench.record().await);
    bench.parts.catalog.store().commit(txn).await.unwrap();
    bench.wait_for("given back", SOON, is_free).await;
    assert_eq!(bench.record().await.counts, counts);
    bench.stop().await;

    let bench = Bench::new().await;
    let counts = of_another(&bench, r#"{"fuel": 18446744073709551615}"#).await;
    let failed = async |bench: &Bench| {
        let state = bench.record().await.state;
        matches!(state, ShardState::Failed { .. })
    };
    bench.wait_for("failed", MINUTE, failed).await;
    assert_eq!(bench.record().await.counts, counts);
    bench.stop().await;
}
