//! Tools that build components from scripts: installed from npm and PyPI, or reported as missing.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use crawler_tests::process::{Ended, Home, Process};
use crawler_tests::setting;

use crate::devtools::BUILD;
use crate::installed::{by_npm, installed};

/// Packages of the tools, as the documentation names them.
const QJS: &str = "componentize-qjs@0.4.5";
const PY: &str = "componentize-py==0.25.1";
const TYPESCRIPT: &str = "typescript@5.9.3";

/// PATH with the tools of a language in front.
pub(super) struct Tools(OsString);

impl Tools {
    /// Returns a PATH without the tools of any script language.
    pub(super) fn none() -> Self {
        Self(setting("PATH").unwrap_or_default())
    }

    /// Returns the tools of a package of npm, or `None` if it cannot be installed.
    fn of_npm(part: &str, package: &str) -> Option<Self> {
        let modules = by_npm(part, package)?;
        Some(Self::of(&modules.join(".bin")))
    }

    fn of(folder: &Path) -> Self {
        let path = setting("PATH").unwrap_or_default();
        let all = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
        Self(std::env::join_paths(all).expect("folders have no colon in their names"))
    }

    /// Value of PATH.
    pub(super) fn path(&self) -> &OsStr {
        &self.0
    }

    /// Checks a folder that has a `jsconfig.json` by the compiler of TypeScript, which writes nothing.
    #[track_caller]
    pub(super) fn check_types(&self, folder: &Path) {
        let mut command = Command::new("tsc");
        let command = command.args(["--noEmit", "--project", "jsconfig.json"]);
        let ended = Process::start(command.current_dir(folder).env("PATH", &self.0)).wait(BUILD);
        let said = ended.stdout + &ended.stderr;
        assert_eq!(ended.code, Some(0), "{}: {said}", folder.display());
    }

    /// Runs a command of the crawler in a folder.
    pub(super) fn ended(&self, home: &Home, folder: &Path, arguments: &[&str]) -> Ended {
        let mut command = home.command(arguments);
        Process::start(command.current_dir(folder).env("PATH", &self.0)).wait(BUILD)
    }

    #[track_caller]
    pub(super) fn ok(&self, home: &Home, folder: &Path, arguments: &[&str]) -> String {
        let ended = self.ended(home, folder, arguments);
        let said = || format!("{arguments:?}: {}{}", ended.stdout, ended.stderr);
        assert_eq!(ended.code, Some(0), "{}", said());
        ended.stdout
    }
}

/// Returns the tools of JavaScript, installed once and kept for the next run.
pub(super) fn javascript() -> Option<&'static Tools> {
    static TOOLS: OnceLock<Option<Tools>> = OnceLock::new();
    let tools = TOOLS.get_or_init(|| Tools::of_npm("componentize-qjs", QJS));
    tools.as_ref()
}

/// Returns the compiler of TypeScript, which also checks JavaScript by its types.
pub(super) fn typescript() -> Option<Tools> {
    Tools::of_npm("typescript", TYPESCRIPT)
}

pub(super) fn python() -> Option<&'static Tools> {
    static TOOLS: OnceLock<Option<Tools>> = OnceLock::new();
    let install = |folder: &Path| {
        let pip = folder.join("bin/pip").display().to_string();
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        vec![
            words(&["python3", "-m", "venv", &folder.display().to_string()]),
            words(&[
                &pip,
                "install",
                "--quiet",
                "--disable-pip-version-check",
                PY,
            ]),
        ]
    };
    let tools = || {
        let folder = installed("componentize-py", PY, install)?;
        Some(Tools::of(&folder.join("bin")))
    };
    TOOLS.get_or_init(tools).as_ref()
}
