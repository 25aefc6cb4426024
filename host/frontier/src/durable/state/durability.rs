//! Batches that were written, and what is durable of them.

use tokio::time::Instant;

use super::State;
use crawler_process::metrics::Durations;

impl State {
    /// Returns when the oldest batch was written that is not durable yet.
    pub(in crate::durable) fn oldest_undurable(&self) -> Option<Instant> {
        self.undurable.front().map(|written| written.since)
    }

    /// Marks everything up to this sequence number as durable. Returns true if that changes anything.
    pub(in crate::durable) fn is_durable_to(&mut self, sequence: u64, took: &Durations) -> bool {
        let mut has_changed = false;
        while let Some(first) = self.undurable.front()
            && first.sequence <= sequence
        {
            took.add(first.since.elapsed());
            self.n_undurable -= first.n_pages;
            self.outbox.durable_next = first.outbox_next;
            self.peers.durable_to(&first.links_next);
            self.undurable.pop_front();
            has_changed = true;
        }
        has_changed
    }
}
