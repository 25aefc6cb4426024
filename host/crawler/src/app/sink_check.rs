//! `crawler sink`: lists the sinks of a config file, and tries one of them.

use std::time::Duration;

use anyhow::Context as _;

use super::sinks;
use crate::cli::Failure;
use crate::cli::sink::{self, SinkOptions};

/// Time that a check may take.
const DEADLINE: Duration = Duration::from_secs(30);

/// Carries the command out.
pub(super) async fn run(options: SinkOptions) -> anyhow::Result<()> {
    let Some(config) = &options.checked else {
        return sink::print_list(&options.file.sinks, options.is_json);
    };
    let declared = sinks::declared_sink(config, &options.file)?;
    let name = &config.name;
    let checked = tokio::time::timeout(DEADLINE, declared.check()).await;
    let checked = checked.map_err(|_elapsed| {
        Failure::new(
            format!("sink {name} gave no answer within {} s", DEADLINE.as_secs()),
            "look at the network between this machine and it",
        )
    })?;
    let checked = checked.with_context(|| format!("sink {name} takes no items"))?;
    sink::print_check(config, &checked.would_create, options.is_json)
}
