//! Steps of a compaction in one folder: what earlier runs have left is ended first, and then files become one.

use std::collections::BTreeMap;

use futures::future::join_all;
use object_store::ObjectMeta;
use object_store::path::Path as ObjectPath;

use crawler_model::number;
use crawler_sink::SinkError;

use super::choice::{Batch, Batches, Candidate, without_few};
use super::known::Known;
use super::log::{Entry, FolderLog, Outcome, Plan};
use super::merged::Merged;
use super::names::{self, FileName, Origin};
use super::{Made, Notice, Work};
use crate::place::OpenPlace;
use crate::settings::Format;

/// Number of files whose heads are read at once.
const AT_ONCE: usize = 8;
/// Number of files in a row that a place does not give before the rest of their folder is given up, and number of files of
/// a batch that cannot be merged before the batch is.
pub(super) const MAX_UNREADABLE: usize = 8;

/// Folder with files of the sink.
pub(super) struct Folder<'p> {
    pub(super) place: &'p OpenPlace,
    pub(super) path: ObjectPath,
    pub(super) log: FolderLog<'p>,
    /// Files of the sink that are there, by name. All other files are somebody else's.
    pub(super) files: BTreeMap<String, (FileName, ObjectMeta)>,
}

impl<'p> Folder<'p> {
    /// Returns a folder with what was found in it. The log is read later: so it tells of each output that was found.
    pub(super) fn new(place: &'p OpenPlace, path: ObjectPath, found: Vec<ObjectMeta>) -> Self {
        Self {
            place,
            log: FolderLog::new(place, &path),
            files: own(found),
            path,
        }
    }

    /// Carries all steps out. What concerns single files is told, and is no error.
    pub(super) async fn compact(mut self, work: &mut Work<'_>) -> Result<(), SinkError> {
        if self.files.is_empty() {
            return Ok(());
        }
        let mut known = self.known().await?;
        self.end_open(&mut known, work).await?;
        self.trace(&mut known, work).await?;
        self.remove_taken(&known, work).await?;
        let candidates = self.candidates(&known, work);
        for batch in self.choose(candidates, work).await? {
            if work.settings.is_dry {
                work.made(&self.made(batch.names.len(), batch.n_bytes, None));
                continue;
            }
            let (resource, format) = (batch.resource, batch.format);
            let Some(merged) = self.merge(batch, work).await? else {
                continue;
            };
            known.last += 1;
            let output = names::output(resource, known.last, format, &merged.names);
            let replaced = self.replace(known.last, output, merged, format, work);
            if let Some(why) = Box::pin(replaced).await? {
                (work.tell)(Notice::LeftAlone(format!("{}: {why}", self.path)));
                break;
            }
        }
        Ok(())
    }

    /// Reads the log.
    async fn known(&self) -> Result<Known, SinkError> {
        let mut known = Known::default();
        let each = |Entry { n, plan, outcome }| {
            match outcome {
                Some(outcome) => known.add(&self.files, n, plan, outcome),
                None => known.open.push((n, plan)),
            }
            Ok(())
        };
        let last = self.log.each(each).await?;
        known.last = last;
        Ok(known)
    }

    /// Undoes compactions without an end, unless their end comes meanwhile.
    async fn end_open(&self, known: &mut Known, work: &mut Work<'_>) -> Result<(), SinkError> {
        for (n, plan) in std::mem::take(&mut known.open) {
            let outcome = match work.settings.is_dry {
                true => Outcome::Undone,
                false => self.log.end(n, Outcome::Undone).await?,
            };
            if outcome == Outcome::Undone {
                work.done.n_undone += 1;
                let path = self.file(&plan.output);
                if !work.settings.is_dry {
                    self.place.sweep(&path).await?;
                }
                let verb = verb("was undone", "would be undone", work);
                let text = format!("{}: compaction {n}, which did not end, {verb}", self.path);
                (work.tell)(Notice::Done(text));
            }
            known.add(&self.files, n, plan, outcome);
        }
        Ok(())
    }

    /// Removes files whose rows are elsewhere.
    async fn remove_taken(&mut self, known: &Known, work: &mut Work<'_>) -> Result<(), SinkError> {
        if known.taken.is_empty() {
            return Ok(());
        }
        let n_taken = known.taken.len() as u64;
        let paths: Vec<ObjectPath> = known.taken.iter().map(|name| self.file(name)).collect();
        if !work.settings.is_dry {
            self.log.sync().await?;
            self.place.remove_all(&paths).await?;
        }
        self.files.retain(|name, _| !known.taken.contains(name));
        work.done.n_removed += n_taken;
        let verb = verb("removed", "would be removed", work);
        let files = number(n_taken, "file");
        let text = format!(
            "{}: {files} {verb}, whose rows are in other files",
            self.path
        );
        (work.tell)(Notice::Done(text));
        Ok(())
    }

