//! Completion of files that earlier lives of a frontier have left: their readable records get a file of their own.
//!
//! The file of such a life is copied, not renamed: that life may still write, if it was only asleep. What it writes then
//! goes with its file, and none of it is committed. A file that is more than cut is kept as it is beside the copy.
//!
//! Behind a damaged record, records are looked for by the first bytes of a gzip member. A body in the damaged record may
//! look like a record, too, so that only one that names the warcinfo record of the file counts, whose id no site knows.

use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind, Read as _};
use std::ops::Range;
use std::path::Path;

use super::error::{ArchiveError, ReadError};
use super::names::FileId;
use super::read::{DEFAULT_MAX_RECORD, Head, Records};
use super::segment::{publish, remove, sync_folder};
use super::source::Source;

/// First bytes of a gzip member.
const MEMBER: [u8; 3] = [0x1f, 0x8b, 8];

/// Answer to the question whether the work is still wanted. It is asked at every record.
pub(crate) type IsWanted<'a> = &'a dyn Fn() -> bool;

/// Completes the files of all runs that lives before this epoch have left. `folder` is the one of this run, and its path
/// ends in `<run>/<shard>`. Epochs grow over all runs.
pub(crate) fn adopt_runs(
    folder: &Path,
    epoch: u64,
    is_wanted: IsWanted<'_>,
) -> Result<(), ArchiveError> {
    let runs = folder.parent().and_then(Path::parent);
    let (Some(runs), Some(shard)) = (runs, folder.file_name()) else {
        return Ok(());
    };
    let mut adopted = Ok(());
    for run in names_in(runs)? {
        let is_run = run.bytes().all(|byte| byte.is_ascii_digit());
        if is_run && is_wanted() {
            let folder = runs.join(run).join(shard);
            adopted = adopted.and(adopt_all(&folder, epoch, is_wanted));
        }
    }
    adopted
}

/// Completes all files in a folder that lives before this epoch have left, and removes the copies that they did not end.
/// A file that cannot be completed keeps no other from it.
fn adopt_all(folder: &Path, epoch: u64, is_wanted: IsWanted<'_>) -> Result<(), ArchiveError> {
    let names = names_in(folder)?;
    for name in &names {
        // This life removes its own copies when it makes them anew: one of them may be under way.
        if is_wanted() && FileId::epoch_of_copy(name).is_some_and(|own| own < epoch) {
            remove(&folder.join(name))?;
        }
    }
    let open = names.iter().filter_map(|name| FileId::of_open(name));
    let mut open: Vec<FileId> = open.filter(|id| id.epoch < epoch).collect();
    open.sort_unstable();
    let mut adopted = Ok(());
    for id in open {
        adopted = adopted.and(adopt(folder, id, epoch, is_wanted));
    }
    adopted
}

/// Completes a file that nobody writes to any more, or whose records do not count any more.
pub(crate) fn adopt(
    folder: &Path,
    id: FileId,
    epoch: u64,
    is_wanted: IsWanted<'_>,
) -> Result<(), ArchiveError> {
    let path = folder.join(id.open());
    let source = match Source::of_file(&path) {
        // Its own life has completed it meanwhile.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        source => source.map_err(ArchiveError::of("read", &path))?,
    };
    let found = readable(&source, is_wanted);
    let Some(found) = found.map_err(ArchiveError::Adopt)? else {
        return Ok(());
    };
    let name = id.copy(epoch);
    let copy = folder.join(&name);
    remove(&copy)?;
    if !found.ranges.is_empty() {
        let copied = copy_ranges(&source, &found.ranges, &copy, is_wanted);
        match copied.map_err(ArchiveError::of("complete", &path)) {
            Ok(true) => publish(folder, &name, &id.warc())?,
            Ok(false) => return remove(&copy),
            Err(error) => {
                // The error that came first is the one to tell.
                let _left = remove(&copy);
                return Err(error);
            }
        }
    }
    if found.is_damaged {
        let kept = folder.join(id.damaged());
        fs::rename(&path, &kept).map_err(ArchiveError::of("rename", &path))?;
        tracing::warn!(kept = %kept.display(), "a damaged file of the archive is kept; its readable records are in a file of their own");
    } else {
        remove(&path)?;
        tracing::info!(path = %path.display(), "a file of the archive that was left open is complete");
    }
    sync_folder(folder)
}

