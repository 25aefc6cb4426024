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

/// Which links of another shard are stored; the others are passed over like those that are known.
#[derive(Clone, Copy)]
pub struct LinkPolicy<'a> {
    /// Setting `max-pattern-urls`.
    pub max_pattern_urls: u64,
    /// Returns true for a link that this shard would follow if one of its own pages had it.
    pub may_follow: &'a (dyn Fn(&NewRequest) -> bool + Send + Sync),
}

impl LinkPolicy<'_> {
    /// A policy that looks at the patterns of URLs alone.
    pub fn of_patterns(max_pattern_urls: u64) -> Self {
        Self {
            max_pattern_urls,
            may_follow: &|_| true,
        }
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
