//! Opening a shard's frontier, in the one order that neither steals it nor loses it:
//!
//! 1. read the writer epoch of the database, without becoming its writer;
//! 2. write it into the shard's record, guarded: the shard is still ours, under the same epoch;
//! 3. open the database expecting that writer epoch, which ends the writing of whoever had it.
//!
//! A worker for which any of these steps fails begins again with a fresh look at the record. A worker that
//! was once assigned the shard and resumes late fails at step 2. One that passed step 2 before the shard was
//! given away finds at step 3 that the new owner has opened the database. The writer epoch is kept nowhere
//! else, so a crash between any two steps needs no repair.
//!
//! The record says only after that that the frontier was created, and only then may `root` run: a frontier
//! that was created and is not there is missing, and never silently begun anew.

use crawler_frontier::{Frontier, FrontierError, OpenFrontier, OpenFrontiers, OpenOptions};
use crawler_model::drift::Decision;
use crawler_model::id::Epoch;
use crawler_model::resource::{Redrive, ShardId, ShardRecord};
use crawler_store::catalog::{Catalog, Versioned, encode};
use crawler_store::{Guard, Outcome, StoreError, Txn};
use std::sync::Arc;

/// A shard, as seen by one assignment.
pub(super) struct OwnShard {
    pub(super) catalog: Catalog,
    pub(super) id: ShardId,
    pub(super) epoch: Epoch,
}

/// Reason why a step was not completed.
#[derive(Debug, thiserror::Error)]
pub(super) enum StepError {
    /// The shard belongs to another worker, or to none.
    #[error("the shard is not ours")]
    Lost,
    /// Another process changed the record meanwhile, or the answer was lost: look again.
    #[error("the shard's record changes")]
    Raced,
    /// The store does not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The frontier cannot be opened.
    #[error(transparent)]
    Frontier(#[from] FrontierError),
}

impl OwnShard {
    /// Returns the record, as long as the shard is ours.
    pub(super) async fn record(&self) -> Result<Versioned<ShardRecord>, StepError> {
        let key = self.catalog.keys().shard(self.id);
        let present = self.catalog.read::<ShardRecord>(&key).await?;
        let own = present
            .filter(|present| present.value.epoch == self.epoch && present.value.owner.is_some());
        own.ok_or(StepError::Lost)
    }

    /// Changes the record, as long as the shard is ours, and returns the new one.
    pub(super) async fn change(
        &self,
        change: impl FnOnce(&mut ShardRecord),
    ) -> Result<ShardRecord, StepError> {
        let present = self.record().await?;
        let mut record = present.value.clone();
        change(&mut record);
        if record == present.value {
            return Ok(record);
        }
        let key = self.catalog.keys().shard(self.id);
        let txn = Txn::new()
            .guard(Guard::RevisionIs(key.clone(), present.revision))
            .put(key, encode(&record));
        match self.catalog.store().commit(txn).await? {
            Outcome::Done(_) => Ok(record),
            Outcome::Lost(_) | Outcome::Unknown => Err(StepError::Raced),
        }
    }

    /// Tries once to open the frontier. `as_of` builds the arguments for opening it from the writer epoch,
    /// and from whether it was created.
    pub(super) async fn open(
        &self,
        frontiers: &Arc<dyn OpenFrontiers>,
        as_of: impl FnOnce(u64, bool) -> OpenOptions,
    ) -> Result<Arc<dyn OpenFrontier>, StepError> {
        let storage_epoch = frontiers.storage_epoch(self.id).await?;
        let expected = self.change(|record| record.storage_epoch = storage_epoch);
        let was_created = expected.await?.created;
        if was_created && storage_epoch == 0 {
            return Err(FrontierError::Missing { shard: self.id }.into());
        }
        let opening = frontiers.clone().open(as_of(storage_epoch, was_created));
        let frontier = opening.await?;
        match self.opened(&*frontier).await {
            Ok(()) => Ok(frontier),
            Err(error) => {
                close(&*frontier).await;
                Err(error)
            }
        }
    }

    /// Does the work that comes before anything else happens to an open frontier.
    async fn opened(&self, frontier: &dyn OpenFrontier) -> Result<(), StepError> {
        let opened = self.change(|record| (record.created, record.waits) = (true, None));
        let opened = opened.await?;
        if let Some(order) = opened.redrive {
            self.redrive(frontier, &order).await?;
        }
        for decision in opened.decisions {
            self.decide(frontier, &decision).await?;
        }
        Ok(())
    }

    /// Carries a decision about held items out, and removes it once that is durable.
    async fn decide(
        &self,
        frontier: &dyn OpenFrontier,
        decision: &Decision,
    ) -> Result<(), StepError> {
        let n = frontier.decide(decision).await?;
        frontier.settle().await?;
        let action = decision.action;
        tracing::info!(n, %action, "held items are decided about");
        let done = self.change(|record| record.decisions.retain(|other| other != decision));
        done.await.map(drop)
    }

    /// Carries an order out, and removes it once that is durable.
    async fn redrive(&self, frontier: &dyn OpenFrontier, order: &Redrive) -> Result<(), StepError> {
        let n = frontier.redrive(order).await?;
        frontier.settle().await?;
        tracing::info!(n, "dead letters are tried again");
        let done = self.change(|record| {
            if record.redrive.as_ref() == Some(order) {
                record.redrive = None;
            }
        });
        done.await.map(drop)
    }
}

/// Closes a frontier that is of no more use; failures are logged.
pub(super) async fn close(frontier: &dyn Frontier) {
    if let Err(error) = frontier.close().await {
        tracing::warn!(%error, "a frontier did not close");
    }
}

#[cfg(test)]
mod tests;
