//! Rust: cargo, for `wasm32-wasip2`.
//!
//! A plugin that names the SDK by its version gets it from its own folder `sdk`, or else from this program. Those
//! that are one library are compiled in one build folder, so what they have in common is compiled once. Where the
//! author tells where the SDK is, by its path as in the repository or by a patch with another folder than `sdk`, the
//! plugin is built as cargo would do it.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::Context as _;
use serde::Deserialize;
use tokio::process::Command;

use self::workspace::Workspace;
use super::command::{Hints, run};
use crate::cli::Failure;
use crate::config;
use crawler_devtools::sdk::{self, Sdk};
use crawler_process::task::spawn_blocking;

mod workspace;

const TARGET: &str = "wasm32-wasip2";
/// Argument of rustc for the stack of a plugin: 256 KiB, and not a megabyte. All of it is cleared after each call.
const STACK: &str = "-Clink-arg=-zstack-size=262144";

/// Builds a folder with a Cargo.toml, and returns the component. A missing target is installed if rustup is
/// there.
pub(super) async fn build(folder: &Path) -> anyhow::Result<PathBuf> {
    ensure_target(folder).await?;
    let plugin = std::path::absolute(folder)?;
    let manifest = plugin.join("Cargo.toml");
    let text = tokio::fs::read_to_string(&manifest).await;
    let text = text.with_context(|| format!("cannot read {}", manifest.display()))?;
    let hints = Hints {
        missing: "install it from https://rustup.rs",
        failed: None,
        shown: None,
    };
    let mut cargo = Command::new("cargo");
    let workspace = match names_version(&text) {
        true => Some(Workspace::of(&plugin, hints).await?),
        false => None,
    };
    let workspace = workspace.filter(|workspace| !workspace.has_other_sdk());
    cargo
        .args(["rustc", "--lib", "--release", "--target", TARGET])
        .arg("--message-format=json-render-diagnostics")
        .arg("--manifest-path")
        .arg(manifest);
    let mut of_rustc = vec![STACK.to_owned()];
    if let Some(workspace) = workspace {
        let (of, cache) = (plugin.clone(), config::cache_folder()?);
        let places = Places {
            sdk: spawn_blocking(move || sdk_of(&of, &cache)).await??,
            build: match workspace.is_library_alone() {
                true => config::build_folder()?,
                false => None,
            },
            plugin,
        };
        cargo.args(places.arguments());
        of_rustc.push(places.of_rustc());
    }
    cargo.arg("--").args(of_rustc);
    let output = run(cargo, folder, Stdio::piped(), hints).await?;
    artifact(&String::from_utf8_lossy(&output.stdout)).ok_or_else(|| {
        let what = format!("building {} gave no component", folder.display());
        let hint = "its Cargo.toml needs [lib] crate-type = [\"cdylib\"]; a workspace is built by the folder of one plugin";
        Failure::new(what, hint).into()
    })
}

/// Returns true if a manifest names the SDK by its version alone. Cargo reports a manifest that is invalid.
fn names_version(manifest: &str) -> bool {
    const ELSEWHERE: [&str; 4] = ["git", "path", "registry", "workspace"];
    let manifest: toml::Table = manifest.parse().unwrap_or_default();
    let dependencies = manifest.get("dependencies");
    match dependencies.and_then(|dependencies| dependencies.get(sdk::PACKAGE)) {
        Some(toml::Value::Table(sdk)) => !ELSEWHERE.iter().any(|key| sdk.contains_key(*key)),
        sdk => sdk.is_some(),
    }
}

/// Returns a folder below `cache` that has the SDK of a plugin.
fn sdk_of(plugin: &Path, cache: &Path) -> anyhow::Result<PathBuf> {
    let sdk = Sdk::read(&plugin.join(sdk::FOLDER))?.unwrap_or_else(Sdk::own);
    sdk.keep(&cache.join("sdk")).map_err(|error| {
        let hint = format!(
            "it is kept in {}; name another folder with XDG_CACHE_HOME",
            cache.display()
        );
        Failure::new(crawler_process::telemetry::chain(&error), hint).into()
    })
}

/// Folders of a build.
struct Places {
    /// Folder of the plugin.
    plugin: PathBuf,
    /// Folder of the SDK.
    sdk: PathBuf,
    /// Folder of what is compiled, which all plugins share. If `None`, cargo decides: the plugin is more than its
    /// library, or the user has told cargo another folder.
    build: Option<PathBuf>,
}

impl Places {
    /// Returns the arguments of cargo.
    fn arguments(&self) -> Vec<String> {
        let config = |key: &str, folder: &Path| {
            // Strings of TOML are escaped.
            let folder = toml::Value::from(folder.display().to_string());
            format!("--config={key}={folder}")
        };
        let patch = format!("patch.crates-io.{}.path", sdk::PACKAGE);
        let build = self.build.as_deref();
        let build = build.map(|build| config("build.build-dir", build));
        [config(&patch, &self.sdk)]
            .into_iter()
            .chain(build)
            .collect()
    }

