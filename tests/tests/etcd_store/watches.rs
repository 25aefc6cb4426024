//! Watches across faults of a server: connections that end anywhere, and history that is compacted.

use super::*;

/// Writes `n_txns` transactions, and reads all of their changes through a watch whose server is killed each time
/// that `kill_each` changes have come.
async fn check(n_txns: usize, n_puts: usize, n_bytes: usize, kill_each: usize) {
    let Some(mut etcd) = Etcd::one() else { return };
    let store = connect(&etcd).await;
    let from = store.list("/t/").await.expect("a listing").revision;
    let mut written = Vec::new();
    for n in 0..n_txns {
        let keys = (0..n_puts).map(|k| format!("/t/{k:03}"));
        let value = |key: &str| format!("{key} {n} {}", "x".repeat(n_bytes));
        let txn = keys.fold(Txn::new(), |txn, key| {
            let value = value(&key);
            txn.put(key, value)
        });
        let revision = done(&*store, txn).await;
        written.extend((0..n_puts).map(|k| (format!("/t/{k:03}"), revision)));
    }
    let mut watch = store.watch("/t/", from).await.expect("a watch");
    let mut seen = Vec::new();
    let mut n_kills = 0;
    while seen.len() < written.len() {
        match next(&mut watch).await {
            Ok(WatchEvent::Put(entry)) => seen.push((entry.key, entry.revision)),
            Ok(other) => panic!("{other:?}"),
            Err(error) if error.is_transient() => {}
            Err(error) => panic!("{error}"),
        }
        if seen.len() / kill_each > n_kills && n_kills < 3 {
            n_kills += 1;
            etcd.kill(0);
            etcd.launch(0);
        }
    }
    // Keys of one revision come in any order.
    seen.sort_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)));
    assert!(seen == written, "changes were lost or came twice");
    assert_eq!(n_kills, 3);
}

/// Headers of such messages carry the present revision: a client that resumes from them loses many changes.
#[tokio::test]
async fn f05_no_change_is_lost_when_a_connection_ends_while_a_watch_catches_up() {
    check(2_500, 1, 5_000, 300).await;
}

/// A message takes two megabytes and such a revision half of one, so that some revisions are cut.
#[tokio::test]
async fn f05_no_change_is_lost_when_a_connection_ends_within_a_revision() {
    check(40, 100, 6_000, 777).await;
}

#[tokio::test]
async fn f05_a_deletion_that_a_compaction_swallowed_is_found_by_the_listing_at_the_interval() {
    let Some(etcd) = Etcd::one() else { return };
    let settings = EtcdSettings {
        relist_interval: Duration::from_secs(2),
        ..settings(&etcd)
    };
    let store = EtcdStore::connect(settings).await.unwrap();
    let put = done(&store, Txn::new().put("/t/a", "1")).await;
    let deleted = done(&store, Txn::new().delete("/t/a")).await;
    // The compaction is physical: until then the deletion is there.
    etcd.ctl(&["compact", "--physical", &deleted.0.to_string()]);
    let mut watch = store.watch("/t/", put).await.unwrap();
    // The server does not tell this deletion, or else there is nothing to test.
    assert_eq!(next(&mut watch).await.unwrap(), WatchEvent::StartOver);
    assert_eq!(store.list("/t/").await.unwrap().entries, []);
    let later = done(&store, Txn::new().put("/t/b", "1")).await;
    loop {
        match next(&mut watch).await.unwrap() {
            WatchEvent::Put(entry) => break assert_eq!(entry.revision, later),
            WatchEvent::StartOver => {}
            WatchEvent::Delete { key, .. } => panic!("{key} was deleted before"),
        }
    }
}

#[tokio::test]
async fn f05_a_watch_that_is_compacted_away_starts_over_with_a_header_of_zero() {
    let Some(etcd) = Etcd::one() else { return };
    let store = connect(&etcd).await;
    let first = done(&*store, Txn::new().put("/t/a", "1")).await;
    for n in 0..20 {
        done(&*store, Txn::new().put("/t/a", n.to_string())).await;
    }
    store.compact(5).await.unwrap();
    assert_eq!(etcd.revision(), first.0 + 20);
    let gone = etcd.ctl_fails(&["get", "/t/a", "--rev", &(first.0 + 14).to_string()]);
    assert!(gone.contains("compacted"), "{gone}");
    etcd.ctl(&["get", "/t/a", "--rev", &(first.0 + 15).to_string()]);
    let mut watch = store.watch("/t/", first).await.unwrap();
    assert_eq!(next(&mut watch).await.unwrap(), WatchEvent::StartOver);
    let later = done(&*store, Txn::new().put("/t/a", "later")).await;
    match next(&mut watch).await.unwrap() {
        WatchEvent::Put(entry) => assert_eq!(entry.revision, later),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn keys_that_are_no_text_are_left_out_and_hide_no_other() {
    let Some(etcd) = Etcd::one() else { return };
    let store = connect(&etcd).await;
    let from = store.list("/t/").await.unwrap().revision;
    let mut foreign = etcd_client::Client::connect(etcd.endpoints(), None)
        .await
        .unwrap();
    foreign.put(b"/t/\xff".to_vec(), "1", None).await.unwrap();
    let ours = done(&*store, Txn::new().put("/t/a", "1")).await;
    assert_eq!(store.list("/t/").await.unwrap().entries.len(), 1);
    let mut watch = store.watch("/t/", from).await.unwrap();
    match next(&mut watch).await.unwrap() {
        WatchEvent::Put(entry) => assert_eq!(entry.revision, ours),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_is_more_than_so_many_revisions_ago_is_forgotten_and_the_rest_stays() {
    let Some(etcd) = Etcd::one() else { return };
    let store = connect(&etcd).await;
    for n in 0..50 {
        done(&*store, Txn::new().put("/t/a", n.to_string())).await;
    }
    let last = etcd.revision();
    store.compact(10).await.unwrap();
    let at = |revision: u64| {
        let revision = format!("--rev={revision}");
        etcd.try_ctl(&["get", "/t/a", "--print-value-only", &revision])
    };
    let forgotten = at(last - 15);
    assert!(forgotten.stderr.contains("compacted"), "{forgotten:?}");
    assert_eq!(at(last - 5).stdout.trim(), "44");
    // Compaction is also tried with nothing to forget, and with history that is forgotten already.
    store.compact(1_000).await.unwrap();
    store.compact(10).await.unwrap();
}
