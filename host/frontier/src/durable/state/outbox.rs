//! Items that wait for their sinks: their sizes, the latest of them, and the position of each sink.

use std::collections::{BTreeMap, VecDeque};

use prost::Message as _;
use slatedb::WriteBatch;

use crate::durable::settings::DurableSettings;
use crate::{FrontierError, Undelivered, keys, records};
use crawler_model::crawl::ItemRecord;
use crawler_model::settings::{SinkName, SinkNames};

/// Maximum size in bytes of the items that are kept in memory. There is room for the 8 MiB that a file sink gathers for one
/// write, and for the items that arrive during that write.
pub(in crate::durable) const WINDOW: usize = 12 << 20;

/// Items in the outbox. Some of the latest are in memory, for the sinks that keep up.
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
    /// Position of each sink; there is at least one.
    cursors: BTreeMap<SinkName, Cursor>,
    /// Sinks that this opening has removed, with the number of items that waited for each.
    pub(in crate::durable) dropped: Vec<(SinkName, u64)>,
    /// True if positions have records of their own. Otherwise the first item of the outbox is that of the only sink.
    has_records: bool,
    max_items: usize,
    max_bytes: u64,
}

/// Position of a sink.
#[derive(Debug, Clone, Copy, Default)]
struct Cursor {
    /// Number of the first item that the sink does not have.
    next: u64,
    /// Size in bytes of all items from there on.
    n_bytes: u64,
}

impl Outbox {
    pub(in crate::durable) fn new(settings: &DurableSettings) -> Self {
        Self {
            sizes: VecDeque::new(),
            window_first: 0,
            window: VecDeque::new(),
            window_bytes: 0,
            durable_next: 0,
            cursors: [(SinkName::lines(), Cursor::default())].into(),
            dropped: Vec::new(),
            has_records: false,
            max_items: settings.max_outbox_items,
            max_bytes: settings.max_outbox_bytes,
        }
    }

    /// Restores the state that an earlier opening has left: the sizes of the items before `next`, and the positions of
    /// the sinks.
    pub(in crate::durable) fn restore(
        &mut self,
        sizes: Vec<u32>,
        next: u64,
        positions: BTreeMap<SinkName, u64>,
    ) {
        let first = next - sizes.len() as u64;
        let cursor = |position: u64| {
            let position = position.clamp(first, next);
            let waiting = &sizes[(position - first) as usize..];
            Cursor {
                next: position,
                n_bytes: waiting.iter().map(|size| u64::from(*size)).sum(),
            }
        };
        let cursors = positions.into_iter();
        self.cursors = cursors.map(|(sink, at)| (sink, cursor(at))).collect();
        self.sizes = sizes.into();
        self.durable_next = next;
    }

    /// Makes these the only sinks: one that is new begins behind the present items. Returns the removed sinks that did not
    /// have all items, with the number of items.
    pub(in crate::durable) fn set_sinks(
        &mut self,
        sinks: &SinkNames,
        head: &records::Head,
        last: &mut records::Batch,
        batch: &mut WriteBatch,
    ) -> &[(SinkName, u64)] {
        let next = last.outbox_next;
        let mut gone: Vec<(SinkName, Cursor)> = Vec::new();
        self.cursors.retain(|sink, cursor| {
            let stays = sinks.contains(sink);
            if !stays {
                gone.push((sink.clone(), *cursor));
            }
            stays
        });
        for sink in sinks.iter() {
            let new = Cursor { next, n_bytes: 0 };
            self.cursors.entry(sink.clone()).or_insert(new);
        }
        self.has_records = records::has_positions(head.format);
        if self.has_records {
            for (sink, _) in &gone {
                batch.delete(keys::cursor(sink));
            }
            for (sink, cursor) in &self.cursors {
                put_cursor(sink, cursor.next, batch);
            }
        }
        self.trim(last, batch);
        let waited = gone
            .into_iter()
            .map(|(sink, cursor)| (sink, next - cursor.next));
        self.dropped = waited.filter(|(_, n)| *n > 0).collect();
        &self.dropped
    }

    /// Returns the number of the first item that a sink does not have.
    pub(in crate::durable) fn position(&self, sink: &SinkName) -> Result<u64, FrontierError> {
        let cursor = self.cursors.get(sink);
        let position = cursor.map(|cursor| cursor.next);
        position.ok_or_else(|| FrontierError::NoSink { sink: sink.clone() })
    }

    /// Returns the sinks.
    pub(in crate::durable) fn sinks(&self) -> SinkNames {
        SinkNames::of(self.cursors.keys().cloned())
    }

