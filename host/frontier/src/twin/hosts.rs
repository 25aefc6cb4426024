//! Hosts of one shard: their clocks and their health.

use std::collections::{BTreeMap, BTreeSet};

use super::plain::{Plain, Stage};
use crate::HostStanding;
use crate::workbench::{HostHealth, HostKind};
use crawler_model::crawl::UnixMillis;
use crawler_model::frontier::HostState;

impl Plain {
    pub(super) fn clock(&self, host: &str) -> UnixMillis {
        self.hosts.get(host).map_or(0, |clock| clock.at)
    }

    /// Returns the standing of a host for a claim that is taken now.
    pub(super) fn standing(&self, host: &str) -> HostStanding {
        let health = self.health_by_host.get(host).cloned().unwrap_or_default();
        health.standing(self.clock(host), self.time.latest())
    }

    /// Returns the number of hosts in each state at a moment of the wall clock.
    pub(super) fn hosts_by_state(&self, wall: UnixMillis) -> BTreeMap<HostState, u64> {
        let now = self.time.of_wall(wall).max(self.time.latest());
        let due = self.urls.values().filter(|known| known.stage == Stage::Due);
        let with_urls: BTreeSet<String> = due.map(|known| known.request.host()).collect();
        let mut by_state = BTreeMap::new();
        for host in &self.met {
            let health = self.health_by_host.get(host).cloned().unwrap_or_default();
            let state = health.state(with_urls.contains(host), self.clock(host), now);
            *by_state.entry(state).or_default() += 1;
        }
        by_state
    }

    /// Returns the kind of a host.
    pub(super) fn kind(&self, host: &str) -> HostKind {
        let health = self.health_by_host.get(host);
        health.map_or_else(|| HostHealth::default().kind(), HostHealth::kind)
    }

    /// Returns the health of a host, to be changed.
    pub(super) fn health(&mut self, host: String) -> &mut HostHealth {
        self.health_by_host.entry(host).or_default()
    }

    pub(super) fn set_host_clock(
        &mut self,
        host: &str,
        ready_at: UnixMillis,
        answered_at: UnixMillis,
    ) {
        if ready_at == 0 {
            return;
        }
        let (now, ready_at) = (self.time.latest(), self.time.of_wall(ready_at));
        let answered = match answered_at {
            0 => now,
            wall => self.time.of_wall(wall).min(now),
        };
        let clock = self.hosts.entry(host.to_owned()).or_default();
        clock.record_answer(ready_at, ready_at.saturating_sub(answered));
    }

    /// Postpones a host to this moment, unless it waits for longer.
    pub(super) fn postpone(&mut self, host: &str, until: UnixMillis) {
        let until = self.time.of_wait(until);
        let clock = self.hosts.entry(host.to_owned()).or_default();
        clock.postpone(until);
    }
}
