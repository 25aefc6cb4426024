//! The cache of stored requests on its own, asked as a commit asks it, for benchmarks. A crawl meets it within a
//! frontier only.

use super::seen::{Opening, SeenCache};
use crawler_model::crawl::Request;

/// A cache that knows some requests to be stored.
#[derive(Debug)]
pub struct KnownLinks {
    cache: SeenCache,
    opening: Opening,
}

impl KnownLinks {
    /// Creates a cache of at most `max_bytes` that knows these requests.
    pub fn new(max_bytes: usize, requests: &[Request]) -> Self {
        let cache = SeenCache::new(max_bytes);
        let opening = cache.open(true);
        for request in requests {
            cache.insert(cache.key(opening, request));
        }
        Self { cache, opening }
    }

    /// Returns the number of these requests that are not known to be stored.
    pub fn n_unknown(&self, requests: &[Request]) -> usize {
        self.cache.unknown(self.opening, requests).len()
    }
}
