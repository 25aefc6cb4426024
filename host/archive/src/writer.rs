//! The files of a shard's archive: one after the other by size.
//!
//! ```text
//! <epoch>-<n>.warc.gz.open            being written, or left by a crash
//! <epoch>-<n>.warc.gz                 complete
//! <epoch>-<n>.warc.gz#<epoch>         copy that a later life makes of a file that was left
//! <epoch>-<n>.warc.gz.damaged.open    damaged original of a file that a later life has completed
//! ```

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::SOFTWARE;
use super::adopt::adopt;
use super::error::ArchiveError;
use super::names::FileId;
use super::page::{KnownPayloads, PageRecord, records};
use super::record::{Record, new_id, warc_fields};
use super::segment::{Segment, sync_folder};
use crawler_model::crawl::UnixMillis;
use crawler_model::id::{ResourceId, Run, Shard};
use crawler_model::settings::CrawlSettings;
use crawler_process::clock::Clock;

/// Fields of a warcinfo record by which readers know which of two records is the later one.
pub(crate) const RUN: &str = "crawler-run";
pub(crate) const EPOCH: &str = "crawler-epoch";
pub(crate) const FILE: &str = "crawler-file";
/// Field with the time at which a run began.
pub(crate) const RUN_STARTED: &str = "crawler-run-started-ms";

/// Settings of the archive of a shard.
#[derive(Debug, Clone)]
pub struct ArchiveSettings {
    /// Folder that has to exist. If it was taken away, nothing is written.
    pub base: PathBuf,
    /// Folder of the files, in or below `base`. It is made if it is missing.
    pub folder: PathBuf,
    /// Epoch of this life of the frontier: no other life has it, and later ones have larger ones.
    pub epoch: u64,
    /// True if nobody but lives of one frontier writes to the folder, whose path ends in `<run>/<shard>`. Files that
    /// earlier lives left open, in this run or in another one, may be completed then.
    pub is_exclusive: bool,
    /// Size in bytes at which a file is followed by the next: setting `archive-size`.
    pub size: u64,
}

/// Description of a run, for the first record of each file.
#[derive(Debug, Clone)]
pub struct RunInfo {
    /// Name of the resource.
    pub name: String,
    /// Id of the resource.
    pub resource: ResourceId,
    /// Number of the run.
    pub run: Run,
    /// Shard of the resource.
    pub shard: Shard,
    /// Time when the run began.
    pub started_at: UnixMillis,
    /// Settings of the crawl. Those of cookies are not written, because they may be secret.
    pub settings: CrawlSettings,
}

/// Writer of one shard's archive.
pub(crate) struct Writer {
    settings: ArchiveSettings,
    info: RunInfo,
    clock: Arc<dyn Clock>,
    segment: Option<Segment>,
    /// Id of the warcinfo record of the present file.
    info_id: String,
    known: KnownPayloads,
    /// Number of the last file of this life.
    last: u64,
    /// Files that a failure has cut, and that are not complete yet.
    left: Vec<FileId>,
}

impl Writer {
    pub(crate) fn new(settings: ArchiveSettings, info: RunInfo, clock: Arc<dyn Clock>) -> Self {
        Self {
            settings,
            info,
            clock,
            segment: None,
            info_id: String::new(),
            known: KnownPayloads::default(),
            last: 0,
            left: Vec::new(),
        }
    }

    /// Writes pages. All of their records are durable when this returns. After an error some of the pages may be written
    /// all the same, and all may be given again.
    pub(crate) fn write(&mut self, pages: &[Arc<PageRecord>]) -> Result<(), ArchiveError> {
        let written = self.try_write(pages);
        if written.is_err() {
            self.recover();
        }
        written
    }

    /// Takes back what was written and is not durable, after a write that failed or panicked.
    pub(crate) fn recover(&mut self) {
        // Records that are not written cannot be referred to.
        self.known.clear();
        if let Some(mut segment) = self.segment.take() {
            match segment.rewind() {
                Ok(()) => self.segment = Some(segment),
                // The error that came first is told. The file ends with the archive, by its whole records.
                Err(_) => self.left.push(segment.id),
            }
        }
    }

