//! Times at which a host may be asked: one throttle for each process, shared by all resources.
//!
//! The delay counts from the end of one answer to the next request, and while it is above zero there is one
//! request at a time. A crawl that comes before its host's turn is sent away with the moment to come again
//! ([`Requester`]), so that it holds nothing while the host waits. Turns go round the crawls that were sent away.
//! If resources ask for different delays on one host, all of them keep the longest. That delay is forgotten
//! [`STRICT_FOR`] plus twice its own length after it was last asked for. A random time may be added to the
//! delay; it is drawn anew after each answer. Rates bind all resources in the same way: a resource that asks
//! for one has every request to the host counted.
//!
//! A host in trouble is left alone for a while, whichever crawl asks: for the time that it asks for itself
//! (`Retry-After`), and otherwise longer with each consecutive failure, less a random part of up to one half.
//! The result of a request that began before the last failure was noted is not counted. After a pause the
//! host gets one request at a time until it answers. A host that is slow to answer is asked less often than
//! the resource says: the delay grows to the time that its answers take.
//!
//! Names that share an address share its turns too, where the caller asks for that ([`SharedAddress`]): the host's
//! turn comes only once its address may be asked.
//!
//! A caller that stops waiting loses nothing for the others: the next in line takes its place. A host that
//! nobody waits for is forgotten once its delay is over.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::FetchError;
use address::Addresses;
use crawler_model::frontier::DelaySource;
use crawler_model::settings::{Rate, Rates};
use host::{AddressTurn, HostState, Readiness};

mod address;
mod health;
mod host;
mod permit;
mod queue;

pub use address::{Address, SharedAddress};
pub use health::HostSignal;
pub use permit::{HostDelay, Permit};

/// Time for which all resources keep a delay, in addition to twice that delay.
pub const STRICT_FOR: Duration = Duration::from_secs(60);

/// The longest wait in the throttle for a request that is not retried later.
pub const MAX_WAIT: Duration = Duration::from_secs(5);

/// Number of known hosts at which the first sweep is due.
const FIRST_SWEEP: usize = 1_024;

/// Limits of the throttle.
#[derive(Debug, Clone)]
pub struct ThrottleSettings {
    /// Requests to one host at once where no delay is asked for: setting `parallel` of `[fetch]`.
    pub parallel: u32,
    /// Consecutive failures after which a host is left alone: setting `host-failures` of `[fetch]`.
    pub host_failures: u32,
    /// The longest time that a host in trouble is left alone: setting `max-host-pause` of `[fetch]`.
    pub max_host_pause: Duration,
    /// Limit up to which the delay grows with the time that answers take: setting `max-adaptive-delay` of
    /// `[fetch]`.
    pub max_adaptive_delay: Duration,
    /// Requests to one address, over all of its hosts, evenly spaced: setting `address-rate` of `[fetch]`. If
    /// `None`, addresses are not limited.
    pub address_rate: Option<Rate>,
}

impl Default for ThrottleSettings {
    fn default() -> Self {
        Self {
            parallel: 64,
            host_failures: 5,
            max_host_pause: Duration::from_secs(5 * 60),
            max_adaptive_delay: Duration::from_secs(60),
            address_rate: Some(Rate {
                n: 4,
                per: Duration::from_secs(1),
            }),
        }
    }
}

impl ThrottleSettings {
    /// Returns the time between the starts of two requests to one address.
    fn address_interval(&self) -> Option<Duration> {
        self.address_rate.map(|rate| rate.per / rate.n.max(1))
    }
}

/// Pace at which a resource wants a host to be asked.
#[derive(Debug, Clone, Default)]
pub struct Pace {
    /// Time between the end of an answer and the next request.
    pub delay: Duration,
    /// Origin of that delay.
    pub delay_by: DelaySource,
    /// Upper bound of a random time that is added to the delay.
    pub random: Duration,
    /// Maximum numbers of requests within periods.
    pub rates: Rates,
}

impl Pace {
    /// Creates a pace with this delay and no other limit.
    pub fn of_delay(delay: Duration) -> Self {
        Self {
            delay,
            ..Self::default()
        }
    }

    /// Returns true if there is one request at a time.
    pub(super) fn is_spaced(&self) -> bool {
        !self.delay.is_zero() || !self.random.is_zero()
    }
}

/// A crawl or other caller that asks for a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requester {
    /// Number of the crawl; crawls with different numbers take turns at a host.
    pub crawl: u64,
    /// The longest wait in the throttle itself; a requester that would have to wait longer is sent away. If
    /// `None`, it waits for every delay, and for [`MAX_WAIT`] where the host is in trouble.
    pub max_wait: Option<Duration>,
}

impl Requester {
    /// Creates a requester with a number of its own that waits in the throttle.
    pub fn waiting() -> Self {
        Self {
            crawl: Self::new_crawl(),
            max_wait: None,
        }
    }

    /// Returns the number of a new crawl, unique within the process.
    pub fn new_crawl() -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }
}

/// The clocks and connections of all hosts.
#[derive(Debug, Default)]
pub struct Throttle {
    settings: Arc<ThrottleSettings>,
    hosts: Mutex<Hosts>,
    addresses: Addresses,
}

