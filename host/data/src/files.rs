//! Bodies that rules wanted kept, as files that are named by their digest.
//!
//! A file is written before the rule is called that names it in an item, so that no durable item names a file that is
//! not there. Writing it twice is harmless: its name tells its content. A crash between the two leaves a file that no
//! item names, and the next attempt at the page needs it.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _};
use object_store::path::Path as ObjectPath;
use object_store::{Error as ObjectError, ObjectStore, ObjectStoreExt as _};

use super::error::failed;
use super::guard::GuardedStore;
use super::{DataError, DataRoot, FILES};
use crawler_model::id::{Digest, ResourceId, RunningDigest};

/// Number of digits of a digest that name the folder of a file: no folder has very many.
const N_FOLDER_DIGITS: usize = 2;

/// Kept files of one resource. Clones share them.
#[derive(Debug, Clone)]
pub struct KeptFiles {
    objects: Arc<dyn ObjectStore>,
    below: ObjectPath,
    /// Name of the data root, for messages.
    root: String,
}

/// Pieces of a file, in order.
pub type FilePieces = BoxStream<'static, Result<Bytes, DataError>>;

impl DataRoot {
    /// Returns the kept files of a resource. There may be none yet.
    pub fn files(&self, resource: ResourceId) -> KeptFiles {
        KeptFiles {
            objects: self.object_store(),
            below: files_path(resource),
            root: self.root(),
        }
    }

    /// Deletes the kept files of a resource; succeeds if there are none.
    pub async fn delete_files(&self, resource: ResourceId) -> Result<(), DataError> {
        let path = files_path(resource);
        let found = self.objects.list_with_delimiter(Some(&path)).await;
        let found = found.map_err(|e| self.failed("list", &path, e))?;
        // One folder after the other: there may be more files than a list has room for.
        for folder in found.common_prefixes {
            self.delete_below(folder).await?;
        }
        self.delete_below(path).await.map(drop)
    }
}

impl KeptFiles {
    /// Returns the files of a folder that is no data root and has nothing else. It is created if it is missing.
    pub fn in_folder(folder: &Path) -> Result<Self, DataError> {
        let root = folder.display().to_string();
        let opened = std::fs::create_dir_all(folder)
            .and_then(|()| folder.canonicalize())
            .and_then(|folder| GuardedStore::open(&folder));
        match opened {
            Ok(objects) => Ok(Self {
                objects: Arc::new(objects),
                below: ObjectPath::default(),
                root,
            }),
            Err(source) => Err(DataError::FilesFolder {
                folder: root,
                source,
            }),
        }
    }

    /// Keeps a body with this digest. It is durable when this returns. A file that is there already is written again:
    /// it may be damaged, or not durable yet.
    pub async fn keep(&self, digest: Digest, body: Bytes) -> Result<(), DataError> {
        let path = self.path_of(digest);
        let put = self.objects.put(&path, body.into()).await;
        put.map(drop).map_err(|e| self.failed("write", &path, e))
    }

    /// Returns the pieces of a file. The last piece of a damaged file is an error.
    pub async fn read(&self, digest: Digest) -> Result<FilePieces, DataError> {
        let path = self.path_of(digest);
        let found = self.objects.get(&path).await.map_err(|error| match error {
            ObjectError::NotFound { .. } => DataError::NoFile {
                path: path.to_string(),
                root: self.root.clone(),
            },
            source => self.failed("read", &path, source),
        })?;
        let pieces = found.into_stream();
        let reading = Reading {
            files: self.clone(),
            path,
            digest,
            running: RunningDigest::default(),
            pieces,
        };
        let pieces = stream::try_unfold(reading, |mut reading| async move {
            let next = reading.next().await?;
            Ok::<_, DataError>(next.map(|piece| (piece, reading)))
        });
        Ok(pieces.boxed())
    }

