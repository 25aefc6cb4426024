//! Output of `crawler plugin diff`.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::DiffOptions;
use crate::cli::devtools::mutations::tally;
use crate::cli::devtools::show::count;
use crate::cli::{Failure, table};
use crawler_devtools::declared::{self, Difference};
use crawler_devtools::saved::CallName;
use crawler_devtools::side_by_side::SideBySide;
use crawler_devtools::trial::{TrialError, TrialResult, Verdict};
use crawler_model::plugin::Description;
use crawler_process::telemetry::chain;

/// Number of characters of a declaration that a table shows.
const SHOWN: usize = 60;

/// A saved call that both plugins made, for the output.
#[derive(Debug)]
pub struct ComparedCall {
    /// Name of the call.
    pub name: CallName,
    /// Rule of the call.
    pub rule: String,
    /// Results of the two plugins.
    pub made: SideBySide,
}

impl ComparedCall {
    /// Returns the result in a word.
    fn result(&self) -> String {
        let fault = |side: &str, tried: &Result<TrialResult, TrialError>| match tried {
            Err(_) => Some(format!("not made by {side}")),
            Ok(tried) => match &tried.verdict {
                Verdict::Killed(_) => Some(format!("ended in {side}")),
                Verdict::Unsteady(_) => Some(format!("unsteady in {side}")),
                Verdict::Same | Verdict::New | Verdict::Differs(_) => None,
            },
        };
        let faults = [fault("A", &self.made.before), fault("B", &self.made.after)];
        let faults: Vec<String> = faults.into_iter().flatten().collect();
        match faults.is_empty() {
            true if self.made.is_same() => "same".to_owned(),
            true => "differs".to_owned(),
            false => faults.join(", "),
        }
    }

    fn row(&self) -> [String; 7] {
        let changes = self.made.changes.clone().unwrap_or_default();
        let usage =
            |tried: &Result<TrialResult, TrialError>| tried.as_ref().ok().map(|tried| tried.usage);
        let both = usage(&self.made.before).zip(usage(&self.made.after));
        let [fuel, memory, time] = match both {
            None => ["-"; 3].map(str::to_owned),
            Some((a, b)) => [
                beside(a.fuel, b.fuel, count),
                beside(a.peak_memory, b.peak_memory, table::size),
                beside(nanos(a.elapsed), nanos(b.elapsed), |nanos| {
                    format!("{:.1?}", Duration::from_nanos(nanos))
                }),
            ],
        };
        [
            self.name.to_string(),
            tally(changes.items),
            tally(changes.requests),
            fuel,
            memory,
            time,
            self.result(),
        ]
    }

    /// Returns the text about the call below the table; `None` if the outcomes are the same.
    fn details(&self) -> Option<String> {
        if self.made.is_same() {
            return None;
        }
        let mut text = format!("{}: - came of it in A, + in B:\n", self.name);
        for (side, tried) in [("A", &self.made.before), ("B", &self.made.after)] {
            match tried {
                Err(error) => text += &format!("  {side}: {}\n", chain(error)),
                Ok(tried) => match &tried.verdict {
                    Verdict::Killed(report) => {
                        text += &format!("  {side}: ended ({}): {}\n", report.kill, report.message);
                    }
                    Verdict::Unsteady(how) => {
                        text += &format!("  {side}: not the same each time:\n{how}\n");
                    }
                    Verdict::Same | Verdict::New | Verdict::Differs(_) => {}
                },
            }
        }
        let outcome =
            |tried: &Result<TrialResult, TrialError>| tried.as_ref().ok()?.outcome.clone();
        let both = outcome(&self.made.before).zip(outcome(&self.made.after));
        if let Some((before, after)) = both {
            text += &before.difference(&after);
        }
        Some(text)
    }

    fn as_json(&self) -> Value {
        let side = |tried: &Result<TrialResult, TrialError>| {
            let tried = tried.as_ref().ok();
            json!({
                "outcome": tried.and_then(|tried| tried.outcome.as_ref()),
                "fuel": tried.map(|tried| tried.usage.fuel),
                "memory": tried.map(|tried| tried.usage.peak_memory),
                "micros": tried.map(|tried| tried.usage.elapsed.as_micros() as u64),
            })
        };
        let changes = self.made.changes.as_ref();
        json!({
            "call": self.name.to_string(),
            "rule": self.rule,
            "result": self.result(),
            "items": changes.map(|changes| changes.items),
            "fields": changes.map(|changes| &changes.fields),
            "requests": changes.map(|changes| changes.requests),
            "details": self.details(),
            "a": side(&self.made.before),
            "b": side(&self.made.after),
        })
    }
}

