//! The store: small, strongly consistent records that masters and workers coordinate by.
//!
//! One contract, kept by every backend and checked by one suite (`conformance`):
//!
//! - every write increases one revision, and a value carries the revision of its write;
//! - [`Store::list`] returns the revision it saw, and a watch from there misses nothing;
//! - [`Store::commit`] is the only write operation: all guards hold and all changes are made, or none;
//! - a watch yields changes in order, or [`WatchEvent::StartOver`], after which the reader lists again;
//! - the keys of a lease vanish together, when it is revoked or not renewed in time.
//!
//! The store never holds pages, URLs or plugin bytes. A key and its value have at most [`VALUE_MAX`] bytes
//! together; a transaction has at most [`TXN_MAX`] guards and as many changes, and [`TXN_BYTES_MAX`] bytes in
//! all.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

pub mod catalog;
pub mod changes;
#[cfg(any(test, feature = "testing"))]
#[allow(missing_docs, clippy::unwrap_used, reason = "code of tests")]
pub mod conformance;
pub mod election;
pub mod embedded;
pub mod etcd;
pub mod ids;
pub mod keys;
pub mod lease;
mod txn;

pub use self::txn::{Change, Guard, TXN_BYTES_MAX, TXN_MAX, Txn};

/// Largest number of bytes of one value; larger ones are refused before anything is written.
pub const VALUE_MAX: usize = 256 << 10;

/// Number of a write. 0 is before the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Revision(pub u64);

/// Id of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeaseId(pub u64);

/// A key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Full key.
    pub key: String,
    /// Value, as written.
    pub value: Bytes,
    /// Revision of the write that created the key.
    pub created: Revision,
    /// Revision of the last write to the key.
    pub revision: Revision,
}

/// All keys with a prefix at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Entries in the order of their keys.
    pub entries: Vec<Entry>,
    /// Revision of that moment; a watch from here misses nothing.
    pub revision: Revision,
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

/// Event that a watch reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchEvent {
    /// The key was written.
    Put(Entry),
    /// The key was deleted, or its lease ended.
    Delete {
        /// Full key.
        key: String,
        /// Revision of the deletion.
        revision: Revision,
    },
    /// Changes were missed: the reader lists again and compares. The watch then continues with later changes.
    StartOver,
}

/// Changes below one prefix, in order. Dropping it ends the watch.
#[async_trait]
pub trait Watch: Send {
    /// Returns the next change. Waits until there is one; cancelling the wait loses nothing.
    async fn next(&mut self) -> Result<WatchEvent, StoreError>;
}

/// Receiver of a listing, entry by entry.
pub trait ListingVisitor: Send {
    /// Begins the listing, again if the store had to start over. Earlier entries are void.
    fn begin(&mut self);

    /// Takes an entry. Entries come in the order of their keys.
    fn entry(&mut self, entry: Entry);
}

/// Operations of a store, with the contract described at the top of this crate.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Returns the newest value of a key.
    async fn get(&self, key: &str) -> Result<Option<Entry>, StoreError>;

    /// Lists all keys that start with `prefix`, at one revision.
    async fn list(&self, prefix: &str) -> Result<Listing, StoreError>;

    /// Lists the first `max` keys with `prefix` that come after the key `after`.
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

    /// Passes all keys with `prefix` to `visitor`, without holding them all at the same time. Returns the
    /// revision.
    async fn list_into(
        &self,
        prefix: &str,
        visitor: &mut dyn ListingVisitor,
    ) -> Result<Revision, StoreError> {
        let listing = self.list(prefix).await?;
        visitor.begin();
        for entry in listing.entries {
            visitor.entry(entry);
        }
        Ok(listing.revision)
    }

    /// Carries the transaction out if all guards hold. It is durable when the answer comes.
    async fn commit(&self, txn: Txn) -> Result<Outcome, StoreError>;

    /// Watches the changes below `prefix` that come after `from`.
    async fn watch(&self, prefix: &str, from: Revision) -> Result<Box<dyn Watch>, StoreError>;

    /// Grants a new lease that lives for `ttl` unless renewed.
    async fn grant_lease(&self, ttl: Duration) -> Result<LeaseId, StoreError>;

    /// Gives the lease its full time again. Returns [`StoreError::LeaseGone`] if it has ended.
    async fn renew_lease(&self, lease: LeaseId) -> Result<(), StoreError>;

    /// Ends the lease and deletes its keys. Succeeds if it has already ended.
    async fn revoke_lease(&self, lease: LeaseId) -> Result<(), StoreError>;

    /// Forgets the changes that are more than `keep` revisions old. Records stay; a watch that begins before
    /// them is told to start over.
    async fn compact(&self, keep: u64) -> Result<(), StoreError>;
}