    /// Returns the argument of rustc for the library.
    fn of_rustc(&self) -> String {
        // Plugins of one name in several folders, such as two clones, are one package to cargo: without an
        // argument that differs it would take what it compiled for the other. This one changes no component. It
        // reaches the library alone: cargo would still mix up helper crates and build scripts of the two, whose
        // paths in their workspaces are the same.
        format!("--remap-path-prefix={}=.", self.plugin.display())
    }
}

/// Returns the command that runs rustup in this folder, which may have a toolchain of its own.
fn rustup(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.args(args).current_dir(folder).stdin(Stdio::null());
    command.kill_on_drop(true);
    command
}

/// Returns true if rustup has the target of plugins for this folder; `None` if rustup is not there, or does not tell.
pub(super) async fn has_target(folder: &Path) -> Option<bool> {
    let mut list = rustup(folder, &["target", "list", "--installed"]);
    let installed = list.output().await.ok()?;
    let targets = String::from_utf8_lossy(&installed.stdout);
    let is_there = targets.lines().any(|line| line == TARGET);
    installed.status.success().then_some(is_there)
}

/// Installs the target if rustup says that it is missing. Without rustup, the build itself reports it.
async fn ensure_target(folder: &Path) -> anyhow::Result<()> {
    if has_target(folder).await != Some(false) {
        return Ok(());
    }
    eprintln!("installing the Rust target {TARGET}: rustup target add {TARGET}");
    let added = rustup(folder, &["target", "add", TARGET]).status().await;
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
    fn the_compared_plugin_has_the_stack_of_built_ones() {
        let config = include_str!("../../../../../../tests/guests/peers/.cargo/config.toml");
        let config: toml::Table = config.parse().unwrap();
        let flags = &config["target"][TARGET]["rustflags"];
        assert_eq!(flags, &toml::Value::from(vec![STACK]));
    }

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

    #[test]
    fn a_plugin_that_names_the_sdk_by_its_version_gets_it() {
        for (manifest, expected) in [
            ("crawler-plugin-sdk = \"0.1\"", true),
            (
                "crawler-plugin-sdk = { version = \"0.1\", features = [\"dom\"] }",
                true,
            ),
            ("crawler-plugin-sdk = { path = \"../plugin-sdk\" }", false),
            (
                "crawler-plugin-sdk = { version = \"0.1\", path = \"sdk\" }",
                false,
            ),
            ("crawler-plugin-sdk.workspace = true", false),
            ("serde = \"1\"", false),
            ("crawler-plugin-sdk", false),
        ] {
            let is_so = names_version(&format!("[dependencies]\n{manifest}\n"));
            assert_eq!(is_so, expected, "{manifest}");
        }
    }

    #[test]
    fn the_sdk_in_the_folder_of_a_plugin_comes_before_that_of_the_program() {
        let (plugin, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let of_program = sdk_of(plugin.path(), cache.path()).unwrap();
        let own = plugin.path().join("sdk");
        Sdk::own().write(&own).unwrap();
        assert_eq!(sdk_of(plugin.path(), cache.path()).unwrap(), of_program);
        std::fs::write(own.join("src/lib.rs"), "// ours").unwrap();
        let of_plugin = sdk_of(plugin.path(), cache.path()).unwrap();
        let lib = std::fs::read_to_string(of_plugin.join("src/lib.rs"));
        assert_eq!(lib.unwrap(), "// ours");
        std::fs::remove_dir_all(cache.path()).unwrap();
        std::fs::write(cache.path(), "").unwrap();
        let error = sdk_of(plugin.path(), cache.path()).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("cannot write the plugin SDK: "),
            "{error}"
        );
        std::fs::remove_file(cache.path()).unwrap();
    }

    #[test]
    fn folders_are_told_to_cargo_as_strings_of_toml() {
        let places = Places {
            plugin: "/a/shop".into(),
            sdk: "/c/a \"b\"".into(),
            build: Some("/c/build".into()),
        };
        let arguments = places.arguments();
        let config = |argument: &str| -> toml::Table {
            argument.strip_prefix("--config=").unwrap().parse().unwrap()
        };
        let patch = &config(&arguments[0])["patch"]["crates-io"]["crawler-plugin-sdk"];
        assert_eq!(patch["path"].as_str(), Some("/c/a \"b\""));
        let build = &config(&arguments[1])["build"];
        assert_eq!(build["build-dir"].as_str(), Some("/c/build"));
        assert_eq!(places.of_rustc(), "--remap-path-prefix=/a/shop=.");
        let usual = Places {
            build: None,
            ..places
        };
        assert_eq!(usual.arguments().len(), arguments.len() - 1);
    }
}
