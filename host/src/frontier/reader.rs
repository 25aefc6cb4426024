//! A frontier as others see it: read-only, beside its owner, taking nothing over.
//!
//! A reader sees what is durable, at most a second late.

use std::sync::Arc;

use object_store::ObjectStore;

use super::FrontierError;
use crate::model::crawl::Request;
use crate::model::frontier::{FrontierStats, SinkMark, UrlEntry, UrlFilter};
use crate::model::resource::ShardId;

/// A frontier, opened to look at.
pub struct FrontierReader {
    _shard: ShardId,
}

/// Some of the URLs asked for.
#[derive(Debug, Default)]
pub struct UrlPage {
    /// In the order of their hosts.
    pub entries: Vec<UrlEntry>,
    /// Where the next page begins: what [`FrontierReader::list`] takes. None: these were the last.
    pub next: Option<Vec<u8>>,
}

impl FrontierReader {
    /// Opens a frontier; none where there is none.
    pub async fn open(
        objects: Arc<dyn ObjectStore>,
        shard: ShardId,
    ) -> Result<Option<Self>, FrontierError> {
        let _ = objects;
        Ok(Some(Self { _shard: shard }))
    }

    /// Totals.
    pub async fn stats(&self) -> Result<FrontierStats, FrontierError> {
        Ok(FrontierStats::default())
    }

    /// URLs of the present run in one state, at most `max`, from where an earlier page ended.
    pub async fn list(
        &self,
        filter: UrlFilter,
        from: Option<Vec<u8>>,
        max: usize,
    ) -> Result<UrlPage, FrontierError> {
        let _ = (filter, from, max);
        Ok(UrlPage::default())
    }

    /// What is known of a request; none where it was never stored.
    pub async fn find(&self, request: &Request) -> Result<Option<UrlEntry>, FrontierError> {
        let _ = request;
        Ok(None)
    }

    /// How much of each file of items counts.
    pub async fn marks(&self) -> Result<Vec<SinkMark>, FrontierError> {
        Ok(Vec::new())
    }

    /// Lets go of it.
    pub async fn close(self) {}
}