#[derive(Debug, Default)]
struct Hosts {
    by_name: HashMap<String, Arc<HostThrottle>>,
    /// Number of hosts that the last sweep left; the next one is due at twice that.
    n_swept: usize,
}

#[derive(Debug, Default)]
struct HostThrottle {
    /// Lock held by the first of those who wait for a connection; it is handed on in order of arrival.
    queue: tokio::sync::Mutex<()>,
    state: Mutex<HostState>,
    /// Signals the first of those who wait for a place that one was freed.
    freed: Notify,
    /// Signals everyone who waits for a moment that a request has ended: the moment may be sooner or later
    /// than they know.
    ended: Notify,
}

/// A host that is left alone for some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the host is left alone for another {pause:?}")]
pub struct Paused {
    /// Time from now on.
    pub pause: Duration,
    /// True if the cause is trouble of the host or its used-up rate, not its delay.
    pub is_in_trouble: bool,
    /// Address that may not be asked yet, though the host itself may.
    pub address: Option<Address>,
}

impl Paused {
    /// Returns the error of a request to this host.
    pub(super) fn into_error(self, host: String) -> FetchError {
        let pause = self.pause;
        match self.address {
            None => FetchError::Paused { host, pause },
            Some(address) => FetchError::AddressPaused {
                host,
                address: address.to_string(),
                pause,
            },
        }
    }
}

impl Throttle {
    /// Creates a throttle that knows no host.
    pub fn new(settings: ThrottleSettings) -> Self {
        Self {
            settings: Arc::new(settings),
            hosts: Mutex::default(),
            addresses: Addresses::default(),
        }
    }

    /// Returns true if requests to one address are spaced.
    pub(super) fn spaces_addresses(&self) -> bool {
        self.settings.address_rate.is_some()
    }

    /// Returns the number of requests to one host at once at this pace.
    pub fn parallel(&self, pace: &Pace) -> u32 {
        match pace.is_spaced() {
            true => 1,
            false => self.settings.parallel.max(1),
        }
    }

    /// Takes the turn of a host, by the name of its [clock](crawler_model::crawl::clock_of). It waits for a turn
    /// that comes within the requester's maximum wait, and tells when to come again for a later one. Where the
    /// host keeps no delay, it waits for a free connection, however long that takes.
    pub async fn enter(
        &self,
        host: &str,
        pace: &Pace,
        requester: Requester,
    ) -> Result<Permit, Paused> {
        self.enter_at(host, None, pace, requester).await
    }

    /// Takes the turn of a host together with that of its address.
    pub async fn enter_at(
        &self,
        name: &str,
        shared: Option<SharedAddress>,
        pace: &Pace,
        requester: Requester,
    ) -> Result<Permit, Paused> {
        let interval = self.settings.address_interval();
        let address_turn = shared.zip(interval).map(|(shared, interval)| AddressTurn {
            addresses: &self.addresses,
            shared,
            interval,
            name,
        });
        let host = self.host(name);
        let asked = Instant::now();
        // A waiting requester that stops waiting keeps no turn; one that is sent away does.
        let waiting = requester.max_wait.is_none().then(|| Waiting {
            host: &host,
            crawl: requester.crawl,
        });
        let mut first = None;
        let entered = loop {
            let turn =
                (host.state()).take_turn(pace, requester, asked, address_turn, &self.settings);
            match turn? {
                Readiness::Now(now) => break now,
                Readiness::At(at) => {
                    first = None;
                    tokio::select! {
                        biased;
                        () = host.ended.notified() => {}
                        () = tokio::time::sleep_until(at) => {}
                    }
                }
                // Waiters are served in order of arrival.
                Readiness::Freed if first.is_none() => first = Some(host.queue.lock().await),
                Readiness::Freed => host.freed.notified().await,
            }
        };
        drop((first, waiting));
        let settings = Arc::clone(&self.settings);
        Ok(Permit::new(host, settings, pace.clone(), entered))
    }

    fn host(&self, name: &str) -> Arc<HostThrottle> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(host) = hosts.by_name.get(name) {
            return Arc::clone(host);
        }
        if hosts.by_name.len() >= FIRST_SWEEP.max(2 * hosts.n_swept) {
            let now = Instant::now();
            hosts.by_name.retain(|_, host| !host.is_forgettable(now));
            hosts.n_swept = hosts.by_name.len();
        }
        let host = Arc::<HostThrottle>::default();
        hosts.by_name.insert(name.to_owned(), Arc::clone(&host));
        host
    }
}

/// A requester that waits in the throttle.
struct Waiting<'a> {
    host: &'a HostThrottle,
    crawl: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.host.state().queue.leave(self.crawl);
    }
}

impl HostThrottle {
    fn state(&self) -> MutexGuard<'_, HostState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if nobody holds or awaits a place (they would share it), no delay is running, and nothing
    /// is known that the next request would need.
    fn is_forgettable(self: &Arc<Self>, now: Instant) -> bool {
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

#[cfg(test)]
mod tests;
