//! Three members, of which some are dead, paused or deposed: the rest goes on, and clients find it.

use super::*;

/// Reads a hundred times, and no read may fail: a client that spreads its calls would fail every third.
async fn check_reads(store: &dyn Store, n_slow: usize) {
    let mut slow = 0;
    for _ in 0..100 {
        let asked = Instant::now();
        store.get("/t/a").await.expect("the others answer");
        slow += usize::from(asked.elapsed() > Duration::from_millis(900));
    }
    assert!(
        slow <= n_slow,
        "{slow} of 100 waited for a member that is not there"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn s09_members_that_are_dead_or_paused_are_left_for_the_others() {
    let Some(mut etcd) = Etcd::three() else {
        return;
    };
    let leader = etcd.leader();
    let follower = (leader + 1) % 3;
    let mut endpoints = etcd.endpoints();
    // The first endpoint is asked until it fails.
    endpoints.rotate_left(follower);
    let settings = EtcdSettings {
        endpoints,
        call_timeout: Duration::from_secs(1),
        ..settings(&etcd)
    };
    let store = EtcdStore::connect(settings).await.unwrap();
    done(&store, Txn::new().put("/t/a", "1")).await;
    etcd.freeze(follower);
    check_reads(&store, 1).await;
    etcd.thaw(follower);
    etcd.kill(follower);
    check_reads(&store, 0).await;
    // A new connection tries the dead member first.
    let store = EtcdStore::connect(super::settings(&etcd)).await.unwrap();
    check_reads(&store, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s09_writes_watches_and_leases_go_on_when_the_leader_of_etcd_is_killed() {
    let Some(mut etcd) = Etcd::three() else {
        return;
    };
    let leader = etcd.leader();
    let mut endpoints = etcd.endpoints();
    endpoints.rotate_left(leader);
    let settings = EtcdSettings {
        endpoints,
        ..settings(&etcd)
    };
    let store: Arc<dyn Store> = Arc::new(EtcdStore::connect(settings).await.unwrap());
    let tasks = TaskScope::new();
    let ttl = Duration::from_secs(10);
    let lease = LeaseKeeper::grant(store.clone(), ttl, &tasks)
        .await
        .unwrap();
    let mut last = done(&*store, Txn::new().put_leased("/t/a", "0", lease.id())).await;
    let mut watch = store.watch("/t/", last).await.unwrap();
    etcd.kill(leader);
    for n in 1..=20 {
        let guard = Guard::RevisionIs("/t/a".to_owned(), last);
        let value = n.to_string();
        let txn = Txn::new()
            .guard(guard)
            .put_leased("/t/a", value, lease.id());
        // Nobody leads for a moment; then the same write must be made, once.
        last = eventually(&*store, &txn).await;
    }
    let mut seen = Vec::new();
    while seen.len() < 20 {
        match next(&mut watch).await {
            Ok(WatchEvent::Put(entry)) => seen.push(entry.value),
            Ok(other) => panic!("{other:?}"),
            Err(error) => assert!(error.is_transient(), "{error}"),
        }
    }
    let expected: Vec<String> = (1..=20).map(|n| n.to_string()).collect();
    assert_eq!(seen, expected);
    assert!(timeout(ttl, lease.lost().cancelled()).await.is_err());
    let entry = store.get("/t/a").await.unwrap().unwrap();
    assert_eq!(entry.revision, last);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_more_than_half_of_the_members_it_is_said_and_never_silence() {
    let Some(mut etcd) = Etcd::three() else {
        return;
    };
    let store = connect(&etcd).await;
    let from = done(&*store, Txn::new().put("/t/a", "1")).await;
    let mut watch = store.watch("/t/", from).await.unwrap();
    etcd.kill(1);
    etcd.kill(2);
    let error = next(&mut watch).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    // Until it notices, the remaining member waits for the others.
    let told = async {
        loop {
            match store.get("/t/a").await {
                Err(StoreError::Unreachable { .. }) => {}
                answer => break answer.unwrap_err(),
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let error = timeout(Duration::from_secs(30), told)
        .await
        .expect("it is told");
    assert!(matches!(error, StoreError::NoLeader { .. }), "{error:?}");
    assert!(error.is_transient());
    assert!(error.to_string().contains("more than half"), "{error}");
    etcd.launch(1);
    etcd.launch(2);
    etcd.wait();
    let revision = done(&*store, Txn::new().put("/t/a", "2")).await;
    loop {
        match next(&mut watch).await {
            Ok(WatchEvent::Put(entry)) => break assert_eq!(entry.revision, revision),
            Ok(other) => panic!("{other:?}"),
            Err(error) => assert!(error.is_transient(), "{error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f19_what_one_member_has_answered_is_read_from_every_other_at_once() {
    let Some(etcd) = Etcd::three() else {
        return;
    };
    let mut stores = Vec::new();
    for endpoint in etcd.endpoints() {
        let settings = EtcdSettings {
            endpoints: vec![endpoint],
            ..settings(&etcd)
        };
        stores.push(EtcdStore::connect(settings).await.unwrap());
    }
    for n in 0..200 {
        let value = n.to_string();
        done(&stores[n % 3], Txn::new().put("/t/a", value.clone())).await;
        for store in &stores {
            let read = store.get("/t/a").await.unwrap().unwrap();
            assert_eq!(read.value, value);
            let listed = store.list("/t/").await.unwrap();
            assert_eq!(listed.entries[0].value, value);
        }
    }
}
