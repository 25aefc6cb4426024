//! The data root, and the clock of whoever keeps it.

use std::fs::TryLockError;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use tempfile::NamedTempFile;

use crate::app::data_root;
use crate::cli::doctor::Finding;
use crate::cli::place::ClusterPlace;
use crawler_data::{DataError, DataPlace};
use crawler_process::clock::{Clock as _, SystemClock};
use crawler_process::task::blocking;

const CHECK: &str = "data root";
const CLOCK: &str = "clock";

/// Free space below which crawls end soon.
const LITTLE_SPACE: u64 = 1 << 30;
/// Free space below which crawls of many pages do not fit.
const SOME_SPACE: u64 = 10 << 30;
/// Difference of clocks from which ages of files are wrong.
const SKEW_MAX: Duration = Duration::from_secs(30);
/// Folders of a data root that have to be in one file system: files are moved between them.
const FOLDERS: [&str; 5] = ["files", "frontiers", "items", "plugins", "store"];

/// Checks that the data root can be used. In a folder, a file without a name is written; in a bucket, and in a folder
/// that is a data root already, objects below `probe/`, which are removed.
pub(super) async fn check(place: &ClusterPlace) -> Finding {
    let folder = match place.data.parse::<DataPlace>() {
        Ok(DataPlace::Folder(folder)) => folder,
        Ok(DataPlace::Bucket(_)) => return probed(place, "conditional writes are kept").await,
        Err(error) => return Finding::of_error(CHECK, &error.into()),
    };
    match blocking(move || check_folder(&folder)).await {
        Ok((finding, true)) if finding.advice.is_empty() => probed(place, &finding.found).await,
        Ok((finding, _)) => finding,
        Err(error) => Finding::failed(CHECK, error.to_string(), ADVICE),
    }
}

const ADVICE: &str = "name a folder that this user can write to with --data";

/// Lets several writers write one object at the same time, as a node does when it starts.
async fn probed(place: &ClusterPlace, found: &str) -> Finding {
    let probe = async {
        let data = data_root::open(&place.data, &place.config.data)?;
        anyhow::Ok(data.probe().await?)
    };
    match probe.await {
        Ok(()) => Finding::ok(CHECK, found),
        // The check of the clock tells that.
        Err(error) if is_of_clock(&error) => Finding::ok(CHECK, found),
        Err(error) => Finding::of_error(CHECK, &error),
    }
}

fn is_of_clock(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<DataError>();
    matches!(error, Some(DataError::Clock { .. }))
}

/// Checks a folder, and returns whether it is a data root already.
fn check_folder(folder: &Path) -> (Finding, bool) {
    let name = folder.display();
    if !folder.exists() {
        let found = format!("{name} does not exist; the first start makes it");
        return (Finding::ok(CHECK, found), false);
    }
    let tried = NamedTempFile::new_in(folder).and_then(|file| locks(&file));
    match tried {
        Ok(true) => {}
        Ok(false) => {
            let found = format!("two processes can lock one file in {name} at the same time");
            let advice = "mount its file system with locks";
            return (Finding::failed(CHECK, found, advice), false);
        }
        Err(error) => {
            let found = format!("cannot write to {name}: {error}");
            return (Finding::failed(CHECK, found, ADVICE), false);
        }
    }
    if let Some(other) = other_file_system(folder) {
        let found = format!("{name}/{other} is in another file system");
        let advice = "keep the whole data root in one: files are moved within it";
        return (Finding::failed(CHECK, found, advice), false);
    }
    let free = match rustix::fs::statvfs(folder) {
        Ok(found) => found.f_bavail.saturating_mul(found.f_frsize),
        Err(error) => {
            let found = format!("cannot ask for the free space of {name}: {error}");
            return (
                Finding::warning(CHECK, found, "look at its file system"),
                false,
            );
        }
    };
    (
        of_space(&name.to_string(), free),
        folder.join("items").is_dir(),
    )
}

fn of_space(name: &str, free: u64) -> Finding {
    let found = format!(
        "{name} can be written to, and has {} GB free",
        free / 1_000_000_000
    );
    match free {
        free if free < LITTLE_SPACE => Finding::failed(CHECK, found, "free some space"),
        free if free < SOME_SPACE => Finding::warning(CHECK, found, "free some space"),
        _ => Finding::ok(CHECK, found),
    }
}

