//! Popular tools in Python for the same work: lexbor by selectolax, and parsel, which Scrapy uses.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

const PACKAGES: [&str; 2] = ["selectolax==1.0.2", "parsel==1.12.1"];
const SCRIPT: &str = include_str!("peers.py");

/// Result of one tool.
#[derive(Debug, Deserialize)]
pub(crate) struct Peer {
    pub(crate) name: String,
    /// Median over the rounds of the time for a page, in microseconds.
    pub(crate) micros: f64,
    pub(crate) n_headings: usize,
    pub(crate) n_links: usize,
}

/// Runs all tools that can be installed here.
#[expect(clippy::print_stdout, reason = "a benchmark says what it leaves out")]
pub(crate) fn all(files: &[PathBuf], n_rounds: usize) -> Vec<Peer> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python-peers");
    if !folder.join("parsel").is_dir() {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--target"]);
        let installed = pip.arg(&folder).args(PACKAGES).status();
        if !installed.is_ok_and(|status| status.success()) {
            println!("left out: pip cannot have {}", PACKAGES.join(" and "));
            return Vec::new();
        }
    }
    let mut python = Command::new("python3");
    python.args(["-c", SCRIPT, &n_rounds.to_string()]);
    let output = python.args(files).env("PYTHONPATH", &folder).output();
    let output = output.expect("python3 has installed the packages");
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        println!("left out: {}: {why}", PACKAGES.join(" and "));
        return Vec::new();
    }
    serde_json::from_slice(&output.stdout).expect("the script writes JSON")
}
