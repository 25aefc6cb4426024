//! Removal from the data root: frontiers, other folders of a resource, and the remains of writes that were cut off.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::stream::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path as ObjectPath;
use object_store::{Error as ObjectError, ObjectMeta, ObjectStore as _, ObjectStoreExt as _};

use super::probe::PROBES;
use super::{ARCHIVES, DataError, DataRoot, FILES, FRONTIERS, PLUGINS};
use crawler_model::crawl::UnixMillis;
use crawler_model::id::{ResourceId, Shard};

/// Age after which a staging file belongs to no write: a write that is still going on is never older, because
/// the file would be in its way otherwise.
const STAGING_AGE: Duration = Duration::from_secs(60 * 60);

impl DataRoot {
    /// Returns the shards of a resource that have a frontier, in order.
    pub async fn frontier_shards(&self, resource: ResourceId) -> Result<Vec<Shard>, DataError> {
        let path = ObjectPath::from_iter([FRONTIERS.to_owned(), resource.to_string()]);
        let found = self.objects.list_with_delimiter(Some(&path)).await;
        let found = found.map_err(|source| self.failed("list", &path, source))?;
        let names = found.common_prefixes.iter();
        let names = names.filter_map(|prefix| prefix.filename()?.parse().ok());
        let mut shards: Vec<Shard> = names.map(Shard).collect();
        shards.sort();
        Ok(shards)
    }

    /// Deletes the frontiers of a resource's shards; succeeds if there are none. Returns how many objects it
    /// deleted. Nobody may have one of the frontiers open.
    pub async fn delete_frontiers(&self, resource: ResourceId) -> Result<usize, DataError> {
        let path = ObjectPath::from_iter([FRONTIERS.to_owned(), resource.to_string()]);
        self.delete_below(path).await
    }

    /// Deletes the archives of a resource; succeeds if there are none.
    pub async fn delete_archives(&self, resource: ResourceId) -> Result<(), DataError> {
        let path = ObjectPath::from_iter([ARCHIVES.to_owned(), resource.to_string()]);
        self.delete_below(path).await.map(drop)
    }

    /// Deletes all objects below a path, and their folders; succeeds if there are none. Returns how many objects it
    /// deleted.
    pub(super) async fn delete_below(&self, path: ObjectPath) -> Result<usize, DataError> {
        let failed = |source| self.failed("delete", &path, source);
        let found = self.objects.list(Some(&path));
        let below = path.clone();
        let found = found
            .map_ok(|object| object.location)
            .inspect_ok(move |at| {
                assert!(at.prefix_matches(&below), "{at} is not below {below}");
            });
        // The list is complete before the first deletion: a listing that goes on while its objects vanish may
        // fail.
        let found: Vec<ObjectPath> = found.try_collect().await.map_err(failed)?;
        let n = found.len();
        let found = futures::stream::iter(found).map(Ok).boxed();
        let mut deleted = self.objects.delete_stream(found);
        while let Some(result) = deleted.next().await {
            match result {
                Ok(_) | Err(ObjectError::NotFound { .. }) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        if let Some(root) = self.folder() {
            let folder = root.join(AsRef::<str>::as_ref(&path));
            let emptied = blocking(move || remove_empty(&folder)).await;
            emptied.map_err(|error| failed(root_error(error)))?;
        }
        Ok(n)
    }

    /// Deletes files of writes that were cut off more than an hour ago; returns how many. A bucket never lists an
    /// incomplete object, so only probes are deleted there.
    pub async fn sweep(&self, now: UnixMillis) -> Result<usize, DataError> {
        let before = Duration::from_millis(now).saturating_sub(STAGING_AGE);
        let Some(root) = self.folder().map(Path::to_owned) else {
            return self.sweep_probes(before).await;
        };
        let before = UNIX_EPOCH + before;
        let swept = blocking(move || {
            let mut n = 0;
            for folder in [FRONTIERS, PLUGINS, FILES, ARCHIVES, PROBES] {
                let is_left = |name: &str| folder == PROBES || is_staging(name);
                n += sweep(&root.join(folder), &is_left, before)?;
            }
            Ok(n)
        });
        let failed = |error| self.failed("sweep", &ObjectPath::default(), root_error(error));
        swept.await.map_err(failed)
    }

    /// Deletes probes that were written before this time, counted from the Unix epoch; returns how many.
    async fn sweep_probes(&self, before: Duration) -> Result<usize, DataError> {
        let folder = ObjectPath::from(PROBES);
        let failed = |source| self.failed("sweep", &folder, source);
        let probes = self.objects.list(Some(&folder));
        let is_old = |probe: &ObjectMeta| {
            let written = probe.last_modified.timestamp_millis();
            i128::from(written) < before.as_millis() as i128
        };
        let probes: Vec<ObjectMeta> = probes.try_collect().await.map_err(failed)?;
        let old: Vec<&ObjectMeta> = probes.iter().filter(|probe| is_old(probe)).collect();
        for probe in &old {
            match self.objects.delete(&probe.location).await {
                Ok(()) | Err(ObjectError::NotFound { .. }) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(old.len())
    }
}

/// Returns true for the name of a file that is not complete: it has `#` and a number behind its final name.
pub(super) fn is_staging(name: &str) -> bool {
    let number = name.rsplit_once('#').map(|(_, number)| number);
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns true for the name of a temporary file: a process was killed before it removed its own. On most file systems
/// they have no name at all. Whose it is cannot be told, so it stays.
pub(super) fn is_temporary(name: &str) -> bool {
    let random = name.strip_prefix(".tmp");
    random.is_some_and(|r| r.len() == 6 && r.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// Removes files with such names that were last written before that moment, at any depth.
fn sweep(folder: &Path, is_left: &dyn Fn(&str) -> bool, before: SystemTime) -> io::Result<usize> {
    let mut n = 0;
    for entry in entries(folder)? {
        let metadata = match fs::symlink_metadata(&entry) {
            Ok(metadata) => metadata,
            // Other processes remove their own files meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if metadata.is_dir() {
            n += sweep(&entry, is_left, before)?;
            continue;
        }
        let name = entry.file_name().and_then(|name| name.to_str());
        if name.is_some_and(is_left) && metadata.modified()? < before {
            gone_is_fine(fs::remove_file(&entry))?;
            n += 1;
        }
    }
    Ok(n)
}

/// Removes a folder, if it has nothing in it but folders and files that were never complete.
fn remove_empty(folder: &Path) -> io::Result<()> {
    for entry in entries(folder)? {
        let name = entry.file_name().and_then(|name| name.to_str());
        if fs::symlink_metadata(&entry)?.is_dir() {
            remove_empty(&entry)?;
        } else if name.is_some_and(is_staging) {
            gone_is_fine(fs::remove_file(&entry))?;
        }
    }
    gone_is_fine(fs::remove_dir(folder))
}

/// Returns the entries of a folder; none if it does not exist.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn gone_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

pub(super) fn root_error(source: io::Error) -> ObjectError {
    ObjectError::Generic {
        store: "data root",
        source: source.into(),
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let done = crawler_process::task::blocking(work).await;
    done.unwrap_or_else(|stopping| Err(io::Error::other(stopping)))
}
