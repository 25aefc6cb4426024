//! Embedded store of a single process: all records in memory, and every change first in a log on disk.
//!
//! A transaction is answered when its log frame is synced; transactions that arrive during a sync share the
//! next one. Readers see only durable records. When the log has grown by [`Settings::snapshot_bytes`], it is
//! replaced by a new one that starts with all keys.
//!
//! - Only one process uses the folder at a time, by a lock on a file in it that names the holder.
//! - A last frame that a crash cut short was never acknowledged and is dropped on open. Any other failed check
//!   is [`StoreError::Damaged`]: nothing is guessed.
//! - A write that fails is undone and the store continues, so a full disk costs only the transactions that did
//!   not fit. After a failed sync, the contents of the disk are unknown: its transactions are
//!   [`Outcome::Unknown`] and all later ones are refused until the store is opened again.
//! - Leases end with the process: keys under a lease are gone when the folder is opened again.
//!
//! One task makes all changes; it ends when the store is dropped, which releases the folder.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::log::Log;
use self::state::{SharedState, State};
use self::watch::QueueReader;
use self::writer::{Answer, Closed, Command, Files, QUEUE_MAX};
use super::{Entry, LeaseId, Listing, Outcome, Revision, Store, StoreError, Txn, Watch};
use crawler_process::retry::Backoff;
use crawler_process::task::TaskScope;

mod frame;
mod lock;
mod log;
mod settings;
mod state;
mod watch;
mod writer;

pub use self::settings::Settings;

/// A [`Store`] in a folder of this machine. Dropping it waits for the sync under way.
#[derive(Debug)]
pub struct EmbeddedStore {
    state: SharedState,
    files: Files,
    commands: mpsc::Sender<Command>,
    /// Task that makes changes, and one task for each lease, which ends the lease if it is not renewed.
    tasks: TaskScope,
}

impl EmbeddedStore {
    /// Returns the id of the process that has used this folder last; `None` if there was none. It may have ended. The
    /// folder is only looked at, so no other process notices.
    pub fn last_holder(folder: &Path) -> Result<Option<u32>, StoreError> {
        lock::last_holder(folder).map_err(|source| StoreError::Folder {
            folder: folder.display().to_string(),
            source,
        })
    }

    /// Opens the store of this folder, which is created if missing. This reads the whole log, so call it at
    /// start, not while requests wait, and within a tokio runtime.
    pub fn open(folder: &Path, settings: Settings) -> Result<Self, StoreError> {
        let folder_lock = lock::acquire(folder)?;
        let (log, replayed) = Log::open(folder, settings.snapshot_bytes)?;
        let state = SharedState::new(State::new(replayed, &settings));
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

    /// Returns a token that is cancelled when a task of the store has panicked: a bug, so the process should
    /// end.
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

    /// Does nothing: [`Settings::history_bytes`] bounds the history.
    async fn compact(&self, _keep: u64) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Waits until the lease is due and ends it. Repeats the try as often as necessary: a full disk may refuse it.
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
