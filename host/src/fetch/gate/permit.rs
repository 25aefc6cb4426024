//! A place at a host, and the end of its use.

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt as _;
use tokio::time::Instant;

use super::{GateSettings, HostGate, Pace, Sign};

/// A place at a host. The host's delay starts when it is dropped.
#[derive(Debug)]
#[must_use = "dropping it frees the place"]
pub struct Permit {
    host: Arc<HostGate>,
    settings: Arc<GateSettings>,
    pace: Pace,
    entered: Instant,
    /// True until it is given back: the host is, or was, asked.
    is_used: bool,
}

impl Permit {
    pub(super) fn new(
        host: Arc<HostGate>,
        settings: Arc<GateSettings>,
        pace: Pace,
        entered: Instant,
    ) -> Self {
        Self {
            host,
            settings,
            pace,
            entered,
            is_used: true,
        }
    }

    /// Gives the place back without a request: the host's delay does not start, and no rate counts it. Its address
    /// has lost one turn.
    pub fn give_back(mut self) {
        self.is_used = false;
    }

    /// Since when the place is held.
    pub fn entered(&self) -> Instant {
        self.entered
    }

    /// Ends the use of the place and tells how long the host is left alone from now on.
    /// None: the exchange says nothing of the host.
    pub fn finish(self, sign: Option<Sign>) -> Duration {
        let host = Arc::clone(&self.host);
        if let Some(sign) = sign {
            let mut state = host.state();
            state.health.note(sign, self.entered, &self.settings);
        }
        let (delay, settings) = (self.pace.delay, Arc::clone(&self.settings));
        drop(self);
        let (now, state) = (Instant::now(), host.state());
        let random = state.ended.map_or(Duration::ZERO, |(_, random)| random);
        let delay = state.delay(delay, &settings) + random;
        // Not how long its rate is used up: what is told here is waited again after an opening.
        let in_trouble = state.health.paused_until();
        delay.max(in_trouble.map_or(Duration::ZERO, |until| until.saturating_duration_since(now)))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let random = match self.pace.random {
            Duration::ZERO => Duration::ZERO,
            random => random.mul_f64(rand::rng().random()),
        };
        {
            let mut state = self.host.state();
            state.n_in_use -= 1;
            match self.is_used {
                true => state.ended = Some((Instant::now(), random)),
                false => state.rates.limiter.take_back(self.entered),
            }
        }
        self.host.freed.notify_one();
        self.host.ended.notify_waiters();
    }
}
