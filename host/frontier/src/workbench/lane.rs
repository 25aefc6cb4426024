//! URLs of one host and priority: the first of them in memory, the rest where the caller keeps them.

use std::collections::{BTreeMap, BTreeSet};

use crawler_model::crawl::UnixMillis;

/// Place of a URL in its lane: by the moment it is due, then by age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct QueuePosition {
    /// Time before which the URL is not due.
    pub(crate) due: UnixMillis,
    /// Number that grows with each stored URL.
    pub(crate) entry: u64,
}

impl QueuePosition {
    /// Returns the position after which this one is the next. Entries count from 1, so there always is one before.
    fn before(self) -> Self {
        Self {
            entry: self.entry.saturating_sub(1),
            ..self
        }
    }
}

/// Result of queueing a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Put {
    /// True if the URL sorts before the cursor that was saved last, or none was saved: the cursor must be
    /// saved again together with the URL.
    pub(crate) precedes_cursor: bool,
}

/// Start of a lane's URLs: none is left before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) priority: i32,
    pub(crate) at: QueuePosition,
}

#[derive(Debug)]
pub(super) struct Lane<T> {
    buffer: BTreeMap<QueuePosition, T>,
    in_flight: BTreeSet<QueuePosition>,
    /// Position after which URLs may be outside of memory. If `None`, all are in memory.
    more_after: Option<QueuePosition>,
    needs_refill: bool,
    /// URLs queued after `more_after` while others are being read in, which the scan may have missed: the first
    /// of them, up to the capacity.
    put_meanwhile: Option<BTreeMap<QueuePosition, T>>,
    /// The first position that was left out there. From it on, what is read in may lack URLs.
    left_out: Option<QueuePosition>,
    /// Positions of URLs that ended while others are being read in, which the scan may still have found.
    released_meanwhile: BTreeSet<QueuePosition>,
    /// Start of the lane, as saved last.
    saved: Option<QueuePosition>,
}

impl<T> Default for Lane<T> {
    fn default() -> Self {
        Self {
            buffer: BTreeMap::new(),
            in_flight: BTreeSet::new(),
            more_after: None,
            needs_refill: false,
            put_meanwhile: None,
            left_out: None,
            released_meanwhile: BTreeSet::new(),
            saved: None,
        }
    }
}

impl<T> Lane<T> {
    /// Creates a lane whose URLs are all outside of memory; the first of them may be the one at the cursor.
    pub(super) fn from_cursor(at: QueuePosition) -> Self {
        Self {
            more_after: Some(at.before()),
            saved: Some(at),
            ..Self::default()
        }
    }

    pub(super) fn n_buffered(&self) -> usize {
        self.buffer.len()
    }

    pub(super) fn first(&self) -> Option<QueuePosition> {
        self.buffer.first_key_value().map(|(position, _)| *position)
    }

    /// Returns true if no URL is in memory, but others exist.
    pub(super) fn is_dry(&self) -> bool {
        self.buffer.is_empty() && self.more_after.is_some()
    }

    /// Returns true if no URL is left.
    pub(super) fn is_over(&self) -> bool {
        self.buffer.is_empty() && self.in_flight.is_empty() && self.more_after.is_none()
    }

    pub(super) fn put(&mut self, position: QueuePosition, url: T, capacity: usize) -> Put {
        let put = Put {
            precedes_cursor: self.saved.is_none_or(|saved| position < saved),
        };
        match self.more_after {
            Some(last) if position > last => {
                if let Some(meanwhile) = &mut self.put_meanwhile
                    && self.left_out.is_none_or(|first| position < first)
                {
                    meanwhile.insert(position, url);
                    if meanwhile.len() > capacity.max(1)
                        && let Some((position, _)) = meanwhile.pop_last()
                    {
                        self.left_out = Some(position);
                    }
                }
            }
            Some(_) | None => {
                self.buffer.insert(position, url);
                self.keep_first(capacity);
            }
        }
        put
    }

    pub(super) fn hold(&mut self, position: QueuePosition) {
        self.in_flight.insert(position);
    }

    pub(super) fn pop(&mut self, now: UnixMillis) -> Option<(QueuePosition, T)> {
        let first = self.buffer.first_entry()?;
        if first.key().due > now {
            return None;
        }
        let (position, url) = first.remove_entry();
        self.in_flight.insert(position);
        Some((position, url))
    }

    pub(super) fn release(&mut self, position: QueuePosition) {
        self.in_flight.remove(&position);
        if self.put_meanwhile.is_some() {
            self.released_meanwhile.insert(position);
        }
    }