    /// Returns the files that are small and old enough, in the order of their names. Others that are small are counted.
    fn candidates(&self, known: &Known, work: &mut Work<'_>) -> Vec<Candidate> {
        let settings = work.settings;
        let min_age = u64::try_from(settings.min_age.as_millis()).unwrap_or(u64::MAX);
        let small = self.files.iter().filter(|(name, (file, found))| {
            let counts = match file.origin {
                Origin::Write => true,
                Origin::Compaction(_) => known.kept.contains(*name),
            };
            counts && !known.lost.contains(*name) && found.size < settings.target_bytes / 2
        });
        let (old, young): (Vec<_>, Vec<_>) = small.partition(|(_, (_, found))| {
            let written = u64::try_from(found.last_modified.timestamp_millis()).unwrap_or(0);
            written.saturating_add(min_age) <= work.now
        });
        let candidates = old.into_iter().map(|(name, (file, found))| Candidate {
            file: *file,
            name: name.clone(),
            n_bytes: found.size,
        });
        let mut candidates: Vec<Candidate> = candidates.collect();
        let n_old = candidates.len();
        without_few(settings, &mut candidates);
        work.done.n_young += young.len() as u64;
        work.done.n_few += (n_old - candidates.len()) as u64;
        candidates
    }

    /// Returns the batches that are worth it. A file that cannot be read is told, and is in none.
    async fn choose(
        &self,
        candidates: Vec<Candidate>,
        work: &mut Work<'_>,
    ) -> Result<Vec<Batch>, SinkError> {
        let mut batches = Batches::new(work.settings);
        let mut n_refused = 0;
        for some in candidates.chunks(AT_ONCE) {
            let mut heads = Vec::new();
            for candidate in some {
                heads.push(self.head(candidate.file.format, &candidate.name));
            }
            for (candidate, head) in some.iter().zip(join_all(heads).await) {
                let head = match head {
                    Ok(Some(head)) => head,
                    // Another compaction has taken it.
                    Ok(None) => continue,
                    Err(error) => {
                        // The place is there if it gives a damaged file.
                        let is_refused = matches!(error, SinkError::Retry { .. });
                        n_refused = if is_refused { n_refused + 1 } else { 0 };
                        if n_refused == MAX_UNREADABLE {
                            return Err(error);
                        }
                        work.failed(&error);
                        continue;
                    }
                };
                n_refused = 0;
                if let Some(why) = batches.add(candidate.clone(), head) {
                    let path = self.file(&candidate.name);
                    let text = format!("{path} stays apart from files before it: {why}");
                    (work.tell)(Notice::LeftAlone(text));
                }
            }
        }
        Ok(batches.finish())
    }

    /// Replaces files by their output, as the compaction of this number. Returns the reason if they are left as they are,
    /// because somebody else is at work on them.
    async fn replace(
        &self,
        n: u64,
        output: String,
        merged: Merged,
        format: Format,
        work: &mut Work<'_>,
    ) -> Result<Option<String>, SinkError> {
        let other = "another compaction is under way there, to which it is left".to_owned();
        let plan = Plan {
            writer: format!("{:016x}", rand::random::<u64>()),
            inputs: merged.names,
            output,
        };
        if !self.log.begin(n, &plan).await? {
            return Ok(Some(other));
        }
        let published = self.publish(&plan, merged.file, format.media_type()).await;
        let ended = match published {
            Ok(None) => self.log.end(n, Outcome::Kept).await.map(|end| (end, other)),
            Ok(Some(why)) => {
                let ended = self.log.end(n, Outcome::Undone).await;
                ended.map(|end| (end, why))
            }
            Err(error) => Err(error),
        };
        // If the answer to the end was lost, the end that counts is asked for.
        let (outcome, why) = match ended {
            Ok((outcome, why)) => (outcome, Ok(Some(why))),
            Err(error) => (self.log.end(n, Outcome::Undone).await?, Err(error)),
        };
        if outcome == Outcome::Undone {
            self.place.sweep(&self.file(&plan.output)).await?;
            return why;
        }
        let inputs: Vec<ObjectPath> = plan.inputs.iter().map(|name| self.file(name)).collect();
        self.place.remove_all(&inputs).await?;
        work.made(&self.made(inputs.len(), merged.n_bytes, Some(plan.output)));
        Ok(None)
    }

    fn made(&self, n_inputs: usize, input_bytes: u64, output: Option<String>) -> Made {
        Made {
            folder: self.path.to_string(),
            n_inputs: n_inputs as u64,
            input_bytes,
            output,
        }
    }

    /// Gives the output its name, if all inputs are still there. Returns the reason if they are not.
    async fn publish(
        &self,
        plan: &Plan,
        file: std::fs::File,
        media_type: &'static str,
    ) -> Result<Option<String>, SinkError> {
        let found = own(self.place.list(Some(&self.path)).await?.objects);
        let gone = plan.inputs.iter().find(|name| !found.contains_key(*name));
        if let Some(name) = gone {
            let why = "was removed meanwhile; the files that were to become one with it are left as they are";
            return Ok(Some(format!("{name} {why}")));
        }
        let output = self.file(&plan.output);
        self.place.upload(&output, file, media_type).await?;
        Ok(None)
    }

    pub(super) fn file(&self, name: &str) -> ObjectPath {
        self.path.clone().join(name)
    }
}

/// Returns the files of the sink by name.
pub(super) fn own(found: Vec<ObjectMeta>) -> BTreeMap<String, (FileName, ObjectMeta)> {
    let files = found.into_iter().filter_map(|object| {
        let name = object.location.filename()?.to_owned();
        let file = FileName::parse(&name)?;
        Some((name, (file, object)))
    });
    files.collect()
}

fn verb(done: &'static str, dry: &'static str, work: &Work<'_>) -> &'static str {
    match work.settings.is_dry {
        true => dry,
        false => done,
    }
}
