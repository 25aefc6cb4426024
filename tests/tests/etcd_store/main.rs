//! The store in a real etcd: the suite of all stores on one member and on three, and what only a
//! server that is killed, paused, compacted or strict can show.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use crawler::store::Store;
use crawler::store::etcd::{EtcdSettings, EtcdStore};
use crawler_tests::etcd::Etcd;

mod conformance;

/// Settings for a test's etcd.
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
