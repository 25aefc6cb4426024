//! Items that wait for their sink: their sizes, and the latest of them.

use std::collections::VecDeque;

use prost::Message as _;
use slatedb::WriteBatch;

use crate::durable::settings::DurableSettings;
use crate::{keys, records};
use crawler_model::crawl::ItemRecord;

/// Maximum size in bytes of the items that are kept in memory.
pub(in crate::durable) const WINDOW: usize = 8 << 20;

/// Items in the outbox. Only the latest of them are in memory.
#[derive(Debug)]
pub(in crate::durable) struct Outbox {
    /// Sizes of all items in the outbox, oldest first.
    sizes: VecDeque<u32>,
    /// Number of the first item in memory.
    window_first: u64,
    window: VecDeque<ItemRecord>,
    window_bytes: usize,
    /// Number below which all items are durable.
    pub(in crate::durable) durable_next: u64,
    max_items: usize,
    max_bytes: u64,
}

impl Outbox {
    pub(in crate::durable) fn new(settings: &DurableSettings) -> Self {
        Self {
            sizes: VecDeque::new(),
            window_first: 0,
            window: VecDeque::new(),
            window_bytes: 0,
            durable_next: 0,
            max_items: settings.max_outbox_items,
            max_bytes: settings.max_outbox_bytes,
        }
    }

    /// Restores the state that an earlier opening has left.
    pub(in crate::durable) fn restore(&mut self, sizes: Vec<u32>, next: u64) {
        self.sizes = sizes.into();
        self.durable_next = next;
    }

    pub(in crate::durable) fn is_full(&self, last: &records::Batch) -> bool {
        self.sizes.len() >= self.max_items || last.outbox_bytes >= self.max_bytes
    }

    pub(in crate::durable) fn push(
        &mut self,
        items: Vec<ItemRecord>,
        plugin: u32,
        last: &mut records::Batch,
        batch: &mut WriteBatch,
    ) {
        for item in items {
            let json = serde_json::to_vec(&item).expect("a record of texts is JSON");
            let size = json.len();
            let record = records::Item {
                json: json.into(),
                plugin,
            };
            let sequence = last.outbox_next;
            batch.put(keys::item(sequence), record.encode_to_vec());
            last.outbox_next += 1;
            last.outbox_bytes += size as u64;
            self.sizes
                .push_back(u32::try_from(size).unwrap_or(u32::MAX));
            if self.window.is_empty() {
                self.window_first = sequence;
            }
            let follows = self.window_first + self.window.len() as u64 == sequence;
            if follows && self.window_bytes + size <= WINDOW {
                self.window_bytes += size;
                self.window.push_back(item);
            }
        }
    }

    /// Returns durable items from `first` on, if they are in memory. The error holds the number up to which
    /// the store has to be read.
    pub(in crate::durable) fn from(&self, first: u64, max: usize) -> Result<Vec<ItemRecord>, u64> {
        let window_end = self.window_first + self.window.len() as u64;
        if first < self.window_first || first >= window_end {
            let until = match first < self.window_first && !self.window.is_empty() {
                true => self.window_first.min(self.durable_next),
                false => self.durable_next,
            };
            return Err(until);
        }
        let skipped = (first - self.window_first) as usize;
        let n = (self.durable_next.saturating_sub(first) as usize).min(max);
        Ok(self.window.iter().skip(skipped).take(n).cloned().collect())
    }

    /// Removes items before `end`.
    pub(in crate::durable) fn clear(&mut self, end: u64, last: &mut records::Batch) {
        while last.outbox_first < end
            && let Some(size) = self.sizes.pop_front()
        {
            last.outbox_bytes = last.outbox_bytes.saturating_sub(u64::from(size));
            if self.window_first == last.outbox_first && self.window.pop_front().is_some() {
                self.window_first += 1;
                self.window_bytes -= size as usize;
            }
            last.outbox_first += 1;
        }
    }
}
