//! `crawler resource diff`: two runs side by side, and what differs between them.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use crawler_proto as proto;

use super::runs::{difference, seconds, time, time_difference};
use crate::cli::args::{Format, OutputArgs};
use crate::cli::table;
use crawler_api::client::Client;
use crawler_model::id::{ResourceName, Run};

#[derive(Debug, Args)]
pub(in crate::cli) struct DiffArgs {
    /// The resource
    name: ResourceName,
    /// The earlier run
    #[arg(value_name = "RUN")]
    before: u64,
    /// The later run
    #[arg(value_name = "RUN")]
    after: u64,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) async fn run(client: &Client, args: DiffArgs) -> anyhow::Result<()> {
    let (before, after) = (Run(args.before), Run(args.after));
    let diff = client.diff_runs(&args.name, before, after).await?;
    if args.output.format == Format::Json {
        return table::print_json(&diff);
    }
    table::print_text(text(diff).as_bytes())?;
    Ok(())
}

fn text(diff: proto::RunsDiff) -> String {
    let settings = match (diff.settings_known, diff.settings.is_empty()) {
        (false, _) => "settings: not known of both runs".to_owned(),
        (true, true) => "settings: the same".to_owned(),
        (true, false) => format!("settings that differ: {}", diff.settings.join(", ")),
    };
    let items = items(&diff);
    let (before, after) = (
        diff.before.unwrap_or_default(),
        diff.after.unwrap_or_default(),
    );
    let head = [
        String::new(),
        format!("RUN {}", before.run),
        format!("RUN {}", after.run),
        "DIFFERENCE".to_owned(),
    ];
    let [name, one, other, differs] = &head;
    let table = table::text([name, one, other, differs], &rows(&before, &after));
    format!("{table}{settings}\n{items}\n")
}

/// Tells what the runs after the earlier one have found out about items.
fn items(diff: &proto::RunsDiff) -> String {
    let runs = match diff.compared {
        1 => "1 run".to_owned(),
        n => format!("{n} runs"),
    };
    let missing = match diff.uncompared {
        0 => String::new(),
        n => format!("; not compared, or not kept any more: {n}"),
    };
    match &diff.changes {
        None => "items: not compared from run to run, or the comparison cannot be read".to_owned(),
        Some(changes) => {
            let proto::ChangeTotals {
                added,
                changed,
                removed,
                complete,
                ..
            } = *changes;
            let all = match complete {
                true => "",
                false => "; a run was not complete, and not all removed items are told",
            };
            format!(
                "items: {added} added, {changed} changed, {removed} removed, told by {runs}{missing}{all}"
            )
        }
    }
}

fn rows(before: &proto::RunSummary, after: &proto::RunSummary) -> Vec<[String; 4]> {
    let started = |run: &proto::RunSummary| match run.started_at {
        0 => String::new(),
        at => table::time(at),
    };
    let row = |name: &str, [one, other]: [String; 2], differs: String| {
        [name.to_owned(), one, other, differs]
    };
    let words = |name: &str, of: &dyn Fn(&proto::RunSummary) -> String| {
        let both = [of(before), of(after)];
        let differs = both[0] != both[1];
        let word = if differs { "differs" } else { "" };
        row(name, both, word.to_owned())
    };
    let numbers = |name: &str, one: u64, other: u64| {
        let both = [one.to_string(), other.to_string()];
        row(name, both, difference(other, one))
    };
    let mut rows = vec![
        row("started", [started(before), started(after)], String::new()),
        row(
            "took",
            [before, after].map(|run| seconds(run).map(time).unwrap_or_default()),
            match (seconds(before), seconds(after)) {
                (Some(before), Some(after)) => time_difference(after, before),
                (None, _) | (_, None) => String::new(),
            },
        ),
        words("outcome", &|run| run.outcome.clone()),
        words("plugin", &|run| run.plugin.clone()),
        words("digest", &|run| {
            run.plugin_digest.chars().take(12).collect()
        }),
        words("generation", &|run| match run.generation {
            0 => String::new(),
            generation => generation.to_string(),
        }),
        numbers("pages", before.pages, after.pages),
    ];
    let outcomes = both_keys(before, after, |run| &run.outcomes);
    rows.extend(outcomes.into_iter().map(|outcome| {
        let of = |run: &proto::RunSummary| run.outcomes.get(outcome).copied().unwrap_or_default();
        let name = format!("  {}", table::plain(outcome));
        numbers(&name, of(before), of(after))
    }));
    rows.push(numbers("dead", before.dead, after.dead));
    let reasons = both_keys(before, after, |run| &run.dead_by_reason);
    rows.extend(reasons.into_iter().map(|reason| {
        let of = |run: &proto::RunSummary| {
            let n = run.dead_by_reason.get(reason);
            n.copied().unwrap_or_default()
        };
        let name = format!("  {}", table::plain(reason));
        numbers(&name, of(before), of(after))
    }));
    rows.push(numbers("items", before.items, after.items));
    rows.push(numbers("bytes", before.bytes, after.bytes));
    rows
}

