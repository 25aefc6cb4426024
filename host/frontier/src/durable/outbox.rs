//! Items on their way to their sinks. They are in the object store from the page's batch on, and the latest of
//! them also in memory, so that they are never read back for a sink that keeps up.

use async_trait::async_trait;
use prost::Message as _;
use slatedb::WriteBatch;

use super::DurableFrontier;
use super::inner::Inner;
use super::state::WINDOW;
use crate::{FrontierError, ItemOutbox, OutboxBatch, Undelivered, keys, records};
use crawler_model::crawl::ItemRecord;
use crawler_model::frontier::SinkMark;
use crawler_model::settings::{SinkName, SinkNames};

#[async_trait]
impl ItemOutbox for DurableFrontier {
    async fn outbox(&self, sink: &SinkName, max: usize) -> Result<OutboxBatch, FrontierError> {
        let inner = &self.inner;
        inner.check()?;
        let (first, found) = {
            let state = inner.state();
            let first = state.outbox.position(sink)?;
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

    async fn clear_outbox(
        &self,
        sink: &SinkName,
        end: u64,
        mark: Option<SinkMark>,
    ) -> Result<(), FrontierError> {
        let inner = &self.inner;
        inner.check()?;
        let guard = inner.writer.lock().await;
        let mut batch = WriteBatch::new();
        {
            let mut state = inner.state();
            let state = &mut *state;
            state.outbox.position(sink)?;
            state.outbox.advance(sink, end, &mut state.last, &mut batch);
        }
        if let Some(mark) = mark {
            batch.put(keys::mark(sink, &mark.key), mark.value);
        }
        inner.write(&guard, batch, 0).await?;
        inner.take_changed.notify_one();
        Ok(())
    }

    async fn marks(&self, sink: &SinkName) -> Result<Vec<SinkMark>, FrontierError> {
        let inner = &self.inner;
        inner.check()?;
        let mut marks = Vec::new();
        let mut found = inner.scan_prefix(&keys::marks_of(sink)).await?;
        while let Some((key, value)) = found.next().await? {
            let key = keys::parse_mark(sink, &key);
            marks.extend(key.map(|key| SinkMark { key, value }));
        }
        Ok(marks)
    }

    fn undelivered(&self, sink: &SinkName) -> Undelivered {
        let state = self.inner.state();
        state.outbox.undelivered(sink, &state.last)
    }

    fn undelivered_bytes(&self) -> u64 {
        self.inner.state().last.outbox_bytes
    }

    fn n_undelivered(&self) -> u64 {
        let last = &self.inner.state().last;
        last.outbox_next - last.outbox_first
    }

    fn sinks(&self) -> SinkNames {
        self.inner.state().outbox.sinks()
    }

    fn is_outbox_full(&self) -> bool {
        let state = self.inner.state();
        state.outbox.is_full(&state.last)
    }

    async fn outbox_changed(&self) {
        self.inner.outbox_changed.notified().await;
    }
}

impl Inner {
    /// Makes these the sinks of the frontier. Its head record and the record of the comparison become durable with that.
    /// Items that wait for a sink that is no longer among them are not delivered to it.
    pub(super) async fn set_sinks(&self, sinks: &SinkNames) -> Result<(), FrontierError> {
        let guard = self.writer.lock().await;
        let mut batch = WriteBatch::new();
        {
            let mut state = self.state();
            let state = &mut *state;
            if !sinks.is_only_lines() {
                let format = &mut state.head.format;
                *format = (*format).max(records::FORMAT_WITH_SINKS);
            }
            let (head, last) = (&state.head, &mut state.last);
            for (sink, n) in state.outbox.set_sinks(sinks, head, last, &mut batch) {
                tracing::warn!(%sink, n, "items are not delivered: the resource no longer has this sink");
            }
            batch.put(keys::HEAD, state.head.encode_to_vec());
            state.put_comparison(&mut batch);
            if std::mem::take(&mut state.quarantined.has_new_profiles) {
                state.quarantined.put_profiles(self.run, &mut batch);
            }
        }
        self.write(&guard, batch, 0).await?;
        drop(guard);
        self.settle().await
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
        // The size of what is read is limited to that of the window in memory, and counted as there: what was returned
        // from memory is returned from the store as well.
        while items.len() < max
            && n_bytes < WINDOW
            && let Some((_, value)) = found.next().await?
        {
            let record: records::Item = self.decode(&value, "item")?;
            n_bytes += record.n_bytes();
            items.push(record.read().map_err(|why| self.damaged(why))?);
        }
        Ok(items)
    }
}
