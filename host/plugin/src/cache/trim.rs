//! Keeps the folder of compiled plugins within its bound.
//!
//! The time of a file's last use is its time of modification.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, utimensat};

/// Name of the file with the key of the folder, which stays.
pub(super) const KEY_FILE: &str = "key";

/// Age after which a file was cut off: a file that is still being written is never older.
const CUT_OFF_AGE: Duration = Duration::from_secs(60 * 60);

struct Entry {
    path: PathBuf,
    used_at: SystemTime,
    n_bytes: u64,
}

/// Records that a file is used at this moment.
pub(super) fn note_use(path: &Path) -> io::Result<()> {
    let at = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
    let times = Timestamps {
        last_access: at(UTIME_OMIT),
        last_modification: at(UTIME_NOW),
    };
    Ok(utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Removes files until no more than `max_bytes` are left, those first that were not used for longest.
pub(super) fn remove_least_used(folder: &Path, max_bytes: u64) -> io::Result<()> {
    let mut entries = entries(folder)?;
    entries.sort_by_key(|entry| entry.used_at);
    let mut n_bytes: u64 = entries.iter().map(|entry| entry.n_bytes).sum();
    for entry in entries {
        if n_bytes <= max_bytes {
            break;
        }
        remove(&entry.path)?;
        n_bytes -= entry.n_bytes;
        tracing::info!(path = %entry.path.display(), "removed compiled code to stay below --compiled-size");
    }
    Ok(())
}

/// Removes files whose writers were killed.
pub(super) fn remove_cut_off(folder: &Path) -> io::Result<()> {
    // The file system's own clock gives the present time.
    let now = tempfile::tempfile_in(folder)?.metadata()?.modified()?;
    for entry in entries(folder)? {
        let name = entry.path.file_name().and_then(|name| name.to_str());
        let is_complete = name.is_none_or(|name| !name.starts_with(".tmp"));
        let age = now.duration_since(entry.used_at).unwrap_or_default();
        if !is_complete && age > CUT_OFF_AGE {
            remove(&entry.path)?;
        }
    }
    Ok(())
}

/// Returns all files except the key.
fn entries(folder: &Path) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let metadata = match fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_file() => metadata,
            Ok(_) => continue,
            // Another process removed it meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if path.file_name().is_some_and(|name| name != KEY_FILE) {
            entries.push(Entry {
                path,
                used_at: metadata.modified()?,
                n_bytes: metadata.len(),
            });
        }
    }
    Ok(entries)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Cache;
    use super::*;
    use crawler_model::id::Digest;

    /// Number of bytes that has room for three frames of 100 bytes with their MACs.
    const MAX_BYTES: u64 = 400;

    fn open(folder: &Path) -> Cache {
        Cache::open(folder, &wasmtime::Engine::default(), MAX_BYTES).unwrap()
    }

    fn age(path: &Path, seconds: u64) {
        let file = fs::File::open(path).unwrap();
        let now = file.metadata().unwrap().modified().unwrap();
        file.set_modified(now - Duration::from_secs(seconds))
            .unwrap();
    }

    #[test]
    fn the_least_used_code_goes_when_there_is_too_much() {
        let folder = tempfile::tempdir().unwrap();
        let cache = open(folder.path());
        let plugins = [b"a", b"b", b"c", b"d"].map(|name| Digest::of(name));
        for (n, plugin) in plugins[..3].iter().enumerate() {
            cache.put(*plugin, &[0; 100]);
            age(
                &folder.path().join(cache.name(*plugin)),
                500 - 100 * n as u64,
            );
        }
        // The oldest frame is used here, so the next one is the oldest.
        assert!(cache.get(plugins[0]).is_some());
        cache.put(plugins[3], &[0; 100]);
        let is_kept = plugins.map(|plugin| cache.get(plugin).is_some());
        assert_eq!(is_kept, [true, false, true, true]);
        assert!(folder.path().join(KEY_FILE).exists());
    }

    #[test]
    fn code_beyond_a_lower_bound_goes_at_the_next_start() {
        let folder = tempfile::tempdir().unwrap();
        let [old, young] = [b"a", b"b"].map(|name| Digest::of(name));
        let cache = open(folder.path());
        for plugin in [old, young] {
            cache.put(plugin, &[0; 100]);
        }
        age(&folder.path().join(cache.name(old)), 100);
        let cache = Cache::open(folder.path(), &wasmtime::Engine::default(), 200).unwrap();
        assert!(cache.get(old).is_none() && cache.get(young).is_some());
    }

    #[test]
    fn what_a_kill_left_of_compiled_code_goes_after_an_hour() {
        let folder = tempfile::tempdir().unwrap();
        drop(open(folder.path()));
        let [old, young] = [".tmpOld", ".tmpNew"].map(|name| folder.path().join(name));
        for path in [&old, &young] {
            fs::write(path, "").unwrap();
        }
        age(&old, 3_700);
        age(&young, 3_500);
        drop(open(folder.path()));
        assert!(!old.exists() && young.exists());
    }
}
