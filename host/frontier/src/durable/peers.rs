//! Links to other shards of the resource and from them.
//!
//! A link for another shard is kept from its page's batch on, under the next number of that shard, until that
//! shard has stored it. A link from another shard is stored in one batch with its number, by which it is
//! recognised when it comes again. The numbers of a run go from 1 without gaps on both sides; a new run
//! begins again at 1.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use prost::Message as _;
use slatedb::WriteBatch;

use super::DurableFrontier;
use super::inner::Inner;
use super::links::DedupContext;
use super::new_links::NewLinks;
use super::state::{LinkQueue, State};
use super::writer::BreakOnDrop;
use crate::{
    FrontierError, LinkBatch, LinkBounds, LinkExchange, LinkPolicy, NewRequest, keys, records,
};
use crawler_model::id::Shard;
use crawler_model::resource::LinkTotals;

#[async_trait]
impl LinkExchange for DurableFrontier {
    fn peers(&self) -> Vec<Shard> {
        self.inner.state().peers.waiting()
    }

    async fn links_for(&self, peer: Shard, bounds: LinkBounds) -> Result<LinkBatch, FrontierError> {
        let inner = &self.inner;
        inner.check()?;
        let out = inner.state().peers.out.get(&peer).copied();
        let Some(out) = out else {
            return Ok(LinkBatch::default());
        };
        let mut links = Vec::new();
        let mut n_bytes = 0;
        let key_of = |sequence| keys::link(inner.run, peer, sequence);
        let mut found = inner
            .scan(key_of(out.first)..key_of(out.durable_next))
            .await?;
        for sequence in (out.first..out.durable_next).take(bounds.n) {
            let entry = found.next().await?;
            let Some((_, value)) = entry.filter(|(key, _)| *key == key_of(sequence)) else {
                // The link may have been delivered meanwhile.
                inner.check_waiting(peer, sequence)?;
                break;
            };
            n_bytes += value.len();
            if n_bytes > bounds.bytes && !links.is_empty() {
                break;
            }
            let link: records::Link = inner.decode(&value, "link")?;
            let request = link.request.into_request();
            links.push(NewRequest {
                request: request.map_err(|why| inner.damaged(why))?,
                depth: link.depth,
            });
        }
        Ok(LinkBatch {
            first: out.first,
            links,
        })
    }

    async fn delivered(&self, peer: Shard, end: u64) -> Result<(), FrontierError> {
        let inner = &self.inner;
        inner.check()?;
        let guard = inner.writer.lock().await;
        let mut batch = WriteBatch::new();
        {
            let mut state = inner.state();
            let Some(out) = state.peers.out.get_mut(&peer) else {
                return Ok(());
            };
            let end = end.min(out.durable_next);
            if end <= out.first {
                return Ok(());
            }
            for sequence in out.first..end {
                batch.delete(keys::link(inner.run, peer, sequence));
            }
            out.first = end;
            state.peers.save(inner.run.0, peer, &mut batch);
        }
        inner.write(&guard, batch, 0).await?;
        inner.take_changed.notify_one();
        Ok(())
    }

    async fn apply(
        &self,
        from: Shard,
        links: LinkBatch,
        policy: LinkPolicy<'_>,
    ) -> Result<u64, FrontierError> {
        let inner = &self.inner;
        inner.check()?;
        let (first, end) = (links.first, links.end());
        let n_stored = |last: u64| (last + 1).saturating_sub(first);
        // All work that does not need the guard is done before: other writers wait while it is held.
        let n_passed_over = n_stored(inner.state().peers.last_applied(from));
        let new = links.links.into_iter().skip(n_passed_over as usize);
        let (new, refused) = policy.partition(new);
        let new = inner.links(new, Vec::new());
        let guard = inner.writer.lock().await;
        // The task that held the guard before may have been cut off.
        inner.check()?;
        let last = {
            let state = inner.state();
            let shard = inner.shard;
            if !state.head.is_seeded {
                return Err(FrontierError::Unseeded { shard });
            }
            state.peers.last_applied(from)
        };
        let expected = last + 1;
        if first > expected {
            return Err(FrontierError::LinkGap {
                from,
                first,
                expected,
            });
        }
        // Links that another call has stored meanwhile are among the new ones; the rest of them comes again.
        if end <= expected || n_stored(last) != n_passed_over {
            return Ok(last);
        }
        let mut break_on_drop = BreakOnDrop {
            inner,
            is_armed: true,
        };
        let context = DedupContext {
            growth: Some(policy.growth),
            ..DedupContext::default()
        };
        let new_links = inner.deduplicate(new, context).await;
        break_on_drop.is_armed = false;
        let new_links = new_links.inspect_err(|_| inner.state().patterns.clear())?;
        let stored = inner.seen_keys(&new_links);
        let batch = inner.store_of(from, end - 1, new_links, refused);
        inner.write(&guard, batch, 0).await?;
        inner.remember(stored);
        drop(guard);
        inner.take_changed.notify_one();
        Ok(end - 1)
    }

    fn link_totals(&self) -> LinkTotals {
        self.inner.state().peers.totals()
    }

    async fn links_changed(&self) {
        self.inner.links_changed.notified().await;
    }
}

impl Inner {
    /// Loads the state that an earlier opening has left.
    pub(super) async fn load_peers(&self, state: &mut State) -> Result<(), FrontierError> {
        let too_short = || self.damaged("a key of another shard is too short".to_owned());
        let mut found = self.scan_prefix(keys::PEERS).await?;
        while let Some((key, value)) = found.next().await? {
            let peer = keys::parse_shard(&key).ok_or_else(too_short)?;
            let record: records::Peer = self.decode(&value, "peer")?;
            let out = LinkQueue {
                first: record.first,
                durable_next: record.next,
                next: record.next,
            };
            if record.run == self.run.0 {
                state.peers.out.insert(peer, out);
            }
        }
        let mut found = self.scan_prefix(&keys::applied_of(self.run)).await?;
        while let Some((key, value)) = found.next().await? {
            let peer = keys::parse_shard(&key).ok_or_else(too_short)?;
            let last: records::Number = self.decode(&value, "last link")?;
            state.peers.applied.insert(peer, last.n);
        }
        Ok(())
    }

    /// Returns an error if this link should still be there.
    fn check_waiting(&self, peer: Shard, sequence: u64) -> Result<(), FrontierError> {
        let first = self.state().peers.out.get(&peer).map(|out| out.first);
        if first.is_some_and(|first| first <= sequence) {
            return Err(self.damaged(format!("link {sequence} for shard {peer} is missing")));
        }
        Ok(())
    }

    /// Builds the batch for links of another shard; `last` is the number of the last of them.
    fn store_of(
        &self,
        from: Shard,
        last: u64,
        new_links: NewLinks,
        refused: BTreeMap<&'static str, u64>,
    ) -> WriteBatch {
        let mut batch = WriteBatch::new();
        let mut state = self.state();
        let state = &mut *state;
        for (reason, n) in refused.into_iter().chain(new_links.over_bounds()) {
            state.counts.refuse(reason, n);
        }
        let mut hosts = BTreeSet::new();
        state.store(new_links.links, self.plugin, &mut hosts, &mut batch);
        for host in hosts {
            state.save_host(host, &mut batch);
        }
        state.peers.applied.insert(from, last);
        let number = records::Number { n: last };
        batch.put(keys::applied(self.run, from), number.encode_to_vec());
        batch
    }
}
