//! Limits on a number of events in any stretch of time of a given length. Each rate keeps the times of the
//! last events, so that it holds for every stretch and not only on average.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// Rates that all hold at once.
#[derive(Debug, Default)]
pub struct Limiter {
    windows: Vec<Window>,
}

#[derive(Debug)]
struct Window {
    n: usize,
    per: Duration,
    /// Times of the last `n` events, as far as they are not older than `per`.
    moments: VecDeque<Instant>,
}

impl Limiter {
    /// Replaces the rates: a number of events and a length of time. A rate that held before keeps its events;
    /// a new one begins with none.
    pub fn set(&mut self, rates: impl Iterator<Item = (u32, Duration)>) {
        let mut before = std::mem::take(&mut self.windows);
        for (n, per) in rates {
            let n = n as usize;
            let known = before
                .iter()
                .position(|window| (window.n, window.per) == (n, per));
            self.windows.push(match known {
                Some(known) => before.swap_remove(known),
                None => Window {
                    n,
                    per,
                    moments: VecDeque::new(),
                },
            });
        }
    }

    /// Returns the time before which there is no room for another event; `None` if there is room.
    pub fn ready_at(&self, now: Instant) -> Option<Instant> {
        let ready_at = self.windows.iter().filter_map(Window::ready_at).max()?;
        (ready_at > now).then_some(ready_at)
    }

    /// Takes back an event that was counted at this time.
    pub fn take_back(&mut self, moment: Instant) {
        for window in &mut self.windows {
            window.take_back(moment);
        }
    }

    /// Counts an event.
    pub fn count(&mut self, now: Instant) {
        for window in &mut self.windows {
            window.count(now);
        }
    }
}

impl Window {
    fn take_back(&mut self, moment: Instant) {
        if let Some(place) = self.moments.iter().rposition(|&counted| counted == moment) {
            self.moments.remove(place);
        }
    }

    fn ready_at(&self) -> Option<Instant> {
        let first_of_n = self.moments.len().checked_sub(self.n)?;
        Some(*self.moments.get(first_of_n)? + self.per)
    }

    fn count(&mut self, now: Instant) {
        while self.moments.len() >= self.n.max(1)
            || self
                .moments
                .front()
                .is_some_and(|&first| first + self.per <= now)
        {
            self.moments.pop_front();
        }
        self.moments.push_back(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn no_stretch_of_time_has_more_than_any_of_the_rates_lets_it() {
        let rates = [(3, SECOND), (10, 10 * SECOND)];
        let mut limiter = Limiter::default();
        limiter.set(rates.into_iter());
        let mut counted = Vec::new();
        for n in 0..200_u32 {
            // Events come now in a burst, now with pauses.
            tokio::time::advance(SECOND / 7 * (n % 5)).await;
            while let Some(at) = limiter.ready_at(Instant::now()) {
                tokio::time::sleep_until(at).await;
            }
            limiter.count(Instant::now());
            counted.push(Instant::now());
        }
        for (n, per) in rates {
            for stretch in counted.windows(n as usize + 1) {
                assert!(stretch[n as usize] - stretch[0] >= per);
            }
        }
        // The rate is used to the full: ten in ten seconds.
        let took = counted[199] - counted[0];
        assert!(took < 200 * SECOND, "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_taken_back_leaves_room_for_another() {
        let mut limiter = Limiter::default();
        limiter.set([(2, 5 * SECOND)].into_iter());
        let first = Instant::now();
        limiter.count(first);
        tokio::time::advance(SECOND).await;
        let second = Instant::now();
        limiter.count(second);
        assert_eq!(limiter.ready_at(second), Some(first + 5 * SECOND));
        limiter.take_back(second);
        assert_eq!(limiter.ready_at(second), None);
        limiter.count(second);
        assert_eq!(limiter.ready_at(second), Some(first + 5 * SECOND));
    }

    #[tokio::test(start_paused = true)]
    async fn a_rate_that_stays_knows_what_it_counted() {
        let mut limiter = Limiter::default();
        assert_eq!(limiter.ready_at(Instant::now()), None);
        limiter.set([(1, 5 * SECOND)].into_iter());
        limiter.count(Instant::now());
        limiter.set([(2, SECOND), (1, 5 * SECOND)].into_iter());
        let then = Instant::now() + 5 * SECOND;
        assert_eq!(limiter.ready_at(Instant::now()), Some(then));
        limiter.set([(2, SECOND)].into_iter());
        assert_eq!(limiter.ready_at(Instant::now()), None);
    }
}
