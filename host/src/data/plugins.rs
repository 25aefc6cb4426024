//! Plugin bytes, by their digest.

use std::collections::BTreeSet;

use bytes::Bytes;
use object_store::path::Path as ObjectPath;
use object_store::{Error as ObjectError, ObjectStoreExt as _};

use super::removal::folder_error;
use super::{DataError, DataRoot, PLUGINS};
use crate::model::id::Digest;

impl DataRoot {
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
            self.failed("clean up", &ObjectPath::from(PLUGINS), folder_error(source))
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
}

fn plugin_path(digest: Digest) -> ObjectPath {
    ObjectPath::from_iter([PLUGINS.to_owned(), format!("{digest}.wasm")])
}
