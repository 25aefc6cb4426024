//! Items on their way to the sink. They are in the object store from the page's batch on, and the latest of
//! them also in memory, so that they are never read back for a sink that keeps up.

use async_trait::async_trait;
use slatedb::WriteBatch;

use super::DurableFrontier;
use super::inner::Inner;
use super::state::WINDOW;
use crate::{FrontierError, ItemOutbox, OutboxBatch, keys, records};
use crawler_model::crawl::ItemRecord;
use crawler_model::frontier::SinkMark;

#[async_trait]
impl ItemOutbox for DurableFrontier {
    async fn outbox(&self, max: usize) -> Result<OutboxBatch, FrontierError> {
        let inner = &self.inner;
        inner.check()?;
        let (first, found) = {
            let state = inner.state();
            let first = state.last.outbox_first;
            (first, state.outbox.from(first, max))
        };
        let items = match found {
            Ok(items) => items,
            Err(until) => inner.read_outbox(first, until, max).await?,
        };
        Ok(OutboxBatch {
            end: first + items.len() as u64,
            items,
        })
    }

    async fn clear_outbox(&self, end: u64, mark: Option<SinkMark>) -> Result<(), FrontierError> {
        let inner = &self.inner;
        inner.check()?;
        let guard = inner.writer.lock().await;
        let mut batch = WriteBatch::new();
        {
            let mut state = inner.state();
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
        inner.write(&guard, batch, 0).await?;
        inner.take_changed.notify_one();
        Ok(())
    }

    fn undelivered_bytes(&self) -> u64 {
        self.inner.state().last.outbox_bytes
    }

    fn n_undelivered(&self) -> u64 {
        let last = &self.inner.state().last;
        last.outbox_next - last.outbox_first
    }

    async fn outbox_changed(&self) {
        self.inner.outbox_changed.notified().await;
    }
}

impl Inner {
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
}
