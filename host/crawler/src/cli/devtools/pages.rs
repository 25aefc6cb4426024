//! The folder of saved calls, and the plugin that it belongs to.

use std::path::{Path, PathBuf};

/// Folder of saved calls within the folder of a plugin.
pub(super) const PAGES: &str = "pages";

/// Files of which a folder of source has one.
const MANIFESTS: [&str; 3] = ["Cargo.toml", "package.json", "pyproject.toml"];

/// Returns the plugin whose folder of saved calls this is. `None` if it lies in no plugin's folder.
pub(super) fn plugin_of(pages: &Path) -> Option<PathBuf> {
    let folder = pages.parent().filter(|_| pages.ends_with(PAGES))?;
    let folder = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    let has_any = MANIFESTS
        .iter()
        .any(|manifest| folder.join(manifest).is_file());
    has_any.then(|| folder.to_owned())
}

/// Returns the folder of a plugin's saved calls: in the plugin's folder, or in the current folder for a .wasm
/// file.
pub(super) fn pages_of(plugin: &Path) -> PathBuf {
    match plugin.extension() {
        Some(extension) if extension == "wasm" => PathBuf::from(PAGES),
        _ if plugin == Path::new(".") => PathBuf::from(PAGES),
        _ => plugin.join(PAGES),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_calls_belong_to_the_plugin_around_their_folder() {
        let folder = tempfile::tempdir().unwrap();
        let pages = folder.path().join(PAGES);
        assert_eq!(plugin_of(&pages), None);
        std::fs::write(folder.path().join("package.json"), "{}").unwrap();
        assert_eq!(plugin_of(&pages), Some(folder.path().to_owned()));
        assert_eq!(plugin_of(&folder.path().join("other")), None);
        assert_eq!(plugin_of(Path::new("/")), None);
        // Tests run in the folder of a crate.
        assert_eq!(plugin_of(Path::new(PAGES)), Some(PathBuf::from(".")));
    }
}
