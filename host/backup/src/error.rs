//! Errors of backups.

use crawler_data::DataError;
use crawler_store::StoreError;
use object_store::Error as ObjectError;

use super::{FORMAT, RootKind};

/// Error of a backup, of its verification or of a restore.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The store cannot be read or written.
    #[error("cannot {doing} the store")]
    Store {
        /// Operation, such as "read".
        doing: &'static str,
        /// Cause.
        #[source]
        source: StoreError,
    },
    /// The data root cannot be read or written.
    #[error("cannot use the data root")]
    Data(#[from] DataError),
    /// An object cannot be copied.
    #[error("cannot {doing} {path} in {place}")]
    Object {
        /// Operation, such as "read".
        doing: &'static str,
        /// Path of the object.
        path: String,
        /// Place of the object: the archive or the data root.
        place: String,
        /// Cause.
        #[source]
        source: Box<ObjectError>,
    },
    /// A file of the archive cannot be read or written.
    #[error("cannot {doing} {path}")]
    File {
        /// Operation, such as "write".
        doing: &'static str,
        /// Path of the file.
        path: String,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// The folder for a new archive is in use.
    #[error("{folder} is not empty, and a backup needs a folder of its own")]
    NotEmpty {
        /// Path of the folder.
        folder: String,
    },
    /// The folder for a new archive is in the data root that it is to be a copy of.
    #[error("{folder} is in the data root {root}, and would be a part of its own backup")]
    Inside {
        /// Path of the folder.
        folder: String,
        /// Path of the data root.
        root: String,
    },
    /// The folder is no whole archive.
    #[error("{folder} has no manifest.json: it is no backup, or one that was cut off")]
    Incomplete {
        /// Path of the folder.
        folder: String,
    },
    /// The archive was made by a later version.
    #[error("the backup {folder} has format {found}, and this version knows {FORMAT}")]
    Format {
        /// Path of the archive.
        folder: String,
        /// Format of the archive.
        found: u32,
    },
    /// A file of the archive is not what was written.
    #[error("the backup {folder} is damaged: {}", .faults.join("; "))]
    Damaged {
        /// Path of the archive.
        folder: String,
        /// Faults that were found; the last one tells if there are more.
        faults: Vec<String>,
    },
    /// Nodes of the cluster are there.
    #[error("the cluster has nodes that run: {}", .nodes.join(", "))]
    Running {
        /// Ids of the nodes.
        nodes: Vec<String>,
    },
    /// The store has no cluster, or one whose restore has not finished.
    #[error("the store has no cluster, or one whose restore has not finished")]
    NoCluster,
    /// Store and data root do not belong together.
    #[error("the store is that of cluster {store}, and the data root that of {}", .data.as_deref().unwrap_or("none"))]
    Apart {
        /// Cluster of the store.
        store: String,
        /// Cluster of the data root.
        data: Option<String>,
    },
    /// Somebody wrote while the backup was taken.
    #[error("{what} changed while the backup was taken")]
    Changed {
        /// The thing that changed.
        what: String,
    },
    /// The data root is of another kind than that of the backup.
    #[error("the backup is of a data root in a {}, and this one is in a {}", .of.as_str(), .here.as_str())]
    OtherKind {
        /// Kind of the data root that was copied.
        of: RootKind,
        /// Kind of the data root to restore into.
        here: RootKind,
    },
    /// A restore needs an empty store.
    #[error("the store is in use: it has {key}")]
    StoreUsed {
        /// A key that is there.
        key: String,
    },
    /// A restore needs an empty data root.
    #[error("the data root is in use: it has {path}")]
    RootUsed {
        /// Path of an object that is there.
        path: String,
    },
    /// Another restore into this data root has not finished.
    #[error("the restore of another backup into this data root has not finished")]
    OtherRestore,
    /// It is not known whether some records were written.
    #[error("the store did not tell whether it has written records")]
    Unknown,
}

impl BackupError {
    /// Returns the way out; empty if the message says it all.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Store { .. } | Self::Data(_) | Self::Object { .. } | Self::File { .. } => "",
            Self::NotEmpty { .. } => "name a folder that does not exist yet, or remove this one",
            Self::Inside { .. } => "name a folder elsewhere",
            Self::Incomplete { .. } => "name the folder that `crawler backup` has written",
            Self::Format { .. } => "use the version that made it, or a later one",
            Self::Damaged { .. } => "use another backup",
            Self::Running { .. } => {
                "stop all masters and workers; one that was killed counts as there until --lease-ttl is over"
            }
            Self::NoCluster => "name the store with --etcd or --data, or repeat the restore",
            Self::Apart { .. } => "name the data root of this store with --data",
            Self::Changed { .. } => "stop all masters and workers, and take the backup again",
            Self::StoreUsed { .. } => {
                "restore into an etcd without keys of a crawler, or with --data into a new folder"
            }
            Self::RootUsed { .. } | Self::OtherRestore => {
                "name a data root that is empty with --data"
            }
            Self::OtherKind { .. } => "name a data root of the same kind with --data",
            Self::Unknown => "repeat the restore",
        }
    }

    /// Returns a function that makes the error of a file.
    pub(crate) fn file(
        doing: &'static str,
        path: &std::path::Path,
    ) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let path = path.display().to_string();
        move |source| Self::File {
            doing,
            path,
            source,
        }
    }
}
