//! News about hosts, from claims that come back and from pages that end, and their present state.

use std::collections::BTreeMap;

use super::State;
use crate::workbench::HostId;
use crate::{Claim, HostUpdate};
use crawler_model::crawl::UnixMillis;
use crawler_model::frontier::DelaySource;
use crawler_model::status::PresentHosts;

impl State {
    /// Puts a claim back, with the update about its host.
    pub(in crate::durable) fn give_back(&mut self, claim: Claim, update: HostUpdate) {
        let Some(page) = self.released(&claim) else {
            return;
        };
        let host = page.lane.host;
        match update {
            // The host may have been asked.
            HostUpdate::None => self.has_unsure_clocks = true,
            HostUpdate::NotBefore(wall) => {
                let until = self.time.of_wait(wall);
                self.bench.postpone(host, until);
            }
            HostUpdate::Ready {
                not_before,
                delay_by,
                ..
            } if not_before > 0 => {
                let (now, until) = (self.time.latest(), self.time.of_wall(not_before));
                self.bench.set_host_clock(host, now, until);
                self.note_origin(host, until.saturating_sub(now), delay_by);
                self.unsaved.insert(host);
            }
            HostUpdate::Ready { .. } | HostUpdate::Unready => {}
        }
        self.bench
            .update_health(host, |health| health.apply(update));
        self.wait_again(claim, page);
    }

    /// Returns the number of hosts in each state at a moment of the wall clock, and the pages in flight.
    pub(in crate::durable) fn present_hosts(&mut self, wall: UnixMillis) -> PresentHosts {
        let mut in_flight = BTreeMap::new();
        for host in self.in_flight.values().map(|page| page.lane.host) {
            *in_flight.entry(host.0).or_default() += 1;
        }
        let now = self.time.of_wall(wall).max(self.time.latest());
        let n_met = self.counts.hosts;
        PresentHosts {
            by_state: self.bench.hosts_by_state(now, n_met),
            in_flight,
        }
    }

    /// Takes note of the origin of a delay, if it is the one that the host's clock keeps now.
    pub(super) fn note_origin(&mut self, host: HostId, delay: u64, by: DelaySource) {
        if self.bench.delay(host) == Some(delay) {
            self.bench
                .update_health(host, |health| health.delay_by = by);
        }
    }
}
