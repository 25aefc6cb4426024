//! Clients that settle unknown outcomes and list again stay right, whatever faults a store meets with.

use std::collections::BTreeMap;

use crawler_store::Guard;
use crawler_store::catalog::encode;
use crawler_store::embedded::{EmbeddedStore, Settings};
use futures::future::join_all;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::*;
use crate::random::Random;

const SLOW: Fault = Fault::Slow(Duration::from_millis(1));
const ALL: [Fault; 6] = [
    Fault::Unavailable,
    Fault::RequestLost,
    Fault::AnswerLost,
    Fault::Twice,
    Fault::Compacted,
    SLOW,
];

fn open(faults: &Faults) -> (FaultyStore<EmbeddedStore>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(folder.path(), Settings::default()).unwrap();
    (FaultyStore::new(store, faults.clone()), folder)
}

mod slow_and_twice {
    use super::*;

    // A store whose faults neither fail nor forget must keep the whole contract.
    crawler_store::store_conformance!(async || {
        let faults = Faults::default();
        faults.chance(30, &[SLOW, Fault::Twice], Random::new("slow_and_twice"));
        let (store, folder) = open(&faults);
        Some((Arc::new(store) as Arc<dyn Store>, folder))
    });
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Counter {
    total: u64,
    /// Last number that each writer has added.
    last: BTreeMap<u64, u64>,
}

/// Adds a number exactly once: an unknown outcome is settled by looking.
async fn add(store: &dyn Store, writer: u64, number: u64) {
    loop {
        let Ok(entry) = store.get("/counter").await else {
            continue;
        };
        let (mut counter, guard) = match entry {
            None => (Counter::default(), Guard::Absent("/counter".to_owned())),
            Some(entry) => (
                serde_json::from_slice::<Counter>(&entry.value).unwrap(),
                Guard::RevisionIs("/counter".to_owned(), entry.revision),
            ),
        };
        if counter.last.get(&writer) == Some(&number) {
            return;
        }
        counter.total += 1;
        counter.last.insert(writer, number);
        let txn = Txn::new().guard(guard).put("/counter", encode(&counter));
        if let Ok(Outcome::Done(_)) = store.commit(txn).await {
            return;
        }
    }
}

#[tokio::test]
async fn f05_a_guarded_counter_is_right_whatever_its_store_meets_with() {
    const N_WRITERS: u64 = 4;
    const N_EACH: u64 = 50;
    let faults = Faults::default();
    faults.chance(40, &ALL, Random::new("f05_a_guarded_counter"));
    let (store, _folder) = open(&faults);
    let writers = (0..N_WRITERS).map(|writer| {
        let store = &store;
        async move {
            for number in 1..=N_EACH {
                add(store, writer, number).await;
            }
        }
    });
    join_all(writers).await;
    let entry = store.inner().get("/counter").await.unwrap().unwrap();
    let counter: Counter = serde_json::from_slice(&entry.value).unwrap();
    assert_eq!(counter.total, N_WRITERS * N_EACH);
    // Each change of the store was one that counted.
    assert_eq!(entry.revision, Revision(N_WRITERS * N_EACH));
    assert_eq!(faults.met().len(), ALL.len(), "{:?}", faults.met());
}

#[tokio::test]
async fn f05_a_reader_that_lists_again_ends_with_what_is_there() {
    let faults = Faults::default();
    faults.chance(30, &ALL, Random::new("f05_a_reader"));
    let (store, _folder) = open(&faults);
    let writer = async {
        for n in 0..200_u32 {
            let key = format!("/t/{}", n % 7);
            let txn = match n % 5 {
                4 => Txn::new().delete(key),
                _ => Txn::new().put(key, n.to_string()),
            };
            // The reader does not depend on whether it was carried out.
            let _outcome = store.commit(txn).await;
        }
        store.inner().commit(Txn::new().put("/t/end", "")).await
    };
    let reader = async {
        let mut known = BTreeMap::new();
        let mut watch: Option<Box<dyn Watch>> = None;
        let mut stale = true;
        while !known.contains_key("/t/end") {
            let Some(open) = watch.as_mut().filter(|_| !stale) else {
                let Ok(listing) = store.list("/t/").await else {
                    continue;
                };
                if watch.is_none() {
                    watch = store.watch("/t/", listing.revision).await.ok();
                }
                stale = watch.is_none();
                let entries = listing.entries.into_iter();
                known = entries.map(|entry| (entry.key, entry.value)).collect();
                continue;
            };
            match open.next().await {
                Ok(WatchEvent::Put(entry)) => _ = known.insert(entry.key, entry.value),
                Ok(WatchEvent::Delete { key, .. }) => _ = known.remove(&key),
                Ok(WatchEvent::StartOver) => stale = true,
                Err(error) => assert!(error.is_transient(), "{error}"),
            }
        }
        known
    };
    let (written, known) = tokio::join!(writer, reader);
    written.unwrap();
    let there = store.inner().list("/t/").await.unwrap().entries.into_iter();
    let there: BTreeMap<_, _> = there.map(|entry| (entry.key, entry.value)).collect();
    assert_eq!(known, there);
}

#[tokio::test]
async fn each_fault_does_what_it_says() {
    let faults = Faults::default();
    let (store, _folder) = open(&faults);
    let put = |value: &str| Txn::new().put("/t/a", value.to_owned());
    let value = async || {
        let entry = store.inner().get("/t/a").await.unwrap();
        entry.map(|entry| entry.value)
    };
    faults.script([Some(Fault::Unavailable), Some(Fault::RequestLost)]);
    assert!(store.commit(put("1")).await.unwrap_err().is_transient());
    assert_eq!(store.commit(put("1")).await.unwrap(), Outcome::Unknown);
    assert_eq!(value().await, None);
    faults.script([Some(Fault::AnswerLost)]);
    assert_eq!(store.commit(put("2")).await.unwrap(), Outcome::Unknown);
    assert_eq!(value().await.unwrap(), "2");
    faults.script([Some(Fault::Twice)]);
    let guard = Guard::RevisionIs("/t/a".to_owned(), Revision(1));
    let guarded = store.commit(put("3").guard(guard)).await.unwrap();
    assert_eq!(guarded, Outcome::Done(Revision(2)));
    let mut watch = store.watch("/t/", Revision(0)).await.unwrap();
    faults.script([None, Some(Fault::Compacted)]);
    assert!(matches!(watch.next().await.unwrap(), WatchEvent::Put(entry) if entry.value == "2"));
    assert_eq!(watch.next().await.unwrap(), WatchEvent::StartOver);
    store.commit(put("4")).await.unwrap();
    assert!(matches!(watch.next().await.unwrap(), WatchEvent::Put(entry) if entry.value == "4"));
}
