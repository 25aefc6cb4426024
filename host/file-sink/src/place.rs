//! Places of files: a folder or a bucket. A file is there as a whole, or not at all, and one that is there is never
//! replaced.
//!
//! In a folder, a file is written under another name and linked to its own once all of it is on the disk, because programs
//! read whole folders. A process that ends meanwhile leaves a file in [`UNFINISHED`], whose name readers of tables skip;
//! the next write of the same items replaces it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::stream::{self, StreamExt as _};
use object_store::path::Path as ObjectPath;
use object_store::{
    Attribute, Attributes, Error as ObjectError, ListResult, ObjectStore, ObjectStoreExt as _,
    PutMode, PutOptions,
};

use crawler_process::task;
use crawler_sink::SinkError;

mod large;

/// Folder of files that are being written.
const UNFINISHED: &str = ".crawler-unfinished";
/// Folder of the logs of compactions. Readers of tables skip it.
pub(crate) const LOG: &str = ".crawler-compacted";

/// Place that was not opened yet.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// Folder that exists, or is missing for a while. It is never made, because it may be a disk that is not mounted.
    Folder(PathBuf),
    /// Bucket, and how it is shown.
    Bucket(Arc<dyn ObjectStore>, String),
}

/// Open place. It notices when its folder is taken away.
#[derive(Debug, Clone)]
pub(crate) struct OpenPlace {
    objects: Arc<dyn ObjectStore>,
    /// Folder of this machine; `None` for a bucket.
    folder: Option<PathBuf>,
    shown: String,
}

impl Place {
    /// Returns the place as people read it.
    pub(crate) fn shown(&self) -> String {
        match self {
            Place::Folder(folder) => folder.display().to_string(),
            Place::Bucket(_, shown) => shown.clone(),
        }
    }

    /// Opens the place. Nothing is sent to a bucket.
    pub(crate) async fn open(&self) -> Result<OpenPlace, SinkError> {
        let (objects, folder) = match self {
            Place::Folder(folder) => (open_folder(folder).await?, Some(folder.clone())),
            Place::Bucket(objects, _) => (Arc::clone(objects), None),
        };
        Ok(OpenPlace {
            objects,
            folder,
            shown: self.shown(),
        })
    }
}

async fn open_folder(folder: &Path) -> Result<Arc<dyn ObjectStore>, SinkError> {
    let path = folder.to_owned();
    let opened = task::blocking(move || crawler_data::open_folder(&path)).await;
    let opened = opened.unwrap_or_else(|stopping| Err(io::Error::other(stopping)));
    opened.map_err(|error| SinkError::of_file("open the folder", folder.display(), error))
}

impl OpenPlace {
    /// Writes a file, unless it is there.
    pub(crate) async fn create(
        &self,
        path: &ObjectPath,
        bytes: Vec<u8>,
        media_type: &'static str,
    ) -> Result<(), SinkError> {
        let created = match &self.folder {
            Some(_) => self.link(path, bytes).await,
            None => {
                let options = PutOptions {
                    mode: PutMode::Create,
                    attributes: Attributes::from_iter([(Attribute::ContentType, media_type)]),
                    ..PutOptions::default()
                };
                let put = self.objects.put_opts(path, bytes.into(), options).await;
                put.map(drop)
            }
        };
        match created {
            Ok(()) => Ok(()),
            Err(ObjectError::AlreadyExists { .. }) => self.take_over(path).await,
            Err(error) => Err(self.failed("write", path, error)),
        }
    }

    /// Writes a file of a folder under another name, and gives it its own.
    async fn link(&self, path: &ObjectPath, bytes: Vec<u8>) -> Result<(), ObjectError> {
        let unfinished = unfinished(path);
        self.objects.put(&unfinished, bytes.into()).await?;
        self.give_name(&unfinished, path).await
    }

    /// Gives a file that is all on the disk its own name.
    async fn give_name(
        &self,
        unfinished: &ObjectPath,
        path: &ObjectPath,
    ) -> Result<(), ObjectError> {
        let linked = self.objects.rename_if_not_exists(unfinished, path).await;
        if let Err(ObjectError::AlreadyExists { .. }) = &linked {
            self.objects.delete(unfinished).await?;
        }
        linked
    }

    /// Takes over a file that is there: its name tells that it has the same items. A bucket may refuse a write because of
    /// another one that is not done yet, and whoever has written to a folder may have ended before the name was on the disk.
    async fn take_over(&self, path: &ObjectPath) -> Result<(), SinkError> {
        if self.folder.is_none() {
            let found = self.objects.head(path).await;
            return found.map(drop).map_err(|e| self.failed("find", path, e));
        }
        self.sync_folders(path).await
    }

    /// Makes durable that a file is there, or is not, in a folder of this machine.
    pub(crate) async fn sync_folders(&self, path: &ObjectPath) -> Result<(), SinkError> {
        let Some(root) = self.folder.clone() else {
            return Ok(());
        };
        let file = root.join(path.as_ref());
        let synced = task::blocking(move || {
            let folders = file.ancestors().skip(1);
            let mut folders = folders.take_while(|folder| folder.starts_with(&root));
            folders.try_for_each(|folder| std::fs::File::open(folder)?.sync_all())
        });
        let synced = synced.await;
        let synced = synced.unwrap_or_else(|stopping| Err(io::Error::other(stopping)));
        synced.map_err(|error| {
            SinkError::of_file(
                "sync the folder of",
                format!("{}/{path}", self.shown),
                error,
            )
        })
    }

