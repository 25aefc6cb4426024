//! Links to other shards of the resource and from them.

use std::collections::{BTreeMap, VecDeque};

use crate::{LinkBatch, LinkBounds, NewRequest};
use crawler_model::id::Shard;
use crawler_model::resource::LinkTotals;

#[derive(Debug, Clone, Default)]
pub(crate) struct PeerLinks {
    out: BTreeMap<Shard, LinkQueue>,
    /// Number of the last stored link from each shard.
    pub(crate) applied: BTreeMap<Shard, u64>,
}

/// Links that one other shard has not got yet.
#[derive(Debug, Clone, Default)]
struct LinkQueue {
    n_delivered: u64,
    links: VecDeque<NewRequest>,
}

impl PeerLinks {
    pub(crate) fn n_waiting(&self) -> usize {
        self.out.values().map(|out| out.links.len()).sum()
    }

    pub(crate) fn push(&mut self, to: Shard, link: NewRequest) {
        self.out.entry(to).or_default().links.push_back(link);
    }

    pub(crate) fn waiting(&self) -> Vec<Shard> {
        let waiting = self.out.iter().filter(|(_, out)| !out.links.is_empty());
        waiting.map(|(peer, _)| *peer).collect()
    }

    pub(crate) fn links_for(&self, peer: Shard, bounds: LinkBounds) -> LinkBatch {
        let Some(out) = self.out.get(&peer) else {
            return LinkBatch::default();
        };
        let mut n_bytes = 0;
        let is_within = |link: &&NewRequest| {
            let is_first = n_bytes == 0;
            n_bytes += size_of_link(link);
            is_first || n_bytes <= bounds.bytes
        };
        let links = out.links.iter().take(bounds.n).take_while(is_within);
        LinkBatch {
            first: out.n_delivered + 1,
            links: links.cloned().collect(),
        }
    }

    pub(crate) fn delivered(&mut self, peer: Shard, end: u64) {
        let Some(out) = self.out.get_mut(&peer) else {
            return;
        };
        while out.n_delivered + 1 < end && out.links.pop_front().is_some() {
            out.n_delivered += 1;
        }
    }

    pub(crate) fn totals(&self) -> LinkTotals {
        let n_sent = |out: &LinkQueue| out.n_delivered + out.links.len() as u64;
        let sent = self.out.iter().map(|(peer, out)| (peer.0, n_sent(out)));
        let applied = self.applied.iter().map(|(peer, last)| (peer.0, *last));
        LinkTotals {
            sent: sent.collect(),
            applied: applied.collect(),
        }
    }
}

fn size_of_link(link: &NewRequest) -> usize {
    let request = &link.request;
    let headers = request.headers.iter();
    let headers: usize = headers.map(|(name, value)| name.len() + value.len()).sum();
    let body = request.body.as_ref().map_or(0, |body| body.len());
    // A link is sent with its referrer, although links of one page share it here.
    let referrer = request.referrer.as_ref().map_or(0, |url| url.len());
    let fixed = request.url.as_str().len() + request.rule.len() + request.state.len();
    fixed + request.accept_status.n_bytes() + referrer + headers + body
}
