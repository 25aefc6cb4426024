//! What is on its way out of a frontier: items to their sink, and links to other shards.

use super::NewRequest;
use crate::model::crawl::ItemRecord;

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

/// How many links one batch has at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkBounds {
    /// So many.
    pub n: usize,
    /// And so many bytes, unless one alone has more.
    pub bytes: usize,
}
