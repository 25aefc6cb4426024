//! Builds a component from a folder of source, with the tools of its language.
//!
//! ```text
//! rust     cargo, for wasm32-wasip2
//! script   JavaScript by the build script of its package.json, Python by componentize-py
//! ```

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Command;

use crate::cli::Failure;

mod rust;
mod script;

/// Returns the component of a plugin: a `.wasm` file unchanged, or a folder after its build. The files in the
/// folder tell the language: a Cargo.toml, a package.json or a pyproject.toml.
///
/// Messages of the build go to stderr. Dropping the future ends the build with all its processes.
pub async fn build_plugin(path: &Path) -> anyhow::Result<PathBuf> {
    let shown = path.display();
    let kind = tokio::fs::metadata(path).await;
    let kind = kind.with_context(|| format!("cannot find a plugin at {shown}"))?;
    if kind.is_file() {
        if is_wasm(path) {
            return Ok(path.to_owned());
        }
        return Err(Failure::new(
            format!("{shown} is neither a folder nor a .wasm file"),
            "name the folder of a plugin, or a component that is built already",
        )
        .into());
    }
    let has = |manifest: &str| path.join(manifest).is_file();
    if has("Cargo.toml") {
        rust::build(path).await
    } else if has("package.json") && has("pyproject.toml") {
        Err(Failure::new(
            format!("folder {shown} has a package.json and a pyproject.toml"),
            "keep the one of the language that the rules are written in",
        )
        .into())
    } else if has("package.json") {
        script::build_javascript(path).await
    } else if has("pyproject.toml") {
        script::build_python(path).await
    } else {
        Err(Failure::new(
            format!("folder {shown} has no Cargo.toml, package.json or pyproject.toml"),
            "name the folder of a plugin, as `crawler plugin new` makes one, or a .wasm file",
        )
        .into())
    }
}

fn is_wasm(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "wasm")
}

/// Ways out of a build that fails.
struct Hints<'a> {
    /// Way out if its program cannot be started.
    missing: &'a str,
    /// Way out if it fails. If `None`, its own messages suffice.
    failed: Option<&'a str>,
}

/// Runs a build in a folder; its messages are for the user.
async fn run(
    mut command: Command,
    folder: &Path,
    stdout: Stdio,
    hints: Hints<'_>,
) -> anyhow::Result<Output> {
    command
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(Stdio::inherit());
    let program = command.as_std().get_program().display().to_string();
    let output = output_of_group(command).await;
    let output = output.map_err(|error| {
        let what = format!(
            "cannot start {program}, which builds {}: {error}",
            folder.display()
        );
        Failure::new(what, hints.missing)
    })?;
    if output.status.success() {
        return Ok(output);
    }
    Err(Failure::new(
        format!("plugin {} does not build", folder.display()),
        match hints.failed {
            Some(hint) => hint.to_owned(),
            None => format!("the messages above are those of {program}"),
        },
    )
    .into())
}

/// Runs a command in a process group of its own, which is ended when the future is dropped: cargo
/// starts compilers that would go on after it.
async fn output_of_group(mut command: Command) -> io::Result<Output> {
    let child = command.process_group(0).kill_on_drop(true).spawn()?;
    let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let group = id.map(Group);
    let output = child.wait_with_output().await;
    // The child is reaped: its id may be another's from here on.
    std::mem::forget(group);
    output
}

/// Process group that is killed on drop.
struct Group(Pid);

impl Drop for Group {
    fn drop(&mut self) {
        if let Err(error) = kill_process_group(self.0, Signal::KILL) {
            tracing::warn!(%error, "cannot end the build");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_build_that_is_dropped_ends_with_those_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("id");
        let mut shell = Command::new("sh");
        let script = format!("sleep 3600 & echo $! > {} ; wait", file.display());
        shell.args(["-c", &script]);
        let started = async {
            loop {
                match std::fs::read_to_string(&file) {
                    Ok(id) if id.ends_with('\n') => break id.trim().to_owned(),
                    _ => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            }
        };
        let id = tokio::select! {
            output = output_of_group(shell) => panic!("it ended: {output:?}"),
            id = started => id,
        };
        let stat = PathBuf::from(format!("/proc/{id}/stat"));
        let is_gone = || match std::fs::read_to_string(&stat) {
            Ok(stat) => stat.contains(") Z "),
            Err(_) => true,
        };
        let ended = async {
            while !is_gone() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let ended = tokio::time::timeout(Duration::from_secs(60), ended).await;
        assert!(ended.is_ok(), "process {id} goes on");
    }

    #[tokio::test]
    async fn what_is_no_plugin_is_said_to_be_none() {
        let folder = tempfile::tempdir().unwrap();
        let error = build_plugin(folder.path()).await.unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("has no Cargo.toml, package.json or pyproject.toml"),
            "{error}"
        );
        for manifest in ["package.json", "pyproject.toml"] {
            std::fs::write(folder.path().join(manifest), "").unwrap();
        }
        let error = build_plugin(folder.path()).await.unwrap_err().to_string();
        assert!(
            error.ends_with("has a package.json and a pyproject.toml"),
            "{error}"
        );
        let text = folder.path().join("a.txt");
        std::fs::write(&text, "").unwrap();
        let error = build_plugin(&text).await.unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("is neither a folder nor a .wasm file"),
            "{error}"
        );
        let error = build_plugin(&folder.path().join("gone")).await.unwrap_err();
        assert!(
            error.to_string().starts_with("cannot find a plugin at"),
            "{error}"
        );
        let wasm = folder.path().join("a.wasm");
        std::fs::write(&wasm, "").unwrap();
        assert_eq!(build_plugin(&wasm).await.unwrap(), wasm);
    }
}
