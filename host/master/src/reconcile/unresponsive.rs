//! Workers that are registered but do not answer. Each is asked more and more rarely, however many of its
//! shards were deleted. Many of them are asked at the same moments, because each moment costs a look at all
//! deletions that wait for them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crawler_model::id::NodeId;
use crawler_process::retry::Backoff;

/// Longest time between two questions to a worker that does not answer.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Longer pauses end at multiples of this time.
const TOGETHER: Duration = Duration::from_secs(5);

/// Workers that did not answer the last question.
#[derive(Debug)]
pub(super) struct UnresponsiveWorkers {
    /// Origin of those multiples.
    begun: Instant,
    by_worker: Mutex<BTreeMap<NodeId, Unresponsive>>,
}

#[derive(Debug)]
struct Unresponsive {
    backoff: Backoff,
    until: Instant,
}

impl Default for UnresponsiveWorkers {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            by_worker: Mutex::default(),
        }
    }
}

impl UnresponsiveWorkers {
    /// True if all workers answer.
    pub(super) fn is_empty(&self) -> bool {
        self.by_worker().is_empty()
    }

    /// Returns how long a worker is not asked, or `None` if it may be asked now.
    pub(super) fn left(&self, worker: &NodeId) -> Option<Duration> {
        let until = self.by_worker().get(worker)?.until;
        let left = until.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// Takes note that a worker did not answer. Returns how long it is not asked from now on; `first` if it
    /// answered before.
    pub(super) fn note(&self, worker: &NodeId, first: Duration) -> Duration {
        let now = Instant::now();
        let mut by_worker = self.by_worker();
        let entry = by_worker
            .entry(worker.clone())
            .or_insert_with(|| Unresponsive {
                backoff: Backoff::new(first, LONGEST_PAUSE),
                until: now,
            });
        // Other questions at the same time were not answered either.
        if entry.until <= now {
            entry.until = self.end_of(now, entry.backoff.next_delay());
        }
        entry.until - now
    }

    fn end_of(&self, now: Instant, pause: Duration) -> Instant {
        let end = now + pause;
        if pause < TOGETHER {
            return end;
        }
        let steps = (end - self.begun).as_millis() / TOGETHER.as_millis() + 1;
        self.begun + TOGETHER * u32::try_from(steps).unwrap_or(u32::MAX)
    }

    /// Takes note that a worker answered.
    pub(super) fn forget(&self, worker: &NodeId) {
        self.by_worker().remove(worker);
    }

    /// Forgets all workers that are not present.
    pub(super) fn retain(&self, is_there: impl Fn(&NodeId) -> bool) {
        self.by_worker().retain(|worker, _| is_there(worker));
    }

    fn by_worker(&self) -> MutexGuard<'_, BTreeMap<NodeId, Unresponsive>> {
        self.by_worker
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn however_many_are_silent_they_are_asked_at_few_moments_and_ever_more_seldom() {
        let silent = UnresponsiveWorkers::default();
        assert!(silent.is_empty());
        let workers: Vec<NodeId> = (0..100).map(|n| format!("w{n}").parse().unwrap()).collect();
        let first = Duration::from_millis(500);
        let begun = Instant::now();
        let (mut n_asked, mut moments) = (0, BTreeSet::new());
        while begun.elapsed() < Duration::from_secs(600) {
            let due = |worker: &&NodeId| silent.left(worker).is_none();
            let due: Vec<_> = workers.iter().filter(due).collect();
            for worker in due {
                // Each answer takes its time.
                tokio::time::advance(Duration::from_millis(3)).await;
                silent.note(worker, first);
                n_asked += 1;
                if begun.elapsed() > Duration::from_secs(120) {
                    let until = silent.by_worker()[worker].until;
                    moments.insert(until - begun);
                }
            }
            tokio::time::advance(Duration::from_millis(50)).await;
        }
        // Each worker is asked about every 30 s, less a random part of up to a half.
        assert!(n_asked < 100 * 50, "{n_asked}");
        assert!(moments.len() <= (600 + 35) / 5, "{}", moments.len());
        silent.forget(&workers[0]);
        assert_eq!(silent.left(&workers[0]), None);
    }
}