/// Returns true if a lock of this file keeps others out.
fn locks(file: &NamedTempFile) -> io::Result<bool> {
    let other = file.reopen()?;
    file.as_file().lock()?;
    match other.try_lock() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Returns a folder of the data root that is in another file system.
fn other_file_system(root: &Path) -> Option<&'static str> {
    let device = |path: &Path| path.metadata().ok().map(|found| found.dev());
    let own = device(root);
    let is_other = |name: &&str| device(&root.join(name)).is_some_and(|found| Some(found) != own);
    FOLDERS.into_iter().find(is_other)
}

/// Compares the clock of this machine with that of the data root: of the bucket, or of the machine that has the folder.
pub(super) async fn check_clock(place: &ClusterPlace) -> Finding {
    match place.data.parse::<DataPlace>() {
        Ok(DataPlace::Folder(folder)) => {
            let skew = blocking(move || skew(&folder)).await;
            match skew.unwrap_or_else(|error| Err(error.into())) {
                Ok(Some(skew)) => of_skew(skew),
                Ok(None) => Finding::ok(CLOCK, "there is no data root to compare it with yet"),
                Err(error) => {
                    let found = format!("cannot compare it with the data root's: {error}");
                    Finding::warning(CLOCK, found, "look at the check of the data root")
                }
            }
        }
        Ok(DataPlace::Bucket(_)) => of_bucket(place).await,
        Err(_) => Finding::warning(
            CLOCK,
            "cannot compare it with the data root's",
            "look at the check of the data root",
        ),
    }
}

/// Compares the clock with that of a bucket, which its probe tells.
async fn of_bucket(place: &ClusterPlace) -> Finding {
    let probe = async {
        let data = data_root::open(&place.data, &place.config.data)?;
        anyhow::Ok(data.probe().await?)
    };
    match probe.await {
        Ok(()) => Finding::ok(CLOCK, "it is that of the bucket"),
        Err(error) if is_of_clock(&error) => Finding::of_error(CLOCK, &error),
        Err(_) => Finding::warning(
            CLOCK,
            "cannot compare it with the bucket's",
            "look at the check of the data root",
        ),
    }
}

/// Returns by how much the times of files in this folder differ from the clock; `None` if there is no such folder.
fn skew(folder: &Path) -> io::Result<Option<Duration>> {
    if !folder.exists() {
        return Ok(None);
    }
    let file = tempfile::tempfile_in(folder)?;
    let dated = file.metadata()?.modified()?;
    let now = SystemTime::UNIX_EPOCH + Duration::from_nanos(SystemClock.unix_nanos());
    let skew = now.duration_since(dated);
    Ok(Some(skew.unwrap_or_else(|ahead| ahead.duration())))
}

fn of_skew(skew: Duration) -> Finding {
    match skew < SKEW_MAX {
        true => Finding::ok(CLOCK, "it is that of the data root"),
        false => Finding::failed(
            CLOCK,
            format!(
                "it differs by {} s from that of the data root",
                skew.as_secs()
            ),
            "let a time service set it, such as chrony",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::Verdict;

    #[test]
    fn a_folder_is_checked_and_stays_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let (finding, is_root) = check_folder(folder.path());
        assert_ne!(finding.result, Verdict::Failed, "{finding:?}");
        assert!(!is_root);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let skew = skew(folder.path()).unwrap().unwrap();
        assert_eq!(of_skew(skew).result, Verdict::Ok);
        let (missing, _) = check_folder(&folder.path().join("x"));
        assert_eq!(missing.result, Verdict::Ok);
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let (finding, _) = check_folder(&file);
        assert_eq!(finding.result, Verdict::Failed, "{finding:?}");
    }

    #[test]
    fn space_and_clocks_have_bounds() {
        let of = |free| of_space("x", free).result;
        assert_eq!(of(LITTLE_SPACE - 1), Verdict::Failed);
        assert_eq!(of(LITTLE_SPACE), Verdict::Warning);
        assert_eq!(of(SOME_SPACE), Verdict::Ok);
        assert_eq!(of_skew(SKEW_MAX).result, Verdict::Failed);
    }
}
