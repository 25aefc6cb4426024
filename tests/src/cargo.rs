//! Builds of programs that a test needs and `tests/run` has not built: once a process, in the order asked for.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Variables that cargo sets for tests, and would take for changed settings of the programs it builds.
const OF_THE_TEST: [&str; 8] = [
    "CARGO_MANIFEST_DIR",
    "CARGO_MANIFEST_PATH",
    "CARGO_PKG_NAME",
    "CARGO_PKG_VERSION",
    "CARGO_PKG_VERSION_MAJOR",
    "CARGO_PKG_VERSION_MINOR",
    "CARGO_PKG_VERSION_PATCH",
    "CARGO_PKG_VERSION_PRE",
];

/// Runs `cargo build` in a folder and returns the names of targets with the files made of them.
pub(crate) fn build(folder: &Path, arguments: &[&str]) -> Vec<(String, PathBuf)> {
    try_build(folder, arguments).unwrap_or_else(|why| panic!("{why}"))
}

/// Runs `cargo build` for programs that a test can do without.
pub(crate) fn try_build(
    folder: &Path,
    arguments: &[&str],
) -> Result<Vec<(String, PathBuf)>, String> {
    let mut command = Command::new("cargo");
    OF_THE_TEST.iter().for_each(|name| {
        command.env_remove(name);
    });
    let built = command
        .arg("build")
        .args(arguments)
        .arg("--message-format=json-render-diagnostics")
        .current_dir(folder)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| format!("cargo does not start: {e}"))?;
    if !built.status.success() {
        let folder = folder.display();
        return Err(format!("cargo build {arguments:?} failed in {folder}"));
    }
    let messages = String::from_utf8_lossy(&built.stdout);
    Ok(messages.lines().flat_map(artifacts).collect())
}

fn artifacts(line: &str) -> Vec<(String, PathBuf)> {
    let message: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
    let Some(name) = message["target"]["name"].as_str() else {
        return Vec::new();
    };
    let files = message["filenames"].as_array().into_iter().flatten();
    let files = files
        .chain([&message["executable"]])
        .filter_map(|file| file.as_str());
    files.map(|file| (name.to_owned(), file.into())).collect()
}
