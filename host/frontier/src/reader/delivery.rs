//! Progress of a frontier's items on their way to the sink.

use std::ops::Range;

use super::{FrontierReader, keys, records};
use crate::FrontierError;
use crawler_model::crawl::ItemRecord;
use crawler_model::frontier::SinkMark;
use crawler_model::id::Run;

impl FrontierReader {
    /// Returns the marks of the sinks that the items were delivered to.
    pub async fn marks(&self) -> Result<Vec<SinkMark>, FrontierError> {
        let mut marks = Vec::new();
        let mut found = self.scan_prefix(keys::MARKS).await?;
        while let Some((key, value)) = found.next_bytes().await? {
            let key = key.slice(keys::MARKS.len()..);
            marks.push(SinkMark { key, value });
        }
        Ok(marks)
    }

    /// Returns true if no item of this run will be delivered after this: a later run has begun, which fenced
    /// off the owner during this one, and none of its items waits for the sink any more.
    pub async fn is_done_with(&self, run: Run) -> Result<bool, FrontierError> {
        let head = self.head().await?.unwrap_or_default();
        if head.run <= run.0 {
            return Ok(false);
        }
        let last = self.last_batch().await?;
        if last.outbox_first >= last.outbox_next {
            return Ok(true);
        }
        let first: Option<records::Item> =
            self.record(&keys::item(last.outbox_first), "item").await?;
        // The item was delivered between the two reads: the next call will tell.
        let Some(first) = first else {
            return Ok(false);
        };
        // Items are delivered in the order of their runs.
        Ok(self.decoded(&first)?.run > run)
    }

    /// Returns the numbers of the items that still wait for their sink.
    pub async fn undelivered(&self) -> Result<Range<u64>, FrontierError> {
        let last = self.last_batch().await?;
        Ok(last.outbox_first..last.outbox_next)
    }

    /// Returns the items with these numbers.
    pub async fn items(&self, places: Range<u64>) -> Result<Vec<ItemRecord>, FrontierError> {
        let mut items = Vec::new();
        let mut found = self
            .scan(keys::item(places.start)..keys::item(places.end))
            .await?;
        while let Some((_, record)) = found.next::<records::Item>("item").await? {
            items.push(self.decoded(&record)?);
        }
        Ok(items)
    }

    fn decoded(&self, record: &records::Item) -> Result<ItemRecord, FrontierError> {
        let item = serde_json::from_slice(&record.json);
        item.map_err(|e| self.damaged(format!("an item does not decode: {e}")))
    }

    pub(super) async fn last_batch(&self) -> Result<records::Batch, FrontierError> {
        let mut last = records::Batch::default();
        let mut found = self.scan_prefix(keys::BATCHES).await?;
        while let Some((_, batch)) = found.next::<records::Batch>("batch").await? {
            if batch.n > last.n {
                last = batch;
            }
        }
        Ok(last)
    }
}
