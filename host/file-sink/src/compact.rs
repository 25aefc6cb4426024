//! Compaction: the many small files of a folder become few large ones, without a row lost or there twice in the end.
//!
//! A folder is done in these steps, for each batch of files that become one:
//!
//! 1. The rows are merged into a temporary file of this machine. What cannot be read is left out. Nothing in the place has
//!    changed so far.
//! 2. The next plan of the [log] of the folder names the inputs and the output. Then all inputs are looked for: one that is
//!    gone belongs to somebody who writes its items elsewhere.
//! 3. The output gets its name, as a whole.
//! 4. The plan ends as kept. This is the moment at which the output counts, and the inputs do not.
//! 5. The inputs are removed.
//!
//! A reader between the third step and the fifth may see rows twice, with the same `_key`, and never misses one. The other
//! order would hide rows: from programs that then report too little, and cannot know. Of a kill before the fourth step, the
//! next run undoes the rest: it ends the plan as undone, and removes the output. After the fourth step, it removes the
//! inputs, if it sees the output there, or a file that has taken it. Either needs no more than the log and the names in the
//! folder, so it is the same on each machine.
//!
//! A worker may write a file again that was taken: after a crash, it goes on with the plan that its frontier keeps, and one
//! that has lost its lease may do so at any time. Before and after it writes a file again, a worker asks the log, and
//! removes the file if it was taken. A worker that does not know that it writes again is too late to ask; the next
//! compaction removes its file by the log. A worker that has to write the items of a file elsewhere, because settings have
//! changed, [takes the file back](log::take_back), or refuses if it was taken.
//!
//! ```text
//! names     names of files that the sink makes
//! log       what compactions of a folder have taken
//! choice    files that become one
//! merge     rows of several files as one
//! groups    the same for Parquet
//! merged    files of a folder on their way through this machine
//! known     files that count, and files that were taken
//! folder    the steps in one folder
//! ```

use std::time::Duration;

use object_store::path::Path as ObjectPath;

use crawler_model::crawl::UnixMillis;
use crawler_sink::SinkError;
use crawler_sink::settings::{SettingError, check_number, check_size, check_time};

use crate::FileSinks;
use crate::partition::{NO_VALUE, PATH_MAX};
use folder::Folder;

mod choice;
mod folder;
mod groups;
mod known;
mod log;
mod merge;
mod merged;
mod names;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use log::{take_back, was_taken};

/// Number of folders in a row that fail before the rest is given up: the place itself is in trouble.
const MAX_FAILED: usize = 10;

/// Settings of a compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactSettings {
    /// Size in bytes up to which files become one. A file of half this size or more stays as it is.
    pub target_bytes: u64,
    /// Smallest number of files that become one, unless the one has the target size.
    pub min_files: usize,
    /// Age that a file has at least.
    pub min_age: Duration,
    /// True if nothing is changed, and only told.
    pub is_dry: bool,
}

impl Default for CompactSettings {
    fn default() -> Self {
        Self {
            target_bytes: 128 << 20,
            min_files: 8,
            min_age: Duration::from_secs(3_600),
            is_dry: false,
        }
    }
}

impl CompactSettings {
    /// Checks that all numbers are in their ranges.
    ///
    /// # Errors
    ///
    /// Names the first setting that is out of its range, as an option of the command.
    pub fn check(&self) -> Result<(), SettingError> {
        let sizes = 1 << 20..=1 << 30;
        check_size("--target", self.target_bytes, sizes, ("1MiB", "1GiB"))?;
        let numbers = 2..=choice::MAX_INPUTS as u64;
        check_number("--min-files", self.min_files as u64, numbers, ("2", "4000"))?;
        let ages = Duration::ZERO..=Duration::from_secs(30 * 86_400);
        check_time("--min-age", self.min_age, ages, ("0s", "30days"))
    }
}

/// Numbers of a compaction. Those of a dry one tell what would be done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Folders that were looked at.
    pub n_folders: u64,
    /// Files that have become others.
    pub n_inputs: u64,
    /// Their size in bytes.
    pub input_bytes: u64,
    /// Files that were made of them.
    pub n_outputs: u64,
    /// Compactions that were killed, and were undone.
    pub n_undone: u64,
    /// Files that were removed because an earlier compaction has taken them.
    pub n_removed: u64,
    /// Small files that are left because they are not old enough.
    pub n_young: u64,
    /// Small files that are left because there are too few of them.
    pub n_few: u64,
    /// Files and folders that could not be read or written.
    pub n_failed: u64,
}

