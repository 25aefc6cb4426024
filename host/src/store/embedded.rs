//! The store of a single process: everything in memory, every change in a log on disk first.
//!
//! A transaction is answered when its log frame is synced; those that arrive while a sync is under
//! way share the next one. Readers see what is durable and nothing else. When the log has grown by
//! [`Settings::snapshot_bytes`], it is replaced by a fresh one that starts with all keys.
//!
//! - One process has the folder at a time, by a lock on a file in it that names the holder.
//! - A last frame that a crash cut short was never acknowledged and is dropped on open. Whatever
//!   else does not check is [`StoreError::Damaged`]: nothing is guessed.
//! - A write that fails is taken back and the store goes on, so a full disk costs the transactions
//!   that did not fit. When a sync fails nobody knows what the disk holds: its transactions are
//!   [`Outcome::Unknown`] and all later ones are refused until the store is opened again.
//! - Leases end with the process: keys under one are not there when the folder is opened again.
//!
//! One task makes all changes; it ends when the store is dropped, and the folder is free then.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::log::Log;
use self::state::State;
use self::watch::QueueReader;
use self::writer::{Answer, Closed, Command, Files};
use super::{Entry, LeaseId, Listing, Outcome, Revision, Store, StoreError, Txn, Watch};
use crate::retry::Backoff;
use crate::task::TaskScope;

mod frame;
mod lock;
mod log;
mod state;
mod watch;
mod writer;

/// Transactions that wait for the log; more make their callers wait.
const QUEUE_MAX: usize = 1024;

/// Bounds of the embedded store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How much the log grows before it is replaced by a snapshot.
    pub snapshot_bytes: u64,
    /// How much of the latest changes is kept for watches that begin in the past.
    pub history_bytes: usize,
    /// Changes one watch may lag behind; with more it is told to start over.
    pub n_watch_buffer: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            snapshot_bytes: 16 << 20,
            history_bytes: 8 << 20,
            n_watch_buffer: 4096,
        }
    }
}

/// A [`Store`] in a folder of this machine. Dropping it waits for the sync under way.
#[derive(Debug)]
pub struct EmbeddedStore {
    state: SharedState,
    files: Files,
    commands: mpsc::Sender<Command>,
    /// The task that makes changes, and one a lease, which ends it when it was not renewed.
    tasks: TaskScope,
}

#[derive(Debug, Clone)]
struct SharedState(Arc<Mutex<State>>);

impl SharedState {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EmbeddedStore {
    /// Opens the store of this folder, which is created where it is missing. Reads the whole log:
    /// call it at start, not while requests wait, and within a tokio runtime.
    pub fn open(folder: &Path, settings: Settings) -> Result<Self, StoreError> {
        let folder_lock = lock::acquire(folder)?;
        let (log, replayed) = Log::open(folder, settings.snapshot_bytes)?;
        let state = SharedState(Arc::new(Mutex::new(State::new(replayed, &settings))));
        let files = Files::new(log, folder_lock);
        let (commands, received) = mpsc::channel(QUEUE_MAX);
        let tasks = TaskScope::new();
        tasks.spawn("store", writer::run(files.clone(), state.clone(), received));
        Ok(Self {
            state,
            files,
            commands,
            tasks,
        })
    }

    /// Cancelled when a task of the store has panicked: a bug, so the process should end.
    pub fn failed(&self) -> CancellationToken {
        self.tasks.failed()
    }
}

impl Drop for EmbeddedStore {
    fn drop(&mut self) {
        self.files.close();
        self.state.lock().close_watches();
    }
}

async fn ask(
    commands: &mpsc::Sender<Command>,
    command: impl FnOnce(oneshot::Sender<Answer>) -> Command,
) -> Answer {
    let (reply, answer) = oneshot::channel();
    let sent = commands.send(command(reply)).await;
    sent.map_err(|_closed| Closed)?;
    answer.await.map_err(|_dropped| Closed)?
}

#[async_trait]
impl Store for EmbeddedStore {
    async fn get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        Ok(self.state.lock().get(key))
    }

    async fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
        Ok(self.state.lock().list(prefix))
    }

    async fn commit(&self, txn: Txn) -> Result<Outcome, StoreError> {
        txn.check()?;
        ask(&self.commands, |reply| Command::Commit { txn, reply }).await
    }

    async fn watch(&self, prefix: &str, from: Revision) -> Result<Box<dyn Watch>, StoreError> {
        let queue = self.state.lock().watch(prefix, from);
        Ok(Box::new(QueueReader::new(queue)))
    }

    async fn grant_lease(&self, ttl: Duration) -> Result<LeaseId, StoreError> {
        let lease = self.state.lock().grant(ttl, Instant::now());
        let expiry = expire_in_time(lease, self.state.clone(), self.commands.clone());
        self.tasks
            .spawn(format!("expiry of lease {}", lease.0), expiry);
        Ok(lease)
    }

    async fn renew_lease(&self, lease: LeaseId) -> Result<(), StoreError> {
        self.state.lock().renew(lease, Instant::now())
    }

    async fn revoke_lease(&self, lease: LeaseId) -> Result<(), StoreError> {
        if self.state.lock().end(lease) {
            ask(&self.commands, |reply| Command::EndLease { lease, reply }).await?;
        }
        Ok(())
    }

    /// Nothing to do: [`Settings::history_bytes`] bounds what is kept of old changes.
    async fn compact(&self, _keep: u64) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Waits until the lease is due and ends it, as often as it takes: a full disk may refuse it.
async fn expire_in_time(lease: LeaseId, state: SharedState, commands: mpsc::Sender<Command>) {
    let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(10));
    loop {
        let Some(deadline) = state.lock().deadline(lease) else {
            return;
        };
        tokio::time::sleep_until(deadline).await;
        if !state.lock().end_if_due(lease, Instant::now()) {
            continue;
        }
        if let Err(error) = ask(&commands, |reply| Command::EndLease { lease, reply }).await {
            tracing::warn!(lease = lease.0, ?error, "cannot end a lease yet");
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }
}

#[cfg(test)]
mod tests;
