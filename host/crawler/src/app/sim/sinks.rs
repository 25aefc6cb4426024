//! The sinks of items, and the remains of deleted resources.
//!
//! Items lie as in line files: there is one file for each opening of a frontier, the frontier says how much
//! of it counts, and everything behind that is cut off before the next write.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use super::check::Found;
use super::fault::Fault;
use super::site;
use super::world::SimWorld;
use crawler_frontier::twin::{FrontiersTwin, Marks, Stage};
use crawler_master::cleanup::{CleanupError, DataCleanup};
use crawler_model::crawl::{ItemRecord, UnixMillis};
use crawler_model::frontier::SinkMark;
use crawler_model::id::ResourceId;
use crawler_model::resource::ShardId;
use crawler_sink::{Delivery, OpenSinks, Sink, SinkError, Written};

type Files = BTreeMap<(ShardId, u64), Vec<ItemRecord>>;

/// The files of all shards. Cheap to clone.
#[derive(Clone)]
pub(super) struct Sinks {
    world: Arc<SimWorld>,
    files: Arc<Mutex<Files>>,
    frontiers: Arc<FrontiersTwin>,
}

impl Sinks {
    pub(super) fn new(world: Arc<SimWorld>, frontiers: Arc<FrontiersTwin>) -> Self {
        Self {
            world,
            files: Arc::default(),
            frontiers,
        }
    }

    /// Returns the items of a shard that readers see.
    pub(super) fn read(&self, shard: ShardId) -> Vec<ItemRecord> {
        let kept = self.frontiers.kept(shard);
        let marks = kept.map(|kept| kept.plain.marks).unwrap_or_default();
        let files = self.files.lock().unwrap();
        let of_shard = files.iter().filter(|((id, _), _)| *id == shard);
        let counted = of_shard.flat_map(|((_, storage_epoch), lines)| {
            let n = n_counted(&marks, *storage_epoch);
            lines.iter().take(n).cloned()
        });
        counted.collect()
    }

    /// Checks that the items of every page that a frontier knew to be done are delivered before the frontier
    /// goes, unless the items go too.
    fn all_delivered(&self, resource: ResourceId) -> Found {
        let (purged, site) = {
            let checker = self.world.checker();
            let (_, life) = checker.lives.get(&resource).ok_or("items of nobody")?;
            (checker.purged.contains(&resource), checker.site_of(*life))
        };
        let site = site.filter(|_| !purged);
        let Some(site) = site else { return Ok(()) };
        let files = self.files.lock().unwrap();
        for (shard, kept) in self.frontiers.of(resource) {
            let own = files.iter().filter(|((of, _), _)| *of == shard);
            let items = own.flat_map(|(_, lines)| lines);
            let items = items.filter(|item| item.run == kept.plain.run);
            let mut found: Vec<&str> = items.map(|item| item.item.get()).collect();
            let done = kept.plain.urls.values();
            let done = done.filter(|known| matches!(known.stage, Stage::Done(_)));
            let pages = done.filter_map(|known| site::parse(&known.request.url));
            let wanted: Vec<String> = pages.flat_map(|(_, _, page)| site.items(page)).collect();
            let mut wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
            found.sort_unstable();
            wanted.sort_unstable();
            if found != wanted {
                let (n, of) = (found.len(), wanted.len());
                return Err(format!("{shard} was deleted with {n} items of {of}"));
            }
        }
        Ok(())
    }

    /// Returns true if anything of a resource is there.
    pub(super) fn has(&self, resource: ResourceId) -> bool {
        let files = self.files.lock().unwrap();
        files.keys().any(|(shard, _)| shard.resource == resource)
    }
}

fn file_name(storage_epoch: u64) -> String {
    format!("{storage_epoch}-0.jsonl")
}

/// Returns how many items of a file count, according to the marks of its frontier.
fn n_counted(marks: &Marks, storage_epoch: u64) -> usize {
    let mark = marks.get(file_name(storage_epoch).as_bytes());
    mark.map_or(0, |n| usize::from_be_bytes(n.as_ref().try_into().unwrap()))
}

