//! Batches on their way out of a frontier: items to their sink, and links to other shards.

use std::collections::BTreeMap;

use super::claim::NewRequest;
use crawler_model::crawl::ItemRecord;
use crawler_model::scope::GrowthBounds;

/// Items in the order in which they were committed.
#[derive(Debug, Clone, Default)]
pub struct OutboxBatch {
    /// Number after the last item, to be passed to [`Frontier::clear_outbox`](super::Frontier::clear_outbox).
    pub end: u64,
    /// Items, at most as many as were asked for.
    pub items: Vec<ItemRecord>,
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
    /// Returns the number after the last link, to be passed to
    /// [`Frontier::delivered`](super::Frontier::delivered).
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
