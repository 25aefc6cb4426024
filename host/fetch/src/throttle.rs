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
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use address::Addresses;
use host::{AddressTurn, HostThrottle, Readiness};

mod address;
mod health;
mod host;
mod pace;
mod permit;
mod queue;
mod requester;
mod settings;

pub use address::{Address, SharedAddress};
pub use health::HostSignal;
pub use pace::{HostDelay, Pace};
pub use permit::Permit;
pub(crate) use requester::after;
pub use requester::{Paused, Requester};
pub use settings::{MAX_WAIT, STRICT_FOR, ThrottleSettings};

/// Number of known hosts at which the first sweep is due.
const FIRST_SWEEP: usize = 1_024;

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

impl Throttle {
    /// Creates a throttle that knows no host.
    pub fn new(settings: ThrottleSettings) -> Self {
        Self {
            settings: Arc::new(settings),
            hosts: Mutex::default(),
            addresses: Addresses::default(),
        }
    }

    /// Returns the number of hosts that are known.
    pub(super) fn n_hosts(&self) -> usize {
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.by_name.len()
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

    /// Leaves a host alone for this time, unless it is left alone for longer.
    pub fn rest(&self, host: &str, pause: Duration) {
        self.host(host).state().health.rest(pause, &self.settings);
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

#[cfg(test)]
mod tests;
