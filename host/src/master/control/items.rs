//! Items of a resource: what the line files hold, as far as the frontiers say that it counts.
//!
//! Frontiers are looked at beside their owners. While somebody follows, they stay open and are asked
//! again after a pause; one that could not be read is opened anew. What is known of a run when it is
//! over is asked of frontiers that are opened then: one that stayed open may be a moment behind.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};

use super::*;
use crate::frontier::FrontierError;
use crate::frontier::reader::pool::{PooledReader, Readers};
use crate::model::crawl::ItemRecord;
use crate::model::id::{ResourceId, Run, Shard};
use crate::model::resource::{Deleting, Phase, ShardId, ShardRecord};
use crate::sink::lines::{self, Extent, Extents, LineReader};

mod place;

pub use place::{ItemPlace, PlacedItem};

/// Items read from the files at once.
const ITEMS_AT_ONCE: usize = 500;
/// How often the frontiers are asked while somebody follows.
const FOLLOW_PAUSE: Duration = Duration::from_millis(200);

/// Tells how far the line files of a resource count, and whether more is to come.
#[async_trait]
trait Sources: Send {
    /// Whether no item of this run will be written after this.
    async fn is_over(&mut self, run: Run) -> Result<bool, ControlError>;

    /// How far the files of each shard count. Not a moment behind where it is the `last` look.
    async fn extents(&mut self, last: bool) -> Result<Arc<Extents>, ControlError>;
}

impl Control {
    /// The items of a resource's present run; by id, those of one that is deleted. With `follow`
    /// those to come, until the run is over. A reader that was cut off names the place `after` which
    /// it goes on: in the run that it was reading, whatever has become of the resource.
    pub async fn items(
        &self,
        name: &str,
        follow: bool,
        after: Option<ItemPlace>,
    ) -> Result<BoxStream<'static, Result<PlacedItem, ControlError>>, ControlError> {
        let present = self.present_by_text(name).await?;
        let (id, run, mut frontiers) = match (present, after) {
            (Some(resource), after) if after.is_none_or(|place| place.resource == resource.id) => {
                let run = after.map_or(resource.run, |place| place.run);
                let frontiers = self.frontiers(resource.id, Some(resource.spec.name));
                (resource.id, run, frontiers)
            }
            (_, Some(place)) => (
                place.resource,
                place.run,
                self.frontiers(place.resource, None),
            ),
            (_, None) => self.deleted(name).await?,
        };
        let reader = LineReader::new(self.parts.data.items_folder(id), run);
        // What is wrong with a frontier is the answer, not the end of one.
        let first = match follow {
            true => None,
            false => Some(frontiers.extents(true).await?),
        };
        let items = read(reader, run, Box::new(frontiers), first);
        let start = ItemPlace {
            resource: id,
            run,
            n_before: after.map_or(0, |place| place.n_before),
        };
        Ok(placed(items, start))
    }

    async fn present_by_text(&self, name: &str) -> Result<Option<Resource>, ControlError> {
        let Ok(name) = name.parse() else {
            return Ok(None);
        };
        let present = self.present(&name).await?;
        Ok(present.map(|resource| resource.value))
    }

    /// The newest run of a resource that has an id, and maybe no name any more.
    async fn deleted(&self, text: &str) -> Result<(ResourceId, Run, Frontiers), ControlError> {
        let no_resource = || ControlError::NoResource {
            name: text.to_owned(),
        };
        let id = ResourceId(text.parse().map_err(|_| no_resource())?);
        let mut frontiers = self.frontiers(id, None);
        let extents = frontiers.extents(true).await?;
        let newest = lines::newest_run(self.parts.data.items_folder(id), &extents).await?;
        let run = newest.ok_or_else(no_resource)?;
        Ok((id, run, frontiers))
    }

    fn frontiers(&self, id: ResourceId, name: Option<ResourceName>) -> Frontiers {
        Frontiers {
            catalog: self.parts.catalog.clone(),
            data: self.parts.data.clone(),
            open: self.readers.clone(),
            id,
            name,
            readers: BTreeMap::new(),
        }
    }
}

/// The items behind a place, each with the place behind it.
fn placed(
    items: BoxStream<'static, Result<ItemRecord, ControlError>>,
    start: ItemPlace,
) -> BoxStream<'static, Result<PlacedItem, ControlError>> {
    let mut n_before = 0;
    // Errors are not items: one among those that are passed over is told all the same.
    let items = items.map_ok(move |item| {
        n_before += 1;
        let next = ItemPlace { n_before, ..start };
        PlacedItem { item, next }
    });
    items
        .try_skip_while(move |item| {
            futures::future::ready(Ok(item.next.n_before <= start.n_before))
        })
        .boxed()
}

/// Where a stream of items stands.
struct Reading {
    reader: LineReader,
    run: Run,
    sources: Box<dyn Sources>,
    look: Look,
}

