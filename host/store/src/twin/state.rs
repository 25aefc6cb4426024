//! State of the twin, and how a transaction is carried out.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::{
    Change, Entry, Guard, LeaseId, Listing, Outcome, Revision, StoreError, Txn, WatchEvent,
};

/// The value of a key.
#[derive(Debug, Clone)]
pub struct Stored {
    pub value: Bytes,
    pub created: Revision,
    pub revision: Revision,
    pub lease: Option<LeaseId>,
}

/// Changes that were carried out at one revision.
#[derive(Debug)]
pub struct CommittedTxn<'a> {
    /// Process that asked for the changes; empty if a lease has ended.
    pub author: &'a str,
    pub guards: &'a [Guard],
    pub events: &'a [WatchEvent],
    /// Entries right before the changes.
    pub before: &'a BTreeMap<String, Stored>,
}

pub(super) type Observer = Box<dyn Fn(Revision, CommittedTxn<'_>) + Send + Sync>;

#[derive(Default)]
pub(super) struct State {
    pub(super) entries: BTreeMap<String, Stored>,
    pub(super) revision: Revision,
    /// Events of each revision that is not forgotten.
    pub(super) history: BTreeMap<Revision, Vec<WatchEvent>>,
    /// Revision up to which changes are no longer in the history.
    pub(super) forgotten: Revision,
    pub(super) leases: BTreeMap<u64, Lease>,
    pub(super) n_leases: u64,
    /// Time that leases granted from now on live beyond their `ttl`.
    pub(super) lateness: Duration,
}

pub(super) struct Lease {
    pub(super) ttl: Duration,
    pub(super) lateness: Duration,
    pub(super) deadline: Instant,
}

impl State {
    pub(super) fn apply(
        &mut self,
        author: &str,
        txn: Txn,
        observer: Option<&Observer>,
    ) -> Result<Outcome, StoreError> {
        let broken = txn.guards.iter().position(|guard| !self.holds(guard));
        if let Some(n) = broken {
            return Ok(Outcome::Lost(n));
        }
        let is_live = |lease: &LeaseId| self.leases.contains_key(&lease.0);
        let leases = txn.changes.iter().filter_map(|change| match change {
            Change::Put { lease, .. } => lease.as_ref(),
            Change::Delete { .. } => None,
        });
        if !leases.into_iter().all(is_live) {
            return Err(StoreError::LeaseGone);
        }
        let revision = Revision(self.revision.0 + 1);
        let mut events = Vec::new();
        let before = self.entries.clone();
        for change in txn.changes {
            match change {
                Change::Put { key, value, lease } => {
                    let created = self.entries.get(&key).map_or(revision, |old| old.created);
                    let stored = Stored {
                        value,
                        created,
                        revision,
                        lease,
                    };
                    events.push(WatchEvent::Put(entry(&key, &stored)));
                    self.entries.insert(key, stored);
                }
                Change::Delete { key } => {
                    if self.entries.remove(&key).is_some() {
                        events.push(WatchEvent::Delete { key, revision });
                    }
                }
            }
        }
        self.record(author, &txn.guards, events, &before, observer);
        Ok(Outcome::Done(self.revision))
    }

    pub(super) fn end_lease(&mut self, id: LeaseId, author: &str, observer: Option<&Observer>) {
        self.leases.remove(&id.0);
        let revision = Revision(self.revision.0 + 1);
        let before = self.entries.clone();
        let of_lease = |(_, stored): &(&String, &Stored)| stored.lease == Some(id);
        let keys: Vec<String> = before
            .iter()
            .filter(of_lease)
            .map(|(k, _)| k.clone())
            .collect();
        let mut events = Vec::new();
        for key in keys {
            self.entries.remove(&key);
            events.push(WatchEvent::Delete { key, revision });
        }
        self.record(author, &[], events, &before, observer);
    }

    fn record(
        &mut self,
        author: &str,
        guards: &[Guard],
        events: Vec<WatchEvent>,
        before: &BTreeMap<String, Stored>,
        observer: Option<&Observer>,
    ) {
        if events.is_empty() {
            return;
        }
        self.revision.0 += 1;
        if let Some(observer) = observer {
            let committed = CommittedTxn {
                author,
                guards,
                events: &events,
                before,
            };
            observer(self.revision, committed);
        }
        self.history.insert(self.revision, events);
    }

    fn holds(&self, guard: &Guard) -> bool {
        let is = |key, holds: fn(&Stored, Revision) -> bool, revision| {
            let stored: Option<&Stored> = self.entries.get::<String>(key);
            stored.is_some_and(|stored| holds(stored, revision))
        };
        match guard {
            Guard::Absent(key) => !self.entries.contains_key(key),
            Guard::Exists(key) => self.entries.contains_key(key),
            Guard::RevisionIs(key, revision) => is(key, |s, r| s.revision == r, *revision),
            Guard::CreatedAt(key, created) => is(key, |s, r| s.created == r, *created),
        }
    }

    pub(super) fn list(&self, prefix: &str) -> Listing {
        let from = self.entries.range(prefix.to_owned()..);
        let below = from.take_while(|(key, _)| key.starts_with(prefix));
        Listing {
            entries: below.map(|(key, stored)| entry(key, stored)).collect(),
            revision: self.revision,
        }
    }

    pub(super) fn forget(&mut self, keep: u64) {
        let forgotten = Revision(self.revision.0.saturating_sub(keep));
        self.forgotten = self.forgotten.max(forgotten);
        self.history = self.history.split_off(&Revision(self.forgotten.0 + 1));
    }
}

pub fn entry(key: &str, stored: &Stored) -> Entry {
    Entry {
        key: key.to_owned(),
        value: stored.value.clone(),
        created: stored.created,
        revision: stored.revision,
    }
}
