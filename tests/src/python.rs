//! Python with packages from PyPI, in a folder of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::skipped;

/// Returns a Python that has these packages, each with its version. If they cannot be installed, it says so under
/// `name` and returns `None`.
pub fn python(folder: &Path, name: &str, packages: &[&str]) -> Option<PathBuf> {
    let python = folder.join("venv/bin/python");
    let install = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ];
    let install: Vec<&str> = install.iter().chain(packages).copied().collect();
    let made = run(folder, Path::new("python3"), &["-m", "venv", "venv"]);
    match made.and_then(|()| run(folder, &python, &install)) {
        Ok(()) => Some(python),
        Err(why) => {
            let last = why.lines().last().unwrap_or_default();
            let packages = packages.join(" ");
            skipped(
                name,
                &format!("{packages} cannot be installed by pip ({last})"),
            );
            None
        }
    }
}

fn run(folder: &Path, program: &Path, arguments: &[&str]) -> Result<(), String> {
    let ended = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output();
    match ended {
        Ok(ended) if ended.status.success() => Ok(()),
        Ok(ended) => Err(String::from_utf8_lossy(&ended.stderr).trim().to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
