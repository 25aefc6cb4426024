//! Interface by which the owner of a shard opens its frontier, independent of the backend.
//!
//! [`OpenFrontiers::storage_epoch`] and [`OpenFrontiers::open`] are the fence: opening with the present
//! number ends the writing of all earlier openings, and opening with an older number fails.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{Frontier, FrontierError};
use crawler_model::changes::ItemKeys;
use crawler_model::id::{Digest, Epoch, Run};
use crawler_model::links::Division;
use crawler_model::resource::{Redrive, ShardId};
use crawler_model::settings::{SinkName, SinkNames};
use crawler_process::clock::Clock;
#[cfg(any(test, feature = "testing"))]
use crawler_process::clock::StillClock;

/// Arguments for opening a frontier.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// Shard of the frontier.
    pub shard: ShardId,
    /// Cluster that it belongs to.
    pub cluster: String,
    /// Epoch of the assignment; a database that knows a greater one is not ours.
    pub epoch: Epoch,
    /// Run of the crawl. If it is later than the database's, the crawl begins anew.
    pub run: Run,
    /// Digest of the plugin that requests of this opening are made by.
    pub plugin: Digest,
    /// True if the frontier was opened before: if it is empty now, it is missing.
    pub created: bool,
    /// Writer epoch that [`OpenFrontiers::storage_epoch`] returned.
    pub storage_epoch: u64,
    /// Clock of this process. The time is read once nobody else can write any more, however long that takes.
    pub clock: Arc<dyn Clock>,
    /// Time after the opening in which no host without an answer so far is asked: an earlier process may have
    /// asked it just now.
    pub delay: Duration,
    /// Earliest run whose URLs a new run that follows it fetches again, in addition to those that are linked
    /// to. An earlier run is excepted: it may have known hosts that are another shard's by now.
    pub carry: Option<Run>,
    /// Sinks of the items. One that the frontier does not know gets the items that come from now on; the position of one
    /// that is not named is forgotten.
    pub sinks: SinkNames,
    /// Present division of hosts among the shards of the resource, if there was another one before.
    pub division: Option<Division>,
    /// Comparison of the items with those of earlier runs.
    pub changes: ItemComparison,
}

#[cfg(any(test, feature = "testing"))]
impl OpenOptions {
    /// Returns the options of the first opening of a frontier, for tests, which name what they are about.
    pub fn first(shard: ShardId) -> Self {
        Self {
            shard,
            cluster: "c1".to_owned(),
            epoch: Epoch(1),
            run: Run(1),
            plugin: Digest::of(b"plugin"),
            created: false,
            storage_epoch: 0,
            clock: Arc::new(StillClock(0)),
            delay: Duration::ZERO,
            carry: None,
            sinks: SinkNames::default(),
            division: None,
            changes: ItemComparison::default(),
        }
    }
}

/// Comparison of the items of a run with those that were delivered last under the same keys.
#[derive(Debug, Clone, Default)]
pub struct ItemComparison {
    /// Number of the latest runs whose changes are kept. If 0, items are not compared, and what is known of earlier ones
    /// is forgotten. It takes effect when a run begins: the run under way is compared to its end, or not at all.
    pub n_runs: u32,
    /// Keys of the items, as the plugin declares them.
    pub keys: ItemKeys,
}

/// Frontiers of all shards, for the owners of the shards.
#[async_trait]
pub trait OpenFrontiers: Send + Sync + 'static {
    /// Returns the writer epoch of a frontier, or 0 if there is none. It does not fence the present writer.
    async fn storage_epoch(&self, shard: ShardId) -> Result<u64, FrontierError>;

    /// Opens a frontier, which ends the writing of the previous owner. Fails with [`FrontierError::Fenced`]
    /// if another process has opened it since the epoch was read.
    async fn open(
        self: Arc<Self>,
        options: OpenOptions,
    ) -> Result<Arc<dyn OpenFrontier>, FrontierError>;
}

/// A frontier, open for writing under an epoch of its own.
#[async_trait]
pub trait OpenFrontier: Frontier {
    /// Returns the writer epoch under this opening.
    fn storage_epoch(&self) -> u64;

    /// Returns the sinks that this opening has removed although they did not have all items, with the number of items that
    /// waited for each. Those items are dropped.
    fn dropped(&self) -> Vec<(SinkName, u64)>;

    /// Tries dead letters again and returns their number.
    async fn redrive(&self, order: &Redrive) -> Result<u64, FrontierError>;
}
