//! `crawler sink compact`: makes few files of the many small ones of a sink.

use anyhow::Context as _;

use super::{sink_check, sinks};
use crate::cli::sink::compact;
use crate::cli::{Failure, progress};
use crate::config::{SinkConfig, SinkPlace};
use crawler_file_sink::{CompactSettings, Notice};
use crawler_process::clock::{Clock as _, SystemClock};
use crawler_process::telemetry::chain;

/// Carries the command out. What was done and what has failed is told as it comes.
pub(super) async fn run(
    config: &SinkConfig,
    settings: &CompactSettings,
    is_json: bool,
) -> anyhow::Result<()> {
    let name = &config.name;
    let SinkPlace::Files(files) = &config.place else {
        let what = format!("sink {name} has no files in partitions");
        let hint = "only a sink in a bucket, or in a folder with format or partition, is compacted";
        return Err(Failure::new(what, hint).into());
    };
    sink_check::check_folder(config)?;
    let unusable = || format!("sink {name} cannot be compacted");
    let sinks = sinks::partitioned(files).with_context(unusable)?;
    let spinner = progress::spinner();
    let tell = |notice: Notice<'_>| match notice {
        Notice::Progress(compacted) => {
            spinner.set_message(compact::progress(compacted));
            spinner.tick();
        }
        Notice::Made(made) => {
            spinner.suspend(|| compact::print_step(&compact::made(made), is_json));
        }
        Notice::Done(text) => spinner.suspend(|| compact::print_step(&text, is_json)),
        Notice::LeftAlone(text) => spinner.suspend(|| compact::print_left(&text)),
        Notice::Failed(error) => spinner.suspend(|| compact::print_left(&chain(error))),
    };
    let compacted = sinks
        .compact(settings, SystemClock.unix_millis(), &tell)
        .await;
    spinner.finish_and_clear();
    let compacted = compacted.with_context(unusable)?;
    compact::print_summary(name, &compacted, settings.is_dry, is_json)?;
    compact::failure(&compacted).map_or(Ok(()), |failure| Err(failure.into()))
}
