//! Output of the commands for authors.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cli::devtools::cached::from_cache;
use crate::cli::devtools::pages::PAGES;
use crate::cli::devtools::{TestOptions, mutations};
use crate::cli::{Failure, plugin, table};
use crawler_devtools::mutation::MutationResult;
use crawler_devtools::outcome::Outcome;
use crawler_devtools::saved::{self, CallName, Pruned};
use crawler_devtools::trial::{TrialError, TrialResult, Verdict};
use crawler_model::crawl::Page;
use crawler_model::number;
use crawler_model::plugin::{Limits, Param};
use crawler_plugin::{Admitted, KillReport, Usage};
use crawler_process::telemetry::chain;

/// A saved call that was made again, for the output.
#[derive(Debug)]
pub struct CallResult {
    /// Name of the call.
    pub name: CallName,
    /// Rule of the call. If `None`, the call cannot be read.
    pub rule: Option<String>,
    /// Limits of the call.
    pub limits: Limits,
    /// Result of the call, or the reason why it cannot be made or kept.
    pub tried: Result<TrialResult, TrialError>,
    /// True if the outcome was kept.
    pub is_kept: bool,
    /// Results on mangled copies of the call's page. Empty if they were not asked for, or if there is no page
    /// that can be mangled.
    pub mangled: Vec<MutationResult>,
}

impl CallResult {
    fn verdict(&self) -> Option<&Verdict> {
        self.tried.as_ref().ok().map(|tried| &tried.verdict)
    }

    /// Returns true if the call has an outcome: the host did not end it.
    pub(super) fn has_outcome(&self) -> bool {
        let tried = self.tried.as_ref();
        tried.is_ok_and(|tried| tried.outcome.is_some())
    }

    /// Returns the result in a word.
    fn result(&self) -> &'static str {
        match self.verdict() {
            Some(Verdict::Same) => "same",
            Some(Verdict::New | Verdict::Differs(_)) if self.is_kept => "kept",
            Some(Verdict::New) => "new",
            Some(Verdict::Differs(_)) => "differs",
            Some(Verdict::Unsteady(_)) => "unsteady",
            Some(Verdict::Killed(_)) => "ended",
            None => "not made",
        }
    }

    /// Returns true if the user need do nothing about it.
    fn is_well(&self) -> bool {
        matches!(self.result(), "same" | "kept")
    }

    /// Returns the text about the call below the table; `None` if there is nothing new. With `is_verbose` it has
    /// all functions that were open, not only those of the rule's author.
    fn details(&self, is_verbose: bool) -> Option<String> {
        let name = &self.name;
        let tried = match &self.tried {
            Ok(tried) => tried,
            Err(error) => return Some(format!("{name}: {}\n", chain(error))),
        };
        let mut text = match (&tried.place, &tried.outcome) {
            (Some(place), Some(Outcome { error: Some(e), .. })) => {
                format!("{name}: {place}: {e}\n")
            }
            _ => String::new(),
        };
        text += &match &tried.verdict {
            Verdict::Same => return None,
            Verdict::New => {
                let outcome = tried.outcome.clone().unwrap_or_default();
                let all = Outcome::default().difference(&outcome);
                format!("{name}: nothing was kept; this came of it:\n{all}")
            }
            Verdict::Differs(lines) => {
                format!("{name}: - was kept, + came of it now:\n{lines}")
            }
            Verdict::Unsteady(how) => format!("{name}: not the same each time:\n{how}\n"),
            Verdict::Killed(report) => format!(
                "{name}: ended ({}): {}\n{}",
                report.kill,
                report.message,
                frames(report, is_verbose)
            ),
        };
        for log in &tried.logs {
            text += &format!("  {}: {}\n", log.level.as_str(), log.message);
        }
        Some(text)
    }

    fn row(&self) -> [String; 8] {
        let rule = self.rule.clone().unwrap_or_else(|| "-".to_owned());
        let tried = self.tried.as_ref().ok();
        let outcome = tried.and_then(|tried| tried.outcome.as_ref());
        let n = |n: Option<usize>| n.map_or_else(|| "-".to_owned(), |n| n.to_string());
        let [fuel, memory, time] = match tried {
            Some(tried) => used(&tried.usage, &self.limits),
            None => ["-"; 3].map(str::to_owned),
        };
        let error = outcome.and_then(|outcome| outcome.error.as_ref());
        let result = match error {
            Some(error) => format!("{} ({error})", self.result()),
            None => self.result().to_owned(),
        };
        [
            self.name.to_string(),
            table::plain(&rule),
            n(outcome.map(|outcome| outcome.items.len())),
            n(outcome.map(|outcome| outcome.requests.len())),
            fuel,
            memory,
            time,
            table::plain(&result),
        ]
    }

    fn as_json(&self) -> Value {
        let tried = self.tried.as_ref().ok();
        json!({
            "call": self.name.to_string(),
            "rule": self.rule,
            "result": self.result(),
            "details": self.details(false),
            "outcome": tried.and_then(|tried| tried.outcome.as_ref()),
            "fuel": tried.map(|tried| tried.usage.fuel),
            "memory": tried.map(|tried| tried.usage.peak_memory),
            "micros": tried.map(|tried| tried.usage.elapsed.as_micros() as u64),
            "mangled": self.mangled.iter().map(mutations::as_json).collect::<Vec<_>>(),
        })
    }
}

