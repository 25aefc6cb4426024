//! Built guests: the example plugins, and those that misbehave on purpose.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use crate::{cargo, repository, setting};

/// Returns the component of a guest by its crate name, such as `books` or `forum_list`: from `CRAWLER_GUESTS`, or
/// built once.
#[track_caller]
pub fn guest(name: &str) -> PathBuf {
    if let Some(folder) = setting("CRAWLER_GUESTS") {
        let path = PathBuf::from(folder).join(name).with_extension("wasm");
        assert!(
            path.is_file(),
            "there is no {}; tests/run builds it",
            path.display()
        );
        return path;
    }
    static BUILT: OnceLock<BTreeMap<String, PathBuf>> = OnceLock::new();
    let built = BUILT.get_or_init(build);
    built
        .get(name)
        .unwrap_or_else(|| panic!("no guest {name}; there are {:?}", built.keys()))
        .clone()
}

/// Returns a file of `tests/golden/0.1.0`: the frozen boundary, and components that were built for it.
pub fn frozen(file: &str) -> PathBuf {
    repository().join("tests/golden/0.1.0").join(file)
}

/// Returns the hostile plugin with another text of the same length at one place in it.
#[track_caller]
pub fn hostile_with(text: &str, instead: &str) -> Vec<u8> {
    assert_eq!(text.len(), instead.len());
    let mut bytes = fs::read(guest("hostile")).expect("the guest is built");
    let at = bytes
        .windows(text.len())
        .position(|window| window == text.as_bytes());
    let at = at.expect("the text is in the component");
    bytes[at..at + text.len()].copy_from_slice(instead.as_bytes());
    bytes
}

/// Returns the hostile plugin with another `describe`.
#[track_caller]
pub fn describing(behaviour: &str) -> Vec<u8> {
    let text = format!("{:.<24}", format!("describe={behaviour}"));
    hostile_with("describe=honest.........", &text)
}

fn build() -> BTreeMap<String, PathBuf> {
    let guests = repository().join("tests/guests");
    let entries = fs::read_dir(&guests)
        .unwrap_or_else(|e| panic!("{} cannot be read: {e}", guests.display()));
    let folders = entries.map(|entry| entry.expect("a folder can be listed").path());
    let workspaces = folders
        .chain([repository().join("plugins")])
        .filter(|folder| folder.join("Cargo.toml").is_file());
    workspaces
        .flat_map(|folder| {
            cargo::build(
                &folder,
                &["--release", "--workspace", "--target=wasm32-wasip2"],
            )
        })
        .filter(|(_, file)| {
            file.extension()
                .is_some_and(|extension| extension == "wasm")
        })
        .map(|(name, file)| (name.replace('-', "_"), file))
        .collect()
}
