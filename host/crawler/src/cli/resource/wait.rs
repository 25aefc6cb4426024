//! `crawler resource wait`: progress on a terminal, and an exit code that scripts can trust.

use std::time::Duration;

use crawler_proto as proto;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::time::{Instant, sleep};

use crate::cli::{Failure, Unmet, check_roots, table};
use crawler_api::client::Client;
use crawler_api::totals;
use crawler_model::id::ResourceName;

/// Interval between two looks at the resource.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Waits until the crawl has finished. It is an error if the crawl failed, or is not over in time.
pub(super) async fn run(
    client: &Client,
    name: &ResourceName,
    timeout: Duration,
) -> anyhow::Result<()> {
    let deadline = Instant::now() + timeout;
    let progress = spinner();
    let mut seen = String::new();
    loop {
        match client.resource(name).await {
            Ok(resource) => {
                if is_over(&resource) {
                    progress.finish_and_clear();
                    return end(name, &resource);
                }
                seen = standing(&resource);
                progress.set_message(format!("{name}: {seen}"));
            }
            // A master that restarts is back in a moment.
            Err(error) if error.is_transient() && Instant::now() < deadline => {
                progress.set_message(format!("{name}: {error}"));
            }
            Err(error) => return Err(error.into()),
        }
        progress.tick();
        if Instant::now() >= deadline {
            progress.finish_and_clear();
            let timeout = humantime::format_duration(timeout);
            return Err(Failure::new(
                format!("resource {name} is not over after {timeout}: {seen}"),
                format!("wait longer with --timeout, or look: `crawler resource get {name}`"),
            )
            .into());
        }
        sleep(LOOK_EVERY).await;
    }
}

fn is_over(resource: &proto::Resource) -> bool {
    matches!(resource.phase.as_str(), "Finished" | "Failed")
}

/// Prints how a crawl ended. It is an error if it failed, or brought nothing.
fn end(name: &ResourceName, resource: &proto::Resource) -> anyhow::Result<()> {
    let counts = crawler_api::totals(resource.counts());
    if resource.phase == "Failed" {
        let what = format!("resource {name} failed: {}", resource.reason);
        let hint = format!("`crawler resource logs {name}` shows what led to it");
        return Err(match counts.lost_roots() {
            Some(_) => Unmet { what, hint }.into(),
            None => Failure::new(what, hint).into(),
        });
    }
    table::print_line(&format!("resource {name} finished: {}", numbers(resource)))?;
    Ok(check_roots(&counts)?)
}

fn standing(resource: &proto::Resource) -> String {
    match resource.reason.as_str() {
        "" => format!("{}, {}", resource.phase, numbers(resource)),
        reason => format!("{} ({reason})", resource.phase),
    }
}

fn numbers(resource: &proto::Resource) -> String {
    let counts = resource.counts();
    let (pages, items) = (totals(counts.clone()).pages(), counts.items);
    match (counts.due + counts.in_flight, counts.dead) {
        (0, 0) => format!("{pages} pages, {items} items"),
        (0, dead) => format!("{pages} pages ({dead} dead), {items} items"),
        (waiting, _) => format!("{pages} pages, {items} items, {waiting} waiting"),
    }
}

/// Creates a spinner, which hides itself if stderr is no terminal.
fn spinner() -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {msg} [{elapsed}]");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
    ProgressBar::new_spinner().with_style(style)
}
