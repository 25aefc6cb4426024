//! Reads of records: of all at once, and of one at a time.

use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::Observed;
use crate::lists::decoded;
use crate::placement::Strategy;
use crawler_store::catalog::Versioned;
use crawler_store::keys::Keys;
use crawler_store::{Entry, ListingVisitor};

/// State of a read of all records.
pub(super) struct Reading<'a> {
    pub(super) keys: &'a Keys,
    pub(super) strategy: Strategy,
    pub(super) observed: Observed,
    pub(super) before: Arc<Observed>,
}

impl ListingVisitor for Reading<'_> {
    fn begin(&mut self) {
        self.observed = Observed::nothing(self.strategy);
    }

    fn entry(&mut self, entry: Entry) {
        let before = Some(&*self.before);
        self.observed.put_or_keep(self.keys, &entry, before);
    }
}

/// Decodes a record, or returns the known one if it was not written since.
pub(super) fn record<T: DeserializeOwned>(
    entry: &Entry,
    known: Option<&Arc<Versioned<T>>>,
) -> Option<Arc<Versioned<T>>> {
    match known {
        Some(known) if known.revision == entry.revision => Some(Arc::clone(known)),
        Some(_) | None => decoded(entry).map(Arc::new),
    }
}
