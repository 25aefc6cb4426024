//! Items on their way to the sink. They are in the object store from the page's batch on, and the latest of
//! them also in memory, so that they are never read back for a sink that keeps up.

use std::collections::VecDeque;

use prost::Message as _;
use slatedb::WriteBatch;

use super::Inner;
use super::settings::DurableSettings;
use crate::{FrontierError, OutboxBatch, keys, records};
use crawler_model::crawl::ItemRecord;
use crawler_model::frontier::SinkMark;

/// Maximum size in bytes of the items that are kept in memory.
const WINDOW: usize = 8 << 20;

#[derive(Debug)]
pub(super) struct Outbox {
    /// Sizes of all items in the outbox, oldest first.
    sizes: VecDeque<u32>,
    /// Number of the first item in memory.
    window_first: u64,
    window: VecDeque<ItemRecord>,
    window_bytes: usize,
    /// Number below which all items are durable.
    pub(super) durable_next: u64,
    max_items: usize,
    max_bytes: u64,
}

impl Outbox {
    pub(super) fn new(settings: &DurableSettings) -> Self {
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
    pub(super) fn restore(&mut self, sizes: Vec<u32>, next: u64) {
        self.sizes = sizes.into();
        self.durable_next = next;
    }

    pub(super) fn is_full(&self, last: &records::Batch) -> bool {
        self.sizes.len() >= self.max_items || last.outbox_bytes >= self.max_bytes
    }

    pub(super) fn push(
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
    fn from(&self, first: u64, max: usize) -> Result<Vec<ItemRecord>, u64> {
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
    fn clear(&mut self, end: u64, last: &mut records::Batch) {
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

impl Inner {
    pub(super) async fn outbox(&self, max: usize) -> Result<OutboxBatch, FrontierError> {
        self.check()?;
        let (first, found) = {
            let state = self.state();
            let first = state.last.outbox_first;
            (first, state.outbox.from(first, max))
        };
        let items = match found {
            Ok(items) => items,
            Err(until) => self.read_outbox(first, until, max).await?,
        };
        Ok(OutboxBatch {
            end: first + items.len() as u64,
            items,
        })
    }

    /// Reads items from the store. The scan begins at `first`, so that it does not pass over delivered items
    /// again.
    async fn read_outbox(
        &self,
        first: u64,
        until: u64,
        max: usize,
    ) -> Result<Vec<ItemRecord>, FrontierError> {
        let mut items = Vec::new();
        if first >= until {
            return Ok(items);
        }
        let range = keys::item(first)..keys::item(until);
        let mut found = self.scan(range).await?;
        let mut n_bytes = 0;
        // The size of what is read is limited to that of the window in memory.
        while items.len() < max
            && n_bytes < WINDOW
            && let Some((_, value)) = found.next().await?
        {
            n_bytes += value.len();
            let record: records::Item = self.decode(&value, "item")?;
            let item = serde_json::from_slice(&record.json);
            items.push(item.map_err(|e| self.damaged(format!("an item is not JSON: {e}")))?);
        }
        Ok(items)
    }

    pub(super) async fn clear_outbox(
        &self,
        end: u64,
        mark: Option<SinkMark>,
    ) -> Result<(), FrontierError> {
        self.check()?;
        let guard = self.writer.lock().await;
        let mut batch = WriteBatch::new();
        {
            let mut state = self.state();
            let state = &mut *state;
            let end = end.min(state.last.outbox_next);
            for sequence in state.last.outbox_first..end {
                batch.delete(keys::item(sequence));
            }
            state.outbox.clear(end, &mut state.last);
        }
        if let Some(mark) = mark {
            batch.put(keys::mark(&mark.key), mark.value);
        }
        self.write(&guard, batch, 0).await?;
        self.take_changed.notify_one();
        Ok(())
    }
}
