//! Times at which a crawl may begin its next page: settings `rate` and `hours`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crawler_model::crawl::UnixMillis;
use crawler_model::resource::{CrawlSettings, Rates};
use crawler_process::limiter::Limiter;

/// Pace of a crawl: the pages that it has begun, as far as they count for its rate. Cheap to clone: a crawl
/// that rests and goes on, or whose frontier is opened again, continues with the same value.
#[derive(Debug, Clone, Default)]
pub struct Pacing {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    rates: Rates,
    limiter: Limiter,
}

impl Pacing {
    /// Returns the moment before which no page is begun, or `None` if one may be begun now. `wall` is the
    /// present time of the wall clock.
    pub(super) fn next_at(
        &self,
        settings: &CrawlSettings,
        n_shards: u32,
        wall: UnixMillis,
    ) -> Option<UnixMillis> {
        let mut state = self.state();
        state.set(settings.rate.as_ref(), n_shards);
        let hours = settings.hours.as_ref();
        let opens_at = hours.and_then(|hours| hours.begin_after(wall));
        let now = Instant::now();
        let has_room_at = state.limiter.ready_at(now).map(|at| {
            // One millisecond makes up for the fraction that is cut off.
            let wait = (at - now).saturating_add(Duration::from_millis(1));
            wall.saturating_add(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX))
        });
        opens_at.max(has_room_at)
    }

    /// Counts a page as begun, and returns the moment at which it was counted.
    pub(super) fn count(&self) -> Instant {
        let now = Instant::now();
        self.state().limiter.count(now);
        now
    }

    /// Removes a page that was counted as begun at `start`, because it was not requested.
    pub(super) fn take_back(&self, start: Instant) {
        self.state().limiter.take_back(start);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn set(&mut self, rates: Option<&Rates>, n_shards: u32) {
        let none = Rates::default();
        let rates = rates.unwrap_or(&none);
        if self.rates != *rates {
            self.rates = rates.clone();
            let shares = rates.share(n_shards);
            self.limiter
                .set(shares.iter().map(|rate| (rate.n, rate.per)));
        }
    }
}
