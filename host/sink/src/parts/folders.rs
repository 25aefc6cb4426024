//! Part objects of all resources below one path, as workers open them and masters read and remove them.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use object_store::path::Path as ObjectPath;
use object_store::{Error as ObjectError, ObjectStore};

use super::reader::PartReader;
use super::{PartSettings, Parts, failed};
use crate::items::{Extents, ItemStore, ReadItems};
use crate::{Delivery, OpenSinks, Sink, SinkError};
use crawler_model::frontier::SinkMark;
use crawler_model::id::{ResourceId, Run, Shard};
use crawler_model::resource::ShardId;

/// Number of objects that are listed and then deleted, before the next ones are listed.
const DELETED_AT_ONCE: usize = 1_000;

/// Part objects of all shards, below one path.
#[derive(Debug, Clone)]
pub struct PartFolders {
    objects: Arc<dyn ObjectStore>,
    items: ObjectPath,
    settings: PartSettings,
}

impl PartFolders {
    /// Creates sinks below `items`, with one folder for each resource, in it one for each shard, and in that one for
    /// each run.
    pub fn new(objects: Arc<dyn ObjectStore>, items: ObjectPath, settings: PartSettings) -> Self {
        Self {
            objects,
            items,
            settings,
        }
    }

    fn folder(&self, resource: ResourceId) -> ObjectPath {
        self.items.clone().join(resource.to_string())
    }

    fn parts(&self, shard: ShardId) -> Parts {
        Parts {
            objects: self.objects.clone(),
            folder: self.folder(shard.resource).join(shard.shard.to_string()),
            settings: self.settings,
        }
    }

    /// Returns the numbers that name folders in this one, in order.
    async fn numbers(&self, folder: &ObjectPath) -> Result<Vec<u64>, SinkError> {
        let listed = self.objects.list_with_delimiter(Some(folder)).await;
        let listed = listed.map_err(|e| failed("list", folder, e))?;
        let names = listed.common_prefixes.iter();
        let numbers = names.filter_map(|prefix| prefix.filename()?.parse().ok());
        let mut numbers: Vec<u64> = numbers.collect();
        numbers.sort_unstable();
        Ok(numbers)
    }
}

#[async_trait]
impl OpenSinks for PartFolders {
    async fn open(&self, delivery: &Delivery) -> Result<Box<dyn Sink>, SinkError> {
        Ok(Box::new(self.parts(delivery.shard)))
    }
}

#[async_trait]
impl ItemStore for PartFolders {
    fn is_whole(&self) -> bool {
        true
    }

    fn reader(&self, resource: ResourceId, run: Run) -> Box<dyn ReadItems> {
        let folder = self.folder(resource);
        Box::new(PartReader::new(self.objects.clone(), folder, run))
    }

    async fn shards(&self, resource: ResourceId) -> Result<Vec<Shard>, SinkError> {
        let numbers = self.numbers(&self.folder(resource)).await?;
        let shards = numbers.into_iter().filter_map(|n| n.try_into().ok());
        Ok(shards.map(Shard).collect())
    }

    /// Returns the latest run with a part: all parts count.
    async fn newest_run(
        &self,
        resource: ResourceId,
        extents: &Arc<Extents>,
    ) -> Result<Option<Run>, SinkError> {
        let mut newest = None;
        for shard in extents.keys() {
            let folder = self.folder(resource).join(shard.to_string());
            newest = newest.max(self.numbers(&folder).await?.pop().map(Run));
        }
        Ok(newest)
    }

    async fn settle(&self, _shard: ShardId, _marks: Vec<SinkMark>) -> Result<(), SinkError> {
        Ok(())
    }

    /// Returns the sink of the shard itself: a part that several tries deliver is kept once.
    fn open_rest(&self, shard: ShardId, _by: u64) -> Box<dyn Sink> {
        Box::new(self.parts(shard))
    }

    async fn publish_rest(&self, _resource: ResourceId, _by: u64) -> Result<(), SinkError> {
        Ok(())
    }

    async fn delete(&self, resource: ResourceId) -> Result<(), SinkError> {
        let folder = self.folder(resource);
        loop {
            let listed = self.objects.list(Some(&folder)).take(DELETED_AT_ONCE);
            let listed: Vec<_> = listed
                .try_collect()
                .await
                .map_err(|e| failed("list", &folder, e))?;
            if listed.is_empty() {
                return Ok(());
            }
            let paths = stream::iter(listed.into_iter().map(|object| Ok(object.location)));
            let mut deleted = self.objects.delete_stream(paths.boxed());
            while let Some(result) = deleted.next().await {
                match result {
                    Ok(_) | Err(ObjectError::NotFound { .. }) => {}
                    Err(error) => return Err(failed("delete", &folder, error)),
                }
            }
        }
    }
}
