//! Lock that lets only one process use a folder: an exclusive lock on a file that names its holder. The kernel
//! releases it when the holder ends, however it ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;

use super::StoreError;

/// File that is locked. It has the id of the process that has used the folder last.
const FILE: &str = "lock";

/// Creates the folder if missing and locks it for as long as the returned file is open.
pub(super) fn acquire(folder: &Path) -> Result<File, StoreError> {
    let unusable = |source| StoreError::Folder {
        folder: folder.display().to_string(),
        source,
    };
    let mut file = open(folder).map_err(unusable)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(StoreError::Locked {
                folder: folder.display().to_string(),
                holder: read_holder(&mut file),
            });
        }
        Err(TryLockError::Error(source)) => return Err(unusable(source)),
    }
    write_holder(&mut file).map_err(unusable)?;
    Ok(file)
}

fn open(folder: &Path) -> io::Result<File> {
    std::fs::create_dir_all(folder)?;
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(folder.join(FILE))
}

fn write_holder(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

/// Returns the process that has used the folder last; `None` if there was none, or if it has not written its id yet. It
/// may have ended. The lock is not touched.
pub(super) fn last_holder(folder: &Path) -> io::Result<Option<u32>> {
    match std::fs::read_to_string(folder.join(FILE)) {
        Ok(text) => Ok(text.trim().parse().ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the process id in the file, or "unknown": the holder may not have written it yet.
fn read_holder(file: &mut File) -> String {
    let mut text = String::new();
    match file.take(32).read_to_string(&mut text) {
        Ok(_) if !text.trim().is_empty() => text.trim().to_owned(),
        Ok(_) | Err(_) => "unknown".to_owned(),
    }
}
