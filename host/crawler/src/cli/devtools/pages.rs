//! The folder of saved calls.

use std::path::{Path, PathBuf};

/// Folder of saved calls within the folder of a plugin.
pub(super) const PAGES: &str = "pages";

/// Returns the folder of a plugin's saved calls: in the plugin's folder, or in the current folder for a .wasm
/// file.
pub(super) fn pages_of(plugin: &Path) -> PathBuf {
    match plugin.extension() {
        Some(extension) if extension == "wasm" => PathBuf::from(PAGES),
        _ if plugin == Path::new(".") => PathBuf::from(PAGES),
        _ => plugin.join(PAGES),
    }
}
