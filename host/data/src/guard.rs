//! The object store of a data root, which notices when the root is taken away.
//!
//! A write into a folder that was removed would make it anew, half-empty, and a read from one would say that
//! nothing was ever there. Here both are errors for as long as the folder is not the one that was opened. A store
//! whose bucket was removed answers that the object does not exist; here that is an error that names the bucket. The
//! guard also keeps the last error, which explains why a caller waits.

use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;
use object_store::{
    Attribute, Attributes, CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions,
    Result, UploadPart,
};
use tokio::time::Instant;

use super::error::is_missing_bucket;
use crawler_process::telemetry;

/// Age at which an error explains nothing any more.
const ERROR_AGE: Duration = Duration::from_secs(5 * 60);

/// Error of a folder that was removed or replaced.
#[derive(Debug, thiserror::Error)]
#[error("the folder {folder} was removed or replaced while it was used; put it back")]
struct Gone {
    folder: String,
}

/// Object store of a data root.
#[derive(Debug)]
pub(super) struct GuardedStore {
    inner: Arc<dyn ObjectStore>,
    root: Arc<Root>,
}

#[derive(Debug)]
struct Root {
    /// Folder that was opened. `None` if the root is in a bucket.
    folder: Option<OpenFolder>,
    errors: Mutex<LastErrors>,
}

#[derive(Debug)]
struct OpenFolder {
    path: PathBuf,
    /// Handle of the folder, held open so that no other folder can be given its inode number.
    handle: File,
}

/// Last errors of writes and of reads. They are kept apart because a full disk can still be read from: a read
/// that succeeds clears no error of a write.
#[derive(Debug, Default)]
struct LastErrors {
    write: Option<LastError>,
    read: Option<LastError>,
}

#[derive(Debug)]
struct LastError {
    text: String,
    at: Instant,
}

impl GuardedStore {
    /// Opens a folder that exists.
    pub(super) fn open(path: &Path) -> std::io::Result<Self> {
        if !std::fs::metadata(path)?.is_dir() {
            return Err(std::io::ErrorKind::NotADirectory.into());
        }
        let inner = LocalFileSystem::new_with_prefix(path).map_err(std::io::Error::other)?;
        let folder = OpenFolder {
            path: path.to_owned(),
            handle: File::open(path)?,
        };
        Ok(Self::new(Arc::new(inner.with_fsync(true)), Some(folder)))
    }

    /// Guards a store in a bucket, below its prefix.
    pub(super) fn of_bucket(inner: Arc<dyn ObjectStore>) -> Self {
        Self::new(inner, None)
    }

    fn new(inner: Arc<dyn ObjectStore>, folder: Option<OpenFolder>) -> Self {
        let errors = Mutex::default();
        let root = Arc::new(Root { folder, errors });
        Self { inner, root }
    }

    /// Returns an error if the folder is not the one that was opened.
    pub(super) async fn check(&self) -> Result<()> {
        self.root.check().await
    }

    /// Returns the last error, if no operation of its kind succeeded since.
    pub(super) fn last_error(&self) -> Option<String> {
        let errors = self.root.errors();
        let errors = errors.write.iter().chain(&errors.read);
        let mut recent = errors.filter(|error| error.at.elapsed() < ERROR_AGE);
        recent.next().map(|error| error.text.clone())
    }
}

impl Root {
    fn errors(&self) -> std::sync::MutexGuard<'_, LastErrors> {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn check(&self) -> Result<()> {
        match &self.folder {
            Some(folder) => folder.check().await,
            None => Ok(()),
        }
    }

    /// Runs a write between two checks of the folder: before it, so that nothing is made in another folder,
    /// and after it, so that no write counts that went with the folder.
    async fn write<T>(&self, write: impl Future<Output = Result<T>>) -> Result<T> {
        let result = async {
            self.check().await?;
            let result = write.await;
            self.check().await?;
            result
        };
        let result = result.await;
        let mut errors = self.errors();
        match last_error(&result) {
            Some(error) => errors.write = Some(error),
            None => *errors = LastErrors::default(),
        }
        result
    }

    /// Runs a read. An object that is not found may be in the folder that was taken away, so the folder is
    /// checked then.
    async fn read<T>(&self, read: impl Future<Output = Result<T>>) -> Result<T> {
        let mut result = read.await;
        if let Err(error @ Error::NotFound { .. }) = &result {
            if is_missing_bucket(error) {
                result = Err(failed("there is no such bucket any more".into()));
            } else if let Err(error) = self.check().await {
                result = Err(error);
            }
        }
        self.errors().read = last_error(&result);
        result
    }

    fn list(
        self: Arc<Self>,
        list: BoxStream<'static, Result<ObjectMeta>>,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let checked = Arc::clone(&self);
        stream::once(async move { checked.check().await.map(|()| list) })
            .try_flatten()
            .inspect(move |listed| self.errors().read = last_error(listed))
            .boxed()
    }
}

impl OpenFolder {
    async fn check(&self) -> Result<()> {
        let gone = || Gone {
            folder: self.path.display().to_string(),
        };
        let present = match tokio::fs::metadata(&self.path).await {
            Ok(present) => present,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(failed(gone().into()));
            }
            Err(error) => return Err(failed(error.into())),
        };
        let opened = self.handle.metadata().map_err(|e| failed(e.into()))?;
        if (present.dev(), present.ino()) == (opened.dev(), opened.ino()) {
            return Ok(());
        }
        Err(failed(gone().into()))
    }
}

