//! Clusters with a CA for tests, on a store in memory.

use std::sync::Arc;

use super::*;
use crawler_process::clock::Clock;
use crawler_store::Txn;
use crawler_store::catalog::{Catalog, encode};
use crawler_store::keys::Keys;
use crawler_store::twin::StoreTwin;

pub(crate) const NOW: UnixMillis = 1_800_000_000_000;

/// A clock that stands still.
pub(crate) struct Still;

impl Clock for Still {
    fn unix_nanos(&self) -> u64 {
        NOW * 1_000_000
    }
}

/// Returns the catalog of a cluster that has an id and nothing else.
pub(crate) async fn cluster() -> Catalog {
    let catalog = Catalog::new(Arc::new(StoreTwin::new()), Keys::default());
    let id = Txn::new().put(catalog.keys().cluster(), encode(&"0f0f"));
    catalog.store().commit(id).await.unwrap();
    catalog
}

/// Returns the access of a master whose sealing key has this byte.
pub(crate) fn master(catalog: &Catalog, byte: u8) -> Authority {
    let key = SealingKey::of_bytes(&[byte; SEALING_KEY_MIN]).unwrap();
    Authority::new(
        Some(CaSource::Sealed(Box::new(key))),
        catalog.clone(),
        Arc::new(Still),
    )
}
