//! Removal of the data of deleted resources.
//!
//! ```text
//! owners have stopped ──▶ items go, if they are to ──▶ stopped_at
//! minimum age is over ──▶ line files are cut to what counts, what no sink has follows ──▶ items_cut
//!                         frontiers go ──▶ the record goes
//! ```
//!
//! Each step may be repeated: a crash between a step and its record costs nothing. A frontier stays for the
//! minimum age. Otherwise, a process that slept since before the deletion would find nothing that tells it to
//! stop, and would write data that nobody finds.

use std::future::ready;
use std::time::Duration;

use futures::stream::{self, StreamExt as _, TryStreamExt as _};

use super::super::WORKER_CALL_DEADLINE;
use super::super::cleanup::CleanupError;
use super::super::observed::Observed;
use super::unresponsive::UnresponsiveWorkers;
use super::{LOST_PAUSE, RESYNC, Reconciler};
use crawler_model::resource::Deleting;
use crawler_process::telemetry;
use crawler_store::catalog::{Versioned, encode};
use crawler_store::{Guard, StoreError, Txn};

/// Pause before an owner that still writes is asked again.
const OWNER_PAUSE: Duration = Duration::from_millis(500);
/// Pause before a step that the data root refused is tried again.
const DATA_PAUSE: Duration = Duration::from_secs(10);
/// Deadline of one step at the data root. An unfinished step is tried again.
const DATA_DEADLINE: Duration = Duration::from_secs(30);
/// Largest number of deletions that do a step at the same time.
const DELETIONS_AT_ONCE: usize = 8;

/// Reason why a step has to wait.
#[derive(Debug, thiserror::Error)]
enum StepError {
    #[error(transparent)]
    Cleanup(#[from] CleanupError),
    #[error("the data root gave no answer in {} s", DATA_DEADLINE.as_secs())]
    Slow(#[from] tokio::time::error::Elapsed),
}

/// One pass over all deletions.
struct Pass<'a> {
    observed: &'a Observed,
    unresponsive: &'a UnresponsiveWorkers,
}

impl Pass<'_> {
    /// Returns how long an owner that may still write is not asked, or `None` if there is no such owner.
    fn owner_pause(&self, deleting: &Deleting) -> Option<Duration> {
        if deleting.stopped_at.is_some() || self.unresponsive.is_empty() {
            return None;
        }
        let owners = deleting.owners.iter();
        let mut alive = owners.filter(|owner| self.observed.is_alive(owner));
        alive.find_map(|owner| self.unresponsive.left(&owner.node))
    }
}

impl Reconciler {
    /// Does the next step of every deleted resource that is due. Returns the time until the next look.
    pub(super) async fn delete_due(
        &self,
        observed: &Observed,
        unresponsive: &UnresponsiveWorkers,
    ) -> Result<Duration, StoreError> {
        let now = self.parts.clock.unix_millis();
        unresponsive.retain(|worker| observed.workers.contains_key(worker));
        let pass = Pass {
            observed,
            unresponsive,
        };
        // Deletions that were stopped later only wait for the age of their frontiers.
        let min_age = self.parts.deletion.frontier_min_age;
        let min_age = u64::try_from(min_age.as_millis()).unwrap_or(u64::MAX);
        let stopped_until = now.checked_sub(min_age);
        let next = observed.deletions.first_after(stopped_until);
        let left = next.map(|at| at.saturating_add(min_age).saturating_sub(now));
        let mut first = left.map_or(RESYNC, |left| Duration::from_millis(left).min(RESYNC));
        let mut steps = Vec::new();
        for present in observed.deletions.due(stopped_until) {
            // There may be very many deletions with an unresponsive owner, and none of them can go on.
            match pass.owner_pause(&present.value) {
                Some(left) => first = first.min(left),
                None => steps.push(self.delete(&pass, present)),
            }
        }
        stream::iter(steps)
            .buffer_unordered(DELETIONS_AT_ONCE)
            .try_fold(first, |first, pause| ready(Ok(first.min(pause))))
            .await
    }