fn failed(source: Box<dyn std::error::Error + Send + Sync>) -> Error {
    Error::Generic {
        store: "data root",
        source,
    }
}

/// Returns the error of a result; `None` if the store did, or answered, what was asked for.
fn last_error<T>(result: &Result<T>) -> Option<LastError> {
    match result {
        Ok(_)
        | Err(
            Error::NotFound { .. }
            | Error::AlreadyExists { .. }
            | Error::Precondition { .. }
            | Error::NotModified { .. },
        ) => None,
        Err(error) => Some(LastError {
            text: telemetry::chain(error),
            at: Instant::now(),
        }),
    }
}

impl fmt::Display for GuardedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ObjectStore for GuardedStore {
    async fn put_opts(
        &self,
        location: &ObjectPath,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let put = self.inner.put_opts(location, payload, options);
        self.root.write(put).await
    }

    async fn put_multipart_opts(
        &self,
        location: &ObjectPath,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let attributes = options.attributes.clone();
        let begin = self.inner.put_multipart_opts(location, options);
        Ok(Box::new(GuardedUpload {
            inner: self.root.write(begin).await?,
            root: Arc::clone(&self.root),
            object: UploadedObject {
                objects: Arc::clone(&self.inner),
                location: location.clone(),
                attributes,
            },
        }))
    }

    async fn get_opts(&self, location: &ObjectPath, options: GetOptions) -> Result<GetResult> {
        let get = self.inner.get_opts(location, options);
        self.root.read(get).await
    }

    async fn get_ranges(&self, location: &ObjectPath, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let get = self.inner.get_ranges(location, ranges);
        self.root.read(get).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<ObjectPath>>,
    ) -> BoxStream<'static, Result<ObjectPath>> {
        let (root, of_deletes) = (Arc::clone(&self.root), Arc::clone(&self.root));
        let locations = locations.and_then(move |location| {
            let root = Arc::clone(&root);
            async move { root.check().await.map(|()| location) }
        });
        let deleted = self.inner.delete_stream(locations.boxed());
        let deleted = deleted.inspect(move |deleted| {
            if let Some(error) = last_error(deleted) {
                of_deletes.errors().write = Some(error);
            }
        });
        deleted.boxed()
    }

    fn list(&self, prefix: Option<&ObjectPath>) -> BoxStream<'static, Result<ObjectMeta>> {
        Arc::clone(&self.root).list(self.inner.list(prefix))
    }

    fn list_with_offset(
        &self,
        prefix: Option<&ObjectPath>,
        offset: &ObjectPath,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        Arc::clone(&self.root).list(self.inner.list_with_offset(prefix, offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&ObjectPath>) -> Result<ListResult> {
        let list = async {
            self.root.check().await?;
            self.inner.list_with_delimiter(prefix).await
        };
        self.root.read(list).await
    }

    async fn copy_opts(
        &self,
        from: &ObjectPath,
        to: &ObjectPath,
        options: CopyOptions,
    ) -> Result<()> {
        let copy = self.inner.copy_opts(from, to, options);
        self.root.write(copy).await
    }

    async fn rename_opts(
        &self,
        from: &ObjectPath,
        to: &ObjectPath,
        options: RenameOptions,
    ) -> Result<()> {
        let rename = self.inner.rename_opts(from, to, options);
        self.root.write(rename).await
    }
}

/// Upload of an object in parts, which exists when all of them are there.
#[derive(Debug)]
struct GuardedUpload {
    inner: Box<dyn MultipartUpload>,
    root: Arc<Root>,
    object: UploadedObject,
}

/// Object that an upload makes.
#[derive(Debug)]
struct UploadedObject {
    objects: Arc<dyn ObjectStore>,
    location: ObjectPath,
    attributes: Attributes,
}

impl UploadedObject {
    /// Returns the object if it exists with the metadata of this upload. When the answer to the last request of an
    /// upload is lost, the object exists, but the repeated request fails: the store no longer knows the upload.
    async fn found(&self) -> Option<PutResult> {
        let is_metadata = |key: &Attribute| matches!(key, Attribute::Metadata(_));
        let own: Vec<_> = self
            .attributes
            .iter()
            .filter(|(key, _)| is_metadata(key))
            .collect();
        let head = GetOptions::new().with_head(true);
        let found = self.objects.get_opts(&self.location, head).await.ok()?;
        let is_own = own
            .iter()
            .all(|(key, value)| found.attributes.get(key) == Some(*value));
        (is_own && !own.is_empty()).then(|| PutResult {
            e_tag: found.meta.e_tag,
            version: found.meta.version,
            extensions: found.extensions,
        })
    }
}

#[async_trait]
impl MultipartUpload for GuardedUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let (part, root) = (self.inner.put_part(data), Arc::clone(&self.root));
        Box::pin(async move { root.write(part).await })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let complete = async {
            match self.inner.complete().await {
                Err(error) => self.object.found().await.ok_or(error),
                completed => completed,
            }
        };
        let root = Arc::clone(&self.root);
        root.write(complete).await
    }

    async fn abort(&mut self) -> Result<()> {
        self.inner.abort().await
    }
}

#[cfg(test)]
mod tests;