    /// Removes a file for good; succeeds if there is none.
    pub(crate) async fn remove(&self, path: &ObjectPath) -> Result<(), SinkError> {
        match self.objects.delete(path).await {
            // A folder does not tell its disk: the file could come back, after its items were written elsewhere.
            Ok(()) => self.sync_folders(path).await,
            Err(ObjectError::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed("remove", path, error)),
        }
    }

    /// Returns the path of a file as people read it.
    pub(crate) fn path_shown(&self, path: &ObjectPath) -> String {
        format!("{}/{path}", self.shown)
    }

    /// Removes files for good; succeeds for those that are not there. If it fails, some of them may be gone.
    pub(crate) async fn remove_all(&self, paths: &[ObjectPath]) -> Result<(), SinkError> {
        let Some(first) = paths.first() else {
            return Ok(());
        };
        let named = stream::iter(paths.to_vec()).map(Ok).boxed();
        let mut removed = self.objects.delete_stream(named);
        while let Some(removed) = removed.next().await {
            match removed {
                Ok(_) | Err(ObjectError::NotFound { .. }) => {}
                Err(error) => return Err(self.failed("remove files beside", first, error)),
            }
        }
        self.sync_folders(first).await
    }

    /// Returns what is in a folder of the place, which may be missing; `None` is the place itself.
    pub(crate) async fn list(&self, folder: Option<&ObjectPath>) -> Result<ListResult, SinkError> {
        let listed = self.objects.list_with_delimiter(folder).await;
        listed.map_err(|error| {
            let root = ObjectPath::default();
            self.failed("list", folder.unwrap_or(&root), error)
        })
    }

    /// Returns true if a folder of the place is a symbolic link to another one.
    pub(crate) async fn is_link(&self, path: &ObjectPath) -> Result<bool, SinkError> {
        let Some(root) = &self.folder else {
            return Ok(false);
        };
        let folder = root.join(path.as_ref());
        let looked = task::blocking(move || folder.symlink_metadata()).await;
        let error = match looked.unwrap_or_else(|stopping| Err(io::Error::other(stopping))) {
            Ok(metadata) => return Ok(metadata.is_symlink()),
            // Somebody has removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => error,
        };
        Err(SinkError::of_file("look at", self.path_shown(path), error))
    }

    /// Returns the bytes of a small file, or `None` if it is not there.
    pub(crate) async fn read(&self, path: &ObjectPath) -> Result<Option<Vec<u8>>, SinkError> {
        let read = async { self.objects.get(path).await?.bytes().await };
        match read.await {
            Ok(bytes) => Ok(Some(bytes.to_vec())),
            Err(ObjectError::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed("read", path, error)),
        }
    }

    /// Writes a small file, unless one of its name is there. Returns true if it was written now. In either case,
    /// it is there for good.
    pub(crate) async fn claim(&self, path: &ObjectPath, bytes: Vec<u8>) -> Result<bool, SinkError> {
        let options = PutOptions::from(PutMode::Create);
        match self.objects.put_opts(path, bytes.into(), options).await {
            Ok(_) => Ok(true),
            Err(ObjectError::AlreadyExists { .. }) => {
                self.sync_folders(path).await?;
                Ok(false)
            }
            Err(error) => Err(self.failed("write", path, error)),
        }
    }

    /// Writes a file, looks for it, lists its folder, and removes it: an access that may not look cannot take over a file
    /// whose answer was lost, and one that may not list does not learn of compactions.
    pub(crate) async fn try_out(&self) -> Result<(), SinkError> {
        let path = ObjectPath::from(format!(".crawler-check-{}", std::process::id()));
        let options = PutOptions::from(PutMode::Create);
        match self.objects.put_opts(&path, "check".into(), options).await {
            // An earlier check was killed.
            Ok(_) | Err(ObjectError::AlreadyExists { .. }) => {}
            Err(error) => return Err(self.failed("write", &path, error)),
        }
        let found = self.objects.head(&path).await;
        let listed = self.list(Some(&ObjectPath::from(LOG))).await;
        self.remove(&path).await?;
        found.map(drop).map_err(|e| self.failed("find", &path, e))?;
        listed.map(drop)
    }

    /// Returns the error of an operation on a file, such as "write". Another try may succeed.
    fn failed(&self, doing: &str, path: &ObjectPath, source: ObjectError) -> SinkError {
        SinkError::Retry {
            message: format!("cannot {doing} {}/{path}", self.shown),
            source: Some(source.into()),
        }
    }
}

/// Returns the name under which a file of a folder is written.
fn unfinished(path: &ObjectPath) -> ObjectPath {
    let name = path.filename().unwrap_or_default();
    ObjectPath::from_iter([UNFINISHED, &format!("{name}.part")])
}

#[cfg(test)]
pub(crate) mod tests {
    use object_store::memory::InMemory;

    use super::*;

    /// Returns a place whose names cannot be made durable.
    pub(crate) fn unsynced(objects: Arc<InMemory>) -> OpenPlace {
        OpenPlace {
            objects,
            folder: Some(PathBuf::from("/missing")),
            shown: "/missing".to_owned(),
        }
    }

    #[tokio::test]
    async fn what_somebody_else_wrote_counts_once_it_is_durable() {
        let place = unsynced(Arc::new(InMemory::new()));
        let path = ObjectPath::from("a/b");
        assert!(place.claim(&path, Vec::new()).await.unwrap());
        let error = place.claim(&path, Vec::new()).await.unwrap_err();
        assert_eq!(error.to_string(), "cannot sync the folder of /missing/a/b");
    }
}
