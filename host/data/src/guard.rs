//! The folder as an object store that notices when the folder is taken away.
//!
//! A write into a folder that was removed would make it anew, half-empty, and a read from one would say that
//! nothing was ever there. Here both are errors for as long as the folder is not the one that was opened. The
//! store also keeps its last error, which explains why a caller waits.

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
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
    UploadPart,
};
use tokio::time::Instant;

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
pub(super) struct GuardedFolder {
    inner: LocalFileSystem,
    root: Arc<Root>,
}

#[derive(Debug)]
struct Root {
    folder: PathBuf,
    /// Handle of the folder, held open so that no other folder can be given its inode number.
    handle: File,
    errors: Mutex<LastErrors>,
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

impl GuardedFolder {
    /// Opens a folder that exists.
    pub(super) fn open(folder: &Path) -> std::io::Result<Self> {
        let inner = LocalFileSystem::new_with_prefix(folder).map_err(std::io::Error::other)?;
        Ok(Self {
            inner: inner.with_fsync(true),
            root: Arc::new(Root {
                folder: folder.to_owned(),
                handle: File::open(folder)?,
                errors: Mutex::default(),
            }),
        })
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
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| Error::Generic {
            store: "folder",
            source,
        };
        let gone = || Gone {
            folder: self.folder.display().to_string(),
        };
        let present = match tokio::fs::metadata(&self.folder).await {
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
        if matches!(result, Err(Error::NotFound { .. }))
            && let Err(error) = self.check().await
        {
            result = Err(error);
        }
        self.errors().read = last_error(&result);
        result
    }

    fn list(
        self: Arc<Self>,
        list: BoxStream<'static, Result<ObjectMeta>>,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        stream::once(async move { self.read(self.check()).await.map(|()| list) })
            .try_flatten()
            .boxed()
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

impl fmt::Display for GuardedFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ObjectStore for GuardedFolder {
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
        let begin = self.inner.put_multipart_opts(location, options);
        let inner = self.root.write(begin).await?;
        let root = Arc::clone(&self.root);
        Ok(Box::new(GuardedUpload { inner, root }))
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
        let root = Arc::clone(&self.root);
        let locations = locations.and_then(move |location| {
            let root = Arc::clone(&root);
            async move { root.check().await.map(|()| location) }
        });
        self.inner.delete_stream(locations.boxed())
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
}

#[async_trait]
impl MultipartUpload for GuardedUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let (part, root) = (self.inner.put_part(data), Arc::clone(&self.root));
        Box::pin(async move { root.write(part).await })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.root.write(self.inner.complete()).await
    }

    async fn abort(&mut self) -> Result<()> {
        self.inner.abort().await
    }
}

#[cfg(test)]
mod tests;
