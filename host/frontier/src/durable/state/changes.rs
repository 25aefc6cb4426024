//! Comparison of the items of a run: its totals in memory, and what a page or the end of the run adds to them.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;
use slatedb::WriteBatch;

use super::State;
use crate::{keys, records};
use crawler_model::changes::{Change, ItemChange, ItemDigest, ItemKeys, ItemName};
use crawler_model::id::Run;

/// Comparison of the items of the present run.
#[derive(Debug)]
pub(in crate::durable) struct Comparison {
    pub(in crate::durable) record: records::Comparison,
    pub(in crate::durable) keys: Arc<ItemKeys>,
    pub(in crate::durable) counts: records::ChangeCounts,
}

/// An item that is known under a key.
#[derive(Debug, Clone)]
pub(in crate::durable) struct Latest {
    /// Run that has seen the item last.
    pub(in crate::durable) run: Run,
    pub(in crate::durable) digest: ItemDigest,
    /// Content of the item, unless it is stored already.
    pub(in crate::durable) item: Option<records::KnownItem>,
}

/// Known items by their names.
pub(in crate::durable) type LatestItems = HashMap<ItemName, Latest>;

/// Result of the comparison of a page's items with those that are known.
#[derive(Debug, Default)]
pub(in crate::durable) struct Compared {
    /// Items that are known from now on.
    pub(in crate::durable) latest: LatestItems,
    /// Changes in their order.
    pub(in crate::durable) changes: Vec<ItemChange>,
    pub(in crate::durable) n_unchanged: u64,
    pub(in crate::durable) n_repeated: u64,
    pub(in crate::durable) n_lacking_key: u64,
}

impl Comparison {
    /// Counts a change and stores it under the next number.
    pub(in crate::durable) fn push(&mut self, change: ItemChange, batch: &mut WriteBatch) {
        self.count(change.change);
        let key = keys::change(change.run, self.counts.next);
        batch.put(key, records::ItemChange::from(change).encode_to_vec());
        self.counts.next += 1;
    }

    fn count(&mut self, change: Change) {
        let counts = &mut self.counts;
        match change {
            Change::Added => counts.added += 1,
            Change::Changed => counts.changed += 1,
            Change::Removed => counts.removed += 1,
        }
    }

    pub(in crate::durable) fn put_counts(&self, batch: &mut WriteBatch) {
        let key = keys::change_counts(Run(self.record.run));
        batch.put(key, self.counts.encode_to_vec());
    }
}

impl State {
    /// Stores which items are compared, or that none are.
    pub(in crate::durable) fn put_comparison(&self, batch: &mut WriteBatch) {
        let key = Bytes::from_static(keys::COMPARISON);
        match &self.comparison {
            Some(comparison) => {
                batch.put(key, comparison.record.encode_to_vec());
                comparison.put_counts(batch);
            }
            None => batch.delete(key),
        }
    }

    /// Adds the changes of a page's items to the batch of the page, which was applied already.
    pub(in crate::durable) fn note_changes(
        &mut self,
        compared: &mut Compared,
        batch: &mut WriteBatch,
    ) {
        let n_items = self.counts.items;
        let Some(comparison) = &mut self.comparison else {
            return;
        };
        let generation = comparison.record.generation;
        for (name, latest) in &compared.latest {
            let known = records::Known::new(latest.run, latest.digest);
            batch.put(keys::known(generation, *name), known.encode_to_vec());
            if let Some(item) = &latest.item {
                let key = keys::known_item(generation, *name);
                batch.put(key, item.encode_to_vec());
            }
        }
        for change in std::mem::take(&mut compared.changes) {
            comparison.push(change, batch);
        }
        let counts = &mut comparison.counts;
        counts.unchanged += compared.n_unchanged;
        counts.repeated += compared.n_repeated;
        counts.lacking_key += compared.n_lacking_key;
        counts.n_items = n_items;
        comparison.put_counts(batch);
    }
}
