//! Chromium with a profile of its own, driven by a script in Node.js, as a reader would use a page.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::process::{Home, Process};
use crate::{PATIENCE, skipped};

/// Names of the program.
const PROGRAMS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Runs the cases of a script that needs no browser, if Node.js is there.
#[track_caller]
pub fn node_test(script: &Path) {
    let Some(node) = node() else {
        return;
    };
    let home = Home::new();
    let script = script.display().to_string();
    run(&mut home.command_of(&node, ["--test", script.as_str()]));
}

/// Runs a script to its end, which must be a success. It gets the path of Chromium, a folder for the profile, and these
/// arguments. If a program is missing, it says so and does nothing.
#[track_caller]
pub fn walk(script: &Path, arguments: &[&str]) {
    let Some(node) = node() else {
        return;
    };
    let Some(chromium) = found(&PROGRAMS) else {
        skipped(
            "chromium",
            "Chromium, which shows the page, is not installed (Debian: apt-get install chromium)",
        );
        return;
    };
    let home = Home::new();
    let profile = home.path().join("profile");
    let paths = [script, &chromium, &profile].map(|path| path.display().to_string());
    let paths = paths.iter().map(String::as_str);
    run(&mut home.command_of(&node, paths.chain(arguments.iter().copied())));
}

#[track_caller]
fn run(command: &mut Command) {
    let ended = Process::start(command).wait(2 * PATIENCE);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
}

/// Returns Node.js, or says that it is missing.
fn node() -> Option<PathBuf> {
    let node = found(&["node"]);
    if node.is_none() {
        skipped("node", "Node.js, which runs the scripts, is not installed");
    }
    node
}

/// Returns the first of these programs that tells its version.
fn found(programs: &[&str]) -> Option<PathBuf> {
    let tells = |program: &&&str| {
        let told = Command::new(program)
            .arg("--version")
            .stdin(Stdio::null())
            .output();
        told.is_ok_and(|told| told.status.success())
    };
    programs.iter().find(tells).map(PathBuf::from)
}
