//! Pool of a process's readers, which limits how many are open at once.
//!
//! A reader costs memory and polls the object store five times a second, so calls wait for a permit
//! instead of opening as many as they like. A call that ends holds one reader at a time, so no call waits for
//! a reader while holding one. Calls that follow a frontier share one reader of it. They may hold half of all
//! readers; the others are reserved for calls that end.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use object_store::ObjectStore;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::FrontierReader;
use crate::FrontierError;
use crawler_model::resource::ShardId;

/// Default maximum number of readers at once: setting `frontier-readers`.
pub const DEFAULT_READERS: usize = 32;
/// Time for which a call waits for a permit.
const PERMIT_DEADLINE: Duration = Duration::from_secs(10);

/// Pool that opens readers, up to a maximum number at once.
pub struct Readers {
    objects: Arc<dyn ObjectStore>,
    max: usize,
    open: Arc<Semaphore>,
    kept: Arc<Semaphore>,
    /// Readers that are shared by calls that follow a frontier.
    shared: Mutex<HashMap<ShardId, Weak<PooledReader>>>,
}

/// A reader that counts towards the maximum until it is dropped.
pub struct PooledReader {
    reader: FrontierReader,
    _open: OwnedSemaphorePermit,
    kept: Option<OwnedSemaphorePermit>,
}

impl Readers {
    /// Creates a pool of at most `max` readers of the frontiers in this object store.
    pub fn new(objects: Arc<dyn ObjectStore>, max: usize) -> Self {
        Self {
            objects,
            max,
            open: Arc::new(Semaphore::new(max)),
            kept: Arc::new(Semaphore::new(max / 2)),
            shared: Mutex::default(),
        }
    }

    /// Opens a frontier once fewer than the maximum are open. Returns `None` if there is no frontier.
    pub async fn open(&self, shard: ShardId) -> Result<Option<PooledReader>, FrontierError> {
        let permit = Arc::clone(&self.open).acquire_owned();
        let Ok(Ok(permit)) = tokio::time::timeout(PERMIT_DEADLINE, permit).await else {
            let (max, seconds) = (self.max, PERMIT_DEADLINE.as_secs());
            return Err(FrontierError::Unavailable {
                doing: "read",
                shard,
                why: format!(
                    "{max} frontiers are being read, as many as --frontier-readers allows, and none \
                     was let go within {seconds} s; try again, or raise it"
                ),
            });
        };
        let reader = FrontierReader::open(self.objects.clone(), shard).await?;
        Ok(reader.map(|reader| PooledReader {
            reader,
            _open: permit,
            kept: None,
        }))
    }

    /// Returns a reader for a call that follows a frontier, shared with other such calls, or `None` if there
    /// is no frontier. The data may be slightly old.
    pub async fn follow(&self, shard: ShardId) -> Result<Option<Arc<PooledReader>>, FrontierError> {
        if let Some(reader) = self.followed(shard) {
            return Ok(Some(reader));
        }
        let Some(mut reader) = self.open(shard).await? else {
            return Ok(None);
        };
        reader.kept = Arc::clone(&self.kept).try_acquire_owned().ok();
        let reader = Arc::new(reader);
        if reader.may_be_kept() {
            let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
            shared.retain(|_, reader| reader.strong_count() > 0);
            shared.insert(shard, Arc::downgrade(&reader));
        }
        Ok(Some(reader))
    }

    /// Stops sharing this reader, because it does not read any more.
    pub fn stop_sharing(&self, reader: &Arc<PooledReader>) {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.retain(|_, other| !std::ptr::eq(other.as_ptr(), Arc::as_ptr(reader)));
    }

    fn followed(&self, shard: ShardId) -> Option<Arc<PooledReader>> {
        let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.get(&shard).and_then(Weak::upgrade)
    }
}

impl PooledReader {
    /// Returns true if the reader may be held while nothing is read. Otherwise it is to be dropped after each
    /// read.
    pub fn may_be_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// Closes the reader, and waits until its polls have ended.
    pub async fn close(self) {
        self.reader.close().await;
    }
}

impl Deref for PooledReader {
    type Target = FrontierReader;

    fn deref(&self) -> &FrontierReader {
        &self.reader
    }
}
