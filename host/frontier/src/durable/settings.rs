//! Limits of a durable frontier, and the settings of its database that follow from them.
//!
//! The database is not left at its defaults for these reasons, seen in runs of exactly this version:
//!
//! - a compaction that a kill has cut off blocks its inputs until the worker's heartbeat times out;
//!   with the default of 30 s, writes stood still for that long;
//! - the default cache belongs to one database and takes 640 MiB; ours is shared by the process;
//! - a full level 0 stalls writes, and the default compactor looks every 5 s only;
//! - files of the log and of compactions are useless a short while after they were replaced, and a day of
//!   them fills a disk. Manifests are small, and only a long age keeps a suspended writer from creating one
//!   anew. Fences are never removed, because they stop a writer that resumes late. The state of a compaction
//!   is written with every heartbeat, a dozen files a second while one runs. These files are removed at the
//!   age of tables: a compaction that was suspended for so long has lost its tables too, and its result is
//!   refused by the manifest;
//! - boundary files need a conditional update, which a folder does not have.

use std::sync::Arc;
use std::time::Duration;

use slatedb::config::{
    CompactionWorkerOptions, CompactorOptions, GarbageCollectorDirectoryOptions,
    GarbageCollectorOptions, Settings,
};
use slatedb::db_cache::moka::{MokaCache, MokaCacheOptions};
use slatedb::db_cache::{DbCache, SplitCache};

/// Time for which tables that a compaction has replaced stay for reads that began before, unless the minimum
/// age is shorter; this is the database's default. A read may take the deadline of one call, and the database
/// sees a compaction at its next look at the manifest.
const INPUTS_STAY: Duration = Duration::from_secs(15 * 60);

/// Bounds of the frontiers of one process.
#[derive(Debug, Clone)]
pub struct DurableSettings {
    /// Number of items in one outbox above which no page is taken.
    pub max_outbox_items: usize,
    /// Size in bytes of one outbox above which no page is taken.
    pub max_outbox_bytes: u64,
    /// Number of links of one shard for others above which no page is taken.
    pub max_links: u64,
    /// Maximum number of pages of one shard in flight, from being taken until their batch is durable. This
    /// bounds the pages that a crash makes the crawl fetch again.
    pub max_undurable: usize,
    /// Maximum number of URLs of one shard in memory, over all of its hosts; less if many shards are open.
    pub max_buffered: usize,
    /// Maximum number of URLs in memory over all open shards, as far as the minimum of each allows.
    pub all_buffered: usize,
    /// Time between two flushes that make writes durable.
    pub flush_interval: Duration,
    /// Interval at which a database looks for work for its compactor.
    pub compaction_poll: Duration,
    /// Time without a heartbeat after which the process of a compaction counts as dead, and the compaction is begun
    /// anew. It is longer than a request of the object store may take: each heartbeat is one.
    pub compaction_timeout: Duration,
    /// Interval at which a database that writes nothing looks for a newer owner.
    pub manifest_poll: Duration,
    /// True if the object store can replace an object on the condition that it has not changed since it was read.
    pub has_updates: bool,
    /// Size in bytes of a file of level 0; less if fewer unflushed bytes are granted.
    pub l0_bytes: usize,
    /// Maximum number of unflushed bytes of one database; less if many are open.
    pub max_unflushed_bytes: usize,
    /// Maximum number of unflushed bytes over all open databases, as far as the minimum of each allows.
    pub all_unflushed_bytes: usize,
    /// Size in bytes of the cache for blocks of all databases.
    pub block_cache_bytes: u64,
    /// Size in bytes of the cache for indexes and filters of all databases.
    pub meta_cache_bytes: u64,
    /// Size in bytes of the cache for fingerprints of stored URLs, over all frontiers.
    pub seen_cache_bytes: usize,
    /// The longest time for which replaced files stay; files that cost nothing but space are removed sooner.
    pub min_age: Duration,
    /// Time between two measurements of a frontier's size on disk.
    pub disk_interval: Duration,
    /// Deadline of one call of the object store, over all of its retries, if a caller waits for it.
    pub deadline: Duration,
    /// Time without durable progress, though there are writes to flush, after which the crawl is shown as waiting.
    pub stall_after: Duration,
}

impl Default for DurableSettings {
    fn default() -> Self {
        Self {
            max_outbox_items: 100_000,
            max_outbox_bytes: 256 << 20,
            max_links: 100_000,
            max_undurable: 512,
            max_buffered: 64 << 10,
            all_buffered: 256 << 10,
            flush_interval: Duration::from_millis(50),
            compaction_poll: Duration::from_millis(100),
            compaction_timeout: Duration::from_millis(500),
            manifest_poll: Duration::from_secs(1),
            has_updates: false,
            l0_bytes: 8 << 20,
            max_unflushed_bytes: 64 << 20,
            all_unflushed_bytes: 256 << 20,
            block_cache_bytes: 64 << 20,
            meta_cache_bytes: 16 << 20,
            seen_cache_bytes: 64 << 20,
            min_age: Duration::from_secs(24 * 60 * 60),
            disk_interval: Duration::from_secs(10),
            deadline: Duration::from_secs(30),
            stall_after: Duration::from_secs(5),
        }
    }
}

