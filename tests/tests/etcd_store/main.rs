//! The store in a real etcd: the suite of all stores on one member and on three, and behaviour that only a killed,
//! paused, compacted or strict server can show.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use crawler_process::task::TaskScope;
use crawler_store::catalog::encode;
use crawler_store::etcd::{EtcdSettings, EtcdStore};
use crawler_store::lease::LeaseKeeper;
use crawler_store::{Guard, Outcome, Revision, Store, StoreError, Txn, Watch, WatchEvent};
use crawler_tests::PATIENCE;
use crawler_tests::etcd::Etcd;
use tokio::time::timeout;

mod access;
mod conformance;
mod members;
mod old;
mod outages;
mod watches;

/// Returns settings for a test's etcd.
fn settings(etcd: &Etcd) -> EtcdSettings {
    EtcdSettings {
        endpoints: etcd.endpoints(),
        ..EtcdSettings::default()
    }
}

async fn connect(etcd: &Etcd) -> Arc<dyn Store> {
    let store = EtcdStore::connect(settings(etcd)).await;
    Arc::new(store.unwrap_or_else(|e| panic!("{e}")))
}

/// Commits a transaction that must be carried out, and returns its revision.
async fn done(store: &dyn Store, txn: Txn) -> Revision {
    match store.commit(txn).await {
        Ok(Outcome::Done(revision)) => revision,
        other => panic!("{other:?}"),
    }
}

/// Commits like [`done`], while the store may be away for a time.
async fn eventually(store: &dyn Store, txn: &Txn) -> Revision {
    let asked = Instant::now();
    loop {
        match store.commit(txn.clone()).await {
            Ok(Outcome::Done(revision)) => return revision,
            Ok(Outcome::Unknown) => {}
            Err(error) if error.is_transient() => {}
            other => panic!("{other:?}"),
        }
        assert!(asked.elapsed() < PATIENCE, "the store did not come back");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Returns the next event of a watch. It may be an error, but silence is a fault.
async fn next(watch: &mut Box<dyn Watch>) -> Result<WatchEvent, StoreError> {
    let told = timeout(PATIENCE, watch.next()).await;
    told.expect("a watch is not silent for so long")
}
