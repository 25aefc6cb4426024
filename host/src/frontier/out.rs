//! What is on its way out of a frontier: items to their sink, and links to other shards.

use std::collections::BTreeMap;

use super::NewRequest;
use crate::model::crawl::ItemRecord;
use crate::model::scope::GrowthBounds;

/// Items in the order they were committed; the first has this number.
#[derive(Debug, Clone, Default)]
pub struct OutboxBatch {
    /// The number after the last item: what [`Frontier::clear_outbox`](super::Frontier::clear_outbox) takes.
    pub end: u64,
    /// At most as many as asked for.
    pub items: Vec<ItemRecord>,
}

/// Links for another shard, in the order they were committed; the first has this number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkBatch {
    /// The number of the first.
    pub first: u64,
    /// One after the other.
    pub links: Vec<NewRequest>,
}

impl LinkBatch {
    /// The number after the last: what [`Frontier::delivered`](super::Frontier::delivered) takes.
    pub fn end(&self) -> u64 {
        self.first + self.links.len() as u64
    }
}

/// Policy for links that another shard has found.
#[derive(Clone, Copy)]
pub struct LinkPolicy<'a> {
    /// Bounds on what the links may add to this run.
    pub growth: GrowthBounds,
    /// Returns what a link is counted by that is refused; none where it is stored if it is new.
    pub refusal: &'a (dyn Fn(&NewRequest) -> Option<&'static str> + Send + Sync),
}

impl LinkPolicy<'_> {
    /// Returns the links that are not refused, and counts the others by reason.
    pub(super) fn part(
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

/// How many links one batch has at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkBounds {
    /// So many.
    pub n: usize,
    /// And so many bytes, unless one alone has more.
    pub bytes: usize,
}
