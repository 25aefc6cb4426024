//! Conformance suite: the contract of a store, as tests that any backend runs with [`store_conformance!`].
//!
//! Each case uses only its own store and no absolute revisions, so that a backend may provide a new prefix of a
//! shared server.
//!
//! [`store_conformance!`]: crate::store_conformance
#![expect(missing_docs, reason = "each case is named as the statement it checks")]

use std::sync::Arc;

use bytes::Bytes;
use futures::future::try_join_all;

use super::{
    Guard, Outcome, Revision, Store, StoreError, TXN_BYTES_MAX, TXN_MAX, Txn, VALUE_MAX, Watch,
    WatchEvent,
};

mod leases;
mod watches;

pub use self::leases::*;
pub use self::watches::*;

/// Makes one test per case. The argument is an `async` closure that returns an empty store, and anything that
/// must live as long as the store. It returns `None` if there is no such store, after it has reported that.
#[macro_export]
macro_rules! store_conformance {
    ($make:expr) => {
        $crate::store_conformance!(@cases $make,
            a_key_is_read_back_with_its_revisions
            f13_a_key_is_not_found_by_its_beginning
            a_listing_is_sorted_and_keeps_to_its_prefix
            all_guards_hold_or_nothing_is_changed
            a_key_made_again_has_another_creation
            one_of_many_concurrent_writers_wins
            a_transaction_that_changes_nothing_takes_no_revision
            a_key_is_changed_once_in_a_transaction
            a_value_that_is_too_large_changes_nothing
            a_transaction_has_so_many_guards_changes_and_bytes
            a_listing_of_many_pages_is_of_one_moment
            a_listing_goes_on_after_a_key
            a_watch_from_a_listing_misses_nothing
            a_watch_keeps_the_order_of_a_thousand_changes
            a_watch_keeps_to_its_prefix_and_tells_of_deletions
            f05_a_watch_that_was_cancelled_while_waiting_loses_nothing
            f04_a_reader_of_listing_and_watch_ends_with_what_is_there
            a_compaction_leaves_records_and_open_watches_alone
            f05_a_reader_from_before_a_compaction_ends_with_what_is_there
            the_keys_of_a_revoked_lease_vanish_together
            the_keys_of_a_lease_that_is_not_renewed_vanish
            a_key_belongs_to_the_lease_of_its_last_write
            nothing_is_put_under_a_lease_that_has_ended
        );
    };
    (@cases $make:expr, $($case:ident)+) => {
        $(
            #[tokio::test]
            async fn $case() {
                let Some((store, _kept)) = ($make)().await else {
                    return;
                };
                let case = $crate::conformance::$case(store);
                let in_time = tokio::time::timeout(std::time::Duration::from_secs(60), case).await;
                in_time.expect("ends in time").expect("the store answers");
            }
        )+
    };
}

type Done = Result<(), StoreError>;

async fn done(store: &Arc<dyn Store>, txn: Txn) -> Result<Revision, StoreError> {
    match store.commit(txn).await? {
        Outcome::Done(revision) => Ok(revision),
        other => panic!("expected the transaction to be carried out, got {other:?}"),
    }
}

async fn put(store: &Arc<dyn Store>, key: &str, value: &str) -> Result<Revision, StoreError> {
    done(store, Txn::new().put(key, value.to_owned())).await
}

async fn keys(store: &Arc<dyn Store>, prefix: &str) -> Result<Vec<String>, StoreError> {
    let listing = store.list(prefix).await?;
    Ok(listing.entries.into_iter().map(|entry| entry.key).collect())
}

pub async fn a_key_is_read_back_with_its_revisions(store: Arc<dyn Store>) -> Done {
    assert_eq!(store.get("/t/a").await?, None);
    let first = put(&store, "/t/a", "1").await?;
    let second = put(&store, "/t/a", "2").await?;
    assert!(first < second);
    let entry = store.get("/t/a").await?.expect("is there");
    assert_eq!(
        (entry.key.as_str(), entry.value),
        ("/t/a", Bytes::from("2"))
    );
    assert_eq!((entry.created, entry.revision), (first, second));
    done(&store, Txn::new().delete("/t/a")).await?;
    assert_eq!(store.get("/t/a").await?, None);
    Ok(())
}

pub async fn f13_a_key_is_not_found_by_its_beginning(store: Arc<dyn Store>) -> Done {
    put(&store, "/t/ab", "1").await?;
    assert_eq!(store.get("/t/a").await?, None);
    let txn = Txn::new()
        .guard(Guard::Absent("/t/a".to_owned()))
        .put("/t/a", "2");
    done(&store, txn).await?;
    done(&store, Txn::new().delete("/t/a")).await?;
    assert_eq!(keys(&store, "/t/").await?, ["/t/ab"]);
    Ok(())
}

