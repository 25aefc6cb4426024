//! Tests of when a node is registered, when again, and when its id belongs to another process.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crawler_model::id::{Incarnation, ResourceId};
use crawler_model::node::{CallToken, Role};
use crawler_model::resource::ShardId;
use crawler_store::embedded::{EmbeddedStore, Settings};
use crawler_store::keys::Keys;

const TTL: Duration = Duration::from_millis(600);
const DEADLINE: Duration = Duration::from_secs(30);

fn catalog(folder: &tempfile::TempDir) -> Catalog {
    let store = EmbeddedStore::open(folder.path(), Settings::default()).unwrap();
    Catalog::new(Arc::new(store), Keys::default())
}

fn node(incarnation: u64) -> Node {
    Node {
        id: "worker-1".parse().unwrap(),
        role: Role::Worker,
        address: format!("127.0.0.1:{incarnation}"),
        http: String::new(),
        pprof: String::new(),
        incarnation: Incarnation(incarnation),
        labels: BTreeMap::new(),
        capacity: 1,
        version: "0".into(),
        interface: String::new(),
        draining: false,
        started_at: 1_700_000_000_000,
        call_token: CallToken::default(),
        shares_turns: false,
        tls: false,
    }
}

fn key(catalog: &Catalog) -> String {
    catalog.keys().node(Role::Worker, &node(1).id)
}

async fn registered(catalog: &Catalog) -> Option<Node> {
    let record = catalog.read::<Node>(&key(catalog)).await.unwrap();
    record.map(|record| record.value)
}

async fn wait_for(mut is_so: impl AsyncFnMut() -> bool) {
    let waited = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(DEADLINE, waited)
        .await
        .expect("in time");
}

#[tokio::test]
async fn f08_a_node_whose_lease_was_lost_registers_again_as_the_same_process() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = catalog(&folder);
    let registration = Registration::new(catalog.clone(), node(7), TTL, GracefulDrain::new())
        .await
        .unwrap();
    let mut told = registration.registered();
    let first = told.borrow_and_update().clone().unwrap();
    catalog.store().revoke_lease(first.id()).await.unwrap();
    assert_eq!(registered(&catalog).await, None);

    let stop = CancellationToken::new();
    let watched = async {
        wait_for(async || registered(&catalog).await.is_some()).await;
        told.changed().await.unwrap();
        let second = told.borrow().clone().unwrap();
        assert!(second.is_held() && !first.is_held());
        assert_ne!(second.id(), first.id());
        stop.cancel();
    };
    let (kept, ()) = tokio::join!(registration.keep(stop.clone()), watched);
    kept.unwrap();
    assert_eq!(registered(&catalog).await, None, "a stop takes it back");
}

#[tokio::test]
async fn a_node_that_is_to_leave_says_so_in_its_record_under_its_lease() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = catalog(&folder);
    let graceful_drain = GracefulDrain::new();
    let registration =
        Registration::new(catalog.clone(), node(7), 20 * TTL, graceful_drain.clone()).await;
    let registration = registration.unwrap();
    let lease = registration.registered();
    let worker = node(7).id;
    let mirror = catalog
        .keys()
        .assignment(&worker, ShardId::only(ResourceId(1)));
    catalog
        .store()
        .commit(Txn::new().put(mirror.clone(), "{}"))
        .await
        .unwrap();
    let stop = CancellationToken::new();
    let watched = async {
        let left = graceful_drain.give_all_away(&catalog, &worker, DEADLINE);
        let given = async {
            let is_draining = async || registered(&catalog).await.is_some_and(|n| n.draining);
            wait_for(is_draining).await;
            assert!(!lease.has_changed().unwrap());
            catalog.store().commit(Txn::new().delete(mirror)).await
        };
        let ((), given) = tokio::join!(left, given);
        assert!(matches!(given, Ok(Outcome::Done(_))));
        // A later registration is draining as well.
        let lease = lease.borrow().clone().unwrap();
        catalog.store().revoke_lease(lease.id()).await.unwrap();
        let is_draining = async || registered(&catalog).await.is_some_and(|n| n.draining);
        wait_for(is_draining).await;
        stop.cancel();
    };
    let (kept, ()) = tokio::join!(registration.keep(stop.clone()), watched);
    kept.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_worker_whose_shards_nobody_takes_leaves_when_its_time_is_up() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = catalog(&folder);
    let graceful_drain = GracefulDrain::new();
    let worker = node(7).id;
    let begun = Instant::now();
    let within = Duration::from_secs(5);
    // The worker never belonged to the cluster: there is nothing to give away.
    graceful_drain
        .give_all_away(&catalog, &worker, within)
        .await;
    assert!(begun.elapsed().is_zero());
    graceful_drain.registered(true);
    let mirror = catalog
        .keys()
        .assignment(&worker, ShardId::only(ResourceId(1)));
    let txn = Txn::new().put(mirror, "{}");
    catalog.store().commit(txn).await.unwrap();
    graceful_drain
        .give_all_away(&catalog, &worker, within)
        .await;
    let took = begun.elapsed();
    assert!(took >= within && took < 2 * within, "{took:?}");
}

