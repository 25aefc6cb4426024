//! The memory of a process, as one of the crawls that share it sees it.

use std::sync::Arc;

use super::usage::CrawlUsage;
use super::{Account, Memory};

/// Memory of one crawl. Clones share it; one task waits for its changes.
#[derive(Debug, Clone)]
pub struct CrawlMemory {
    memory: Memory,
    usage: Arc<CrawlUsage>,
}

impl Memory {
    /// Returns the memory of one crawl, which counts as long as the value or one of its clones is held.
    pub fn for_crawl(&self) -> CrawlMemory {
        let usage = Arc::default();
        self.add(&usage);
        CrawlMemory {
            memory: self.clone(),
            usage,
        }
    }
}

impl Default for CrawlMemory {
    /// Returns the memory of a crawl in a process that nobody watches.
    fn default() -> Self {
        Memory::unwatched().for_crawl()
    }
}

impl CrawlMemory {
    /// Returns the account of the crawl's bodies and calls.
    pub fn account(&self) -> &Account {
        self.usage.account()
    }

    /// Counts these bytes too from now on, instead of those of an earlier call: the frontier's.
    pub fn count_also(&self, bytes: impl Fn() -> u64 + Send + Sync + 'static) {
        self.usage.count_also(Box::new(bytes));
    }

    /// Pages of the crawl that may be in flight at once where so many are asked for: 0 while memory is short,
    /// and fewer after the crawl was put back.
    pub fn share(&self, concurrency: u32) -> u32 {
        if self.memory.is_short() {
            return 0;
        }
        self.usage.halved(concurrency)
    }

    /// Returns the reason why the crawl takes no page; `None` while it may.
    pub fn short(&self) -> Option<String> {
        self.memory.short()
    }

    /// Returns the reason why the crawl is put back; `None` while it may go on.
    pub fn put_back(&self) -> Option<String> {
        self.usage.reason()
    }

    /// Waits until the crawl is put back, and returns the reason.
    pub async fn until_put_back(&self) -> String {
        loop {
            if let Some(why) = self.put_back() {
                return why;
            }
            self.changed().await;
        }
    }

    /// Waits until memory becomes short or free, or the crawl is put back.
    pub async fn changed(&self) {
        self.usage.changed().await;
    }

    /// Waits until memory is free; from then on the crawl is not put back any more.
    pub async fn free(&self) {
        while self.memory.is_short() {
            self.changed().await;
        }
        self.usage.end_put_back();
    }
}