impl DurableSettings {
    /// Returns the settings for frontiers in a bucket, where each request takes time and costs money. The timeout of a
    /// compaction is the least one; it has to be longer if requests may take longer.
    pub fn remote() -> Self {
        Self {
            max_undurable: 2_048,
            flush_interval: Duration::from_millis(200),
            compaction_poll: Duration::from_secs(1),
            compaction_timeout: Duration::from_secs(15),
            disk_interval: Duration::from_secs(60),
            manifest_poll: Duration::from_secs(5),
            has_updates: true,
            ..Self::default()
        }
    }

    /// Returns the cache that the databases of one process share.
    pub fn block_cache(&self) -> Arc<dyn DbCache> {
        let cache = |max_capacity| -> Option<Arc<dyn DbCache>> {
            Some(Arc::new(MokaCache::new_with_opts(MokaCacheOptions {
                max_capacity,
                ..MokaCacheOptions::default()
            })))
        };
        Arc::new(
            SplitCache::new()
                .with_block_cache(cache(self.block_cache_bytes))
                .with_meta_cache(cache(self.meta_cache_bytes))
                .build(),
        )
    }

    /// Returns the settings of a database with this limit of unflushed bytes, whose clock is `ahead` of the
    /// one that its files are dated by.
    pub fn database(&self, max_unflushed_bytes: usize, ahead: Duration) -> Settings {
        let poll = self.compaction_poll;
        let worker = CompactionWorkerOptions {
            heartbeat_interval: poll,
            compactions_poll_interval: poll,
            max_concurrent_compactions: 1,
            max_subcompactions: 1,
            max_sst_size: 32 << 20,
            max_fetch_tasks: 1,
            bytes_to_fetch: 256 << 10,
            ..CompactionWorkerOptions::default()
        };
        let compactor = CompactorOptions {
            poll_interval: poll,
            commit_compacted_interval: poll,
            max_concurrent_compactions: 1,
            worker_heartbeat_timeout: self.compaction_timeout,
            checkpoint_lifetime: INPUTS_STAY.min(self.min_age),
            worker: Some(worker),
            ..CompactorOptions::default()
        };
        Settings {
            flush_interval: Some(self.flush_interval),
            l0_sst_size_bytes: self.l0_bytes.min(max_unflushed_bytes / 2),
            max_unflushed_bytes,
            l0_max_ssts: 64,
            l0_max_ssts_per_key: 16,
            manifest_poll_interval: self.manifest_poll,
            max_wal_flushes_before_l0_flush: 4_096,
            compactor_options: Some(compactor),
            garbage_collector_options: Some(self.collector(ahead)),
            ..Settings::default()
        }
    }

    fn collector(&self, ahead: Duration) -> GarbageCollectorOptions {
        let directory = |interval: u64, age: u64| {
            let min_age = Duration::from_secs(age).min(self.min_age) + ahead;
            // A short age has an effect only if the collector looks that often.
            let interval = Duration::from_secs(interval).min(min_age.max(Duration::from_secs(1)));
            Some(GarbageCollectorDirectoryOptions {
                interval: Some(interval),
                min_age,
                dry_run: false,
            })
        };
        GarbageCollectorOptions {
            manifest_options: directory(600, 24 * 60 * 60),
            compactions_options: directory(300, 3_600),
            wal_options: directory(60, 600),
            compacted_options: directory(300, 3_600),
            wal_fence_options: None,
            detach_options: None,
            boundary_files_enabled: self.has_updates,
            ..GarbageCollectorOptions::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_stay_and_a_dead_compaction_is_taken_over_soon() {
        let settings = DurableSettings::default();
        let settings = settings.database(settings.unflushed_share(0), Duration::ZERO);
        let collector = settings.garbage_collector_options.unwrap();
        assert!(collector.wal_fence_options.is_none() && !collector.boundary_files_enabled);
        let compactor = settings.compactor_options.unwrap();
        assert!(compactor.worker_heartbeat_timeout <= Duration::from_secs(5));
        assert!(compactor.worker.unwrap().heartbeat_interval <= Duration::from_secs(1));
        assert!(settings.max_unflushed_bytes > settings.l0_sst_size_bytes);
    }

    #[test]
    fn a_short_age_holds_for_all_files() {
        let age = Duration::from_secs(60);
        let settings = DurableSettings {
            min_age: age,
            ..DurableSettings::default()
        };
        let database = settings.database(settings.unflushed_share(0), Duration::ZERO);
        // Files that a compaction has replaced are not collected before that time, whatever their age.
        assert!(database.compactor_options.unwrap().checkpoint_lifetime <= age);
        let collector = settings.collector(Duration::ZERO);
        for options in [
            collector.manifest_options,
            collector.compactions_options,
            collector.wal_options,
            collector.compacted_options,
        ] {
            let options = options.unwrap();
            assert!(options.min_age == age && options.interval.unwrap() <= age);
        }
    }
}
