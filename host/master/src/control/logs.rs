//! Logs of resources: from the workers that crawl its shards, and from the frontiers of the others.
//!
//! A worker that crawls a shard has the whole log of it in memory. A worker that crawled it before may still have a
//! part of that log, which is left out. The log of a shard that nobody crawls is in its frontier, from whatever process;
//! the worker that had the shard last may know lines that came when the frontier was not open.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use futures::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};

use super::Control;
use super::reads::running_owner;
use crate::{ControlError, lists};
use crawler_frontier::reader::pool::Readers;
use crawler_model::id::{ResourceName, Shard};
use crawler_model::node::Role;
use crawler_model::resource::ShardId;
use crawler_model::status::LogLine;

/// Lines of logs, or an error after which no more come from its source.
type LogLines = BoxStream<'static, Result<LogLine, ControlError>>;

/// Number of the last line that was read of each frontier.
type LastRead = Arc<Mutex<BTreeMap<Shard, u64>>>;

impl Control {
    /// Returns the log of a resource: first that of the shards that nobody crawls.
    pub async fn logs(&self, name: &ResourceName, follow: bool) -> Result<LogLines, ControlError> {
        let resource = self.existing(name).await?.value;
        let workers = lists::nodes(&self.parts.catalog, Role::Worker).await?;
        // A worker answers for all shards that it has.
        let mut addresses = BTreeSet::new();
        // Addresses of the owners of the shards that are crawled.
        let mut crawled_at = BTreeMap::new();
        let mut at_rest = Vec::new();
        for (id, shard) in self.shards(&resource).await? {
            let owner = shard.value.owner.as_ref();
            let node = owner.and_then(|owner| workers.get(&owner.node));
            addresses.extend(node.map(|node| node.address.clone()));
            let is_crawled = running_owner(&shard.value).is_some();
            if let Some(node) = node.filter(|_| is_crawled) {
                crawled_at.insert(id.shard, node.address.clone());
            }
            if shard.value.created && !is_crawled && resource.has_shard(id) {
                at_rest.push(id);
            }
        }
        let crawled_at = Arc::new(crawled_at);
        let mut live = Vec::new();
        for address in addresses {
            let lines = self
                .parts
                .workers
                .logs(&address, resource.id, follow)
                .await?;
            let crawled_at = crawled_at.clone();
            let lines = lines.try_filter(move |line| {
                let owner = crawled_at.get(&line.shard);
                std::future::ready(owner.is_none_or(|owner| *owner == address))
            });
            live.push(lines.map_err(ControlError::from).boxed());
        }
        let last_read = LastRead::default();
        let stored = stored(self.readers.clone(), at_rest, last_read.clone());
        let live = stream::select_all(live).try_filter(move |line| {
            let last_read = last_read.lock().unwrap_or_else(PoisonError::into_inner);
            let last = last_read.get(&line.shard);
            std::future::ready(last.is_none_or(|last| line.number > *last))
        });
        Ok(stored.chain(live).boxed())
    }
}

/// Reads the logs of shards, one after the other, and keeps the number of the last line of each.
fn stored(readers: Arc<Readers>, shards: Vec<ShardId>, last_read: LastRead) -> LogLines {
    let lines = stream::iter(shards).then(move |id| {
        let (readers, last_read) = (readers.clone(), last_read.clone());
        async move {
            // The future that opens a database is large.
            let Some(reader) = Box::pin(readers.open(id)).await? else {
                return Ok(Vec::new());
            };
            let lines = Box::pin(reader.log()).await;
            reader.close().await;
            let lines = lines?;
            if let Some(last) = lines.last() {
                let mut last_read = last_read.lock().unwrap_or_else(PoisonError::into_inner);
                last_read.insert(id.shard, last.number);
            }
            Ok::<_, ControlError>(lines)
        }
    });
    let lines = lines.map_ok(|lines| stream::iter(lines).map(Ok::<_, ControlError>));
    lines.try_flatten().boxed()
}