    /// Returns the start of the lane: no URL that is left sorts before it.
    pub(super) fn save(&mut self) -> Option<QueuePosition> {
        let first = [
            self.in_flight.first().copied(),
            self.first(),
            self.more_after,
        ];
        self.saved = first.into_iter().flatten().min();
        self.saved
    }

    /// Returns the position before which no URL waits.
    pub(super) fn begins(&self) -> Option<QueuePosition> {
        self.first().or(self.more_after)
    }

    /// Returns the cursor from which [`from_cursor`](Self::from_cursor) makes the same lane, or `None` if
    /// that would lose something.
    pub(super) fn as_cursor(&self) -> Option<QueuePosition> {
        let is_empty = self.buffer.is_empty() && self.in_flight.is_empty();
        let is_read_in = self.needs_refill || self.put_meanwhile.is_some();
        let after = self.more_after.filter(|_| is_empty && !is_read_in)?;
        Some(QueuePosition {
            entry: after.entry.saturating_add(1),
            ..after
        })
    }

    /// Removes all URLs from memory.
    pub(super) fn spill(&mut self) {
        if let Some(first) = self.first() {
            self.more_after = Some(first.before());
            self.buffer = BTreeMap::new();
        }
        self.needs_refill = false;
        self.put_meanwhile = None;
        self.released_meanwhile.clear();
    }

    /// Returns true once when no more than `few` URLs are left in memory.
    pub(super) fn request_refill(&mut self, few: usize) -> bool {
        let becomes = self.more_after.is_some() && self.buffer.len() <= few && !self.needs_refill;
        self.needs_refill |= becomes;
        becomes
    }

    pub(super) fn needs_refill(&self) -> bool {
        self.needs_refill
    }

    /// Returns the position after which the scan begins, or `None` if it is not wanted any more.
    pub(super) fn begin_refill(&mut self) -> Option<QueuePosition> {
        let after = self.more_after.filter(|_| self.needs_refill)?;
        self.put_meanwhile = Some(BTreeMap::new());
        self.left_out = None;
        self.released_meanwhile.clear();
        Some(after)
    }

    pub(super) fn fill(&mut self, urls: Vec<(QueuePosition, T)>, is_all: bool, capacity: usize) {
        self.needs_refill = false;
        let (Some(meanwhile), Some(after)) = (self.put_meanwhile.take(), self.more_after) else {
            return;
        };
        let last_read = urls.last().map_or(after, |(position, _)| *position);
        let last = match (is_all, self.left_out.take()) {
            (true, None) => None,
            (false, None) => Some(last_read),
            // The URLs up to the last that was kept are complete.
            (_, Some(left_out)) => {
                let kept = meanwhile
                    .last_key_value()
                    .map_or(after, |(position, _)| *position);
                let complete = if is_all { kept } else { kept.min(last_read) };
                debug_assert!(complete < left_out, "URLs are left out from the last on");
                Some(complete)
            }
        };
        self.more_after = last;
        let is_known = |position: &QueuePosition| last.is_none_or(|last| *position <= last);
        let released = std::mem::take(&mut self.released_meanwhile);
        let urls = urls
            .into_iter()
            .filter(|(position, _)| !released.contains(position));
        for (position, url) in urls.chain(meanwhile) {
            if is_known(&position) && !self.in_flight.contains(&position) {
                self.buffer.insert(position, url);
            }
        }
        self.keep_first(capacity);
    }

    fn keep_first(&mut self, capacity: usize) {
        let mut has_dropped = false;
        while self.buffer.len() > capacity.max(1) {
            self.buffer.pop_last();
            has_dropped = true;
        }
        if has_dropped {
            // The scan that is under way begins after URLs that are no longer in memory.
            self.put_meanwhile = None;
            self.more_after = self.buffer.last_key_value().map(|(position, _)| *position);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(entry: u64) -> QueuePosition {
        QueuePosition { due: 0, entry }
    }

    #[test]
    fn urls_put_during_a_scan_are_kept_as_far_as_there_is_room() {
        let mut lane = Lane::from_cursor(position(1));
        assert!(lane.request_refill(9));
        lane.begin_refill();
        for entry in [5, 3, 9, 4] {
            lane.put(position(entry), entry, 2);
        }
        lane.put(position(6), 6, 9);
        lane.fill(vec![(position(1), 1), (position(2), 2)], true, 8);
        assert_eq!(lane.buffer.into_values().collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert_eq!(lane.more_after, Some(position(4)));
    }
}
