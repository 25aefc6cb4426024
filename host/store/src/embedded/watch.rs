//! Watches: a history of recent changes, for those that begin in the past, and a bounded queue for each watch.
//!
//! A watch whose reader lags too far behind loses its queue and is told to start over. Once it reads that,
//! later changes are queued again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use async_trait::async_trait;
use tokio::sync::Notify;

use super::settings::Settings;
use crate::{Revision, StoreError, Watch, WatchEvent};

/// Approximate bytes of an event besides its key and value.
const EVENT_BYTES: usize = 128;

/// Recent changes, and the watches that receive further ones.
#[derive(Debug)]
pub(super) struct Feed {
    recent: VecDeque<(Revision, WatchEvent)>,
    n_bytes: usize,
    /// Revision after which the history has every change.
    forgotten: Revision,
    queues: Vec<Weak<Queue>>,
    history_bytes: usize,
    n_watch_buffer: usize,
}

impl Feed {
    pub(super) fn new(revision: Revision, settings: &Settings) -> Self {
        Self {
            recent: VecDeque::new(),
            n_bytes: 0,
            forgotten: revision,
            queues: Vec::new(),
            history_bytes: settings.history_bytes,
            n_watch_buffer: settings.n_watch_buffer,
        }
    }

    /// Watches changes after `from`. If this store never saw `from`, or has forgotten it, the watch starts
    /// over.
    pub(super) fn watch(&mut self, prefix: &str, from: Revision, present: Revision) -> Arc<Queue> {
        let queue = Arc::new(Queue {
            prefix: prefix.to_owned(),
            bound: self.n_watch_buffer,
            pending: Mutex::default(),
            changed: Notify::new(),
        });
        if from < self.forgotten || from > present {
            queue.lock().start_over = true;
        } else {
            let first = self
                .recent
                .partition_point(|(revision, _)| *revision <= from);
            for (_, event) in self.recent.range(first..) {
                queue.offer(event);
            }
        }
        self.queues.retain(|queue| queue.strong_count() > 0);
        self.queues.push(Arc::downgrade(&queue));
        queue
    }

    pub(super) fn publish(&mut self, revision: Revision, event: &WatchEvent) {
        for queue in self.queues.iter().filter_map(Weak::upgrade) {
            queue.offer(event);
        }
        self.n_bytes += size_of_event(event);
        self.recent.push_back((revision, event.clone()));
        while self.n_bytes > self.history_bytes
            && let Some((revision, event)) = self.recent.pop_front()
        {
            self.n_bytes -= size_of_event(&event);
            self.forgotten = revision;
        }
    }

    pub(super) fn close(&mut self) {
        for queue in self.queues.drain(..).filter_map(|queue| queue.upgrade()) {
            queue.lock().closed = true;
            queue.changed.notify_one();
        }
    }
}

fn size_of_event(event: &WatchEvent) -> usize {
    EVENT_BYTES
        + match event {
            WatchEvent::Put(entry) => entry.key.len() + entry.value.len(),
            WatchEvent::Delete { key, .. } => key.len(),
            WatchEvent::StartOver => 0,
        }
}

/// Changes that one watch has not read yet.
#[derive(Debug)]
pub(super) struct Queue {
    prefix: String,
    bound: usize,
    pending: Mutex<Pending>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Pending {
    events: VecDeque<WatchEvent>,
    start_over: bool,
    closed: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn offer(&self, event: &WatchEvent) {
        let wanted = match event {
            WatchEvent::Put(entry) => entry.key.starts_with(&self.prefix),
            WatchEvent::Delete { key, .. } => key.starts_with(&self.prefix),
            WatchEvent::StartOver => true,
        };
        let mut pending = self.lock();
        if !wanted || pending.start_over {
            return;
        }
        if pending.events.len() >= self.bound {
            pending.events.clear();
            pending.start_over = true;
        } else {
            pending.events.push_back(event.clone());
        }
        drop(pending);
        self.changed.notify_one();
    }
}

/// Reading end of a queue.
#[derive(Debug)]
pub(super) struct QueueReader(Arc<Queue>);

impl QueueReader {
    pub(super) fn new(queue: Arc<Queue>) -> Self {
        Self(queue)
    }

    fn poll(&self) -> Option<Result<WatchEvent, StoreError>> {
        let mut pending = self.0.lock();
        if std::mem::take(&mut pending.start_over) {
            return Some(Ok(WatchEvent::StartOver));
        }
        if let Some(event) = pending.events.pop_front() {
            return Some(Ok(event));
        }
        pending.closed.then(|| {
            let why = "it was closed".to_owned();
            Err(StoreError::Unavailable { why })
        })
    }
}

#[async_trait]
impl Watch for QueueReader {
    async fn next(&mut self) -> Result<WatchEvent, StoreError> {
        loop {
            if let Some(next) = self.poll() {
                return next;
            }
            self.0.changed.notified().await;
        }
    }
}
