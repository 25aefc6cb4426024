//! Task that makes all changes: it collects transactions, has them synced together, then makes them visible and
//! answers them.
//!
//! File access happens on the runtime's blocking threads, one operation at a time. With a paused clock, time
//! stands still meanwhile, which a dedicated thread would not offer to tests.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, oneshot};

use super::frame;
use super::log::{Appended, Log};
use super::state::{Batch, SharedState};
use crate::{LeaseId, Outcome, StoreError, Txn};

/// Largest number of transactions that wait for the log; further callers wait.
pub(super) const QUEUE_MAX: usize = 1024;

/// Number of bytes from which a batch is synced without waiting for more.
const BATCH_BYTES: usize = 4 << 20;

pub(super) type Answer = Result<Outcome, StoreError>;

/// Request to the task.
#[derive(Debug)]
pub(super) enum Command {
    /// Carries out a transaction.
    Commit {
        txn: Txn,
        reply: oneshot::Sender<Answer>,
    },
    /// Deletes the keys of a lease, and the lease.
    EndLease {
        lease: LeaseId,
        reply: oneshot::Sender<Answer>,
    },
}

/// Error after the task has ended because the store was closed.
#[derive(Debug)]
pub(super) struct Closed;

impl From<Closed> for StoreError {
    fn from(Closed: Closed) -> Self {
        StoreError::Unavailable {
            why: "it was closed".to_owned(),
        }
    }
}

/// The log with the lock on its folder, until the store is closed.
#[derive(Debug, Clone)]
pub(super) struct Files(Arc<Mutex<Option<(Log, std::fs::File)>>>);

impl Files {
    pub(super) fn new(log: Log, folder_lock: std::fs::File) -> Self {
        Self(Arc::new(Mutex::new(Some((log, folder_lock)))))
    }

    /// Waits for the write under way and releases the folder.
    pub(super) fn close(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Log, std::fs::File)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` on the log, on a thread where it may block.
    async fn with_log<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Log) -> T + Send + 'static,
    ) -> Result<T, Closed> {
        let files = self.clone();
        let worked = crawler_process::task::spawn_blocking(move || {
            let mut files = files.lock();
            files.as_mut().map(|(log, _lock)| work(log))
        });
        match worked.await {
            Ok(Some(result)) => Ok(result),
            Ok(None) => Err(Closed),
            Err(error) => {
                if error.is_panic() {
                    tracing::error!(%error, "writing the store's log panicked");
                }
                Err(Closed)
            }
        }
    }
}

/// Carries out commands until nobody can send one any more, or the store is closed.
pub(super) async fn run(files: Files, state: SharedState, mut commands: mpsc::Receiver<Command>) {
    while let Some(first) = commands.recv().await {
        let mut batch = Batch::after(&state.lock());
        let mut answers = Vec::new();
        let mut next = Some(first);
        while let Some(command) = next {
            answers.push(stage(&mut batch, &state, command));
            let full = batch.n_bytes >= BATCH_BYTES || answers.len() >= QUEUE_MAX;
            next = if full { None } else { commands.try_recv().ok() };
        }
        let write = move |log: &mut Log| {
            let appended = if batch.txns.is_empty() {
                Appended::Durable
            } else {
                log.append(&frame::txns(&batch.txns))
            };
            (batch, appended, log.path().to_owned(), log.wants_snapshot())
        };
        let Ok((batch, appended, path, wants_snapshot)) = files.with_log(write).await else {
            // Waiting callers see that their answer is dropped, and that the store is closed.
            return;
        };
        if matches!(appended, Appended::Durable) {
            state.lock().apply(batch);
        }
        for (reply, answer) in answers {
            // The caller may have stopped waiting; its transaction stays carried out.
            let _gone = reply.send(settle(answer, &appended, &path));
        }
        if wants_snapshot {
            let state = state.clone();
            let replace = move |log: &mut Log| {
                let (entries, revision) = {
                    let state = state.lock();
                    (state.lasting(), state.revision())
                };
                log.replace(&entries, revision);
            };
            if files.with_log(replace).await.is_err() {
                return;
            }
        }
    }
}

fn stage(
    batch: &mut Batch,
    state: &SharedState,
    command: Command,
) -> (oneshot::Sender<Answer>, Answer) {
    let state = state.lock();
    match command {
        Command::Commit { txn, reply } => (reply, batch.stage(&state, txn)),
        Command::EndLease { lease, reply } => (reply, Ok(batch.stage_lease_end(&state, lease))),
    }
}

/// Returns the answer of one command, given the outcome of the batch. A guard may have failed because of
/// another transaction in the same batch, so that even this answer is valid only if the batch is durable.
fn settle(answer: Answer, appended: &Appended, log: &std::path::Path) -> Answer {
    match (answer?, appended) {
        (outcome, Appended::Durable) => Ok(outcome),
        (_, Appended::Unknown) => Ok(Outcome::Unknown),
        (_, Appended::Refused(cause)) => Err(StoreError::Io {
            doing: "write",
            path: log.display().to_string(),
            source: copy_of(cause),
        }),
    }
}

/// Copies an [`io::Error`], which is not `Clone`: every caller of the batch gets one.
fn copy_of(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}