pub async fn a_listing_goes_on_after_a_key(store: Arc<dyn Store>) -> Done {
    for key in ["/s/z", "/t/a", "/t/a/x", "/t/b", "/t/c", "/t/é", "/t0"] {
        put(&store, key, "").await?;
    }
    let after = async |after: &str, max| -> Result<Vec<String>, StoreError> {
        let listing = store.list_after("/t/", after, max).await?;
        assert!(listing.revision > Revision(0));
        Ok(listing.entries.into_iter().map(|entry| entry.key).collect())
    };
    let none: [&str; 0] = [];
    assert_eq!(after("/t/", 2).await?, ["/t/a", "/t/a/x"]);
    assert_eq!(after("/t/a", 2).await?, ["/t/a/x", "/t/b"]);
    assert_eq!(after("/t/aa", 9).await?, ["/t/b", "/t/c", "/t/é"]);
    assert_eq!(after("/s/", 1).await?, ["/t/a"]);
    assert_eq!(after("/t/é", 9).await?, none);
    assert_eq!(after("/t1", 9).await?, none);
    assert_eq!(after("/t/", 0).await?, none);
    Ok(())
}

pub async fn a_listing_is_sorted_and_keeps_to_its_prefix(store: Arc<dyn Store>) -> Done {
    for key in ["/t/b", "/t/a/2", "/t/a/10", "/t/ab", "/t/a", "/t0", "/t/é"] {
        put(&store, key, "").await?;
    }
    assert_eq!(keys(&store, "/t/a/").await?, ["/t/a/10", "/t/a/2"]);
    assert_eq!(
        keys(&store, "/t/").await?,
        ["/t/a", "/t/a/10", "/t/a/2", "/t/ab", "/t/b", "/t/é"]
    );
    assert_eq!(keys(&store, "/nothing/").await?, [""; 0]);
    Ok(())
}

pub async fn all_guards_hold_or_nothing_is_changed(store: Arc<dyn Store>) -> Done {
    let created = put(&store, "/t/a", "1").await?;
    let revision = put(&store, "/t/a", "2").await?;
    let (a, b) = (|| "/t/a".to_owned(), || "/t/b".to_owned());
    let holding = [
        Guard::Absent(b()),
        Guard::Exists(a()),
        Guard::RevisionIs(a(), revision),
        Guard::CreatedAt(a(), created),
    ];
    let failing = [
        Guard::Absent(a()),
        Guard::Exists(b()),
        Guard::RevisionIs(a(), created),
        Guard::CreatedAt(a(), revision),
        Guard::RevisionIs(b(), revision),
        Guard::CreatedAt(b(), created),
        Guard::RevisionIs(b(), Revision(0)),
        Guard::CreatedAt(b(), Revision(0)),
    ];
    for guard in failing {
        let mut txn = Txn::new().put("/t/c", "3").delete("/t/a");
        txn.guards.extend(holding.clone());
        txn.guards.push(guard.clone());
        assert_eq!(store.commit(txn).await?, Outcome::Lost(4), "{guard:?}");
        assert_eq!(keys(&store, "/t/").await?, ["/t/a"], "{guard:?}");
    }
    let mut txn = Txn::new().put("/t/c", "3").delete("/t/a");
    txn.guards.extend(holding);
    let together = done(&store, txn).await?;
    assert_eq!(keys(&store, "/t/").await?, ["/t/c"]);
    let entry = store.get("/t/c").await?.expect("is there");
    assert_eq!((entry.created, entry.revision), (together, together));
    Ok(())
}

pub async fn a_key_made_again_has_another_creation(store: Arc<dyn Store>) -> Done {
    let first = put(&store, "/t/a", "1").await?;
    done(&store, Txn::new().delete("/t/a")).await?;
    let second = put(&store, "/t/a", "1").await?;
    let entry = store.get("/t/a").await?.expect("is there");
    assert_eq!(entry.created, second);
    let txn = Txn::new()
        .guard(Guard::CreatedAt("/t/a".to_owned(), first))
        .put("/t/b", "");
    assert_eq!(store.commit(txn).await?, Outcome::Lost(0));
    Ok(())
}

