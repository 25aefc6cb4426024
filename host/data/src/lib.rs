//! The data root: the object store that holds everything large: plugin bytes, items, frontiers.
//!
//! The data root is a folder or a prefix in a bucket. Other crates use it through [`object_store::ObjectStore`]. This
//! crate opens it, names its objects, and keeps plugin bytes and kept bodies by their digest. Every write is whole or
//! absent, and durable before it is answered.
//!
//! ```text
//! cluster.json                                which cluster the data root belongs to
//! plugins/<digest>.wasm                       immutable, verified on each read
//! frontiers/<resource id>/<shard>/…           see `frontier`
//! items/<resource id>/<shard>/…               line files or part objects, see `sink`
//! files/<resource id>/<2 digits>/<digest>     kept bodies, verified on each read
//! archives/<resource id>/<run>/<shard>/…      WARC files, see `archive`
//! restore.json                                mark of a restore that has not finished
//! store/…                                     records of `crawler up`, see `store`
//! ```

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use object_store::path::Path as ObjectPath;
use object_store::{Error as ObjectError, ObjectStore, ObjectStoreExt as _, PutMode};
use serde::{Deserialize, Serialize};

use crawler_model::crawl::UnixMillis;
use crawler_model::id::ResourceId;
use crawler_process::clock::{Clock as _, SystemClock};
use error::failed;
use guard::GuardedStore;
use probe::ProbeResult;

mod contents;
mod error;
mod files;
mod guard;
mod place;
mod plugins;
mod probe;
mod remote;
mod removal;

pub use contents::is_content;
pub use error::DataError;
pub use files::{FilePieces, KeptFiles};
pub use place::{Bucket, DataPlace, Provider};
pub use probe::PROBES;
pub use remote::{AccessKey, RemoteError, RemoteSettings, Secret};

/// Object that tells which cluster the data root belongs to.
const CLUSTER: &str = "cluster.json";
/// Folder of plugin bytes.
const PLUGINS: &str = "plugins";
/// Folder of items.
const ITEMS: &str = "items";
/// Folder of kept bodies.
const FILES: &str = "files";
/// Folder of archives.
const ARCHIVES: &str = "archives";
/// Folder of frontiers.
const FRONTIERS: &str = "frontiers";
/// Folder of the records of `crawler up`, which are no objects of the data root.
pub const STORE: &str = "store";

/// Returns the object store of a folder that exists and is no data root, such as that of a sink. Every write is whole or
/// absent, and durable before it is answered. It returns an error while the folder is not the one that was opened. This may
/// block as long as the file system does.
///
/// # Errors
///
/// The folder is not there, or cannot be opened.
pub fn open_folder(folder: &Path) -> std::io::Result<Arc<dyn ObjectStore>> {
    Ok(Arc::new(GuardedStore::open(folder)?))
}

/// The open data root. Clones share it.
#[derive(Clone)]
pub struct DataRoot {
    /// Place of the root; a folder is absolute.
    place: DataPlace,
    objects: Arc<GuardedStore>,
    max_clock_skew: Duration,
}

#[derive(Debug, Serialize, Deserialize)]
struct ClusterFile {
    id: String,
}

impl DataRoot {
    /// Opens a folder, which is created if it is missing. It may be written as `file:///path`.
    pub fn open(url_or_path: &str) -> Result<Self, DataError> {
        Self::open_with(url_or_path, &RemoteSettings::default())
    }

    /// Opens a folder, which is created if it is missing, or a bucket. Only the [probe](Self::probe) tells whether the
    /// bucket can be used.
    pub fn open_with(url_or_path: &str, remote: &RemoteSettings) -> Result<Self, DataError> {
        let place: DataPlace = url_or_path.parse()?;
        let (place, objects) = match place {
            DataPlace::Bucket(bucket) => {
                let objects = GuardedStore::of_bucket(remote.open(&bucket)?);
                (DataPlace::Bucket(bucket), objects)
            }
            DataPlace::Folder(path) => {
                let unusable = |source| DataError::Folder {
                    folder: path.display().to_string(),
                    source,
                };
                let folder = prepare(&path).map_err(unusable)?;
                let objects = GuardedStore::open(&folder).map_err(unusable)?;
                (DataPlace::Folder(folder), objects)
            }
        };
        Ok(Self {
            place,
            objects: Arc::new(objects),
            max_clock_skew: remote.max_clock_skew,
        })
    }

    /// Returns the place of the root.
    pub fn place(&self) -> &DataPlace {
        &self.place
    }

    /// Returns the folder itself, for code that needs files rather than objects; `None` if the root is in a bucket.
    pub fn folder(&self) -> Option<&Path> {
        match &self.place {
            DataPlace::Folder(folder) => Some(folder),
            DataPlace::Bucket(_) => None,
        }
    }

    /// Returns the object store through which everything large is read and written. It returns an error while
    /// the root is not the one that was opened.
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