    /// Does the next step of one deletion. Returns the time until the next look.
    async fn delete(
        &self,
        pass: &Pass<'_>,
        present: &Versioned<Deleting>,
    ) -> Result<Duration, StoreError> {
        let deleting = &present.value;
        let id = deleting.id;
        if deleting.stopped_at.is_none() {
            return self.after_owners(pass, present).await;
        }
        if !deleting.items_cut {
            // A process that slept since before the deletion may have written more.
            let by = rand::random::<u64>() >> 2;
            let cut = match deleting.purge {
                true => in_time(self.parts.cleanup.delete_items(id)).await,
                // There is no deadline for the whole, however much waits: each of its steps has its own.
                false => self
                    .parts
                    .cleanup
                    .settle_items(id, by)
                    .await
                    .map_err(StepError::from),
            };
            let next = Deleting {
                items_cut: true,
                rest: (!deleting.purge).then_some(by),
                ..deleting.clone()
            };
            return self.step(present, cut, Some(next)).await;
        }
        if let Some(by) = deleting.rest {
            let published = in_time(self.parts.cleanup.publish_items(id, by)).await;
            if published.is_err() {
                return self.step(present, published, None).await;
            }
        }
        let deleted = in_time(self.parts.cleanup.delete_frontiers(id)).await;
        if let Ok(n) = deleted {
            tracing::info!(resource = %deleting.name, %id, n, "frontier removed");
        }
        self.step(present, deleted.map(drop), None).await
    }

    async fn after_owners(
        &self,
        pass: &Pass<'_>,
        present: &Versioned<Deleting>,
    ) -> Result<Duration, StoreError> {
        let deleting = &present.value;
        if let Some(pause) = self.until_asked_again(pass, deleting).await {
            return Ok(pause);
        }
        let mut removed = Ok(());
        if deleting.purge {
            removed = in_time(self.parts.cleanup.delete_items(deleting.id)).await;
        }
        let next = Deleting {
            stopped_at: Some(self.parts.clock.unix_millis()),
            ..deleting.clone()
        };
        self.step(present, removed, Some(next)).await
    }

    /// Asks the owners whether they still have the resource. Returns `None` if none of them has, and otherwise
    /// the time until the next question.
    async fn until_asked_again(&self, pass: &Pass<'_>, deleting: &Deleting) -> Option<Duration> {
        let Pass {
            observed,
            unresponsive,
        } = pass;
        for owner in &deleting.owners {
            let Some(node) = observed
                .workers
                .get(&owner.node)
                .filter(|_| observed.is_alive(owner))
            else {
                continue;
            };
            if let Some(left) = unresponsive.left(&node.id) {
                return Some(left);
            }
            let asked = tokio::time::timeout(
                WORKER_CALL_DEADLINE,
                self.parts.workers.status(node, Some(&deleting.name)),
            );
            match asked.await {
                Ok(Ok(crawls)) => {
                    unresponsive.forget(&node.id);
                    if crawls.iter().any(|crawl| crawl.id == deleting.id) {
                        return Some(OWNER_PAUSE);
                    }
                }
                Ok(Err(_)) | Err(_) => return Some(unresponsive.note(&node.id, OWNER_PAUSE)),
            }
        }
        None
    }

    /// Writes the result of a successful step: the next record, or the end of the deletion.
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
        let keys = self.parts.catalog.keys();
        let key = keys.deleting(deleting.id);
        let txn = Txn::new().guard(Guard::RevisionIs(key.clone(), present.revision));
        let txn = match next {
            Some(next) => txn.put(key, encode(&next)),
            None => {
                // A leader of an earlier version left the runs behind.
                let txn = txn.delete(key).delete(keys.runs(deleting.id));
                // A client repeats a call within seconds, not after all this time.
                deleting.requests.iter().fold(txn, |txn, request| {
                    txn.delete(keys.ended(&deleting.name, request))
                })
            }
        };
        match self.commit(txn).await? {
            // The next step may be due already.
            true => Ok(Duration::ZERO),
            false => Ok(LOST_PAUSE),
        }
    }
}

/// Ends a step that takes too long; it is tried again later.
async fn in_time<T, E>(step: impl Future<Output = Result<T, E>>) -> Result<T, StepError>
where
    StepError: From<E>,
{
    Ok(tokio::time::timeout(DATA_DEADLINE, step).await??)
}

#[cfg(test)]
pub(super) mod tests;
