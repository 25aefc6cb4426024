//! Plain files: read to a limit, written whole or not at all.

use std::fs::Permissions;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::error::SavedError;

/// Reads at most `max` bytes of a file, and tells if there are more. Only plain files are read: a file of
/// another kind may never end, or lead elsewhere.
pub fn read(path: &Path, max: u64) -> Result<(Vec<u8>, bool), SavedError> {
    let read = || {
        if !std::fs::symlink_metadata(path)?.is_file() {
            return Err(io::Error::other("it is no plain file"));
        }
        let file = std::fs::File::open(path)?;
        let mut bytes = Vec::new();
        file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        let is_cut = bytes.len() > max;
        bytes.truncate(max);
        Ok((bytes, is_cut))
    };
    read().map_err(|source| SavedError::Io {
        doing: "read",
        path: path.to_owned(),
        source,
    })
}

/// Writes a file whole, or not at all.
pub fn write(path: &Path, bytes: &[u8], is_replacing: bool) -> Result<(), SavedError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut named = tempfile::Builder::new();
    // The file gets the usual mode; a temporary file would be for its owner only.
    named.permissions(Permissions::from_mode(0o666));
    let written = named.tempfile_in(folder).and_then(|mut file| {
        file.write_all(bytes)?;
        let kept = match is_replacing {
            true => file.persist(path),
            false => file.persist_noclobber(path),
        };
        Ok(kept?)
    });
    let path = path.to_owned();
    match written {
        Ok(_file) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(SavedError::Present { path })
        }
        Err(source) => Err(SavedError::Io {
            doing: "write",
            path,
            source,
        }),
    }
}
