//! Tests of files of the log that follow each other.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

const HOUR_MS: u64 = 60 * 60 * 1_000;

/// Folder that goes with the test.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder can be made"))
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn path(&self) -> PathBuf {
        self.join("log")
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.join(name)).unwrap_or_default()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).expect("it is there");
        let names = entries.map(|entry| entry.expect("it is read").file_name());
        let mut names: Vec<_> = names.map(|name| name.display().to_string()).collect();
        names.sort();
        names
    }
}

/// Clock that a test sets.
#[derive(Default)]
struct HandClock(AtomicU64);

impl Clock for HandClock {
    fn unix_nanos(&self) -> u64 {
        self.0.load(Ordering::Relaxed) * 1_000_000
    }
}

#[derive(Clone, Default)]
struct Stderr(Arc<Mutex<Vec<u8>>>);

impl Stderr {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("no test panics with it").clone()).expect("text")
    }
}

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no test panics with it").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn settings(folder: &Folder, size: u64) -> FileSettings {
    FileSettings {
        path: folder.path(),
        size,
        age: Duration::from_millis(HOUR_MS),
        files: 3,
    }
}

/// Opens a file of the log, with a clock at the present time.
fn open_log(settings: FileSettings) -> (RotatingFile, Arc<HandClock>, Stderr) {
    let (clock, stderr) = (Arc::new(HandClock::default()), Stderr::default());
    let now = crate::clock::SystemClock.unix_millis();
    clock.0.store(now, Ordering::Relaxed);
    let file = RotatingFile::open(settings, clock.clone(), Box::new(stderr.clone()));
    (file.expect("it opens"), clock, stderr)
}

#[test]
fn the_oldest_file_goes_when_there_are_too_many() {
    let folder = Folder::new();
    let (mut log, _, stderr) = open_log(settings(&folder, 8));
    log.write(b"one\ntwo\nthree\nfour\nfive\nsix\nseven\n");
    assert_eq!(folder.names(), ["log", "log.1", "log.2"]);
    assert_eq!(folder.text("log.2"), "five\n");
    assert_eq!(folder.text("log.1"), "six\n");
    assert_eq!(folder.text("log"), "seven\n");
    log.write(b"eight\n");
    assert_eq!(folder.text("log"), "eight\n");
    assert_eq!(stderr.text(), "");
}

#[test]
fn old_files_move_for_a_newer_one_only() {
    let folder = Folder::new();
    let (mut log, _, _) = open_log(settings(&folder, 8));
    log.write(b"one\ntwo\nthree\n");
    // As after a rotation that could not make the next file.
    fs::remove_file(folder.path()).unwrap();
    log.write(b"four\n");
    assert_eq!(folder.text("log"), "four\n");
    assert_eq!(folder.text("log.1"), "one\ntwo\n");
    assert_eq!(folder.names(), ["log", "log.1"]);
}

#[test]
fn lines_are_kept_whole_and_in_order_over_files() {
    let folder = Folder::new();
    let (mut log, _, _) = open_log(FileSettings {
        files: 1_000,
        ..settings(&folder, 100)
    });
    let lines: Vec<String> = (0..500).map(|n| format!("line {n}\n")).collect();
    // They come in pieces of several sizes.
    let mut rest = &lines[..];
    for n in (1..30).cycle() {
        let (now, later) = rest.split_at(n.min(rest.len()));
        log.write(now.concat().as_bytes());
        rest = later;
        if rest.is_empty() {
            break;
        }
    }
    let n_old = folder.names().len() - 1;
    assert!(n_old > 10, "{n_old}");
    let old = (1..=n_old).rev().map(|n| folder.text(&format!("log.{n}")));
    let mut read: String = old.collect();
    read.push_str(&folder.text("log"));
    assert_eq!(read, lines.concat());
    for name in folder.names() {
        let text = folder.text(&name);
        assert!(text.len() <= 100 && text.ends_with('\n'), "{name}: {text}");
    }
}

#[test]
fn a_line_that_is_longer_than_a_file_has_one_of_its_own() {
    let folder = Folder::new();
    let (mut log, _, _) = open_log(settings(&folder, 8));
    log.write(b"a\na long line\nb\n");
    assert_eq!(folder.text("log.2"), "a\n");
    assert_eq!(folder.text("log.1"), "a long line\n");
    assert_eq!(folder.text("log"), "b\n");
}

