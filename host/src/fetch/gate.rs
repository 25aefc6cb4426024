//! When a host may be asked: one gate for each process, shared by all resources.
//!
//! A request waits for its host's turn, in order of arrival. The delay counts from the end of one
//! answer to the next request, and while it is above zero there is one request at a time. Resources
//! that ask for different delays on one host all keep the longest of them, for as long as the one
//! that asked for it keeps coming (it is forgotten [`STRICT_FOR`] and twice itself after it was last
//! asked for). Beyond the delay there may be a little more by chance, drawn anew after each answer. Rates
//! bind all in the same way: who asks for one has every request to the host counted.
//!
//! A host in trouble is left alone for a while, whoever asks: for as long as it asks itself
//! (`Retry-After`), and otherwise longer with each failure on end, less up to a half of it by chance.
//! What was asked before the last failure was noted says nothing new and is not counted. After a pause it
//! gets one request at a time until it answers. Nobody waits here for a pause that is longer than
//! [`PATIENCE`]: who comes is told when to come again. A host that is slow to answer is asked less often
//! than it was told to be: the delay grows to the time that its answers take.
//!
//! Giving up a wait loses nothing: the next in line takes its place. A host that nobody waits for is
//! forgotten once its delay is over.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use rand::RngExt as _;

use crate::limiter::Limiter;
use crate::model::settings::{Rate, Rates};
use health::Health;

mod health;

pub use health::Sign;

/// How long a delay is kept by all, beyond twice itself.
pub const STRICT_FOR: Duration = Duration::from_secs(60);

/// The longest pause of a host that a request waits for at the gate.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Hosts known when the first sweep is due.
const FIRST_SWEEP: usize = 1_024;

/// Bounds of the gate.
#[derive(Debug, Clone)]
pub struct GateSettings {
    /// Requests to one host at once where no delay is asked for: setting `parallel` of `[fetch]`.
    pub parallel: u32,
    /// Failures on end after which a host is left alone: setting `host-failures` of `[fetch]`.
    pub host_failures: u32,
    /// The longest that a host in trouble is left alone: setting `max-host-pause` of `[fetch]`.
    pub max_host_pause: Duration,
    /// How far the delay grows with the time that answers take: setting `max-adaptive-delay` of `[fetch]`.
    pub max_adaptive_delay: Duration,
}

impl Default for GateSettings {
    fn default() -> Self {
        Self {
            parallel: 64,
            host_failures: 5,
            max_host_pause: Duration::from_secs(5 * 60),
            max_adaptive_delay: Duration::from_secs(60),
        }
    }
}

/// How a resource wants a host to be asked.
#[derive(Debug, Clone, Default)]
pub struct Pace {
    /// Between the end of an answer and the next request.
    pub delay: Duration,
    /// Up to so much more, by chance.
    pub random: Duration,
    /// No more requests than this.
    pub rates: Rates,
}

impl Pace {
    /// With this delay and nothing else.
    pub fn of_delay(delay: Duration) -> Self {
        Self {
            delay,
            ..Self::default()
        }
    }

    /// There is one request at a time.
    fn is_spaced(&self) -> bool {
        !self.delay.is_zero() || !self.random.is_zero()
    }
}

/// The clocks and connections of all hosts.
#[derive(Debug, Default)]
pub struct Gate {
    settings: Arc<GateSettings>,
    hosts: Mutex<Hosts>,
}

#[derive(Debug, Default)]
struct Hosts {
    by_name: HashMap<String, Arc<HostGate>>,
    /// As many as were left by the last sweep; it pays to look again at twice that.
    n_swept: usize,
}

#[derive(Debug, Default)]
struct HostGate {
    /// Held by the first in line while it waits; it is handed on in order of arrival.
    line: tokio::sync::Mutex<()>,
    state: Mutex<HostState>,
    /// A place was freed.
    freed: Notify,
}

#[derive(Debug, Default)]
struct HostState {
    n_in_use: u32,
    rates: HeldRates,
    /// Of the last answer, and how long by chance beyond the delay.
    ended: Option<(Instant, Duration)>,
    /// The longest delay asked for lately, and until when it binds the others.
    strictest: Option<(Duration, Instant)>,
    health: Health,
}

/// The rates of all who ask, each until it is forgotten.
#[derive(Debug, Default)]
struct HeldRates {
    by_rate: BTreeMap<Rate, Instant>,
    limiter: Limiter,
}

/// A host is left alone for so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the host is left alone for another {pause:?}")]
pub struct Paused {
    /// From now on.
    pub pause: Duration,
}

/// A place at a host. The host's delay starts when it is dropped.
#[derive(Debug)]
#[must_use = "dropping it frees the place"]
pub struct Permit {
    host: Arc<HostGate>,
    settings: Arc<GateSettings>,
    pace: Pace,
    entered: Instant,
}

impl Gate {
    /// A gate that has seen no host.
    pub fn new(settings: GateSettings) -> Self {
        Self {
            settings: Arc::new(settings),
            hosts: Mutex::default(),
        }
    }

    /// Requests to one host at once, at this pace.
    pub fn parallel(&self, pace: &Pace) -> u32 {
        match pace.is_spaced() {
            true => 1,
            false => self.settings.parallel.max(1),
        }
    }

