//! Instructions of the stages of a page: figures that are committed, and how newly counted ones compare.
//!
//! Counts hardly depend on what else a machine does, unlike times. They do depend on the compiler and on the
//! processor that valgrind shows, so the tools are part of the figures.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::{cargo, repository};

/// Difference in percent up to which two counts are alike: seeds of hash tables and places in memory are random.
pub const TOLERANCE: u64 = 5;

/// Word that the line of the tools begins with. No stage has this name.
const TOOLS: &str = "tools";

const HEAD: &str = "\
# Instructions of each stage for one page. Written by: UPDATE=1 tests/run bench check
# The stages are in host/crawler/benches/stages.rs.
";

/// Counts of all stages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Figures {
    /// Versions of the tools that the stages were built and counted with. Empty if nothing was counted yet.
    pub tools: String,
    /// Instructions of one repetition, by stage.
    pub counts: BTreeMap<String, u64>,
}

/// Counts of one stage before and now. At least one of them is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// Name of the stage.
    pub stage: String,
    /// Committed count.
    pub before: Option<u64>,
    /// New count.
    pub now: Option<u64>,
}

/// Result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The counts differ by no more than the tolerance.
    Alike,
    /// The stage has become more expensive.
    More,
    /// The stage has become cheaper, so the figures allow it to become more expensive again.
    Less,
    /// The stage has no committed figure.
    Missing,
    /// The figure is that of no stage.
    Unknown,
}

impl Figures {
    /// Compares newly counted figures with these, by name.
    pub fn compare(&self, now: &Self) -> Vec<Comparison> {
        let stages: BTreeSet<&String> = self.counts.keys().chain(now.counts.keys()).collect();
        let comparison = |stage: &String| Comparison {
            before: self.counts.get(stage).copied(),
            now: now.counts.get(stage).copied(),
            stage: stage.clone(),
        };
        stages.into_iter().map(comparison).collect()
    }
}

impl FromStr for Figures {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut figures = Self::default();
        let lines = text.lines().map(str::trim);
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (name, value) = line.split_once(' ').unwrap_or((line, ""));
            if name == TOOLS {
                value.clone_into(&mut figures.tools);
                continue;
            }
            let count = value.parse().map_err(|e| format!("{line:?}: {e}"))?;
            if figures.counts.insert(name.to_owned(), count).is_some() {
                return Err(format!("{name} is there twice"));
            }
        }
        Ok(figures)
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEAD}\n{TOOLS} {}", self.tools)?;
        let mut counts = self.counts.iter();
        counts.try_for_each(|(stage, count)| writeln!(f, "{stage} {count}"))
    }
}

impl Comparison {
    /// Judges the counts.
    pub fn verdict(&self) -> Verdict {
        match (self.before, self.now) {
            (Some(before), Some(now)) if exceeds(now, before) => Verdict::More,
            (Some(before), Some(now)) if falls_below(now, before) => Verdict::Less,
            (Some(_), Some(_)) => Verdict::Alike,
            (None, _) => Verdict::Missing,
            (Some(_), None) => Verdict::Unknown,
        }
    }
}

fn exceeds(now: u64, before: u64) -> bool {
    u128::from(now) * 100 > u128::from(before) * u128::from(100 + TOLERANCE)
}

fn falls_below(now: u64, before: u64) -> bool {
    u128::from(now) * 100 < u128::from(before) * u128::from(100 - TOLERANCE)
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), |n| n.to_string());
        let (before, now) = (count(self.before), count(self.now));
        write!(f, "{:<10} {before:>12} {now:>12}", self.stage)?;
        if let (Some(before @ 1..), Some(now)) = (self.before, self.now) {
            let change = (now as f64 / before as f64 - 1.0) * 100.0;
            write!(f, " {change:>+8.1} %")?;
        }
        match self.verdict() {
            Verdict::Alike => Ok(()),
            Verdict::More => write!(f, "  MORE"),
            Verdict::Less => write!(f, "  less"),
            Verdict::Missing => write!(f, "  MISSING: no figure is committed"),
            Verdict::Unknown => write!(f, "  UNKNOWN: there is no such stage"),
        }
    }
}

impl Verdict {
    /// Returns true if the check fails with it.
    pub fn is_failure(self) -> bool {
        match self {
            Self::Alike | Self::Less => false,
            Self::More | Self::Missing | Self::Unknown => true,
        }
    }
}

/// Returns the instructions of one repetition, from those of a process with `n` repetitions and of one with twice as
/// many. `None` if they differ by less than one for each repetition: then the stage did not run.
pub fn of_one(n: u32, once: u64, twice: u64) -> Option<u64> {
    let count = twice.checked_sub(once)?.checked_div(n.into())?;
    (count > 0).then_some(count)
}

/// Returns the number of instructions in what callgrind tells at its end.
pub fn collected(told: &str) -> Option<u64> {
    let mut counts = told
        .lines()
        .filter_map(|line| line.split_once("Collected : "));
    counts.next()?.1.trim().parse().ok()
}