/// Returns a line for each function that was open when a call ended, and one about those that are left out.
fn frames(report: &KillReport, is_verbose: bool) -> String {
    let lines = match is_verbose {
        true => report.all_frames(),
        false => report.own_frames(),
    };
    let lines = lines.iter().map(|function| format!("  in {function}\n"));
    let n_foreign = report
        .backtrace
        .iter()
        .filter(|frame| !frame.is_own)
        .count();
    let hint = (n_foreign > 0 && !is_verbose).then(|| {
        format!(
            "  -v shows functions of libraries and interpreters too, {n_foreign} that were open\n"
        )
    });
    lines.chain(hint).collect()
}

/// Returns the usage of a call, with its share of the limits.
fn used(usage: &Usage, limits: &Limits) -> [String; 3] {
    let share = |used: f64, limit: f64| {
        let percent = 100.0 * used / limit;
        match percent {
            10.0.. => format!("{percent:.0} %"),
            1.0.. => format!("{percent:.1} %"),
            _ => format!("{percent:.2} %"),
        }
    };
    let memory = table::size(usage.peak_memory);
    let time = usage.elapsed;
    [
        format!(
            "{} ({})",
            count(usage.fuel),
            share(usage.fuel as f64, limits.fuel as f64)
        ),
        format!(
            "{memory} ({})",
            share(usage.peak_memory as f64, limits.memory as f64)
        ),
        format!(
            "{time:.1?} ({})",
            share(time.as_secs_f64(), limits.timeout.as_secs_f64())
        ),
    ]
}

