//! Progress of a frontier's items on their way to the sinks, above all to the one in the data root.

use std::collections::BTreeMap;
use std::ops::Range;

use super::{FrontierReader, keys, records};
use crate::FrontierError;
use crawler_model::crawl::ItemRecord;
use crawler_model::frontier::SinkMark;
use crawler_model::id::Run;
use crawler_model::settings::SinkName;

impl FrontierReader {
    /// Returns the marks of the sink in the data root.
    pub async fn marks(&self) -> Result<Vec<SinkMark>, FrontierError> {
        let lines = SinkName::lines();
        let mut marks = Vec::new();
        let mut found = self.scan_prefix(&keys::marks_of(&lines)).await?;
        while let Some((key, value)) = found.next_bytes().await? {
            let key = keys::parse_mark(&lines, &key);
            marks.extend(key.map(|key| SinkMark { key, value }));
        }
        Ok(marks)
    }

    /// Returns true if no item of this run will be delivered to the data root after this: a later run has begun, which
    /// fenced off the owner during this one, and none of its items waits for that sink any more.
    pub async fn is_done_with(&self, run: Run) -> Result<bool, FrontierError> {
        let head = self.head().await?.unwrap_or_default();
        if head.run <= run.0 {
            return Ok(false);
        }
        let waiting = self.undelivered().await?;
        if waiting.is_empty() {
            return Ok(true);
        }
        let first: Option<records::Item> = self.record(&keys::item(waiting.start), "item").await?;
        // The item was delivered between the two reads: the next call will tell.
        let Some(first) = first else {
            return Ok(false);
        };
        // Items are delivered in the order of their runs.
        Ok(self.decoded(&first)?.run > run)
    }

    /// Returns the numbers of the items that still wait for the sink in the data root.
    pub async fn undelivered(&self) -> Result<Range<u64>, FrontierError> {
        let (positions, next) = self.positions().await?;
        let position = positions.get(&SinkName::lines());
        Ok(position.map_or(next..next, |position| *position..next))
    }

    /// Returns the number of items that still wait for each of the other sinks.
    pub async fn undelivered_elsewhere(&self) -> Result<BTreeMap<SinkName, u64>, FrontierError> {
        let (positions, next) = self.positions().await?;
        let others = positions.into_iter().filter(|(sink, _)| !sink.is_lines());
        let waiting = others.map(|(sink, position)| (sink, next - position));
        Ok(waiting.filter(|(_, n)| *n > 0).collect())
    }

    /// Returns the number of the first item that each sink does not have, and the number of the next item.
    async fn positions(&self) -> Result<(BTreeMap<SinkName, u64>, u64), FrontierError> {
        let head = self.head().await?.unwrap_or_default();
        let last = self.last_batch().await?;
        let (first, next) = (last.outbox_first, last.outbox_next);
        if !records::has_positions(head.format) {
            return Ok(([(SinkName::lines(), first)].into(), next));
        }
        let mut positions = BTreeMap::new();
        let mut found = self.scan_prefix(keys::CURSORS).await?;
        while let Some((key, cursor)) = found.next::<records::Number>("cursor").await? {
            let sink = keys::parse_cursor(&key)
                .ok_or_else(|| self.damaged("the key of a cursor names no sink".to_owned()))?;
            // The owner may have delivered more since the batch was read.
            positions.insert(sink, cursor.n.clamp(first, next));
        }
        Ok((positions, next))
    }

    /// Returns the items with these numbers. Among them are those that were told as removed, which no sink of items gets.
    pub async fn items(&self, places: Range<u64>) -> Result<Vec<ItemRecord>, FrontierError> {
        let mut items = Vec::new();
        let mut found = self
            .scan(keys::item(places.start)..keys::item(places.end))
            .await?;
        while let Some((_, record)) = found.next::<records::Item>("item").await? {
            items.push(self.decoded(record)?);
        }
        Ok(items)
    }

    fn decoded(&self, record: records::Item) -> Result<ItemRecord, FrontierError> {
        record.read().map_err(|why| self.damaged(why))
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