    /// Refuses a root in which two writers of one object do not learn of each other, and a bucket whose clock differs
    /// too much from this machine's.
    pub async fn probe(&self) -> Result<(), DataError> {
        let path = ObjectPath::from(PROBES);
        let is_bucket = self.folder().is_none();
        let before = SystemClock.unix_millis();
        let found = probe::probe(&self.object_store(), is_bucket).await;
        let after = SystemClock.unix_millis();
        match found.map_err(|e| self.failed("write", &path, e))? {
            ProbeResult::Kept(dated) if is_bucket => self.check_clock((before, after), dated),
            ProbeResult::Kept(_) => Ok(()),
            ProbeResult::Broken(why) => Err(DataError::Unsafe {
                root: self.root(),
                why,
            }),
        }
    }

    /// Compares the clocks: the object store wrote an object between these two times of this machine, and dates it
    /// `dated`.
    fn check_clock(
        &self,
        (before, after): (UnixMillis, UnixMillis),
        dated: UnixMillis,
    ) -> Result<(), DataError> {
        let ahead = before.saturating_sub(dated);
        let behind = dated.saturating_sub(after);
        let skew = Duration::from_millis(ahead.max(behind));
        if skew <= self.max_clock_skew {
            return Ok(());
        }
        Err(DataError::Clock {
            root: self.root(),
            seconds: skew.as_secs(),
            direction: if ahead > 0 { "ahead of" } else { "behind" },
            allowed: self.max_clock_skew.as_secs(),
        })
    }

    /// Marks the root as this cluster's, or refuses one that is another's: two clusters in one root would
    /// delete each other's plugins.
    pub async fn bind_cluster(&self, cluster_id: &str) -> Result<(), DataError> {
        let path = ObjectPath::from(CLUSTER);
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
        match self.cluster().await? {
            Some(found) if found == cluster_id => Ok(()),
            Some(found) => Err(DataError::OtherCluster {
                root: self.root(),
                found,
                expected: cluster_id.to_owned(),
            }),
            // An object store may refuse one of two concurrent writes before the other one is done.
            None => {
                let missing = std::io::Error::other("it exists, and is not found");
                let source = removal::root_error(missing);
                Err(self.failed("read", &path, source))
            }
        }
    }

    /// Returns the id of the cluster that the root belongs to; `None` if it belongs to none yet.
    pub async fn cluster(&self) -> Result<Option<String>, DataError> {
        let path = ObjectPath::from(CLUSTER);
        let bytes = match self.read(&path).await {
            Ok(bytes) => bytes,
            Err(ObjectError::NotFound { .. }) => return Ok(None),
            Err(source) => return Err(self.failed("read", &path, source)),
        };
        match serde_json::from_slice::<ClusterFile>(&bytes) {
            Ok(file) => Ok(Some(file.id)),
            Err(e) => Err(DataError::ClusterFile {
                root: self.root(),
                why: e.to_string(),
            }),
        }
    }

    /// Returns the folder of the items of all resources, with a folder for each; `None` if the root is in a bucket. It
    /// may not exist yet.
    pub fn items_root(&self) -> Option<PathBuf> {
        Some(self.folder()?.join(ITEMS))
    }

    /// Returns the folder of the line files of a resource's items; `None` if the root is in a bucket. It may not exist
    /// yet.
    pub fn items_folder(&self, resource: ResourceId) -> Option<PathBuf> {
        Some(self.items_root()?.join(resource.to_string()))
    }

    /// Returns the place of a resource's items, for messages.
    pub fn items_place(&self, resource: ResourceId) -> String {
        format!("{}/{ITEMS}/{resource}", self.place)
    }

    /// Returns the path of the items of all resources, with a folder for each.
    pub fn items_path(&self) -> ObjectPath {
        ObjectPath::from(ITEMS)
    }

    /// Returns the folder of the archives of all resources, with a folder for each; `None` if the root is in a bucket.
    pub fn archives_root(&self) -> Option<PathBuf> {
        Some(self.folder()?.join(ARCHIVES))
    }

    async fn read(&self, path: &ObjectPath) -> Result<Bytes, ObjectError> {
        self.objects.get(path).await?.bytes().await
    }

    fn root(&self) -> String {
        self.place.to_string()
    }

    fn failed(&self, doing: &'static str, path: &ObjectPath, source: ObjectError) -> DataError {
        failed(doing, path, &self.root(), source)
    }
}

impl fmt::Debug for DataRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataRoot")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

/// Creates the folder and writes into it once, so that a mistake shows at start and not at the first page.
/// The folders of items and archives are never made again later: a root that was taken away does not come back.
fn prepare(folder: &Path) -> std::io::Result<PathBuf> {
    std::fs::create_dir_all(folder.join(ITEMS))?;
    std::fs::create_dir_all(folder.join(ARCHIVES))?;
    tempfile::tempfile_in(folder)?;
    folder.canonicalize()
}

#[cfg(test)]
mod tests;