/// Formats two numbers and their ratio: `62.0 k -> 31.0 k (0.50x)`.
fn beside(a: u64, b: u64, shown: impl Fn(u64) -> String) -> String {
    let ratio = match a {
        0 => String::new(),
        a => format!(" ({:.2}x)", b as f64 / a as f64),
    };
    match a == b {
        true => shown(a),
        false => format!("{} -> {}{ratio}", shown(a), shown(b)),
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Prints the differences of two plugins; it is an error if there are any. `folder` is that of the saved
/// calls, if there is one.
pub fn diff_report(
    options: &DiffOptions,
    [before, after]: [&Description; 2],
    folder: Option<&Path>,
    all: &[ComparedCall],
) -> anyhow::Result<()> {
    let declared = declared::differences(before, after);
    let breaking = before.item_changes(after);
    let n_other = all.iter().filter(|call| !call.made.is_same()).count();
    let is_same = declared.is_empty() && n_other == 0;
    if options.is_json {
        let side = |side: &super::Side, description: &Description| {
            json!({
                "from": side.to_string(),
                "name": description.name,
                "version": description.version,
            })
        };
        table::print_json(&json!({
            "same": is_same,
            "a": side(&options.before, before),
            "b": side(&options.after, after),
            "declared": declared,
            "breaking": breaking,
            "calls": all.iter().map(ComparedCall::as_json).collect::<Vec<_>>(),
        }))?;
    } else {
        print_declared(options, [before, after], &declared, &breaking)?;
        print_calls(folder, all)?;
    }
    if is_same {
        return Ok(());
    }
    let what = format!(
        "{} and {} differ (declarations: {}, calls: {n_other} of {})",
        options.before,
        options.after,
        declared.len(),
        all.len()
    );
    let hint = match breaking.is_empty() {
        true => "",
        false => {
            "readers of items could stumble: a master takes B after A only under a higher first number, or with --allow-breaking"
        }
    };
    Err(Failure::new(what, hint).into())
}

fn print_declared(
    options: &DiffOptions,
    [before, after]: [&Description; 2],
    declared: &[Difference],
    breaking: &[String],
) -> anyhow::Result<()> {
    for (letter, side, description) in
        [("A", &options.before, before), ("B", &options.after, after)]
    {
        let Description { name, version, .. } = description;
        table::print_line(&format!("{letter}  {name}@{version} from {side}"))?;
    }
    table::print_line("")?;
    if declared.is_empty() {
        table::print_line("both declare the same")?;
    } else {
        let cell = |text: &Option<String>| match text {
            Some(text) => table::plain(&cut(text)).replace('\n', " "),
            None => "-".to_owned(),
        };
        let rows = declared.iter().map(|difference| {
            [
                table::plain(&difference.name),
                cell(&difference.before),
                cell(&difference.after),
            ]
        });
        table::print(["DECLARED", "A", "B"], &rows.collect::<Vec<_>>())?;
    }
    if !breaking.is_empty() {
        let lines = table::plain(&breaking.join("\n  "));
        table::print_line(&format!(
            "\nreaders of A's items could stumble in B's:\n  {lines}"
        ))?;
    }
    Ok(())
}

fn print_calls(folder: Option<&Path>, all: &[ComparedCall]) -> anyhow::Result<()> {
    table::print_line("")?;
    let Some(folder) = folder else {
        let none = "no saved calls: --pages names their folder, crawler plugin fetch saves one";
        table::print_line(none)?;
        return Ok(());
    };
    table::print_line(&format!("the saved calls of {}:", folder.display()))?;
    let rows: Vec<[String; 7]> = all.iter().map(ComparedCall::row).collect();
    let head = [
        "CALL", "ITEMS", "REQUESTS", "FUEL", "MEMORY", "TIME", "RESULT",
    ];
    table::print(head, &rows)?;
    for details in all.iter().filter_map(ComparedCall::details) {
        table::print_line("")?;
        table::print_line(table::plain(&details).trim_end())?;
    }
    Ok(())
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_stand_side_by_side_with_their_ratio() {
        assert_eq!(beside(62_000, 31_000, count), "62.0 k -> 31.0 k (0.50x)");
        assert_eq!(beside(5, 5, count), "5");
        assert_eq!(beside(0, 5, count), "0 -> 5");
    }
}
