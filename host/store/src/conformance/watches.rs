//! Contract of a store about watches.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};

use super::{Done, changed, done, put};
use crate::{Listing, Revision, Store, StoreError, Txn, WatchEvent};

/// Number of changes on their way at once. A slow machine with three members has to carry them out in the time of a call.
const IN_FLIGHT: usize = 64;

pub async fn a_watch_from_a_listing_misses_nothing(store: Arc<dyn Store>) -> Done {
    put(&store, "/t/a", "1").await?;
    let Listing { revision, .. } = store.list("/t/").await?;
    let second = put(&store, "/t/a", "2").await?;
    let mut watch = store.watch("/t/", revision).await?;
    let third = put(&store, "/t/a", "3").await?;
    for expected in [second, third] {
        assert_eq!(changed(&mut *watch).await?, ("/t/a".to_owned(), expected));
    }
    Ok(())
}

pub async fn a_watch_keeps_the_order_of_a_thousand_changes(store: Arc<dyn Store>) -> Done {
    let from = store.list("/t/").await?.revision;
    let mut watch = store.watch("/t/", from).await?;
    let puts = stream::iter(0..1000).map(|n| put_numbered(&store, n));
    let revisions: Vec<Revision> = puts.buffered(IN_FLIGHT).try_collect().await?;
    let mut last = from;
    let mut seen = BTreeMap::new();
    for _ in 0..1000 {
        let (key, revision) = changed(&mut *watch).await?;
        assert!(revision > last);
        last = revision;
        seen.insert(key, revision);
    }
    let expected = revisions.into_iter().enumerate();
    let expected: BTreeMap<_, _> = expected
        .map(|(n, revision)| (format!("/t/{n}"), revision))
        .collect();
    assert_eq!(seen, expected);
    Ok(())
}

async fn put_numbered(store: &Arc<dyn Store>, n: usize) -> Result<Revision, StoreError> {
    put(store, &format!("/t/{n}"), "").await
}

pub async fn a_watch_keeps_to_its_prefix_and_tells_of_deletions(store: Arc<dyn Store>) -> Done {
    let from = store.list("/t/").await?.revision;
    let mut watch = store.watch("/t/a/", from).await?;
    let together = Txn::new()
        .put("/t/a/1", "1")
        .put("/t/ab", "1")
        .put("/t/a/2", "1");
    let first = done(&store, together).await?;
    let second = done(&store, Txn::new().delete("/t/ab").delete("/t/a/1")).await?;
    let mut put_keys = Vec::new();
    for _ in 0..2 {
        match watch.next().await? {
            WatchEvent::Put(entry) => {
                assert_eq!((entry.revision, entry.created), (first, first));
                put_keys.push(entry.key);
            }
            other => panic!("{other:?}"),
        }
    }
    put_keys.sort();
    assert_eq!(put_keys, ["/t/a/1", "/t/a/2"]);
    let expected = WatchEvent::Delete {
        key: "/t/a/1".to_owned(),
        revision: second,
    };
    assert_eq!(watch.next().await?, expected);
    Ok(())
}

pub async fn f05_a_watch_that_was_cancelled_while_waiting_loses_nothing(
    store: Arc<dyn Store>,
) -> Done {
    let from = store.list("/t/").await?.revision;
    let mut watch = store.watch("/t/", from).await?;
    for n in 0..20 {
        for _ in 0..n % 4 {
            let cancelled = tokio::time::timeout(Duration::from_millis(1), watch.next()).await;
            assert!(cancelled.is_err(), "{cancelled:?}");
        }
        let expected = put_numbered(&store, n).await?;
        let waiting = tokio::time::timeout(Duration::ZERO, watch.next()).await;
        let event = match waiting {
            Ok(event) => event?,
            Err(_cancelled) => watch.next().await?,
        };
        assert!(
            matches!(&event, WatchEvent::Put(entry) if entry.revision == expected),
            "{event:?}"
        );
    }
    Ok(())
}

