//! `crawler resource runs`: the present run and those before it, each beside the one before.

use std::cmp::Ordering;
use std::time::Duration;

use crawler_proto as proto;

use crate::cli::args::{Format, OutputArgs};
use crate::cli::table;
use crawler_api::client::Client;
use crawler_model::id::ResourceName;

const HEAD: [&str; 8] = [
    "RUN", "STARTED", "TOOK", "OUTCOME", "PAGES", "ITEMS", "DEAD", "REASON",
];

pub(super) async fn run(
    client: &Client,
    name: &ResourceName,
    output: &OutputArgs,
) -> anyhow::Result<()> {
    let runs = client.runs(name).await?;
    if output.format == Format::Json {
        return table::print_json(&proto::ListRunsResponse { runs });
    }
    table::print(HEAD, &rows(&runs))?;
    Ok(())
}

/// Formats runs, the latest first. The run before is the next one of the list, unless it was forgotten.
fn rows(runs: &[proto::RunSummary]) -> Vec<[String; 8]> {
    let befores = runs.iter().skip(1).map(Some).chain([None]);
    let pairs = runs.iter().zip(befores);
    let rows = pairs.map(|(run, before)| {
        let before = before.filter(|before| before.run + 1 == run.run);
        // The numbers of a run that goes on say nothing yet.
        let is_over = matches!(run.outcome.as_str(), "finished" | "failed" | "stopped");
        let before = before.filter(|_| is_over);
        let number = |of: fn(&proto::RunSummary) -> u64| match before {
            Some(before) => format!("{} ({})", of(run), difference(of(run), of(before))),
            None => of(run).to_string(),
        };
        [
            run.run.to_string(),
            match run.started_at {
                0 => String::new(),
                at => table::time(at),
            },
            took(run, before),
            run.outcome.clone(),
            number(|run| run.pages),
            number(|run| run.items),
            number(|run| run.dead),
            table::plain(&run.reason),
        ]
    });
    rows.collect()
}

/// Formats a difference with its sign; none is `=`.
pub(super) fn difference(now: u64, before: u64) -> String {
    signed(now, before, |n| n.to_string())
}

/// Formats the difference between two times in seconds, with its sign.
pub(super) fn time_difference(now: u64, before: u64) -> String {
    signed(now, before, time)
}

fn signed(now: u64, before: u64, format: impl Fn(u64) -> String) -> String {
    let sign = match now.cmp(&before) {
        Ordering::Equal => return "=".to_owned(),
        Ordering::Greater => '+',
        Ordering::Less => '-',
    };
    format!("{sign}{}", format(now.abs_diff(before)))
}

/// Formats the time that a run took; empty while it goes on, or if no answer came.
fn took(run: &proto::RunSummary, before: Option<&proto::RunSummary>) -> String {
    let Some(own) = seconds(run) else {
        return String::new();
    };
    match before.and_then(seconds) {
        None => time(own),
        Some(other) => format!("{} ({})", time(own), time_difference(own, other)),
    }
}

/// Returns the seconds that a run took. `None` while it goes on, or if no answer came.
pub(super) fn seconds(run: &proto::RunSummary) -> Option<u64> {
    let is_known = run.started_at > 0 && run.ended_at > 0;
    is_known.then(|| run.ended_at.saturating_sub(run.started_at) / 1_000)
}

pub(super) fn time(seconds: u64) -> String {
    humantime::format_duration(Duration::from_secs(seconds)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(run: u64, took_s: u64, pages: u64) -> proto::RunSummary {
        proto::RunSummary {
            run,
            started_at: 1_000,
            ended_at: 1_000 + took_s * 1_000,
            outcome: "finished".into(),
            pages,
            items: 7,
            ..proto::RunSummary::default()
        }
    }

    #[test]
    fn each_run_is_shown_beside_the_one_before() {
        let unanswered = |run: u64, outcome: &str, pages: u64| proto::RunSummary {
            ended_at: 0,
            outcome: outcome.into(),
            ..summary(run, 0, pages)
        };
        // Run 2 was forgotten.
        let runs = [
            unanswered(6, "running", 3),
            unanswered(5, "failed", 0),
            summary(4, 90, 8),
            summary(3, 60, 10),
            summary(1, 60, 9),
        ];
        let rows = rows(&runs);
        let start = "1970-01-01T00:00:01Z";
        let expected = [
            ["6", start, "", "running", "3", "7", "0", ""],
            ["5", start, "", "failed", "0 (-8)", "7 (=)", "0 (=)", ""],
            [
                "4",
                start,
                "1m 30s (+30s)",
                "finished",
                "8 (-2)",
                "7 (=)",
                "0 (=)",
                "",
            ],
            ["3", start, "1m", "finished", "10", "7", "0", ""],
            ["1", start, "1m", "finished", "9", "7", "0", ""],
        ];
        assert_eq!(rows, expected);
    }
}
