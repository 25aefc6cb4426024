//! Links on their way to other shards and from them.

use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::claim::NewRequest;
use crate::error::FrontierError;
use crawler_model::id::Shard;
use crawler_model::resource::LinkTotals;
use crawler_model::scope::GrowthBounds;

/// Links to the other shards of the resource and from them.
#[async_trait]
pub trait LinkExchange: Send + Sync + 'static {
    /// Returns the other shards for which there are durable links.
    fn peers(&self) -> Vec<Shard>;

    /// Returns the oldest durable links for another shard; they stay there.
    async fn links_for(&self, peer: Shard, bounds: LinkBounds) -> Result<LinkBatch, FrontierError>;

    /// Removes all links for another shard before `end`, because they are durable there.
    async fn delivered(&self, peer: Shard, end: u64) -> Result<(), FrontierError>;

    /// Stores links of another shard in one batch like those of a page, with the depths that they have. Links
    /// that were stored already are skipped, and so are those that `policy` leaves out. Returns the number of
    /// the last link that is stored. It may be smaller than that of the last link of this batch if another
    /// call brings links of the same shard at the same time. The links are durable once
    /// [`settle`](crate::Frontier::settle) has returned after this.
    ///
    /// This call is not cancel-safe: if it is cut off, it may end the use of the frontier.
    async fn apply(
        &self,
        from: Shard,
        batch: LinkBatch,
        policy: LinkPolicy<'_>,
    ) -> Result<u64, FrontierError>;

    /// Returns the numbers of links to and from other shards in this run.
    fn link_totals(&self) -> LinkTotals;

    /// Waits until [`links_for`](Self::links_for) may return more, because a batch has become durable. For one
    /// task at a time.
    async fn links_changed(&self);
}

/// Links for another shard, in the order in which they were committed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkBatch {
    /// Number of the first link.
    pub first: u64,
    /// Links with consecutive numbers.
    pub links: Vec<NewRequest>,
}

impl LinkBatch {
    /// Returns the number after the last link, to be passed to [`LinkExchange::delivered`].
    pub fn end(&self) -> u64 {
        self.first + self.links.len() as u64
    }
}

/// Policy for links that another shard has found.
#[derive(Clone, Copy)]
pub struct LinkPolicy<'a> {
    /// Limits on what the links may add to this run.
    pub growth: GrowthBounds,
    /// Function that returns the word by which a refused link is counted, or `None` if the link is stored if
    /// it is new.
    pub refusal: &'a (dyn Fn(&NewRequest) -> Option<&'static str> + Send + Sync),
}

impl LinkPolicy<'_> {
    /// Returns the links that are not refused, and counts the others by reason.
    pub(super) fn partition(
        &self,
        links: impl Iterator<Item = NewRequest>,
    ) -> (Vec<NewRequest>, BTreeMap<&'static str, u64>) {
        let mut refused = BTreeMap::new();
        let mut admitted = Vec::with_capacity(links.size_hint().0);
        for link in links {
            match (self.refusal)(&link) {
                Some(reason) => *refused.entry(reason).or_default() += 1,
                None => admitted.push(link),
            }
        }
        (admitted, refused)
    }
}

/// Limits of one batch of links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkBounds {
    /// Maximum number of links.
    pub n: usize,
    /// Maximum size in bytes, unless one link alone is larger.
    pub bytes: usize,
}
