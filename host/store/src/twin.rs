//! Store in memory that keeps the whole contract, for simulations. Whatever lies between it and its callers is
//! for them to add.
//!
//! Watches read one history with a cursor each, so that a reader may be as late as it likes; a reader that is
//! later than the history is long starts over.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{
    Entry, LeaseId, Listing, Outcome, Revision, Store, StoreError, Txn, Watch, WatchEvent,
};
use crawler_process::task::{TaskScope, process};

mod state;
#[cfg(test)]
mod tests;

pub use state::{CommittedTxn, Stored, entry};
use state::{Lease, Observer, State};

/// Store that all connections share. Cheap to clone.
#[derive(Clone)]
pub struct StoreTwin {
    state: Arc<Mutex<State>>,
    /// Revision of the last write, for readers that wait for another.
    present: Arc<watch::Sender<Revision>>,
    /// Signal that the deadline of a lease has changed.
    deadlines: Arc<watch::Sender<()>>,
    observer: Arc<Mutex<Option<Observer>>>,
    _leases: Arc<TaskScope>,
}

/// Position of one watch in the history.
#[derive(Debug, Clone)]
pub struct Cursor {
    prefix: String,
    /// The last revision it has seen.
    seen: Revision,
    starts_over: bool,
}

impl Default for StoreTwin {
    fn default() -> Self {
        Self::new()
    }
}