/// What is to be done next.
enum Look {
    /// Ask the sources.
    Ask,
    /// Read what counted when they were asked; whether that was the last time.
    Read(Arc<Extents>, bool),
}

/// Items as far as `extents` go; without, as they come until the run is over.
fn read(
    reader: LineReader,
    run: Run,
    sources: Box<dyn Sources>,
    extents: Option<Arc<Extents>>,
) -> BoxStream<'static, Result<ItemRecord, ControlError>> {
    let reading = Reading {
        reader,
        run,
        sources,
        look: extents.map_or(Look::Ask, |extents| Look::Read(extents, true)),
    };
    stream::try_unfold(reading, |mut reading| async move {
        let batch = reading.next().await?;
        Ok::<_, ControlError>(batch.map(|batch| (batch, reading)))
    })
    .map_ok(|items| stream::iter(items.into_iter().map(Ok)))
    .try_flatten()
    .boxed()
}

impl Reading {
    /// The next items; none at the end.
    async fn next(&mut self) -> Result<Option<Vec<ItemRecord>>, ControlError> {
        loop {
            let (extents, is_last) = match &self.look {
                Look::Ask => {
                    // Looked at before the frontiers: what was written before the end is read below.
                    let is_last = self.sources.is_over(self.run).await?;
                    (self.sources.extents(is_last).await?, is_last)
                }
                Look::Read(extents, is_last) => (extents.clone(), *is_last),
            };
            let lines = self.reader.read(&extents, ITEMS_AT_ONCE).await?;
            let (is_end, items) = (lines.is_end, lines.items);
            self.look = if is_end && !is_last {
                Look::Ask
            } else {
                Look::Read(extents, is_last)
            };
            if !items.is_empty() {
                return Ok(Some(items));
            }
            if is_end && is_last {
                return Ok(None);
            }
            if is_end {
                tokio::time::sleep(FOLLOW_PAUSE).await;
            }
        }
    }
}

/// The frontiers of one resource, and the records that say which there are.
struct Frontiers {
    catalog: Catalog,
    data: Arc<DataRoot>,
    /// Opens readers, as many as all calls together may have.
    open: Arc<Readers>,
    id: ResourceId,
    /// None: it was asked for by its id.
    name: Option<ResourceName>,
    /// Readers that stay open between two looks, shared with others who follow.
    readers: BTreeMap<Shard, Arc<PooledReader>>,
}

#[async_trait]
impl Sources for Frontiers {
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
        // Another run was asked for. Items of this one may still be on their way.
        for (key, shard) in &shards {
            if let Some(id) = keys.parse_shard(key)
                && shard.value.created
                // One that an earlier run had has nothing left.
                && resource.value.has_shard(id)
                && !self.is_done_with(id.shard, run).await
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
        let shards = lines::shards(self.data.items_folder(self.id)).await?;
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
                    // It may have been taken apart under our eyes.
                    Err(_) if self.deleting().await?.is_none_or(|d| d.items_cut) => None,
                    Err(error) => return Err(error),
                },
            };
            extents.insert(shard, extent.unwrap_or(Extent::Whole));
        }
        Ok(extents)
    }

    /// What is left of a deleted resource. Once its items are cut, the frontier is taken apart and
    /// says nothing any more.
    async fn deleting(&self) -> Result<Option<Deleting>, ControlError> {
        let key = self.catalog.keys().deleting(self.id);
        let deleting = self.catalog.read::<Deleting>(&key).await?;
        Ok(deleting.map(|deleting| deleting.value))
    }

    /// What a frontier says; none where there is none. The `last` look is that of a reader that was
    /// opened for it.
    async fn extent(&mut self, id: ShardId, last: bool) -> Result<Option<Extent>, ControlError> {
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
                    self.open.give_up(&reader);
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
                self.open.give_up(&reader);
                return Err(error.into());
            }
        };
        match reader.may_be_kept() {
            true => drop(self.readers.insert(id.shard, reader)),
            false => close(reader).await,
        }
        Ok(Some(Extent::Marks(marks)))
    }

    /// As far as a frontier that is open can tell. What is wrong with one shows when it is asked for
    /// its marks.
    async fn is_done_with(&self, shard: Shard, run: Run) -> bool {
        match self.readers.get(&shard) {
            Some(reader) => reader.is_done_with(run).await.unwrap_or(false),
            None => false,
        }
    }

    async fn close(&mut self) {
        for (_, reader) in std::mem::take(&mut self.readers) {
            close(reader).await;
        }
    }
}

/// Waits until a reader looks no more, unless others follow with it.
async fn close(reader: Arc<PooledReader>) {
    if let Some(reader) = Arc::into_inner(reader) {
        reader.close().await;
    }
}

#[cfg(test)]
mod tests;
