//! Calls that read the items of a resource: those that count, according to its frontiers.
//!
//! Frontiers are read beside their owners. While a caller follows, readers stay open and are asked again after
//! a pause; a reader that fails is opened anew. The final extent of a finished run is read from newly opened
//! readers: one that stayed open may be a moment behind.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};

use super::Control;
use crate::ControlError;
use crawler_model::crawl::ItemRecord;
use crawler_model::id::{ResourceId, ResourceName, Run, Shard};
use crawler_model::resource::Resource;
use crawler_model::settings::SinkName;
use crawler_sink::items::{Extents, ReadItems};
use frontiers::Frontiers;

mod frontiers;
mod position;
mod query;

pub use position::{ItemPosition, ItemsBefore, PositionedItem};
pub use query::ItemQuery;

/// Number of items read at once.
const ITEMS_AT_ONCE: usize = 500;
/// Length in bytes to which an error shows a kind that does not exist.
const KIND_SHOWN: usize = 80;
/// Pause between two questions to the frontiers while a caller follows.
const FOLLOW_PAUSE: Duration = Duration::from_millis(200);
/// Pause between two lists of items, where no frontier has to be asked: each list is a request that costs money.
const LIST_PAUSE: Duration = Duration::from_secs(2);

/// Source of the extents of a resource's items.
#[async_trait]
trait Sources: Send {
    /// Returns the pause between two looks for more items.
    fn pause(&self) -> Duration {
        FOLLOW_PAUSE
    }

    /// True if no item of this run will be written from now on.
    async fn is_over(&mut self, run: Run) -> Result<bool, ControlError>;

    /// Returns the extent of each shard's items. If `last` is set, they are not even a moment behind.
    async fn extents(&mut self, last: bool) -> Result<Arc<Extents>, ControlError>;
}

impl Control {
    /// Returns items of a resource: those of its present run, unless the query names another; if an id is given, those
    /// of a deleted resource. With `follow`, further items come until the run is over.
    pub async fn items(
        &self,
        name: &str,
        query: ItemQuery,
    ) -> Result<BoxStream<'static, Result<PositionedItem, ControlError>>, ControlError> {
        let present = self.present_by_text(name).await?;
        let after = query.after.as_ref();
        let (id, run, mut frontiers) = match (present, after) {
            (Some(resource), after)
                if after.is_none_or(|position| position.resource == resource.id) =>
            {
                self.check_lines(&resource).await?;
                let run = query.run(name, resource.run)?;
                if run == resource.run {
                    self.check_kind(&query, &resource).await?;
                }
                let frontiers = self.frontiers(resource.id, Some(resource.spec.name));
                (resource.id, run, frontiers)
            }
            (_, Some(position)) => {
                let run = query.run(name, position.run)?;
                (
                    position.resource,
                    run,
                    self.frontiers(position.resource, None),
                )
            }
            (_, None) => {
                let (id, newest, frontiers) = self.deleted(name).await?;
                (id, query.run(name, newest)?, frontiers)
            }
        };
        let reader = self.parts.items.reader(id, run);
        // A faulty frontier is reported as the answer, not at the end of a partial one.
        let first = match query.follow {
            true => None,
            false => Some(frontiers.extents(true).await?),
        };
        let items = read(reader, run, Box::new(frontiers), first);
        let start = ItemPosition {
            resource: id,
            run,
            before: after.map_or_else(ItemsBefore::default, |position| position.before.clone()),
        };
        Ok(placed(items, start, query))
    }

    /// Refuses a resource whose items all go to other sinks. Those that it put into the data root before can be read.
    async fn check_lines(&self, resource: &Resource) -> Result<(), ControlError> {
        let sinks = resource.spec.crawl.sink_names();
        if sinks.contains(&SinkName::lines())
            || !self.parts.items.shards(resource.id).await?.is_empty()
        {
            return Ok(());
        }
        Err(ControlError::Invalid {
            field: "name",
            why: format!(
                "the items of resource {} go to sink {sinks}, and not to the data root; read them there, or add lines to its setting sink",
                resource.spec.name
            ),
        })
    }

    /// Refuses a kind that no version of the plugin has, unless the present run has such items: they may be of a
    /// version that was replaced within the run, and deleted. The items of earlier runs may be of another plugin.
    async fn check_kind(&self, query: &ItemQuery, resource: &Resource) -> Result<(), ControlError> {
        let Some(kind) = &query.kind else {
            return Ok(());
        };
        let plugin = &resource.spec.plugin.name;
        let versions = self.plugin_versions(plugin).await?;
        let schemas = versions
            .iter()
            .flat_map(|plugin| &plugin.description.schemas);
        let kinds: BTreeSet<&str> = schemas.map(|schema| &*schema.name).collect();
        if kinds.contains(kind.as_str()) || versions.is_empty() {
            return Ok(());
        }
        // Statistics answer at once, however many items there are to be read.
        let has_items = match Box::pin(self.statistics(&resource.spec.name)).await {
            Ok(run) => run.statistics.may_have_kind(kind),
            Err(ControlError::NoFrontier { .. }) => false,
            Err(error) => return Err(error),
        };
        if has_items {
            return Ok(());
        }
        Err(ControlError::NoKind {
            kind: kind[..kind.floor_char_boundary(KIND_SHOWN)].to_owned(),
            plugin: plugin.clone(),
            kinds: kinds.into_iter().map(str::to_owned).collect(),
        })
    }

    /// Returns the resource that has this name at present. A text that is no name is none.
    pub(super) async fn present_by_text(
        &self,
        name: &str,
    ) -> Result<Option<Resource>, ControlError> {
        let Ok(name) = name.parse() else {
            return Ok(None);
        };
        let present = self.present(&name).await?;
        Ok(present.map(|resource| resource.value))
    }

    /// Returns the newest run of a resource that is given by its id and may no longer have a name.
    async fn deleted(&self, text: &str) -> Result<(ResourceId, Run, Frontiers), ControlError> {
        let no_resource = || ControlError::NoResource {
            name: text.to_owned(),
        };
        let id = ResourceId(text.parse().map_err(|_| no_resource())?);
        let mut frontiers = self.frontiers(id, None);
        let extents = frontiers.extents(true).await?;
        let newest = self.parts.items.newest_run(id, &extents).await?;
        let run = newest.ok_or_else(no_resource)?;
        Ok((id, run, frontiers))
    }

    fn frontiers(&self, id: ResourceId, name: Option<ResourceName>) -> Frontiers {
        Frontiers {
            catalog: self.parts.catalog.clone(),
            data: self.parts.data.clone(),
            items: self.parts.items.clone(),
            open: self.readers.clone(),
            id,
            name,
            readers: BTreeMap::new(),
        }
    }
}

