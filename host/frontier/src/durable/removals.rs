//! Items that a complete run has not seen: each is told as removed, and known no more.
//!
//! They are looked for in pieces. The batch of a piece has its changes, the end of what was known, and the place at which
//! the next piece begins, so that a call that was cut off, or a crash, leaves none out and tells none twice. If there is
//! a sink beside the one in the data root, the batch puts them into the outbox too, within its bound: a sink may want
//! changes, and gets each removed item behind all items of the run.

use slatedb::WriteBatch;
use tokio_util::sync::CancellationToken;

use super::inner::Inner;
use crate::{FrontierError, keys, records};

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
            if self.must_wait_for_sinks() {
                tokio::select! {
                    biased;
                    () = stop.cancelled() => {}
                    () = self.take_changed.notified() => {}
                }
                self.check()?;
                continue;
            }
            self.tell_some_removed(MAX_KNOWN).await?;
        }
        self.settle().await?;
        Ok(true)
    }

    /// Returns true if the outbox has no room for removed items at present.
    fn must_wait_for_sinks(&self) -> bool {
        let state = self.state();
        let outbox = &state.outbox;
        !outbox.is_for_lines_alone() && outbox.is_full(&state.last)
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
        let next = last.map(|last| keys::after(&last));
        let noted = self
            .state()
            .note_removals(removed, next, self.plugin, &mut batch);
        noted.map_err(|why| self.damaged(why))?;
        self.write(&guard, batch, 0).await.map(drop)
    }
}
