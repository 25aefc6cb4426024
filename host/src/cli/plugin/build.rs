//! From a folder of Rust source to a component: `cargo build` for `wasm32-wasip2`.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use tokio::process::Command;

use crate::cli::Failure;

const TARGET: &str = "wasm32-wasip2";

/// The component of a plugin: a `.wasm` file as it is, a folder with a Cargo.toml built first.
///
/// Messages of the build go to stderr. A missing target is installed, where rustup is there to do so.
/// Dropping the future ends the build with all its processes.
pub async fn build_plugin(path: &Path) -> anyhow::Result<PathBuf> {
    let shown = path.display();
    let kind = tokio::fs::metadata(path).await;
    let kind = kind.with_context(|| format!("cannot find a plugin at {shown}"))?;
    if kind.is_file() {
        if path
            .extension()
            .is_some_and(|extension| extension == "wasm")
        {
            return Ok(path.to_owned());
        }
        return Err(Failure::new(
            format!("{shown} is neither a folder nor a .wasm file"),
            "name the folder that has the plugin's Cargo.toml, or a component that is built already",
        )
        .into());
    }
    let manifest = path.join("Cargo.toml");
    if !manifest.is_file() {
        return Err(Failure::new(
            format!("folder {shown} has no Cargo.toml"),
            "name the folder that has the plugin's Cargo.toml, or a .wasm file",
        )
        .into());
    }
    ensure_target(path).await?;
    let mut cargo = Command::new("cargo");
    cargo
        .args(["build", "--release", "--target", TARGET])
        .arg("--message-format=json-render-diagnostics")
        .arg("--manifest-path")
        .arg(std::path::absolute(&manifest)?)
        .current_dir(path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
    let output = output_of_group(cargo)
        .await
        .context("cannot start cargo, which builds plugins; install it from https://rustup.rs")?;
    if !output.status.success() {
        return Err(Failure::new(
            format!("plugin {shown} does not build"),
            "the messages above are those of cargo",
        )
        .into());
    }
    artifact(&String::from_utf8_lossy(&output.stdout)).ok_or_else(|| {
        let hint = "its Cargo.toml needs [lib] crate-type = [\"cdylib\"]; a workspace is built by the folder of one plugin";
        Failure::new(format!("building {shown} gave no component"), hint).into()
    })
}

/// Runs a command in a process group of its own, which is ended when the future is dropped: cargo
/// starts compilers that would go on after it.
async fn output_of_group(mut command: Command) -> io::Result<Output> {
    let child = command.process_group(0).kill_on_drop(true).spawn()?;
    let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let group = id.map(Group);
    let output = child.wait_with_output().await;
    // Reaped: its id may be another's from here on.
    std::mem::forget(group);
    output
}

/// A process group, killed on drop.
struct Group(Pid);

impl Drop for Group {
    fn drop(&mut self) {
        if let Err(error) = kill_process_group(self.0, Signal::KILL) {
            tracing::warn!(%error, "cannot end the build");
        }
    }
}

/// Installs the target where rustup says that it is missing. Without rustup the build itself tells.
async fn ensure_target(folder: &Path) -> anyhow::Result<()> {
    let rustup = |args: &[&str]| {
        let mut command = Command::new("rustup");
        command.args(args).current_dir(folder).stdin(Stdio::null());
        command.kill_on_drop(true);
        command
    };
    let installed = rustup(&["target", "list", "--installed"]).output().await;
    let Ok(installed) = installed else {
        return Ok(());
    };
    let installed_targets = String::from_utf8_lossy(&installed.stdout);
    if !installed.status.success() || installed_targets.lines().any(|line| line == TARGET) {
        return Ok(());
    }
    eprintln!("installing the Rust target {TARGET}: rustup target add {TARGET}");
    let added = rustup(&["target", "add", TARGET]).status().await;
    if added.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    Err(Failure::new(
        format!("the Rust target {TARGET} is not installed"),
        format!("run `rustup target add {TARGET}`"),
    )
    .into())
}

#[derive(Deserialize)]
struct Message {
    reason: String,
    #[serde(default)]
    filenames: Vec<PathBuf>,
}

/// The last component that cargo says it made: that of the plugin itself, after its dependencies.
fn artifact(messages: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| {
        let message: Message = serde_json::from_str(line).ok()?;
        (message.reason == "compiler-artifact").then_some(message.filenames)
    });
    let wasm = |file: &PathBuf| {
        file.extension()
            .is_some_and(|extension| extension == "wasm")
    };
    messages.flatten().rfind(wasm)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_component_is_found_among_the_messages_of_cargo() {
        let messages = r#"
            {"reason":"compiler-artifact","filenames":["/t/libserde.rlib"]}
            {"reason":"compiler-artifact","filenames":["/t/books.wasm"],"fresh":true}
            {"reason":"build-finished","success":true}
        "#;
        assert_eq!(artifact(messages), Some("/t/books.wasm".into()));
        assert_eq!(
            artifact(r#"{"reason":"build-finished","success":true}"#),
            None
        );
    }

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
        assert!(error.to_string().ends_with("has no Cargo.toml"), "{error}");
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