#[tokio::test]
async fn s15_a_record_that_somebody_has_removed_is_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = catalog(&folder);
    let registration = Registration::new(catalog.clone(), node(7), 20 * TTL, GracefulDrain::new())
        .await
        .unwrap();
    let stop = CancellationToken::new();
    let watched = async {
        let txn = Txn::new().delete(key(&catalog));
        catalog.store().commit(txn).await.unwrap();
        wait_for(async || registered(&catalog).await.is_some()).await;
        stop.cancel();
    };
    let (kept, ()) = tokio::join!(registration.keep(stop.clone()), watched);
    kept.unwrap();
}

#[tokio::test]
async fn a_second_process_of_an_id_waits_two_lease_times_and_names_the_holder() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = catalog(&folder);
    let first = Registration::new(catalog.clone(), node(7), TTL, GracefulDrain::new())
        .await
        .unwrap();
    let began = Instant::now();
    let refused = Registration::new(catalog.clone(), node(8), TTL, GracefulDrain::new()).await;
    let refused = refused.err().unwrap().to_string();
    assert!(began.elapsed() >= 2 * TTL, "{:?}", began.elapsed());
    assert_eq!(
        refused,
        "another process is registered as worker-1: at 127.0.0.1:7, since 2023-11-14T22:13:20Z; \
         stop it, or choose another id with --id"
    );
    assert_eq!(registered(&catalog).await, Some(node(7)));
    let stop = CancellationToken::new();
    stop.cancel();
    first.keep(stop).await.unwrap();
}

#[tokio::test]
async fn s17_a_process_that_starts_after_a_kill_waits_for_the_record_of_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = catalog(&folder);
    // The lease is given its whole time once more when most of it is over.
    let lease = catalog.store().grant_lease(TTL * 9 / 5).await.unwrap();
    let txn = Txn::new().put_leased(key(&catalog), encode(&node(7)), lease);
    catalog.store().commit(txn).await.unwrap();
    let second = Registration::new(catalog.clone(), node(8), TTL, GracefulDrain::new())
        .await
        .unwrap();
    assert_eq!(registered(&catalog).await, Some(node(8)));
    drop(second);
}

#[tokio::test]
async fn a_node_registers_over_its_own_record_and_keeps_it_when_the_old_lease_ends() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = catalog(&folder);
    let old = catalog.store().grant_lease(100 * TTL).await.unwrap();
    let txn = Txn::new().put_leased(key(&catalog), encode(&node(7)), old);
    catalog.store().commit(txn).await.unwrap();
    let began = Instant::now();
    let again = Registration::new(catalog.clone(), node(7), 20 * TTL, GracefulDrain::new())
        .await
        .unwrap();
    assert!(began.elapsed() < 10 * TTL, "it does not wait for itself");
    catalog.store().revoke_lease(old).await.unwrap();
    assert_eq!(registered(&catalog).await, Some(node(7)));
    drop(again);
}

#[tokio::test]
async fn f06_a_process_that_finds_another_under_its_id_ends_and_leaves_it_alone() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = catalog(&folder);
    // The same holds while the lease is held, and after it was lost.
    for is_lost in [false, true] {
        let registration =
            Registration::new(catalog.clone(), node(7), 20 * TTL, GracefulDrain::new())
                .await
                .unwrap();
        let told = registration.registered();
        if is_lost {
            let lease = registration.lease.id();
            catalog.store().revoke_lease(lease).await.unwrap();
        }
        let other = Txn::new().put(key(&catalog), encode(&node(8)));
        catalog.store().commit(other).await.unwrap();
        let kept = registration.keep(CancellationToken::new());
        let taken = tokio::time::timeout(DEADLINE, kept).await.unwrap();
        let why = taken.unwrap_err().to_string();
        assert!(why.contains("at 127.0.0.1:8"), "{why}");
        assert_eq!(registered(&catalog).await, Some(node(8)));
        assert!(!told.borrow().as_ref().unwrap().is_held());
        let txn = Txn::new().delete(key(&catalog));
        catalog.store().commit(txn).await.unwrap();
    }
}
