//! Processes under valgrind that repeat one stage, and their instructions.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use crawler_tests::counts::{Figures, collected, of_one, program};
use crawler_tests::guests;
use tempfile::TempDir;

/// Valgrind without a count, which is the quickest. Processes that are started run in it too.
const SIMULATE: [&str; 2] = ["--tool=none", "--trace-children=yes"];
const COUNT: [&str; 2] = ["--tool=callgrind", "--callgrind-out-file=/dev/null"];
/// A stage that loads a plugin.
const LOADS: &str = "instance";

/// The program with the stages, and what it needs.
struct Stages {
    program: PathBuf,
    /// Folder of built guests.
    guests: PathBuf,
    /// Folder of compiled plugins.
    folder: TempDir,
}

/// Counts the instructions of all stages.
pub(crate) fn count() -> Result<Figures, String> {
    let valgrind = version("valgrind").map_err(|why| {
        format!("{why}; callgrind counts, so install it (Debian: apt-get install valgrind)")
    })?;
    let rustc = version("rustc")?;
    let guest = guests::guest("site_outline");
    let stages = Stages {
        program: program()?,
        guests: guest.parent().map_or_else(PathBuf::new, Path::to_owned),
        folder: tempfile::tempdir().map_err(|e| format!("a folder cannot be made: {e}"))?,
    };
    // It leaves the compiled code in the folder, for all stages that load the plugin.
    stages.run(&SIMULATE, LOADS, 1)?;
    let mut figures = Figures {
        tools: format!("{rustc}, {valgrind}, {}", std::env::consts::ARCH),
        ..Figures::default()
    };
    for (stage, n) in stages.list()? {
        let count = stages.count(&stage, n)?;
        figures.counts.insert(stage, count);
    }
    Ok(figures)
}

fn version(tool: &str) -> Result<String, String> {
    let output = Command::new(tool).arg("--version").output();
    let output = output.map_err(|e| format!("{tool} does not start: {e}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

impl Stages {
    /// Returns the names of all stages, each with its number of repetitions.
    fn list(&self) -> Result<Vec<(String, u32)>, String> {
        let output = Command::new(&self.program).arg("list").output();
        let output = output.map_err(|e| format!("{} fails: {e}", self.program.display()))?;
        let list = String::from_utf8_lossy(&output.stdout);
        let stage = |line: &str| {
            let (stage, n) = line.split_once(' ')?;
            Some((stage.to_owned(), n.parse().ok()?))
        };
        let stages: Option<Vec<_>> = list.lines().map(stage).collect();
        stages
            .filter(|stages| !stages.is_empty())
            .ok_or_else(|| format!("{} lists {list:?}", self.program.display()))
    }

    /// Returns the instructions of one repetition. Both processes run at the same time: that makes no difference.
    fn count(&self, stage: &str, n: u32) -> Result<u64, String> {
        let counted = |n| {
            let told = self.run(&COUNT, stage, n)?;
            collected(&told).ok_or_else(|| format!("callgrind told no count of {stage}: {told}"))
        };
        let (once, twice) = thread::scope(|scope| {
            let once = scope.spawn(|| counted(n));
            let twice = counted(2 * n);
            (once.join().expect("it does not panic"), twice)
        });
        let (once, twice) = (once?, twice?);
        of_one(n, once, twice).ok_or_else(|| {
            format!("{stage} did not run: {once} instructions for {n} repetitions, {twice} for twice as many")
        })
    }

    /// Runs a stage under valgrind, and returns what that tells.
    fn run(&self, tool: &[&str], stage: &str, n: u32) -> Result<String, String> {
        let output = Command::new("valgrind")
            .args(tool)
            .arg(&self.program)
            .args(["count", stage, &n.to_string()])
            .arg(self.folder.path())
            .env("CRAWLER_GUESTS", &self.guests)
            .stdin(Stdio::null())
            .output()
            .map_err(|e| format!("valgrind does not start: {e}"))?;
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.success() {
            true => Ok(told),
            false => Err(format!("{stage} ended with {}: {told}", output.status)),
        }
    }
}
