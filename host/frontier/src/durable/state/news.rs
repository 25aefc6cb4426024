//! News about hosts, from claims that come back and from pages that end.

use super::State;
use crate::workbench::HostId;
use crate::{Claim, HostNews};
use crawler_model::frontier::DelaySource;

impl State {
    /// Puts a claim back, with the news about its host.
    pub(in crate::durable) fn give_back(&mut self, claim: Claim, news: HostNews) {
        let Some(page) = self.landed(&claim) else {
            return;
        };
        let host = page.lane.host;
        match news {
            // The host may have been asked.
            HostNews::None => self.has_unsure_clocks = true,
            HostNews::NotBefore(wall) => {
                let until = self.time.of_wall(wall);
                self.bench.postpone(host, until);
            }
            HostNews::Ready {
                not_before,
                delay_by,
                ..
            } if not_before > 0 => {
                let (now, until) = (self.time.latest(), self.time.of_wall(not_before));
                self.bench.land_host(host, now, until);
                self.note_origin(host, until.saturating_sub(now), delay_by);
                self.unsaved.insert(host);
            }
            HostNews::Ready { .. } | HostNews::Unready => {}
        }
        self.bench.live(host, |life| life.hear(news));
        self.wait_again(claim, page);
    }

    /// Takes note of the origin of a delay, if it is the one that the host's clock keeps now.
    pub(super) fn note_origin(&mut self, host: HostId, delay: u64, by: DelaySource) {
        if self.bench.delay(host) == Some(delay) {
            self.bench.live(host, |life| life.delay_by = by);
        }
    }
}
