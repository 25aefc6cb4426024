//! The SDK for Rust: the sources of the crates that a plugin is built with.
//!
//! The program carries them, so that nobody needs the repository. A new plugin has a copy in its folder `sdk`, by
//! which cargo builds it anywhere. The crawler itself builds with the same files in a folder whose name has their
//! digest ([`Sdk::keep`]): plugins with the same SDK share what is compiled of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crawler_model::id::Digest;
use toml::{Table, Value};

/// Name of the package.
pub const PACKAGE: &str = "crawler-plugin-sdk";
/// Folder of a plugin that has its SDK.
pub const FOLDER: &str = "sdk";

/// Files of this program's SDK, as the repository has them.
const OWN: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/sdk.rs"));
/// Manifest of the repository's workspace, which has the versions of dependencies.
const WORKSPACE: &str = include_str!("../../../Cargo.toml");
/// Keys of the workspace that the SDK inherits from.
const INHERITED: [&str; 3] = ["lints", "package", "resolver"];
/// Tables of dependencies.
const DEPENDENCIES: [&str; 3] = ["build-dependencies", "dependencies", "dev-dependencies"];
/// Digits of the digest in the name of a folder.
const DIGITS: usize = 16;

/// Sources of an SDK: the contents of its files, by their paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sdk {
    files: BTreeMap<PathBuf, Vec<u8>>,
}

/// Reason why an SDK cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} the plugin SDK: {path}")]
pub struct SdkError {
    /// Operation: "read" or "write".
    doing: &'static str,
    /// File or folder.
    path: PathBuf,
    /// Error of the system.
    source: io::Error,
}

impl Sdk {
    /// Returns the SDK of this program. Its package is a workspace of its own.
    pub fn own() -> Self {
        let mut files: BTreeMap<PathBuf, Vec<u8>> = OWN
            .iter()
            .map(|(path, content)| (path.into(), content.to_vec()))
            .collect();
        let texts = files
            .iter()
            .filter(|(path, _)| path.ends_with("Cargo.toml"));
        let manifests = texts.map(|(path, text)| (path.clone(), table(text)));
        let manifests: BTreeMap<PathBuf, Table> = manifests.collect();
        let manifest = with_workspace(&manifests, table(WORKSPACE.as_bytes()));
        files.insert("Cargo.toml".into(), manifest.into_bytes());
        Self { files }
    }

    /// Returns the SDK in a folder, or `None` if there is none.
    pub fn read(folder: &Path) -> Result<Option<Self>, SdkError> {
        if !folder.join("Cargo.toml").is_file() {
            return Ok(None);
        }
        let mut files = BTreeMap::new();
        read_below(folder, Path::new(""), &mut files)?;
        Ok(Some(Self { files }))
    }

    /// Writes the SDK into a folder, which has nothing else afterwards.
    pub fn write(&self, folder: &Path) -> Result<(), SdkError> {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed("write", folder)(error));
            }
            Ok(()) | Err(_) => {}
        }
        for (path, content) in &self.files {
            let path = folder.join(path);
            let parent = path.parent().unwrap_or(folder);
            let written = fs::create_dir_all(parent).and_then(|()| fs::write(&path, content));
            written.map_err(failed("write", &path))?;
        }
        Ok(())
    }

    /// Returns a folder below `cache` that has this SDK. It is written if it is missing or was damaged. It appears
    /// as a whole, so other processes may do the same.
    pub fn keep(&self, cache: &Path) -> Result<PathBuf, SdkError> {
        let folder = cache.join(&self.digest().to_string()[..DIGITS]);
        if Self::read(&folder)?.as_ref() == Some(self) {
            return Ok(folder);
        }
        fs::create_dir_all(cache).map_err(failed("write", cache))?;
        let temporary = tempfile::Builder::new().prefix(".new-").tempdir_in(cache);
        let temporary = temporary.map_err(failed("write", cache))?;
        let (new, old) = (temporary.path().join("new"), temporary.path().join("old"));
        self.write(&new)?;
        match fs::rename(&new, &folder) {
            Ok(()) => return Ok(folder),
            // Another process was faster.
            Err(_) if Self::read(&folder)?.as_ref() == Some(self) => return Ok(folder),
            // It is damaged. No folder is renamed to one that has files, so it moves out of the way.
            Err(_) => {}
        }
        let replaced = fs::rename(&folder, old).and_then(|()| fs::rename(new, &folder));
        replaced.map_err(failed("write", &folder))?;
        Ok(folder)
    }

    fn digest(&self) -> Digest {
        let mut all = Vec::new();
        for (path, content) in &self.files {
            all.extend_from_slice(Digest::of(path.as_os_str().as_encoded_bytes()).as_bytes());
            all.extend_from_slice(Digest::of(content).as_bytes());
        }
        Digest::of(&all)
    }
}