fn failed(storage_epoch: u64) -> SinkError {
    let source = std::io::Error::other("a bad day");
    SinkError::of_file("write", file_name(storage_epoch), source)
}

#[async_trait]
impl OpenSinks for Sinks {
    async fn open(&self, delivery: &Delivery) -> Result<Box<dyn Sink>, SinkError> {
        let storage_epoch = delivery.storage_epoch;
        if self.world.fault(Fault::SinkRefuses, 3) {
            return Err(failed(storage_epoch));
        }
        Ok(Box::new(File {
            sinks: self.clone(),
            shard: delivery.shard,
            storage_epoch,
            n_answered: 0,
        }))
    }
}

struct File {
    sinks: Sinks,
    shard: ShardId,
    storage_epoch: u64,
    /// Number of items that the last answer confirmed.
    n_answered: usize,
}

#[async_trait]
impl Sink for File {
    async fn write(&mut self, _first: u64, items: &[ItemRecord]) -> Result<Written, SinkError> {
        let world = self.sinks.world.clone();
        tokio::time::sleep(world.way()).await;
        if world.fault(Fault::SinkRefuses, 3) {
            return Err(failed(self.storage_epoch));
        }
        let found = world.checker().on_items(self.shard, items);
        world.judge(found);
        let n_lines = {
            let mut files = self.sinks.files.lock().unwrap();
            let lines = files.entry((self.shard, self.storage_epoch)).or_default();
            lines.truncate(self.n_answered);
            lines.extend(items.iter().cloned());
            lines.len()
        };
        let (n, shard, epoch) = (items.len(), self.shard, self.storage_epoch);
        world.note(format_args!("{n} items of {shard} into {epoch}"));
        tokio::time::sleep(world.way()).await;
        if world.fault(Fault::SinkSilent, 3) {
            return Err(failed(self.storage_epoch));
        }
        self.n_answered = n_lines;
        let mark = SinkMark {
            key: file_name(self.storage_epoch).into(),
            value: n_lines.to_be_bytes().to_vec().into(),
        };
        Ok(Written::all(items, Some(mark)))
    }
}

#[async_trait]
impl DataCleanup for Sinks {
    async fn delete_items(&self, resource: ResourceId) -> Result<(), CleanupError> {
        tokio::time::sleep(self.world.way()).await;
        let mut files = self.files.lock().unwrap();
        files.retain(|(shard, _), _| shard.resource != resource);
        Ok(())
    }

    async fn settle_items(&self, resource: ResourceId, _by: u64) -> Result<(), CleanupError> {
        tokio::time::sleep(self.world.way()).await;
        let of_resource = |(shard, _): &&(ShardId, u64)| shard.resource == resource;
        let keys: Vec<(ShardId, u64)> = {
            let files = self.files.lock().unwrap();
            files.keys().filter(of_resource).copied().collect()
        };
        for (shard, storage_epoch) in keys {
            let kept = self.frontiers.kept(shard);
            let n = kept.map_or(0, |kept| n_counted(&kept.plain.marks, storage_epoch));
            let mut files = self.files.lock().unwrap();
            if let Some(lines) = files.get_mut(&(shard, storage_epoch)) {
                lines.truncate(n);
            }
        }
        for (shard, kept) in self.frontiers.of(resource) {
            let rest = kept.plain.outbox.into_iter().collect();
            let mut files = self.files.lock().unwrap();
            files.insert((shard, u64::MAX), rest);
        }
        Ok(())
    }

    /// Does nothing but wait: delivered items are visible at once here.
    async fn publish_items(&self, _resource: ResourceId, _by: u64) -> Result<(), CleanupError> {
        tokio::time::sleep(self.world.way()).await;
        Ok(())
    }

    async fn delete_frontiers(&self, resource: ResourceId) -> Result<usize, CleanupError> {
        tokio::time::sleep(self.world.way()).await;
        self.world.note(format_args!("frontiers of {resource} go"));
        self.world.judge(self.all_delivered(resource));
        Ok(self.frontiers.remove(resource))
    }

    /// Waits for ever: nothing is ever left half done, and no plugin lacks its record.
    async fn sweep(&self, _now: UnixMillis) -> Result<usize, CleanupError> {
        std::future::pending().await
    }
}