pub async fn f04_a_reader_of_listing_and_watch_ends_with_what_is_there(
    store: Arc<dyn Store>,
) -> Done {
    let writers = (0..4).map(|writer| {
        let store = store.clone();
        async move {
            for n in 0..50 {
                let key = format!("/t/{writer}/{}", n % 7);
                let txn = if n % 5 == 4 {
                    Txn::new().delete(key)
                } else {
                    Txn::new().put(key, n.to_string())
                };
                done(&store, txn).await?;
            }
            put(&store, &format!("/t/{writer}/end"), "").await
        }
    });
    let reader = async {
        let listing = store.list("/t/").await?;
        let mut watch = store.watch("/t/", listing.revision).await?;
        let known = listing
            .entries
            .into_iter()
            .map(|entry| (entry.key, entry.value));
        let mut known: BTreeMap<String, Bytes> = known.collect();
        while known.keys().filter(|key| key.ends_with("/end")).count() < 4 {
            match watch.next().await? {
                WatchEvent::Put(entry) => known.insert(entry.key, entry.value),
                WatchEvent::Delete { key, .. } => known.remove(&key),
                WatchEvent::StartOver => panic!("a few hundred changes are kept"),
            };
        }
        Ok::<_, StoreError>(known)
    };
    let (written, known) = tokio::join!(join_all(writers), reader);
    for written in written {
        written?;
    }
    let there = store.list("/t/").await?.entries.into_iter();
    let there: BTreeMap<_, _> = there.map(|entry| (entry.key, entry.value)).collect();
    assert_eq!(known?, there);
    Ok(())
}

pub async fn a_compaction_leaves_records_and_open_watches_alone(store: Arc<dyn Store>) -> Done {
    put(&store, "/t/a", "1").await?;
    let from = put(&store, "/t/a", "2").await?;
    let mut watch = store.watch("/t/", from).await?;
    let second = put(&store, "/t/b", "1").await?;
    assert_eq!(changed(&mut *watch).await?.1, second);
    store.compact(1_000_000).await?;
    store.compact(0).await?;
    store.compact(0).await?;
    assert_eq!(store.get("/t/a").await?.expect("is there").value, "2");
    assert_eq!(store.list("/t/").await?.entries.len(), 2);
    let third = put(&store, "/t/a", "3").await?;
    assert_eq!(changed(&mut *watch).await?, ("/t/a".to_owned(), third));
    Ok(())
}

pub async fn f05_a_reader_from_before_a_compaction_ends_with_what_is_there(
    store: Arc<dyn Store>,
) -> Done {
    let from = put(&store, "/t/deleted", "1").await?;
    put(&store, "/t/kept", "1").await?;
    let mut known = BTreeMap::from([("/t/deleted".to_owned(), Bytes::from("1"))]);
    done(&store, Txn::new().delete("/t/deleted")).await?;
    put(&store, "/t/kept", "2").await?;
    store.compact(0).await?;
    let mut watch = store.watch("/t/", from).await?;
    let wanted = BTreeMap::from([("/t/kept".to_owned(), Bytes::from("2"))]);
    while known != wanted {
        match watch.next().await? {
            WatchEvent::Put(entry) => _ = known.insert(entry.key, entry.value),
            WatchEvent::Delete { key, .. } => _ = known.remove(&key),
            WatchEvent::StartOver => {
                let entries = store.list("/t/").await?.entries.into_iter();
                known = entries.map(|entry| (entry.key, entry.value)).collect();
            }
        }
    }
    let later = put(&store, "/t/later", "1").await?;
    loop {
        match watch.next().await? {
            WatchEvent::Put(entry) if entry.revision == later => return Ok(()),
            WatchEvent::Put(_) | WatchEvent::Delete { .. } | WatchEvent::StartOver => {}
        }
    }
}
