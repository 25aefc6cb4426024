//! What is left in the data root of what is deleted or was never complete: the leader removes it.
//!
//! Each step can be done again, and is fine where there is nothing to do.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use object_store::ObjectStore;

use crate::data::{DataError, DataRoot};
use crate::frontier::FrontierError;
use crate::frontier::reader::FrontierReader;
use crate::model::crawl::UnixMillis;
use crate::model::id::{ResourceId, Shard};
use crate::model::resource::ShardId;
use crate::sink::lines::{self, LineFiles, LineSettings};
use crate::sink::{Sink as _, SinkError};

/// Items that are delivered at a time.
const BATCH: usize = 2_000;

/// Removes what nobody needs any more.
#[async_trait]
pub trait Remains: Send + Sync + 'static {
    /// Deletes the items of a resource.
    async fn delete_items(&self, resource: ResourceId) -> Result<(), RemainsError>;

    /// Makes the items of a resource readable without its frontiers, which are there still: those that
    /// were delivered, and those that wait for their sink.
    async fn settle_items(&self, resource: ResourceId) -> Result<(), RemainsError>;

    /// Deletes the frontiers of a resource that nobody has open; how many objects went.
    async fn delete_frontiers(&self, resource: ResourceId) -> Result<usize, RemainsError>;

    /// Deletes what writes left that were cut off a while ago; how many files went.
    async fn sweep(&self, now: UnixMillis) -> Result<usize, RemainsError>;
}

/// Why something is there still.
#[derive(Debug, thiserror::Error)]
pub enum RemainsError {
    /// The data root says no.
    #[error(transparent)]
    Data(#[from] DataError),
    /// Line files cannot be cut.
    #[error(transparent)]
    Items(#[from] SinkError),
    /// How much of the line files counts cannot be read.
    #[error(transparent)]
    Frontier(#[from] FrontierError),
}

/// The remains in a data root.
pub struct DataRemains {
    /// Where they lie.
    pub data: Arc<DataRoot>,
    /// What frontiers are read through.
    pub objects: Arc<dyn ObjectStore>,
}

#[async_trait]
impl Remains for DataRemains {
    async fn delete_items(&self, resource: ResourceId) -> Result<(), RemainsError> {
        Ok(self.data.delete_items(resource).await?)
    }

    /// What a frontier that is damaged would have said is lost: then all whole lines stay.
    async fn settle_items(&self, resource: ResourceId) -> Result<(), RemainsError> {
        let with_items = lines::shards(self.data.items_folder(resource)).await?;
        let with_frontier = self.data.frontier_shards(resource).await?;
        let shards: BTreeSet<Shard> = with_items.into_iter().chain(with_frontier).collect();
        for shard in shards {
            match self.settle_shard(ShardId { resource, shard }).await {
                Err(RemainsError::Frontier(
                    error @ (FrontierError::Damaged { .. }
                    | FrontierError::Format { .. }
                    | FrontierError::Missing { .. }),
                )) => {
                    tracing::warn!(%error, "items stay as they are: how much of them counts is not known");
                }
                settled => settled?,
            }
        }
        // Were the data root away, there would have seemed to be nothing to cut.
        Ok(self.data.check().await?)
    }

    async fn delete_frontiers(&self, resource: ResourceId) -> Result<usize, RemainsError> {
        Ok(self.data.delete_frontiers(resource).await?)
    }

    async fn sweep(&self, now: UnixMillis) -> Result<usize, RemainsError> {
        Ok(self.data.sweep(now).await?)
    }
}

impl DataRemains {
    async fn settle_shard(&self, shard: ShardId) -> Result<(), RemainsError> {
        let reader = FrontierReader::open(self.objects.clone(), shard).await?;
        let Some(reader) = reader else {
            return Ok(());
        };
        let settled = self.settle_from(&reader, shard).await;
        reader.close().await;
        settled
    }

    /// What was not delivered goes into files of their own. They have no mark: doing it again begins
    /// by removing them.
    async fn settle_from(
        &self,
        reader: &FrontierReader,
        shard: ShardId,
    ) -> Result<(), RemainsError> {
        let folder = self.data.items_folder(shard.resource);
        let folder = folder.join(shard.shard.to_string());
        let free = lines::cut_to_marks(folder.clone(), reader.marks().await?).await?;
        let mut rest = LineFiles::open(folder, free, LineSettings::default());
        let (mut n, mut from) = (0, None);
        loop {
            let (items, next) = reader.undelivered(from, BATCH).await?;
            rest.write(&items).await?;
            n += items.len();
            from = next;
            if from.is_none() {
                break;
            }
        }
        if n > 0 {
            tracing::info!(%shard, n, "items that waited for their sink were delivered");
        }
        Ok(())
    }
}
