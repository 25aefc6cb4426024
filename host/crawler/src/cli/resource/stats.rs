//! `crawler resource stats`: statistics of the present run as a block, as `resource get` and `resource wait`
//! show them too.

use std::time::Duration;

use crawler_proto as proto;
use tokio::time::{Instant, sleep};

use super::list::pace;
use crate::cli::args::{Format, OutputArgs};
use crate::cli::block::Block;
use crate::cli::{print_note, table};
use crawler_api::client::{Client, ClientError};
use crawler_api::problem::Reason;
use crawler_model::id::{ResourceName, Run};
use crawler_model::resource::{CrawlSettings, Phase};
use crawler_model::statistics::{RunStatistics, Statistics, why_ended};

/// Time for which statistics that cannot be read are asked for again, where a person waits for them.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// Time between two attempts to read them.
const READ_AGAIN_AFTER: Duration = Duration::from_millis(250);

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
    let standing = standing(&resource);
    let block = Block {
        found: &found,
        end: &standing,
    };
    table::print_line(&format!("run {}: {}", found.run, block.summary()))?;
    print_rows(&block)
}

/// Counts and statistics of a run.
pub(super) struct Found {
    /// Counts as the resource has them, and statistics; empty if they cannot be read.
    pub(super) run: RunStatistics,
    /// Reason why the statistics cannot be read.
    pub(super) unread: Option<String>,
}

/// Reads the statistics of a resource's run. They are in the data root, which may be away for a moment or for
/// longer while the resource itself is known: they are asked for again during `patience`. A crawl that has never begun
/// has none.
pub(super) async fn find(
    client: &Client,
    name: &ResourceName,
    resource: &proto::Resource,
    patience: Duration,
) -> Found {
    let asked_until = Instant::now() + patience;
    let read = loop {
        match client.statistics(name).await {
            Err(error) if error.is_transient() && Instant::now() < asked_until => {
                sleep(READ_AGAIN_AFTER).await;
            }
            read => break read,
        }
    };
    let (statistics, unread) = match read {
        Ok(found) => (crawler_api::statistics(found).statistics, None),
        Err(ClientError::Refused(problem)) if problem.reason == Some(Reason::NeverCrawled) => {
            (Statistics::default(), None)
        }
        Err(error) => (Statistics::default(), Some(error.to_string())),
    };
    Found {
        run: RunStatistics {
            run: Run(resource.run),
            counts: crawler_api::totals(resource.counts()),
            statistics,
            end: end(resource),
        },
        unread,
    }
}

/// Prints a run of a resource: its time, speed and end, and all lines of its block after the first.
pub(super) fn print_run(found: &RunStatistics, resource: &proto::Resource) -> anyhow::Result<()> {
    let standing = standing(resource);
    let block = Block {
        found,
        end: &standing,
    };
    table::print_line(&format!("  {:<13} {}", "run", block.took()))?;
    print_rows(&block)
}

/// Prints the lines of a block after the first.
fn print_rows(block: &Block<'_>) -> anyhow::Result<()> {
    for (name, value) in block.rows() {
        table::print_line(&format!("  {name:<13} {value}"))?;
    }
    Ok(())
}

/// Prints to stderr that statistics are missing, if they are.
pub(super) fn print_unread(found: &Found) {
    if let Some(why) = &found.unread {
        print_note(&format!("statistics cannot be read: {why}"));
    }
}

/// Returns why a run has ended, or its phase and the time left while it goes on.
fn standing(resource: &proto::Resource) -> String {
    let phase = match (end(resource), resource.reason.as_str()) {
        (end, _) if !end.is_empty() => return end,
        (_, "") => resource.phase.clone(),
        (_, reason) => format!("{}: {reason}", resource.phase),
    };
    match pace(resource, None).left_words() {
        Some(left) => format!("{phase}, {left}"),
        None => phase,
    }
}

/// Returns why a run has ended; empty while it goes on.
fn end(resource: &proto::Resource) -> String {
    let phase = match resource.phase.as_str() {
        "Finished" => Phase::Finished,
        "Failed" => Phase::Failed(resource.reason.clone()),
        _ => return String::new(),
    };
    let limits = resource.spec().crawl.unwrap_or_default();
    let settings = CrawlSettings {
        max_pages: limits.max_pages,
        max_bytes: limits.max_bytes,
        ..CrawlSettings::default()
    };
    let counts = crawler_api::totals(resource.counts());
    why_ended(&phase, &counts, &settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_tells_its_end_or_how_it_stands() {
        let check = |phase: &str, reason: &str, expected: &str| {
            let resource = proto::Resource {
                phase: phase.to_owned(),
                reason: reason.to_owned(),
                counts: Some(proto::Counts {
                    parsed: 40,
                    due: 100,
                    began_at: 1_000,
                    ended_at: 5_000,
                    ..proto::Counts::default()
                }),
                ..proto::Resource::default()
            };
            assert_eq!(standing(&resource), expected);
        };
        check("Finished", "", "100 URLs are left");
        let failed = "the crawl failed: the plugin is gone";
        check("Failed", "the plugin is gone", failed);
        check("Running", "", "Running, about 10s left");
        check("Paused", "", "Paused");
        check("Pending", "no worker", "Pending: no worker");
    }
}
