//! The store: small, strongly consistent records that masters and workers coordinate by.
//!
//! One contract, kept by every backend and checked by one suite (`conformance`):
//!
//! - every write grows one revision; a value carries the revision it was written at;
//! - [`Store::list`] tells the revision it saw, and a watch from there misses nothing;
//! - there is one write verb, [`Store::commit`]: all guards hold and all changes are made, or none;
//! - a watch yields changes in order, or [`WatchEvent::StartOver`], after which the reader lists again;
//! - the keys of a lease vanish together, when it is revoked or not renewed in time.
//!
//! Never in here: pages, URLs, plugin bytes. A key with its value has at most [`VALUE_MAX`] bytes, a
//! transaction [`TXN_MAX`] guards and as many changes, and [`TXN_BYTES_MAX`] bytes in all.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

pub mod catalog;
pub mod changes;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod election;
pub mod embedded;
pub mod etcd;
pub mod ids;
pub mod keys;
pub mod lease;
mod txn;

pub use self::txn::{Change, Guard, TXN_BYTES_MAX, TXN_MAX, Txn};

/// Bytes of one value; larger ones are refused before anything is written.
pub const VALUE_MAX: usize = 256 << 10;

/// The number of a write. 0 is before the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Revision(pub u64);

/// A lease, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeaseId(pub u64);

/// A key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The whole key.
    pub key: String,
    /// As written.
    pub value: Bytes,
    /// Of the write that created the key.
    pub created: Revision,
    /// Of the last write to the key.
    pub revision: Revision,
}

/// All keys of a prefix at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// In the order of their keys.
    pub entries: Vec<Entry>,
    /// The moment; a watch from here misses nothing.
    pub revision: Revision,
}

/// What became of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Carried out and durable, at this revision.
    Done(Revision),
    /// Not carried out: this guard, by position, did not hold.
    Lost(usize),
    /// The answer was lost; it may have been carried out. The record's write id settles it.
    Unknown,
}

/// What a watch reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchEvent {
    /// The key was written.
    Put(Entry),
    /// The key was deleted, or its lease ended.
    Delete {
        /// The whole key.
        key: String,
        /// Of the deletion.
        revision: Revision,
    },
    /// Changes were missed: list again and compare. The watch goes on after this with later changes.
    StartOver,
}

/// Changes below one prefix, in order. Dropping it ends the watch.
#[async_trait]
pub trait Watch: Send {
    /// The next change. Waits until there is one; cancelling the wait loses nothing.
    async fn next(&mut self) -> Result<WatchEvent, StoreError>;
}

/// Who takes a listing piece by piece.
pub trait Listed: Send {
    /// It begins; again, where the store had to. What came before counts no more.
    fn begin(&mut self);

    /// One of its entries, in the order of their keys.
    fn entry(&mut self, entry: Entry);
}

/// The contract of this module's head, in calls.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// The newest value of a key.
    async fn get(&self, key: &str) -> Result<Option<Entry>, StoreError>;

    /// All keys that start with `prefix`, at one revision.
    async fn list(&self, prefix: &str) -> Result<Listing, StoreError>;

    /// The first `max` of them that come after this key.
    async fn list_after(
        &self,
        prefix: &str,
        after: &str,
        max: usize,
    ) -> Result<Listing, StoreError> {
        let mut listing = self.list(prefix).await?;
        listing.entries.retain(|entry| entry.key.as_str() > after);
        listing.entries.truncate(max);
        Ok(listing)
    }

    /// All of them, which need not be there at the same time. Returns the revision.
    async fn list_into(
        &self,
        prefix: &str,
        listed: &mut dyn Listed,
    ) -> Result<Revision, StoreError> {
        let listing = self.list(prefix).await?;
        listed.begin();
        for entry in listing.entries {
            listed.entry(entry);
        }
        Ok(listing.revision)
    }

    /// Carries the transaction out if all guards hold. Durable when answered.
    async fn commit(&self, txn: Txn) -> Result<Outcome, StoreError>;

    /// Changes below `prefix` that come after `from`.
    async fn watch(&self, prefix: &str, from: Revision) -> Result<Box<dyn Watch>, StoreError>;

    /// A new lease that lives this long unless renewed.
    async fn grant_lease(&self, ttl: Duration) -> Result<LeaseId, StoreError>;

    /// Gives the lease its full time again. [`StoreError::LeaseGone`] when it has ended.
    async fn renew_lease(&self, lease: LeaseId) -> Result<(), StoreError>;

    /// Ends the lease and deletes its keys. Ending one that has ended is fine.
    async fn revoke_lease(&self, lease: LeaseId) -> Result<(), StoreError>;

    /// Lets go of the changes that are more than `keep` revisions old. Records stay; a watch that
    /// begins before them is told to start over.
    async fn compact(&self, keep: u64) -> Result<(), StoreError>;
}

