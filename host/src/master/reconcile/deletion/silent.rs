//! Workers that are registered and give no answer. Each is asked more and more seldom, however much of
//! what it had was deleted.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::model::id::NodeId;
use crate::retry::Backoff;

/// Between two questions to a worker that gives no answer, at the most.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Those that gave no answer when they were asked last.
#[derive(Debug, Default)]
pub(in crate::master::reconcile) struct Silent {
    by_worker: Mutex<BTreeMap<NodeId, Silence>>,
}

#[derive(Debug)]
struct Silence {
    backoff: Backoff,
    until: Instant,
}

impl Silent {
    /// How long a worker is not asked; none where it may be.
    pub(super) fn left(&self, worker: &NodeId) -> Option<Duration> {
        let until = self.by_worker().get(worker)?.until;
        let left = until.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// It gave no answer; how long it is not asked from now on, `first` if it did before.
    pub(super) fn note(&self, worker: &NodeId, first: Duration) -> Duration {
        let now = Instant::now();
        let mut by_worker = self.by_worker();
        let silence = by_worker.entry(worker.clone()).or_insert_with(|| Silence {
            backoff: Backoff::new(first, LONGEST_PAUSE),
            until: now,
        });
        // Others who asked at the same time were not answered either.
        if silence.until <= now {
            silence.until = now + silence.backoff.next_delay();
        }
        silence.until - now
    }

    /// It gave one.
    pub(super) fn forget(&self, worker: &NodeId) {
        self.by_worker().remove(worker);
    }

    /// Only of these is anything remembered.
    pub(super) fn retain(&self, is_there: impl Fn(&NodeId) -> bool) {
        self.by_worker().retain(|worker, _| is_there(worker));
    }

    fn by_worker(&self) -> MutexGuard<'_, BTreeMap<NodeId, Silence>> {
        self.by_worker
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
