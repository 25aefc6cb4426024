//! Transactions as callers request them, and the limits that hold for each backend.

use std::collections::HashSet;

use bytes::Bytes;

use super::entry::{LeaseId, Revision, VALUE_MAX};
use super::error::StoreError;

/// Largest number of guards, and of changes, of one transaction.
pub const TXN_MAX: usize = 128;

/// Largest number of bytes that one transaction writes, keys and values together.
pub const TXN_BYTES_MAX: usize = 1 << 20;

/// Condition that must hold for a transaction to be carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Guard {
    /// The key does not exist.
    Absent(String),
    /// The key exists.
    Exists(String),
    /// The key's last write has this revision.
    RevisionIs(String, Revision),
    /// The key exists and was created at this revision: "I still lead".
    CreatedAt(String, Revision),
}

/// One change of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Writes the key. Under a lease, the key vanishes with the lease.
    Put {
        /// Full key.
        key: String,
        /// Value; the key and the value have at most [`VALUE_MAX`] bytes together.
        value: Bytes,
        /// Lease of the key. If `None`, the key stays until it is deleted.
        lease: Option<LeaseId>,
    },
    /// Deletes the key; nothing happens if it is absent.
    Delete {
        /// Full key.
        key: String,
    },
}

impl Change {
    /// Returns the key that is changed.
    pub fn key(&self) -> &str {
        match self {
            Change::Put { key, .. } | Change::Delete { key } => key,
        }
    }
}

/// Guards and changes, carried out together or not at all. A key is changed at most once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Txn {
    /// Conditions that must all hold.
    pub guards: Vec<Guard>,
    /// Changes that are all made.
    pub changes: Vec<Change>,
}

/// Outcome of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The transaction was carried out and is durable, at this revision.
    Done(Revision),
    /// The transaction was not carried out: the guard at this position did not hold.
    Lost(usize),
    /// The answer was lost, and the transaction may have been carried out. The record's write id shows whether
    /// it was.
    Unknown,
}

impl Txn {
    /// Creates a transaction without guards and changes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a guard.
    #[must_use]
    pub fn guard(mut self, guard: Guard) -> Self {
        self.guards.push(guard);
        self
    }

    /// Adds a put without lease.
    #[must_use]
    pub fn put(mut self, key: impl Into<String>, value: impl Into<Bytes>) -> Self {
        self.changes.push(Change::Put {
            key: key.into(),
            value: value.into(),
            lease: None,
        });
        self
    }

    /// Adds a put under a lease.
    #[must_use]
    pub fn put_leased(
        mut self,
        key: impl Into<String>,
        value: impl Into<Bytes>,
        lease: LeaseId,
    ) -> Self {
        self.changes.push(Change::Put {
            key: key.into(),
            value: value.into(),
            lease: Some(lease),
        });
        self
    }

    /// Adds a deletion.
    #[must_use]
    pub fn delete(mut self, key: impl Into<String>) -> Self {
        self.changes.push(Change::Delete { key: key.into() });
        self
    }

    /// True if a second try is refused once the first was carried out: each changed key is guarded by its
    /// revision or its absence. Such a transaction may be tried again if its answer was lost.
    pub fn may_be_repeated(&self) -> bool {
        self.changes.iter().all(|change| {
            self.guards.iter().any(|guard| match guard {
                Guard::Absent(key) | Guard::RevisionIs(key, _) => key == change.key(),
                Guard::Exists(_) | Guard::CreatedAt(_, _) => false,
            })
        })
    }

    /// Refuses transactions that no backend accepts, before anything is tried.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let counts = [
            ("guards", self.guards.len()),
            ("changes", self.changes.len()),
        ];
        for (what, n) in counts {
            if n > TXN_MAX {
                let max = TXN_MAX;
                return Err(StoreError::TxnTooLarge { what, n, max });
            }
        }
        let mut seen = HashSet::with_capacity(self.changes.len());
        let mut n_bytes_in_all = 0;
        for change in &self.changes {
            let (key, n_value) = match change {
                Change::Put { key, value, .. } => (key, value.len()),
                Change::Delete { key } => (key, 0),
            };
            let n_bytes = key.len() + n_value;
            if n_bytes > VALUE_MAX {
                let key = key.clone();
                return Err(StoreError::TooLarge { key, n_bytes });
            }
            if !seen.insert(key) {
                return Err(StoreError::ChangedTwice { key: key.clone() });
            }
            n_bytes_in_all += n_bytes;
        }
        if n_bytes_in_all > TXN_BYTES_MAX {
            return Err(StoreError::TxnTooLarge {
                what: "bytes",
                n: n_bytes_in_all,
                max: TXN_BYTES_MAX,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_refused_the_second_time_is_repeated() {
        let (a, b) = (|| "/a".to_owned(), || "/b".to_owned());
        let guarded = Txn::new().guard(Guard::RevisionIs(a(), Revision(3)));
        assert!(guarded.clone().put("/a", "1").may_be_repeated());
        assert!(guarded.clone().delete("/a").may_be_repeated());
        let both = guarded.clone().guard(Guard::Absent(b()));
        assert!(both.put("/a", "1").put("/b", "1").may_be_repeated());
        assert!(!guarded.put("/a", "1").put("/b", "1").may_be_repeated());
        assert!(!Txn::new().put("/a", "1").may_be_repeated());
        let exists = Txn::new().guard(Guard::Exists(a())).put("/a", "1");
        assert!(!exists.may_be_repeated());
        let leads = Txn::new().guard(Guard::CreatedAt(a(), Revision(1)));
        assert!(!leads.put("/a", "1").may_be_repeated());
    }
}
