//! Items and links on their way out, and links on their way in.

use async_trait::async_trait;

use super::{MemoryFrontier, fingerprinted};
use crate::{
    FrontierError, ItemOutbox, LinkBatch, LinkBounds, LinkExchange, LinkPolicy, OutboxBatch,
    Quarantine, Undelivered,
};
use crawler_model::crawl::ItemRecord;
use crawler_model::frontier::SinkMark;
use crawler_model::id::{ResourceId, Shard};
use crawler_model::resource::{LinkTotals, ShardId};
use crawler_model::settings::{SinkName, SinkNames};

/// Nothing is judged: this frontier has no earlier run.
impl Quarantine for MemoryFrontier {}

#[async_trait]
impl ItemOutbox for MemoryFrontier {
    async fn outbox(&self, sink: &SinkName, max: usize) -> Result<OutboxBatch, FrontierError> {
        let state = self.state();
        let first = state.outbox.position(sink)?;
        let items: Vec<ItemRecord> = state.outbox.from(first).take(max).cloned().collect();
        Ok(OutboxBatch {
            end: first + items.len() as u64,
            items,
        })
    }

    async fn clear_outbox(
        &self,
        sink: &SinkName,
        end: u64,
        _mark: Option<SinkMark>,
    ) -> Result<(), FrontierError> {
        self.state().outbox.advance(sink, end)
    }

    /// Returns nothing: no mark outlives the process, and there is one opening.
    async fn marks(&self, sink: &SinkName) -> Result<Vec<SinkMark>, FrontierError> {
        self.state().outbox.position(sink)?;
        Ok(Vec::new())
    }

    fn undelivered(&self, sink: &SinkName) -> Undelivered {
        self.state().outbox.undelivered(sink)
    }

    fn undelivered_bytes(&self) -> u64 {
        self.state().outbox.n_bytes as u64
    }

    fn n_undelivered(&self) -> u64 {
        self.state().outbox.items.len() as u64
    }

    fn sinks(&self) -> SinkNames {
        self.state().outbox.sinks()
    }

    fn is_outbox_full(&self) -> bool {
        let state = self.state();
        state.outbox.items.len() >= self.settings.max_outbox_items
            || state.outbox.n_bytes >= self.settings.max_outbox_bytes
    }

    async fn outbox_changed(&self) {
        std::future::pending().await
    }
}

#[async_trait]
impl LinkExchange for MemoryFrontier {
    fn peers(&self) -> Vec<Shard> {
        self.state().peers.waiting()
    }

    async fn links_for(&self, peer: Shard, bounds: LinkBounds) -> Result<LinkBatch, FrontierError> {
        Ok(self.state().peers.links_for(peer, bounds))
    }

    async fn delivered(&self, peer: Shard, end: u64) -> Result<(), FrontierError> {
        self.state().peers.delivered(peer, end);
        self.take_changed.notify_one();
        Ok(())
    }

    async fn apply(
        &self,
        from: Shard,
        batch: LinkBatch,
        policy: LinkPolicy<'_>,
    ) -> Result<u64, FrontierError> {
        let mut state = self.state();
        if state.roots.is_none() {
            // The frontier is in memory only, and has no name.
            let shard = ShardId::only(ResourceId(0));
            return Err(FrontierError::Unseeded { shard });
        }
        let last = state.peers.applied.get(&from).copied().unwrap_or(0);
        let (expected, first, end) = (last + 1, batch.first, batch.end());
        if first > expected {
            return Err(FrontierError::LinkGap {
                from,
                first,
                expected,
            });
        }
        if end <= expected {
            return Ok(last);
        }
        let new = batch.links.into_iter().skip((expected - first) as usize);
        let (new, refused) = policy.partition(new);
        let growth = Some(policy.growth);
        state.store(fingerprinted(new), self.settings.max_urls, growth);
        for (reason, n) in refused {
            *state
                .counts
                .refused_links
                .entry(reason.to_owned())
                .or_default() += n;
        }
        state.peers.applied.insert(from, end - 1);
        drop(state);
        self.take_changed.notify_one();
        Ok(end - 1)
    }

    fn link_totals(&self) -> LinkTotals {
        self.state().peers.totals()
    }

    async fn links_changed(&self) {
        self.links_changed.notified().await;
    }
}
