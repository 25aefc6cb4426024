//! Circuit breaker: while the store is away, calls fail at once instead of waiting out their deadlines.
//!
//! After some failures in a row the circuit is open: calls fail with the reason of the last failure. After a pause one
//! call goes through as a probe. If it succeeds, the circuit is closed again; if not, or if it has no answer in time,
//! another pause begins.
//!
//! [`BreakerStore`] is for calls of clients, which wait for their answer. Leases, watches and compactions go through it
//! unseen, and whatever works on its own, such as an election, uses the store itself and goes on trying.

use std::time::Duration;

use tokio::time::Instant;

mod store;

pub use store::BreakerStore;

/// Settings of a circuit breaker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BreakerSettings {
    /// Failures in a row that open the circuit: setting `store-failures`.
    pub failures: u32,
    /// Time from an opening to the next probe: setting `store-pause`.
    pub pause: Duration,
    /// Time for the answer to a probe: setting `store-probe-timeout`. All other calls fail meanwhile.
    pub probe_timeout: Duration,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self {
            failures: 5,
            pause: Duration::from_secs(1),
            probe_timeout: Duration::from_secs(5),
        }
    }
}

/// State machine of a circuit breaker. It knows no clock; whoever calls it tells the time.
#[derive(Debug)]
struct Breaker {
    settings: BreakerSettings,
    state: State,
    /// Number of probes so far. Calls that began before the last of them have no say any more.
    turn: Turn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// All calls go through.
    Closed { n_failures: u32 },
    /// No call goes through before this time.
    Open { until: Instant },
    /// One call is on its way, and no other goes through.
    Probing,
}

/// Stretch of time between two probes, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Turn(u64);

/// Outcome of a call, as far as the circuit is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// The store has answered.
    Answered,
    /// The store has not answered.
    Failed,
    /// Nobody waited for the answer.
    Abandoned,
}

/// Change of the circuit, for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Opened,
    Closed,
}

impl Breaker {
    fn new(settings: BreakerSettings) -> Self {
        Self {
            settings,
            state: State::Closed { n_failures: 0 },
            turn: Turn(0),
        }
    }

    /// Returns the turn of a call that may go through; `None` if it has to fail.
    fn begin(&mut self, now: Instant) -> Option<Turn> {
        match self.state {
            State::Closed { .. } => Some(self.turn),
            State::Open { until } if now >= until => {
                self.state = State::Probing;
                self.turn.0 += 1;
                Some(self.turn)
            }
            State::Open { .. } | State::Probing => None,
        }
    }

    /// Returns the time that a call which has just begun may take; `None` if it is no probe.
    fn timeout(&self) -> Option<Duration> {
        (self.state == State::Probing).then_some(self.settings.probe_timeout)
    }

