//! One file of an archive while it is written, and the way in which a complete file gets its name.

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::error::ArchiveError;
use super::names::FileId;
use super::record::Record;

/// File that is being written.
#[derive(Debug)]
pub(crate) struct Segment {
    folder: PathBuf,
    pub(crate) id: FileId,
    file: File,
    /// Bytes that were written.
    pub(crate) n_bytes: u64,
    /// Bytes that are durable, all of them whole records.
    n_durable: u64,
    /// True once the file was to get its name: nothing is written to it any more.
    pub(crate) is_ended: bool,
}

impl Segment {
    /// Creates the file with its first record, which is durable when this returns. Returns `None` if the id is taken.
    pub(crate) fn create(
        folder: &Path,
        id: FileId,
        first: &Record,
    ) -> Result<Option<Self>, ArchiveError> {
        let path = folder.join(id.open());
        let file = match File::create_new(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(None),
            file => file.map_err(ArchiveError::of("create", &path))?,
        };
        let mut segment = Self {
            folder: folder.to_owned(),
            id,
            file,
            n_bytes: 0,
            n_durable: 0,
            is_ended: false,
        };
        match segment.begin(first) {
            Ok(true) => Ok(Some(segment)),
            Ok(false) => remove(&path).map(|()| None),
            Err(error) => {
                // The next file has another number; an empty one that stays is removed by the next life.
                let _kept = remove(&path);
                Err(error)
            }
        }
    }

    /// Writes the first record. Returns false if there is a complete file with this id.
    fn begin(&mut self, first: &Record) -> Result<bool, ArchiveError> {
        // Whoever completes a file has its open name until the complete one is there.
        let complete = self.folder.join(self.id.warc());
        if fs::exists(&complete).map_err(ArchiveError::of("read", &complete))? {
            return Ok(false);
        }
        self.append(first)?;
        self.sync()?;
        sync_folder(&self.folder)?;
        Ok(true)
    }

    fn failed(&self) -> impl FnOnce(io::Error) -> ArchiveError + use<> {
        ArchiveError::of("write", &self.folder.join(self.id.open()))
    }

    /// Appends a record.
    pub(crate) fn append(&mut self, record: &Record) -> Result<(), ArchiveError> {
        let written = record.write(BufWriter::new(&self.file));
        written.map_err(self.failed())?;
        let end = self.file.stream_position();
        self.n_bytes = end.map_err(self.failed())?;
        Ok(())
    }

    /// Makes all records durable.
    pub(crate) fn sync(&mut self) -> Result<(), ArchiveError> {
        self.file.sync_data().map_err(self.failed())?;
        self.n_durable = self.n_bytes;
        Ok(())
    }

    /// Removes what was written since the last sync, after a write that failed. The first record stays.
    pub(crate) fn rewind(&mut self) -> Result<(), ArchiveError> {
        let cut = self.file.set_len(self.n_durable);
        let cut = cut.and_then(|()| self.file.seek(SeekFrom::Start(self.n_durable)));
        cut.map_err(self.failed())?;
        self.n_bytes = self.n_durable;
        Ok(())
    }

    /// Makes all records durable, and gives the file its name. After an error it may be called again.
    pub(crate) fn finish(&mut self) -> Result<(), ArchiveError> {
        self.sync()?;
        self.is_ended = true;
        publish(&self.folder, &self.id.open(), &self.id.warc())
    }
}

/// Gives a complete file its name, in place of the one that it has. If another file has the name already, this one goes: a
/// later life has completed it, and what was committed is in both.
pub(crate) fn publish(folder: &Path, from: &str, to: &str) -> Result<(), ArchiveError> {
    let (from, to) = (folder.join(from), folder.join(to));
    match named(&from, &to, |from, to| fs::hard_link(from, to)) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        // An earlier try came as far as here, or a later life has completed it.
        Err(error) if error.kind() == ErrorKind::NotFound && to.is_file() => {}
        Err(error) => return Err(ArchiveError::of("complete", &to)(error)),
    }
    // The name is durable before the other one goes.
    sync_folder(folder)?;
    remove(&from)?;
    sync_folder(folder)
}

