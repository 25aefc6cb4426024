//! Items on their way to the sinks, in the order they were committed.

use std::collections::{BTreeMap, VecDeque};

use crate::{FrontierError, Undelivered};
use crawler_model::crawl::ItemRecord;
use crawler_model::settings::{SinkName, SinkNames};

#[derive(Debug)]
pub(super) struct Outbox {
    /// Number of the first item.
    pub(super) first: u64,
    pub(super) items: VecDeque<ItemRecord>,
    pub(super) n_bytes: usize,
    /// Number of the first item that each sink does not have.
    positions: BTreeMap<SinkName, u64>,
}

impl Default for Outbox {
    fn default() -> Self {
        Self::new(&SinkNames::default())
    }
}

impl Outbox {
    pub(super) fn new(sinks: &SinkNames) -> Self {
        Self {
            first: 0,
            items: VecDeque::new(),
            n_bytes: 0,
            positions: sinks.iter().map(|sink| (sink.clone(), 0)).collect(),
        }
    }

    pub(super) fn push(&mut self, items: Vec<ItemRecord>) {
        for item in items {
            self.n_bytes += size_of_item(&item);
            self.items.push_back(item);
        }
    }

    /// Returns the number of the first item that a sink does not have.
    pub(super) fn position(&self, sink: &SinkName) -> Result<u64, FrontierError> {
        let position = self.positions.get(sink).copied();
        position.ok_or_else(|| FrontierError::NoSink { sink: sink.clone() })
    }

    /// Iterates over the items that a sink does not have, whose first has this number.
    pub(super) fn from(&self, position: u64) -> impl Iterator<Item = &ItemRecord> {
        self.items.iter().skip((position - self.first) as usize)
    }

    pub(super) fn sinks(&self) -> SinkNames {
        SinkNames::of(self.positions.keys().cloned())
    }

    pub(super) fn undelivered(&self, sink: &SinkName) -> Undelivered {
        let Ok(position) = self.position(sink) else {
            return Undelivered::default();
        };
        let n_items = self.first + self.items.len() as u64 - position;
        let n_bytes = match position == self.first {
            true => self.n_bytes as u64,
            false => self
                .from(position)
                .map(|item| size_of_item(item) as u64)
                .sum(),
        };
        Undelivered { n_items, n_bytes }
    }

    /// Moves the position of a sink behind the items before `end`, and removes the items that all sinks have.
    pub(super) fn advance(&mut self, sink: &SinkName, end: u64) -> Result<(), FrontierError> {
        let next = self.first + self.items.len() as u64;
        let position = self.position(sink)?.max(end.min(next));
        self.positions.insert(sink.clone(), position);
        let first = self.positions.values().min().copied().unwrap_or(next);
        while self.first < first
            && let Some(item) = self.items.pop_front()
        {
            self.n_bytes -= size_of_item(&item);
            self.first += 1;
        }
        Ok(())
    }
}

fn size_of_item(item: &ItemRecord) -> usize {
    let text = item.key.0.len() + item.url.len() + item.rule.len() + item.schema.len();
    size_of::<ItemRecord>() + text + item.item.get().len()
}
