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

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;
use object_store::{Error as ObjectError, ObjectStore, ObjectStoreExt as _, PutMode};
use serde::{Deserialize, Serialize};

use crate::model::id::{Digest, ResourceId};

/// The folder of plugin bytes.
const PLUGINS: &str = "plugins";
/// The folder of items.
const ITEMS: &str = "items";

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
    objects: Arc<dyn ObjectStore>,
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
        let objects = LocalFileSystem::new_with_prefix(&folder)
            .map_err(|e| unusable(std::io::Error::other(e)))?
            .with_fsync(true);
        Ok(Self {
            folder,
            objects: Arc::new(objects),
        })
    }

    /// The folder itself, for what needs files rather than objects.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What everything large is read and written through.
    pub fn object_store(&self) -> Arc<dyn ObjectStore> {
        self.objects.clone()
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

    /// Stores the bytes of a plugin. Doing so again is fine, and repairs bytes that are damaged.
    pub async fn put_plugin(&self, digest: Digest, bytes: Bytes) -> Result<(), DataError> {
        let found = Digest::of(&bytes);
        if found != digest {
            return Err(DataError::WrongDigest {
                announced: digest,
                found,
            });
        }
        match self.plugin(digest).await {
            Ok(Some(_)) => return Ok(()),
            Ok(None) | Err(DataError::Damaged { .. }) => {}
            Err(error) => return Err(error),
        }
        let path = plugin_path(digest);
        let put = self.objects.put(&path, bytes.into()).await;
        put.map(drop).map_err(|e| self.failed("write", &path, e))
    }

    /// The bytes of a plugin, verified. None where there is no such plugin.
    pub async fn plugin(&self, digest: Digest) -> Result<Option<Bytes>, DataError> {
        let path = plugin_path(digest);
        let bytes = match self.read(&path).await {
            Ok(bytes) => bytes,
            Err(ObjectError::NotFound { .. }) => return Ok(None),
            Err(source) => return Err(self.failed("read", &path, source)),
        };
        let found = Digest::of(&bytes);
        if found != digest {
            return Err(DataError::Damaged {
                path: path.to_string(),
                root: self.root(),
                found,
            });
        }
        Ok(Some(bytes))
    }

    /// At most `max` bytes of a plugin from `offset` on; none at the end. Whoever puts the pieces
    /// together verifies the whole.
    pub async fn plugin_piece(
        &self,
        digest: Digest,
        offset: u64,
        max: usize,
    ) -> Result<Bytes, DataError> {
        let path = plugin_path(digest);
        let read = async {
            let n_bytes = self.objects.head(&path).await?.size;
            let end = n_bytes.min(offset.saturating_add(max as u64));
            if offset >= end {
                return Ok(Bytes::new());
            }
            self.objects.get_range(&path, offset..end).await
        };
        read.await.map_err(|error| match error {
            ObjectError::NotFound { .. } => DataError::Missing {
                digest,
                root: self.root(),
            },
            source => self.failed("read", &path, source),
        })
    }

    /// Deletes the bytes of a plugin; fine where there are none.
    pub async fn delete_plugin(&self, digest: Digest) -> Result<(), DataError> {
        let path = plugin_path(digest);
        match self.objects.delete(&path).await {
            Ok(()) | Err(ObjectError::NotFound { .. }) => Ok(()),
            Err(source) => Err(self.failed("delete", &path, source)),
        }
    }

    /// Deletes the bytes of all plugins but these, with what writes that were cut off have left; how
    /// many files went. Nobody may store one meanwhile.
    pub async fn keep_plugins(&self, kept: &BTreeSet<Digest>) -> Result<usize, DataError> {
        let failed = |source: std::io::Error| {
            let source = ObjectError::Generic {
                store: "folder",
                source: source.into(),
            };
            self.failed("clean up", &ObjectPath::from(PLUGINS), source)
        };
        let mut entries = match tokio::fs::read_dir(self.folder.join(PLUGINS)).await {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(0),
            Err(e) => return Err(failed(e)),
        };
        let mut n_deleted = 0;
        while let Some(entry) = entries.next_entry().await.map_err(failed)? {
            let name = entry.file_name();
            // A write that is not complete has `#` and a number behind the name.
            let (digest, rest) = match name.to_str().and_then(|name| name.split_once(".wasm")) {
                Some((digest, rest)) => (digest.parse::<Digest>(), rest),
                None => continue,
            };
            let is_orphan = match digest {
                Ok(digest) if rest.is_empty() => !kept.contains(&digest),
                Ok(_) => rest.starts_with('#'),
                Err(_) => false,
            };
            if is_orphan {
                tokio::fs::remove_file(entry.path()).await.map_err(failed)?;
                n_deleted += 1;
            }
        }
        Ok(n_deleted)
    }

    /// Where line files of a resource's items are. It may not be there yet.
    pub fn items_folder(&self, resource: ResourceId) -> PathBuf {
        self.folder.join(ITEMS).join(resource.to_string())
    }

    /// Deletes the items of a resource; fine where there are none.
    pub async fn delete_items(&self, resource: ResourceId) -> Result<(), DataError> {
        let folder = self.items_folder(resource);
        match tokio::fs::remove_dir_all(&folder).await {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                let path = ObjectPath::from_iter([ITEMS.to_owned(), resource.to_string()]);
                let source = ObjectError::Generic {
                    store: "folder",
                    source: e.into(),
                };
                Err(self.failed("delete", &path, source))
            }
            Ok(()) | Err(_) => Ok(()),
        }
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

fn plugin_path(digest: Digest) -> ObjectPath {
    ObjectPath::from_iter([PLUGINS.to_owned(), format!("{digest}.wasm")])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(folder: &tempfile::TempDir) -> DataRoot {
        DataRoot::open(&folder.path().display().to_string()).unwrap()
    }

    fn plugin_file(folder: &tempfile::TempDir, digest: Digest) -> PathBuf {
        folder.path().join("plugins").join(format!("{digest}.wasm"))
    }

    #[tokio::test]
    async fn a_plugin_is_read_back_whole_and_in_pieces() {
        let folder = tempfile::tempdir().unwrap();
        let root = open(&folder);
        let bytes = Bytes::from("0123456789");
        let digest = Digest::of(&bytes);
        assert_eq!(root.plugin(digest).await.unwrap(), None);
        for _ in 0..2 {
            root.put_plugin(digest, bytes.clone()).await.unwrap();
        }
        assert_eq!(root.plugin(digest).await.unwrap(), Some(bytes));
        for (offset, piece) in [(0, "0123"), (4, "4567"), (8, "89"), (10, ""), (99, "")] {
            assert_eq!(root.plugin_piece(digest, offset, 4).await.unwrap(), piece);
        }
        for _ in 0..2 {
            root.delete_plugin(digest).await.unwrap();
        }
        assert_eq!(root.plugin(digest).await.unwrap(), None);
        let error = root.plugin_piece(digest, 0, 4).await.unwrap_err();
        assert!(matches!(error, DataError::Missing { .. }), "{error}");
    }

    #[tokio::test]
    async fn bytes_of_plugins_that_are_not_kept_go_and_other_files_stay() {
        let folder = tempfile::tempdir().unwrap();
        let root = open(&folder);
        assert_eq!(root.keep_plugins(&BTreeSet::new()).await.unwrap(), 0);
        let [kept, orphan] = ["kept", "orphan"].map(Bytes::from);
        let [kept_digest, orphan_digest] = [&kept, &orphan].map(|bytes| Digest::of(bytes));
        root.put_plugin(kept_digest, kept).await.unwrap();
        root.put_plugin(orphan_digest, orphan).await.unwrap();
        let beside = |name: &str| folder.path().join("plugins").join(name);
        let cut_off = beside(&format!("{kept_digest}.wasm#1"));
        for file in [&cut_off, &beside("notes.txt"), &beside("mine.wasm")] {
            std::fs::write(file, "").unwrap();
        }
        let n_deleted = root.keep_plugins(&[kept_digest].into()).await.unwrap();
        assert_eq!(n_deleted, 2);
        assert!(!cut_off.exists() && !plugin_file(&folder, orphan_digest).exists());
        assert!(beside("notes.txt").exists() && beside("mine.wasm").exists());
        assert!(root.plugin(kept_digest).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn bytes_that_were_changed_are_damage_and_a_push_repairs_them() {
        let folder = tempfile::tempdir().unwrap();
        let root = open(&folder);
        let bytes = Bytes::from("0123456789");
        let digest = Digest::of(&bytes);
        root.put_plugin(digest, bytes.clone()).await.unwrap();
        std::fs::write(plugin_file(&folder, digest), "0123456780").unwrap();
        let error = root.plugin(digest).await.unwrap_err();
        assert!(matches!(error, DataError::Damaged { .. }), "{error}");
        assert!(!error.is_transient());
        root.put_plugin(digest, bytes.clone()).await.unwrap();
        assert_eq!(root.plugin(digest).await.unwrap(), Some(bytes));
    }

    #[tokio::test]
    async fn bytes_of_another_digest_are_not_stored() {
        let folder = tempfile::tempdir().unwrap();
        let root = open(&folder);
        let digest = Digest::of(b"announced");
        let error = root
            .put_plugin(digest, Bytes::from("sent"))
            .await
            .unwrap_err();
        assert!(matches!(error, DataError::WrongDigest { .. }), "{error}");
        assert!(!plugin_file(&folder, digest).exists());
    }

    #[tokio::test]
    async fn a_folder_belongs_to_one_cluster() {
        let folder = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            open(&folder).bind_cluster("one").await.unwrap();
        }
        let error = open(&folder).bind_cluster("two").await.unwrap_err();
        assert!(
            error
                .to_string()
                .contains("belongs to cluster one, and this is cluster two"),
            "{error}"
        );
        std::fs::write(folder.path().join("cluster.json"), "{").unwrap();
        let error = open(&folder).bind_cluster("one").await.unwrap_err();
        assert!(matches!(error, DataError::ClusterFile { .. }), "{error}");
    }

    #[tokio::test]
    async fn the_items_of_one_resource_are_deleted_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let root = open(&folder);
        for id in [1, 11] {
            let shard = root.items_folder(ResourceId(id)).join("0");
            std::fs::create_dir_all(&shard).unwrap();
            std::fs::write(shard.join("1-1.jsonl"), "{}\n").unwrap();
        }
        for _ in 0..2 {
            root.delete_items(ResourceId(1)).await.unwrap();
        }
        assert!(!root.items_folder(ResourceId(1)).exists());
        assert!(
            root.items_folder(ResourceId(11))
                .join("0/1-1.jsonl")
                .exists()
        );
    }

    #[test]
    fn a_place_that_cannot_hold_data_is_refused_with_the_way_out() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let file = file.display().to_string();
        for place in [
            "s3://bucket/path",
            "http://host/",
            "file://relative",
            &file,
            "/proc/no/such/place",
        ] {
            let error = DataRoot::open(place).unwrap_err().to_string();
            assert!(error.contains(place) && error.contains("--data"), "{error}");
        }
    }

    #[test]
    fn a_missing_folder_is_created() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        DataRoot::open(&format!("file://{}", inner.display())).unwrap();
        assert!(inner.is_dir());
    }
}
