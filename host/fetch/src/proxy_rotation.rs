//! Order of the proxies of one name, and their rests.
//!
//! Proxies of one name take turns. A proxy that is to blame for a failed page rests, twice as long each time,
//! up to [`MAX_REST`], less a random part of up to one half. If either the proxy or the host may be to blame,
//! the proxy rests for [`FIRST_REST`] once the pages of [`DOUBTS`] hosts have failed in a row. An answer to a
//! request made after the last rest began ends the rest and all doubts.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crawler_process::retry::delay_after;

/// Number of hosts that may fail in a row through a proxy; a few hosts that are down say nothing about it.
const DOUBTS: usize = 5;
/// Length of a first rest.
const FIRST_REST: Duration = Duration::from_secs(10);
/// The longest rest.
const MAX_REST: Duration = Duration::from_secs(5 * 60);

/// State of the proxies of one name.
#[derive(Debug)]
pub(super) struct ProxyRotation {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    next: usize,
    proxies: Vec<Health>,
}

#[derive(Debug, Clone, Default)]
struct Health {
    resting_until: Option<Instant>,
    rested_at: Option<Instant>,
    /// Number of consecutive rests.
    n_rests: u32,
    /// Hosts that have failed since the last answer.
    doubts: Vec<String>,
}

impl Health {
    fn begin(&mut self, now: Instant, rest: Duration) {
        self.resting_until = Some(now + rest);
        self.rested_at = Some(now);
        self.doubts.clear();
    }

    fn pause(&self, now: Instant) -> Duration {
        let until = self.resting_until.unwrap_or(now);
        until.saturating_duration_since(now)
    }
}

/// Result of a doubt about a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt {
    /// The proxy stays in use; the hosts may be to blame.
    GoesOn,
    /// The doubt is the last of too many: the proxy rests from now on, for this time.
    Begins(Duration),
    /// The proxy rests already.
    Rests,
}

impl ProxyRotation {
    /// Creates the state of `n` proxies that all work.
    pub(super) fn new(n: usize) -> Self {
        let state = State {
            next: 0,
            proxies: vec![Health::default(); n],
        };
        Self {
            state: Mutex::new(state),
        }
    }

