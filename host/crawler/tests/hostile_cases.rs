//! The 74 ways in which guests and pages are hostile. Each is run here, on one pool with one slot, or names
//! the tests of another part of the system that cover it. `--nocapture` shows how each ended.
//!
//! ```text
//! case              what a case is, and what is expected of it
//! calls             the table, 1 to 39: processor, memory, stack, boundary, output
//! pages_and_bytes   the table, 40 to 74: URLs, pages, admission, isolation
//! stage             the engine that they run on, and what holds for every call
//! own               cases that are more than one call or one push
//! wat, rules        plugins in the text format, for what no compiler would write
//! bytes             what is pushed
//! limits, pages     what calls get
//! ```

#[path = "hostile_cases/bytes.rs"]
mod bytes;
#[path = "hostile_cases/calls.rs"]
mod calls;
#[path = "hostile_cases/case.rs"]
mod case;
#[path = "engine/guests.rs"]
#[expect(
    dead_code,
    reason = "shared with the tests of the engine, which need more"
)]
mod guests;
#[path = "hostile_cases/limits.rs"]
mod limits;
#[path = "hostile_cases/own.rs"]
mod own;
#[path = "hostile_cases/pages.rs"]
mod pages;
#[path = "hostile_cases/pages_and_bytes.rs"]
mod pages_and_bytes;
#[path = "hostile_cases/rules.rs"]
mod rules;
#[path = "hostile_cases/stage.rs"]
mod stage;
#[path = "hostile_cases/wat.rs"]
mod wat;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use case::{Case, Expected, How};
use crawler_model::crawl::Kill;
use crawler_plugin::{CallFailure, CallReport};
use stage::{Stage, millis, resident_kib};

/// Number of cases in the list.
const N_CASES: u8 = 74;
/// Growth of memory over the repeats of a case that still counts as none.
const RETURNED_KIB: i64 = 16 << 10;
/// Growth of memory over the repeats of a push that still counts as none. Its bytes are copied, checked and
/// handed to another process on several threads.
const RETURNED_PUSH_KIB: i64 = 64 << 10;
/// Number of characters of a message that the table shows.
const SHOWN_MAX: usize = 40;

fn cases() -> impl Iterator<Item = &'static Case> {
    calls::CASES.iter().chain(pages_and_bytes::CASES)
}

/// Result of one case.
#[derive(Default)]
struct Row {
    outcome: String,
    millis: f64,
    peak_kib: u64,
    resident_kib: i64,
    growth_kib: i64,
}

