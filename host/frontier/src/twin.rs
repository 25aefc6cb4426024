//! Frontiers in memory with the guarantees of those on an object store, for simulations: each shard has one
//! writer, durable data survives its process, and other data is lost with it.
//!
//! ```text
//! plain    all that is known of one shard, as plain lists; one value is one durable state
//! hosts    its hosts
//! delivery items on their way to the sinks
//! quarantine  items that wait for a verdict, or are held
//! redrive  dead letters, tried again
//! open     one opening: commits change its own copy of that
//! shared   what the calls share with the task that makes the copy durable, a moment later
//! ```
//!
//! The duration and success of a write are decided by [`FaultPlan`].

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::oneshot;

use super::{FrontierError, OpenFrontier, OpenFrontiers, OpenOptions};
use crawler_model::id::{Epoch, ResourceId};
use crawler_model::resource::ShardId;
use crawler_process::task::{TaskScope, process};

mod delivery;
mod hosts;
mod log;
mod open;
mod plain;
mod quarantine;
mod redrive;
mod shared;
#[cfg(test)]
mod tests;

use open::Opened;
pub use plain::{Plain, Stage};

/// Delays and losses on the way to the object store.
pub trait FaultPlan: Send + Sync + 'static {
    /// Returns the time that one request takes in each direction.
    fn delay(&self) -> Duration;

    /// Returns the part of the next call that is lost: the request, its answer, or neither.
    fn lost(&self) -> Option<LostMessage>;

    /// Records an event that has taken effect.
    fn tell(&self, event: Event);
}

/// Part of a call that gets lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostMessage {
    Request,
    Answer,
}

/// Event that has taken effect.
#[derive(Debug, Clone)]
pub enum Event {
    /// A process has become the writer; these hosts were known then.
    Opened {
        shard: ShardId,
        epoch: Epoch,
        storage_epoch: u64,
        hosts: Vec<String>,
    },
    /// A change by the writer is durable.
    Durable {
        shard: ShardId,
        epoch: Epoch,
        storage_epoch: u64,
    },
    /// A process that is not the writer any more tried to write.
    Fenced { shard: ShardId, storage_epoch: u64 },
}

/// Plan without delays and losses.
pub struct NoFaults;

impl FaultPlan for NoFaults {
    fn delay(&self) -> Duration {
        Duration::ZERO
    }

    fn lost(&self) -> Option<LostMessage> {
        None
    }

    fn tell(&self, _event: Event) {}
}

/// Durable state of one shard.
#[derive(Debug, Clone, Default)]
pub struct StoredFrontier {
    pub writer_epoch: u64,
    /// Epoch of the assignment that has opened it last.
    pub epoch: Epoch,
    cluster: String,
    pub plain: Plain,
}

/// The object store, and the way there. Cheap to clone.
#[derive(Clone)]
pub struct FrontiersTwin {
    shards: Arc<Mutex<BTreeMap<ShardId, StoredFrontier>>>,
    fault_plan: Arc<dyn FaultPlan>,
    /// Requests under way, which go on even if their senders are gone.
    requests: Arc<TaskScope>,
}

/// Time after which a call gives up waiting for its answer.
const DEADLINE: Duration = Duration::from_secs(5);

