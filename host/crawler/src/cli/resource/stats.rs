//! `crawler resource stats`: statistics of the present run as a block, as `resource get` and `resource wait`
//! show them too.

use std::time::Duration;

use crawler_proto as proto;
use tokio::time::{Instant, sleep};

use super::list::pace;
use crate::cli::args::{Format, OutputArgs};
use crate::cli::block::{Block, why_ended};
use crate::cli::{print_note, table};
use crawler_api::client::{Client, ClientError};
use crawler_api::problem::Reason;
use crawler_model::id::{ResourceName, Run};
use crawler_model::resource::CrawlSettings;
use crawler_model::statistics::{RunStatistics, Statistics};

/// Time for which statistics that cannot be read are asked for again.
const PATIENCE: Duration = Duration::from_secs(5);
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
    table::print_line(&format!(
        "run {}: {}",
        found.run,
        block(&found, &standing(&resource)).summary()
    ))?;
    print_rows(&found)
}

/// Counts and statistics of a run.
pub(super) struct Found {
    /// Counts as the resource has them, and statistics; empty if they cannot be read.
    pub(super) run: RunStatistics,
    /// Reason why the statistics cannot be read.
    pub(super) unread: Option<String>,
}

/// Reads the statistics of a resource's run. They are in the data root, which may be away for a moment or for
/// longer while the resource itself is known. A crawl that has never begun has none.
pub(super) async fn find(
    client: &Client,
    name: &ResourceName,
    resource: &proto::Resource,
) -> Found {
    let asked_until = Instant::now() + PATIENCE;
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
        },
        unread,
    }
}

/// Prints the lines of a block after the first.
pub(super) fn print_rows(found: &RunStatistics) -> anyhow::Result<()> {
    for (name, value) in block(found, "").rows() {
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

/// Returns the block of a run.
pub(super) fn block<'a>(found: &'a RunStatistics, end: &'a str) -> Block<'a> {
    Block {
        found,
        took_ms: found.counts.took_ms(),
        end,
    }
}

/// Returns why a run has ended, or its phase and the time left while it goes on.
fn standing(resource: &proto::Resource) -> String {
    let end = end(resource);
    match pace(resource, None).left_words() {
        Some(left) => format!("{end}, {left}"),
        None => end,
    }
}

/// Returns why a run has ended, or its phase while it goes on.
pub(super) fn end(resource: &proto::Resource) -> String {
    let counts = crawler_api::totals(resource.counts());
    match (resource.phase.as_str(), resource.reason.as_str()) {
        ("Finished", _) => {
            let limits = resource.spec().crawl.unwrap_or_default();
            let default = CrawlSettings::default();
            let max_pages = limits.max_pages.unwrap_or(default.max_pages());
            let max_bytes = limits.max_bytes.unwrap_or(default.max_bytes());
            why_ended(&counts, Some(max_pages), Some(max_bytes))
        }
        ("Failed", _) => "the crawl failed".to_owned(),
        (phase, "") => phase.to_owned(),
        (phase, reason) => format!("{phase}: {reason}"),
    }
}
