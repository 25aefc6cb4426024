//! Items on their way to the sinks, and the position of each sink.

use async_trait::async_trait;

use super::open::{BOUNDS, Opened};
use super::plain::Plain;
use crate::{FrontierError, ItemOutbox, OutboxBatch, Undelivered};
use crawler_model::frontier::SinkMark;
use crawler_model::settings::{SinkName, SinkNames};

impl Plain {
    /// Makes these the only sinks: one that is new begins behind the present items.
    pub(super) fn set_sinks(&mut self, sinks: &SinkNames) {
        if self.positions.is_empty() {
            self.positions.insert(SinkName::lines(), self.outbox_first);
        }
        let end = self.outbox_end();
        let gone = self.positions.iter();
        let gone = gone.filter(|(sink, position)| !sinks.contains(sink) && **position < end);
        let gone = gone.map(|(sink, position)| (sink.clone(), end - position));
        self.dropped = gone.collect();
        self.positions.retain(|sink, _| sinks.contains(sink));
        for sink in sinks.iter() {
            self.positions.entry(sink.clone()).or_insert(end);
        }
        self.trim();
    }

    /// Returns the number of the next item.
    pub(super) fn outbox_end(&self) -> u64 {
        self.outbox_first + self.outbox.len() as u64
    }

    /// Returns the number of the first item that a sink does not have.
    pub(super) fn position(&self, sink: &SinkName) -> Result<u64, FrontierError> {
        let position = self.positions.get(sink).copied();
        position.ok_or_else(|| FrontierError::NoSink { sink: sink.clone() })
    }

    /// Records that a sink has all items before `end`, and keeps its mark.
    pub(super) fn advance(&mut self, sink: &SinkName, end: u64, mark: Option<SinkMark>) {
        let end = end.min(self.outbox_end());
        if let Some(position) = self.positions.get_mut(sink) {
            *position = end.max(*position);
        }
        if let Some(mark) = mark {
            let marks = match sink.is_lines() {
                true => &mut self.marks,
                false => self.marks_elsewhere.entry(sink.clone()).or_default(),
            };
            marks.insert(mark.key, mark.value);
        }
        self.trim();
    }

    /// Returns the marks that a sink has left.
    pub fn marks_of(&self, sink: &SinkName) -> Vec<SinkMark> {
        let marks = match sink.is_lines() {
            true => Some(&self.marks),
            false => self.marks_elsewhere.get(sink),
        };
        let marks = marks.into_iter().flatten();
        let marks = marks.map(|(key, value)| (key.clone(), value.clone()));
        marks.map(|(key, value)| SinkMark { key, value }).collect()
    }

    fn trim(&mut self) {
        let first = self.positions.values().min().copied();
        while first.is_some_and(|first| self.outbox_first < first)
            && self.outbox.pop_front().is_some()
        {
            self.outbox_first += 1;
        }
    }
}

#[async_trait]
impl ItemOutbox for Opened {
    async fn outbox(&self, sink: &SinkName, max: usize) -> Result<OutboxBatch, FrontierError> {
        self.shared.check()?;
        let state = self.shared.state();
        let first = state.plain.position(sink)?;
        let n_before = usize::try_from(first - state.plain.outbox_first).unwrap_or(usize::MAX);
        let n_durable = state.durable_outbox_end.saturating_sub(first);
        let n = usize::try_from(n_durable).unwrap_or(usize::MAX).min(max);
        let waiting = state.plain.outbox.iter().skip(n_before);
        let items: Vec<_> = waiting.take(n).cloned().collect();
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
        self.shared.check()?;
        self.shared.state().plain.position(sink)?;
        self.shared
            .change(|state| state.plain.advance(sink, end, mark));
        Ok(())
    }

    async fn marks(&self, sink: &SinkName) -> Result<Vec<SinkMark>, FrontierError> {
        self.shared.check()?;
        Ok(self.shared.state().plain.marks_of(sink))
    }

    fn undelivered(&self, sink: &SinkName) -> Undelivered {
        let state = self.shared.state();
        let Ok(position) = state.plain.position(sink) else {
            return Undelivered::default();
        };
        let n_before = usize::try_from(position - state.plain.outbox_first).unwrap_or(usize::MAX);
        let items = state.plain.outbox.iter().skip(n_before);
        Undelivered {
            n_items: state.plain.outbox_end() - position,
            n_bytes: items.map(|item| item.item.get().len() as u64).sum(),
        }
    }

    fn undelivered_bytes(&self) -> u64 {
        let state = self.shared.state();
        let items = state.plain.outbox.iter();
        items.map(|item| item.item.get().len() as u64).sum()
    }

    fn n_undelivered(&self) -> u64 {
        self.shared.state().plain.outbox.len() as u64
    }

    fn sinks(&self) -> SinkNames {
        SinkNames::of(self.shared.state().plain.positions.keys().cloned())
    }

    fn is_outbox_full(&self) -> bool {
        self.shared.state().plain.outbox.len() >= BOUNDS.1
    }

    async fn outbox_changed(&self) {
        self.shared.outbox_changed.notified().await;
    }
}