/// Returns true if a folder has an SDK of plugins.
pub fn is_at(folder: &Path) -> bool {
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
    let manifest: Table = manifest.parse().unwrap_or_default();
    let package = manifest
        .get("package")
        .and_then(|package| package.get("name"));
    package.and_then(Value::as_str) == Some(PACKAGE)
}

fn failed(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> SdkError + use<> {
    let path = path.to_owned();
    move |source| SdkError {
        doing,
        path: path.clone(),
        source,
    }
}

/// Reads the files of a folder below `root`, except build folders and those that editors leave there.
fn read_below(
    root: &Path,
    folder: &Path,
    files: &mut BTreeMap<PathBuf, Vec<u8>>,
) -> Result<(), SdkError> {
    let shown = root.join(folder);
    let entries = fs::read_dir(&shown).map_err(failed("read", &shown))?;
    for entry in entries {
        let entry = entry.map_err(failed("read", &shown))?;
        let path = folder.join(entry.file_name());
        let kind = entry.file_type().map_err(failed("read", &entry.path()))?;
        if crate::watch::is_of_a_tool(&path) || path == Path::new("target") {
            continue;
        }
        if kind.is_dir() {
            read_below(root, &path, files)?;
        } else if kind.is_file() {
            let content = fs::read(entry.path()).map_err(failed("read", &entry.path()))?;
            files.insert(path, content);
        }
    }
    Ok(())
}

fn table(text: &[u8]) -> Table {
    let text = std::str::from_utf8(text).expect("a manifest is text");
    text.parse()
        .expect("the program was built by this manifest")
}

/// Returns the manifest of the SDK as a workspace: its packages inherit from the repository's in the same way.
fn with_workspace(manifests: &BTreeMap<PathBuf, Table>, root: Table) -> String {
    let repository = root.get("workspace").and_then(Value::as_table);
    let repository = repository.expect("the repository is a workspace");
    let mut workspace: Table = INHERITED
        .iter()
        .filter_map(|key| Some(((*key).to_owned(), repository.get(*key)?.clone())))
        .collect();
    let folders = manifests.keys().filter_map(|path| path.parent());
    let members = folders.filter(|folder| !folder.as_os_str().is_empty());
    let members = members.map(|folder| Value::from(folder.display().to_string()));
    workspace.insert("members".to_owned(), Value::Array(members.collect()));

    let mut names = BTreeSet::new();
    manifests
        .values()
        .for_each(|manifest| add_names(manifest, &mut names));
    let versions = repository.get("dependencies").and_then(Value::as_table);
    let versions = versions.expect("the repository has dependencies");
    let mut dependencies = versions.clone();
    dependencies.retain(|name, _| names.contains(name));
    for (_, dependency) in dependencies.iter_mut() {
        if let Some(Value::String(path)) = dependency.get_mut("path") {
            *path = path.trim_start_matches("plugin-sdk/").to_owned();
        }
    }
    workspace.insert("dependencies".to_owned(), Value::Table(dependencies));

    let mut manifest = manifests
        .get(Path::new("Cargo.toml"))
        .cloned()
        .unwrap_or_default();
    manifest.insert("workspace".to_owned(), Value::Table(workspace));
    manifest.to_string()
}

/// Adds the names of all dependencies of a manifest, also of those for one target.
fn add_names<'a>(manifest: &'a Table, names: &mut BTreeSet<&'a str>) {
    for (key, value) in manifest {
        let Value::Table(table) = value else { continue };
        match DEPENDENCIES.contains(&key.as_str()) {
            true => names.extend(table.keys().map(String::as_str)),
            false => add_names(table, names),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sdk_has_what_a_plugin_is_built_with_and_no_tests() {
        let sdk = Sdk::own();
        let has = |file: &str| sdk.files.contains_key(Path::new(file));
        for file in [
            "Cargo.toml",
            "src/lib.rs",
            "wit/rules.wit",
            "extract/src/lib.rs",
            "macros/Cargo.toml",
            "pattern/src/lib.rs",
            "schema/Cargo.toml",
            "selector/src/read/text.rs",
        ] {
            assert!(has(file), "{file}");
        }
        let is_test = |path: &PathBuf| {
            path.iter()
                .any(|part| part == "tests" || part == "tests.rs")
        };
        assert!(!sdk.files.keys().any(is_test));
        let n_bytes: usize = sdk.files.values().map(Vec::len).sum();
        assert!(
            n_bytes < 1 << 20,
            "the program carries {n_bytes} bytes of SDK"
        );
    }

    #[test]
    fn the_manifest_is_a_workspace_with_the_versions_of_the_repository() {
        let sdk = Sdk::own();
        let manifest = table(&sdk.files[Path::new("Cargo.toml")]);
        let workspace = manifest["workspace"].as_table().unwrap();
        assert_eq!(manifest["package"]["name"].as_str(), Some(PACKAGE));
        assert_eq!(
            workspace["package"]["version"].as_str(),
            Some(env!("CARGO_PKG_VERSION"))
        );
        let dependencies = workspace["dependencies"].as_table().unwrap();
        assert_eq!(
            dependencies["crawler-extract"]["path"].as_str(),
            Some("extract")
        );
        assert!(dependencies.contains_key("wit-bindgen"));
        assert!(!dependencies.contains_key("crawler-model"));
        let members = workspace["members"].as_array().unwrap();
        assert_eq!(members.len(), 5, "{members:?}");
    }

    #[test]
    fn a_kept_sdk_is_found_again_and_repaired() {
        let cache = tempfile::tempdir().unwrap();
        let sdk = Sdk::own();
        let folder = sdk.keep(cache.path()).unwrap();
        assert_eq!(Sdk::read(&folder).unwrap().as_ref(), Some(&sdk));
        let lib = folder.join("src/lib.rs");
        let written = fs::metadata(&lib).unwrap().modified().unwrap();
        assert_eq!(sdk.keep(cache.path()).unwrap(), folder);
        assert_eq!(fs::metadata(&lib).unwrap().modified().unwrap(), written);
        fs::remove_file(&lib).unwrap();
        fs::write(folder.join("src/more.rs"), "").unwrap();
        assert_eq!(sdk.keep(cache.path()).unwrap(), folder);
        assert_eq!(Sdk::read(&folder).unwrap().as_ref(), Some(&sdk));
        // Nothing else is left in the cache.
        assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 1);
    }

    #[test]
    fn another_sdk_has_another_folder() {
        let cache = tempfile::tempdir().unwrap();
        let own = Sdk::own();
        let mut changed = own.clone();
        changed.files.insert("src/lib.rs".into(), Vec::new());
        assert_ne!(
            own.keep(cache.path()).unwrap(),
            changed.keep(cache.path()).unwrap()
        );
    }

    #[test]
    fn a_folder_without_a_manifest_has_no_sdk() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Sdk::read(folder.path()).unwrap(), None);
        assert_eq!(Sdk::read(&folder.path().join("gone")).unwrap(), None);
    }

    #[test]
    fn a_cache_that_cannot_be_written_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let error = Sdk::own().keep(&file.join("sdk")).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("cannot write the plugin SDK: "),
            "{error}"
        );
    }
}
