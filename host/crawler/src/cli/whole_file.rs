//! File that is whole or is not there: it is written beside its place, and named at the end.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tempfile::NamedTempFile;

/// Creates a file in the folder of `path`. It gets its name by [`NamedTempFile::persist`], and is removed without that.
pub(super) fn create(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let mut named = tempfile::Builder::new();
    // A temporary file would be for its owner only.
    named.permissions(Permissions::from_mode(0o666));
    named.tempfile_in(folder.unwrap_or(Path::new(".")))
}
