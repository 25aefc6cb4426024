//! In-memory state of the store, and the trial of transactions against it.
//!
//! A [`Batch`] holds transactions that are about to be synced: new ones are tried against the state *and* the
//! batch, and the state takes the batch over only when the log has it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::settings::Settings;
use super::watch::{Feed, Queue};
use crate::{
    Change, Entry, Guard, LeaseId, Listing, Outcome, Revision, StoreError, Txn, WatchEvent,
};

/// The value of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) value: Bytes,
    pub(super) created: Revision,
    pub(super) revision: Revision,
    pub(super) lease: Option<LeaseId>,
}

/// A transaction whose guards held, with its actual changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Committed {
    pub(super) revision: Revision,
    pub(super) made: Vec<AppliedChange>,
}

/// One actual change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AppliedChange {
    Put(String, Stored),
    Delete(String),
}

/// Keys and revision as read from the log.
#[derive(Debug, Default)]
pub(super) struct Replayed {
    pub(super) entries: BTreeMap<String, Stored>,
    pub(super) revision: Revision,
}

/// State that readers see.
#[derive(Debug)]
pub(super) struct State {
    entries: BTreeMap<String, Stored>,
    revision: Revision,
    leases: HashMap<LeaseId, Lease>,
    next_lease: u64,
    feed: Feed,
}

#[derive(Debug)]
struct Lease {
    ttl: Duration,
    deadline: Instant,
    /// True once the keys of the lease are about to be deleted. No key is put under it any more.
    ended: bool,
}

/// State that the task and the readers share. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct SharedState(Arc<Mutex<State>>);

impl SharedState {
    pub(super) fn new(state: State) -> Self {
        Self(Arc::new(Mutex::new(state)))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    pub(super) fn new(replayed: Replayed, settings: &Settings) -> Self {
        Self {
            feed: Feed::new(replayed.revision, settings),
            entries: replayed.entries,
            revision: replayed.revision,
            leases: HashMap::new(),
            // Leases do not outlive the process. A number of an earlier process must not match by chance.
            next_lease: u64::from(rand::random::<u32>()) << 24,
        }
    }

    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    pub(super) fn get(&self, key: &str) -> Option<Entry> {
        self.entries.get(key).map(|stored| entry(key, stored))
    }

    pub(super) fn list(&self, prefix: &str) -> Listing {
        let entries = self
            .entries
            .range::<str, _>((
                std::ops::Bound::Included(prefix),
                std::ops::Bound::Unbounded,
            ))
            .take_while(|(key, _)| key.starts_with(prefix))
            .map(|(key, stored)| entry(key, stored))
            .collect();
        Listing {
            entries,
            revision: self.revision,
        }
    }

    /// Returns all keys that outlive the process.
    pub(super) fn lasting(&self) -> Vec<(String, Stored)> {
        let lasting = self
            .entries
            .iter()
            .filter(|(_, stored)| stored.lease.is_none());
        lasting
            .map(|(key, stored)| (key.clone(), stored.clone()))
            .collect()
    }

    pub(super) fn watch(&mut self, prefix: &str, from: Revision) -> Arc<Queue> {
        self.feed.watch(prefix, from, self.revision)
    }

    pub(super) fn close_watches(&mut self) {
        self.feed.close();
    }

    pub(super) fn grant(&mut self, ttl: Duration, now: Instant) -> LeaseId {
        self.next_lease += 1;
        let lease = Lease {
            ttl,
            deadline: now + ttl,
            ended: false,
        };
        self.leases.insert(LeaseId(self.next_lease), lease);
        LeaseId(self.next_lease)
    }

    pub(super) fn renew(&mut self, id: LeaseId, now: Instant) -> Result<(), StoreError> {
        match self.leases.get_mut(&id) {
            Some(lease) if !lease.ended && now < lease.deadline => {
                lease.deadline = now + lease.ttl;
                Ok(())
            }
            Some(_) | None => Err(StoreError::LeaseGone),
        }
    }

    pub(super) fn deadline(&self, id: LeaseId) -> Option<Instant> {
        self.leases.get(&id).map(|lease| lease.deadline)
    }

    /// Ends a lease, which cannot be used from then on. Returns true if there is such a lease.
    pub(super) fn end(&mut self, id: LeaseId) -> bool {
        let lease = self.leases.get_mut(&id);
        lease.is_some_and(|lease| {
            lease.ended = true;
            true
        })
    }

    /// Does the same as [`State::end`] if the lease was not renewed in time.
    pub(super) fn end_if_due(&mut self, id: LeaseId, now: Instant) -> bool {
        let due = |lease: &Lease| lease.ended || lease.deadline <= now;
        self.leases.get(&id).is_some_and(due) && self.end(id)
    }

    /// Makes a batch visible that is in the log.
    pub(super) fn apply(&mut self, batch: Batch) {
        self.revision = batch.revision;
        for Committed { revision, made } in batch.txns {
            for made in made {
                let event = match made {
                    AppliedChange::Put(key, stored) => {
                        let event = WatchEvent::Put(entry(&key, &stored));
                        self.entries.insert(key, stored);
                        event
                    }
                    AppliedChange::Delete(key) => {
                        self.entries.remove(&key);
                        WatchEvent::Delete { key, revision }
                    }
                };
                self.feed.publish(revision, &event);
            }
        }
        for lease in batch.ended {
            self.leases.remove(&lease);
        }
    }

    fn is_live(&self, lease: LeaseId) -> bool {
        self.leases.get(&lease).is_some_and(|lease| !lease.ended)
    }
}

/// Transactions that have been tried and are not durable yet.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) txns: Vec<Committed>,
    /// Approximate number of bytes that these take in the log.
    pub(super) n_bytes: usize,
    revision: Revision,
    /// Keys as the batch leaves them; `None` stands for a deleted key.
    overlay: HashMap<String, Option<Stored>>,
    ended: Vec<LeaseId>,
}

