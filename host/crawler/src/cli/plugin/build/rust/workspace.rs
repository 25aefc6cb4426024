//! The workspace of a plugin in Rust: the packages that are compiled for it and are in no registry, and its SDK.
//!
//! `cargo metadata` lists packages of the workspace, without the network. What replaces packages of a registry is in
//! the manifest of the workspace, and in config files of cargo.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::Context as _;
use serde::Deserialize;
use tokio::process::Command;
use toml::{Table, Value};

use crate::cli::plugin::build::command::{Hints, run};
use crawler_devtools::sdk;

/// Config files of cargo in a folder. They hold for all folders below it.
const CONFIGS: [&str; 2] = [".cargo/config.toml", ".cargo/config"];
/// Keys of manifests and config files that may replace packages, or name files that do.
const REPLACING: [&str; 3] = ["include", "paths", "replace"];

/// Workspace of a plugin.
pub(super) struct Workspace {
    packages: Vec<Package>,
    /// The manifest of the workspace, and the config files of cargo that hold for the plugin.
    settings: Vec<Settings>,
    /// Folder of the plugin, without links.
    plugin: PathBuf,
}

/// File that may replace packages.
struct Settings {
    /// Folder that its paths start from.
    folder: PathBuf,
    table: Table,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_root: PathBuf,
}

#[derive(Deserialize)]
struct Package {
    dependencies: Vec<Dependency>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Dependency {
    /// Folder of the package, if the manifest names one.
    path: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
}

impl Workspace {
    /// Reads the workspace of the plugin in a folder.
    pub(super) async fn of(plugin: &Path, hints: Hints<'_>) -> anyhow::Result<Self> {
        let mut cargo = Command::new("cargo");
        cargo
            .args(["metadata", "--no-deps", "--format-version=1", "--quiet"])
            .arg("--manifest-path")
            .arg(plugin.join("Cargo.toml"));
        let output = run(cargo, plugin, Stdio::piped(), hints).await?;
        let metadata: Metadata = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("cannot read the metadata of {}", plugin.display()))?;
        // Cargo, too, looks for its config files from the folder that a link leads to.
        let plugin = tokio::fs::canonicalize(plugin).await;
        let plugin = plugin.context("cannot find the folder of the plugin")?;
        let configs = plugin.ancestors();
        let configs = configs.flat_map(|folder| CONFIGS.map(|config| (folder, config)));
        let root = tokio::fs::canonicalize(&metadata.workspace_root).await;
        let root = root.context("cannot find the folder of the workspace")?;
        let mut settings = Vec::new();
        for (folder, file) in configs.chain([(root.as_path(), "Cargo.toml")]) {
            if let Ok(text) = tokio::fs::read_to_string(folder.join(file)).await {
                settings.push(Settings {
                    folder: folder.to_owned(),
                    // Cargo reports a file that is invalid.
                    table: text.parse().unwrap_or_default(),
                });
            }
        }
        Ok(Self {
            packages: metadata.packages,
            settings,
            plugin,
        })
    }

    /// Returns true if the author has put another SDK than that in the folder of the plugin in place of the one in
    /// the registry.
    pub(super) fn has_other_sdk(&self) -> bool {
        let own = self.plugin.join(sdk::FOLDER);
        self.settings.iter().any(|settings| {
            let mut sdks = patches(&settings.table).filter(|(name, _)| *name == sdk::PACKAGE);
            sdks.any(
                |(_, patch)| match patch.get("path").and_then(Value::as_str) {
                    Some(path) => settings.folder.join(path) != own,
                    None => true,
                },
            )
        })
    }

    /// Returns true if all that is compiled is the library of the plugin, its SDK, and packages that are the same
    /// wherever they are compiled: those of registries and repositories.
    pub(super) fn is_library_alone(&self) -> bool {
        let [package] = self.packages.as_slice() else {
            return false;
        };
        let mut kinds = package.targets.iter().flat_map(|target| &target.kind);
        let has_script = kinds.any(|kind| kind == "custom-build");
        let has_path = package
            .dependencies
            .iter()
            .any(|package| package.path.is_some());
        let has_replacement = self.settings.iter().any(|settings| {
            let table = &settings.table;
            REPLACING.iter().any(|key| table.contains_key(*key))
                || patches(table).any(|(name, patch)| name != sdk::PACKAGE && is_path(patch))
        });
        !has_script && !has_path && !has_replacement
    }
}

/// Returns the packages that a manifest or a config file puts in place of others, with their names.
fn patches(settings: &Table) -> impl Iterator<Item = (&str, &Value)> {
    let sources = settings.get("patch").and_then(Value::as_table);
    let sources = sources.into_iter().flat_map(Table::values);
    let patches = sources.filter_map(Value::as_table).flatten();
    patches.map(|(key, patch)| {
        let name = patch.get("package").and_then(Value::as_str);
        (name.unwrap_or(key), patch)
    })
}

