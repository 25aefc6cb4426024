//! The throttle's knowledge of one host, and the order of turns there.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::address::{Addresses, SharedAddress};
use super::health::Health;
use super::pace::{HostDelay, Pace};
use super::queue::WaitQueue;
use super::requester::{Paused, Requester};
use super::settings::{MAX_WAIT, STRICT_FOR, ThrottleSettings};
use crawler_model::frontier::DelaySource;
use crawler_model::settings::{Rate, Rates};
use crawler_process::limiter::Limiter;

/// Expected length of a turn where a host keeps no delay and has one request at a time.
const SHORTEST_TURN: Duration = Duration::from_millis(20);

/// One host, as it is shared by the callers that ask it.
#[derive(Debug, Default)]
pub(super) struct HostThrottle {
    /// Lock held by the first of those who wait for a connection; it is handed on in order of arrival.
    pub(super) queue: tokio::sync::Mutex<()>,
    state: Mutex<HostState>,
    /// Signals the first of those who wait for a place that one was freed.
    pub(super) freed: Notify,
    /// Signals everyone who waits for a moment that a request has ended: the moment may be sooner or later
    /// than they know.
    pub(super) ended: Notify,
}

impl HostThrottle {
    pub(super) fn state(&self) -> MutexGuard<'_, HostState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if nobody holds or awaits a place (they would share it), no delay is running, and nothing
    /// is known that the next request would need.
    pub(super) fn is_forgettable(self: &Arc<Self>, now: Instant) -> bool {
        let state = self.state();
        let is_past = |(delay, until): (Duration, Instant)| {
            let is_over = |(ended, random)| ended + delay + random <= now;
            until <= now && state.ended.is_none_or(is_over)
        };
        let is_over = state.strictest.is_none_or(is_past);
        let counts = state.rates.by_rate.values().any(|until| now < *until);
        let is_well = !state.health.is_remembered(now) && state.queue.is_empty(now);
        is_over && is_well && !counts && Arc::strong_count(self) == 1
    }
}

#[derive(Debug, Default)]
pub(super) struct HostState {
    pub(super) n_in_use: u32,
    pub(super) rates: HeldRates,
    /// End of the last answer, and the random time to add to the delay.
    pub(super) ended: Option<(Instant, Duration)>,
    /// The longest delay asked for lately, and the time until which it binds all.
    pub(super) strictest: Option<(Duration, Instant)>,
    pub(super) health: Health,
    /// Crawls that were sent away before their turn.
    pub(super) queue: WaitQueue,
}

/// Rates of all callers, each until it is forgotten.
#[derive(Debug, Default)]
pub(super) struct HeldRates {
    pub(super) by_rate: BTreeMap<Rate, Instant>,
    pub(super) limiter: Limiter,
}

/// The address of a host, whose turn is taken together with the host's.
#[derive(Debug, Clone, Copy)]
pub(super) struct AddressTurn<'a> {
    pub(super) addresses: &'a Addresses,
    pub(super) shared: SharedAddress,
    pub(super) interval: Duration,
    /// Name of the host's clock.
    pub(super) name: &'a str,
}