#[tokio::test]
async fn every_hostile_case_ends_as_expected_and_harms_nobody() {
    let stage = Stage::new();
    stage.good_page().await.expect("the stage is set");
    let mut faults = Vec::new();
    let (mut n_run, mut n_new) = (0, 0);
    println!(
        "{}",
        line([
            "case",
            "what is tried",
            "how it ended",
            "ms",
            "peak",
            "RSS",
            "grew",
            "good page after",
            "test"
        ])
    );
    for case in cases() {
        let n = case.n.to_string();
        let test = match case.had {
            "" => "new",
            had => had,
        };
        let row = match case.how {
            How::Elsewhere(tests) => {
                println!(
                    "{}",
                    line([
                        &n,
                        case.name,
                        "elsewhere",
                        "",
                        "",
                        "",
                        "",
                        "",
                        &tests.join(", ")
                    ])
                );
                continue;
            }
            How::NotHere(why) => {
                println!("{}", line([&n, case.name, "n/a", "", "", "", "", "", why]));
                continue;
            }
            How::Rule(..) | How::Page(..) | How::Push(..) | How::PushFenced(..) | How::Own(_) => {
                run(&stage, case).await
            }
        };
        n_run += 1;
        n_new += usize::from(case.had.is_empty());
        match row {
            Ok(row) => println!(
                "{}",
                line([
                    &n,
                    case.name,
                    &row.outcome,
                    &format!("{:.1}", row.millis),
                    &format!("{} KiB", row.peak_kib),
                    &format!("{} MiB", row.resident_kib >> 10),
                    &format!("{:+} KiB", row.growth_kib),
                    "yes",
                    test,
                ])
            ),
            Err(why) => {
                println!(
                    "{}",
                    line([&n, case.name, "FAULT", "", "", "", "", "", &why])
                );
                faults.push(format!("{n} {}: {why}", case.name));
            }
        }
    }
    println!("{n_run} ways were tried, {n_new} of them for the first time");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Formats a line of the table.
fn line(columns: [&str; 9]) -> String {
    let [n, name, outcome, millis, peak, resident, growth, good, test] = columns;
    format!(
        "{n:>4} | {name:<50} | {outcome:<57} | {millis:>8} | {peak:>11} | {resident:>8} | {growth:>10} | {good:<15} | {test}"
    )
}

/// Runs a case until it has warmed up, and then again while memory is measured. A good page follows each run.
async fn run(stage: &Stage, case: &Case) -> Result<Row, String> {
    let (n_repeats, bound) = match case.how {
        How::Own(_) => (0, i64::MAX),
        How::Push(..) | How::PushFenced(..) => (1, RETURNED_PUSH_KIB),
        _ => (2, RETURNED_KIB),
    };
    let mut row = Row::default();
    let mut before = resident_kib();
    for n in 0..=n_repeats {
        if n == 1 {
            before = resident_kib();
        }
        let started = Instant::now();
        (row.outcome, row.peak_kib) = once(stage, &case.how).await?;
        row.millis = millis(started);
        stage.good_page().await?;
    }
    row.resident_kib = resident_kib();
    row.growth_kib = row.resident_kib - before;
    if row.growth_kib > bound {
        return Err(format!("memory grew by {} KiB", row.growth_kib));
    }
    Ok(row)
}

/// Runs a case once; returns how it ended, and its peak memory in KiB.
async fn once(stage: &Stage, how: &How) -> Result<(String, u64), String> {
    match *how {
        How::Rule(guest, rule, change, expected) => {
            let report = stage.call(guest, rule, "<p>größe</p>", change).await?;
            let peak = report.usage.peak_memory >> 10;
            Ok((ended(report, expected)?, peak))
        }
        How::Page(guest, rule, page, expected) => {
            let report = stage
                .call(guest, rule, &page(), |limits| limits.body = 16 << 20)
                .await?;
            let peak = report.usage.peak_memory >> 10;
            Ok((ended(report, expected)?, peak))
        }
        How::Push(bytes, expected) => Ok((pushed(stage.push(bytes(), false).await?, expected)?, 0)),
        How::PushFenced(bytes, expected) => {
            Ok((pushed(stage.push(bytes(), true).await?, expected)?, 0))
        }
        How::Own(own) => Ok((own::run(stage, own).await?, 0)),
        How::Elsewhere(_) | How::NotHere(_) => Err("it is not run".to_owned()),
    }
}

fn ended(report: CallReport, expected: Expected) -> Result<String, String> {
    match (&report.result, expected) {
        (Err(CallFailure::Killed(kill)), Expected::Killed(wanted, message))
            if kill.kill == wanted && kill.message.contains(message) =>
        {
            let why = match kill.kill {
                Kill::Trapped => shown(&format!(": {}", kill.message)),
                _ => String::new(),
            };
            Ok(format!("killed: {}{why}", kill.kill))
        }
        (Err(CallFailure::Killed(kill)), Expected::KilledByEither(one, other))
            if [one, other].contains(&kill.kill) =>
        {
            Ok(format!("killed: {}", kill.kill))
        }
        (Err(CallFailure::Rule(error)), Expected::GaveUp(why))
            if format!("{error:?}").contains(why) =>
        {
            Ok("refused, told to the rule".to_owned())
        }
        (Ok(output), Expected::Items(n)) if output.items.len() == n => {
            Ok(format!("ok, items: {n}"))
        }
        (result, expected) => {
            let result = format!("{result:?}");
            let result: String = result.chars().take(600).collect();
            Err(format!("{result}, not {expected:?}"))
        }
    }
}

fn pushed(refusal: String, expected: &str) -> Result<String, String> {
    match (refusal.is_empty(), expected.is_empty()) {
        (true, true) => Ok("admitted".to_owned()),
        (false, false) if refusal.contains(expected) => Ok(format!("refused: {}", shown(&refusal))),
        (true, false) => Err("it was admitted".to_owned()),
        (false, _) => Err(format!("it was refused: {refusal}")),
    }
}

/// Returns the start of a text.
fn shown(text: &str) -> String {
    text.chars().take(SHOWN_MAX).collect()
}

#[test]
fn the_table_has_all_74_cases_in_order() {
    let numbers: Vec<u8> = cases().map(|case| case.n).collect();
    assert!(numbers.is_sorted(), "{numbers:?}");
    let missing: Vec<u8> = (1..=N_CASES).filter(|n| !numbers.contains(n)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert_eq!(numbers.last(), Some(&N_CASES));
}

#[test]
fn every_test_that_the_table_names_is_there() {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut functions = BTreeSet::new();
    for folder in ["host", "plugin-sdk", "tests"] {
        collect_functions(&tree.join(folder), &mut functions);
    }
    let named = cases().flat_map(|case| {
        let elsewhere = match case.how {
            How::Elsewhere(tests) => tests,
            _ => &[],
        };
        elsewhere.iter().copied().chain([case.had])
    });
    let gone: Vec<&str> = named
        .filter(|name| !name.is_empty() && !functions.contains(*name))
        .collect();
    assert!(
        gone.is_empty(),
        "no test is named {gone:?}; name the one that took its place"
    );
}

/// Collects the functions of all Rust files below a folder that follow `#[test]` or the like.
fn collect_functions(folder: &Path, functions: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("it is a folder") {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            collect_functions(&path, functions);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).expect("code is text");
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            for pair in lines.windows(2) {
                if !pair[0].starts_with("#[") && !pair[0].ends_with(']') {
                    continue;
                }
                let name = pair[1]
                    .split_once("fn ")
                    .and_then(|(_, rest)| rest.split_once('('));
                functions.extend(name.map(|(name, _)| name.to_owned()));
            }
        }
    }
}
