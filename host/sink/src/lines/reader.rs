//! Reads committed items while they are written, from any process that sees the folder.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;

use super::super::SinkError;
use super::super::items::{Extent, Extents, ItemBatch, ReadItems};
use super::disk::{blocking, failed};
use super::mark::LineMark;
use super::names::{self, FileId};
use crawler_model::crawl::ItemRecord;
use crawler_model::id::{Run, Shard};

/// Bytes of lines after which a read ends, even with fewer items than asked for.
const MAX_READ_BYTES: u64 = 16 << 20;
/// Length in bytes of the part in which the search for a file's last line begins: most lines are shorter.
const TAIL_BYTES: u64 = 64 << 10;

/// Reads the items of one run of a resource, in all shards, from the first on.
#[derive(Debug)]
pub(super) struct LineReader {
    folder: PathBuf,
    run: Run,
    positions: ReadPositions,
}

/// Positions up to which each shard was read, and the shard that was read last.
#[derive(Debug, Clone, Default)]
struct ReadPositions {
    by_shard: BTreeMap<Shard, ReadPosition>,
    last: Option<Shard>,
}

#[derive(Debug, Clone, Copy, Default)]
struct ReadPosition {
    file: FileId,
    offset: u64,
}

/// A file and the length of it that counts.
struct Span {
    file: FileId,
    length: u64,
    /// First and last run in the file. If `None`, they are known only after reading.
    runs: Option<(Run, Run)>,
}

/// Budget that ends a read.
struct Budget {
    max_items: usize,
    n_bytes: u64,
}

impl LineReader {
    /// Creates a reader of `items/<resource id>`, which need not exist yet.
    pub(super) fn new(folder: PathBuf, run: Run) -> Self {
        Self {
            folder,
            run,
            positions: ReadPositions::default(),
        }
    }
}

#[async_trait]
impl ReadItems for LineReader {
    async fn read(&mut self, extents: &Arc<Extents>, max: usize) -> Result<ItemBatch, SinkError> {
        let (folder, run, mut positions) = (self.folder.clone(), self.run, self.positions.clone());
        let extents = Arc::clone(extents);
        let (lines, positions) = blocking(&self.folder, move || {
            let lines = positions.read(&folder, run, &extents, max)?;
            Ok((lines, positions))
        })
        .await?;
        self.positions = positions;
        Ok(lines)
    }
}

/// Returns the latest run with an item that counts in `items/<resource id>`.
pub(super) async fn newest_run(
    folder: PathBuf,
    extents: &Arc<Extents>,
) -> Result<Option<Run>, SinkError> {
    let (path, extents) = (folder.clone(), Arc::clone(extents));
    blocking(&path, move || {
        let mut newest = None;
        for (shard, extent) in extents.iter() {
            let folder = folder.join(shard.to_string());
            let run = match extent {
                Extent::Marks(marks) => {
                    let marks = LineMark::decode_all(marks, &folder)?;
                    marks.iter().map(|mark| mark.runs.1).max()
                }
                Extent::Whole => last_run(&folder)?,
            };
            newest = newest.max(run);
        }
        Ok(newest)
    })
    .await
}

impl ReadPositions {
    fn read(
        &mut self,
        folder: &Path,
        run: Run,
        extents: &Extents,
        max: usize,
    ) -> Result<ItemBatch, SinkError> {
        let mut shards: Vec<Shard> = extents.keys().copied().collect();
        // A shard that always has more must not keep the others waiting.
        let n_before = shards.partition_point(|shard| Some(*shard) <= self.last);
        shards.rotate_left(n_before);
        let mut lines = ItemBatch {
            items: Vec::new(),
            is_end: true,
        };
        let mut budget = Budget {
            max_items: max,
            n_bytes: MAX_READ_BYTES,
        };
        for shard in shards {
            let position = self.by_shard.entry(shard).or_default();
            let folder = folder.join(shard.to_string());
            for span in spans(&folder, &extents[&shard], position.file)? {
                if span.file != position.file {
                    *position = ReadPosition {
                        file: span.file,
                        offset: 0,
                    };
                }
                let is_of_run = |(first, last): (Run, Run)| (first..=last).contains(&run);
                if !span.runs.is_none_or(is_of_run) || position.offset >= span.length {
                    continue;
                }
                if budget.is_spent(lines.items.len()) {
                    lines.is_end = false;
                    return Ok(lines);
                }
                self.last = Some(shard);
                let path = folder.join(names::file(span.file.storage_epoch, span.file.n));
                let is_read = position
                    .read(&path, &span, (shard, run), &mut budget, &mut lines.items)
                    .map_err(failed("read", &path))?;
                if !is_read {
                    lines.is_end = false;
                    return Ok(lines);
                }
            }
        }
        Ok(lines)
    }
}