/// The time when a host may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Readiness {
    /// The host may be asked at this moment, which is the present one.
    Now(Instant),
    /// The host may not be asked before this moment. A request in flight may put it off further.
    At(Instant),
    /// The host may be asked once a connection is free.
    Freed,
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
    /// Returns the delay to keep at this pace, with its origin.
    pub(super) fn delay(&self, pace: &Pace, settings: &ThrottleSettings) -> HostDelay {
        let own = HostDelay {
            time: pace.delay,
            by: pace.delay_by,
        };
        let to_keep = match self.strictest {
            Some((strictest, until)) if Instant::now() < until => {
                own.or_longer(strictest, DelaySource::OtherCrawl)
            }
            Some(_) | None => own,
        };
        // A resource that asks for no delay says that the host is its own.
        match to_keep.time.is_zero() {
            true => to_keep,
            false => {
                let latency = self.health.latency().min(settings.max_adaptive_delay);
                to_keep.or_longer(latency, DelaySource::Answers)
            }
        }
    }

    /// Returns the same delay, and makes others keep this pace.
    fn ask(&mut self, pace: &Pace, settings: &ThrottleSettings) -> Duration {
        self.rates.ask(&pace.rates);
        let delay = pace.delay;
        let is_strictest = match self.strictest {
            Some((strictest, until)) => strictest <= delay || until <= Instant::now(),
            None => true,
        };
        if is_strictest && !delay.is_zero() {
            self.strictest = Some((delay, Instant::now() + 2 * delay + STRICT_FOR));
        }
        self.delay(pace, settings).time
    }

    /// Returns the time before which the host is left alone, whatever the delay. Returns `None` if that time
    /// is past.
    pub(super) fn paused_until(&self, now: Instant) -> Option<Instant> {
        let in_trouble = self.health.paused_until();
        let until = in_trouble.max(self.rates.limiter.ready_at(now))?;
        (until > now).then_some(until)
    }

    /// Takes the turn at this pace of a requester that came at `asked`, if the turn has come; the error sends the
    /// requester away. A requester that has to wait for the host is in the queue from then on. One that is sent
    /// away because of the address is not: the moment there is promised to the host, whichever crawl comes then.
    pub(super) fn take_turn(
        &mut self,
        pace: &Pace,
        requester: Requester,
        asked: Instant,
        address_turn: Option<AddressTurn<'_>>,
        settings: &ThrottleSettings,
    ) -> Result<Readiness, Paused> {
        let turn = self.turn(pace, requester, asked, settings)?;
        let Readiness::Now(now) = turn else {
            return Ok(turn);
        };
        if let Some(address_turn) = address_turn
            && let Err(at) = address_turn.take(now)
        {
            if requester
                .max_wait
                .is_none_or(|max_wait| at <= asked + max_wait)
            {
                return Ok(Readiness::At(at));
            }
            self.queue.leave(requester.crawl);
            return Err(Paused {
                pause: at - now,
                is_in_trouble: false,
                address: Some(address_turn.shared.address),
            });
        }
        self.queue.leave(requester.crawl);
        self.n_in_use += 1;
        self.rates.limiter.count(now);
        Ok(turn)
    }

    fn turn(
        &mut self,
        pace: &Pace,
        requester: Requester,
        asked: Instant,
        settings: &ThrottleSettings,
    ) -> Result<Readiness, Paused> {
        // Taken here: what is noted of the host from now on is older than this request.
        let now = Instant::now();
        let delay = self.ask(pace, settings);
        let after_last = self.ended.map(|(ended, random)| ended + delay + random);
        let paused_until = self.paused_until(now);
        let free_at = after_last.max(paused_until);
        let ready_at = free_at.map_or(now, |at| at.max(now));
        let is_spaced = pace.is_spaced() || !delay.is_zero();
        let max_in_use = match is_spaced || self.health.paused_until().is_some() {
            true => 1,
            false => settings.parallel.max(1),
        };
        let turn_length = delay.max(SHORTEST_TURN);
        let n_before = self.queue.n_before(requester.crawl, free_at, now);
        let at = if self.n_in_use < max_in_use {
            if n_before == 0 && ready_at <= now {
                return Ok(Readiness::Now(now));
            }
            ready_at + turn_length * n_before
        } else if max_in_use > 1 {
            return Ok(Readiness::Freed);
        } else {
            // A request in flight ends after now, and the delay counts from its end.
            ready_at.max(now + turn_length * (n_before + 1))
        };
        let is_too_late = match requester.max_wait {
            Some(max_wait) => at > asked + max_wait,
            None => paused_until.is_some_and(|until| until > now + MAX_WAIT),
        };
        self.queue.reserve(requester.crawl, at);
        if !is_too_late {
            return Ok(Readiness::At(at));
        }
        Err(Paused {
            pause: at - now,
            is_in_trouble: paused_until.is_some(),
            address: None,
        })
    }
}

impl AddressTurn<'_> {
    fn take(&self, now: Instant) -> Result<(), Instant> {
        (self.addresses).take(self.shared, self.name, self.interval, now)
    }
}