pub async fn one_of_many_concurrent_writers_wins(store: Arc<dyn Store>) -> Done {
    let mut revision = put(&store, "/t/a", "start").await?;
    for _ in 0..5 {
        let writers = (0..20).map(|n| {
            let guard = Guard::RevisionIs("/t/a".to_owned(), revision);
            store.commit(Txn::new().guard(guard).put("/t/a", n.to_string()))
        });
        let mut winners = Vec::new();
        for outcome in try_join_all(writers).await? {
            match outcome {
                Outcome::Done(revision) => winners.push(revision),
                Outcome::Lost(0) => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(winners.len(), 1);
        revision = store.get("/t/a").await?.expect("is there").revision;
        assert_eq!(winners, [revision]);
    }
    Ok(())
}

pub async fn a_transaction_that_changes_nothing_takes_no_revision(store: Arc<dyn Store>) -> Done {
    put(&store, "/t/a", "1").await?;
    let before = store.list("/t/").await?;
    let guarded = Txn::new().guard(Guard::Absent("/t/b".to_owned()));
    assert!(done(&store, guarded).await? >= before.revision);
    done(&store, Txn::new().delete("/t/b")).await?;
    assert_eq!(store.list("/t/").await?.entries, before.entries);
    Ok(())
}

pub async fn a_key_is_changed_once_in_a_transaction(store: Arc<dyn Store>) -> Done {
    for txn in [
        Txn::new().put("/t/a", "1").put("/t/a", "2"),
        Txn::new().put("/t/a", "1").delete("/t/a"),
    ] {
        let answer = store.commit(txn).await;
        assert!(
            matches!(&answer, Err(StoreError::ChangedTwice { key }) if key == "/t/a"),
            "{answer:?}"
        );
    }
    assert_eq!(store.get("/t/a").await?, None);
    Ok(())
}

pub async fn a_value_that_is_too_large_changes_nothing(store: Arc<dyn Store>) -> Done {
    let fitting = vec![b'x'; VALUE_MAX - "/t/a".len()];
    done(&store, Txn::new().put("/t/a", fitting.clone())).await?;
    let too_large = [fitting, vec![b'x']].concat();
    let answer = store
        .commit(Txn::new().put("/t/b", "1").put("/t/a", too_large))
        .await;
    let expected = VALUE_MAX + 1;
    assert!(
        matches!(&answer, Err(StoreError::TooLarge { key, n_bytes }) if key == "/t/a" && *n_bytes == expected),
        "{answer:?}"
    );
    assert_eq!(keys(&store, "/t/").await?, ["/t/a"]);
    Ok(())
}

pub async fn a_transaction_has_so_many_guards_changes_and_bytes(store: Arc<dyn Store>) -> Done {
    let key = |n: usize| format!("/t/{n:03}");
    let with = |n_guards: usize, n_changes: usize| {
        let mut txn = Txn::new();
        txn.guards
            .extend((0..n_guards).map(|n| Guard::Absent(key(n))));
        (0..n_changes).fold(txn, |txn, n| txn.put(key(n), "1"))
    };
    done(&store, with(TXN_MAX, TXN_MAX)).await?;
    let lost = store.commit(with(TXN_MAX, TXN_MAX)).await?;
    assert_eq!(lost, Outcome::Lost(0));
    for (txn, what) in [
        (with(TXN_MAX + 1, 1), "guards"),
        (with(1, TXN_MAX + 1), "changes"),
    ] {
        let answer = store.commit(txn).await;
        assert!(
            matches!(&answer, Err(StoreError::TxnTooLarge { what: it, n: 129, max: 128 }) if *it == what),
            "{answer:?}"
        );
    }
    let large = |n_bytes: usize| {
        let n_each = n_bytes / 8;
        let keys = (0..8).map(|n| format!("/t/{n}"));
        keys.fold(Txn::new(), |txn, key| {
            let value = vec![b'x'; n_each - key.len()];
            txn.put(key, value)
        })
    };
    done(&store, large(TXN_BYTES_MAX)).await?;
    let answer = store.commit(large(TXN_BYTES_MAX + 8)).await;
    assert!(
        matches!(
            &answer,
            Err(StoreError::TxnTooLarge {
                what: "bytes",
                max: TXN_BYTES_MAX,
                ..
            })
        ),
        "{answer:?}"
    );
    Ok(())
}

pub async fn a_listing_of_many_pages_is_of_one_moment(store: Arc<dyn Store>) -> Done {
    const N_KEYS: usize = 5_000;
    for from in (0..N_KEYS).step_by(100) {
        let keys = from..from + 100;
        let txn = keys.fold(Txn::new(), |txn, n| txn.put(format!("/t/{n:05}"), "0"));
        done(&store, txn).await?;
    }
    // The first key and the last one change together; a listing of two moments would have two values.
    let both = |n: u32| {
        let keys = ["/t/00000".to_owned(), format!("/t/{:05}", N_KEYS - 1)];
        keys.into_iter()
            .fold(Txn::new(), |txn, key| txn.put(key, n.to_string()))
    };
    done(&store, both(0)).await?;
    let writer = async {
        for n in 1..=20 {
            done(&store, both(n)).await?;
        }
        Ok::<_, StoreError>(())
    };
    let reader = async {
        for _ in 0..5 {
            let listing = store.list("/t/").await?;
            let entries = listing.entries;
            assert_eq!(entries.len(), N_KEYS);
            assert!(entries.iter().is_sorted_by_key(|entry| &entry.key));
            let (first, last) = (&entries[0], &entries[N_KEYS - 1]);
            assert_eq!((&first.value, first.revision), (&last.value, last.revision));
            assert!(first.revision <= listing.revision);
        }
        Ok::<_, StoreError>(())
    };
    let (written, read) = tokio::join!(writer, reader);
    written.and(read)
}

/// Returns the key and revision of the next change.
async fn changed(watch: &mut dyn Watch) -> Result<(String, Revision), StoreError> {
    match watch.next().await? {
        WatchEvent::Put(entry) => Ok((entry.key, entry.revision)),
        WatchEvent::Delete { key, revision } => Ok((key, revision)),
        WatchEvent::StartOver => panic!("expected a change, was told to start over"),
    }
}
