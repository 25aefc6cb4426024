//! Files of a folder on their way through this machine: their heads, and the outputs that are made of them.

use std::fs::File;

use crawler_process::task;
use crawler_sink::SinkError;

use super::Work;
use super::choice::Batch;
use super::folder::{Folder, MAX_UNREADABLE};
use super::merge::{self, Head, Merge, MergeError};
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
    /// A file cannot be read.
    Input(String, SinkError),
    /// The output cannot be written.
    Output(SinkError),
}

impl Folder<'_> {
    /// Returns the head of a file.
    pub(super) async fn head(&self, format: Format, name: &str) -> Result<Head, SinkError> {
        let path = self.file(name);
        let file = self.place.fetch(&path).await?;
        let head = blocking(move || merge::head(format, file)).await;
        head.map_err(|error| self.unreadable(name, error))
    }

    /// Merges the files of a batch, without those that cannot be read.
    pub(super) async fn merge(
        &self,
        mut batch: Batch,
        work: &mut Work<'_>,
    ) -> Result<Merged, SinkError> {
        let mut n_unreadable = 0;
        loop {
            let (name, error) = match self.try_merge(&batch, work).await {
                Ok(merged) => return Ok(merged),
                Err(Failure::Output(error)) => return Err(error),
                Err(Failure::Input(name, error)) => (name, error),
            };
            batch.names.retain(|other| *other != name);
            n_unreadable += 1;
            if n_unreadable == MAX_UNREADABLE || !batch.is_worth_it(work.settings) {
                return Err(error);
            }
            work.failed(&error);
        }
    }

    async fn try_merge(&self, batch: &Batch, work: &Work<'_>) -> Result<Merged, Failure> {
        let (format, table) = (batch.format, batch.table.clone());
        let begun = blocking(move || Merge::new(format, &table, tempfile::tempfile()?)).await;
        let mut merge = begun.map_err(|error| Failure::Output(self.unwritable(error)))?;
        let mut n_bytes = 0;
        for name in &batch.names {
            let of_input = |error| Failure::Input(name.clone(), error);
            let fetched = self.place.fetch(&self.file(name)).await;
            let file = fetched.map_err(of_input)?;
            let appended = blocking(move || {
                let read_bytes = file.metadata()?.len();
                merge.append(file)?;
                Ok((merge, read_bytes))
            });
            let appended = appended.await;
            let appended = appended.map_err(|error| of_input(self.unreadable(name, error)))?;
            merge = appended.0;
            n_bytes += appended.1;
            work.progress();
        }
        let finished = blocking(move || merge.finish()).await;
        Ok(Merged {
            file: finished.map_err(|error| Failure::Output(self.unwritable(error)))?,
            names: batch.names.clone(),
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
