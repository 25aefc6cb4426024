//! Knowledge about hosts, and its changes.

use std::collections::BTreeMap;

use super::{HostHealth, HostId, HostKind, HostStanding, Workbench};
use crawler_model::crawl::UnixMillis;
use crawler_model::frontier::HostState;

/// Number of hosts for which their numbers by state are valid for one more millisecond. Those of a million hosts are valid for
/// ten seconds.
const COUNTED_PER_MS: u64 = 100;

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

    /// Returns the number of hosts in each state at `now`, of the `n_met` that this run has, or had, a URL of. Those that were
    /// forgotten are idle. All hosts are looked at, so if there are many, the numbers are counted anew after a while only.
    pub(crate) fn hosts_by_state(
        &mut self,
        now: UnixMillis,
        n_met: u64,
    ) -> BTreeMap<HostState, u64> {
        let valid = self.hosts.len() / COUNTED_PER_MS;
        match &self.counted {
            Some((at, by_state)) if (*at..at.saturating_add(valid)).contains(&now) => {
                by_state.clone()
            }
            Some(_) | None => {
                let by_state = self.count_by_state(now, n_met);
                self.counted = Some((now, by_state.clone()));
                by_state
            }
        }
    }

    fn count_by_state(&self, now: UnixMillis, n_met: u64) -> BTreeMap<HostState, u64> {
        let mut by_state = BTreeMap::new();
        let mut n_idle = n_met;
        for (clock, health, has_urls) in self.hosts.iter() {
            let state = health.state(has_urls, clock.at, now);
            if state != HostState::Idle {
                *by_state.entry(state).or_default() += 1;
                n_idle = n_idle.saturating_sub(1);
            }
        }
        if n_idle > 0 {
            by_state.insert(HostState::Idle, n_idle);
        }
        by_state
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
