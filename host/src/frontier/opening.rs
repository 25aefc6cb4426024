//! How a shard's frontier is opened by who owns the shard, whatever keeps it.
//!
//! [`OpenFrontiers::storage_epoch`] and [`OpenFrontiers::open`] are the fence: whoever opens with the
//! number that is the present one ends the writing of everybody before, and whoever comes with an
//! older number opens nothing.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{Frontier, FrontierError};
use crate::model::crawl::UnixMillis;
use crate::model::id::{Digest, Epoch, Run};
use crate::model::links::Division;
use crate::model::resource::{Redrive, ShardId};

/// As whom a frontier is opened.
#[derive(Debug, Clone)]
pub struct OpenAs {
    /// Whose frontier.
    pub shard: ShardId,
    /// Which cluster it belongs to.
    pub cluster: String,
    /// Of the assignment; a database that knows a greater one is not ours.
    pub epoch: Epoch,
    /// A later run than the database's begins anew.
    pub run: Run,
    /// What requests of this opening are made under.
    pub plugin: Digest,
    /// It was opened before: if it is empty, it is missing.
    pub created: bool,
    /// The writer epoch that was found: what [`OpenFrontiers::storage_epoch`] answered.
    pub storage_epoch: u64,
    /// The present moment.
    pub now: UnixMillis,
    /// No host that has not answered yet is asked sooner after the opening: an earlier life may have
    /// asked it just now.
    pub delay: Duration,
    /// A new run fetches again what the one before knew, and not only what is linked to, unless that
    /// one is earlier than this: it may have known hosts that are another shard's by now.
    pub carry: Option<Run>,
    /// The present division of hosts among the shards of the resource, where there was another one before.
    pub division: Option<Division>,
}

/// The frontiers of all shards, for those who become their owners.
#[async_trait]
pub trait OpenFrontiers: Send + Sync + 'static {
    /// The writer epoch of a frontier; 0 where there is none. Takes nothing over.
    async fn storage_epoch(&self, shard: ShardId) -> Result<u64, FrontierError>;

    /// Opens a frontier, which ends the writing of whoever had it. [`FrontierError::Fenced`] where
    /// somebody else has opened it since the epoch was read.
    async fn open(self: Arc<Self>, open: OpenAs) -> Result<Arc<dyn OpenFrontier>, FrontierError>;
}

/// A frontier, open for writing under an epoch of its own.
#[async_trait]
pub trait OpenFrontier: Frontier {
    /// The writer epoch under this opening.
    fn storage_epoch(&self) -> u64;

    /// Tries dead letters again; how many.
    async fn redrive(&self, order: &Redrive) -> Result<u64, FrontierError>;
}
