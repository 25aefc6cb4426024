//! The SDKs for JavaScript and Python alone: their own interpreters, and a simulated boundary. Components made
//! with them are tested in the sandbox with the program.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it skips"
)]

use std::fs;
use std::process::Command;

/// Runs a program of this language, or says that its interpreter is missing.
fn check(interpreter: &str, files: &[(&str, &str)]) {
    if Command::new(interpreter).arg("--version").output().is_err() {
        println!("skipped: {interpreter}: there is none to try the SDK with");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let ran = Command::new(interpreter)
        .arg(files[0].0)
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "as expected\n");
}

/// Runs a script of this name behind the SDK, in one file with it, and beside its types.
fn check_javascript(name: &str, script: &str) {
    // Only the boundary is imported, and the script declares it.
    let sdk = include_str!("../js/crawler.js");
    let is_import = |line: &&str| line.starts_with("import ") && line.contains("crawler:rules/");
    let (imports, rest): (Vec<&str>, Vec<&str>) = sdk.lines().partition(is_import);
    assert_eq!(imports.len(), 4, "{imports:?}");
    let types = ("crawler.d.ts", include_str!("../js/crawler.d.ts"));
    let script = format!("{}\n{script}", rest.join("\n"));
    check("node", &[(name, &script), types]);
}

/// Runs a script of this name beside the SDK, and beside the script that makes its reference.
fn check_python(name: &str, script: &str) {
    let sdk = ("crawler.py", include_str!("../python/crawler.py"));
    let reference = ("reference.py", include_str!("scripts/reference.py"));
    check("python3", &[(name, script), sdk, reference]);
}

#[test]
fn rows_in_rows_are_looked_through_once_in_javascript() {
    check_javascript("rows.mjs", include_str!("scripts/rows.mjs"));
}

#[test]
fn rows_in_rows_are_looked_through_once_in_python() {
    check_python("rows.py", include_str!("scripts/rows.py"));
}

#[test]
fn params_are_checked_and_described_in_javascript() {
    check_javascript("params.mjs", include_str!("scripts/params.mjs"));
}

#[test]
fn params_are_checked_and_described_in_python() {
    check_python("params.py", include_str!("scripts/params.py"));
}

#[test]
fn priorities_have_32_bits_in_javascript() {
    check_javascript("priorities.mjs", include_str!("scripts/priorities.mjs"));
}

#[test]
fn priorities_have_32_bits_in_python() {
    check_python("priorities.py", include_str!("scripts/priorities.py"));
}

#[test]
fn statuses_are_asked_for_by_a_hint_in_javascript() {
    check_javascript("statuses.mjs", include_str!("scripts/statuses.mjs"));
}

#[test]
fn statuses_are_asked_for_by_a_hint_in_python() {
    check_python("statuses.py", include_str!("scripts/statuses.py"));
}

#[test]
fn types_name_what_the_javascript_sdk_has() {
    check_javascript("types.mjs", include_str!("scripts/types.mjs"));
}

#[test]
fn examples_of_the_python_sdk_run() {
    check_python("examples.py", include_str!("scripts/examples.py"));
}

#[test]
fn undocumented_names_of_the_python_sdk_are_told() {
    check_python("undocumented.py", include_str!("scripts/undocumented.py"));
}

#[test]
fn help_shows_the_python_sdk_outside_of_a_component() {
    check_python("helped.py", include_str!("scripts/helped.py"));
}

#[test]
fn files_are_asked_for_by_a_hint_in_javascript() {
    check_javascript("files.mjs", include_str!("scripts/files.mjs"));
}

#[test]
fn files_are_asked_for_by_a_hint_in_python() {
    check_python("files.py", include_str!("scripts/files.py"));
}
