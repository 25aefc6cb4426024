//! Making line files readable without the frontier that knew how much of them counts.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use super::super::SinkError;
use super::{blocking, failed, names, sync_folder};
use crate::model::frontier::SinkMark;

/// Cuts each file of a shard's folder to its mark, and removes those without one: what is left
/// counts as a whole. Doing so again is fine. Nobody may write to the folder any more. Returns a
/// storage epoch that no mark is of, larger than those of all.
pub async fn cut_to_marks(folder: PathBuf, marks: Vec<SinkMark>) -> Result<u64, SinkError> {
    let path = folder.clone();
    blocking(&path, move || {
        let files = names::files(&folder)?;
        for file in &files {
            let name = names::file(file.storage_epoch, file.n);
            let path = folder.join(&name);
            match marks.iter().find(|mark| mark.file == name) {
                Some(mark) => cut(&path, mark.length)?,
                None => fs::remove_file(&path).map_err(failed("remove", &path))?,
            }
        }
        if !files.is_empty() {
            sync_folder(&folder)?;
        }
        let marked = marks.iter();
        let marked = marked.filter_map(|mark| Some(names::parse_file(&mark.file)?.storage_epoch));
        Ok(marked.max().unwrap_or(0) + 1)
    })
    .await
}

/// A file that has lost bytes is left as it is: readers pass over a torn line.
fn cut(path: &Path, length: u64) -> Result<(), SinkError> {
    let file = OpenOptions::new()
        .write(true)
        .open(path)
        .map_err(failed("open", path))?;
    let cut = || {
        if file.metadata()?.len() <= length {
            return Ok(());
        }
        file.set_len(length)?;
        file.sync_all()
    };
    cut().map_err(failed("cut", path))
}
