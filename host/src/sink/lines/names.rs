//! Names of line files and of the folders they are in; the only place that spells them.

use std::io::{self, ErrorKind};
use std::path::Path;

use super::super::SinkError;
use super::failed;
use crate::model::id::Shard;

/// A line file: the storage epoch of the life that wrote it, and its number in that life. Sorts in
/// the order in which files are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct FileId {
    pub(super) storage_epoch: u64,
    pub(super) n: u64,
}

/// The name of a file.
pub(super) fn file(storage_epoch: u64, n: u64) -> String {
    format!("{storage_epoch}-{n}.jsonl")
}

/// The file that a name means.
pub(super) fn parse_file(name: &str) -> Option<FileId> {
    let (storage_epoch, n) = name.strip_suffix(".jsonl")?.split_once('-')?;
    let id = FileId {
        storage_epoch: storage_epoch.parse().ok()?,
        n: n.parse().ok()?,
    };
    // Numbers can be written in several ways, and a file's name in one.
    (file(id.storage_epoch, id.n) == name).then_some(id)
}

/// The line files in a shard's folder, in order. None where there is no such folder.
pub(super) fn files(folder: &Path) -> Result<Vec<FileId>, SinkError> {
    let mut files: Vec<FileId> = entries(folder)?
        .iter()
        .filter_map(|name| parse_file(name))
        .collect();
    files.sort();
    Ok(files)
}

/// The shards with a folder in that of a resource, in order. None where there is no such folder.
pub(super) fn shards(folder: &Path) -> Result<Vec<Shard>, SinkError> {
    let mut shards: Vec<Shard> = entries(folder)?
        .iter()
        .filter_map(|name| name.parse().ok().map(Shard))
        .collect();
    shards.sort();
    Ok(shards)
}

fn entries(folder: &Path) -> Result<Vec<String>, SinkError> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries.collect::<io::Result<Vec<_>>>(),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    };
    let entries = entries.map_err(failed("list", folder))?;
    Ok(entries
        .into_iter()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect())
}
