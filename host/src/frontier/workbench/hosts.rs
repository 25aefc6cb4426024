//! Knowledge about hosts, and its changes.

use super::host::Kind;
use super::{HostId, HostLife, HostStanding, Workbench};
use crate::model::crawl::UnixMillis;

impl<T> Workbench<T> {
    /// Records an answer other than a page: the host has answered at `answered`, and is not asked before
    /// `not_before`.
    pub(crate) fn land_host(&mut self, host: HostId, answered: UnixMillis, not_before: UnixMillis) {
        let delay = not_before.saturating_sub(answered);
        self.change(host, |host| host.clock.land(not_before, delay));
    }

    /// Returns the standing of a host for a claim that is taken now.
    pub(crate) fn standing(&self, host: HostId, now: UnixMillis) -> HostStanding {
        let known = self.hosts.about(host);
        let standing = known.map(|(clock, life)| life.standing(clock.at, now));
        let whole = self.hosts.whole(host).into_iter();
        let mut lanes = whole.flat_map(|host| host.lanes.values());
        HostStanding {
            has_more: lanes.any(|lane| lane.has_more()),
            ..standing.unwrap_or_default()
        }
    }

    /// Returns the milliseconds between the last answer of a host and the next request, if the host is known.
    pub(crate) fn delay(&self, host: HostId) -> Option<u64> {
        self.hosts.about(host).map(|(clock, _)| clock.delay)
    }

    /// Returns what is known of a host's life.
    pub(crate) fn life(&self, host: HostId) -> HostLife {
        let known = self.hosts.about(host);
        known.map(|(_, life)| life.clone()).unwrap_or_default()
    }

    /// Returns true if this run has, or had, a URL of a host that is not forgotten.
    pub(crate) fn is_met(&self, host: HostId) -> bool {
        let known = self.hosts.about(host);
        known.is_some_and(|(_, life)| life.is_met)
    }

    /// Changes the life of a host.
    pub(crate) fn live<R>(&mut self, host: HostId, change: impl FnOnce(&mut HostLife) -> R) -> R {
        self.change(host, |host| change(&mut host.life))
    }

    /// Returns the number of hosts that are ready and have a URL in memory.
    pub(crate) fn n_ready(&self) -> usize {
        let ready = self
            .turns
            .iter()
            .filter(|(level, _)| level.kind == Kind::Ready);
        ready.map(|(_, turns)| turns.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use crate::frontier::workbench::{HostId, LaneId, Next, TakeFrom, Turn, Workbench};

    #[test]
    fn a_standing_tells_if_other_urls_of_the_host_wait() {
        let mut bench = Workbench::default();
        let lane = |host, priority| LaneId {
            host: HostId(host),
            priority,
        };
        for (entry, lane) in [(1, lane(1, 0)), (2, lane(1, 5)), (3, lane(2, 0))] {
            bench.put(lane, Turn { due: 0, entry }, entry);
        }
        let mut told = Vec::new();
        while let Next::Url(lane, _, url) = bench.take(0, TakeFrom::all(9)) {
            told.push((url, bench.standing(lane.host, 0).has_more));
        }
        told.sort_unstable();
        assert_eq!(told, [(1, false), (2, true), (3, false)]);
    }
}
