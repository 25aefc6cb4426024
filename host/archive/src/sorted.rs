//! Lines in order, however many there are: those that fill a part of memory are sorted and written to a file of their
//! own, and the files are merged.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Lines, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// Size in bytes of the lines that are sorted in memory.
const IN_MEMORY: usize = 32 << 20;
/// Number of files at which they become one.
const MAX_SPILLED: usize = 64;

/// Lines that are to be sorted. A line has no line break.
pub(crate) struct SortedLines {
    /// Folder of the files; they have no names.
    folder: PathBuf,
    max: usize,
    lines: Vec<String>,
    n_bytes: usize,
    spilled: Vec<File>,
}

impl SortedLines {
    pub(crate) fn new(folder: &Path) -> Self {
        Self::within(folder, IN_MEMORY)
    }

    fn within(folder: &Path, max: usize) -> Self {
        Self {
            folder: folder.to_owned(),
            max,
            lines: Vec::new(),
            n_bytes: 0,
            spilled: Vec::new(),
        }
    }

    /// Adds a line.
    pub(crate) fn push(&mut self, line: String) -> io::Result<()> {
        self.n_bytes += line.len() + size_of::<String>();
        self.lines.push(line);
        match self.n_bytes > self.max {
            true => self.spill(),
            false => Ok(()),
        }
    }

    fn spill(&mut self) -> io::Result<()> {
        self.lines.sort_unstable();
        let mut file = BufWriter::new(tempfile::tempfile_in(&self.folder)?);
        for line in self.lines.drain(..) {
            file.write_all(line.as_bytes())?;
            file.write_all(b"\n")?;
        }
        self.n_bytes = 0;
        let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.seek(SeekFrom::Start(0))?;
        self.spilled.push(file);
        match self.spilled.len() < MAX_SPILLED {
            true => Ok(()),
            false => self.join_spilled(),
        }
    }

    /// Makes one file of all that were spilled, because each takes a descriptor.
    fn join_spilled(&mut self) -> io::Result<()> {
        let mut file = BufWriter::new(tempfile::tempfile_in(&self.folder)?);
        merge(std::mem::take(&mut self.spilled), |line| {
            file.write_all(line.as_bytes())?;
            file.write_all(b"\n")
        })?;
        let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.seek(SeekFrom::Start(0))?;
        self.spilled.push(file);
        Ok(())
    }

    /// Calls `each` with all lines in order.
    pub(crate) fn for_each(
        mut self,
        mut each: impl FnMut(&str) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.spilled.is_empty() {
            self.lines.sort_unstable();
            return self.lines.iter().try_for_each(|line| each(line));
        }
        self.spill()?;
        merge(self.spilled, each)
    }
}

/// Calls `each` with all lines of sorted files in order.
fn merge(files: Vec<File>, mut each: impl FnMut(&str) -> io::Result<()>) -> io::Result<()> {
    let files = files.into_iter();
    let mut files: Vec<Lines<BufReader<File>>> =
        files.map(|file| BufReader::new(file).lines()).collect();
    let mut heads = BinaryHeap::new();
    for (n, file) in files.iter_mut().enumerate() {
        if let Some(line) = file.next() {
            heads.push(Reverse((line?, n)));
        }
    }
    while let Some(Reverse((line, n))) = heads.pop() {
        each(&line)?;
        if let Some(line) = files[n].next() {
            heads.push(Reverse((line?, n)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_files_are_open_however_many_lines_there_are() {
        let folder = tempfile::tempdir().unwrap();
        let mut lines = SortedLines::within(folder.path(), 0);
        for n in (0..3 * MAX_SPILLED).rev() {
            lines.push(format!("{n:04}")).unwrap();
            assert!(lines.spilled.len() < MAX_SPILLED, "{n}");
        }
        let mut n_found = 0;
        let each = |line: &str| {
            assert_eq!(line, format!("{n_found:04}"));
            n_found += 1;
            Ok(())
        };
        lines.for_each(each).unwrap();
        assert_eq!(n_found, 3 * MAX_SPILLED);
    }

    #[test]
    fn lines_are_sorted_whether_they_fit_into_memory_or_not() {
        let folder = tempfile::tempdir().unwrap();
        for max in [1 << 20, 100, 0] {
            let mut lines = SortedLines::within(folder.path(), max);
            for n in [5, 3, 9, 1, 7, 3, 8, 2] {
                lines.push(format!("line {n}")).unwrap();
            }
            let mut found = String::new();
            let each = |line: &str| {
                found.push_str(&line[5..]);
                Ok(())
            };
            lines.for_each(each).unwrap();
            assert_eq!(found, "12335789", "{max}");
        }
        let none = SortedLines::new(folder.path());
        none.for_each(|line| panic!("{line}")).unwrap();
    }
}
