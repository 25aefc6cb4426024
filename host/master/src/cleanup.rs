//! Removal of deleted resources and of files that were never complete from the data root. The leader does it.
//!
//! Each step may be repeated, and succeeds if there is nothing to do.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use object_store::ObjectStore;

use crawler_data::{DataError, DataRoot};
use crawler_frontier::FrontierError;
use crawler_frontier::reader::FrontierReader;
use crawler_model::crawl::UnixMillis;
use crawler_model::id::{ResourceId, Shard};
use crawler_model::resource::ShardId;
use crawler_sink::SinkError;
use crawler_sink::feed::without_removals;
use crawler_sink::items::ItemStore;

/// Number of items that are delivered at a time.
const BATCH: u64 = 2_000;
/// Deadline of one step at the data root.
const STEP_DEADLINE: Duration = Duration::from_secs(30);

/// Removal of data that is no longer needed.
#[async_trait]
pub trait DataCleanup: Send + Sync + 'static {
    /// Deletes the items of a resource, the files that they may name, and its archives.
    async fn delete_items(&self, resource: ResourceId) -> Result<(), CleanupError>;

    /// Makes the items of a resource readable without its frontiers, which still exist: the delivered ones and,
    /// once they are published, those that wait for their sink. Each try has its own number, and disturbs no
    /// other.
    async fn settle_items(&self, resource: ResourceId, by: u64) -> Result<(), CleanupError>;

    /// Makes the items visible to readers that this try has delivered.
    async fn publish_items(&self, resource: ResourceId, by: u64) -> Result<(), CleanupError>;

    /// Deletes the frontiers of a resource, which nobody has open. Returns the number of deleted objects.
    async fn delete_frontiers(&self, resource: ResourceId) -> Result<usize, CleanupError>;

    /// Deletes the remains of writes that were interrupted a while ago. Returns the number of deleted files.
    async fn sweep(&self, now: UnixMillis) -> Result<usize, CleanupError>;
}

/// Reason why remains could not be removed.
#[derive(Debug, thiserror::Error)]
pub enum CleanupError {
    /// The data root failed.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The items cannot be settled, delivered or deleted.
    #[error(transparent)]
    Items(#[from] SinkError),
    /// The frontier cannot say which items count.
    #[error(transparent)]
    Frontier(#[from] FrontierError),
    /// The items that wait changed while they were delivered.
    #[error("the owner of shard {shard} delivers its items itself; trying again later")]
    Delivered {
        /// Id of the shard.
        shard: ShardId,
    },
    /// The data root did not answer in time.
    #[error("the data root gave no answer in {} s", STEP_DEADLINE.as_secs())]
    Slow,
}

/// Cleanup of a data root.
pub struct DataRootCleanup {
    /// The data root.
    pub data: Arc<DataRoot>,
    /// Object store that frontiers are read from.
    pub objects: Arc<dyn ObjectStore>,
    /// Items at their sinks.
    pub items: Arc<dyn ItemStore>,
}

#[async_trait]
impl DataCleanup for DataRootCleanup {
    async fn delete_items(&self, resource: ResourceId) -> Result<(), CleanupError> {
        self.items.delete(resource).await?;
        self.data.delete_files(resource).await?;
        self.data.delete_archives(resource).await?;
        // If the data root were away, there would have seemed to be nothing to delete.
        Ok(self.data.check().await?)
    }

    /// The marks of a damaged frontier are lost, and so are those that its sink cannot read: then all whole
    /// lines stay.
    async fn settle_items(&self, resource: ResourceId, by: u64) -> Result<(), CleanupError> {
        let with_items = in_time(self.items.shards(resource)).await?;
        let with_frontier = in_time(self.data.frontier_shards(resource)).await?;
        let shards: BTreeSet<Shard> = with_items.into_iter().chain(with_frontier).collect();
        for shard in shards {
            match self.settle_shard(ShardId { resource, shard }, by).await {
                Err(
                    error @ (CleanupError::Frontier(
                        FrontierError::Damaged { .. } | FrontierError::Missing { .. },
                    )
                    | CleanupError::Items(SinkError::Permanent { .. })),
                ) => {
                    tracing::warn!(%error, "not all items count, or too many: what the frontier says is not known");
                }
                settled => settled?,
            }
        }
        // If the data root were away, there would have seemed to be nothing to cut.
        Ok(self.data.check().await?)
    }

    async fn publish_items(&self, resource: ResourceId, by: u64) -> Result<(), CleanupError> {
        in_time(self.items.publish_rest(resource, by)).await
    }

    async fn delete_frontiers(&self, resource: ResourceId) -> Result<usize, CleanupError> {
        Ok(self.data.delete_frontiers(resource).await?)
    }

    async fn sweep(&self, now: UnixMillis) -> Result<usize, CleanupError> {
        Ok(self.data.sweep(now).await?)
    }
}

impl DataRootCleanup {
    async fn settle_shard(&self, shard: ShardId, by: u64) -> Result<(), CleanupError> {
        let reader = FrontierReader::open(self.objects.clone(), shard).await?;
        let Some(reader) = reader else {
            return Ok(());
        };
        let settled = self.settle_from(&reader, shard, by).await;
        reader.close().await;
        settled
    }

    async fn settle_from(
        &self,
        reader: &FrontierReader,
        shard: ShardId,
        by: u64,
    ) -> Result<(), CleanupError> {
        for (sink, n) in in_time(reader.undelivered_elsewhere()).await? {
            tracing::warn!(%shard, %sink, n, "items are dropped that wait for another sink than the data root");
        }
        let marks = in_time(reader.marks()).await?;
        in_time(self.items.settle(shard, marks)).await?;
        let mut rest = without_removals(self.items.open_rest(shard, by));
        let mut waiting = in_time(reader.undelivered()).await?;
        let n = waiting.end - waiting.start;
        while !waiting.is_empty() {
            let end = waiting.end.min(waiting.start + BATCH);
            let items = in_time(reader.items(waiting.start..end)).await?;
            // An owner that was thought to be dead has delivered some of them.
            if items.len() as u64 != end - waiting.start {
                return Err(CleanupError::Delivered { shard });
            }
            while waiting.start < end {
                let n_left = (end - waiting.start) as usize;
                let left = &items[items.len() - n_left..];
                let written = in_time(rest.write(waiting.start, left)).await?;
                if !(1..=waiting.end - waiting.start).contains(&written.n_items) {
                    return Err(CleanupError::Delivered { shard });
                }
                waiting.start += written.n_items;
            }
        }
        if n > 0 {
            tracing::info!(%shard, n, "items that waited for their sink are delivered");
        }
        Ok(())
    }
}

/// Runs one step at the data root, with a deadline.
async fn in_time<T, E>(step: impl Future<Output = Result<T, E>>) -> Result<T, CleanupError>
where
    CleanupError: From<E>,
{
    match tokio::time::timeout(STEP_DEADLINE, step).await {
        Ok(done) => Ok(done?),
        Err(_elapsed) => Err(CleanupError::Slow),
    }
}

#[cfg(test)]
mod tests;