/// Formats a number, such as `412.3 k`.
pub(super) fn count(n: u64) -> String {
    let steps = [(1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")];
    match steps.into_iter().find(|(step, _)| n >= *step) {
        Some((step, unit)) => format!("{:.1} {unit}", n as f64 / step as f64),
        None => n.to_string(),
    }
}

/// Prints the results of saved calls, and which were removed before. It is an error if one of them differs from the
/// one that was kept, or does not withstand what it should.
pub fn test_report(
    all: &[CallResult],
    pruned: &[Pruned],
    options: &TestOptions,
) -> anyhow::Result<()> {
    let copies = options.mangled;
    if options.is_json {
        let calls: Vec<Value> = all.iter().map(CallResult::as_json).collect();
        let seed = copies.map(|copies| copies.seed);
        let pruned = pruned.iter().map(|gone| gone.name.to_string());
        let pruned: Vec<String> = pruned.collect();
        table::print_json(&json!({ "calls": calls, "pruned": pruned, "seed": seed }))?;
    } else {
        for Pruned { name, rule } in pruned {
            let line = format!("removed {name}: the plugin has no rule {rule}");
            table::print_line(&table::plain(&line))?;
        }
        let rows: Vec<[String; 8]> = all.iter().map(CallResult::row).collect();
        let head = [
            "CALL", "RULE", "ITEMS", "REQUESTS", "FUEL", "MEMORY", "TIME", "RESULT",
        ];
        table::print(head, &rows)?;
        let details = |call: &CallResult| call.details(options.is_verbose);
        for details in all.iter().filter_map(details) {
            table::print_line("")?;
            table::print_line(table::plain(&details).trim_end())?;
        }
        if let Some(copies) = copies {
            mutations::print(all, copies)?;
        }
    }
    let bad: Vec<&CallResult> = all.iter().filter(|told| !told.is_well()).collect();
    if bad.is_empty() {
        return mutations::check(all);
    }
    let mut n_each = BTreeMap::<&str, usize>::new();
    for told in &bad {
        *n_each.entry(told.result()).or_default() += 1;
    }
    let each: Vec<String> = n_each
        .iter()
        .map(|(word, n)| format!("{n} {word}"))
        .collect();
    let can_be_kept = |told: &&CallResult| matches!(told.result(), "new" | "differs");
    let is_stale = |told: &&CallResult| matches!(told.tried, Err(TrialError::NoRule { .. }));
    let hint = if bad.iter().any(can_be_kept) {
        "if that is as it should be, the same command with --update keeps it"
    } else if bad.iter().all(is_stale) {
        "if these rules are gone for good, the same command with --prune removes their calls"
    } else {
        "what stands with each of them says why"
    };
    let what = format!(
        "not all of {} calls are as kept: {}",
        all.len(),
        each.join(", ")
    );
    Err(Failure::new(what, hint).into())
}

/// Prints what a master would say of a plugin, and how long it took to compile.
pub fn check_report(
    admitted: &Admitted,
    plugin_size: u64,
    took: Duration,
    compile_time: Duration,
    is_json: bool,
) -> anyhow::Result<()> {
    let description = &admitted.description;
    if is_json {
        let answer = json!({
            "digest": admitted.digest.to_string(),
            "size": admitted.size,
            "size_limit": plugin_size,
            "interface": admitted.interface,
            "compile_millis": took.as_millis() as u64,
            "compile_limit_millis": compile_time.as_millis() as u64,
            "description": description,
        });
        return table::print_json(&answer);
    }
    let percent = |part: f64, whole: f64| format!("{:.1} %", 100.0 * part / whole);
    let size = format!(
        "{}, {} of --plugin-size",
        table::size(admitted.size),
        percent(admitted.size as f64, plugin_size as f64)
    );
    let compiled = format!(
        "in {took:.1?}, {} of {compile_time:.0?}",
        percent(took.as_secs_f64(), compile_time.as_secs_f64())
    );
    let plans = description.plans.iter();
    let plans: Vec<String> = plans
        .map(|plan| {
            let fields = number(plan.fields.len() as u64, "field");
            format!("{} ({fields})", plan.name)
        })
        .collect();
    let limits = description.limits.iter();
    let limits: Vec<String> = limits.map(|(name, n)| format!("{name}={n}")).collect();
    let rows = [
        (
            "plugin",
            format!("{}@{}", description.name, description.version),
        ),
        ("digest", admitted.digest.to_string()),
        ("interface", format!("crawler:rules@{}", admitted.interface)),
        ("size", size),
        ("compiled", compiled),
        ("rules", description.rules.join(", ")),
        ("reads", plans.join(", ")),
        ("hosts", description.hosts.join(", ")),
        ("limits", limits.join(", ")),
    ];
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        table::print_line(&format!("{name:<10} {value}"))?;
    }
    let params = description.params.as_deref().map(Param::schema);
    plugin::show_params(&params.unwrap_or_default())?;
    plugin::show_items(&description.schemas)
}

/// Prints where a fetched page was saved.
pub fn fetch_report(folder: &Path, name: &CallName, rule: &str, page: &Page) -> anyhow::Result<()> {
    let kind = page.header("content-type").unwrap_or("no content type");
    let from_cache = from_cache(page).map(|note| format!(", {note}"));
    table::print_line(&table::plain(&format!(
        "saved {} as {}: status {}, {kind}, {}{}{}",
        page.url,
        saved::path_of(folder, name).display(),
        page.status,
        table::size(page.body.len() as u64),
        if page.truncated {
            ", cut by limit body"
        } else {
            ""
        },
        from_cache.unwrap_or_default(),
    )))?;
    // If the folder is that of a plugin, the hint names it, unless it is the current folder.
    let plugin = folder.parent().filter(|_| folder.ends_with(PAGES));
    let place = match plugin {
        Some(plugin) if plugin.as_os_str().is_empty() => String::new(),
        Some(plugin) => format!(" {}", plugin.display()),
        None => format!(" --pages {}", folder.display()),
    };
    table::print_line(&format!(
        "crawler plugin test{place} --call {name} shows what rule {rule} makes of it; --update keeps it"
    ))?;
    Ok(())
}