    /// Returns true if the sink in the data root is the only one, which gets no changes.
    pub(in crate::durable) fn is_for_lines_alone(&self) -> bool {
        self.cursors.keys().all(SinkName::is_lines)
    }

    /// Returns the items that wait for a sink.
    pub(in crate::durable) fn undelivered(
        &self,
        sink: &SinkName,
        last: &records::Batch,
    ) -> Undelivered {
        let waiting = self.cursors.get(sink).map(|cursor| Undelivered {
            n_items: last.outbox_next - cursor.next,
            n_bytes: cursor.n_bytes,
        });
        waiting.unwrap_or_default()
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
            let record = records::Item::new(&item, plugin);
            let size = record.n_bytes();
            let sequence = last.outbox_next;
            batch.put(keys::item(sequence), record.encode_to_vec());
            last.outbox_next += 1;
            last.outbox_bytes += size as u64;
            let counted = u32::try_from(size).unwrap_or(u32::MAX);
            self.sizes.push_back(counted);
            for cursor in self.cursors.values_mut() {
                cursor.n_bytes += u64::from(counted);
            }
            self.make_room(sequence, size, last.outbox_first);
            let follows = self.window_first + self.window.len() as u64 == sequence;
            if follows && self.window_bytes + size <= WINDOW {
                self.window_bytes += size;
                self.window.push_back(item);
            }
        }
    }

    /// Returns durable items from `first` on, if they are in memory. The error holds the number up to which
    /// the store has to be read: that of all durable items. A sink whose items have left memory gets no fewer of them
    /// than before, because it may have to compare them with what it has.
    pub(in crate::durable) fn from(&self, first: u64, max: usize) -> Result<Vec<ItemRecord>, u64> {
        let window_end = self.window_first + self.window.len() as u64;
        if first < self.window_first || first >= window_end {
            return Err(self.durable_next);
        }
        let skipped = (first - self.window_first) as usize;
        let n = (self.durable_next.saturating_sub(first) as usize).min(max);
        Ok(self.window.iter().skip(skipped).take(n).cloned().collect())
    }

    /// Moves the position of a sink behind the items before `end`, and removes the items that all sinks have.
    pub(in crate::durable) fn advance(
        &mut self,
        sink: &SinkName,
        end: u64,
        last: &mut records::Batch,
        batch: &mut WriteBatch,
    ) {
        let end = end.min(last.outbox_next);
        if let Some(cursor) = self.cursors.get_mut(sink)
            && cursor.next < end
        {
            let place = |number: u64| (number - last.outbox_first) as usize;
            let delivered = self.sizes.range(place(cursor.next)..place(end));
            let n_bytes: u64 = delivered.map(|size| u64::from(*size)).sum();
            cursor.n_bytes = cursor.n_bytes.saturating_sub(n_bytes);
            cursor.next = end;
            if self.has_records {
                put_cursor(sink, end, batch);
            }
        }
        self.trim(last, batch);
    }

    /// Removes the items that all sinks have.
    fn trim(&mut self, last: &mut records::Batch, batch: &mut WriteBatch) {
        let positions = self.cursors.values().map(|cursor| cursor.next);
        let first = positions.min().unwrap_or(last.outbox_next);
        while last.outbox_first < first
            && let Some(size) = self.sizes.pop_front()
        {
            batch.delete(keys::item(last.outbox_first));
            last.outbox_bytes = last.outbox_bytes.saturating_sub(u64::from(size));
            if self.window_first == last.outbox_first && self.window.pop_front().is_some() {
                self.window_first += 1;
                self.window_bytes -= size as usize;
            }
            last.outbox_first += 1;
        }
    }

    /// Makes room in memory for the next item, at the cost of sinks that lag behind: they read from the store. With one
    /// sink there is nothing to take.
    fn make_room(&mut self, sequence: u64, size: usize, first: u64) {
        let positions = self.cursors.values().map(|cursor| cursor.next);
        let furthest = positions.max().unwrap_or(sequence);
        let window_end = self.window_first + self.window.len() as u64;
        if window_end != sequence && window_end <= furthest {
            self.window.clear();
            self.window_bytes = 0;
        }
        while self.window_bytes + size > WINDOW
            && self.window_first < furthest
            && self.window.pop_front().is_some()
        {
            let place = (self.window_first - first) as usize;
            self.window_bytes -= self.sizes[place] as usize;
            self.window_first += 1;
        }
        if self.window.is_empty() {
            self.window_first = sequence;
        }
    }
}

fn put_cursor(sink: &SinkName, next: u64, batch: &mut WriteBatch) {
    batch.put(
        keys::cursor(sink),
        records::Number { n: next }.encode_to_vec(),
    );
}