/// Files that have become one, or would.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// Folder of the files, below that of the sink.
    pub folder: String,
    /// Number of the files.
    pub n_inputs: u64,
    /// Their size in bytes.
    pub input_bytes: u64,
    /// Name of the file that has their rows. `None` if nothing is changed.
    pub output: Option<String>,
}

/// Message of a compaction to whoever watches it.
#[derive(Debug)]
pub enum Notice<'n> {
    /// It goes on, and has come so far.
    Progress(&'n Compacted),
    /// Files have become one, or would.
    Made(&'n Made),
    /// Sentence about something that was done, or would be.
    Done(String),
    /// Sentence about something that is left as it is, for a good reason.
    LeftAlone(String),
    /// Something failed, and is left as it is.
    Failed(&'n SinkError),
}

/// Compaction on its way.
struct Work<'w> {
    settings: &'w CompactSettings,
    now: UnixMillis,
    tell: &'w (dyn Fn(Notice<'_>) + Sync),
    done: Compacted,
}

impl Work<'_> {
    fn made(&mut self, made: &Made) {
        self.done.n_inputs += made.n_inputs;
        self.done.input_bytes += made.input_bytes;
        self.done.n_outputs += 1;
        (self.tell)(Notice::Made(made));
        self.progress();
    }

    fn progress(&self) {
        (self.tell)(Notice::Progress(&self.done));
    }

    fn failed(&mut self, error: &SinkError) {
        self.done.n_failed += 1;
        (self.tell)(Notice::Failed(error));
    }
}

impl FileSinks {
    /// Makes few large files of the many small ones in all folders. `now` is the time by which files have their age. What
    /// fails in one folder is told, and the others go on, until several have failed in a row. Symbolic links are not
    /// followed: files would be there under two names, with a log for each.
    ///
    /// # Errors
    ///
    /// A setting is out of range, or the place cannot be opened or listed.
    pub async fn compact(
        &self,
        settings: &CompactSettings,
        now: UnixMillis,
        tell: &(dyn Fn(Notice<'_>) + Sync),
    ) -> Result<Compacted, SinkError> {
        settings.check().map_err(|error| SinkError::Permanent {
            message: "cannot compact files with these settings".to_owned(),
            source: Some(error.into()),
        })?;
        let place = self.place.open().await?;
        let mut work = Work {
            settings,
            now,
            tell,
            done: Compacted::default(),
        };
        let root = place.list(None).await?;
        let mut waiting = partitions(root.common_prefixes);
        let mut n_failed = 0;
        while let Some(path) = waiting.pop() {
            let listed = match place.is_link(&path).await {
                Ok(true) => {
                    let text = format!("{path} is a symbolic link, and is not followed");
                    tell(Notice::LeftAlone(text));
                    continue;
                }
                Ok(false) => place.list(Some(&path)).await,
                Err(error) => Err(error),
            };
            work.done.n_folders += 1;
            work.progress();
            let done = match listed {
                Ok(listed) => {
                    waiting.extend(partitions(listed.common_prefixes));
                    let folder = Folder::new(&place, path, listed.objects);
                    Box::pin(folder.compact(&mut work)).await
                }
                Err(error) => Err(error),
            };
            match done {
                Ok(()) => n_failed = 0,
                Err(error) => {
                    n_failed += 1;
                    work.failed(&error);
                }
            }
            if n_failed == MAX_FAILED {
                tell(Notice::LeftAlone(format!(
                    "{MAX_FAILED} folders of {} have failed one after the other; the rest is left as it is",
                    self.place.shown()
                )));
                break;
            }
        }
        Ok(work.done)
    }
}

/// Returns the folders that the sink may have made, in the reverse order of their names.
fn partitions(mut folders: Vec<ObjectPath>) -> Vec<ObjectPath> {
    folders.retain(|folder| {
        let name = folder.filename().unwrap_or_default();
        let is_hidden = name.starts_with(['.', '_']) && name != NO_VALUE;
        !is_hidden && folder.as_ref().len() <= PATH_MAX
    });
    folders.sort_by(|one, other| other.cmp(one));
    folders
}
