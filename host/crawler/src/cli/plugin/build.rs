//! Builds a component from a folder of source, with the tools of its language.
//!
//! ```text
//! rust        cargo, for wasm32-wasip2
//! javascript  the build script of a package.json
//! python      componentize-py
//! ```
//!
//! Both scripts are built by `script`, unless the component was made of the same `sources` before.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::cli::Failure;

mod command;
mod javascript;
mod python;
mod rust;
mod script;
mod sources;

/// Returns true if rustup has the target of plugins in Rust for this folder; `None` if rustup is not there, or does not
/// tell.
pub async fn has_rust_target(folder: &Path) -> Option<bool> {
    rust::has_target(folder).await
}

/// Returns the component of a plugin: a `.wasm` file unchanged, or a folder after its build. The files in the
/// folder tell the language: a Cargo.toml, a package.json or a pyproject.toml.
///
/// Messages of the build go to stderr. Dropping the future ends the build with all its processes.
pub async fn build_plugin(path: &Path) -> anyhow::Result<PathBuf> {
    let shown = path.display();
    let kind = tokio::fs::metadata(path).await;
    let kind = kind.with_context(|| format!("cannot find a plugin at {shown}"))?;
    if kind.is_file() {
        if rust::is_wasm(path) {
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
        javascript::build(path).await
    } else if has("pyproject.toml") {
        python::build(path).await
    } else {
        Err(Failure::new(
            format!("folder {shown} has no Cargo.toml, package.json or pyproject.toml"),
            "name the folder of a plugin, as `crawler plugin new` makes one, or a .wasm file",
        )
        .into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
