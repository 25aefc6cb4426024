//! Items that a complete run has not seen: each is told as removed, and known no more.
//!
//! They are looked for in pieces. The batch of a piece has its changes, the end of what was known, and the place at which
//! the next piece begins, so that a call that was cut off, or a crash, leaves none out and tells none twice.

use bytes::Bytes;
use slatedb::WriteBatch;
use tokio_util::sync::CancellationToken;

use super::inner::Inner;
use crate::{FrontierError, keys, records};
use crawler_model::changes::{Change, ItemChange};

/// Number of known items that one batch looks at.
const MAX_KNOWN: usize = 1_024;
/// Number of removed items of one batch. The content of each is read by itself, while pages wait for the writer.
pub(super) const MAX_REMOVED: usize = 64;
/// Size in bytes of the removed items of one batch, above which it ends.
const MAX_BYTES: usize = 1 << 20;

impl Inner {
    /// Tells the items that this run has not seen as removed. Returns false if it was stopped before the last one.
    pub(super) async fn tell_removed(
        &self,
        stop: &CancellationToken,
    ) -> Result<bool, FrontierError> {
        while !self.are_removed_told() {
            if stop.is_cancelled() {
                return Ok(false);
            }
            self.tell_some_removed(MAX_KNOWN).await?;
        }
        self.settle().await?;
        Ok(true)
    }

    /// Returns true if nothing is left to tell.
    fn are_removed_told(&self) -> bool {
        let state = self.state();
        let comparison = state.comparison.as_ref();
        comparison.is_none_or(|comparison| comparison.counts.is_complete)
    }

    /// Tells those of the next known items, of which it looks at `max_known`, that this run has not seen.
    pub(super) async fn tell_some_removed(&self, max_known: usize) -> Result<(), FrontierError> {
        self.check()?;
        let guard = self.writer.lock().await;
        let place = {
            let state = self.state();
            let comparison = state.comparison.as_ref();
            comparison.map(|comparison| {
                let cursor = comparison.counts.cursor.clone();
                (comparison.record.generation, cursor)
            })
        };
        let Some((generation, cursor)) = place else {
            return Ok(());
        };
        let all = keys::known_of(generation);
        let end = keys::end_of(&all);
        let start = if cursor.is_empty() { all } else { cursor };
        let mut batch = WriteBatch::new();
        let (mut n_known, mut n_bytes) = (0, 0);
        let mut removed = Vec::new();
        let mut last = None;
        let mut found = self.scan(start..end).await?;
        while n_known < max_known
            && removed.len() < MAX_REMOVED
            && n_bytes < MAX_BYTES
            && let Some((key, value)) = found.next().await?
        {
            n_known += 1;
            let known: records::Known = self.decode(&value, "known item")?;
            if known.run < self.run.0 {
                let name = keys::parse_known(&key);
                let name =
                    name.ok_or_else(|| self.damaged("the key of an item is too short".to_owned()))?;
                let item = self.known_item(generation, name).await?;
                n_bytes += item.json.len();
                batch.delete(key.clone());
                batch.delete(keys::known_item(generation, name));
                removed.push(item);
            }
            last = Some(key);
        }
        drop(found);
        if let Some(comparison) = &mut self.state().comparison {
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
                comparison.push(change, &mut batch);
            }
            match last {
                Some(last) => comparison.counts.cursor = keys::after(&last),
                None => {
                    comparison.counts.is_complete = true;
                    comparison.counts.cursor = Bytes::new();
                }
            }
            comparison.put_counts(&mut batch);
        }
        self.write(&guard, batch, 0).await.map(drop)
    }
}
