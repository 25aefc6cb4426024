//! Errors of the store, whatever the backend.

use super::entry::VALUE_MAX;

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
    /// A transaction exceeds [`TXN_MAX`](crate::TXN_MAX) or [`TXN_BYTES_MAX`](crate::TXN_BYTES_MAX).
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