impl StoreTwin {
    pub fn new() -> Self {
        let state: Arc<Mutex<State>> = Arc::default();
        let present = Arc::new(watch::Sender::new(Revision(0)));
        let (deadlines, changed) = watch::channel(());
        let leases = Arc::new(TaskScope::new());
        let twin = Self {
            state,
            present,
            deadlines: Arc::new(deadlines),
            observer: Arc::default(),
            _leases: leases.clone(),
        };
        let (state, present) = (twin.state.clone(), twin.present.clone());
        let observer = twin.observer.clone();
        process::outside(|| {
            leases.spawn("leases", end_leases(state, present, observer, changed));
        });
        twin
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Reports everything that is carried out, in order.
    pub fn observe(&self, observer: Observer) {
        *self.observer.lock().unwrap() = Some(observer);
    }

    /// Makes leases that are granted from now on end this much later than they may be counted on.
    pub fn set_lateness(&self, lateness: Duration) {
        self.lock().lateness = lateness;
    }

    /// Passes the present entries to `inspect`.
    pub fn inspect<T>(&self, inspect: impl FnOnce(&BTreeMap<String, Stored>) -> T) -> T {
        inspect(&self.lock().entries)
    }

    pub fn apply(&self, author: &str, txn: Txn) -> Result<Outcome, StoreError> {
        txn.check()?;
        let outcome = {
            let observer = self.observer.lock().unwrap();
            self.lock().apply(author, txn, observer.as_ref())?
        };
        self.tell();
        Ok(outcome)
    }

    pub fn grant(&self, ttl: Duration) -> LeaseId {
        let id = {
            let mut state = self.lock();
            state.n_leases += 1;
            let lease = Lease {
                ttl,
                lateness: state.lateness,
                deadline: Instant::now() + ttl + state.lateness,
            };
            let id = state.n_leases;
            state.leases.insert(id, lease);
            LeaseId(id)
        };
        self.deadlines.send_replace(());
        id
    }

    pub fn renew(&self, id: LeaseId) -> Result<(), StoreError> {
        let now = Instant::now();
        let mut state = self.lock();
        let lease = state.leases.get_mut(&id.0).filter(|l| now < l.deadline);
        let lease = lease.ok_or(StoreError::LeaseGone)?;
        lease.deadline = now + lease.ttl + lease.lateness;
        Ok(())
    }

    pub fn revoke(&self, author: &str, id: LeaseId) {
        {
            let observer = self.observer.lock().unwrap();
            self.lock().end_lease(id, author, observer.as_ref());
        }
        self.tell();
    }

    pub fn forget(&self, keep: u64) {
        self.lock().forget(keep);
    }

    pub fn listing(&self, prefix: &str) -> Listing {
        self.lock().list(prefix)
    }

    /// Creates a watch of the changes after `from`.
    pub fn cursor(&self, prefix: &str, from: Revision) -> Cursor {
        let state = self.lock();
        Cursor {
            prefix: prefix.to_owned(),
            seen: from.min(state.revision),
            starts_over: from > state.revision,
        }
    }

    /// Returns the events of the next revision that changes something for this watch, if there is one.
    pub fn next_events(&self, cursor: &mut Cursor) -> Option<Vec<WatchEvent>> {
        let state = self.lock();
        if cursor.starts_over || cursor.seen < state.forgotten {
            (cursor.starts_over, cursor.seen) = (false, state.revision);
            return Some(vec![WatchEvent::StartOver]);
        }
        let after = Revision(cursor.seen.0 + 1);
        for (revision, events) in state.history.range(after..) {
            cursor.seen = *revision;
            let below = |event: &&WatchEvent| key_of(event).starts_with(&cursor.prefix);
            let events: Vec<WatchEvent> = events.iter().filter(below).cloned().collect();
            if !events.is_empty() {
                return Some(events);
            }
        }
        None
    }

    /// Returns a signal that there may be events.
    pub fn present(&self) -> watch::Receiver<Revision> {
        self.present.subscribe()
    }

    fn tell(&self) {
        let revision = self.lock().revision;
        self.present.send_replace(revision);
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn end_leases(
    state: Arc<Mutex<State>>,
    present: Arc<watch::Sender<Revision>>,
    observer: Arc<Mutex<Option<Observer>>>,
    mut changed: watch::Receiver<()>,
) {
    loop {
        let (now, next) = (Instant::now(), {
            let state = lock(&state);
            let due = state.leases.iter().map(|(id, lease)| (lease.deadline, *id));
            due.min()
        });
        match next {
            Some((deadline, id)) if deadline <= now => {
                let revision = {
                    let observer = observer.lock().unwrap();
                    let mut state = lock(&state);
                    state.end_lease(LeaseId(id), "", observer.as_ref());
                    state.revision
                };
                present.send_replace(revision);
            }
            Some((deadline, _)) => {
                tokio::select! {
                    biased;
                    () = tokio::time::sleep_until(deadline) => {}
                    changed = changed.changed() => if changed.is_err() { return },
                }
            }
            None => {
                if changed.changed().await.is_err() {
                    return;
                }
            }
        }
    }
}

fn key_of(event: &WatchEvent) -> &str {
    match event {
        WatchEvent::Put(entry) => &entry.key,
        WatchEvent::Delete { key, .. } => key,
        WatchEvent::StartOver => "",
    }
}

/// Watch without anything between it and the store.
struct Direct {
    twin: StoreTwin,
    cursor: Cursor,
    present: watch::Receiver<Revision>,
    pending: Vec<WatchEvent>,
}

#[async_trait]
impl Watch for Direct {
    async fn next(&mut self) -> Result<WatchEvent, StoreError> {
        loop {
            if !self.pending.is_empty() {
                return Ok(self.pending.remove(0));
            }
            self.present.mark_unchanged();
            match self.twin.next_events(&mut self.cursor) {
                Some(events) => self.pending = events,
                None => self
                    .present
                    .changed()
                    .await
                    .map_err(|_| StoreError::Unavailable {
                        why: "it has ended".to_owned(),
                    })?,
            }
        }
    }
}

#[async_trait]
impl Store for StoreTwin {
    async fn get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        Ok(self.inspect(|entries| entries.get(key).map(|stored| entry(key, stored))))
    }

    async fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
        Ok(self.listing(prefix))
    }

    async fn commit(&self, txn: Txn) -> Result<Outcome, StoreError> {
        self.apply("direct", txn)
    }

    async fn watch(&self, prefix: &str, from: Revision) -> Result<Box<dyn Watch>, StoreError> {
        Ok(Box::new(Direct {
            twin: self.clone(),
            cursor: self.cursor(prefix, from),
            present: self.present(),
            pending: Vec::new(),
        }))
    }

    async fn grant_lease(&self, ttl: Duration) -> Result<LeaseId, StoreError> {
        Ok(self.grant(ttl))
    }

    async fn renew_lease(&self, lease: LeaseId) -> Result<(), StoreError> {
        self.renew(lease)
    }

    async fn revoke_lease(&self, lease: LeaseId) -> Result<(), StoreError> {
        self.revoke("direct", lease);
        Ok(())
    }

    async fn compact(&self, keep: u64) -> Result<(), StoreError> {
        self.forget(keep);
        Ok(())
    }
}
