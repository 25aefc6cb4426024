//! When a host may be asked: one gate for each process, shared by all resources.
//!
//! A request waits for its host's turn, in order of arrival. The delay counts from the end of one
//! answer to the next request, and while it is above zero there is one request at a time. Resources
//! that ask for different delays on one host all keep the longest of them, for as long as the one
//! that asked for it keeps coming (it is forgotten [`STRICT_FOR`] and twice itself after it was last
//! asked for).
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

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::retry::delay_after;

/// How long a delay is kept by all, beyond twice itself.
pub const STRICT_FOR: Duration = Duration::from_secs(60);

/// The longest pause of a host that a request waits for at the gate.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// A host that has too much to do and does not say for how long is left alone for so long at first.
const FIRST_BUSY_PAUSE: Duration = Duration::from_secs(30);

/// One that fails, once it has failed often enough.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Longer than any process lives: what cannot be counted.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

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

/// What an exchange says of its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// It answers, this long after it was asked.
    Well {
        /// From the request to the end of the answer.
        took: Duration,
    },
    /// It has too much to do, and may say for how long.
    Busy {
        /// `Retry-After`.
        pause: Option<Duration>,
    },
    /// It gave no answer, or one that says that it is broken.
    Failing,
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
    /// Of the last answer.
    ended: Option<Instant>,
    /// The longest delay asked for lately, and until when it binds the others.
    strictest: Option<(Duration, Instant)>,
    /// What answers take, the later ones counting more.
    latency: Duration,
    trouble: Option<Trouble>,
}

/// Of a host that has not answered well since.
#[derive(Debug, Clone, Copy)]
struct Trouble {
    /// Failures on end.
    n: u32,
    last_counted_at: Instant,
    /// Nobody asks before. None: it has not failed often enough.
    paused_until: Option<Instant>,
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
    delay: Duration,
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

    /// Requests to one host at once, at this delay.
    pub fn parallel(&self, delay: Duration) -> u32 {
        if delay.is_zero() {
            self.settings.parallel.max(1)
        } else {
            1
        }
    }

    /// Waits for the turn of a host (`name:port`).
    pub async fn enter(&self, host: &str, delay: Duration) -> Result<Permit, Paused> {
        let host = self.host(host);
        host.state().ask(delay, &self.settings);
        host.state().check_pause()?;
        let turn = host.line.lock().await;
        loop {
            let ready_at = {
                let mut state = host.state();
                state.check_pause()?;
                let delay = state.ask(delay, &self.settings);
                let after_last = state.ended.map(|ended| ended + delay);
                let paused_until = state.trouble.and_then(|trouble| trouble.paused_until);
                let max_in_use = match paused_until {
                    Some(_) => 1,
                    None => self.parallel(delay),
                };
                let ready_at = after_last.max(paused_until);
                if state.n_in_use >= max_in_use {
                    None
                } else if ready_at.is_none_or(|at| at <= Instant::now()) {
                    state.n_in_use += 1;
                    break;
                } else {
                    ready_at
                }
            };
            match ready_at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => host.freed.notified().await,
            }
        }
        drop(turn);
        Ok(Permit {
            host,
            settings: Arc::clone(&self.settings),
            delay,
            entered: Instant::now(),
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
    /// Ends the use of the place and tells how long the host is left alone from now on.
    /// None: the exchange says nothing of the host.
    pub fn finish(self, sign: Option<Sign>) -> Duration {
        let now = Instant::now();
        let mut state = self.host.state();
        if let Some(sign) = sign {
            state.note(sign, self.entered, &self.settings);
        }
        let delay = state.delay(self.delay, &self.settings);
        delay.max(state.pause(now))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        {
            let mut state = self.host.state();
            state.n_in_use -= 1;
            state.ended = Some(Instant::now());
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
            until <= now && state.ended.is_none_or(|ended| ended + delay <= now)
        };
        let is_over = state.strictest.is_none_or(is_past);
        let is_well = state.trouble.is_none_or(|trouble| {
            let last = trouble.paused_until.unwrap_or(trouble.last_counted_at);
            last + STRICT_FOR <= now
        });
        is_over && is_well && Arc::strong_count(self) == 1
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
            false => to_keep.max(self.latency.min(settings.max_adaptive_delay)),
        }
    }

    /// The same, and makes the others keep it.
    fn ask(&mut self, delay: Duration, settings: &GateSettings) -> Duration {
        let is_strictest = match self.strictest {
            Some((strictest, until)) => strictest <= delay || until <= Instant::now(),
            None => true,
        };
        if is_strictest && !delay.is_zero() {
            self.strictest = Some((delay, Instant::now() + 2 * delay + STRICT_FOR));
        }
        self.delay(delay, settings)
    }

    /// How long it is left alone from now on, whatever the delay.
    fn pause(&self, now: Instant) -> Duration {
        let until = self.trouble.and_then(|trouble| trouble.paused_until);
        until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }

    fn check_pause(&self) -> Result<(), Paused> {
        match self.pause(Instant::now()) {
            pause if pause > PATIENCE => Err(Paused { pause }),
            _ => Ok(()),
        }
    }

    fn note(&mut self, sign: Sign, entered: Instant, settings: &GateSettings) {
        let now = Instant::now();
        let before = self.trouble;
        let asked_after_last = before.is_none_or(|trouble| entered >= trouble.last_counted_at);
        let n = before.map_or(0, |trouble| trouble.n);
        let longest = settings.max_host_pause;
        let pause = match sign {
            Sign::Well { took } => {
                if asked_after_last {
                    self.trouble = None;
                }
                self.latency = match self.latency.is_zero() {
                    true => took,
                    false => (self.latency + took) / 2,
                };
                return;
            }
            // One that says "now" again and again is in trouble all the same.
            Sign::Busy { pause: Some(asked) } if asked_after_last => {
                Some(asked.max(delay_after(FIRST_PAUSE, longest, n)))
            }
            Sign::Busy { pause: Some(asked) } => Some(asked),
            Sign::Busy { pause: None } | Sign::Failing if !asked_after_last => return,
            Sign::Busy { pause: None } => Some(delay_after(FIRST_BUSY_PAUSE, longest, n)),
            Sign::Failing => {
                let beyond = (n + 1).checked_sub(settings.host_failures.max(1));
                beyond.map(|beyond| delay_after(FIRST_PAUSE, longest, beyond))
            }
        };
        let until = |pause: Duration| {
            now.checked_add(pause.min(longest))
                .unwrap_or(now + FOR_EVER)
        };
        let paused_before = before.and_then(|trouble| trouble.paused_until);
        let (n, last_counted_at) = match before {
            Some(trouble) if !asked_after_last => (trouble.n, trouble.last_counted_at),
            Some(_) | None => (n.saturating_add(1), now),
        };
        self.trouble = Some(Trouble {
            n,
            last_counted_at,
            paused_until: paused_before.max(pause.map(until)),
        });
    }
}

#[cfg(test)]
mod tests;