    /// Waits for the turn of a host (`name:port`).
    pub async fn enter(&self, host: &str, pace: &Pace) -> Result<Permit, Paused> {
        let host = self.host(host);
        host.state().ask(pace, &self.settings);
        host.state().check_pause(Instant::now())?;
        let turn = host.line.lock().await;
        let entered = loop {
            let ready_at = {
                let mut state = host.state();
                // Not before: what is noted of the host now is older than this request.
                let now = Instant::now();
                let delay = state.ask(pace, &self.settings);
                state.check_pause(now)?;
                let after_last = state.ended.map(|(ended, random)| ended + delay + random);
                let ready_at = after_last.max(state.paused_until(now));
                let max_in_use = match state.health.paused_until() {
                    Some(_) => 1,
                    None if !delay.is_zero() => 1,
                    None => self.parallel(pace),
                };
                if state.n_in_use >= max_in_use {
                    None
                } else if ready_at.is_none_or(|at| at <= now) {
                    state.n_in_use += 1;
                    state.rates.limiter.count(now);
                    break now;
                } else {
                    ready_at
                }
            };
            match ready_at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => host.freed.notified().await,
            }
        };
        drop(turn);
        Ok(Permit {
            host,
            settings: Arc::clone(&self.settings),
            pace: pace.clone(),
            entered,
        })
    }

    fn host(&self, name: &str) -> Arc<HostGate> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(host) = hosts.by_name.get(name) {
            return Arc::clone(host);
        }
        if hosts.by_name.len() >= FIRST_SWEEP.max(2 * hosts.n_swept) {
            let now = Instant::now();
            hosts.by_name.retain(|_, host| !host.is_forgettable(now));
            hosts.n_swept = hosts.by_name.len();
        }
        let host = Arc::<HostGate>::default();
        hosts.by_name.insert(name.to_owned(), Arc::clone(&host));
        host
    }
}

impl Permit {
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
            state.ended = Some((Instant::now(), random));
        }
        self.host.freed.notify_one();
    }
}

impl HostGate {
    fn state(&self) -> MutexGuard<'_, HostState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody holds or awaits a place (they would share it), no delay is running, and nothing is known
    /// that the next request should know.
    fn is_forgettable(self: &Arc<Self>, now: Instant) -> bool {
        let state = self.state();
        let is_past = |(delay, until): (Duration, Instant)| {
            let is_over = |(ended, random)| ended + delay + random <= now;
            until <= now && state.ended.is_none_or(is_over)
        };
        let is_over = state.strictest.is_none_or(is_past);
        let counts = state.rates.by_rate.values().any(|until| now < *until);
        let is_well = !state.health.is_remembered(now);
        is_over && is_well && !counts && Arc::strong_count(self) == 1
    }
}

impl HeldRates {
    fn ask(&mut self, rates: &Rates) {
        if rates.is_empty() && self.by_rate.is_empty() {
            return;
        }
        let now = Instant::now();
        let n_before = self.by_rate.len();
        self.by_rate.retain(|_, until| now < *until);
        let mut is_other = self.by_rate.len() != n_before;
        for rate in rates.iter() {
            let until = now + 2 * rate.per + STRICT_FOR;
            is_other |= self.by_rate.insert(rate, until).is_none();
        }
        if is_other {
            let rates = self.by_rate.keys().map(|rate| (rate.n, rate.per));
            self.limiter.set(rates);
        }
    }
}

impl HostState {
    /// The delay that one who asks for `delay` has to keep.
    fn delay(&self, delay: Duration, settings: &GateSettings) -> Duration {
        let to_keep = match self.strictest {
            Some((strictest, until)) if Instant::now() < until => delay.max(strictest),
            Some(_) | None => delay,
        };
        // Who asks for none says that the host is its own.
        match to_keep.is_zero() {
            true => to_keep,
            false => to_keep.max(self.health.latency().min(settings.max_adaptive_delay)),
        }
    }

    /// The same, and makes the others keep this pace.
    fn ask(&mut self, pace: &Pace, settings: &GateSettings) -> Duration {
        self.rates.ask(&pace.rates);
        let delay = pace.delay;
        let is_strictest = match self.strictest {
            Some((strictest, until)) => strictest <= delay || until <= Instant::now(),
            None => true,
        };
        if is_strictest && !delay.is_zero() {
            self.strictest = Some((delay, Instant::now() + 2 * delay + STRICT_FOR));
        }
        self.delay(delay, settings)
    }

    /// Before this moment it is left alone, whatever the delay; none where that is past.
    fn paused_until(&self, now: Instant) -> Option<Instant> {
        let in_trouble = self.health.paused_until();
        let until = in_trouble.max(self.rates.limiter.ready_at(now))?;
        (until > now).then_some(until)
    }

    fn pause(&self, now: Instant) -> Duration {
        self.paused_until(now)
            .map_or(Duration::ZERO, |until| until - now)
    }

    fn check_pause(&self, now: Instant) -> Result<(), Paused> {
        match self.pause(now) {
            pause if pause > PATIENCE => Err(Paused { pause }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