    /// Writes pages as far as a write that panics before its sync.
    #[cfg(test)]
    pub(crate) fn write_and_panic(&mut self, page: &PageRecord) {
        let segment = self.segment.as_mut().expect("a page was written");
        let about = &page.about;
        for record in records(
            &page.exchanges[0],
            None,
            about,
            &self.info_id,
            &mut self.known,
        ) {
            segment.append(&record).unwrap();
        }
        panic!("a write that panics");
    }

    fn try_write(&mut self, pages: &[Arc<PageRecord>]) -> Result<(), ArchiveError> {
        for page in pages {
            let size = self.settings.size;
            let is_full = |segment: &Segment| segment.is_ended || segment.n_bytes >= size;
            if self.segment.as_ref().is_some_and(is_full) {
                self.end_segment()?;
            }
            let segment = match self.segment.take() {
                Some(segment) => segment,
                None => self.begin_segment()?,
            };
            let segment = self.segment.insert(segment);
            for (n, exchange) in page.exchanges.iter().enumerate() {
                let (redirects, about) = (page.redirects(n), &page.about);
                let (info_id, known) = (&self.info_id, &mut self.known);
                for record in records(exchange, redirects.as_ref(), about, info_id, known) {
                    segment.append(&record)?;
                }
            }
        }
        match &mut self.segment {
            Some(segment) => segment.sync(),
            None => Ok(()),
        }
    }

    /// Completes the files of this writer. After an error it may be called again.
    pub(crate) fn finish(&mut self) -> Result<(), ArchiveError> {
        self.end_segment()?;
        let ArchiveSettings { folder, epoch, .. } = &self.settings;
        while let Some(id) = self.left.last() {
            adopt(folder, *id, *epoch, &|| true)?;
            self.left.pop();
        }
        Ok(())
    }

    /// Completes the present file. After an error it stays with this writer, which tries again.
    fn end_segment(&mut self) -> Result<(), ArchiveError> {
        if let Some(segment) = &mut self.segment {
            segment.finish()?;
        }
        self.segment = None;
        Ok(())
    }

    /// Begins the next file with its warcinfo record.
    fn begin_segment(&mut self) -> Result<Segment, ArchiveError> {
        self.make_folder()?;
        loop {
            self.last += 1;
            let id = FileId {
                epoch: self.settings.epoch,
                n: self.last,
            };
            self.info_id = new_id();
            let first = self.warcinfo(id);
            // Another archive of this life may have taken the number.
            if let Some(segment) = Segment::create(&self.settings.folder, id, &first)? {
                return Ok(segment);
            }
        }
    }

    fn warcinfo(&self, id: FileId) -> Record {
        let info = &self.info;
        let settings = CrawlSettings {
            cookie_seeds: Vec::new(),
            ..info.settings.clone()
        };
        let json = serde_json::to_string(&settings).expect("settings are JSON");
        let RunInfo {
            name,
            resource,
            run,
            ..
        } = info;
        let fields = warc_fields(&[
            ("software", SOFTWARE.to_owned()),
            ("format", "WARC File Format 1.1".to_owned()),
            (
                "conformsTo",
                "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
                    .to_owned(),
            ),
            ("isPartOf", format!("{name} run {run}")),
            ("robots", info.settings.robots().to_string()),
            ("crawler-resource", format!("{name} ({resource})")),
            (RUN, run.to_string()),
            ("crawler-shard", info.shard.to_string()),
            (EPOCH, id.epoch.to_string()),
            (FILE, id.n.to_string()),
            (RUN_STARTED, info.started_at.to_string()),
            ("crawler-settings", json),
        ]);
        let (at, kind) = (self.clock.unix_millis(), "application/warc-fields");
        Record::new("warcinfo", &self.info_id, at, kind, vec![fields])
            .with("WARC-Filename", id.warc())
    }

    /// Makes the folder, one level after the other: a base that was taken away does not come back.
    fn make_folder(&self) -> Result<(), ArchiveError> {
        let ArchiveSettings { base, folder, .. } = &self.settings;
        let below = folder.strip_prefix(base).unwrap_or(Path::new(""));
        let mut path = base.clone();
        for part in below {
            path.push(part);
            match fs::create_dir(&path) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                    return Err(ArchiveError::of("create", &path)(error));
                }
                // Whoever has made it may have crashed before its name was durable.
                Ok(()) | Err(_) => sync_folder(path.parent().unwrap_or(base))?,
            }
        }
        Ok(())
    }
}
