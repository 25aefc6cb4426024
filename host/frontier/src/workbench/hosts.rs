//! Knowledge about hosts, and its changes.

use super::{HostHealth, HostId, HostKind, HostStanding, Workbench};
use crawler_model::crawl::UnixMillis;

impl<T> Workbench<T> {
    /// Records an answer other than a page: the host has answered at `answered`, and is not asked before
    /// `not_before`.
    pub(crate) fn set_host_clock(
        &mut self,
        host: HostId,
        answered: UnixMillis,
        not_before: UnixMillis,
    ) {
        let delay = not_before.saturating_sub(answered);
        self.change(host, |host| host.clock.record_answer(not_before, delay));
    }

    /// Returns the standing of a host for a claim that is taken now.
    pub(crate) fn standing(&self, host: HostId, now: UnixMillis) -> HostStanding {
        let known = self.hosts.about(host);
        known.map_or_else(HostStanding::default, |(clock, health)| {
            health.standing(clock.at, now)
        })
    }

    /// Returns the milliseconds between the last answer of a host and the next request, if the host is known.
    pub(crate) fn delay(&self, host: HostId) -> Option<u64> {
        self.hosts.about(host).map(|(clock, _)| clock.delay)
    }

    /// Returns the health of a host, as far as it is known.
    pub(crate) fn health(&self, host: HostId) -> HostHealth {
        let known = self.hosts.about(host);
        known.map(|(_, health)| health.clone()).unwrap_or_default()
    }

    /// Returns true if this run has, or had, a URL of a host that is not forgotten.
    pub(crate) fn is_met(&self, host: HostId) -> bool {
        let known = self.hosts.about(host);
        known.is_some_and(|(_, health)| health.is_met)
    }

    /// Changes the health of a host.
    pub(crate) fn update_health<R>(
        &mut self,
        host: HostId,
        change: impl FnOnce(&mut HostHealth) -> R,
    ) -> R {
        self.change(host, |host| change(&mut host.health))
    }

    /// Returns the number of hosts that are ready and have a URL in memory.
    pub(crate) fn n_ready(&self) -> usize {
        let ready = self
            .queues
            .iter()
            .filter(|(level, _)| level.kind == HostKind::Ready);
        ready.map(|(_, queue)| queue.len()).sum()
    }
}