fn is_path(patch: &Value) -> bool {
    patch.get("path").is_some()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const MANIFEST: &str = r#"
        [package]
        name = "shop"
        version = "0.1.0"
        edition = "2024"
        [dependencies]
        crawler-plugin-sdk = "0.1"
    "#;
    const SDK: &str = "[workspace]\n[patch.crates-io]\ncrawler-plugin-sdk = { path = \"sdk\" }\n";

    /// Reads the workspace of the plugin in the folder `shop` beside files. Each addition to its manifest is one of
    /// them.
    async fn workspace(files: &[(&str, &str)]) -> Workspace {
        let folder = tempfile::tempdir().unwrap();
        let manifest = ("shop/Cargo.toml", MANIFEST);
        for (name, text) in [manifest, ("shop/src/lib.rs", "")].iter().chain(files) {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let before = fs::read_to_string(&path).unwrap_or_default();
            fs::write(path, before + text).unwrap();
        }
        let hints = Hints {
            missing: "",
            failed: None,
            shown: None,
        };
        let plugin = folder.path().join("shop");
        Workspace::of(&plugin, hints).await.unwrap()
    }

    #[tokio::test]
    async fn what_is_compiled_of_the_folder_of_a_plugin_is_known() {
        let own = |more: &str| format!("{SDK}{more}");
        let (toml, config) = ("shop/Cargo.toml", "shop/.cargo/config.toml");
        let helper = "[package]\nname = \"helper\"\n";
        let with_helper = |key: &str| format!("[{key}]\nhelper = {{ path = \"helper\" }}\n{SDK}");
        let check = async |files: &[(&str, &str)], is_alone: bool| {
            let is_so = workspace(files).await.is_library_alone();
            assert_eq!(is_so, is_alone, "{files:?}");
        };
        check(&[(toml, SDK)], true).await;
        check(&[(toml, "[workspace]")], true).await;
        check(&[], true).await;
        check(&[(toml, SDK), (config, "[build]\njobs = 1")], true).await;
        let git = own("serde = { git = \"https://example.test/serde\" }");
        check(&[(toml, &git)], true).await;

        check(&[(toml, SDK), ("shop/build.rs", "")], false).await;
        for key in [
            "build-dependencies",
            "target.'cfg(target_os = \"wasi\")'.dependencies",
        ] {
            let files = [
                (toml, &*with_helper(key)),
                ("shop/helper/Cargo.toml", helper),
                ("shop/helper/src/lib.rs", ""),
            ];
            check(&files, false).await;
        }
        for patch in [
            "serde = { path = \"serde\" }",
            "ours = { path = \"serde\", package = \"serde\" }",
        ] {
            check(&[(toml, &own(patch))], false).await;
            let patch = format!("[patch.crates-io]\n{patch}");
            check(&[(toml, SDK), (config, &patch)], false).await;
        }
        let paths = "paths = [\"shop/serde\"]";
        check(&[(toml, SDK), (".cargo/config", paths)], false).await;
    }

    #[tokio::test]
    async fn an_sdk_that_the_author_has_put_in_place_is_known() {
        let (toml, root) = ("shop/Cargo.toml", "Cargo.toml");
        let config = |folder: &str| format!("{folder}.cargo/config.toml");
        let check = async |file: &str, patch: &str, is_other: bool| {
            let patch = format!("[workspace]\n[patch.crates-io]\n{patch}");
            let members = ("Cargo.toml", "[workspace]\nmembers = [\"shop\"]\n");
            let files = match file == root {
                true => vec![(root, patch.replace("[workspace]", members.1))],
                false if file == toml => vec![(toml, patch)],
                false => vec![(toml, SDK.to_owned()), (file, patch)],
            };
            let files: Vec<_> = files.iter().map(|(name, text)| (*name, &**text)).collect();
            let is_so = workspace(&files).await.has_other_sdk();
            assert_eq!(is_so, is_other, "{files:?}");
        };
        let sdk = |place: &str| format!("crawler-plugin-sdk = {{ {place} }}");
        for (file, path, is_other) in [
            (toml, "sdk", false),
            (toml, "./sdk/", false),
            (toml, "../our-sdk", true),
            (root, "shop/sdk", false),
            (root, "sdk", true),
            (&*config("shop/"), "sdk", false),
            (&*config("shop/"), "../our-sdk", true),
            (&*config(""), "shop/sdk", false),
            (&*config(""), "sdk", true),
        ] {
            check(file, &sdk(&format!("path = \"{path}\"")), is_other).await;
        }
        let renamed = "ours = { package = \"crawler-plugin-sdk\", path = \"../our-sdk\" }";
        check(toml, renamed, true).await;
        check(toml, &sdk("git = \"https://example.test/sdk\""), true).await;
        check(toml, "serde = { path = \"../serde\" }", false).await;
    }

    #[tokio::test]
    async fn a_workspace_of_several_packages_is_known() {
        let check = async |root: &str, is_alone: bool| {
            let manifest = MANIFEST.replace("shop", "kiosk");
            let files = [
                ("Cargo.toml", root),
                ("kiosk/Cargo.toml", &manifest),
                ("kiosk/src/lib.rs", ""),
            ];
            let is_so = workspace(&files).await.is_library_alone();
            assert_eq!(is_so, is_alone, "{root}");
        };
        check("[workspace]\nmembers = [\"shop\"]", true).await;
        check("[workspace]\nmembers = [\"kiosk\", \"shop\"]", false).await;
        let patch = "[patch.crates-io]\nserde = { path = \"serde\" }";
        let root = format!("[workspace]\nmembers = [\"shop\"]\n{patch}");
        check(&root, false).await;
    }
}
