//! The SDKs for JavaScript and Python by themselves: their own interpreters, and a boundary that is made up. What
//! components of them do in the sandbox is tested with the program.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it skips"
)]

use std::fs;
use std::process::Command;

/// Runs a program of this language, or says that there is nothing to run it with.
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

#[test]
fn rows_in_rows_are_looked_through_once_in_javascript() {
    // Nothing but the boundary is imported: here it is declared.
    let sdk = include_str!("../js/crawler.js");
    let is_import = |line: &&str| line.starts_with("import ") && line.contains("crawler:rules/");
    let (imports, rest): (Vec<&str>, Vec<&str>) = sdk.lines().partition(is_import);
    assert_eq!(imports.len(), 4, "{imports:?}");
    let boundary = include_str!("scripts/rows.mjs");
    check(
        "node",
        &[("rows.mjs", &format!("{}\n{boundary}", rest.join("\n")))],
    );
}

#[test]
fn rows_in_rows_are_looked_through_once_in_python() {
    check(
        "python3",
        &[
            ("rows.py", include_str!("scripts/rows.py")),
            ("crawler.py", include_str!("../python/crawler.py")),
        ],
    );
}
