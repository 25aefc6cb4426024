//! Permit to ask a host, and the end of its use.

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt as _;
use tokio::time::Instant;

use super::health::HostSignal;
use super::host::HostThrottle;
use super::pace::{HostDelay, Pace};
use super::settings::ThrottleSettings;
use crawler_model::frontier::DelaySource;

/// A place at a host. Dropping it starts the host's delay.
#[derive(Debug)]
#[must_use = "dropping it frees the place"]
pub struct Permit {
    host: Arc<HostThrottle>,
    settings: Arc<ThrottleSettings>,
    pace: Pace,
    entered: Instant,
    /// True unless the place is given back unused.
    is_used: bool,
}

impl Permit {
    pub(super) fn new(
        host: Arc<HostThrottle>,
        settings: Arc<ThrottleSettings>,
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

    /// Gives the place back without a request: the host's delay does not start, and no rate counts it. The
    /// turn of the address is lost.
    pub fn give_back(mut self) {
        self.is_used = false;
    }

    /// Returns the time since when the place is held.
    pub fn entered(&self) -> Instant {
        self.entered
    }

    /// Ends the use of the place and returns how long the host is left alone from now on. If `signal` is
    /// `None`, the exchange says nothing about the host.
    pub fn finish(self, signal: Option<HostSignal>) -> HostDelay {
        let host = Arc::clone(&self.host);
        if let Some(signal) = signal {
            let mut state = host.state();
            state.health.note(signal, self.entered, &self.settings);
        }
        let (pace, settings) = (self.pace.clone(), Arc::clone(&self.settings));
        drop(self);
        let (now, state) = (Instant::now(), host.state());
        let random = state.ended.map_or(Duration::ZERO, |(_, random)| random);
        let HostDelay { time, by } = state.delay(&pace, &settings);
        let delay = HostDelay {
            time: time + random,
            by,
        };
        // A used-up rate is left out: the time returned here is waited again after the frontier is reopened.
        let in_trouble = state.health.paused_until();
        let in_trouble = in_trouble.map(|until| until.saturating_duration_since(now));
        delay.or_longer(in_trouble.unwrap_or_default(), DelaySource::Trouble)
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