/// Returns the keys that the maps of one run or both have, in order.
fn both_keys<'a>(
    before: &'a proto::RunSummary,
    after: &'a proto::RunSummary,
    map: impl Fn(&'a proto::RunSummary) -> &'a BTreeMap<String, u64>,
) -> BTreeSet<&'a str> {
    let keys = map(before).keys().chain(map(after).keys());
    keys.map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(run: u64, parsed: u64, reason: &str) -> proto::RunSummary {
        proto::RunSummary {
            run,
            started_at: 1_000,
            ended_at: 61_000 + run * 1_000,
            outcome: "finished".into(),
            pages: parsed + 1,
            items: 7,
            dead: 1,
            bytes: 9,
            outcomes: [("parsed".to_owned(), parsed)].into(),
            dead_by_reason: [(reason.to_owned(), 1)].into(),
            generation: 4,
            plugin: format!("books@1.{run}.0"),
            plugin_digest: "0123456789abcdef".into(),
            ..proto::RunSummary::default()
        }
    }

    #[track_caller]
    fn check(diff: proto::RunsDiff, settings: &str, items: &str) {
        let text = text(proto::RunsDiff {
            before: Some(summary(6, 10, "timeout")),
            after: Some(summary(7, 8, "status-500")),
            ..diff
        });
        let table = "              RUN 6                 RUN 7                 DIFFERENCE
started       1970-01-01T00:00:01Z  1970-01-01T00:00:01Z
took          1m 6s                 1m 7s                 +1s
outcome       finished              finished
plugin        books@1.6.0           books@1.7.0           differs
digest        0123456789ab          0123456789ab
generation    4                     4
pages         11                    9                     -2
  parsed      10                    8                     -2
dead          1                     1                     =
  status-500  0                     1                     +1
  timeout     1                     0                     -1
items         7                     7                     =
bytes         9                     9                     =
";
        assert_eq!(text, format!("{table}{settings}\n{items}\n"));
    }

    #[test]
    fn two_runs_are_shown_side_by_side() {
        let nothing = proto::RunsDiff {
            uncompared: 1,
            ..proto::RunsDiff::default()
        };
        let not_compared = "items: not compared from run to run, or the comparison cannot be read";
        let unknown = "settings: not known of both runs";
        check(nothing.clone(), unknown, not_compared);
        let same = proto::RunsDiff {
            settings_known: true,
            ..nothing
        };
        check(same, "settings: the same", not_compared);
        let changes = |complete| proto::ChangeTotals {
            added: 1,
            changed: 2,
            removed: 3,
            complete,
            ..proto::ChangeTotals::default()
        };
        let whole = proto::RunsDiff {
            settings: vec!["delay".into(), "max-pages".into()],
            settings_known: true,
            changes: Some(changes(true)),
            compared: 1,
            ..proto::RunsDiff::default()
        };
        let settings = "settings that differ: delay, max-pages";
        let items = "items: 1 added, 2 changed, 3 removed, told by 1 run";
        check(whole.clone(), settings, items);
        let part = proto::RunsDiff {
            changes: Some(changes(false)),
            compared: 2,
            uncompared: 3,
            ..whole
        };
        let items = "items: 1 added, 2 changed, 3 removed, told by 2 runs; not compared, or not kept any more: 3; \
             a run was not complete, and not all removed items are told";
        check(part, settings, items);
    }
}
