//! Backups of a cluster: the records of its store and the objects of its data root, as they are at one moment, in one
//! folder.
//!
//! ```text
//! manifest.json    what the archive is of; it is written last, so an archive without it is incomplete
//! records.jsonl    a line for each key of the store, without those under leases
//! objects.jsonl    a line for each object of the data root, with its size and digest
//! data/…           the objects, at their paths
//! ```
//!
//! Store and data root have to fit, so a backup is taken while no node is there. That nobody wrote meanwhile is not
//! assumed: records and objects are listed again after the copy, and both lists must be those of before.
//!
//! A restore needs an empty store and an empty data root. It checks the whole archive first. Then it writes the objects
//! and, after all of them, the records; the id of the cluster is the last record. A process that starts too early finds
//! a store without this id, makes one, and is refused by the data root. A mark in the data root tells a restore that was
//! cut off from a root that is in use, so the same restore can be repeated.
//!
//! Objects are copied in pieces. Records are in memory all together, as they are in each master.

use crawler_data::DataRoot;
use crawler_model::crawl::UnixMillis;
use crawler_model::id::Digest;
use serde::{Deserialize, Serialize};

mod archive;
mod copy;
mod create;
mod error;
mod lines;
mod restore;
mod seen;
mod verify;

pub use archive::Archive;
pub use create::create;
pub use error::BackupError;
pub use restore::restore;

/// Format of archives that this version writes, and the newest one that it reads.
pub const FORMAT: u32 = 1;

/// Description of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Format of the archive.
    pub format: u32,
    /// Id of the cluster.
    pub cluster: String,
    /// Version of the program that made the archive.
    pub version: String,
    /// Time at which the archive was begun.
    pub taken_at: UnixMillis,
    /// Kind of the data root: items are kept in other files in a bucket than in a folder.
    pub root: RootKind,
    /// Revision of the store at which its keys were read.
    pub revision: u64,
    /// Records of the store.
    pub records: Listed,
    /// Objects of the data root.
    pub objects: Listed,
}

/// Kind of a data root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RootKind {
    /// A folder.
    Folder,
    /// A prefix of a bucket.
    Bucket,
}

impl RootKind {
    fn of(data: &DataRoot) -> Self {
        match data.folder() {
            Some(_) => Self::Folder,
            None => Self::Bucket,
        }
    }

    /// Returns the word for the kind.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Folder => "folder",
            Self::Bucket => "bucket",
        }
    }
}

/// File of lines, each of which describes one thing of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// Number of lines.
    pub n: u64,
    /// Number of bytes of all that the lines describe.
    pub n_bytes: u64,
    /// Digest of the file.
    pub sha256: Digest,
}

/// Observer of a copy: it is told the number of objects that are done, and of their bytes.
pub type Progress<'p> = &'p (dyn Fn(u64, u64) + Sync);

/// Line of a record.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RecordLine {
    key: String,
    #[serde(with = "hex")]
    value: Vec<u8>,
}

/// Line of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ObjectLine {
    path: String,
    n_bytes: u64,
    sha256: Digest,
}

#[cfg(test)]
mod tests;
