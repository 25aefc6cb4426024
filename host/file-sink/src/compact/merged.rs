//! Files of a folder on their way through this machine: their heads, and the outputs that are made of them.

use std::fs::File;

use crawler_process::task;
use crawler_sink::SinkError;

use super::Work;
use super::choice::Batch;
use super::folder::{Folder, MAX_UNREADABLE};
use super::merge::{self, AppendError, Head, Merge, MergeError};
use crate::settings::Format;

/// Output that was merged.
pub(super) struct Merged {
    /// Temporary file, to be read from its beginning.
    pub(super) file: File,
    /// Files whose rows it has.
    pub(super) names: Vec<String>,
    /// Size in bytes of these files.
    pub(super) n_bytes: u64,
}

/// Error of a merge.
enum Failure {
    /// A file is damaged: the others go on without it.
    Damaged(String, SinkError),
    /// The place or this machine is in trouble, whatever the file is.
    Trouble(SinkError),
}

impl Folder<'_> {
    /// Returns the head of a file; `None` if it is gone.
    pub(super) async fn head(&self, format: Format, name: &str) -> Result<Option<Head>, SinkError> {
        let path = self.file(name);
        let Some(file) = self.place.fetch(&path).await? else {
            return Ok(None);
        };
        let head = blocking(move || merge::head(format, file)).await;
        head.map(Some).map_err(|error| self.unreadable(name, error))
    }

    /// Merges the files of a batch, without those that are damaged or gone. Returns `None` if too few are left, which is told.
    /// An error is about more than these files.
    pub(super) async fn merge(
        &self,
        mut batch: Batch,
        work: &mut Work<'_>,
    ) -> Result<Option<Merged>, SinkError> {
        let mut n_damaged = 0;
        loop {
            let (name, error) = match self.try_merge(&batch, work).await {
                Ok(merged) => {
                    batch.names.clone_from(&merged.names);
                    return Ok(Some(merged).filter(|_| batch.is_worth_it(work.settings)));
                }
                Err(Failure::Trouble(error)) => return Err(error),
                Err(Failure::Damaged(name, error)) => (name, error),
            };
            work.failed(&error);
            batch.names.retain(|other| *other != name);
            n_damaged += 1;
            if n_damaged == MAX_UNREADABLE || !batch.is_worth_it(work.settings) {
                return Ok(None);
            }
        }
    }

    async fn try_merge(&self, batch: &Batch, work: &Work<'_>) -> Result<Merged, Failure> {
        let trouble = |error| Failure::Trouble(self.unwritable(error));
        let (format, table) = (batch.format, batch.table.clone());
        let begun = blocking(move || Merge::new(format, &table, tempfile::tempfile()?)).await;
        let mut merge = begun.map_err(trouble)?;
        let (mut names, mut n_bytes) = (Vec::new(), 0);
        for name in &batch.names {
            let fetched = self.place.fetch(&self.file(name)).await;
            // Another compaction may have taken it.
            let Some(file) = fetched.map_err(Failure::Trouble)? else {
                continue;
            };
            let appended = blocking(move || {
                let read_bytes = file.metadata()?.len();
                let appended = merge.append(file);
                Ok((merge, appended, read_bytes))
            });
            let (appending, appended, read_bytes) = appended.await.map_err(trouble)?;
            appended.map_err(|error| match error {
                AppendError::Input(error) => {
                    Failure::Damaged(name.clone(), self.unreadable(name, error))
                }
                AppendError::Output(error) => trouble(error),
            })?;
            merge = appending;
            names.push(name.clone());
            n_bytes += read_bytes;
            work.progress();
        }
        let finished = blocking(move || merge.finish()).await;
        Ok(Merged {
            file: finished.map_err(trouble)?,
            names,
            n_bytes,
        })
    }

    fn unreadable(&self, name: &str, error: MergeError) -> SinkError {
        SinkError::Permanent {
            message: format!(
                "cannot read {}, which is left as it is",
                self.place.path_shown(&self.file(name))
            ),
            source: Some(error),
        }
    }

    fn unwritable(&self, error: MergeError) -> SinkError {
        SinkError::Retry {
            message: format!(
                "cannot write a temporary file for {}",
                self.place.path_shown(&self.path)
            ),
            source: Some(error),
        }
    }
}

/// Does work on files away from the executor.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, MergeError> + Send + 'static,
) -> Result<T, MergeError> {
    task::blocking(work).await?
}
