//! The pages that lines of a log have counted last, so that a page that is retried counts once.

use std::collections::{HashSet, VecDeque};

/// Maximum number of pages that are remembered. A page that comes again later counts again.
const MAX_PAGES: usize = 1_024;

/// The last pages that were counted, each by a hash of its line and its URL.
#[derive(Default)]
pub(super) struct CountedPages {
    known: HashSet<u64>,
    /// The same hashes, the oldest first.
    in_order: VecDeque<u64>,
}

impl CountedPages {
    /// Remembers a page. Returns false if it is remembered already.
    pub(super) fn insert(&mut self, page: u64) -> bool {
        if !self.known.insert(page) {
            return false;
        }
        self.in_order.push_back(page);
        if self.in_order.len() > MAX_PAGES
            && let Some(oldest) = self.in_order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_pages_are_remembered() {
        let mut counted_pages = CountedPages::default();
        let n_pages = MAX_PAGES as u64;
        for page in 0..n_pages {
            assert!(counted_pages.insert(page));
        }
        assert!(!counted_pages.insert(0));
        assert!(counted_pages.insert(n_pages));
        assert!(counted_pages.insert(0) && !counted_pages.insert(2));
        assert_eq!(counted_pages.known.len(), MAX_PAGES);
        assert_eq!(counted_pages.in_order.len(), MAX_PAGES);
    }
}
