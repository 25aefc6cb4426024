//! The call that reads the changes of a resource's items, from its frontier.

use super::Control;
use crate::ControlError;
use crawler_frontier::reader::ChangePage;
use crawler_model::id::{ResourceName, Run, Shard};
use crawler_model::resource::ShardId;

/// Size in bytes of the changes of one page, above which no further one is added.
const PAGE_BYTES: usize = 1 << 20;

/// Changes of one run that a caller wants.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChangeQuery {
    /// Run to read. If `None`, the present run.
    pub run: Option<Run>,
    /// Number of the first change.
    pub from: u64,
    /// Largest number of changes.
    pub max: usize,
}

impl Control {
    /// Returns a page of the changes of a run.
    pub async fn changes(
        &self,
        name: &ResourceName,
        query: ChangeQuery,
    ) -> Result<ChangePage, ControlError> {
        let resource = self.existing(name).await?.value;
        let run = query.run.unwrap_or(resource.run);
        if run > resource.run {
            return Err(ControlError::NoRun {
                name: name.to_string(),
                run,
                newest: resource.run,
            });
        }
        // Items are compared in resources with one shard only.
        let shard = ShardId {
            resource: resource.id,
            shard: Shard(0),
        };
        let reader = self.frontier(shard).await?;
        let reader = reader.ok_or_else(|| ControlError::NoFrontier { name: name.clone() })?;
        let page = Box::pin(reader.changes(run, query.from, query.max, PAGE_BYTES)).await;
        reader.close().await;
        page?.ok_or_else(|| ControlError::NotCompared {
            name: name.clone(),
            run,
            is_awaited: run == resource.run && resource.spec.crawl.changes() > 0,
        })
    }
}
