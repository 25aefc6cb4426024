//! The file of `--stats`: the statistics of a run as JSON, as the API shows them.

use std::path::Path;

use anyhow::Context as _;

use crawler_model::statistics::RunStatistics;

/// Writes the statistics of a run into a file, in place of what it has.
pub(super) async fn write(path: &Path, found: RunStatistics) -> anyhow::Result<()> {
    let message = crawler_api::statistics_message(found);
    let json = serde_json::to_vec_pretty(&message)?;
    let written = tokio::fs::write(path, json).await;
    written.with_context(|| format!("cannot write {}", path.display()))
}