impl FrontiersTwin {
    pub fn new(fault_plan: Arc<dyn FaultPlan>) -> Self {
        Self {
            shards: Arc::default(),
            fault_plan,
            requests: Arc::new(TaskScope::new()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ShardId, StoredFrontier>> {
        self.shards.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the durable state of a shard.
    pub fn kept(&self, shard: ShardId) -> Option<StoredFrontier> {
        self.lock().get(&shard).cloned()
    }

    /// Returns the durable states of the frontiers of a resource.
    pub fn of(&self, resource: ResourceId) -> Vec<(ShardId, StoredFrontier)> {
        let frontiers = self.lock();
        let own = frontiers
            .iter()
            .filter(|(shard, _)| shard.resource == resource);
        own.map(|(shard, kept)| (*shard, kept.clone())).collect()
    }

    /// Returns true if there is a frontier of a resource.
    pub fn has(&self, resource: ResourceId) -> bool {
        self.lock().keys().any(|shard| shard.resource == resource)
    }

    /// Removes the frontiers of a resource and returns their number.
    pub fn remove(&self, resource: ResourceId) -> usize {
        let mut shards = self.lock();
        let n_before = shards.len();
        shards.retain(|shard, _| shard.resource != resource);
        n_before - shards.len()
    }

    /// Runs `work` at the object store, if the request gets there and the answer back.
    async fn ask<T: Send + 'static>(
        &self,
        doing: &'static str,
        shard: ShardId,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, FrontierError> {
        let (there, back, lost) = (
            self.fault_plan.delay(),
            self.fault_plan.delay(),
            self.fault_plan.lost(),
        );
        let (answer, answered) = oneshot::channel();
        let twin = self.clone();
        process::outside(|| {
            self.requests
                .spawn("request to the object store", async move {
                    tokio::time::sleep(there).await;
                    if lost == Some(LostMessage::Request) {
                        return;
                    }
                    let done = work(&twin);
                    tokio::time::sleep(back).await;
                    if lost.is_none() {
                        let _nobody_waits = answer.send(done);
                    }
                });
        });
        let unavailable = |why: &str| FrontierError::Unavailable {
            doing,
            shard,
            why: why.to_owned(),
        };
        match tokio::time::timeout(DEADLINE, answered).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(_lost)) => {
                tokio::time::sleep(DEADLINE).await;
                Err(unavailable("the answer was lost"))
            }
            Err(_elapsed) => Err(unavailable("no answer in time")),
        }
    }

    /// Makes the caller the writer, at the object store.
    fn take_over(&self, options: &OpenOptions) -> Result<StoredFrontier, FrontierError> {
        let shard = options.shard;
        let mut shards = self.lock();
        let present = shards.get(&shard).map_or(0, |kept| kept.writer_epoch);
        if present != options.storage_epoch {
            return Err(FrontierError::Fenced { shard });
        }
        if options.created && present == 0 {
            return Err(FrontierError::Missing { shard });
        }
        let kept = shards.entry(shard).or_insert_with(|| StoredFrontier {
            cluster: options.cluster.clone(),
            ..StoredFrontier::default()
        });
        if kept.cluster != options.cluster {
            return Err(FrontierError::Foreign {
                shard,
                found: kept.cluster.clone(),
                expected: options.cluster.clone(),
            });
        }
        // From here on no other process can write, as with an opened database.
        kept.writer_epoch += 1;
        self.fault_plan.tell(Event::Opened {
            shard,
            epoch: options.epoch,
            storage_epoch: kept.writer_epoch,
            hosts: kept.plain.hosts.keys().cloned().collect(),
        });
        if options.epoch < kept.epoch {
            return Err(FrontierError::Fenced { shard });
        }
        if options.run < kept.plain.run {
            let why = format!("run {} is over", options.run);
            return Err(FrontierError::Damaged { shard, why });
        }
        kept.epoch = options.epoch;
        kept.plain.open(options);
        Ok(kept.clone())
    }

    /// Makes a state durable, at the object store.
    fn keep(&self, writer: &Writer, plain: Plain) -> Result<(), FrontierError> {
        let Writer {
            shard,
            epoch,
            storage_epoch,
        } = *writer;
        let mut shards = self.lock();
        let kept = shards.get_mut(&shard);
        let Some(kept) = kept.filter(|kept| kept.writer_epoch == storage_epoch) else {
            drop(shards);
            self.fault_plan.tell(Event::Fenced {
                shard,
                storage_epoch,
            });
            return Err(FrontierError::Fenced { shard });
        };
        kept.plain = plain;
        self.fault_plan.tell(Event::Durable {
            shard,
            epoch,
            storage_epoch,
        });
        Ok(())
    }
}

/// Identity of a writer of a shard.
#[derive(Debug, Clone, Copy)]
struct Writer {
    shard: ShardId,
    epoch: Epoch,
    storage_epoch: u64,
}

#[async_trait]
impl OpenFrontiers for FrontiersTwin {
    async fn storage_epoch(&self, shard: ShardId) -> Result<u64, FrontierError> {
        self.ask("open", shard, move |twin| {
            twin.kept(shard).map_or(0, |kept| kept.writer_epoch)
        })
        .await
    }

    async fn open(
        self: Arc<Self>,
        options: OpenOptions,
    ) -> Result<Arc<dyn OpenFrontier>, FrontierError> {
        let (shard, epoch) = (options.shard, options.epoch);
        let opened = self.ask("open", shard, move |twin| twin.take_over(&options));
        let kept = opened.await??;
        let writer = Writer {
            shard,
            epoch,
            storage_epoch: kept.writer_epoch,
        };
        Ok(Arc::new(Opened::new((*self).clone(), writer, kept.plain)))
    }
}

/// Marks of sinks: values by key.
pub type Marks = BTreeMap<Bytes, Bytes>;
