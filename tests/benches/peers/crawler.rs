//! The crawlers that are compared: how each is started for a task, and where its items are.
//!
//! The settings of the peers stand beside their code in `tests/peers`, each with its reason.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crawler_tests::peers::{self, Found, version_of};
use crawler_tests::process::Home;
use crawler_tests::python::python;
use crawler_tests::{guests, repository, skipped};
use tempfile::TempDir;

use crate::task::{LIMITS, Task, worker};

/// Packages of PyPI that Scrapy runs with.
const SCRAPY: [&str; 3] = ["scrapy==2.19.0", "lxml==6.1.3", "uvloop==0.23.0"];
/// One of the crawlers.
pub(crate) struct Crawler {
    pub(crate) name: &'static str,
    /// Versions of its parts.
    pub(crate) versions: String,
    /// True if it crawls in one round only, and that round is counted.
    pub(crate) crawls_once: bool,
    program: Program,
}

enum Program {
    /// `crawler worker --cluster=false`: URLs, items and the log of the crawl are kept in a data root.
    Worker,
    /// `crawler run`: URLs are in memory, items go to a file.
    Run,
    /// A peer with these first words, then the arguments that all peers have.
    Peer(Vec<PathBuf>),
}

/// A crawl that is ready to be started. Its folder is deleted with it.
pub(crate) struct Begun {
    pub(crate) command: Command,
    folder: TempDir,
}

/// Returns this crawler in its two forms, and all peers that can be had. Those that cannot are reported.
pub(crate) fn all(home: &Home) -> Vec<Crawler> {
    let version = home.ok(["--version"]).trim().to_owned();
    let ours = [
        ("crawler worker", Program::Worker),
        ("crawler run", Program::Run),
    ];
    let ours = ours.map(|(name, program)| Crawler {
        name,
        versions: version.clone(),
        crawls_once: false,
        program,
    });
    let programs = peers::programs();
    let in_rust = [
        (
            "reqwest + lol_html",
            "bare_lol_html",
            ["reqwest", "lol_html"],
        ),
        ("reqwest + scraper", "bare_scraper", ["reqwest", "scraper"]),
        ("spider + scraper", "spider", ["spider", "scraper"]),
    ];
    let in_rust = in_rust.into_iter().filter_map(|(name, program, parts)| {
        let path = programs.get(program)?.clone();
        let versions = parts.map(|part| format!("{part} {}", version_of(part)));
        Some(Crawler {
            name,
            versions: versions.join(", "),
            crawls_once: false,
            program: Program::Peer(vec![path]),
        })
    });
    ours.into_iter()
        .chain(in_rust)
        .chain(scrapy(home))
        .collect()
}

fn scrapy(home: &Home) -> Option<Crawler> {
    let python = python(home.path(), "scrapy", &SCRAPY)?;
    let output = Command::new(&python).arg("--version").output();
    let version = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let Ok(version) = version else {
        skipped("scrapy", "its Python does not start");
        return None;
    };
    let script = repository().join("tests/peers/scrapy_spider.py");
    Some(Crawler {
        name: "Scrapy",
        versions: format!("{}, {version}", SCRAPY.join(", ").replace("==", " ")),
        crawls_once: true,
        program: Program::Peer(vec![python, script]),
    })
}

impl Crawler {
    /// Prepares a crawl in a folder of its own.
    pub(crate) fn begin(&self, task: &Task<'_>) -> Begun {
        let folder = tempfile::tempdir_in(task.home.path()).expect("a folder can be made");
        let command = match &self.program {
            Program::Worker => worker(task, folder.path(), folder.path().join("data")),
            Program::Run => run(task, folder.path()),
            Program::Peer(words) => {
                let mut command = Command::new(&words[0]);
                command
                    .args(&words[1..])
                    .args([task.start.as_str(), task.below])
                    .arg(task.concurrency.to_string())
                    .arg(folder.path().join("items.jsonl"));
                command
            }
        };
        Begun { command, folder }
    }
}

impl Begun {
    /// Returns what the crawl has found.
    pub(crate) fn found(&self) -> Result<Found, String> {
        let mut found = Found::default();
        add_files(&mut found, self.folder.path())?;
        Ok(found)
    }
}

/// Adds the items of all files below a folder whose names end with `.jsonl`.
fn add_files(found: &mut Found, folder: &Path) -> Result<(), String> {
    let wrong = |path: &Path, why: String| format!("{}: {why}", path.display());
    let entries = fs::read_dir(folder).map_err(|e| wrong(folder, e.to_string()))?;
    for entry in entries {
        let path = entry.map_err(|e| wrong(folder, e.to_string()))?.path();
        if path.is_dir() {
            add_files(found, &path)?;
        } else if path.extension().is_some_and(|end| end == "jsonl") {
            let text = fs::read_to_string(&path).map_err(|e| wrong(&path, e.to_string()))?;
            found.add(&text).map_err(|why| wrong(&path, why))?;
        }
    }
    Ok(())
}

/// Returns a crawl in the terminal: a frontier in memory.
fn run(task: &Task<'_>, folder: &Path) -> Command {
    let mut command = task
        .home
        .command(["run", "--allow-networks=127.0.0.0/8", "--delay=0s"]);
    command
        .arg(guests::guest("peers"))
        .arg(format!("--param=start={}", task.start))
        .arg(format!("--param=below={}", task.below))
        .arg(format!("--concurrency={}", task.concurrency))
        .arg("--max-depth=1000")
        .arg("--output")
        .arg(folder.join("items.jsonl"))
        .args(LIMITS.map(|(name, value)| format!("--limit={name}={value}")));
    command
}
