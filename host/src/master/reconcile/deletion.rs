//! Taking apart what a deleted resource leaves behind.
//!
//! ```text
//! owners have stopped ──▶ items go, if they are to ──▶ stopped_at
//! minimum age is over ──▶ line files are cut to what counts ──▶ items_cut
//!                         frontiers go ──▶ the record goes
//! ```
//!
//! Each step can be done again: a kill between a step and its record costs nothing. A frontier stays
//! for the minimum age because a process that slept since before the deletion would else find nothing
//! that tells it to stop, and write where nobody looks.

use std::time::Duration;

use super::super::WORKER_CALL_DEADLINE;
use super::super::observed::Observed;
use super::{RESYNC, Reconciler};
use crate::frontier::FrontierError;
use crate::frontier::reader::FrontierReader;
use crate::model::frontier::SinkMark;
use crate::model::id::ResourceId;
use crate::model::resource::{Deleting, ShardId};
use crate::sink::{SinkError, lines};
use crate::store::catalog::{Versioned, encode};
use crate::store::{Guard, StoreError, Txn};
use crate::telemetry;

/// How soon an owner that still writes is asked again.
const OWNER_PAUSE: Duration = Duration::from_millis(500);
/// How soon a step that the data root refused is tried again.
const DATA_PAUSE: Duration = Duration::from_secs(10);

/// When the data of deleted resources goes.
#[derive(Debug, Clone)]
pub struct DeletionSettings {
    /// A frontier stays this long: setting `--frontier-min-age`.
    pub frontier_min_age: Duration,
}

impl Default for DeletionSettings {
    fn default() -> Self {
        Self {
            frontier_min_age: Duration::from_secs(24 * 60 * 60),
        }
    }
}

/// Why a step has to wait.
#[derive(Debug, thiserror::Error)]
enum StepError {
    #[error(transparent)]
    Data(#[from] crate::data::DataError),
    #[error(transparent)]
    Items(#[from] SinkError),
    #[error(transparent)]
    Frontier(#[from] FrontierError),
}

impl Reconciler {
    /// Does what can be done by now about a deleted resource. Tells when there may be more to do.
    pub(super) async fn delete(
        &self,
        observed: &Observed,
        id: ResourceId,
    ) -> Result<Duration, StoreError> {
        let Some(present) = observed.deleting.get(&id) else {
            return Ok(RESYNC);
        };
        let deleting = &present.value;
        let Some(stopped_at) = deleting.stopped_at else {
            return self.after_owners(observed, present).await;
        };
        let age = self.clock.unix_millis().saturating_sub(stopped_at);
        let min_age = self.deletion.frontier_min_age;
        if let Some(left) = min_age.checked_sub(Duration::from_millis(age))
            && !left.is_zero()
        {
            return Ok(left);
        }
        if !deleting.items_cut {
            let cut = self.cut_items(id).await;
            let next = Deleting {
                items_cut: true,
                ..deleting.clone()
            };
            return self.step(present, cut, Some(next)).await;
        }
        let deleted = match self.data.delete_frontiers(id).await {
            Ok(n) => {
                tracing::info!(resource = %deleting.name, %id, n, "frontier removed");
                Ok(())
            }
            Err(error) => Err(error.into()),
        };
        self.step(present, deleted, None).await
    }

    async fn after_owners(
        &self,
        observed: &Observed,
        present: &Versioned<Deleting>,
    ) -> Result<Duration, StoreError> {
        let deleting = &present.value;
        if !self.have_stopped(observed, deleting).await {
            return Ok(OWNER_PAUSE);
        }
        let mut removed = Ok(());
        if deleting.purge {
            removed = self.data.delete_items(deleting.id).await;
        }
        let next = Deleting {
            stopped_at: Some(self.clock.unix_millis()),
            ..deleting.clone()
        };
        self.step(present, removed.map_err(StepError::from), Some(next))
            .await
    }

    /// Whether none of the owners has the resource any more.
    async fn have_stopped(&self, observed: &Observed, deleting: &Deleting) -> bool {
        for owner in &deleting.owners {
            let Some(node) = observed
                .workers
                .get(&owner.node)
                .filter(|_| observed.is_alive(owner))
            else {
                continue;
            };
            let asked = tokio::time::timeout(
                WORKER_CALL_DEADLINE,
                self.workers.status(&node.address, Some(&deleting.name)),
            );
            match asked.await {
                Ok(Ok(crawls)) if crawls.iter().all(|crawl| crawl.id != deleting.id) => {}
                Ok(Ok(_)) | Ok(Err(_)) | Err(_) => return false,
            }
        }
        true
    }

    /// Makes the items readable without their frontiers. What a frontier that is damaged would have
    /// said is lost: then all whole lines stay.
    async fn cut_items(&self, id: ResourceId) -> Result<(), StepError> {
        let folder = self.data.items_folder(id);
        for shard in lines::shards(folder.clone()).await? {
            let folder = folder.join(shard.to_string());
            let shard = ShardId {
                resource: id,
                shard,
            };
            match self.marks(shard).await {
                Ok(Some(marks)) => lines::cut_to_marks(folder, marks).await?,
                Ok(None) => {}
                Err(
                    error @ (FrontierError::Damaged { .. }
                    | FrontierError::Format { .. }
                    | FrontierError::Missing { .. }),
                ) => {
                    tracing::warn!(%error, "items stay as they are: how much of them counts is not known");
                }
                Err(error) => return Err(error.into()),
            }
        }
        // Were the data root away, there would have seemed to be nothing to cut.
        Ok(self.data.check().await?)
    }

    async fn marks(&self, shard: ShardId) -> Result<Option<Vec<SinkMark>>, FrontierError> {
        let reader = FrontierReader::open(self.data.object_store(), shard).await?;
        let Some(reader) = reader else {
            return Ok(None);
        };
        let marks = reader.marks().await;
        reader.close().await;
        marks.map(Some)
    }

    /// Writes what follows a step that went well: the next record, or none.
    async fn step(
        &self,
        present: &Versioned<Deleting>,
        done: Result<(), StepError>,
        next: Option<Deleting>,
    ) -> Result<Duration, StoreError> {
        let deleting = &present.value;
        if let Err(error) = done {
            let error = telemetry::chain(&error);
            tracing::error!(error, resource = %deleting.name, id = %deleting.id, "a deletion waits");
            return Ok(DATA_PAUSE);
        }
        let key = self.catalog.keys().deleting(deleting.id);
        let txn = Txn::new().guard(Guard::RevisionIs(key.clone(), present.revision));
        let txn = match next {
            Some(next) => txn.put(key, encode(&next)),
            None => txn.delete(key),
        };
        if self.commit(txn).await? {
            // The next step may be due already.
            self.wake.notify_one();
        }
        Ok(RESYNC)
    }
}

#[cfg(test)]
pub(super) mod tests;
