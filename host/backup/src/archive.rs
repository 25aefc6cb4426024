//! The folder of an archive, and its files.

use std::fs::{DirBuilder, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object_store::local::LocalFileSystem;
use tokio::fs::OpenOptions;
use tokio::io::AsyncWriteExt as _;

use super::copy::Objects;
use super::lines::PRIVATE;
use super::{BackupError, FORMAT, Manifest};

/// Rights of folders with secrets: only their owner may enter them.
const PRIVATE_FOLDER: u32 = 0o700;

/// Archive of a cluster in a folder.
#[derive(Debug, Clone)]
pub struct Archive {
    folder: PathBuf,
}

impl Archive {
    /// Returns the archive in this folder; whether there is one shows when it is read.
    pub fn at(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }

    /// Makes an empty archive in a folder that is empty or does not exist.
    pub(super) fn create(folder: &Path) -> Result<Self, BackupError> {
        let archive = Self::at(folder);
        let mut builder = DirBuilder::new();
        let builder = builder.recursive(true).mode(PRIVATE_FOLDER);
        let failed = || BackupError::file("create", folder);
        builder.create(folder).map_err(failed())?;
        let mut entries = std::fs::read_dir(folder).map_err(failed())?;
        if entries.next().is_some() {
            return Err(BackupError::NotEmpty {
                folder: archive.name(),
            });
        }
        let private = Permissions::from_mode(PRIVATE_FOLDER);
        std::fs::set_permissions(folder, private).map_err(failed())?;
        builder.create(archive.data()).map_err(failed())?;
        Ok(archive)
    }

    /// Reads the description, which every whole archive has.
    pub async fn manifest(&self) -> Result<Manifest, BackupError> {
        let path = self.manifest_file();
        let json = match tokio::fs::read(&path).await {
            Ok(json) => json,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(BackupError::Incomplete {
                    folder: self.name(),
                });
            }
            Err(error) => return Err(BackupError::file("read", &path)(error)),
        };
        let damaged = |why: serde_json::Error| self.damaged(vec![format!("manifest.json: {why}")]);
        let value: serde_json::Value = serde_json::from_slice(&json).map_err(damaged)?;
        // A later format may have other fields, so its number is looked at first.
        match value.get("format").and_then(serde_json::Value::as_u64) {
            Some(found) if found > u64::from(FORMAT) => Err(BackupError::Format {
                folder: self.name(),
                found: u32::try_from(found).unwrap_or(u32::MAX),
            }),
            _ => serde_json::from_value(value).map_err(damaged),
        }
    }

    /// Writes the description. The archive is whole and durable when this returns.
    pub(super) async fn finish(&self, manifest: &Manifest) -> Result<(), BackupError> {
        let path = self.manifest_file();
        let new = self.folder.join("manifest.new");
        let mut json = serde_json::to_vec_pretty(manifest).expect("a manifest has text for keys");
        json.push(b'\n');
        let written = async {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(PRIVATE);
            let mut file = options.open(&new).await?;
            file.write_all(&json).await?;
            file.flush().await?;
            file.sync_all().await?;
            tokio::fs::rename(&new, &path).await?;
            let folder = tokio::fs::File::open(&self.folder).await?;
            folder.sync_all().await
        };
        written.await.map_err(BackupError::file("write", &path))
    }

    /// Opens the objects of the archive.
    pub(super) fn objects(&self) -> Result<Objects, BackupError> {
        let data = self.data();
        let opened = LocalFileSystem::new_with_prefix(&data).map_err(std::io::Error::other);
        let opened = opened.map_err(BackupError::file("open", &data))?;
        Ok(Objects {
            store: Arc::new(opened.with_fsync(true)),
            place: self.name(),
            is_bucket: false,
        })
    }

    /// Returns the error of an archive with these faults.
    pub(super) fn damaged(&self, faults: Vec<String>) -> BackupError {
        BackupError::Damaged {
            folder: self.name(),
            faults,
        }
    }

    pub(super) fn records_file(&self) -> PathBuf {
        self.folder.join("records.jsonl")
    }

    pub(super) fn objects_file(&self) -> PathBuf {
        self.folder.join("objects.jsonl")
    }

    fn manifest_file(&self) -> PathBuf {
        self.folder.join("manifest.json")
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Returns the path of the folder, for messages.
    fn name(&self) -> String {
        self.folder.display().to_string()
    }
}
