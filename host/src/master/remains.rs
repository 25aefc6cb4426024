//! What is left in the data root of what is deleted or was never complete: the leader removes it.
//!
//! Each step can be done again, and is fine where there is nothing to do.

use std::sync::Arc;

use async_trait::async_trait;
use object_store::ObjectStore;

use crate::data::{DataError, DataRoot};
use crate::frontier::FrontierError;
use crate::frontier::reader::FrontierReader;
use crate::model::crawl::UnixMillis;
use crate::model::frontier::SinkMark;
use crate::model::id::ResourceId;
use crate::model::resource::ShardId;
use crate::sink::{SinkError, lines};

/// Removes what nobody needs any more.
#[async_trait]
pub trait Remains: Send + Sync + 'static {
    /// Deletes the items of a resource.
    async fn delete_items(&self, resource: ResourceId) -> Result<(), RemainsError>;

    /// Makes the items of a resource readable without its frontiers, which are there still.
    async fn cut_items(&self, resource: ResourceId) -> Result<(), RemainsError>;

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
    async fn cut_items(&self, resource: ResourceId) -> Result<(), RemainsError> {
        let folder = self.data.items_folder(resource);
        for shard in lines::shards(folder.clone()).await? {
            let folder = folder.join(shard.to_string());
            let shard = ShardId { resource, shard };
            match self.marks(shard).await {
                Ok(Some(marks)) => lines::cut_to_marks(folder, marks).await?,
                Ok(None) => {}
                Err(
                    error @ (FrontierError::Damaged { .. }
                    | FrontierError::Format { .. }
                    | FrontierError::Missing { .. }),
                ) => {
                    tracing::warn!(%error, "items stay as they are: how much of them counts is not known");
                }
                Err(error) => return Err(error.into()),
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
    async fn marks(&self, shard: ShardId) -> Result<Option<Vec<SinkMark>>, FrontierError> {
        let reader = FrontierReader::open(self.objects.clone(), shard).await?;
        let Some(reader) = reader else {
            return Ok(None);
        };
        let marks = reader.marks().await;
        reader.close().await;
        marks.map(Some)
    }
}
