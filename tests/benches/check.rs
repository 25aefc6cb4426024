//! Instructions of every stage of a page, compared with the committed figures: a check that a busy machine cannot
//! disturb.
//!
//! ```text
//! tests/run bench check
//! UPDATE=1 tests/run bench check      the figures are written instead
//! ```
//!
//! Each stage is repeated N times in one process and twice as often in another, both under callgrind of valgrind.
//! The difference, divided by N, is the work of one repetition, without the start of the process. A
//! stage that has more instructions than its figure, by over 5 %, fails. One that has fewer is told, because its
//! figure hides what is lost later.
//!
//! The figures are in `check/figures.txt`, and the stages in the benchmark `stages` of the crawler, which this
//! program builds. Rules run under valgrind too: their code is compiled once by a process that it simulates as well,
//! because the processor that it shows lacks some instructions of the real one.

#![expect(clippy::print_stdout, reason = "a benchmark reports to its terminal")]

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use crawler_tests::counts::{Figures, TOLERANCE, Verdict};
use crawler_tests::{repository, setting};

#[path = "check/counting.rs"]
mod counting;

const RENEW: &str = "UPDATE=1 tests/run bench check";

fn main() -> ExitCode {
    // `cargo test --all-targets` runs this program as well.
    if !std::env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    match check() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            println!("instructions were not counted: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Counts, compares and reports. Returns false if a figure does not hold.
fn check() -> Result<bool, String> {
    let committed = committed()?;
    let counted = counting::count()?;
    let compared = committed.compare(&counted);
    println!("instructions of a page in each stage, {}", counted.tools);
    println!("{:<10} {:>12} {:>12}", "stage", "before", "now");
    for comparison in &compared {
        println!("{comparison}");
    }
    if setting("UPDATE").is_some_and(|value| value == "1") {
        let path = path();
        let written = fs::write(&path, counted.to_string());
        written.map_err(|e| format!("{} cannot be written: {e}", path.display()))?;
        println!("written to {}", path.display());
        return Ok(true);
    }
    if !committed.tools.is_empty() && committed.tools != counted.tools {
        println!(
            "the committed figures are those of {}; count the commit before yours with the tools of this machine \
             before you blame a change: {RENEW}",
            committed.tools
        );
    }
    let verdicts: Vec<Verdict> = compared.iter().map(|c| c.verdict()).collect();
    let n_failed = verdicts.iter().filter(|v| v.is_failure()).count();
    if n_failed > 0 {
        println!(
            "failed: {n_failed} of {} stages; if a change is worth its price, its commit renews the figures: {RENEW}",
            verdicts.len()
        );
    }
    if verdicts.contains(&Verdict::Less) {
        println!(
            "some stages have over {TOLERANCE} % fewer instructions: renew the figures, so that it stays so: {RENEW}"
        );
    }
    Ok(n_failed == 0)
}

fn committed() -> Result<Figures, String> {
    let path = path();
    let why = |e: &dyn std::fmt::Display| format!("{} cannot be read: {e}", path.display());
    let text = fs::read_to_string(&path).map_err(|e| why(&e))?;
    text.parse().map_err(|e: String| why(&e))
}

fn path() -> PathBuf {
    repository().join("tests/benches/check/figures.txt")
}