impl Batch {
    pub(super) fn after(state: &State) -> Self {
        Self {
            txns: Vec::new(),
            n_bytes: 0,
            revision: state.revision,
            overlay: HashMap::new(),
            ended: Vec::new(),
        }
    }

    /// Tries a transaction and adds its changes.
    pub(super) fn stage(&mut self, state: &State, txn: Txn) -> Result<Outcome, StoreError> {
        for (n, guard) in txn.guards.iter().enumerate() {
            if !self.holds(state, guard) {
                return Ok(Outcome::Lost(n));
            }
        }
        let revision = Revision(self.revision.0 + 1);
        let mut made = Vec::with_capacity(txn.changes.len());
        for change in txn.changes {
            match change {
                Change::Put {
                    lease: Some(lease), ..
                } if !state.is_live(lease) => {
                    return Err(StoreError::LeaseGone);
                }
                Change::Put { key, value, lease } => {
                    let created = self.find(state, &key).map_or(revision, |old| old.created);
                    made.push(AppliedChange::Put(
                        key,
                        Stored {
                            value,
                            created,
                            revision,
                            lease,
                        },
                    ));
                }
                Change::Delete { key } => {
                    if self.find(state, &key).is_some() {
                        made.push(AppliedChange::Delete(key));
                    }
                }
            }
        }
        self.push(made);
        Ok(Outcome::Done(self.revision))
    }

    /// Adds the deletion of all keys of a lease.
    pub(super) fn stage_lease_end(&mut self, state: &State, lease: LeaseId) -> Outcome {
        let of_lease = |stored: &Stored| stored.lease == Some(lease);
        let in_state = state.entries.iter();
        let mut keys: Vec<String> = in_state
            .filter(|(key, stored)| of_lease(stored) && !self.overlay.contains_key(*key))
            .map(|(key, _)| key.clone())
            .collect();
        let in_batch = self.overlay.iter();
        let in_batch = in_batch.filter(|(_, stored)| stored.as_ref().is_some_and(of_lease));
        keys.extend(in_batch.map(|(key, _)| key.clone()));
        keys.sort_unstable();
        self.push(keys.into_iter().map(AppliedChange::Delete).collect());
        self.ended.push(lease);
        Outcome::Done(self.revision)
    }

    fn push(&mut self, made: Vec<AppliedChange>) {
        if made.is_empty() {
            return;
        }
        self.revision = Revision(self.revision.0 + 1);
        for made in &made {
            let (key, stored) = match made {
                AppliedChange::Put(key, stored) => (key, Some(stored.clone())),
                AppliedChange::Delete(key) => (key, None),
            };
            self.n_bytes += key.len() + stored.as_ref().map_or(0, |stored| stored.value.len());
            self.overlay.insert(key.clone(), stored);
        }
        self.txns.push(Committed {
            revision: self.revision,
            made,
        });
    }

    fn find<'a>(&'a self, state: &'a State, key: &str) -> Option<&'a Stored> {
        match self.overlay.get(key) {
            Some(staged) => staged.as_ref(),
            None => state.entries.get(key),
        }
    }

    fn holds(&self, state: &State, guard: &Guard) -> bool {
        match guard {
            Guard::Absent(key) => self.find(state, key).is_none(),
            Guard::Exists(key) => self.find(state, key).is_some(),
            Guard::RevisionIs(key, revision) => self
                .find(state, key)
                .is_some_and(|stored| stored.revision == *revision),
            Guard::CreatedAt(key, created) => self
                .find(state, key)
                .is_some_and(|stored| stored.created == *created),
        }
    }
}

fn entry(key: &str, stored: &Stored) -> Entry {
    Entry {
        key: key.to_owned(),
        value: stored.value.clone(),
        created: stored.created,
        revision: stored.revision,
    }
}