/// Copies parts of a file to a new one, which is durable when this returns. Returns false if it is not wanted any more.
fn copy_ranges(
    source: &Source,
    ranges: &[Range<u64>],
    to: &Path,
    is_wanted: IsWanted<'_>,
) -> io::Result<bool> {
    let mut copy = File::create_new(to)?;
    for range in ranges {
        let mut at = range.start;
        while at < range.end {
            if !is_wanted() {
                return Ok(false);
            }
            let piece = (range.end - at).min(16 << 20);
            let n = io::copy(&mut source.section(at)?.take(piece), &mut copy)?;
            if n == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            at += n;
        }
    }
    copy.sync_all()?;
    Ok(true)
}

/// Readable records of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Readable {
    /// Bytes of whole records, in order.
    pub(crate) ranges: Vec<Range<u64>>,
    /// True if more is wrong than that the last record was cut.
    pub(crate) is_damaged: bool,
}

impl Readable {
    fn add(&mut self, offset: u64, length: u64) {
        match self.ranges.last_mut() {
            Some(last) if last.end == offset => last.end += length,
            Some(_) | None => self.ranges.push(offset..offset + length),
        }
    }
}

/// Finds the readable records of a file. Returns `None` if they are not wanted any more.
pub(crate) fn readable(
    source: &Source,
    is_wanted: IsWanted<'_>,
) -> Result<Option<Readable>, ReadError> {
    let mut found = Readable::default();
    let mut info = None;
    let mut records = Records::of(source, DEFAULT_MAX_RECORD)?;
    while is_wanted() {
        match records.next(|head, _| Ok(info_of(head))) {
            Ok(Some(read)) => {
                info = info.or(read.value);
                found.add(read.offset, read.length);
            }
            Ok(None) => return Ok(Some(found)),
            Err(ReadError::Damaged { offset, why, .. }) => {
                let next = next_record(source, offset + 1, info.as_deref(), is_wanted)?;
                found.is_damaged |= next.is_some() || why != ReadError::CUT;
                let Some(next) = next else {
                    return Ok(is_wanted().then_some(found));
                };
                records = Records::at_offset(source, next, DEFAULT_MAX_RECORD)?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Returns the id of the warcinfo record that a record names, or is.
fn info_of(head: &Head) -> Option<String> {
    let field = match head.kind() {
        "warcinfo" => "warc-record-id",
        _ => "warc-warcinfo-id",
    };
    head.get(field).map(str::to_owned)
}

/// Returns the offset of the first whole record of this file from an offset on.
fn next_record(
    source: &Source,
    mut from: u64,
    info: Option<&str>,
    is_wanted: IsWanted<'_>,
) -> Result<Option<u64>, ReadError> {
    let failed = |error| ReadError::at(source.name(), 0, error);
    while is_wanted() {
        let Some(at) = next_member(source, from).map_err(failed)? else {
            return Ok(None);
        };
        let mut records = Records::at_offset(source, at, DEFAULT_MAX_RECORD)?;
        match records.next(|head, _| Ok(info_of(head))) {
            Ok(Some(read)) => {
                let own = read.value.as_deref();
                if own.is_some() && (info.is_none() || own == info) {
                    return Ok(Some(at));
                }
            }
            Ok(None) | Err(ReadError::Damaged { .. }) => {}
            Err(error) => return Err(error),
        }
        from = at + 1;
    }
    Ok(None)
}

/// Returns the first offset, from this one on, with the first bytes of a gzip member.
fn next_member(source: &Source, from: u64) -> io::Result<Option<u64>> {
    let mut last = [0; 3];
    for (at, byte) in
        (from..).zip(BufReader::with_capacity(64 << 10, source.section(from)?).bytes())
    {
        last = [last[1], last[2], byte?];
        if last == MEMBER {
            return Ok(Some(at - 2));
        }
    }
    Ok(None)
}

/// Returns the names of the files in a folder; none if it does not exist.
pub(crate) fn names_in(folder: &Path) -> Result<Vec<String>, ArchiveError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries.collect::<io::Result<Vec<_>>>(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => Err(error),
    };
    let entries = entries.map_err(ArchiveError::of("list", folder))?;
    let names = entries.into_iter().map(|entry| entry.file_name());
    Ok(names.filter_map(|name| name.into_string().ok()).collect())
}