impl Budget {
    fn is_spent(&self, n_items: usize) -> bool {
        n_items >= self.max_items || self.n_bytes == 0
    }
}

impl ReadPosition {
    /// Reads on in a file of a shard; returns false if the budget ended it.
    fn read(
        &mut self,
        path: &Path,
        span: &Span,
        (shard, run): (Shard, Run),
        budget: &mut Budget,
        items: &mut Vec<(Shard, ItemRecord)>,
    ) -> io::Result<bool> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(self.offset))?;
        let mut lines = BufReader::new(file.take(span.length - self.offset));
        let mut line = Vec::new();
        while self.offset < span.length {
            if budget.is_spent(items.len()) {
                return Ok(false);
            }
            line.clear();
            let n_bytes = lines.read_until(b'\n', &mut line)? as u64;
            if line.last() != Some(&b'\n') {
                return match span.runs {
                    // No answer ever confirmed the end of the file.
                    None => Ok(true),
                    Some(_) => Err(io::Error::new(
                        ErrorKind::UnexpectedEof,
                        format!(
                            "it ends within the {} bytes that were committed",
                            span.length
                        ),
                    )),
                };
            }
            let record: ItemRecord = serde_json::from_slice(&line)?;
            if record.run == run {
                items.push((shard, record));
            }
            self.offset += n_bytes;
            budget.n_bytes = budget.n_bytes.saturating_sub(n_bytes);
        }
        Ok(true)
    }
}

/// Returns the files of a shard that count, in the order in which they were written, from `from` on.
fn spans(folder: &Path, extent: &Extent, from: FileId) -> Result<Vec<Span>, SinkError> {
    let mut spans = match extent {
        Extent::Marks(marks) => LineMark::decode_all(marks, folder)?
            .into_iter()
            .map(marked)
            .collect(),
        Extent::Whole => names::files(folder)?
            .into_iter()
            .map(|file| whole(folder, file))
            .collect::<Result<Vec<_>, _>>()?,
    };
    spans.retain(|span| span.file >= from);
    spans.sort_by_key(|span| span.file);
    Ok(spans)
}

fn marked(mark: LineMark) -> Span {
    Span {
        file: mark.file,
        length: mark.length,
        runs: Some(mark.runs),
    }
}

fn whole(folder: &Path, file: FileId) -> Result<Span, SinkError> {
    let path = folder.join(names::file(file.storage_epoch, file.n));
    let metadata = std::fs::metadata(&path).map_err(failed("read", &path))?;
    Ok(Span {
        file,
        length: metadata.len(),
        runs: None,
    })
}

/// Returns the run of the last whole line of a shard: the numbers of runs only grow.
fn last_run(folder: &Path) -> Result<Option<Run>, SinkError> {
    for file in names::files(folder)?.into_iter().rev() {
        let path = folder.join(names::file(file.storage_epoch, file.n));
        let line = last_line(&path).map_err(failed("read", &path))?;
        if let Some(line) = line {
            let record: ItemRecord =
                serde_json::from_slice(&line).map_err(|e| failed("read", &path)(e.into()))?;
            return Ok(Some(record.run));
        }
    }
    Ok(None)
}

fn last_line(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut n_bytes = TAIL_BYTES.min(length);
    loop {
        file.seek(SeekFrom::Start(length - n_bytes))?;
        let mut tail = Vec::new();
        file.by_ref().take(n_bytes).read_to_end(&mut tail)?;
        let end = tail.iter().rposition(|byte| *byte == b'\n');
        let before = end.and_then(|end| tail[..end].iter().rposition(|byte| *byte == b'\n'));
        match (before, end) {
            (Some(before), Some(end)) => return Ok(Some(tail[before + 1..end].to_vec())),
            (None, Some(end)) if n_bytes == length => return Ok(Some(tail[..end].to_vec())),
            (None, None) if n_bytes == length => return Ok(None),
            _ => n_bytes = n_bytes.saturating_mul(2).min(length),
        }
    }
}
