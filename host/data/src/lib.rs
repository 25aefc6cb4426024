//! The data root: the object store that holds everything large: plugin bytes, items, frontiers.
//!
//! The data root is a local folder. Other crates use it through [`object_store::ObjectStore`]. This crate
//! opens it, names its objects, and keeps plugin bytes and kept bodies by their digest. Every write is whole or absent,
//! and synced before it is answered.
//!
//! ```text
//! cluster.json                                which cluster the folder belongs to
//! plugins/<digest>.wasm                       immutable, verified on each read
//! frontiers/<resource id>/<shard>/…           see `frontier`
//! items/<resource id>/<shard>/…               line files, see `sink`
//! files/<resource id>/<2 digits>/<digest>     kept bodies, verified on each read
//! ```

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use object_store::path::Path as ObjectPath;
use object_store::{Error as ObjectError, ObjectStore, ObjectStoreExt as _, PutMode};
use serde::{Deserialize, Serialize};

use crawler_model::id::{Digest, ResourceId};
use guard::GuardedFolder;

mod files;
mod guard;
mod plugins;
mod probe;
mod removal;

pub use files::{FilePieces, KeptFiles};

/// Folder of plugin bytes.
const PLUGINS: &str = "plugins";
/// Folder of items.
const ITEMS: &str = "items";
/// Folder of kept bodies.
const FILES: &str = "files";
/// Folder of frontiers.
const FRONTIERS: &str = "frontiers";

/// Error of the data root.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// The folder cannot be used at all.
    #[error("cannot keep data in {folder}; name a folder that this user can write to with --data")]
    Folder {
        /// Folder as given.
        folder: String,
        /// Error of the system.
        #[source]
        source: std::io::Error,
    },
    /// The URL has a kind that is not supported.
    #[error(
        "cannot keep data in {url}: only a local folder is supported at present; name one with --data"
    )]
    Scheme {
        /// URL as given.
        url: String,
    },
    /// The file system does not keep the guarantees that a data root needs.
    #[error(
        "the file system of the data root {root} cannot keep data: {why}; name a folder on another one with --data"
    )]
    Unsafe {
        /// Path of the data root.
        root: String,
        /// Behaviour that the probe found.
        why: String,
    },
    /// An object in the folder cannot be read or written.
    #[error("cannot {doing} {path} in the data root {root}")]
    Object {
        /// Operation: "read" or "write".
        doing: &'static str,
        /// Path below the root.
        path: String,
        /// Path of the data root.
        root: String,
        /// Error of the object store.
        #[source]
        source: Box<ObjectError>,
    },
    /// The bytes are not those that were stored.
    #[error(
        "{path} in the data root {root} is damaged: its digest is {found}; push the plugin again"
    )]
    Damaged {
        /// Path below the root.
        path: String,
        /// Path of the data root.
        root: String,
        /// Digest of the bytes that are there.
        found: Digest,
    },
    /// There is no such kept file.
    #[error("no kept file {path} in the data root {root}")]
    NoFile {
        /// Path below the root.
        path: String,
        /// Path of the data root.
        root: String,
    },
    /// The bytes of a kept file are not those that were stored.
    #[error(
        "{path} in the data root {root} is damaged: its digest is {found}; delete it, and crawl its page again"
    )]
    DamagedFile {
        /// Path below the root.
        path: String,
        /// Path of the data root.
        root: String,
        /// Digest of the bytes that are there.
        found: Digest,
    },
    /// A folder for kept files cannot be used.
    #[error(
        "cannot keep files in {folder}; name a folder that this user can write to with --files"
    )]
    FilesFolder {
        /// Folder as given.
        folder: String,
        /// Error of the system.
        #[source]
        source: std::io::Error,
    },
    /// The bytes to be stored do not have the digest that was announced.
    #[error("the bytes of plugin {announced} have digest {found}; send them again")]
    WrongDigest {
        /// Digest that was announced.
        announced: Digest,
        /// Digest of the bytes.
        found: Digest,
    },
    /// The plugin is not in the data root.
    #[error("no plugin {digest} in the data root {root}; push it again")]
    Missing {
        /// Digest of the plugin's bytes.
        digest: Digest,
        /// Path of the data root.
        root: String,
    },
    /// The folder belongs to another cluster.
    #[error(
        "the data root {root} belongs to cluster {found}, and this is cluster {expected}; name another folder with --data"
    )]
    OtherCluster {
        /// Path of the data root.
        root: String,
        /// Cluster that the folder belongs to.
        found: String,
        /// Cluster of this process.
        expected: String,
    },
    /// The file `cluster.json` does not decode.
    #[error(
        "cluster.json in the data root {root} does not decode: {why}; restore it, or name another folder with --data"
    )]
    ClusterFile {
        /// Path of the data root.
        root: String,
        /// Error of the decoder.
        why: String,
    },
}

impl DataError {
    /// Returns true if the same call may succeed later without anybody's help.
    pub fn is_transient(&self) -> bool {
        match self {
            DataError::Object { source, .. } => {
                matches!(
                    **source,
                    ObjectError::Generic { .. } | ObjectError::JoinError { .. }
                )
            }
            DataError::Folder { .. }
            | DataError::Scheme { .. }
            | DataError::Unsafe { .. }
            | DataError::Damaged { .. }
            | DataError::NoFile { .. }
            | DataError::DamagedFile { .. }
            | DataError::FilesFolder { .. }
            | DataError::WrongDigest { .. }
            | DataError::Missing { .. }
            | DataError::OtherCluster { .. }
            | DataError::ClusterFile { .. } => false,
        }
    }
}

