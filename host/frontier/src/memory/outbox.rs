//! Items on their way to the sink, in the order they were committed.

use std::collections::VecDeque;

use crawler_model::crawl::ItemRecord;

#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// Number of the first item.
    pub(super) first: u64,
    pub(super) items: VecDeque<ItemRecord>,
    pub(super) n_bytes: usize,
}

impl Outbox {
    pub(super) fn push(&mut self, items: Vec<ItemRecord>) {
        for item in items {
            self.n_bytes += size_of_item(&item);
            self.items.push_back(item);
        }
    }

    pub(super) fn clear(&mut self, end: u64) {
        while self.first < end
            && let Some(item) = self.items.pop_front()
        {
            self.n_bytes -= size_of_item(&item);
            self.first += 1;
        }
    }
}

fn size_of_item(item: &ItemRecord) -> usize {
    let text = item.key.0.len() + item.url.len() + item.rule.len() + item.schema.len();
    size_of::<ItemRecord>() + text + item.item.get().len()
}