/// Gives a file a second name, or the name in place of its own where a file has one only, as on exFAT and SMB. A file that
/// has the name already stays.
fn named(
    from: &Path,
    to: &Path,
    link: impl FnOnce(&Path, &Path) -> io::Result<()>,
) -> io::Result<()> {
    match link(from, to) {
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::Unsupported | ErrorKind::PermissionDenied
            ) =>
        {
            // The first error is the one to tell: the second one may be that this cannot be done, either.
            match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
                Ok(()) => Ok(()),
                Err(Errno::EXIST) => Err(ErrorKind::AlreadyExists.into()),
                Err(_) => Err(error),
            }
        }
        linked => linked,
    }
}

/// Removes a file; succeeds if there is none.
pub(crate) fn remove(path: &Path) -> Result<(), ArchiveError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(ArchiveError::of("remove", path)(error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Makes names in a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), ArchiveError> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(ArchiveError::of("sync", folder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::new_id;
    use bytes::Bytes;

    const ID: FileId = FileId { epoch: 3, n: 1 };

    fn record(text: &'static str) -> Record {
        let block = vec![Bytes::from_static(text.as_bytes())];
        Record::new("resource", &new_id(), 7, "text/plain", block)
    }

    fn created(folder: &Path) -> Segment {
        let segment = Segment::create(folder, ID, &record("first")).unwrap();
        segment.expect("the id is free")
    }

    #[test]
    fn a_write_that_failed_leaves_the_first_record() {
        let folder = tempfile::tempdir().unwrap();
        let mut segment = created(folder.path());
        let first = segment.n_bytes;
        segment.append(&record("cut")).unwrap();
        segment.rewind().unwrap();
        assert!(first > 0 && segment.n_bytes == first);
        segment.append(&record("second")).unwrap();
        segment.finish().unwrap();
        let path = folder.path().join(ID.warc());
        assert_eq!(fs::metadata(path).unwrap().len(), segment.n_bytes);
    }

    #[test]
    fn a_name_that_is_taken_is_not_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let mut segment = created(folder.path());
        let taken = || Segment::create(folder.path(), ID, &record("other")).unwrap();
        assert!(taken().is_none());
        segment.finish().unwrap();
        assert!(taken().is_none());
        assert!(!folder.path().join(ID.open()).exists());
    }

    #[test]
    fn a_file_gets_its_name_where_there_are_no_hard_links() {
        for kind in [ErrorKind::Unsupported, ErrorKind::PermissionDenied] {
            let folder = tempfile::tempdir().unwrap();
            let [from, to] = ["open", "complete"].map(|name| folder.path().join(name));
            let name = || named(&from, &to, |_, _| Err(kind.into()));
            fs::write(&from, "1").unwrap();
            name().unwrap();
            assert!(!from.exists());
            // It was done, and its answer was lost.
            assert_eq!(name().unwrap_err().kind(), kind);
            // Another life has completed the file.
            fs::write(&from, "2").unwrap();
            assert_eq!(name().unwrap_err().kind(), ErrorKind::AlreadyExists);
            assert_eq!(fs::read(&to).unwrap(), b"1");
        }
    }

    #[test]
    fn a_file_is_published_again_after_a_failure() {
        let folder = tempfile::tempdir().unwrap();
        let mut segment = created(folder.path());
        let away = folder.path().join("away");
        fs::rename(folder.path().join(ID.open()), &away).unwrap();
        // Neither name is there: this is no success.
        assert!(segment.finish().is_err());
        fs::rename(&away, folder.path().join(ID.open())).unwrap();
        segment.finish().unwrap();
        // It was done, and its answer was lost.
        segment.finish().unwrap();
        assert!(folder.path().join(ID.warc()).exists());
    }
}
