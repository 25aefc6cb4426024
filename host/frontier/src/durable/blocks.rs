//! Cache of blocks from the files of all open databases; it can be emptied while they are open.

use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use slatedb::Error;
use slatedb::db_cache::{CachedEntry, CachedKey, DbCache};

use super::DurableSettings;

/// Cache of blocks, indexes and filters.
pub(super) struct Blocks {
    settings: DurableSettings,
    present: RwLock<Arc<dyn DbCache>>,
}

impl Blocks {
    /// Creates an empty cache of the sizes that are set.
    pub(super) fn new(settings: DurableSettings) -> Self {
        Self {
            present: RwLock::new(settings.block_cache()),
            settings,
        }
    }

    /// Replaces the cache by an empty one. Reads that are under way finish with the old one.
    pub(super) fn forget(&self) {
        let empty = self.settings.block_cache();
        let mut present = self.present.write().unwrap_or_else(PoisonError::into_inner);
        *present = empty;
    }

    fn present(&self) -> Arc<dyn DbCache> {
        let present = self.present.read();
        present.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl DbCache for Blocks {
    async fn get_block(&self, key: &CachedKey) -> Result<Option<CachedEntry>, Error> {
        self.present().get_block(key).await
    }

    async fn get_index(&self, key: &CachedKey) -> Result<Option<CachedEntry>, Error> {
        self.present().get_index(key).await
    }

    async fn get_filter(&self, key: &CachedKey) -> Result<Option<CachedEntry>, Error> {
        self.present().get_filter(key).await
    }

    async fn get_stats(&self, key: &CachedKey) -> Result<Option<CachedEntry>, Error> {
        self.present().get_stats(key).await
    }

    async fn insert(&self, key: CachedKey, value: CachedEntry) {
        self.present().insert(key, value).await;
    }

    async fn remove(&self, key: &CachedKey) {
        self.present().remove(key).await;
    }

    fn entry_count(&self) -> u64 {
        self.present().entry_count()
    }
}
