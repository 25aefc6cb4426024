//! `crawler resource wait`: progress on a terminal, statistics at the end, and an exit code that scripts can trust.

use std::time::Duration;

use clap::Args;
use crawler_proto as proto;
use tokio::time::{Instant, sleep};

use super::list::pace;
use super::stats::{self, Found};
use crate::cli::args::{Format, OutputArgs};
use crate::cli::fail_on::{self, FailOn};
use crate::cli::pace::RecentPages;
use crate::cli::unmet::may_have_lost_a_root;
use crate::cli::{Failure, Unmet, check_all_roots, progress, table};
use crawler_api::client::Client;
use crawler_api::totals;
use crawler_model::crawl::{Counts, LOST_ROOTS};
use crawler_model::id::ResourceName;

/// Interval between two looks at the resource.
const LOOK_EVERY: Duration = Duration::from_millis(250);

#[derive(Debug, Args)]
pub(in crate::cli) struct WaitArgs {
    /// The resource
    name: ResourceName,
    /// Longest time to wait
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = humantime::parse_duration)]
    timeout: Duration,
    #[arg(long, value_name = "CONDITION,…", value_delimiter = ',', help = fail_on::HELP)]
    fail_on: Vec<FailOn>,
    #[command(flatten)]
    output: OutputArgs,
}

/// Waits until the crawl has finished. It is an error if the crawl failed, a root request gave no page, or the crawl is
/// not over in time.
pub(super) async fn run(client: &Client, args: WaitArgs) -> anyhow::Result<()> {
    let (name, timeout) = (&args.name, args.timeout);
    let deadline = Instant::now() + timeout;
    let progress = progress::spinner();
    let mut recent = RecentPages::default();
    let mut seen = String::new();
    loop {
        match client.resource(name).await {
            Ok(resource) if is_over(&resource) => {
                let found = stats::find(client, name, &resource, stats::PATIENCE).await;
                progress.finish_and_clear();
                return end(&args, &resource, found);
            }
            Ok(resource) => {
                let n_pages = totals(resource.counts()).due_pages();
                seen = standing(&resource, recent.rate(Instant::now().into_std(), n_pages));
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

/// Prints how a crawl ended. It is an error if it failed, or is no success for another reason.
fn end(args: &WaitArgs, resource: &proto::Resource, found: Found) -> anyhow::Result<()> {
    let name = &args.name;
    stats::print_unread(&found);
    let (found, unread) = (found.run, found.unread);
    if args.output.format == Format::Json {
        if let Some(why) = &unread {
            return Err(Failure::new(
                format!("statistics cannot be read: {why}"),
                format!("without -o json, this tells how resource {name} ended"),
            )
            .into());
        }
        table::print_json(&crawler_api::statistics_message(found.clone()))?;
    } else {
        let (phase, numbers) = (resource.phase.to_lowercase(), numbers(resource));
        table::print_line(&format!("resource {name} {phase}: {numbers}"))?;
        stats::print_run(&found, resource)?;
    }
    if resource.phase == "Failed" {
        let what = format!("resource {name} failed: {}", resource.reason);
        // The reason of lost roots names its way out; a rule that gave up may have left the same counts.
        return Err(match resource.reason.starts_with(LOST_ROOTS) {
            true => Unmet {
                what,
                hint: String::new(),
            }
            .into(),
            false => {
                let hint = format!("`crawler resource logs {name}` shows what led to it");
                Failure::new(what, hint).into()
            }
        });
    }
    check_all_roots(&found)?;
    if let Some(why) = unread
        && let Some(what) = unchecked(&args.fail_on, &found.counts)
    {
        return Err(Failure::new(
            format!("{what} cannot be checked: statistics cannot be read: {why}"),
            "call again once the data root is there",
        )
        .into());
    }
    Ok(fail_on::check(&args.fail_on, &found)?)
}

/// Returns what the exit code depends on and counts alone do not tell, if there is something.
fn unchecked(conditions: &[FailOn], counts: &Counts) -> Option<String> {
    let mut conditions = conditions.iter();
    match conditions.find(|condition| condition.needs_statistics()) {
        Some(condition) => Some(format!("--fail-on {condition}")),
        None => may_have_lost_a_root(counts)
            .then(|| "whether every root request gave a page".to_owned()),
    }
}

/// Returns the phase of a resource with its numbers; `recent` are its pages per second of late.
fn standing(resource: &proto::Resource, recent: Option<f64>) -> String {
    match resource.reason.as_str() {
        "" => {
            let standing = format!("{}, {}", resource.phase, numbers(resource));
            progress::with_pace(standing, &pace(resource, recent))
        }
        reason => format!("{} ({reason})", resource.phase),
    }
}

fn numbers(resource: &proto::Resource) -> String {
    progress::numbers(&totals(resource.counts()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_that_needs_statistics_is_not_guessed() {
        let check = |condition: &str, n_dead: u64, expected: Option<&str>| {
            let conditions: [FailOn; 1] = [condition.parse().unwrap()];
            let counts = Counts {
                parsed: 1,
                dead: n_dead,
                ..Counts::default()
            };
            assert_eq!(unchecked(&conditions, &counts).as_deref(), expected);
        };
        check("items=0", 0, None);
        let roots = "whether every root request gave a page";
        check("items=0", 1, Some(roots));
        check("unmatched", 0, Some("--fail-on unmatched"));
    }

    #[test]
    fn progress_tells_the_speed_and_the_time_left() {
        let counts = proto::Counts {
            parsed: 40,
            dead: 2,
            due: 90,
            in_flight: 10,
            began_at: 1_000,
            ended_at: 5_200,
            ..proto::Counts::default()
        };
        let mut resource = proto::Resource {
            phase: "Running".to_owned(),
            counts: Some(counts),
            ..proto::Resource::default()
        };
        let told = "Running, 42 pages (2 dead), 0 items, 90 waiting";
        assert_eq!(
            standing(&resource, None),
            format!("{told}, 10.0 pages/s, about 9s left")
        );
        assert_eq!(
            standing(&resource, Some(30.0)),
            format!("{told}, 30.0 pages/s, about 3s left")
        );
        resource.reason = "StorageUnavailable: the disk is full".to_owned();
        resource.phase = "Pending".to_owned();
        assert_eq!(
            standing(&resource, None),
            "Pending (StorageUnavailable: the disk is full)"
        );
    }
}