#[test]
fn a_file_is_followed_by_the_next_at_its_age() {
    let folder = Folder::new();
    let (mut log, clock, _) = open_log(settings(&folder, 1_000));
    // The age counts from the first line on.
    clock.0.fetch_add(10 * HOUR_MS, Ordering::Relaxed);
    log.write(b"one\n");
    clock.0.fetch_add(HOUR_MS - 60_000, Ordering::Relaxed);
    log.write(b"two\n");
    assert_eq!(folder.names(), ["log"]);
    clock.0.fetch_add(120_000, Ordering::Relaxed);
    log.write(b"three\n");
    assert_eq!(folder.text("log.1"), "one\ntwo\n");
    assert_eq!(folder.text("log"), "three\n");
}

#[test]
fn lines_of_an_earlier_process_stay_and_a_torn_one_is_ended() {
    let folder = Folder::new();
    fs::write(folder.path(), "one\ntor").unwrap();
    let (mut log, _, _) = open_log(settings(&folder, 12));
    log.write(b"two\n");
    assert_eq!(folder.text("log"), "one\ntor\ntwo\n");
    log.write(b"three\n");
    assert_eq!(folder.text("log.1"), "one\ntor\ntwo\n");
}

#[test]
fn fewer_files_than_before_leave_none_behind() {
    let folder = Folder::new();
    for n in 1..6 {
        fs::write(folder.join(&format!("log.{n}")), format!("{n}")).unwrap();
    }
    let (mut log, _, _) = open_log(settings(&folder, 4));
    log.write(b"one\ntwo\n");
    assert_eq!(folder.names(), ["log", "log.1", "log.2"]);
    assert_eq!(folder.text("log.2"), "1");
}

#[test]
fn a_rotation_that_fails_loses_no_line_and_is_tried_again() {
    let folder = Folder::new();
    let (mut log, clock, stderr) = open_log(settings(&folder, 4));
    // A file does not replace a folder.
    fs::write(folder.join("log.1"), "old\n").unwrap();
    fs::create_dir(folder.join("log.2")).unwrap();
    log.write(b"one\ntwo\nthree\n");
    assert_eq!(folder.text("log"), "one\ntwo\nthree\n");
    clock.0.fetch_add(RETRY_MS, Ordering::Relaxed);
    log.write(b"four\n");
    let told = stderr.text();
    assert!(told.contains(": cannot begin the next file of the log: "));
    assert_eq!(told.lines().count(), 1, "it is told once: {told}");
    fs::remove_dir(folder.join("log.2")).unwrap();
    clock.0.fetch_add(RETRY_MS, Ordering::Relaxed);
    log.write(b"five\n");
    assert_eq!(folder.text("log.2"), "old\n");
    assert_eq!(folder.text("log.1"), "one\ntwo\nthree\nfour\n");
    assert_eq!(folder.text("log"), "five\n");
    assert_eq!(stderr.text(), told);
}

#[test]
fn lines_that_cannot_be_written_go_to_stderr_and_it_is_told_once() {
    let folder = Folder::new();
    let (mut log, _, stderr) = open_log(settings(&folder, 1_000));
    log.write(b"one\n");
    // Writing to this handle fails, as it does on a full disk.
    let whole = std::mem::replace(&mut log.file, File::open(folder.path()).unwrap());
    log.write(b"two\n");
    log.write(b"three\n");
    let told = stderr.text();
    let lines: Vec<&str> = told.lines().collect();
    assert!(
        lines[0].contains(": cannot write the log, its lines come here: "),
        "{told}"
    );
    assert_eq!(lines[1..], ["two", "three"]);
    log.file = whole;
    log.write(b"four\n");
    assert_eq!(folder.text("log"), "one\nfour\n");
    assert!(stderr.text().ends_with(": the log is written again\n"));
}

#[test]
fn what_is_no_file_or_is_used_already_is_refused() {
    let folder = Folder::new();
    let open = |path: PathBuf| {
        let settings = FileSettings {
            path,
            ..settings(&folder, 1_000)
        };
        let clock = Arc::new(HandClock::default());
        RotatingFile::open(settings, clock, Box::new(io::sink()))
    };
    let why = |path: PathBuf| open(path).err().expect("it is refused").to_string();
    assert!(why(folder.join("missing").join("log")).contains("No such file"));
    assert!(why(folder.0.path().to_owned()).contains("Is a directory"));
    assert_eq!(why("/dev/null".into()), "it is not a regular file");
    let _held = open(folder.path()).expect("it opens");
    assert_eq!(why(folder.path()), "another process writes to it");
}
