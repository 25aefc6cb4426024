//! Packages that tests need: installed once below the build folder and kept for the next run, or reported as missing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crawler_tests::process::Process;
use crawler_tests::skipped;

use crate::devtools::BUILD;

/// Returns the folder `node_modules` with a package of npm, named `NAME@VERSION`. `part` is the name by which tests are skipped
/// without it.
pub(crate) fn by_npm(part: &str, package: &str) -> Option<PathBuf> {
    let folder = installed(part, package, |folder| {
        let prefix = folder.display().to_string();
        let words = ["npm", "install", "--silent", "--prefix", &prefix, package];
        vec![words.map(str::to_owned).to_vec()]
    })?;
    Some(folder.join("node_modules"))
}

/// Returns the folder of a package, or prints a line that it cannot be installed. `install` returns the commands that install it
/// there. An incomplete installation does not count.
pub(crate) fn installed(
    part: &str,
    package: &str,
    install: impl Fn(&Path) -> Vec<Vec<String>>,
) -> Option<PathBuf> {
    let packages = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = packages.join(package.replace('@', "-"));
    // Two runs of the tests may need it at the same moment.
    let lock = fs::File::create(packages.join(format!("{part}.lock"))).expect("a file can be made");
    lock.lock().expect("a file can be locked");
    let done = folder.join("installed");
    if !done.is_file() {
        // The folder may be left from an attempt that was ended.
        if folder.exists() {
            fs::remove_dir_all(&folder).expect("an attempt can be cleared away");
        }
        fs::create_dir_all(&folder).expect("a folder can be made");
        for words in install(&folder) {
            let is_there = Command::new("sh")
                .args(["-c", "command -v \"$0\" >/dev/null", &words[0]])
                .status();
            if !is_there.is_ok_and(|status| status.success()) {
                skipped(
                    part,
                    &format!("{package} cannot be installed: there is no {}", words[0]),
                );
                return None;
            }
            let ran = Process::start(Command::new(&words[0]).args(&words[1..])).wait(BUILD);
            if ran.code != Some(0) {
                let last = ran.stderr.trim().lines().last().unwrap_or_default();
                skipped(part, &format!("{package} cannot be installed ({last})"));
                return None;
            }
        }
        fs::write(&done, "").expect("a file can be written");
    }
    Some(folder)
}
