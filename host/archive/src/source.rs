//! Places of records: WARC files, alone or in the container of a WACZ file.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::{ReadError, damaged};
use super::names;
use super::zip::{self, Entry};

/// Folder of the WARC files in a WACZ file.
pub(crate) const ARCHIVE: &str = "archive/";

/// A WARC file, or another part of a file. It is opened when it is read, so that any number of files may be known.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// Path of the file, with the name in its container.
    name: Arc<str>,
    path: Arc<Path>,
    begin: u64,
    end: u64,
}

/// Reader of a part of a file.
#[derive(Debug)]
pub(crate) struct Section {
    file: File,
    begin: u64,
    at: u64,
    end: u64,
}

impl Source {
    /// Returns a file as a whole, with the length that it has now.
    pub(crate) fn of_file(path: &Path) -> io::Result<Self> {
        Ok(Self {
            name: path.display().to_string().into(),
            path: path.into(),
            begin: 0,
            end: path.metadata()?.len(),
        })
    }

    /// Returns the part that an entry of this container is, whose bytes begin at this offset.
    fn part(&self, entry: &Entry, begin: u64) -> io::Result<Self> {
        let end = begin.checked_add(entry.n_stored);
        let end = end.filter(|end| *end <= self.end);
        Ok(Self {
            name: format!("{}:{}", self.name, entry.name).into(),
            path: Arc::clone(&self.path),
            begin,
            end: end.ok_or_else(|| damaged("an entry of the container goes beyond its end"))?,
        })
    }

    /// Returns the first bytes of a file.
    pub(crate) fn up_to(&self, n_bytes: u64) -> Self {
        Self {
            end: self.begin.saturating_add(n_bytes).min(self.end),
            ..self.clone()
        }
    }

    /// True if the file is still written, or was left by a crash.
    pub(crate) fn is_open(&self) -> bool {
        names::completed(&self.path).is_some()
    }

    /// Returns the path of the file, with the name in its container.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of bytes.
    pub(crate) fn n_bytes(&self) -> u64 {
        self.end - self.begin
    }

    /// Opens the file, and returns a reader that begins at this offset.
    pub(crate) fn section(&self, offset: u64) -> io::Result<Section> {
        let file = match File::open(&*self.path) {
            // A file that was open may be complete meanwhile, with the same records at the same places.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                File::open(names::completed(&self.path).ok_or(error)?)?
            }
            file => file?,
        };
        Ok(Section {
            file,
            begin: self.begin,
            at: self.begin.saturating_add(offset).min(self.end),
            end: self.end,
        })
    }
}

impl Read for Section {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let most = left.min(buffer.len());
        let n = self.file.read_at(&mut buffer[..most], self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

impl Seek for Section {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let length = self.end - self.begin;
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => length.checked_add_signed(by),
            SeekFrom::Current(by) => (self.at - self.begin).checked_add_signed(by),
        };
        let at = at.filter(|at| *at <= length);
        let at = at.ok_or_else(|| damaged("an offset is beyond the end"))?;
        self.at = self.begin + at;
        Ok(at)
    }
}

/// A file that was opened: its WARC files, and its other parts if it is a WACZ file.
#[derive(Debug)]
pub(crate) struct Opened {
    /// WARC files.
    pub(crate) warcs: Vec<Source>,
    /// Parts of a container by their names, the WARC files included. `None` for a WARC file.
    pub(crate) parts: Option<Vec<(String, Source)>>,
}

/// Opens a WARC or WACZ file.
pub(crate) fn open(path: &Path) -> Result<Opened, ReadError> {
    let name = path.display().to_string();
    let failed = |error| ReadError::at(&name, 0, error);
    let source = match Source::of_file(path) {
        // A file that was open when it was listed may be complete meanwhile.
        Err(error) if error.kind() == ErrorKind::NotFound => match names::completed(path) {
            Some(complete) => Source::of_file(&complete),
            None => Err(error),
        },
        source => source,
    };
    let source = source.map_err(failed)?;
    let mut section = source.section(0).map_err(failed)?;
    if !zip::is_zip(&mut section).map_err(failed)? {
        return Ok(Opened {
            warcs: vec![source],
            parts: None,
        });
    }
    let mut parts = Vec::new();
    for (entry, begin) in zip::parts(&mut section).map_err(failed)? {
        let is_warc = entry.name.starts_with(ARCHIVE) && !entry.name.ends_with('/');
        if is_warc && !entry.is_stored {
            let error = damaged(format!("{} is compressed by the container", entry.name));
            return Err(failed(error));
        }
        let part = source.part(&entry, begin).map_err(failed)?;
        if entry.is_stored {
            parts.push((entry.name, part));
        }
    }
    let is_warc = |(name, _): &&(String, Source)| {
        let file = name.strip_prefix(ARCHIVE);
        file.is_some_and(|file| file.ends_with(".warc.gz") || file.ends_with(".warc"))
    };
    let warcs = parts.iter().filter(is_warc);
    Ok(Opened {
        warcs: warcs.map(|(_, part)| part.clone()).collect(),
        parts: Some(parts),
    })
}

/// Endings of the names of WARC files.
const WARCS: [&str; 3] = [".warc", ".warc.gz", ".warc.gz.open"];

/// Returns the archives that these paths name, those of folders included, in order. Files that are still being written are
/// among them, damaged ones whose readable records are in another file are not.
///
/// # Errors
///
/// A folder cannot be read.
pub fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, ReadError> {
    found(paths, &|name| name.ends_with(".wacz") || is_warc(name))
}

/// Returns the archives that these paths name, and the WARC files of folders: a WACZ file beside them has what they have.
pub(crate) fn files_to_pack(paths: &[PathBuf]) -> Result<Vec<PathBuf>, ReadError> {
    found(paths, &is_warc)
}

fn is_warc(name: &str) -> bool {
    WARCS.iter().any(|ending| name.ends_with(ending))
}

fn found(paths: &[PathBuf], is_one: &dyn Fn(&str) -> bool) -> Result<Vec<PathBuf>, ReadError> {
    let mut found = Vec::new();
    for path in paths {
        match path.is_dir() {
            true => add_files(path, is_one, &mut found)?,
            false => found.push(path.clone()),
        }
    }
    Ok(found)
}

/// Adds the files with such names in a folder, at any depth.
fn add_files(
    folder: &Path,
    is_one: &dyn Fn(&str) -> bool,
    found: &mut Vec<PathBuf>,
) -> Result<(), ReadError> {
    let failed = |source| ReadError::File {
        path: folder.display().to_string(),
        source,
    };
    let entries = std::fs::read_dir(folder).map_err(failed)?;
    let paths = entries.map(|entry| Ok(entry?.path()));
    let paths: io::Result<Vec<PathBuf>> = paths.collect();
    let mut paths = paths.map_err(failed)?;
    paths.sort();
    for path in paths {
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.unwrap_or_default();
        // A crash may leave both names of a file that has just become complete.
        let is_complete = names::completed(&path).is_some_and(|complete| complete.exists());
        if path.is_dir() {
            add_files(&path, is_one, found)?;
        } else if !is_complete && is_one(name) {
            found.push(path);
        }
    }
    Ok(())
}
