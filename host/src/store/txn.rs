//! Transactions as they are asked for, and the limits that hold for each backend.

use std::collections::HashSet;

use bytes::Bytes;

use super::{LeaseId, Revision, StoreError, VALUE_MAX};

/// Guards of one transaction, and changes of one.
pub const TXN_MAX: usize = 128;

/// Bytes that one transaction writes, keys and values together.
pub const TXN_BYTES_MAX: usize = 1 << 20;

/// What must hold for a transaction to be carried out.
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
    /// Writes the key; under a lease it vanishes with it.
    Put {
        /// The whole key.
        key: String,
        /// At most [`VALUE_MAX`] bytes.
        value: Bytes,
        /// None: the key stays until it is deleted.
        lease: Option<LeaseId>,
    },
    /// Deletes the key; nothing happens where it is absent.
    Delete {
        /// The whole key.
        key: String,
    },
}

impl Change {
    /// The key that is changed.
    pub fn key(&self) -> &str {
        match self {
            Change::Put { key, .. } | Change::Delete { key } => key,
        }
    }
}

/// Guards and changes, carried out together or not at all. A key is changed at most once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Txn {
    /// All must hold.
    pub guards: Vec<Guard>,
    /// All are made.
    pub changes: Vec<Change>,
}

impl Txn {
    /// Nothing guarded, nothing changed.
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

    /// Whether a second try is refused once the first was carried out: each changed key is guarded
    /// by its own revision or absence. Such a one may be tried again when its answer was lost.
    pub fn may_be_repeated(&self) -> bool {
        self.changes.iter().all(|change| {
            self.guards.iter().any(|guard| match guard {
                Guard::Absent(key) | Guard::RevisionIs(key, _) => key == change.key(),
                Guard::Exists(_) | Guard::CreatedAt(_, _) => false,
            })
        })
    }

    /// What every backend refuses before anything is tried.
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
