//! Plugin bytes, by their digest.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use object_store::path::Path as ObjectPath;
use object_store::{Error as ObjectError, ObjectStore as _, ObjectStoreExt as _};

use super::{DataError, DataRoot, PLUGINS};
use crawler_model::crawl::UnixMillis;
use crawler_model::id::Digest;

/// Time for which bytes without a record are kept: their push may be under way.
const UNRECORDED_AGE: Duration = Duration::from_secs(60 * 60);

impl DataRoot {
    /// Stores the bytes of a plugin. Repeating this is harmless, and repairs bytes that are damaged.
    pub async fn put_plugin(&self, digest: Digest, bytes: Bytes) -> Result<(), DataError> {
        let found = Digest::of(&bytes);
        if found != digest {
            return Err(DataError::WrongDigest {
                announced: digest,
                found,
            });
        }
        // Bytes that exist are written again: they become young, and stay for a while without a record.
        let path = plugin_path(digest);
        let put = self.objects.put(&path, bytes.into()).await;
        put.map(drop).map_err(|e| self.failed("write", &path, e))
    }

    /// Returns the bytes of a plugin, verified; `None` if there is no such plugin.
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

    /// Returns at most `max` bytes of a plugin from `offset` on; none at the end. The caller that puts the
    /// pieces together verifies the whole.
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

    /// Deletes the bytes of a plugin; succeeds if there are none.
    pub async fn delete_plugin(&self, digest: Digest) -> Result<(), DataError> {
        let path = plugin_path(digest);
        match self.objects.delete(&path).await {
            Ok(()) | Err(ObjectError::NotFound { .. }) => Ok(()),
            Err(source) => Err(self.failed("delete", &path, source)),
        }
    }

    /// Deletes the bytes of all plugins that are not in `kept` and were written more than an hour ago;
    /// younger ones may be about to get their record. Returns how many it deleted. Stops when `may_go_on`
    /// returns false.
    pub async fn keep_plugins(
        &self,
        kept: &BTreeSet<Digest>,
        now: UnixMillis,
        may_go_on: impl Fn() -> bool,
    ) -> Result<usize, DataError> {
        let folder = ObjectPath::from(PLUGINS);
        let before = now.saturating_sub(UNRECORDED_AGE.as_millis() as u64);
        let mut files = self.objects.list(Some(&folder));
        let mut orphans = Vec::new();
        while let Some(file) = files.next().await {
            let file = file.map_err(|e| self.failed("list", &folder, e))?;
            let digest = file
                .location
                .filename()
                .and_then(|n| n.strip_suffix(".wasm"));
            let digest = digest.and_then(|digest| digest.parse::<Digest>().ok());
            let written = u64::try_from(file.last_modified.timestamp_millis()).unwrap_or(0);
            orphans.extend(digest.filter(|d| !kept.contains(d) && written < before));
        }
        let mut n_deleted = 0;
        for digest in orphans.into_iter().take_while(|_| may_go_on()) {
            self.delete_plugin(digest).await?;
            n_deleted += 1;
        }
        Ok(n_deleted)
    }
}

fn plugin_path(digest: Digest) -> ObjectPath {
    ObjectPath::from_iter([PLUGINS.to_owned(), format!("{digest}.wasm")])
}
