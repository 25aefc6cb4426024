//! `crawler resource stats`: statistics of the present run as a block, as `resource get` and `resource wait`
//! show them too.

use crawler_proto as proto;

use crate::cli::args::{Format, OutputArgs};
use crate::cli::block::{Block, why_ended};
use crate::cli::table;
use crawler_api::client::{Client, ClientError};
use crawler_master::Code;
use crawler_master::control::statistics::RunStatistics;
use crawler_model::id::ResourceName;

pub(super) async fn run(
    client: &Client,
    name: &ResourceName,
    output: &OutputArgs,
) -> anyhow::Result<()> {
    let found = client.statistics(name).await?;
    if output.format == Format::Json {
        return table::print_json(&found);
    }
    let resource = client.resource(name).await?;
    let found = crawler_api::statistics(found);
    table::print_line(&format!(
        "run {}: {}",
        found.run,
        block(&found, &end(&resource)).summary()
    ))?;
    print_rows(&found)
}

/// Returns the statistics of a resource's run, with its counts as they are now. A crawl that has never begun has
/// none.
pub(super) async fn find(
    client: &Client,
    name: &ResourceName,
    resource: &proto::Resource,
) -> Result<RunStatistics, ClientError> {
    let found = match client.statistics(name).await {
        Ok(found) => crawler_api::statistics(found),
        Err(ClientError::Refused(problem)) if problem.code == Code::FailedPrecondition => {
            RunStatistics::default()
        }
        Err(error) => return Err(error),
    };
    Ok(RunStatistics {
        counts: crawler_api::totals(resource.counts()),
        ..found
    })
}

/// Prints the lines of a block after the first.
pub(super) fn print_rows(found: &RunStatistics) -> anyhow::Result<()> {
    for (name, value) in block(found, "").rows() {
        table::print_line(&format!("  {name:<13} {value}"))?;
    }
    Ok(())
}

/// Returns the block of a run.
pub(super) fn block<'a>(found: &'a RunStatistics, end: &'a str) -> Block<'a> {
    Block {
        counts: &found.counts,
        statistics: &found.statistics,
        took_ms: found.counts.took_ms(),
        end,
    }
}

/// Returns why a run has ended, or its phase while it goes on.
pub(super) fn end(resource: &proto::Resource) -> String {
    let counts = crawler_api::totals(resource.counts());
    match (resource.phase.as_str(), resource.reason.as_str()) {
        ("Finished", _) => {
            let limits = resource.spec().crawl.unwrap_or_default();
            why_ended(&counts, limits.max_pages, limits.max_bytes)
        }
        ("Failed", _) => "the crawl failed".to_owned(),
        (phase, "") => phase.to_owned(),
        (phase, reason) => format!("{phase}: {reason}"),
    }
}
