//! Work with files, and its errors.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

use crate::SinkError;

/// Makes the names in a folder durable.
pub(super) fn sync_folder(folder: &Path) -> Result<(), SinkError> {
    let sync = || File::open(folder)?.sync_all();
    sync().map_err(failed("sync", folder))
}

/// Makes a shard's folder and its resource's, each durable in the one above. A folder that exists may have
/// been made a moment before a crash, so it is synced as well.
pub(super) fn create_folder(folder: &Path) -> Result<(), SinkError> {
    for folder in folder.parent().into_iter().chain([folder]) {
        match std::fs::create_dir(folder) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed("create", folder)(error)),
        }
        if let Some(above) = folder.parent() {
            sync_folder(above)?;
        }
    }
    Ok(())
}

/// Returns a conversion of an error of `doing` with a path, such as "write".
pub(super) fn failed(doing: &str, path: &Path) -> impl FnOnce(io::Error) -> SinkError {
    move |source| SinkError::of_file(doing, path.display(), source)
}

/// Runs file work on a thread that may block.
pub(super) async fn blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> Result<T, SinkError> + Send + 'static,
) -> Result<T, SinkError> {
    let done = crawler_process::task::blocking(work).await;
    done.unwrap_or_else(|stopping| Err(failed("reach", path)(io::Error::other(stopping))))
}