    /// Returns the next proxy that neither rests nor was tried, if there is one.
    pub(super) fn next(&self, now: Instant, tried: &[usize]) -> Option<usize> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (begin, n) = (state.next, state.proxies.len());
        let mut in_turn = (0..n).map(|step| (begin + step) % n);
        let can_be = |index: &usize| {
            let health = state.proxies.get(*index);
            !tried.contains(index) && health.is_some_and(|health| health.pause(now).is_zero())
        };
        let index = in_turn.find(can_be)?;
        state.next = index + 1;
        Some(index)
    }

    /// Returns an error if all of them rest; it holds the time until the first may be tried again.
    pub(super) fn check(&self, now: Instant) -> Result<(), Duration> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let pauses = state.proxies.iter().map(|health| health.pause(now));
        match pauses.min() {
            Some(Duration::ZERO) => Ok(()),
            shortest => Err(shortest.unwrap_or(MAX_REST)),
        }
    }

    /// Records an answer through this proxy to a request made at `asked_at`.
    pub(super) fn well(&self, index: usize, asked_at: Instant) {
        self.change(index, |health| {
            if health
                .rested_at
                .is_none_or(|rested_at| rested_at <= asked_at)
            {
                *health = Health::default();
            }
        });
    }

    /// Records that the proxy is to blame, and returns how long it rests.
    pub(super) fn rest(&self, index: usize, now: Instant) -> Duration {
        let rest = self.change(index, |health| {
            // Failures of requests that were in flight when the proxy failed say nothing new.
            let mut rest = health.pause(now);
            if rest.is_zero() {
                rest = delay_after(FIRST_REST, MAX_REST, health.n_rests);
                health.n_rests += 1;
                health.begin(now, rest);
            }
            rest
        });
        rest.unwrap_or_default()
    }

    /// Records that the page of a host failed and that either may be to blame.
    pub(super) fn doubt(&self, index: usize, host: &str, now: Instant) -> Doubt {
        let doubt = self.change(index, |health| {
            // The request was in flight when the rest began.
            if !health.pause(now).is_zero() {
                return Doubt::Rests;
            }
            if !health.doubts.iter().any(|known| known == host) {
                health.doubts.push(host.to_owned());
            }
            if health.doubts.len() < DOUBTS {
                return Doubt::GoesOn;
            }
            health.begin(now, FIRST_REST);
            Doubt::Begins(FIRST_REST)
        });
        doubt.unwrap_or(Doubt::GoesOn)
    }

    fn change<T>(&self, index: usize, change: impl FnOnce(&mut Health) -> T) -> Option<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.proxies.get_mut(index).map(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_take_turns_and_one_that_is_to_blame_rests_longer_each_time() {
        let (rotation, begun) = (ProxyRotation::new(3), Instant::now());
        let in_turn = |n: usize, now| {
            (0..n)
                .map(|_| rotation.next(now, &[]).unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(in_turn(4, begun), [0, 1, 2, 0]);
        assert_eq!(rotation.next(begun, &[1]), Some(2));
        assert_eq!(in_turn(1, begun), [0]);
        let rest = rotation.rest(1, begun);
        assert!((FIRST_REST / 2..=FIRST_REST).contains(&rest), "{rest:?}");
        // This is another request that was in flight.
        assert_eq!(rotation.rest(1, begun), rest);
        assert_eq!(in_turn(4, begun), [2, 0, 2, 0]);
        let mut now = begun + rest;
        assert_eq!(in_turn(3, now), [1, 2, 0]);
        for _ in 0..9 {
            now += rotation.rest(1, now);
        }
        let long = rotation.rest(1, now);
        assert!((MAX_REST / 2..=MAX_REST).contains(&long), "{long:?}");
        // The request was made before the proxy failed.
        rotation.well(1, now - Duration::from_millis(1));
        assert_eq!(in_turn(2, now), [2, 0]);
        rotation.well(1, now);
        assert_eq!(in_turn(3, now), [1, 2, 0]);
        assert!(rotation.rest(1, now) <= FIRST_REST);
    }

    #[test]
    fn with_all_of_them_at_rest_it_is_known_when_to_come_again() {
        let (rotation, now) = (ProxyRotation::new(2), Instant::now());
        let rests = [rotation.rest(0, now), rotation.rest(1, now)];
        assert_eq!(rotation.check(now), Err(*rests.iter().min().unwrap()));
        assert_eq!(rotation.next(now, &[]), None);
    }

    #[test]
    fn hosts_that_fail_on_end_make_a_proxy_rest_and_one_host_alone_does_not() {
        let (rotation, now) = (ProxyRotation::new(1), Instant::now());
        for _ in 0..100 {
            assert_eq!(rotation.doubt(0, "down.test", now), Doubt::GoesOn);
        }
        for host in ["a", "b", "c"] {
            assert_eq!(rotation.doubt(0, host, now), Doubt::GoesOn);
        }
        rotation.well(0, now);
        for host in ["a", "b", "c", "d"] {
            assert_eq!(rotation.doubt(0, host, now), Doubt::GoesOn);
        }
        assert_eq!(rotation.doubt(0, "e", now), Doubt::Begins(FIRST_REST));
        assert_eq!(rotation.check(now), Err(FIRST_REST));
        // Doubts during a rest do not shorten a longer one.
        let long = ProxyRotation::new(1);
        let mut later = now;
        for _ in 0..9 {
            later += long.rest(0, later);
        }
        let rest = long.rest(0, later);
        for host in ["a", "b", "c", "d", "e"] {
            assert_eq!(long.doubt(0, host, later), Doubt::Rests);
        }
        assert_eq!(long.check(later), Err(rest));
        // After that the proxy is used as before: all remaining hosts may be down.
        let later = now + FIRST_REST;
        assert_eq!(rotation.next(later, &[]), Some(0));
        for host in ["a", "b", "c", "d"] {
            assert_eq!(rotation.doubt(0, host, later), Doubt::GoesOn);
        }
    }
}
