//! `crawler sink`: lists the sinks of a config file, tries one of them, or compacts its files.

use std::time::Duration;

use anyhow::Context as _;

use super::{sink_compact, sinks};
use crate::cli::Failure;
use crate::cli::sink::{self, SinkAction, SinkOptions};
use crate::config::{FileConfig, SinkConfig};

/// Time that a check may take.
const DEADLINE: Duration = Duration::from_secs(30);

/// Carries the command out.
pub(super) async fn run(options: SinkOptions) -> anyhow::Result<()> {
    let (file, is_json) = (&options.file, options.is_json);
    match &options.action {
        SinkAction::List => sink::print_list(&file.sinks, is_json),
        SinkAction::Check(config) => check(config, file, is_json).await,
        SinkAction::Compact(config, settings) => {
            Box::pin(sink_compact::run(config, settings, is_json)).await
        }
    }
}

/// Refuses a sink whose folder is not there.
pub(super) fn check_folder(config: &SinkConfig) -> Result<(), Failure> {
    let Some(folder) = config.place.folder().filter(|folder| !folder.is_dir()) else {
        return Ok(());
    };
    let (name, folder) = (&config.name, folder.display());
    let what = format!("sink {name} takes no items: {folder} does not exist or is not a folder");
    let hint = "make it for the user of the worker; a crawl does not, because it may be a disk that is not mounted";
    Err(Failure::new(what, hint))
}

async fn check(config: &SinkConfig, file: &FileConfig, is_json: bool) -> anyhow::Result<()> {
    check_folder(config)?;
    let declared = sinks::declared_sink(config, file)?;
    let name = &config.name;
    let checked = tokio::time::timeout(DEADLINE, declared.check()).await;
    let checked = checked.map_err(|_elapsed| {
        Failure::new(
            format!("sink {name} gave no answer within {} s", DEADLINE.as_secs()),
            "look at the network between this machine and it",
        )
    })?;
    let checked = checked.with_context(|| format!("sink {name} takes no items"))?;
    sink::print_check(config, &checked.would_create, is_json)
}
