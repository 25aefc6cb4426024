//! Tests of the folder of stored answers.

use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crawler_process::memory::Account;

fn head(stored_at: UnixMillis) -> Head {
    let json = serde_json::json!({
        "stored_at": stored_at, "status": 200, "version": "HTTP/1.1", "headers": [], "n_received": 0, "has_body": true,
    });
    serde_json::from_value(json).unwrap()
}

fn key(name: &str) -> Digest {
    Digest::of(name.as_bytes())
}

/// Size of the body of each answer; with its head, the file of each is between this and a ninth more.
const BODY: usize = 1_800;

fn write(folder: &CacheFolder, name: &str, now: UnixMillis) {
    let body = Bytes::from(vec![7; BODY]);
    folder.write(key(name), &head(now), &body).unwrap();
}

fn read(folder: &CacheFolder, name: &str, now: UnixMillis) -> Option<Found> {
    let held = Account::default().reserve(0);
    folder.read(key(name), None, u64::MAX, held, now)
}

/// Returns the names of the answers that are there. It reads none of them, because that would count as use.
fn kept<'a>(folder: &CacheFolder, names: &[&'a str]) -> Vec<&'a str> {
    let is_kept = |name: &&str| folder.path.join(entry::file_name(key(name))).exists();
    names.iter().copied().filter(is_kept).collect()
}

fn size(folder: &CacheFolder) -> u64 {
    let all = folder.stored(UNIX_EPOCH).unwrap();
    all.iter().map(|stored| stored.n_bytes).sum()
}

#[test]
fn the_answers_used_least_recently_go_for_new_ones() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = CacheFolder::open(temporary.path(), 9_500).unwrap();
    for (now, name) in (1_000..).step_by(1_000).zip(["a", "b", "c", "d"]) {
        write(&folder, name, now);
    }
    let other = temporary.path().join("notes.txt");
    fs::write(&other, vec![7; 20_000]).unwrap();
    assert!(read(&folder, "a", 5_000).is_some());
    write(&folder, "e", 6_000);
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    assert_eq!(kept(&folder, &names), ["a", "c", "d", "e"]);
    // Another process counts what is there already.
    let folder = CacheFolder::open(temporary.path(), 9_500).unwrap();
    write(&folder, "f", 7_000);
    write(&folder, "g", 8_000);
    assert_eq!(kept(&folder, &names), ["a", "e", "f", "g"]);
    assert!(size(&folder) <= 9_500);
    assert!(other.exists());
}

#[test]
fn two_processes_keep_one_bound() {
    let temporary = tempfile::tempdir().unwrap();
    let open = || CacheFolder::open(temporary.path(), 100_000).unwrap();
    let both = [open(), open()];
    for n in 0..400 {
        write(&both[n % 2], &n.to_string(), n as u64);
        // Since the last scan by one process, the other may have written a sixteenth and one answer.
        let size = size(&both[0]);
        assert!(size <= 100_000 + 100_000 / 16 + 2_000, "{n}: {size}");
        assert!(n < 60 || size >= 70_000, "{n}: {size}");
    }
}

#[test]
fn an_answer_larger_than_the_folder_may_be_removes_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = CacheFolder::open(temporary.path(), 4_500).unwrap();
    write(&folder, "a", 1_000);
    let large = Bytes::from(vec![7; 5_000]);
    folder.write(key("large"), &head(2_000), &large).unwrap();
    assert_eq!(kept(&folder, &["a", "large"]), ["a"]);
}

#[test]
fn answers_are_for_their_user_alone() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("made/here");
    let folder = CacheFolder::open(&path, 10_000).unwrap();
    write(&folder, "a", 1_000);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o700);
    let files: Vec<PathBuf> = fs::read_dir(&path)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    assert_eq!(files, [path.join(entry::file_name(key("a")))]);
    assert_eq!(mode(&files[0]), 0o600);
}

#[test]
fn a_folder_that_others_may_write_to_is_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path();
    for (mode, is_refused) in [(0o770, true), (0o702, true), (0o755, false)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let opened = CacheFolder::open(path, 10_000);
        let why = opened.err().map(|error| error.to_string());
        let is_told = why.is_some_and(|why| why.contains("chmod go-w"));
        assert_eq!(is_told, is_refused, "{mode:o}");
    }
}

#[test]
fn files_that_were_left_unfinished_go_after_an_hour() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = CacheFolder::open(temporary.path(), 10_000).unwrap();
    let left = temporary.path().join(".answer-x.part");
    let file = File::create(&left).unwrap();
    file.set_modified(moment(1_000)).unwrap();
    folder.stored(moment(3_600_000)).unwrap();
    assert!(left.exists());
    folder.stored(moment(3_602_000)).unwrap();
    assert!(!left.exists());
}

#[test]
fn a_torn_file_is_no_answer_and_goes() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = CacheFolder::open(temporary.path(), 10_000).unwrap();
    write(&folder, "a", 1_000);
    let path = temporary.path().join(entry::file_name(key("a")));
    for content in ["", "crawler answer 0", "<html>"] {
        fs::write(&path, content).unwrap();
        assert!(read(&folder, "a", 2_000).is_none());
        assert!(!path.exists(), "{content}");
    }
    // What is no file is no answer either, and stays.
    fs::create_dir(&path).unwrap();
    assert!(read(&folder, "a", 2_000).is_none());
    assert!(path.exists());
}

#[test]
fn an_answer_is_stored_and_counted_while_another_thread_scans() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = CacheFolder::open(temporary.path(), 1 << 20).unwrap();
    write(&folder, "a", 1_000);
    let scan = folder.usage.lock().unwrap();
    // It does not wait for the scan.
    write(&folder, "b", 1_000);
    drop(scan);
    write(&folder, "c", 1_000);
    assert_eq!(kept(&folder, &["a", "b", "c"]), ["a", "b", "c"]);
    let counted = folder.usage.lock().unwrap().unwrap().n_bytes;
    assert_eq!(counted, size(&folder));
}
