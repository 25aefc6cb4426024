//! Names of the files of a shard's archive; no other module builds or parses them.

use std::path::{Path, PathBuf};

/// Id of a file: the epoch of the life that writes it, and its number in that life. No two lives have the same epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileId {
    pub(crate) epoch: u64,
    pub(crate) n: u64,
}

/// Ending of the name of a complete file.
const WARC: &str = ".warc.gz";
/// Ending of the name of a file that is being written, or that a crash has left.
const OPEN: &str = ".warc.gz.open";
/// Ending of the name of a damaged file whose readable records are in a complete one.
const DAMAGED: &str = ".warc.gz.damaged.open";

impl FileId {
    /// Returns the name of the file once it is complete.
    pub(crate) fn warc(self) -> String {
        self.with(WARC)
    }

    /// Returns the name of the file while it is written.
    pub(crate) fn open(self) -> String {
        self.with(OPEN)
    }

    /// Returns the name of the file if it is damaged and was completed by a copy.
    pub(crate) fn damaged(self) -> String {
        self.with(DAMAGED)
    }

    /// Returns the name of the copy that the life with this epoch makes, until all of it is there. The sweep of the data
    /// root removes copies that a crash has left, if no later life does.
    pub(crate) fn copy(self, epoch: u64) -> String {
        format!("{}#{epoch}", self.warc())
    }

    fn with(self, ending: &str) -> String {
        format!("{}-{}{ending}", self.epoch, self.n)
    }

    /// Parses the name of a complete file.
    pub(crate) fn of_warc(name: &str) -> Option<Self> {
        Self::parsed(name, WARC).filter(|id| id.warc() == name)
    }

    /// Parses the name of a file that is being written.
    pub(crate) fn of_open(name: &str) -> Option<Self> {
        Self::parsed(name, OPEN).filter(|id| id.open() == name)
    }

    /// Parses the name of a copy. Returns the epoch of the life that makes it.
    pub(crate) fn epoch_of_copy(name: &str) -> Option<u64> {
        let (name, epoch) = name.rsplit_once('#')?;
        Self::of_warc(name)?;
        epoch.parse().ok()
    }

    fn parsed(name: &str, ending: &str) -> Option<Self> {
        let (epoch, n) = name.strip_suffix(ending)?.split_once('-')?;
        Some(Self {
            epoch: epoch.parse().ok()?,
            n: n.parse().ok()?,
        })
    }
}

/// Returns the path that a file has once it is complete. Returns `None` if it is complete.
pub(crate) fn completed(path: &Path) -> Option<PathBuf> {
    let is_open = path.extension().is_some_and(|ending| ending == "open");
    is_open.then(|| path.with_extension(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written_and_no_others() {
        let id = FileId { epoch: 7, n: 12 };
        assert_eq!(id.warc(), "7-12.warc.gz");
        assert_eq!(FileId::of_warc(&id.warc()), Some(id));
        assert_eq!(FileId::of_open(&id.open()), Some(id));
        assert_eq!(FileId::epoch_of_copy(&id.copy(9)), Some(9));
        let damaged = id.damaged();
        for other in ["07-1.warc.gz", "7-12.warc.gz#1", "a-1.warc.gz", &damaged] {
            assert_eq!(FileId::of_warc(other), None, "{other}");
            assert_eq!(FileId::of_open(other), None, "{other}");
        }
        assert_eq!(FileId::of_warc(&id.open()), None);
        assert_eq!(FileId::of_open(&id.warc()), None);
        assert_eq!(FileId::epoch_of_copy("7-12.warc.gz.open#1"), None);
        let complete = completed(Path::new("a/7-12.warc.gz.open"));
        assert_eq!(complete.as_deref(), Some(Path::new("a/7-12.warc.gz")));
        assert_eq!(completed(Path::new("a/7-12.warc.gz")), None);
    }
}
