//! The data root: the object store that holds everything large: plugin bytes, items, frontiers.
//!
//! It is a local folder. What others build on is [`object_store::ObjectStore`]; this module opens
//! it, names what lies in it, and keeps plugin bytes by their digest. Every write is whole or not
//! there, and synced before it is answered.
//!
//! ```text
//! cluster.json                                which cluster the folder belongs to
//! plugins/<digest>.wasm                       immutable, verified on each read
//! frontiers/<resource id>/<shard>/…           see `frontier`
//! items/<resource id>/<shard>/…               line files, see `sink`
//! ```

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use object_store::path::Path as ObjectPath;
use object_store::{Error as ObjectError, ObjectStore, ObjectStoreExt as _, PutMode};
use serde::{Deserialize, Serialize};

use crate::model::id::{Digest, ResourceId};
use guard::GuardedFolder;

mod guard;
mod plugins;
mod probe;
mod removal;

/// The folder of plugin bytes.
const PLUGINS: &str = "plugins";
/// The folder of items.
const ITEMS: &str = "items";
/// The folder of frontiers.
const FRONTIERS: &str = "frontiers";

/// What can go wrong with the data root.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// The folder cannot be used at all.
    #[error("cannot keep data in {folder}; name a folder that this user can write to with --data")]
    Folder {
        /// As given.
        folder: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A place of a kind that is not supported.
    #[error(
        "cannot keep data in {url}: only a local folder is supported at present; name one with --data"
    )]
    Scheme {
        /// As given.
        url: String,
    },
    /// The file system does not do what others rely on.
    #[error(
        "the file system of the data root {root} cannot keep data: {why}; name a folder on another one with --data"
    )]
    Unsafe {
        /// The data root.
        root: String,
        /// What was seen.
        why: String,
    },
    /// Something in the folder cannot be read or written.
    #[error("cannot {doing} {path} in the data root {root}")]
    Object {
        /// A verb: "read", "write".
        doing: &'static str,
        /// Below the root.
        path: String,
        /// The data root.
        root: String,
        /// Why.
        #[source]
        source: Box<ObjectError>,
    },
    /// The bytes are not those that were stored.
    #[error(
        "{path} in the data root {root} is damaged: its digest is {found}; push the plugin again"
    )]
    Damaged {
        /// Below the root.
        path: String,
        /// The data root.
        root: String,
        /// The digest of what is there.
        found: Digest,
    },
    /// The bytes to be stored do not have the digest they were announced with.
    #[error("the bytes of plugin {announced} have digest {found}; send them again")]
    WrongDigest {
        /// As announced.
        announced: Digest,
        /// Of the bytes.
        found: Digest,
    },
    /// No such plugin.
    #[error("no plugin {digest} in the data root {root}; push it again")]
    Missing {
        /// Of its bytes.
        digest: Digest,
        /// The data root.
        root: String,
    },
    /// The folder belongs to another cluster.
    #[error(
        "the data root {root} belongs to cluster {found}, and this is cluster {expected}; name another folder with --data"
    )]
    OtherCluster {
        /// The data root.
        root: String,
        /// Whose folder it is.
        found: String,
        /// Who asked.
        expected: String,
    },
    /// `cluster.json` does not decode.
    #[error(
        "cluster.json in the data root {root} does not decode: {why}; restore it, or name another folder with --data"
    )]
    ClusterFile {
        /// The data root.
        root: String,
        /// What the decoder said.
        why: String,
    },
}

impl DataError {
    /// Whether the same call may succeed later without anybody's help.
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
            | DataError::WrongDigest { .. }
            | DataError::Missing { .. }
            | DataError::OtherCluster { .. }
            | DataError::ClusterFile { .. } => false,
        }
    }
}

/// The open data root. Copies share it.
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
    /// Opens a folder, which is created where it is missing. `file:///path` is one too.
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

    /// The folder itself, for what needs files rather than objects.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What everything large is read and written through. It answers with an error while the folder
    /// is not the one that was opened.
    pub fn object_store(&self) -> Arc<dyn ObjectStore> {
        self.objects.clone()
    }

    /// An error while the folder is not the one that was opened: for those who use files in it, to
    /// whom what was taken away looks as if it had never been there.
    pub async fn check(&self) -> Result<(), DataError> {
        let check = self.objects.check().await;
        check.map_err(|e| self.failed("reach", &ObjectPath::from("."), e))
    }

    /// What went wrong last in the object store, if nothing of its kind went well since: for whoever
    /// waits for it and has to say why.
    pub fn last_error(&self) -> Option<String> {
        self.objects.last_error()
    }

    /// Refuses a folder in which two writers of one file do not learn of each other.
    pub async fn probe(&self) -> Result<(), DataError> {
        let path = ObjectPath::from(probe::PROBES);
        let found = probe::probe(&self.object_store()).await;
        match found.map_err(|e| self.failed("write", &path, e))? {
            probe::Found::Kept => Ok(()),
            probe::Found::Broken(why) => Err(DataError::Unsafe {
                root: self.root(),
                why,
            }),
        }
    }

    /// Marks the folder as this cluster's, or refuses one that is another's: two clusters in one
    /// folder would delete each other's plugins.
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

    /// Where the items of all resources are: a folder for each. It may not be there yet.
    pub fn items_root(&self) -> PathBuf {
        self.folder.join(ITEMS)
    }

    /// Where line files of a resource's items are. It may not be there yet.
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
        DataError::Object {
            doing,
            path: path.to_string(),
            root: self.root(),
            source: Box::new(source),
        }
    }
}

impl fmt::Debug for DataRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataRoot")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

/// Creates the folder and writes into it once, so that a mistake shows at start and not at the
/// first page. Nobody makes the folder of items later: a root that was taken away does not come back.
fn prepare(folder: &Path) -> std::io::Result<PathBuf> {
    std::fs::create_dir_all(folder.join(ITEMS))?;
    tempfile::tempfile_in(folder)?;
    folder.canonicalize()
}

#[cfg(test)]
mod tests;
