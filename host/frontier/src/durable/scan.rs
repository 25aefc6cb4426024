//! Scans of the database, in the order of its keys.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use slatedb::DbIterator;
use tokio::time::Instant;

use super::inner::Inner;
use crate::{FrontierError, keys};

/// Maximum number of entries that are read ahead.
const MAX_AHEAD: usize = 64;
/// Size in bytes of what is read ahead, beyond which no further entry is.
const MAX_AHEAD_BYTES: usize = 256 << 10;
/// Time of reading ahead after which no further entry is: a store that answers slowly must not exceed the
/// deadline of one call for entries that nobody waits for.
const MAX_AHEAD_TIME: Duration = Duration::from_secs(1);

/// Iterator over the entries of a range in the order of their keys.
///
/// Entries are read ahead, because a call of the database costs more than most entries: twice as many each
/// time, so that a short scan reads little that nobody asked for.
pub(super) struct Entries<'a> {
    inner: &'a Inner,
    /// Iterator of the database. `None` once there are no more entries.
    entries: Option<DbIterator>,
    ahead: VecDeque<(Bytes, Bytes)>,
    /// Number of entries that are read ahead next.
    n_ahead: usize,
}

impl<'a> Entries<'a> {
    fn new(inner: &'a Inner, entries: Option<DbIterator>) -> Self {
        Self {
            inner,
            entries,
            ahead: VecDeque::new(),
            n_ahead: 1,
        }
    }

    pub(super) async fn next(&mut self) -> Result<Option<(Bytes, Bytes)>, FrontierError> {
        self.read_ahead().await?;
        Ok(self.ahead.pop_front())
    }

    /// Returns the next entry if its key is before `end`.
    pub(super) async fn next_before(
        &mut self,
        end: &Bytes,
    ) -> Result<Option<(Bytes, Bytes)>, FrontierError> {
        self.read_ahead().await?;
        Ok(self.ahead.pop_front_if(|(key, _)| *key < *end))
    }

    /// Skips all entries before `start`, which is a key of the scanned range. Entries that were returned
    /// before do not come again.
    pub(super) async fn skip_to(&mut self, start: &Bytes) -> Result<(), FrontierError> {
        while self.ahead.pop_front_if(|(key, _)| *key < *start).is_some() {}
        if self.ahead.is_empty()
            && let Some(entries) = &mut self.entries
        {
            self.inner.read(entries.seek(start)).await?;
            self.n_ahead = 1;
        }
        Ok(())
    }

    /// Makes sure that the next entry is in memory, if there is one.
    async fn read_ahead(&mut self) -> Result<(), FrontierError> {
        let Some(entries) = self.entries.as_mut().filter(|_| self.ahead.is_empty()) else {
            return Ok(());
        };
        let (ahead, max) = (&mut self.ahead, self.n_ahead);
        let read = async {
            let (mut n_bytes, begun) = (0, Instant::now());
            while ahead.is_empty()
                || ahead.len() < max
                    && n_bytes < MAX_AHEAD_BYTES
                    && begun.elapsed() < MAX_AHEAD_TIME
            {
                let Some(entry) = entries.next().await? else {
                    return Ok(true);
                };
                n_bytes += entry.key.len() + entry.value.len();
                ahead.push_back((entry.key, entry.value));
            }
            Ok(false)
        };
        if self.inner.read(read).await? {
            self.entries = None;
        }
        self.n_ahead = (max * 2).min(MAX_AHEAD);
        Ok(())
    }
}

impl Inner {
    pub(super) async fn scan(&self, range: Range<Bytes>) -> Result<Entries<'_>, FrontierError> {
        if range.is_empty() {
            return Ok(Entries::new(self, None));
        }
        let entries = self.read(self.db.scan(range)).await?;
        Ok(Entries::new(self, Some(entries)))
    }

    pub(super) async fn scan_prefix(&self, prefix: &[u8]) -> Result<Entries<'_>, FrontierError> {
        self.scan(Bytes::copy_from_slice(prefix)..keys::end_of(prefix))
            .await
    }
}