/// Error of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process uses the folder.
    #[error(
        "the state in {folder} is in use by process {holder}; stop it, or choose another folder with --data"
    )]
    Locked {
        /// Path of the folder.
        folder: String,
        /// Process id of the other process, or "unknown".
        holder: String,
    },
    /// The folder cannot be used at all.
    #[error(
        "cannot keep the state in {folder}; name a folder that this user can write to with --data"
    )]
    Folder {
        /// Path of the folder.
        folder: String,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// The log was written by a later version.
    #[error(
        "the store's log {path} has format {found} and this version knows {known}; use the version that wrote it"
    )]
    Format {
        /// Path of the log.
        path: String,
        /// Format of the log.
        found: u32,
        /// Newest format that this version can read.
        known: u32,
    },
    /// A file of the folder cannot be used.
    #[error("cannot {doing} {path}")]
    Io {
        /// Verb for the operation: "write", "open".
        doing: &'static str,
        /// Path of the file.
        path: String,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// The log does not contain what was written.
    #[error(
        "the store's log {path} is damaged at byte {offset}: {why}; restore the folder from a copy, or start anew in another one with --data"
    )]
    Damaged {
        /// Path of the log.
        path: String,
        /// Offset of the fault in bytes.
        offset: u64,
        /// Description of the fault.
        why: String,
    },
    /// A record does not decode.
    #[error("record {key} does not decode: {why}")]
    Record {
        /// Full key.
        key: String,
        /// Message of the decoder.
        why: String,
    },
    /// A key and its value have more than [`VALUE_MAX`] bytes.
    #[error("record {key} has {n_bytes} bytes; at most {VALUE_MAX} are allowed")]
    TooLarge {
        /// Full key.
        key: String,
        /// Number of bytes.
        n_bytes: usize,
    },
    /// A transaction exceeds [`TXN_MAX`] or [`TXN_BYTES_MAX`].
    #[error("the transaction has {n} {what}; at most {max} are allowed")]
    TxnTooLarge {
        /// Unit of the limit: "guards", "changes" or "bytes".
        what: &'static str,
        /// Number in the transaction.
        n: usize,
        /// Largest number that is allowed.
        max: usize,
    },
    /// A transaction changes a key more than once, which has no meaning.
    #[error("the transaction changes {key} twice")]
    ChangedTwice {
        /// Full key.
        key: String,
    },
    /// A write was made as the leader by a master that no longer leads.
    #[error("another master leads by now")]
    Deposed,
    /// The lease has ended.
    #[error("the lease has ended")]
    LeaseGone,
    /// The store does not answer at present.
    #[error("the store does not answer: {why}")]
    Unavailable {
        /// Fault that was observed.
        why: String,
    },
    /// No member of etcd answers.
    #[error("cannot reach etcd at {endpoints}: {why}; start it, or name others with --etcd")]
    Unreachable {
        /// Endpoints that were tried.
        endpoints: String,
        /// Last fault that was observed.
        why: String,
    },
    /// A member answers, but the cluster can neither write nor read the newest state.
    #[error("etcd at {endpoint} has no leader: {why}; more than half of its members must run")]
    NoLeader {
        /// Endpoint of the member.
        endpoint: String,
        /// Message of the member.
        why: String,
    },
    /// The database has reached its largest size; reading still works.
    #[error(
        "etcd at {endpoint} has no space left: {why}; compact and defragment it or raise its --quota-backend-bytes, then run etcdctl alarm disarm"
    )]
    NoSpace {
        /// Endpoint of the member.
        endpoint: String,
        /// Message of the member.
        why: String,
    },
    /// This user is not known to etcd, or may not do this.
    #[error(
        "etcd at {endpoint} refuses this user: {why}; check user and password-file in [etcd] of the config file"
    )]
    Denied {
        /// Endpoint of the member.
        endpoint: String,
        /// Message of the member.
        why: String,
    },
    /// The two sides do not accept each other's certificates.
    #[error(
        "no trusted connection to etcd at {endpoint}: {why}; check ca, certificate and key in [etcd] of the config file"
    )]
    Certificate {
        /// Endpoint of the member.
        endpoint: String,
        /// Fault that was observed.
        why: String,
    },
    /// The server's version lacks features that are used here.
    #[error("etcd at {endpoint} has version {found}; at least {needed} is needed, so update it")]
    VersionTooOld {
        /// Endpoint of the member.
        endpoint: String,
        /// Version that the server reports.
        found: String,
        /// Oldest version that is sufficient.
        needed: &'static str,
    },
    /// An address is not a valid endpoint.
    #[error("{endpoint:?} cannot be an endpoint of etcd: {why}; write --etcd http://HOST:PORT,…")]
    Endpoint {
        /// The address, as given.
        endpoint: String,
        /// Fault of the address.
        why: String,
    },
    /// The server refused the request for another reason.
    #[error("etcd at {endpoint} refuses a request: {why}")]
    Refused {
        /// Endpoint of the member.
        endpoint: String,
        /// Message of the member.
        why: String,
    },
}

impl StoreError {
    /// True if the same call may succeed later without anybody's help.
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

#[cfg(any(test, feature = "testing"))]
#[allow(missing_docs, clippy::unwrap_used, reason = "code of tests")]
pub mod racing_store;
#[cfg(any(test, feature = "testing"))]
#[allow(missing_docs, clippy::unwrap_used, reason = "code of tests")]
pub mod twin;
