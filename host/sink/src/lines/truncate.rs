//! Makes line files readable without the frontier that knew how much of them counts.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::super::SinkError;
use super::disk::{blocking, failed, sync_folder};
use super::mark::LineMark;
use super::{LineFiles, LineSettings, names};
use crawler_model::frontier::SinkMark;
use crawler_model::id::Shard;

/// Cuts each file of a shard's folder to its mark, and removes those without one: the rest counts as a whole.
/// Repeating this is harmless. No owner of the frontier may write to the folder any more.
pub(super) async fn truncate_to_marks(
    folder: PathBuf,
    marks: Vec<SinkMark>,
) -> Result<(), SinkError> {
    let path = folder.clone();
    blocking(&path, move || {
        let marks = LineMark::decode_all(&marks, &folder)?;
        let files = names::files(&folder)?;
        for file in files.iter().filter(|file| !file.is_rest()) {
            let path = folder.join(names::file(file.storage_epoch, file.n));
            match marks.iter().find(|mark| mark.file == *file) {
                Some(mark) => cut(&path, mark.length)?,
                None => fs::remove_file(&path).map_err(failed("remove", &path))?,
            }
        }
        if files.is_empty() {
            return Ok(());
        }
        sync_folder(&folder)
    })
    .await
}

/// Opens the files into which one try delivers the rest of a shard's items. They are in a folder of their own
/// that readers skip, so that nothing of a try that was given up gets among the items.
pub(super) fn open_rest(folder: &Path, shard: Shard, by: u64, settings: LineSettings) -> LineFiles {
    let (name, storage_epoch) = names::rest(shard, by);
    LineFiles::open(folder.join(name), storage_epoch, settings)
}

/// Shows readers the files that this try has written of all shards of a resource, and removes those of other
/// tries. Repeating this is harmless.
pub(super) async fn publish_rest(folder: PathBuf, by: u64) -> Result<(), SinkError> {
    let path = folder.clone();
    blocking(&path, move || {
        for (shard, of) in names::rests(&folder)? {
            let from = folder.join(names::rest(shard, of).0);
            if of == by {
                publish(&from, &folder.join(shard.to_string()))?;
            }
            fs::remove_dir_all(&from).map_err(failed("remove", &from))?;
        }
        Ok(())
    })
    .await
}

fn publish(from: &Path, to: &Path) -> Result<(), SinkError> {
    fs::create_dir_all(to).map_err(failed("create", to))?;
    for file in names::files(from)? {
        let name = names::file(file.storage_epoch, file.n);
        let path = from.join(&name);
        fs::rename(&path, to.join(&name)).map_err(failed("move", &path))?;
    }
    sync_folder(to)
}

/// Cuts a file to a length. A file that has lost bytes is left unchanged: readers skip a torn line.
fn cut(path: &Path, length: u64) -> Result<(), SinkError> {
    cut_if_longer(path, length).map_err(failed("cut", path))
}

/// Cuts a file to a length; returns the error of the system. A file that is not longer is not opened: somebody may have
/// made it read-only.
pub(super) fn cut_if_longer(path: &Path, length: u64) -> io::Result<()> {
    if fs::metadata(path)?.len() <= length {
        return Ok(());
    }
    let file = OpenOptions::new().write(true).open(path)?;
    file.set_len(length)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_that_is_too_long_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1-0.jsonl");
        fs::write(&path, "12345").unwrap();
        for (length, left) in [(9, "12345"), (5, "12345"), (3, "123")] {
            cut_if_longer(&path, length).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), left);
        }
        // Nobody, not even root, can open a folder for writing.
        cut_if_longer(folder.path(), u64::MAX).unwrap();
        cut_if_longer(&folder.path().join("gone"), 9).unwrap_err();
    }
}