/// Builds the benchmark `stages`, and returns its program.
pub fn program() -> Result<PathBuf, String> {
    // The same selection as for other benchmarks, so that nothing is compiled twice.
    let selection = [
        "--release",
        "--workspace",
        "--all-features",
        "--bench",
        "stages",
    ];
    let built = cargo::try_build(&repository(), &selection)?;
    let mut programs = built.into_iter().filter(|(name, _)| name == "stages");
    let (_, program) = programs
        .find(|(_, file)| file.extension().is_none())
        .ok_or("cargo does not tell the program of the benchmark stages")?;
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_process::stage::Stage;

    fn figures(counts: &[(&str, u64)]) -> Figures {
        let counts = counts
            .iter()
            .map(|(stage, count)| ((*stage).to_owned(), *count));
        Figures {
            tools: "rustc 1, valgrind 2".to_owned(),
            counts: counts.collect(),
        }
    }

    #[track_caller]
    fn check(before: &[(&str, u64)], now: &[(&str, u64)], expected: &[(&str, Verdict)]) {
        let compared = figures(before).compare(&figures(now));
        let verdicts: Vec<_> = compared
            .iter()
            .map(|comparison| (comparison.stage.as_str(), comparison.verdict()))
            .collect();
        assert_eq!(verdicts, expected);
    }

    #[test]
    fn counts_within_the_tolerance_are_alike() {
        for now in [1_000, 1_050, 950] {
            check(&[("a", 1_000)], &[("a", now)], &[("a", Verdict::Alike)]);
        }
        check(&[("a", 0)], &[("a", 0)], &[("a", Verdict::Alike)]);
        let large = u64::MAX - 1;
        check(&[("a", large)], &[("a", large)], &[("a", Verdict::Alike)]);
    }

    #[test]
    fn counts_beyond_it_are_more_or_less() {
        for (now, verdict) in [(1_051, Verdict::More), (949, Verdict::Less)] {
            check(&[("a", 1_000)], &[("a", now)], &[("a", verdict)]);
        }
        check(&[("a", 0)], &[("a", 1)], &[("a", Verdict::More)]);
    }

    #[test]
    fn a_stage_without_a_figure_and_a_figure_without_a_stage_fail() {
        check(
            &[("a", 1), ("b", 1)],
            &[("b", 1), ("c", 1)],
            &[
                ("a", Verdict::Unknown),
                ("b", Verdict::Alike),
                ("c", Verdict::Missing),
            ],
        );
        for (verdict, expected) in [
            (Verdict::Alike, false),
            (Verdict::Less, false),
            (Verdict::More, true),
            (Verdict::Missing, true),
            (Verdict::Unknown, true),
        ] {
            assert_eq!(verdict.is_failure(), expected, "{verdict:?}");
        }
    }

    #[test]
    fn a_line_tells_stage_before_and_now() {
        let compared = figures(&[("a", 1_000)]).compare(&figures(&[("a", 1_100), ("b", 7)]));
        let lines: Vec<_> = compared.iter().map(Comparison::to_string).collect();
        assert_eq!(
            lines,
            [
                "a                  1000         1100    +10.0 %  MORE",
                "b                     -            7  MISSING: no figure is committed",
            ]
        );
    }

    #[test]
    fn figures_are_read_as_they_are_written() {
        let written = figures(&[("a", 1), ("b", 22)]);
        assert_eq!(written.to_string().parse(), Ok(written));
        assert_eq!("# nothing yet\n\n".parse(), Ok(Figures::default()));
        for wrong in ["a", "a x", "a -1", "a 1\na 2"] {
            assert!(wrong.parse::<Figures>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_stage_has_a_committed_figure() {
        let path = repository().join("tests/benches/check/figures.txt");
        let text = std::fs::read_to_string(path).expect("they are committed");
        let figures = text.parse::<Figures>().expect("they are figures");
        let stages: BTreeSet<&str> = Stage::ALL.iter().map(|stage| stage.as_str()).collect();
        let counted: BTreeSet<&str> = figures.counts.keys().map(String::as_str).collect();
        assert_eq!(counted, stages);
        assert!(figures.counts.values().all(|count| *count > 0), "{text}");
    }

    #[test]
    fn a_count_is_the_difference_of_two_processes() {
        let told = "==7== \n==7== Events    : Ir\n==7== Collected : 231876572\n==7== \n";
        assert_eq!(collected(told), Some(231_876_572));
        assert_eq!(collected("==7== Events    : Ir\n"), None);
        assert_eq!(of_one(100, 5_000, 9_000), Some(40));
        for (n, once, twice) in [(0, 5_000, 9_000), (100, 9_000, 5_000), (100, 5_000, 5_099)] {
            assert_eq!(of_one(n, once, twice), None, "{n} {once} {twice}");
        }
    }
}
