//! Comparison of the items of a run: its totals in memory, and what a page or the end of the run adds to them.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;
use slatedb::WriteBatch;

use super::State;
use crate::{keys, records};
use crawler_model::changes::{Change, ItemChange, ItemDigest, ItemKeys, ItemName, ToldChange};
use crawler_model::crawl::{GoneItem, ItemRecord};
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
    /// Changes in their order, each with the place of its item among those of the page.
    pub(in crate::durable) changes: Vec<(usize, ItemChange)>,
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

    /// Gives the items of a page what has changed of them, if there is a sink that may want it. The changes have the
    /// numbers under which [`note_changes`](Self::note_changes) stores them in the same batch.
    pub(in crate::durable) fn tell_items(&self, compared: &Compared, items: &mut [ItemRecord]) {
        let Some(comparison) = &self.comparison else {
            return;
        };
        if self.outbox.is_for_lines_alone() {
            return;
        }
        for ((place, change), number) in compared.changes.iter().zip(comparison.counts.next..) {
            items[*place].change = Some(Box::new(ToldChange {
                change: change.change,
                number,
                key: change.key.clone(),
                fields: change.fields.clone(),
                old: change.old.clone(),
            }));
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
        for (_, change) in std::mem::take(&mut compared.changes) {
            comparison.push(change, batch);
        }
        let counts = &mut comparison.counts;
        counts.unchanged += compared.n_unchanged;
        counts.repeated += compared.n_repeated;
        counts.lacking_key += compared.n_lacking_key;
        counts.n_items = n_items;
        comparison.put_counts(batch);
    }

    /// Adds items to a batch that this run has not seen, as changes, and for the sinks if there is one that may want them.
    /// `cursor` is the key at which the next piece begins; after the last piece it is `None`. The error tells which item
    /// is damaged; nothing is changed then.
    pub(in crate::durable) fn note_removals(
        &mut self,
        removed: Vec<records::KnownItem>,
        cursor: Option<Bytes>,
        plugin: u32,
        batch: &mut WriteBatch,
    ) -> Result<(), String> {
        let Some(comparison) = &mut self.comparison else {
            return Ok(());
        };
        let mut told = Vec::new();
        if !self.outbox.is_for_lines_alone() {
            let at = self.time.to_wall(self.time.latest());
            for (item, number) in removed.iter().zip(comparison.counts.next..) {
                let gone = GoneItem::from(item.clone());
                let record = ItemRecord::removal(gone, self.run, at, number);
                let damage =
                    |error: serde_json::Error| format!("item {} is no JSON: {error}", item.key);
                told.push(record.map_err(damage)?);
            }
        }
        for item in removed {
            let change = ItemChange {
                change: Change::Removed,
                key: item.key,
                kind: item.kind,
                run: self.run,
                fields: Vec::new(),
                old: item.json,
                item: String::new(),
            };
            comparison.push(change, batch);
        }
        comparison.counts.is_complete = cursor.is_none();
        comparison.counts.cursor = cursor.unwrap_or_default();
        comparison.put_counts(batch);
        if !told.is_empty() && self.head.format < records::FORMAT_WITH_REMOVALS {
            self.head.format = records::FORMAT_WITH_REMOVALS;
            batch.put(keys::HEAD, self.head.encode_to_vec());
        }
        self.outbox.push(told, plugin, &mut self.last, batch);
        Ok(())
    }
}
