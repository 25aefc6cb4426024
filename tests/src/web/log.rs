//! The log of the fake web, and what can be read from it.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, Method, StatusCode};

/// A request, as the log keeps it.
#[derive(Debug, Clone)]
pub struct Hit {
    /// Method in capitals.
    pub method: Method,
    /// Path without the query.
    pub path: String,
    /// Query after the question mark; empty if there is none.
    pub query: String,
    /// Headers as received.
    pub headers: HeaderMap,
    /// Time when its head was read.
    pub start: Instant,
    /// Time when the answer was ready, or the client went away.
    pub end: Option<Instant>,
    /// Status of the answer. `None` before the answer, and for ever if the client went away.
    pub status: Option<StatusCode>,
}

/// Returns the largest number of requests that were under way at once.
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

/// Returns the shortest time between the end of an answer and the start of the next request. `None` for fewer than
/// two requests; zero if one started before another's end.
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

    /// Records a request. Returns its place in the log and the number of requests for its path.
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

    /// Waits until the log is as wished, or the deadline comes.
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

/// Records the end of a request even if its handler is dropped, as when the client goes away.
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
