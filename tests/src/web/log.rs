//! The log of the fake web, and what can be read from it.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, Method, StatusCode};

/// A request, as the log keeps it.
#[derive(Debug, Clone)]
pub struct Hit {
    /// In capitals.
    pub method: Method,
    /// Without the query.
    pub path: String,
    /// After the question mark; empty if there is none.
    pub query: String,
    /// As received.
    pub headers: HeaderMap,
    /// When its head was read.
    pub start: Instant,
    /// When the answer was ready, or the client went away.
    pub end: Option<Instant>,
    /// Of the answer; none before, and for ever if the client went away.
    pub status: Option<StatusCode>,
}

/// The most requests that were under way at once.
pub fn most_at_once(log: &[Hit]) -> usize {
    let under_way = |at: Instant| {
        log.iter()
            .filter(move |hit| hit.start <= at && hit.end.is_none_or(|end| end > at))
    };
    log.iter()
        .map(|hit| under_way(hit.start).count())
        .max()
        .unwrap_or(0)
}

/// The shortest time between the end of an answer and the start of the next request; none with
/// fewer than two, zero if one started before another's end.
pub fn shortest_pause(log: &[Hit]) -> Option<Duration> {
    let pause = |pair: &[Hit]| match pair[0].end {
        Some(end) => pair[1].start.saturating_duration_since(end),
        None => Duration::ZERO,
    };
    log.windows(2).map(pause).min()
}

#[derive(Default)]
pub(super) struct Log {
    hits: Mutex<Vec<Hit>>,
    n_by_path: Mutex<HashMap<String, usize>>,
    changed: Condvar,
}

impl Log {
    pub(super) fn hits(&self) -> MutexGuard<'_, Vec<Hit>> {
        self.hits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a request; returns its place in the log and how many there were for its path.
    pub(super) fn note(&self, hit: Hit) -> (usize, usize) {
        let mut hits = self.hits();
        let nth = {
            let mut n_by_path = self
                .n_by_path
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let nth = n_by_path.entry(hit.path.clone()).or_default();
            *nth += 1;
            *nth
        };
        hits.push(hit);
        self.changed.notify_all();
        (hits.len() - 1, nth)
    }

    /// Waits until the log is as wished; gives it up at the deadline.
    pub(super) fn wait(
        &self,
        deadline: Duration,
        wished: impl Fn(&[Hit]) -> bool,
    ) -> (Vec<Hit>, bool) {
        let waited = self
            .changed
            .wait_timeout_while(self.hits(), deadline, |hits| !wished(hits));
        let (hits, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        (hits.clone(), !waited.timed_out())
    }
}

/// Notes the end of a request even if its handler is dropped, as when the client goes away.
pub(super) struct Open {
    pub(super) log: Arc<Log>,
    pub(super) place: usize,
    pub(super) status: Option<StatusCode>,
}

impl Drop for Open {
    fn drop(&mut self) {
        let hit = &mut self.log.hits()[self.place];
        hit.end = Some(Instant::now());
        hit.status = self.status;
        self.log.changed.notify_all();
    }
}
