//! Table of all hosts that the workbench knows, most of them in a short form.
//!
//! A crawl of a million hosts asks few of them at any moment. A host that sleeps with one lane, or that has
//! no URLs left, needs its clock, its health and one cursor: about a hundred bytes, whereas the lanes of a host
//! with URLs in memory take five hundred and more. The maps are ordered, because a hash table of a million
//! entries doubles at once.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::health::HostHealth;
use super::host::{Host, HostClock, Place};
use super::ids::HostId;
use super::lane::{Cursor, Lane};

/// Hosts by id, each in one of two forms.
#[derive(Debug)]
pub(super) struct Hosts<T> {
    whole: HashMap<HostId, Host<T>>,
    short: BTreeMap<HostId, ShortHost>,
}

/// Short form of a host that has no URLs in memory.
#[derive(Debug)]
struct ShortHost {
    clock: HostClock,
    health: HostHealth,
    /// Start of its only lane. `None` if no URLs are left.
    cursor: Option<Cursor>,
}

impl<T> Default for Hosts<T> {
    fn default() -> Self {
        Self {
            whole: HashMap::new(),
            short: BTreeMap::new(),
        }
    }
}

impl<T> Hosts<T> {
    pub(super) fn contains(&self, id: HostId) -> bool {
        self.whole.contains_key(&id) || self.short.contains_key(&id)
    }

    /// Returns what is known of a host besides its URLs.
    pub(super) fn about(&self, id: HostId) -> Option<(HostClock, &HostHealth)> {
        let short = || self.short.get(&id).map(|host| (host.clock, &host.health));
        let whole = self.whole.get(&id).map(|host| (host.clock, &host.health));
        whole.or_else(short)
    }

    /// Returns the number of hosts.
    pub(super) fn len(&self) -> u64 {
        (self.whole.len() + self.short.len()) as u64
    }

    /// Iterates over what is known of all hosts, and whether each has URLs that wait or are in flight.
    pub(super) fn iter(&self) -> impl Iterator<Item = (HostClock, &HostHealth, bool)> {
        let whole = self.whole.values();
        let whole = whole.map(|host| (host.clock, &host.health, !host.lanes.is_empty()));
        let short = self.short.values();
        whole.chain(short.map(|host| (host.clock, &host.health, host.cursor.is_some())))
    }

    /// Returns a host, unless it is in the short form: then none of its URLs is in memory or wanted.
    pub(super) fn whole(&self, id: HostId) -> Option<&Host<T>> {
        self.whole.get(&id)
    }

    /// Returns a host to change, with the same exception.
    pub(super) fn whole_mut(&mut self, id: HostId) -> Option<&mut Host<T>> {
        self.whole.get_mut(&id)
    }

    /// Returns a host to change, in any form, or a new one if it is not known.
    pub(super) fn expand(&mut self, id: HostId) -> &mut Host<T> {
        let short = &mut self.short;
        self.whole
            .entry(id)
            .or_insert_with(|| short.remove(&id).map(Host::from).unwrap_or_default())
    }

    /// Adds a host without URLs in memory, in the short form, and returns its place. It is not known before.
    pub(super) fn add_short(
        &mut self,
        id: HostId,
        clock: HostClock,
        health: HostHealth,
        cursor: Option<Cursor>,
    ) -> Place {
        let place = Place::at_rest(clock, &health, cursor.map(|cursor| cursor.at.due));
        let short = ShortHost {
            clock,
            health,
            cursor,
        };
        self.short.insert(id, short);
        place
    }

    /// Brings a host into the short form, if that is possible.
    pub(super) fn shorten(&mut self, id: HostId) {
        let short = self.whole.get(&id).and_then(Host::short);
        if let Some(short) = short {
            self.whole.remove(&id);
            self.short.insert(id, short);
        }
    }

    /// Returns the number of a host's lanes.
    pub(super) fn n_lanes(&self, id: HostId) -> usize {
        match self.whole.get(&id) {
            Some(host) => host.lanes.len(),
            None => {
                let short = self.short.get(&id);
                short.map_or(0, |host| usize::from(host.cursor.is_some()))
            }
        }
    }

    /// Forgets a host that has no URLs left.
    pub(super) fn forget(&mut self, id: HostId) {
        self.whole.remove(&id);
        self.short.remove(&id);
    }

    /// Returns the numbers of hosts in the whole and in the short form.
    #[cfg(test)]
    pub(super) fn counted(&self) -> (usize, usize) {
        (self.whole.len(), self.short.len())
    }

    /// Iterates over the hosts whose URLs are in memory or wanted.
    #[cfg(test)]
    pub(super) fn all_whole(&self) -> impl Iterator<Item = &Host<T>> {
        self.whole.values()
    }
}

impl<T> Host<T> {
    /// Returns the short form, or `None` if it would lose something.
    fn short(&self) -> Option<ShortHost> {
        if self.n_in_flight > 0 {
            return None;
        }
        let mut lanes = self.lanes.iter();
        let cursor = match (lanes.next(), lanes.next()) {
            (None, _) => None,
            (Some((priority, lane)), None) if self.is_asleep() => Some(Cursor {
                priority: priority.0,
                at: lane.as_cursor()?,
            }),
            (Some(_), _) => return None,
        };
        Some(ShortHost {
            clock: self.clock,
            health: self.health.clone(),
            cursor,
        })
    }
}

impl<T> From<ShortHost> for Host<T> {
    fn from(short: ShortHost) -> Self {
        let mut host = Self::default();
        (host.clock, host.health) = (short.clock, short.health);
        if let Some(Cursor { priority, at }) = short.cursor {
            let lane = Box::new(Lane::from_cursor(at));
            host.lanes.insert(Reverse(priority), lane);
            host.sleep();
        }
        host
    }
}
