//! Numbers of the links to other shards and from them.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message as _;
use slatedb::WriteBatch;

use crate::durable::new_links::OutgoingLink;
use crate::{keys, records};
use crawler_model::id::{Run, Shard};
use crawler_model::resource::LinkTotals;

/// Progress of the links to and from other shards.
#[derive(Debug)]
pub(in crate::durable) struct PeerLinks {
    pub(in crate::durable) out: BTreeMap<Shard, LinkQueue>,
    /// Number of the last stored link from each shard.
    pub(in crate::durable) applied: BTreeMap<Shard, u64>,
    max: u64,
}

/// Numbers of the links for one other shard.
#[derive(Debug, Clone, Copy)]
pub(in crate::durable) struct LinkQueue {
    /// First number that the shard does not have yet.
    pub(in crate::durable) first: u64,
    /// Number below which all links are durable here.
    pub(in crate::durable) durable_next: u64,
    pub(in crate::durable) next: u64,
}

impl PeerLinks {
    pub(in crate::durable) fn new(max: u64) -> Self {
        Self {
            out: BTreeMap::new(),
            applied: BTreeMap::new(),
            max,
        }
    }

    pub(in crate::durable) fn n_waiting(&self) -> u64 {
        self.out.values().map(|out| out.next - out.first).sum()
    }

    pub(in crate::durable) fn is_full(&self) -> bool {
        self.n_waiting() >= self.max
    }

    /// Returns the numbers that the next links will get.
    pub(in crate::durable) fn next(&self) -> Vec<(Shard, u64)> {
        let next = self.out.iter().map(|(peer, out)| (*peer, out.next));
        next.collect()
    }

    pub(in crate::durable) fn durable_to(&mut self, next: &[(Shard, u64)]) {
        for (peer, next) in next {
            if let Some(out) = self.out.get_mut(peer) {
                out.durable_next = *next;
            }
        }
    }

    /// Returns the shards for which there are durable links.
    pub(in crate::durable) fn waiting(&self) -> Vec<Shard> {
        let durable = self
            .out
            .iter()
            .filter(|(_, out)| out.first < out.durable_next);
        durable.map(|(peer, _)| *peer).collect()
    }

    /// Returns the number of the last link of another shard that is stored.
    pub(in crate::durable) fn last_applied(&self, from: Shard) -> u64 {
        self.applied.get(&from).copied().unwrap_or(0)
    }

    pub(in crate::durable) fn totals(&self) -> LinkTotals {
        let sent = self.out.iter().map(|(peer, out)| (peer.0, out.next - 1));
        let applied = self.applied.iter().map(|(peer, last)| (peer.0, *last));
        LinkTotals {
            sent: sent.collect(),
            applied: applied.collect(),
        }
    }

    pub(in crate::durable) fn save(&self, run: u64, peer: Shard, batch: &mut WriteBatch) {
        if let Some(out) = self.out.get(&peer) {
            let (first, next) = (out.first, out.next);
            let record = records::Peer { run, first, next };
            batch.put(keys::peer(peer), record.encode_to_vec());
        }
    }

    /// Stores links for other shards and returns their number.
    pub(in crate::durable) fn send(
        &mut self,
        run: Run,
        links: Vec<OutgoingLink>,
        batch: &mut WriteBatch,
    ) -> u64 {
        let mut peers = BTreeSet::new();
        let n_sent = links.len() as u64;
        for link in links {
            let out = self.out.entry(link.to).or_insert(LinkQueue {
                first: 1,
                durable_next: 1,
                next: 1,
            });
            let record = records::Link {
                request: (&link.new.request).into(),
                depth: link.new.depth,
            };
            let key = keys::link(run, link.to, out.next);
            batch.put(key, record.encode_to_vec());
            out.next += 1;
            let to = Some(link.to.0);
            let seen = keys::seen(run, link.host, link.fingerprint);
            batch.put(seen, records::Seen { to }.encode_to_vec());
            peers.insert(link.to);
        }
        for peer in peers {
            self.save(run.0, peer, batch);
        }
        n_sent
    }
}