    fn path_of(&self, digest: Digest) -> ObjectPath {
        let name = digest.to_string();
        let folder = name[..N_FOLDER_DIGITS].to_owned();
        self.below.clone().join(folder).join(name)
    }

    fn failed(&self, doing: &'static str, path: &ObjectPath, source: ObjectError) -> DataError {
        failed(doing, path, &self.root, source)
    }
}

/// A file that is being read.
struct Reading {
    files: KeptFiles,
    path: ObjectPath,
    digest: Digest,
    /// Digest of the pieces so far.
    running: RunningDigest,
    pieces: BoxStream<'static, Result<Bytes, ObjectError>>,
}

impl Reading {
    /// Returns the next piece, or `None` at the end of an undamaged file.
    async fn next(&mut self) -> Result<Option<Bytes>, DataError> {
        match self.pieces.next().await {
            Some(Ok(piece)) => {
                self.running.add(&piece);
                Ok(Some(piece))
            }
            Some(Err(source)) => Err(self.files.failed("read", &self.path, source)),
            None => match std::mem::take(&mut self.running).digest() {
                found if found == self.digest => Ok(None),
                found => Err(DataError::DamagedFile {
                    path: self.path.to_string(),
                    root: self.files.root.clone(),
                    found,
                }),
            },
        }
    }
}

fn files_path(resource: ResourceId) -> ObjectPath {
    ObjectPath::from_iter([FILES.to_owned(), resource.to_string()])
}

#[cfg(test)]
mod tests {
    use futures::TryStreamExt as _;

    use super::*;

    async fn contents(files: &KeptFiles, digest: Digest) -> Result<Vec<u8>, DataError> {
        let pieces: Vec<Bytes> = files.read(digest).await?.try_collect().await?;
        Ok(pieces.concat())
    }

    #[tokio::test]
    async fn a_file_is_named_by_its_digest_and_keeping_it_again_repairs_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = DataRoot::open(folder.path().to_str().unwrap()).unwrap();
        let files = root.files(ResourceId(7));
        let body = Bytes::from(vec![7; 100_000]);
        let digest = Digest::of(&body);
        let error = contents(&files, digest).await.unwrap_err();
        assert!(matches!(error, DataError::NoFile { .. }), "{error}");
        files.keep(digest, body.clone()).await.unwrap();
        assert_eq!(contents(&files, digest).await.unwrap(), body);
        let name = digest.to_string();
        let path = folder.path().join("files/7").join(&name[..2]).join(&name);
        assert_eq!(std::fs::read(&path).unwrap(), body);
        std::fs::write(&path, vec![8; 100_000]).unwrap();
        files.keep(digest, body.clone()).await.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), body);
    }

    #[tokio::test]
    async fn a_damaged_file_is_not_read_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let files = KeptFiles::in_folder(&folder.path().join("new")).unwrap();
        let digest = Digest::of(b"abc");
        files.keep(digest, Bytes::from("abc")).await.unwrap();
        let name = digest.to_string();
        let path = folder.path().join("new").join(&name[..2]).join(&name);
        std::fs::write(path, "abd").unwrap();
        let error = contents(&files, digest).await.unwrap_err();
        assert!(matches!(error, DataError::DamagedFile { .. }), "{error}");
    }

    #[tokio::test]
    async fn the_files_of_one_resource_are_deleted_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let root = DataRoot::open(folder.path().to_str().unwrap()).unwrap();
        for id in [ResourceId(1), ResourceId(11)] {
            for body in ["one", "two"] {
                let digest = Digest::of(body.as_bytes());
                root.files(id).keep(digest, body.into()).await.unwrap();
            }
        }
        for _ in 0..2 {
            root.delete_files(ResourceId(1)).await.unwrap();
        }
        assert!(!folder.path().join("files/1").exists());
        let digest = Digest::of(b"one");
        let left = contents(&root.files(ResourceId(11)), digest).await;
        assert_eq!(left.unwrap(), b"one");
    }
}
