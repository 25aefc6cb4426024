//! Knowledge that the log of a folder gives of the files that are there: which of them count, and which have gone into others.
//!
//! A file that was taken goes only if its rows are seen elsewhere: in a file that is there.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crawler_model::number;
use crawler_sink::SinkError;

use super::Work;
use super::folder::{Folder, own};
use super::log::{Outcome, Plan};
use super::names::{FileName, Origin};

/// Contents of a log, as far as they concern the files that are there.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Number of the last compaction; 0 if there is none.
    pub(super) last: u64,
    /// Files that count, although compactions have made them.
    pub(super) kept: BTreeSet<String>,
    /// Compactions that are kept, with those of their inputs that are there, or that compactions have made.
    took: Vec<(u64, Plan)>,
    /// Files whose rows are in others that are there, or that do not count.
    pub(super) taken: BTreeSet<String>,
    /// Files that were taken, but whose rows are nowhere else.
    pub(super) lost: BTreeSet<String>,
    /// Compactions without an end.
    pub(super) open: Vec<(u64, Plan)>,
}

impl Folder<'_> {
    /// Tells files whose rows are in a file that is there from those that have the only copy: whoever brings files back
    /// from a backup may bring back inputs without their output.
    pub(super) async fn trace(
        &self,
        known: &mut Known,
        work: &mut Work<'_>,
    ) -> Result<(), SinkError> {
        let mut took = std::mem::take(&mut known.took);
        took.sort_by_key(|(n, _)| Reverse(*n));
        // Files that are there, or whose rows are in such a file.
        let mut alive: BTreeSet<String> = self.files.keys().cloned().collect();
        let mut now = None;
        for (n, Plan { inputs, output, .. }) in took {
            if !alive.contains(&output) && now.is_none() {
                // The folder was listed before the log was read: another compaction may have gone on since.
                let found = own(self.place.list(Some(&self.path)).await?.objects);
                alive.extend(found.keys().cloned());
                now = Some(found);
            }
            let there = inputs.iter().filter(|name| self.files.contains_key(*name));
            if alive.contains(&output) {
                known.taken.extend(there.cloned());
                alive.extend(inputs);
                continue;
            }
            let is_left = |name: &&String| now.as_ref().is_none_or(|now| now.contains_key(*name));
            let lost: Vec<String> = there.filter(is_left).cloned().collect();
            if let Some(first) = lost.first() {
                work.failed(&self.lost(n, &output, first, lost.len()));
            }
            known.lost.extend(lost);
        }
        Ok(())
    }

    /// Returns the error of files whose output is gone.
    fn lost(&self, n: u64, output: &str, first: &str, n_lost: usize) -> SinkError {
        let shown = |name| self.place.path_shown(&self.file(name));
        let others = match n_lost as u64 - 1 {
            0 => String::new(),
            n => format!(", like {} beside it,", number(n, "file")),
        };
        let plan = self.place.path_shown(&self.log.path(n, "plan"));
        SinkError::Permanent {
            message: format!(
                "{}{others} was taken by compaction {n}, whose output {} is gone, and so is any file made of that; it is left as it is. Bring the output back, or, if it is gone for good, remove {plan}",
                shown(first),
                shown(output)
            ),
            source: None,
        }
    }
}

impl Known {
    /// Adds a compaction that has ended. Only files that are there matter, and those in which their rows are.
    pub(super) fn add<F>(
        &mut self,
        files: &BTreeMap<String, F>,
        n: u64,
        mut plan: Plan,
        outcome: Outcome,
    ) {
        match outcome {
            Outcome::Kept => {
                self.kept.insert(plan.output.clone());
                plan.inputs
                    .retain(|name| files.contains_key(name) || is_output(name));
                if !plan.inputs.is_empty() {
                    self.took.push((n, plan));
                }
            }
            Outcome::Undone => {
                let output = Some(plan.output);
                self.taken
                    .extend(output.filter(|name| files.contains_key(name)));
            }
        }
    }
}

/// Returns true if a compaction has made the file.
fn is_output(name: &str) -> bool {
    let file = FileName::parse(name);
    file.is_some_and(|file| matches!(file.origin, Origin::Compaction(_)))
}
