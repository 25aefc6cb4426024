//! Names of line files and of their folders; no other module builds or parses them.

use std::io::{self, ErrorKind};
use std::path::Path;

use super::super::SinkError;
use super::disk::failed;
use crawler_model::id::Shard;

/// Id of a line file: the storage epoch of the life that wrote it, and its number in that life. Ids sort in
/// the order in which files are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct FileId {
    pub(super) storage_epoch: u64,
    pub(super) n: u64,
}

/// First storage epoch that no frontier has: the leader's files have epochs from here on.
const FIRST_OF_REST: u64 = 1 << 63;

impl FileId {
    /// Returns true for a file that the leader delivered of a deleted resource: it counts as a whole.
    pub(super) fn is_rest(self) -> bool {
        self.storage_epoch >= FIRST_OF_REST
    }
}

/// Returns the folder, within that of a resource, for one try to deliver the rest of a shard's items, and the
/// storage epoch of its files. Readers skip the folder.
pub(super) fn rest(shard: Shard, by: u64) -> (String, u64) {
    (format!("{shard}.rest-{by:x}"), FIRST_OF_REST | by)
}

/// Parses the shard and the try from the name of such a folder.
pub(super) fn parse_rest(name: &str) -> Option<(Shard, u64)> {
    let (shard, by) = name.split_once(".rest-")?;
    Some((
        Shard(shard.parse().ok()?),
        u64::from_str_radix(by, 16).ok()?,
    ))
}

/// Returns all such folders within that of a resource.
pub(super) fn rests(folder: &Path) -> Result<Vec<(Shard, u64)>, SinkError> {
    let names = entries(folder)?;
    Ok(names.iter().filter_map(|name| parse_rest(name)).collect())
}

/// Returns the name of a file.
pub(super) fn file(storage_epoch: u64, n: u64) -> String {
    format!("{storage_epoch}-{n}.jsonl")
}

/// Parses the name of a file.
pub(super) fn parse_file(name: &str) -> Option<FileId> {
    let (storage_epoch, n) = name.strip_suffix(".jsonl")?.split_once('-')?;
    let id = FileId {
        storage_epoch: storage_epoch.parse().ok()?,
        n: n.parse().ok()?,
    };
    // A number can be written in several ways, but the name of a file in only one.
    (file(id.storage_epoch, id.n) == name).then_some(id)
}

/// Returns the line files in a shard's folder, in order; none if the folder does not exist.
pub(super) fn files(folder: &Path) -> Result<Vec<FileId>, SinkError> {
    let mut files: Vec<FileId> = entries(folder)?
        .iter()
        .filter_map(|name| parse_file(name))
        .collect();
    files.sort();
    Ok(files)
}

/// Returns the shards with a folder within that of a resource, in order; none if it does not exist.
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
