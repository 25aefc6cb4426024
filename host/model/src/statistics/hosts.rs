//! Hosts that most refused links lead to, in bounded memory: the Space-Saving summary of Metwally, Agrawal and El Abbadi
//! (2005). Of the links that are told, a host with more than all of them divided by the number of counters is always
//! among them. A page tells the links to 64 hosts at most, and six reasons have hosts at all; beyond that, links
//! are in the counts alone.

use serde::{Deserialize, Serialize};

use super::plain;

/// Number of hosts that have a counter.
const N_COUNTERS: usize = 24;
/// Bytes of the name of a host.
const HOST_BYTES: usize = 64;
/// Largest number of different hosts that are told of one page; links to further ones are in the counts alone.
const MAX_PER_PAGE: usize = 64;

/// Hosts with the most links, as far as their counters tell.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TopHosts {
    counters: Vec<HostLinks>,
}

/// Number of links to one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostLinks {
    /// Name of the host.
    pub host: String,
    /// Number of links, never less than were told.
    pub n: u64,
    /// Number of links by which `n` may be too high.
    #[serde(default)]
    pub error: u64,
}

impl TopHosts {
    /// Adds links to a host.
    pub fn add(&mut self, host: &str, n: u64) {
        let host = plain(host, HOST_BYTES);
        if let Some(known) = self.counters.iter_mut().find(|known| known.host == host) {
            known.n = known.n.saturating_add(n);
            return;
        }
        let (before, replaced) = match self.counters.len() < N_COUNTERS {
            true => (0, None),
            false => {
                let counters = self.counters.iter_mut();
                let least = counters.min_by_key(|known| known.n);
                (least.as_ref().map_or(0, |least| least.n), least)
            }
        };
        let counter = HostLinks {
            host: host.into_owned(),
            n: before.saturating_add(n),
            error: before,
        };
        match replaced {
            Some(replaced) => *replaced = counter,
            None => self.counters.push(counter),
        }
    }

    /// Adds the counters of another shard.
    pub fn merge(&mut self, other: &Self) {
        let (own_floor, other_floor) = (self.floor(), other.floor());
        let mut counters = std::mem::take(&mut self.counters);
        for counter in &mut counters {
            let same = other.counters.iter().find(|o| o.host == counter.host);
            let (n, error) = same.map_or((other_floor, other_floor), |same| (same.n, same.error));
            counter.n = counter.n.saturating_add(n);
            counter.error = counter.error.saturating_add(error);
        }
        let n_own = counters.len();
        for counter in &other.counters {
            if counters[..n_own].iter().all(|own| own.host != counter.host) {
                counters.push(HostLinks {
                    host: plain(&counter.host, HOST_BYTES).into_owned(),
                    n: counter.n.saturating_add(own_floor),
                    error: counter.error.saturating_add(own_floor),
                });
            }
        }
        counters.sort_by(|a, b| (b.n, &a.host).cmp(&(a.n, &b.host)));
        counters.truncate(N_COUNTERS);
        self.counters = counters;
    }

    /// Returns the hosts with the most links, at most `max`.
    pub fn top(&self, max: usize) -> Vec<&HostLinks> {
        let mut counters: Vec<_> = self.counters.iter().collect();
        counters.sort_by(|a, b| (b.n, &a.host).cmp(&(a.n, &b.host)));
        counters.truncate(max);
        counters
    }

    /// Returns the number of links that a host without a counter may have.
    fn floor(&self) -> u64 {
        let least = self.counters.iter().map(|counter| counter.n).min();
        least
            .filter(|_| self.counters.len() >= N_COUNTERS)
            .unwrap_or(0)
    }
}

impl FromIterator<HostLinks> for TopHosts {
    fn from_iter<T: IntoIterator<Item = HostLinks>>(counters: T) -> Self {
        Self {
            counters: counters.into_iter().take(N_COUNTERS).collect(),
        }
    }
}

/// Hosts of the refused links of one page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RefusedHosts {
    hosts: Vec<RefusedHost>,
}

/// Number of links of one page to one host that were refused for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RefusedHost {
    pub(super) reason: &'static str,
    pub(super) host: String,
    pub(super) n: u64,
}

impl RefusedHosts {
    /// Counts a refused link.
    pub fn add(&mut self, reason: &'static str, host: &str) {
        let same = |known: &&mut RefusedHost| known.reason == reason && known.host == host;
        if let Some(known) = self.hosts.iter_mut().find(same) {
            known.n += 1;
        } else if self.hosts.len() < MAX_PER_PAGE {
            self.hosts.push(RefusedHost {
                reason,
                host: host.to_owned(),
                n: 1,
            });
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &RefusedHost> {
        self.hosts.iter()
    }
}
