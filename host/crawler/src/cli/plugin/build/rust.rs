//! Rust: `cargo build` for `wasm32-wasip2`.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde::Deserialize;
use tokio::process::Command;

use super::command::{Hints, run};
use crate::cli::Failure;

const TARGET: &str = "wasm32-wasip2";

/// Builds a folder with a Cargo.toml, and returns the component. A missing target is installed if rustup is
/// there.
pub(super) async fn build(folder: &Path) -> anyhow::Result<PathBuf> {
    ensure_target(folder).await?;
    let mut cargo = Command::new("cargo");
    cargo
        .args(["build", "--release", "--target", TARGET])
        .arg("--message-format=json-render-diagnostics")
        .arg("--manifest-path")
        .arg(std::path::absolute(folder.join("Cargo.toml"))?);
    let hints = Hints {
        missing: "install it from https://rustup.rs",
        failed: None,
        shown: None,
    };
    let output = run(cargo, folder, Stdio::piped(), hints).await?;
    artifact(&String::from_utf8_lossy(&output.stdout)).ok_or_else(|| {
        let what = format!("building {} gave no component", folder.display());
        let hint = "its Cargo.toml needs [lib] crate-type = [\"cdylib\"]; a workspace is built by the folder of one plugin";
        Failure::new(what, hint).into()
    })
}

/// Installs the target if rustup says that it is missing. Without rustup, the build itself reports it.
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

/// Returns the last component that cargo made: that of the plugin itself, after its dependencies.
fn artifact(messages: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| {
        let message: Message = serde_json::from_str(line).ok()?;
        (message.reason == "compiler-artifact").then_some(message.filenames)
    });
    messages.flatten().rfind(|file| is_wasm(file))
}

pub(super) fn is_wasm(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "wasm")
}

#[cfg(test)]
mod tests {
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
}
