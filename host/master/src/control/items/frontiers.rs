//! Extents of a resource's items, by its frontiers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{FOLLOW_PAUSE, LIST_PAUSE, Sources};
use crate::lists::records;
use crate::placement::Candidates;
use crate::{ControlError, phase};
use crawler_data::DataRoot;
use crawler_frontier::FrontierError;
use crawler_frontier::reader::pool::{PooledReader, Readers};
use crawler_model::id::{ResourceId, ResourceName, Run, Shard};
use crawler_model::resource::{Deleting, Phase, Resource, ShardId, ShardRecord};
use crawler_sink::items::{Extent, Extents, ItemStore};
use crawler_store::catalog::{Catalog, Versioned};

/// Frontiers of one resource, and the records of its shards.
pub(super) struct Frontiers {
    pub(super) catalog: Catalog,
    pub(super) data: Arc<DataRoot>,
    pub(super) items: Arc<dyn ItemStore>,
    /// Pool of readers, whose number is bounded over all calls together.
    pub(super) open: Arc<Readers>,
    pub(super) id: ResourceId,
    /// Name of the resource; `None` if it was asked for by its id.
    pub(super) name: Option<ResourceName>,
    /// Readers that stay open between two looks, shared with other callers that follow.
    pub(super) readers: BTreeMap<Shard, Arc<PooledReader>>,
}

#[async_trait]
impl Sources for Frontiers {
    fn pause(&self) -> Duration {
        match self.items.is_whole() {
            true => LIST_PAUSE,
            false => FOLLOW_PAUSE,
        }
    }

    async fn is_over(&mut self, run: Run) -> Result<bool, ControlError> {
        let Some(name) = &self.name else {
            return Ok(true);
        };
        let keys = self.catalog.keys();
        let Some(resource) = self.catalog.read::<Resource>(&keys.resource(name)).await? else {
            return Ok(true);
        };
        if resource.value.id != self.id {
            return Ok(true);
        }
        let shards: Vec<(String, Versioned<ShardRecord>)> =
            records(&self.catalog, &keys.shards_of(self.id)).await?;
        let present: Vec<&ShardRecord> = shards.iter().map(|(_, shard)| &shard.value).collect();
        let phase = phase::phase(&resource.value, &present, &Candidates::default());
        if matches!(phase, Phase::Finished | Phase::Failed(_)) {
            return Ok(true);
        }
        if resource.value.run == run {
            return Ok(false);
        }
        // Another run was requested. Items of this one may still be on their way.
        for (key, shard) in &shards {
            if let Some(id) = keys.parse_shard(key)
                && shard.value.created
                // A shard of an earlier run, which had more of them, has nothing left.
                && resource.value.has_shard(id)
                && !self.is_done_with(id, run).await
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn extents(&mut self, last: bool) -> Result<Arc<Extents>, ControlError> {
        if last {
            self.close().await;
        }
        Ok(Arc::new(self.ask(last).await?))
    }
}

impl Frontiers {
    async fn ask(&mut self, last: bool) -> Result<Extents, ControlError> {
        let keys = self.catalog.keys();
        let shards: Vec<(String, Versioned<ShardRecord>)> =
            records(&self.catalog, &keys.shards_of(self.id)).await?;
        let mut extents = Extents::new();
        for (key, shard) in &shards {
            if let Some(id) = self.catalog.keys().parse_shard(key) {
                let extent = match shard.value.created {
                    true => self.extent(id, last).await?,
                    false => Some(Extent::Marks(Vec::new())),
                };
                let extent = extent.ok_or(FrontierError::Missing { shard: id })?;
                extents.insert(id.shard, extent);
            }
        }
        if shards.is_empty() {
            extents = self.extents_of_deleted(last).await?;
        }
        Ok(extents)
    }

    async fn extents_of_deleted(&mut self, last: bool) -> Result<Extents, ControlError> {
        let is_cut = self.deleting().await?.is_some_and(|d| d.items_cut);
        let mut extents = Extents::new();
        let shards = self.items.shards(self.id).await?;
        self.data.check().await?;
        for shard in shards {
            let id = ShardId {
                resource: self.id,
                shard,
            };
            let extent = match is_cut {
                true => None,
                false => match self.extent(id, last).await {
                    Ok(extent) => extent,
                    // The frontier may have been removed in the meantime.
                    Err(_) if self.deleting().await?.is_none_or(|d| d.items_cut) => None,
                    Err(error) => return Err(error),
                },
            };
            extents.insert(shard, extent.unwrap_or(Extent::Whole));
        }
        Ok(extents)
    }

    /// Returns the record of a deleted resource. Once its items are cut, the frontier is being removed and can
    /// no longer be asked.
    async fn deleting(&self) -> Result<Option<Deleting>, ControlError> {
        let key = self.catalog.keys().deleting(self.id);
        let deleting = self.catalog.read::<Deleting>(&key).await?;
        Ok(deleting.map(|deleting| deleting.value))
    }

    /// Returns the extent according to a frontier, or `None` if there is no frontier. The `last` call uses a
    /// reader that was opened for it.
    async fn extent(&mut self, id: ShardId, last: bool) -> Result<Option<Extent>, ControlError> {
        if self.items.is_whole() {
            return Ok(Some(Extent::Whole));
        }
        if last {
            let Some(reader) = self.open.open(id).await? else {
                return Ok(None);
            };
            let marks = reader.marks().await;
            reader.close().await;
            return Ok(Some(Extent::Marks(marks?)));
        }
        if let Some(reader) = self.readers.remove(&id.shard) {
            match reader.marks().await {
                Ok(marks) => {
                    self.readers.insert(id.shard, reader);
                    return Ok(Some(Extent::Marks(marks)));
                }
                Err(error) => {
                    tracing::debug!(shard = %id, %error, "opening a frontier anew to look at it");
                    self.open.stop_sharing(&reader);
                    close(reader).await;
                }
            }
        }
        let Some(reader) = self.open.follow(id).await? else {
            return Ok(None);
        };
        let marks = match reader.marks().await {
            Ok(marks) => marks,
            Err(error) => {
                self.open.stop_sharing(&reader);
                return Err(error.into());
            }
        };
        match reader.may_be_kept() {
            true => drop(self.readers.insert(id.shard, reader)),
            false => close(reader).await,
        }
        Ok(Some(Extent::Marks(marks)))
    }

    /// True if a frontier is known to be done with a run. A faulty frontier shows when it is asked for its marks.
    async fn is_done_with(&self, id: ShardId, run: Run) -> bool {
        if let Some(reader) = self.readers.get(&id.shard) {
            return reader.is_done_with(run).await.unwrap_or(false);
        }
        // Not all readers can be kept, so there may be none of this shard.
        let Ok(Some(reader)) = self.open.follow(id).await else {
            return false;
        };
        let is_done = reader.is_done_with(run).await;
        close(reader).await;
        is_done.unwrap_or(false)
    }

    async fn close(&mut self) {
        for (_, reader) in std::mem::take(&mut self.readers) {
            close(reader).await;
        }
    }
}

/// Closes a reader, unless other callers still use it.
async fn close(reader: Arc<PooledReader>) {
    if let Some(reader) = Arc::into_inner(reader) {
        reader.close().await;
    }
}
