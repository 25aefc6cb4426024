//! State of an open frontier: what its calls and its background tasks share.

use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use slatedb::{Db, DbStatus};
use tokio::sync::{Notify, watch};

use super::clock::DatabaseClock;
use super::frontiers::Frontiers;
use super::memory_budget::MemoryShare;
use super::queued::Queued;
use super::state::State;
use crate::FrontierError;
use crate::seen::Opening;
use crawler_model::id::Run;
use crawler_model::resource::ShardId;

/// State that the calls of a frontier and its background tasks share.
pub(super) struct Inner {
    pub(super) shard: ShardId,
    pub(super) run: Run,
    pub(super) db: Db,
    pub(super) clock: Arc<DatabaseClock>,
    pub(super) status: watch::Receiver<DbStatus>,
    /// Writer epoch of the database; part of the names of item files.
    pub(super) storage_epoch: u64,
    pub(super) frontiers: Arc<Frontiers>,
    pub(super) memory_share: Arc<MemoryShare>,
    pub(super) opening: Opening,
    /// Number of the plugin that the crawl runs now, as used in records.
    pub(super) plugin: u32,
    pub(super) state: Mutex<State>,
    /// Lock held while a batch is made and handed to the database.
    pub(super) writer: tokio::sync::Mutex<()>,
    /// Lock held while records of suspects are made durable.
    pub(super) flushing: tokio::sync::Mutex<()>,
    /// Pages that wait for their batch.
    pub(super) queue: Mutex<VecDeque<Queued>>,
    pub(super) broken: Mutex<Option<FrontierError>>,
    /// Size in bytes on disk at the last measurement.
    pub(super) disk_bytes: AtomicU64,
    /// Signals that URLs are to be read in.
    pub(super) refill_wanted: Notify,
    pub(super) take_changed: Notify,
    pub(super) outbox_changed: Notify,
    pub(super) links_changed: Notify,
}

impl Inner {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn check(&self) -> Result<(), FrontierError> {
        let broken = self.broken.lock().unwrap_or_else(PoisonError::into_inner);
        broken.clone().map_or(Ok(()), Err)
    }

    /// Records the first error; after it nothing more is done here.
    pub(super) fn broken(&self, error: FrontierError) {
        let mut broken = self.broken.lock().unwrap_or_else(PoisonError::into_inner);
        broken.get_or_insert(error);
        drop(broken);
        self.notify();
    }

    pub(super) fn notify(&self) {
        self.take_changed.notify_one();
        self.outbox_changed.notify_one();
        self.links_changed.notify_one();
    }
}
