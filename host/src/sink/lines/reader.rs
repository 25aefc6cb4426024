//! Reading committed items while they are written, from any process that sees the folder.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use super::super::SinkError;
use super::{blocking, committed_length, failed, path_of};
use crate::model::crawl::ItemRecord;
use crate::model::id::{Run, Shard};

/// Bytes of lines after which a read ends, even with fewer items than asked for.
const MAX_READ_BYTES: u64 = 16 << 20;

/// Reads the items of one run of a resource, all shards, from the first on.
#[derive(Debug)]
pub struct LineReader {
    folder: PathBuf,
    run: Run,
    places: Places,
}

/// How far each shard was read, and which one was read last.
#[derive(Debug, Clone, Default)]
struct Places {
    by_shard: BTreeMap<Shard, Place>,
    last: Option<Shard>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Place {
    n: u64,
    offset: u64,
}

impl LineReader {
    /// A reader of `items/<resource id>`, which need not exist yet.
    pub fn new(folder: PathBuf, run: Run) -> Self {
        Self {
            folder,
            run,
            places: Places::default(),
        }
    }

    /// What is committed since the last call: at most `max` items, in order within a shard. Empty
    /// when there is nothing at present. Cancelling it loses nothing.
    pub async fn read(&mut self, max: usize) -> Result<Vec<ItemRecord>, SinkError> {
        let (folder, run, mut places) = (self.folder.clone(), self.run, self.places.clone());
        let (items, places) = blocking(&self.folder, move || {
            let items = places.read(&folder, run, max)?;
            Ok((items, places))
        })
        .await?;
        self.places = places;
        Ok(items)
    }
}

/// The latest run that has line files in `items/<resource id>`.
pub async fn newest_run(folder: PathBuf) -> Result<Option<Run>, SinkError> {
    let path = folder.clone();
    blocking(&path, move || {
        let mut newest = None;
        for shard in shards(&folder)? {
            let files = files(&folder.join(shard.to_string()))?;
            newest = newest.max(files.map(|(run, _)| run).max());
        }
        Ok(newest)
    })
    .await
}

impl Places {
    fn read(&mut self, folder: &Path, run: Run, max: usize) -> Result<Vec<ItemRecord>, SinkError> {
        let mut shards = shards(folder)?;
        // A shard that always has more must not keep the others waiting.
        let n_before = shards.partition_point(|shard| Some(*shard) <= self.last);
        shards.rotate_left(n_before);
        let (mut items, mut n_bytes) = (Vec::new(), 0);
        for shard in shards {
            let place = self.by_shard.entry(shard).or_default();
            let folder = folder.join(shard.to_string());
            while items.len() < max && n_bytes < MAX_READ_BYTES {
                let path = path_of(&folder, run, place.n);
                let Some(committed) = committed_length(&path)? else {
                    break;
                };
                if place.offset < committed {
                    let before = place.offset;
                    place
                        .read(&path, committed, max, &mut items)
                        .map_err(failed("read", &path))?;
                    n_bytes += place.offset - before;
                    self.last = Some(shard);
                } else if committed_length(&path_of(&folder, run, place.n + 1))?.is_some() {
                    *place = Place {
                        n: place.n + 1,
                        offset: 0,
                    };
                } else {
                    break;
                }
            }
        }
        Ok(items)
    }
}

impl Place {
    fn read(
        &mut self,
        path: &Path,
        committed: u64,
        max: usize,
        items: &mut Vec<ItemRecord>,
    ) -> io::Result<()> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(self.offset))?;
        let end = committed.min(self.offset.saturating_add(MAX_READ_BYTES));
        let mut lines = BufReader::new(file.take(committed - self.offset));
        let mut line = Vec::new();
        while items.len() < max && self.offset < end {
            line.clear();
            let n_bytes = lines.read_until(b'\n', &mut line)?;
            if line.last() != Some(&b'\n') {
                return Err(io::Error::new(
                    ErrorKind::UnexpectedEof,
                    format!("it ends within the {committed} bytes that were committed"),
                ));
            }
            items.push(serde_json::from_slice(&line)?);
            self.offset += n_bytes as u64;
        }
        Ok(())
    }
}

/// In order. None where there is no such folder.
fn shards(folder: &Path) -> Result<Vec<Shard>, SinkError> {
    let names = names(folder)?;
    let mut shards: Vec<Shard> = names
        .filter_map(|name| name.parse().ok())
        .map(Shard)
        .collect();
    shards.sort();
    Ok(shards)
}

/// Run and number of each line file in a shard's folder.
pub(super) fn files(folder: &Path) -> Result<impl Iterator<Item = (Run, u64)> + use<>, SinkError> {
    let names = names(folder)?;
    Ok(names.filter_map(|name| {
        let (run, n) = name.strip_suffix(".jsonl")?.split_once('-')?;
        Some((Run(run.parse().ok()?), n.parse().ok()?))
    }))
}

fn names(folder: &Path) -> Result<impl Iterator<Item = String> + use<>, SinkError> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries.collect::<io::Result<Vec<_>>>(),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    };
    let entries = entries.map_err(failed("list", folder))?;
    Ok(entries
        .into_iter()
        .filter_map(|entry| entry.file_name().into_string().ok()))
}
