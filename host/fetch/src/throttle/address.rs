//! Turns at addresses that many names share, as in shared hosting or a content delivery network.
//!
//! Requests to one address start no closer together than setting `address-rate` says, whichever hosts they
//! are for. A host that comes before its turn is promised a moment of its own, one interval after the last
//! that was promised, so that thousands of hosts neither come at once again nor starve each other. A promise
//! that is due is kept for [`GRACE`]; after that any host may take the turn. Hosts that come at or after
//! their moment while the address is not free get the next moments in the order in which they come, before
//! hosts whose moments are still to come. The same holds for a request that is not retried later, such as a
//! redirect, because it completes work that has begun.
//!
//! A host that comes early, and finds the address free and no promise due, is served. No turn is lost as long
//! as any host comes.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Time for which a promised turn is kept for a host that does not come.
const GRACE: Duration = Duration::from_millis(100);

/// Time for which a late host keeps its rank before newcomers.
const RANK_FOR: Duration = Duration::from_secs(60);

/// The longest pause that a host is told. Its promise may be further away; the host asks again meanwhile, so
/// that it does not wait for hosts that have left the line.
const LONGEST_PAUSE: Duration = Duration::from_secs(5 * 60);

/// Maximum number of hosts of one address that have a promise. Further hosts ask again until there is room.
const MAX_PROMISES: usize = 100_000;

/// Number of known addresses at which the first sweep is due.
const FIRST_SWEEP: usize = 1_024;

/// An IPv4 address, or the network /64 of an IPv6 address, because one machine may own all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Address(IpAddr);

/// An address that is asked under setting `address-rate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedAddress {
    /// The address of the host.
    pub address: Address,
    /// True for a request that is not retried later. It goes before hosts whose moments are still to come.
    pub is_begun: bool,
}

/// The clocks of all addresses.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    clocks: Mutex<Clocks>,
}

#[derive(Debug, Default)]
struct Clocks {
    by_address: HashMap<Address, AddressClock>,
    /// Number of addresses that the last sweep left; the next one is due at twice that.
    n_swept: usize,
}

/// The turns of one address.
#[derive(Debug, Default)]
struct AddressClock {
    /// Start of the last request.
    last: Option<Instant>,
    /// Hosts in the order of the moments that they were promised.
    by_moment: BTreeMap<(Instant, u64), Arc<str>>,
    by_host: HashMap<Arc<str>, Promise>,
    n_promised: u64,
    /// The last moment promised to a host that came for the first time.
    line_end: Option<Instant>,
    /// The last moment promised to a host that had waited before.
    again_end: Option<Instant>,
}

/// The moment promised to a host.
#[derive(Debug, Clone, Copy)]
struct Promise {
    at: Instant,
    /// Number that tells promises of one moment apart.
    number: u64,
    /// True if the host had waited before, and the address was not free.
    is_again: bool,
}

impl Address {
    /// Returns the address that requests to `ip` count for.
    pub fn of(ip: IpAddr) -> Self {
        Self(match ip.to_canonical() {
            IpAddr::V4(ip) => ip.into(),
            IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & (u128::MAX << 64)).into(),
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            IpAddr::V4(ip) => ip.fmt(f),
            IpAddr::V6(ip) => write!(f, "{ip}/64"),
        }
    }
}

impl Addresses {
    /// Takes a turn of an address for a host. The moment passed in is the present one. The error holds the
    /// moment to come again.
    pub(super) fn take(
        &self,
        shared: SharedAddress,
        host: &str,
        interval: Duration,
        now: Instant,
    ) -> Result<(), Instant> {
        let mut clocks = self.clocks();
        if !clocks.by_address.contains_key(&shared.address) {
            clocks.make_room(interval, now);
        }
        let clock = clocks.by_address.entry(shared.address).or_default();
        clock.take(host, shared.is_begun, interval, now)
    }

    fn clocks(&self) -> MutexGuard<'_, Clocks> {
        self.clocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clocks {
    /// Forgets idle addresses if there are many.
    fn make_room(&mut self, interval: Duration, now: Instant) {
        if self.by_address.len() >= FIRST_SWEEP.max(2 * self.n_swept) {
            let by_address = &mut self.by_address;
            by_address.retain(|_, clock| !clock.is_idle(interval, now));
            self.n_swept = by_address.len();
        }
    }
}

impl AddressClock {
    fn take(
        &mut self,
        host: &str,
        is_begun: bool,
        interval: Duration,
        now: Instant,
    ) -> Result<(), Instant> {
        self.forget_late(now);
        let after_last = self.last.map(|last| last + interval);
        let ready_at = after_last.map_or(now, |at| at.max(now));
        let own = self.by_host.get(host).copied();
        let has_waited = is_begun || own.is_some_and(|own| own.at <= now);
        if ready_at <= now && (has_waited || !self.is_kept_for_another(host, now)) {
            self.withdraw(host);
            self.last = Some(now);
            return Ok(());
        }
        let at = match own {
            // Another host came late; this one is put off by no more than that, as it was promised.
            Some(own) if has_waited && own.is_again => ready_at,
            _ if has_waited => {
                let at = self
                    .again_end
                    .map_or(ready_at, |end| ready_at.max(end + interval));
                self.again_end = Some(at);
                at
            }
            Some(own) => own.at.max(ready_at),
            None if self.by_host.len() >= MAX_PROMISES => return Err(now + LONGEST_PAUSE),
            None => {
                // The place is behind all others, however late they are.
                let n_before = u32::try_from(self.by_host.len()).unwrap_or(u32::MAX);
                let at = ready_at + interval * n_before;
                let at = self.line_end.map_or(at, |end| at.max(end + interval));
                self.line_end = Some(at);
                at
            }
        };
        self.promise(host, at, has_waited);
        Err(at.min(now + LONGEST_PAUSE))
    }

    /// Returns true if a turn that is due is kept for another host.
    fn is_kept_for_another(&self, host: &str, now: Instant) -> bool {
        let since = now.checked_sub(GRACE).unwrap_or(now);
        let mut due = self.by_moment.range((since, 0)..=(now, u64::MAX));
        due.any(|(_, other)| **other != *host)
    }

    fn promise(&mut self, host: &str, at: Instant, is_again: bool) {
        let name = self.withdraw(host).unwrap_or_else(|| host.into());
        self.n_promised += 1;
        let number = self.n_promised;
        self.by_moment.insert((at, number), Arc::clone(&name));
        let promise = Promise {
            at,
            number,
            is_again,
        };
        self.by_host.insert(name, promise);
    }

    fn withdraw(&mut self, host: &str) -> Option<Arc<str>> {
        let promise = self.by_host.remove(host)?;
        self.by_moment.remove(&(promise.at, promise.number))
    }

    /// Forgets the rank of hosts that have stayed away for long.
    fn forget_late(&mut self, now: Instant) {
        while let Some(first) = self.by_moment.first_entry()
            && first.key().0 + RANK_FOR < now
        {
            let host = first.remove();
            self.by_host.remove(&host);
        }
    }

    /// Returns true if the next request need not know anything of those before it.
    fn is_idle(&mut self, interval: Duration, now: Instant) -> bool {
        self.forget_late(now);
        self.by_moment.is_empty() && self.last.is_none_or(|last| last + interval <= now)
    }
}

#[cfg(test)]
mod tests;