/// Items of a run with their shards, in order within a shard.
type ItemsOfShards = BoxStream<'static, Result<(Shard, ItemRecord), ControlError>>;

/// Returns the items after a position that a query asks for, each with the position after it.
fn placed(
    items: ItemsOfShards,
    mut position: ItemPosition,
    query: ItemQuery,
) -> BoxStream<'static, Result<PositionedItem, ControlError>> {
    let limit = query
        .limit
        .map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    let mut n_read: BTreeMap<Shard, u64> = BTreeMap::new();
    // Errors are not items: an error among the skipped ones is still reported.
    let items = items.try_filter_map(move |(shard, item)| {
        *n_read.entry(shard).or_default() += 1;
        let is_new = position.before.add(shard, &n_read);
        let is_wanted = is_new && query.wants(&item);
        let placed = is_wanted.then(|| PositionedItem {
            item,
            next: position.clone(),
        });
        futures::future::ready(Ok(placed))
    });
    match limit {
        None => items.boxed(),
        Some(limit) => items.take(limit).boxed(),
    }
}

/// State of a stream of items.
struct Reading {
    reader: Box<dyn ReadItems>,
    run: Run,
    sources: Box<dyn Sources>,
    next_step: NextStep,
}

/// Next step of a stream of items.
enum NextStep {
    /// The sources are asked.
    Ask,
    /// The items within these extents are read; true if these were the final extents.
    Read(Arc<Extents>, bool),
}

/// Returns the items within `extents`. If `None`, returns items as they come until the run is over.
fn read(
    reader: Box<dyn ReadItems>,
    run: Run,
    sources: Box<dyn Sources>,
    extents: Option<Arc<Extents>>,
) -> ItemsOfShards {
    let reading = Reading {
        reader,
        run,
        sources,
        next_step: extents.map_or(NextStep::Ask, |extents| NextStep::Read(extents, true)),
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
    /// Returns the next items, or `None` at the end.
    async fn next(&mut self) -> Result<Option<Vec<(Shard, ItemRecord)>>, ControlError> {
        loop {
            let (extents, is_last) = match &self.next_step {
                NextStep::Ask => {
                    // This is checked before the frontiers are asked, so that items written before the end are
                    // read below.
                    let is_last = self.sources.is_over(self.run).await?;
                    (self.sources.extents(is_last).await?, is_last)
                }
                NextStep::Read(extents, is_last) => (extents.clone(), *is_last),
            };
            let batch = self.reader.read(&extents, ITEMS_AT_ONCE).await?;
            let (is_end, items) = (batch.is_end, batch.items);
            self.next_step = if is_end && !is_last {
                NextStep::Ask
            } else {
                NextStep::Read(extents, is_last)
            };
            if !items.is_empty() {
                return Ok(Some(items));
            }
            if is_end && is_last {
                return Ok(None);
            }
            if is_end {
                tokio::time::sleep(self.sources.pause()).await;
            }
        }
    }
}

#[cfg(test)]
mod tests;