    /// Takes in how a call of this turn has ended.
    fn end(&mut self, turn: Turn, verdict: Verdict, now: Instant) -> Option<Change> {
        if turn != self.turn {
            return None;
        }
        let open = State::Open {
            until: now + self.settings.pause,
        };
        let (next, change) = match (self.state, verdict) {
            (State::Closed { .. }, Verdict::Answered) => (State::Closed { n_failures: 0 }, None),
            (State::Open { .. } | State::Probing, Verdict::Answered) => {
                (State::Closed { n_failures: 0 }, Some(Change::Closed))
            }
            (State::Closed { n_failures }, Verdict::Failed) => {
                let n_failures = n_failures + 1;
                match n_failures < self.settings.failures {
                    true => (State::Closed { n_failures }, None),
                    false => (open, Some(Change::Opened)),
                }
            }
            (State::Probing, Verdict::Failed) => (open, None),
            // The next call is the probe.
            (State::Probing, Verdict::Abandoned) => (State::Open { until: now }, None),
            (state, Verdict::Failed | Verdict::Abandoned) => (state, None),
        };
        self.state = next;
        change
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn breaker(failures: u32) -> Breaker {
        Breaker::new(BreakerSettings {
            failures,
            pause: SECOND,
            probe_timeout: 3 * SECOND,
        })
    }

    /// Makes a call with this outcome. Returns the change that followed; an error if the call did not go through.
    fn call(
        breaker: &mut Breaker,
        verdict: Verdict,
        now: Instant,
    ) -> Result<Option<Change>, State> {
        let turn = breaker.begin(now).ok_or(breaker.state)?;
        Ok(breaker.end(turn, verdict, now))
    }

    #[test]
    fn failures_in_a_row_open_the_circuit_and_others_do_not() {
        let (mut breaker, now) = (breaker(3), Instant::now());
        let mut call = |verdict| call(&mut breaker, verdict, now);
        for verdict in [
            Verdict::Failed,
            Verdict::Failed,
            Verdict::Answered,
            Verdict::Failed,
            Verdict::Abandoned,
            Verdict::Failed,
        ] {
            assert_eq!(call(verdict), Ok(None));
        }
        assert_eq!(call(Verdict::Failed), Ok(Some(Change::Opened)));
        let until = now + SECOND;
        assert_eq!(call(Verdict::Answered), Err(State::Open { until }));
    }

    #[test]
    fn one_probe_at_a_time_decides_whether_the_circuit_closes() {
        let (mut breaker, mut now) = (breaker(1), Instant::now());
        call(&mut breaker, Verdict::Failed, now).unwrap();
        for _ in 0..3 {
            assert_eq!(breaker.begin(now + SECOND / 2), None);
            now += SECOND;
            let probe = breaker.begin(now).unwrap();
            assert_eq!(
                breaker.begin(now + 10 * SECOND),
                None,
                "one probe at a time"
            );
            now += 3 * SECOND;
            assert_eq!(breaker.end(probe, Verdict::Failed, now), None);
        }
        now += SECOND;
        let closed = call(&mut breaker, Verdict::Answered, now);
        assert_eq!(closed, Ok(Some(Change::Closed)));
        assert_eq!(call(&mut breaker, Verdict::Answered, now), Ok(None));
    }

    #[test]
    fn a_probe_that_nobody_waits_for_leaves_its_place_to_the_next_call() {
        let (mut breaker, now) = (breaker(1), Instant::now());
        call(&mut breaker, Verdict::Failed, now).unwrap();
        let later = now + SECOND;
        assert_eq!(call(&mut breaker, Verdict::Abandoned, later), Ok(None));
        let closed = call(&mut breaker, Verdict::Answered, later);
        assert_eq!(closed, Ok(Some(Change::Closed)));
    }

    #[test]
    fn calls_from_before_a_probe_have_no_say() {
        let (mut breaker, now) = (breaker(1), Instant::now());
        let [first, slow, late] = [0, 1, 2].map(|_| breaker.begin(now).unwrap());
        assert_eq!(
            breaker.end(first, Verdict::Failed, now),
            Some(Change::Opened)
        );
        let later = now + SECOND;
        let probe = breaker.begin(later).unwrap();
        assert_eq!(breaker.end(slow, Verdict::Failed, later), None);
        assert_eq!(breaker.state, State::Probing);
        assert_eq!(
            breaker.end(probe, Verdict::Answered, later),
            Some(Change::Closed)
        );
        assert_eq!(breaker.end(late, Verdict::Failed, later), None);
        assert_eq!(breaker.state, State::Closed { n_failures: 0 });
    }

    #[test]
    fn an_answer_that_comes_late_closes_the_circuit_before_a_probe() {
        let (mut breaker, now) = (breaker(1), Instant::now());
        let [first, slow] = [0, 1].map(|_| breaker.begin(now).unwrap());
        breaker.end(first, Verdict::Failed, now);
        let closed = breaker.end(slow, Verdict::Answered, now);
        assert_eq!(closed, Some(Change::Closed));
    }
}