/// What can go wrong with the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process has the folder.
    #[error(
        "the state in {folder} is in use by process {holder}; stop it, or choose another folder with --data"
    )]
    Locked {
        /// The folder.
        folder: String,
        /// Its pid, or "unknown".
        holder: String,
    },
    /// The folder cannot be used at all.
    #[error(
        "cannot keep the state in {folder}; name a folder that this user can write to with --data"
    )]
    Folder {
        /// The folder.
        folder: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The log was written by a later version.
    #[error(
        "the store's log {path} has format {found} and this version knows {known}; use the version that wrote it"
    )]
    Format {
        /// The file.
        path: String,
        /// The format it has.
        found: u32,
        /// The one known here.
        known: u32,
    },
    /// A file of the folder cannot be used.
    #[error("cannot {doing} {path}")]
    Io {
        /// A verb: "write", "open".
        doing: &'static str,
        /// What was used.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The log is not what was written.
    #[error(
        "the store's log {path} is damaged at byte {offset}: {why}; restore the folder from a copy, or start anew in another one with --data"
    )]
    Damaged {
        /// The file.
        path: String,
        /// Where.
        offset: u64,
        /// What was found.
        why: String,
    },
    /// A record that does not decode.
    #[error("record {key} does not decode: {why}")]
    Record {
        /// The whole key.
        key: String,
        /// What the decoder said.
        why: String,
    },
    /// A value of more than [`VALUE_MAX`] bytes.
    #[error("record {key} has {n_bytes} bytes; at most {VALUE_MAX} are allowed")]
    TooLarge {
        /// The whole key.
        key: String,
        /// How many.
        n_bytes: usize,
    },
    /// A transaction of more than [`TXN_MAX`] or [`TXN_BYTES_MAX`].
    #[error("the transaction has {n} {what}; at most {max} are allowed")]
    TxnTooLarge {
        /// "guards", "changes" or "bytes".
        what: &'static str,
        /// How many.
        n: usize,
        /// The limit.
        max: usize,
    },
    /// A transaction that changes a key more than once, which has no meaning.
    #[error("the transaction changes {key} twice")]
    ChangedTwice {
        /// The whole key.
        key: String,
    },
    /// A write as the leader, by one that leads no longer.
    #[error("another master leads by now")]
    Deposed,
    /// The lease has ended.
    #[error("the lease has ended")]
    LeaseGone,
    /// The store does not answer now.
    #[error("the store does not answer: {why}")]
    Unavailable {
        /// What was seen.
        why: String,
    },
    /// No member of etcd answers.
    #[error("cannot reach etcd at {endpoints}: {why}; start it, or name others with --etcd")]
    Unreachable {
        /// Those that were tried.
        endpoints: String,
        /// What was seen last.
        why: String,
    },
    /// A member answers and the cluster can neither write nor read what is newest.
    #[error("etcd at {endpoint} has no leader: {why}; more than half of its members must run")]
    NoLeader {
        /// The member.
        endpoint: String,
        /// What it said.
        why: String,
    },
    /// The database is as large as it may get; reading still works.
    #[error(
        "etcd at {endpoint} has no space left: {why}; compact and defragment it or raise its --quota-backend-bytes, then run etcdctl alarm disarm"
    )]
    NoSpace {
        /// The member.
        endpoint: String,
        /// What it said.
        why: String,
    },
    /// Who we are is not known there, or may not do this.
    #[error(
        "etcd at {endpoint} refuses this user: {why}; check user and password-file in [etcd] of the config file"
    )]
    Denied {
        /// The member.
        endpoint: String,
        /// What it said.
        why: String,
    },
    /// The two sides do not accept each other's certificates.
    #[error(
        "no trusted connection to etcd at {endpoint}: {why}; check ca, certificate and key in [etcd] of the config file"
    )]
    Certificate {
        /// The member.
        endpoint: String,
        /// What was seen.
        why: String,
    },
    /// A server that lacks what is used here.
    #[error("etcd at {endpoint} has version {found}; at least {needed} is needed, so update it")]
    VersionTooOld {
        /// The member.
        endpoint: String,
        /// What it says of itself.
        found: String,
        /// The oldest that will do.
        needed: &'static str,
    },
    /// An address that is none.
    #[error("{endpoint:?} cannot be an endpoint of etcd: {why}; write --etcd http://HOST:PORT,…")]
    Endpoint {
        /// As given.
        endpoint: String,
        /// What is wrong with it.
        why: String,
    },
    /// The server refused the request for a reason of its own.
    #[error("etcd at {endpoint} refuses a request: {why}")]
    Refused {
        /// The member.
        endpoint: String,
        /// What it said.
        why: String,
    },
}

impl StoreError {
    /// Whether the same call may succeed later without anybody's help.
    pub fn is_transient(&self) -> bool {
        match self {
            StoreError::Unavailable { .. }
            | StoreError::Unreachable { .. }
            | StoreError::NoLeader { .. }
            | StoreError::NoSpace { .. } => true,
            StoreError::Locked { .. }
            | StoreError::Folder { .. }
            | StoreError::Format { .. }
            | StoreError::Io { .. }
            | StoreError::Damaged { .. }
            | StoreError::Record { .. }
            | StoreError::TooLarge { .. }
            | StoreError::TxnTooLarge { .. }
            | StoreError::ChangedTwice { .. }
            | StoreError::Deposed
            | StoreError::LeaseGone
            | StoreError::Denied { .. }
            | StoreError::Certificate { .. }
            | StoreError::VersionTooOld { .. }
            | StoreError::Endpoint { .. }
            | StoreError::Refused { .. } => false,
        }
    }
}

#[cfg(test)]
pub(crate) mod overtaken;
#[cfg(test)]
pub(crate) mod twin;
