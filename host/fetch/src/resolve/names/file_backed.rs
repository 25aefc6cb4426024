//! A value that is built from files of the system, and built anew once one of them has changed.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time between two checks of the files.
const CHECK_AFTER: Duration = Duration::from_secs(5);

/// A value built from files; see the module.
pub(super) struct FileBacked<T> {
    files: Vec<PathBuf>,
    build: Build<T>,
    check_after: Duration,
    built: Mutex<Built<T>>,
}

type Build<T> = Box<dyn Fn() -> Result<T, String> + Send + Sync>;

struct Built<T> {
    value: T,
    stamps: Vec<Option<Stamp>>,
    checked_at: Instant,
}

/// Identity and time of the last change of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    seconds: i64,
    nanoseconds: i64,
}

impl<T: Clone> FileBacked<T> {
    /// Builds the value for the first time; an error is that of `build`.
    pub(super) fn new(files: &[&str], build: Build<T>) -> Result<Self, String> {
        let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
        let built = Built {
            // The stamps are read first, so that a change during `build` is noticed.
            stamps: stamps(&files),
            value: build()?,
            checked_at: Instant::now(),
        };
        Ok(Self {
            files,
            build,
            check_after: CHECK_AFTER,
            built: Mutex::new(built),
        })
    }

    /// Returns the present value. If it cannot be built anew, the old one stays, and a warning is logged.
    pub(super) fn get(&self) -> T {
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        if built.checked_at.elapsed() >= self.check_after {
            built.checked_at = Instant::now();
            let stamps = stamps(&self.files);
            if stamps != built.stamps {
                built.stamps = stamps;
                match (self.build)() {
                    Ok(value) => built.value = value,
                    Err(why) => tracing::warn!(
                        why,
                        files = ?self.files,
                        "files of the system have changed and cannot be read; the old ones go on counting"
                    ),
                }
            }
        }
        built.value.clone()
    }
}

fn stamps(files: &[PathBuf]) -> Vec<Option<Stamp>> {
    let stamp = |file: &PathBuf| {
        let known = fs::metadata(file).ok()?;
        Some(Stamp {
            inode: known.ino(),
            seconds: known.mtime(),
            nanoseconds: known.mtime_nsec(),
        })
    };
    files.iter().map(stamp).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_file_is_read_anew_and_one_that_cannot_be_read_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("conf");
        let replace = |text: &str| {
            let new = folder.path().join("new");
            fs::write(&new, text).unwrap();
            fs::rename(new, &file).unwrap();
        };
        replace("one");
        let read = file.clone();
        let build = move || fs::read_to_string(&read).map_err(|error| error.to_string());
        let mut value = FileBacked::new(&[file.to_str().unwrap()], Box::new(build)).unwrap();
        replace("two");
        assert_eq!(value.get(), "one", "it was looked at a moment ago");
        value.check_after = Duration::ZERO;
        assert_eq!(value.get(), "two");
        fs::remove_file(&file).unwrap();
        assert_eq!(value.get(), "two");
        replace("three");
        assert_eq!(value.get(), "three");
    }

    #[test]
    fn what_cannot_be_made_at_first_is_an_error() {
        let build = || Err::<(), _>("no name server".to_owned());
        let built = FileBacked::new(&["/nowhere"], Box::new(build));
        assert_eq!(built.err().as_deref(), Some("no name server"));
    }
}