/// The open data root. Clones share it.
#[derive(Clone)]
pub struct DataRoot {
    folder: PathBuf,
    objects: Arc<GuardedFolder>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ClusterFile {
    id: String,
}

impl DataRoot {
    /// Opens a folder, which is created if it is missing. It may be written as `file:///path`.
    pub fn open(url_or_path: &str) -> Result<Self, DataError> {
        let path = match url_or_path.split_once("://") {
            None => url_or_path,
            Some(("file", path)) if path.starts_with('/') => path,
            Some(_) => {
                return Err(DataError::Scheme {
                    url: url_or_path.to_owned(),
                });
            }
        };
        let unusable = |source| DataError::Folder {
            folder: path.to_owned(),
            source,
        };
        let folder = prepare(Path::new(path)).map_err(unusable)?;
        let objects = GuardedFolder::open(&folder).map_err(unusable)?;
        Ok(Self {
            folder,
            objects: Arc::new(objects),
        })
    }

    /// Returns the folder itself, for code that needs files rather than objects.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the object store through which everything large is read and written. It returns an error while
    /// the folder is not the one that was opened.
    pub fn object_store(&self) -> Arc<dyn ObjectStore> {
        self.objects.clone()
    }

    /// Returns an error while the folder is not the one that was opened. Code that uses files in it calls
    /// this, because a folder that was taken away looks as if its files had never existed.
    pub async fn check(&self) -> Result<(), DataError> {
        let check = self.objects.check().await;
        check.map_err(|e| self.failed("reach", &ObjectPath::from("."), e))
    }

    /// Returns the last error of the object store, if no operation of its kind succeeded since. It explains
    /// why a caller waits.
    pub fn last_error(&self) -> Option<String> {
        self.objects.last_error()
    }

    /// Refuses a folder in which two writers of one file do not learn of each other.
    pub async fn probe(&self) -> Result<(), DataError> {
        let path = ObjectPath::from(probe::PROBES);
        let found = probe::probe(&self.object_store()).await;
        match found.map_err(|e| self.failed("write", &path, e))? {
            probe::ProbeResult::Kept => Ok(()),
            probe::ProbeResult::Broken(why) => Err(DataError::Unsafe {
                root: self.root(),
                why,
            }),
        }
    }

    /// Marks the folder as this cluster's, or refuses one that is another's: two clusters in one folder would
    /// delete each other's plugins.
    pub async fn bind_cluster(&self, cluster_id: &str) -> Result<(), DataError> {
        let path = ObjectPath::from("cluster.json");
        let file = ClusterFile {
            id: cluster_id.to_owned(),
        };
        let json = serde_json::to_vec(&file).expect("a text is JSON");
        match self
            .objects
            .put_opts(&path, json.into(), PutMode::Create.into())
            .await
        {
            Ok(_) => return Ok(()),
            Err(ObjectError::AlreadyExists { .. }) => {}
            Err(source) => return Err(self.failed("write", &path, source)),
        }
        let bytes = self
            .read(&path)
            .await
            .map_err(|e| self.failed("read", &path, e))?;
        match serde_json::from_slice::<ClusterFile>(&bytes) {
            Ok(file) if file.id == cluster_id => Ok(()),
            Ok(file) => Err(DataError::OtherCluster {
                root: self.root(),
                found: file.id,
                expected: cluster_id.to_owned(),
            }),
            Err(e) => Err(DataError::ClusterFile {
                root: self.root(),
                why: e.to_string(),
            }),
        }
    }

    /// Returns the folder of the items of all resources, with a folder for each. It may not exist yet.
    pub fn items_root(&self) -> PathBuf {
        self.folder.join(ITEMS)
    }

    /// Returns the folder of the line files of a resource's items. It may not exist yet.
    pub fn items_folder(&self, resource: ResourceId) -> PathBuf {
        self.items_root().join(resource.to_string())
    }

    async fn read(&self, path: &ObjectPath) -> Result<Bytes, ObjectError> {
        self.objects.get(path).await?.bytes().await
    }

    fn root(&self) -> String {
        self.folder.display().to_string()
    }

    fn failed(&self, doing: &'static str, path: &ObjectPath, source: ObjectError) -> DataError {
        failed(doing, path, &self.root(), source)
    }
}

/// Returns the error of an operation on an object.
fn failed(doing: &'static str, path: &ObjectPath, root: &str, source: ObjectError) -> DataError {
    DataError::Object {
        doing,
        path: path.to_string(),
        root: root.to_owned(),
        source: Box::new(source),
    }
}

impl fmt::Debug for DataRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataRoot")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

/// Creates the folder and writes into it once, so that a mistake shows at start and not at the first page.
/// The folder of items is never made again later: a root that was taken away does not come back.
fn prepare(folder: &Path) -> std::io::Result<PathBuf> {
    std::fs::create_dir_all(folder.join(ITEMS))?;
    tempfile::tempfile_in(folder)?;
    folder.canonicalize()
}

#[cfg(test)]
mod tests;
