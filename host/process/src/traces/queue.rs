//! Spans that have ended and wait to be sent, within a bound in bytes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::span::EndedSpan;
use crate::metrics::WordCounts;

/// Number of bytes at which a batch takes no further span. Its message is in memory beside it, twice for a moment, so this
/// is little beside the bound of the queue. Receivers accept 4 MiB unless they are set up otherwise.
pub const BATCH_BYTES: usize = 256 << 10;
/// Number of waiting bytes from which sending is worth while, although more spans may follow soon.
const WORTH_SENDING: usize = 256 << 10;

/// Word for spans that a receiver has.
const SENT: &str = "sent";
/// Word for spans that no receiver got, or that it has refused.
const FAILED: &str = "failed";
/// Word for spans that found no room.
const NO_ROOM: &str = "no-room";

/// Spans that have ended and wait to be sent. What is sent counts until it is known what has become of it.
pub struct SpanQueue {
    max_bytes: usize,
    state: Mutex<State>,
    is_filled: Notify,
    counts: WordCounts,
}

#[derive(Default)]
struct State {
    spans: VecDeque<EndedSpan>,
    /// Bytes of the spans that wait, and of the batches in hand.
    n_bytes: usize,
}

/// Spans that are sent together. They keep their room in the queue until this is dropped.
pub struct SpanBatch {
    queue: Arc<SpanQueue>,
    spans: Vec<EndedSpan>,
    n_bytes: usize,
}

impl SpanBatch {
    /// Returns true if the batch has all that goes into one, so that more may wait.
    pub fn is_full(&self) -> bool {
        self.n_bytes >= BATCH_BYTES
    }
}

impl SpanQueue {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            state: Mutex::default(),
            is_filled: Notify::new(),
            counts: WordCounts::starting_with([SENT, FAILED, NO_ROOM]),
        }
    }

    /// Adds a span, or counts it as lost if there is no room.
    pub(super) fn push(&self, span: EndedSpan) {
        let n_bytes = span.n_bytes();
        let mut state = self.lock();
        if state.n_bytes.saturating_add(n_bytes) > self.max_bytes {
            drop(state);
            return self.counts.add(NO_ROOM, 1);
        }
        state.n_bytes += n_bytes;
        state.spans.push_back(span);
        if state.n_bytes >= WORTH_SENDING.min(self.max_bytes / 2) {
            drop(state);
            self.is_filled.notify_one();
        }
    }

    /// Takes the oldest spans, or `None` if none waits.
    pub fn take(self: &Arc<Self>) -> Option<SpanBatch> {
        let mut state = self.lock();
        let (mut spans, mut n_bytes) = (Vec::new(), 0);
        while n_bytes < BATCH_BYTES
            && let Some(span) = state.spans.pop_front()
        {
            n_bytes += span.n_bytes();
            spans.push(span);
        }
        drop(state);
        (!spans.is_empty()).then(|| SpanBatch {
            queue: self.clone(),
            spans,
            n_bytes,
        })
    }

    /// Waits until it is worth while to send.
    pub async fn filled(&self) {
        self.is_filled.notified().await;
    }

    /// Returns the numbers of spans so far by what became of them.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        self.counts.read()
    }

    /// Returns the number of spans so far that found no room.
    pub fn n_without_room(&self) -> u64 {
        self.counts().get(NO_ROOM).copied().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SpanBatch {
    /// Returns the spans.
    pub fn spans(&self) -> &[EndedSpan] {
        &self.spans
    }

    /// Ends the batch: the receiver has it, except for this number of spans.
    pub fn end(self, n_refused: u64) {
        let n_all = self.spans.len() as u64;
        let n_refused = n_refused.min(n_all);
        self.queue.counts.add(SENT, n_all - n_refused);
        self.queue.counts.add(FAILED, n_refused);
    }
}

impl Drop for SpanBatch {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        state.n_bytes = state.n_bytes.saturating_sub(self.n_bytes);
    }
}
