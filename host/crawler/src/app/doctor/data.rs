//! The data root, and the clock of whoever keeps it.

use std::fs::{self, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use tempfile::NamedTempFile;

use super::cluster::{self, Cluster};
use crate::app::data_root;
use crate::cli::doctor::{Finding, Verdict};
use crate::cli::place::ClusterPlace;
use crawler_data::{DataError, DataPlace, PROBES};
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
/// Number of times that a file is made in a folder which another check removes at the same moment.
const TRIES: usize = 100;
/// Folders of a data root that have to be in one file system: files are moved between them.
const FOLDERS: [&str; 5] = ["files", "frontiers", "items", "plugins", "store"];

/// Checks that the data root can be used, and that it is that of the cluster. In a folder that exists, a file and objects
/// below `probe/` are written and removed; so are objects in a bucket.
pub(super) async fn check(place: &ClusterPlace) -> Finding {
    let (found, is_root) = match place.data.parse::<DataPlace>() {
        Ok(DataPlace::Folder(folder)) => match blocking(move || check_folder(&folder)).await {
            Ok(checked) => checked,
            Err(error) => return Finding::failed(CHECK, error.to_string(), ADVICE),
        },
        Ok(DataPlace::Bucket(_)) => (Finding::ok(CHECK, "conditional writes are kept"), true),
        Err(error) => return Finding::of_error(CHECK, &error.into()),
    };
    if found.result == Verdict::Failed {
        return found;
    }
    let checked = match is_root && found.result == Verdict::Ok {
        true => probed(place, &found.found).await,
        false => found,
    };
    if checked.result == Verdict::Failed {
        return checked;
    }
    match compared(place, is_root).await {
        Ok(Some(other)) => other,
        Ok(None) => checked,
        Err(error) => Finding::of_error(CHECK, &error),
    }
}

/// Compares the data root with the cluster of etcd. Returns what is wrong, if anything is.
async fn compared(place: &ClusterPlace, is_root: bool) -> anyhow::Result<Option<Finding>> {
    // Without etcd, the records of the cluster are in the data root itself.
    let Some(etcd) = &place.etcd else {
        return Ok(None);
    };
    let of_root = match is_root {
        true => {
            let data = data_root::open(&place.data, &place.config.data)?;
            data.cluster().await?
        }
        false => None,
    };
    // The check of the store tells why it cannot be asked.
    let cluster = cluster::look(etcd).await.ok();
    Ok(of_clusters(
        &place.data,
        of_root.as_deref(),
        cluster.as_ref(),
    ))
}

/// Returns what is wrong with a data root of one cluster and a store of another. A store that is not known does not answer.
fn of_clusters(root: &str, of_root: Option<&str>, store: Option<&Cluster>) -> Option<Finding> {
    const OTHER: &str =
        "name the etcd of this data root with --etcd, or the data root of this etcd with --data";
    let Some(store) = store else {
        let found = format!(
            "{root} is no data root yet, and etcd does not tell if its cluster has one elsewhere"
        );
        let advice = "look at the check of the store";
        return of_root
            .is_none()
            .then(|| Finding::warning(CHECK, found, advice));
    };
    match (of_root, &store.id) {
        (None, None) => None,
        (Some(found), Some(id)) if found == id => None,
        (Some(found), Some(id)) => {
            let found = format!("{root} belongs to cluster {found}, and etcd to cluster {id}");
            Some(Finding::failed(CHECK, found, OTHER))
        }
        (Some(found), None) => {
            let found = format!("{root} belongs to cluster {found}, and etcd has no cluster yet");
            Some(Finding::failed(CHECK, found, OTHER))
        }
        (None, Some(id)) if store.is_used => {
            let found = format!("{root} is no data root yet, and cluster {id} has one elsewhere");
            let advice = "mount the data root of the other nodes here, or name it with --data";
            Some(Finding::failed(CHECK, found, advice))
        }
        (None, Some(id)) => {
            let found = format!("{root} is no data root yet; cluster {id} may have one elsewhere");
            let advice = "if it has, mount it here or name it with --data; otherwise the first start makes one";
            Some(Finding::warning(CHECK, found, advice))
        }
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
    match locks_in(folder) {
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
    let space = match rustix::fs::statvfs(folder) {
        Ok(found) => {
            let free = found.f_bavail.saturating_mul(found.f_frsize);
            of_space(&name.to_string(), free)
        }
        Err(error) => {
            let found = format!("cannot ask for the free space of {name}: {error}");
            Finding::warning(CHECK, found, "look at its file system")
        }
    };
    (space, folder.join("items").is_dir())
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

/// Returns true if a lock of a file in this folder keeps others out. The file is where the remains of a check that was
/// killed are swept.
fn locks_in(folder: &Path) -> io::Result<bool> {
    let probes = folder.join(PROBES);
    for _ in 1..TRIES {
        match try_locks_in(&probes) {
            // Another check has made the folder, and has removed it meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            tried => return tried,
        }
    }
    try_locks_in(&probes)
}

/// Makes a file in the folder of probes, and returns true if its lock keeps others out. A folder that was not there is
/// removed again.
fn try_locks_in(probes: &Path) -> io::Result<bool> {
    let is_new = match fs::create_dir(probes) {
        Ok(()) => true,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
        Err(error) => return Err(error),
    };
    let locks = NamedTempFile::new_in(probes).and_then(|file| {
        let locks = locks(&file)?;
        file.close()?;
        Ok(locks)
    });
    if is_new {
        // A node that starts probes there too, and another check may have removed the folder.
        let is_fine = |kind| matches!(kind, ErrorKind::DirectoryNotEmpty | ErrorKind::NotFound);
        match fs::remove_dir(probes) {
            Err(error) if !is_fine(error.kind()) => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    locks
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

    #[test]
    fn a_folder_is_checked_and_stays_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let (finding, is_root) = check_folder(folder.path());
        assert_ne!(finding.result, Verdict::Failed, "{finding:?}");
        assert!(!is_root);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let skew = skew(folder.path()).unwrap().unwrap();
        assert_eq!(of_skew(skew).result, Verdict::Ok);
        let (missing, _) = check_folder(&folder.path().join("x"));
        assert_eq!(missing.result, Verdict::Ok);
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let (finding, _) = check_folder(&file);
        assert_eq!(finding.result, Verdict::Failed, "{finding:?}");
    }

    #[test]
    fn probes_of_a_node_that_starts_stay() {
        let folder = tempfile::tempdir().unwrap();
        let probe = folder.path().join("probe/0123");
        fs::create_dir(probe.parent().unwrap()).unwrap();
        fs::write(&probe, "").unwrap();
        assert!(locks_in(folder.path()).unwrap());
        let left = fs::read_dir(probe.parent().unwrap()).unwrap();
        assert_eq!(
            left.map(|entry| entry.unwrap().path()).collect::<Vec<_>>(),
            [probe]
        );
    }

    #[test]
    fn several_checks_at_once_do_not_disturb_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let check = || {
            for _ in 0..200 {
                assert!(locks_in(folder.path()).unwrap());
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(check);
            }
        });
    }

    #[test]
    fn a_root_has_to_be_that_of_the_cluster() {
        let cluster = |id: Option<&str>, is_used| Cluster {
            id: id.map(str::to_owned),
            is_used,
            ..Cluster::default()
        };
        let [none, unused, used] = [
            cluster(None, false),
            cluster(Some("a"), false),
            cluster(Some("a"), true),
        ];
        for (of_root, store, expected) in [
            (None, Some(&none), None),
            (Some("a"), Some(&used), None),
            (Some("a"), None, None),
            (None, Some(&used), Some(Verdict::Failed)),
            (Some("b"), Some(&used), Some(Verdict::Failed)),
            (Some("b"), Some(&none), Some(Verdict::Failed)),
            (None, Some(&unused), Some(Verdict::Warning)),
            (None, None, Some(Verdict::Warning)),
        ] {
            let found = of_clusters("/mnt/x", of_root, store);
            let result = found.as_ref().map(|finding| finding.result);
            assert_eq!(result, expected, "{of_root:?} {store:?}: {found:?}");
        }
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
