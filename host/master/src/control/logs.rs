//! Logs of resources: from the workers that crawl its shards, and from the frontiers of the others.
//!
//! A worker that crawls a shard has the whole log of it in memory. A worker that crawled it before may still have a
//! part of that log, which is left out. The log of a shard that no live worker crawls is in its frontier, from whatever
//! process; the worker that had the shard last may know lines that came when the frontier was not open. A frontier
//! that cannot be read hides no other lines: a line tells of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};

use super::Control;
use super::reads::running_owner;
use crate::{ControlError, lists};
use crawler_frontier::FrontierError;
use crawler_frontier::reader::pool::Readers;
use crawler_model::id::{ResourceName, Run, Shard};
use crawler_model::node::Role;
use crawler_model::resource::ShardId;
use crawler_model::status::LogLine;
use crawler_process::clock::Clock;

/// Number of frontiers that are read at once.
const AT_ONCE: usize = 8;

/// Lines of logs, or an error after which no more come from its source.
type LogLines = BoxStream<'static, Result<LogLine, ControlError>>;

/// Logs that frontiers have.
struct StoredLogs {
    readers: Arc<Readers>,
    /// Present run of the resource.
    run: Run,
    clock: Arc<dyn Clock>,
    /// Number of the last line that was read of each shard.
    last_read: Mutex<BTreeMap<Shard, u64>>,
}

impl Control {
    /// Returns the log of a resource: first that of the shards that nobody crawls.
    pub async fn logs(&self, name: &ResourceName, follow: bool) -> Result<LogLines, ControlError> {
        let resource = self.existing(name).await?.value;
        let workers = lists::nodes(&self.parts.catalog, Role::Worker).await?;
        // A worker answers for all shards that it has.
        let mut owners = BTreeMap::new();
        // Addresses of the live owners of the shards that are crawled.
        let mut crawled_at = BTreeMap::new();
        let mut at_rest = Vec::new();
        for (id, shard) in self.shards(&resource).await? {
            let owner = shard.value.owner.as_ref();
            let node = owner.and_then(|owner| workers.get(&owner.node));
            owners.extend(node.map(|node| (node.address.clone(), node)));
            let running = running_owner(&shard.value).zip(node);
            // Another process under the id of the owner does not crawl the shard.
            match running.filter(|(owner, node)| owner.incarnation == node.incarnation) {
                Some((_, node)) => {
                    crawled_at.insert(id.shard, node.address.clone());
                }
                None if shard.value.created && resource.has_shard(id) => at_rest.push(id),
                None => {}
            }
        }
        let crawled_at = Arc::new(crawled_at);
        let mut live = Vec::new();
        for (address, worker) in owners {
            let lines = self.parts.workers.logs(worker, resource.id, follow).await?;
            let crawled_at = crawled_at.clone();
            let lines = lines.try_filter(move |line| {
                let owner = crawled_at.get(&line.shard);
                std::future::ready(owner.is_none_or(|owner| *owner == address))
            });
            live.push(lines.map_err(ControlError::from).boxed());
        }
        let stored_logs = Arc::new(StoredLogs {
            readers: self.readers.clone(),
            run: resource.run,
            clock: self.parts.clock.clone(),
            last_read: Mutex::default(),
        });
        let stored = stored_logs.clone().lines(at_rest);
        let live = stream::select_all(live)
            .try_filter(move |line| std::future::ready(!stored_logs.has_read(line)));
        Ok(stored.chain(live).boxed())
    }
}

impl StoredLogs {
    /// Reads the logs of shards, a few at once: each may wait for a storage that does not answer.
    fn lines(self: Arc<Self>, shards: Vec<ShardId>) -> LogLines {
        let logs = stream::iter(shards).map(move |id| {
            let stored_logs = self.clone();
            async move {
                match stored_logs.read(id).await {
                    Ok(lines) => lines,
                    Err(error) => vec![stored_logs.missing(id, &error)],
                }
            }
        });
        let lines = logs.buffered(AT_ONCE).flat_map(stream::iter);
        lines.map(Ok::<_, ControlError>).boxed()
    }

    async fn read(&self, id: ShardId) -> Result<Vec<LogLine>, FrontierError> {
        // The future that opens a database is large.
        let Some(reader) = Box::pin(self.readers.open(id)).await? else {
            return Ok(Vec::new());
        };
        let lines = Box::pin(reader.log()).await;
        reader.close().await;
        let lines = lines?;
        if let Some(last) = lines.last() {
            let mut last_read = self
                .last_read
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            last_read.insert(id.shard, last.number);
        }
        Ok(lines)
    }

    /// Returns the line that stands for the log of a shard that cannot be read.
    fn missing(&self, id: ShardId, error: &FrontierError) -> LogLine {
        LogLine {
            at: self.clock.unix_millis(),
            level: "error",
            url: String::new(),
            rule: String::new(),
            message: format!("lines of shard {} are missing: {error}", id.shard),
            run: self.run,
            shard: id.shard,
            number: 0,
            more: 0,
        }
    }

    /// Returns true if this line, of a worker, was read from a frontier too.
    fn has_read(&self, line: &LogLine) -> bool {
        let last_read = self
            .last_read
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let last = last_read.get(&line.shard);
        last.is_some_and(|last| line.number <= *last)
    }
}
