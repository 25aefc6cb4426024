//! Faults of the data root under a running `crawler up`.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crawler_tests::closure::{Closure, Plan, Visit};
use crawler_tests::process::Home;
use crawler_tests::tmpfs::Tmpfs;
use crawler_tests::up::Up;
use crawler_tests::{PATIENCE, guests};

/// Deadline of a crawl with a fault in it, on a busy machine.
const DEADLINE: Duration = Duration::from_secs(240);

/// Opens a closure with more pages than may be in flight at once, so that the crawl cannot end during a fault.
pub(crate) fn closure() -> Closure {
    Closure::open(Plan {
        n_pages: 1_200,
        seed: 11,
        max_depth: 40,
        pace: Duration::from_millis(25),
    })
}

/// Starts a crawl and waits until it has done some of its work.
pub(crate) fn begun(home: &Home, closure: &Closure) -> Up {
    let up = Up::start(home, &[]);
    up.ok([
        "plugin",
        "push",
        &guests::guest("puppet").display().to_string(),
    ]);
    let add = ["resource", "add", "web", "--plugin=puppet"].map(str::to_owned);
    up.ok(add.into_iter().chain(closure.arguments()));
    assert!(
        closure.wait_for(150, PATIENCE),
        "{} requests",
        closure.n_asked()
    );
    up
}

/// Waits until the resource waits for one of these reasons.
#[track_caller]
pub(crate) fn waits(up: &Up, conditions: &[&str]) {
    let seen = up.wait_for("web", "named state", DEADLINE, |seen| {
        let reason = seen["reason"].as_str().unwrap_or_default();
        seen["phase"] == "Pending" && conditions.iter().any(|c| reason.starts_with(c))
    });
    println!("waits: {}", seen["reason"]);
}

/// Checks that the run comes to its end by itself, and that every item is there once.
#[track_caller]
pub(crate) fn goes_on(up: Up, closure: &Closure) {
    let web = up.finished("web", DEADLINE);
    let mut items = Visit::read(&up.ok(["items", "web"]));
    let n_items = items.len();
    items.sort();
    items.dedup();
    assert_eq!(n_items, items.len(), "items are there twice");
    let known = closure.items();
    let missing: Vec<&Visit> = known
        .iter()
        .filter(|item| items.binary_search(item).is_err())
        .collect();
    assert!(
        missing.is_empty(),
        "{} items are missing: {:?}",
        missing.len(),
        missing.first()
    );
    assert_eq!(n_items, known.len());
    assert_eq!(
        (&web["run"], &web["counts"]["dead"]),
        (&1.into(), &0.into()),
        "{web}"
    );
    up.stop();
}

#[test]
fn a_root_that_is_full_is_waited_for() {
    let home = Home::new();
    let Some(_tmpfs) = Tmpfs::mount(&home.path().join("data"), "48m") else {
        return;
    };
    let closure = closure();
    let up = begun(&home, &closure);
    let ballast = home.path().join("data/ballast");
    fill(&ballast);
    waits(&up, &["StorageUnavailable"]);
    fs::remove_file(ballast).unwrap();
    goes_on(up, &closure);
}

/// Writes a file until nothing more fits.
fn fill(ballast: &Path) {
    use std::io::Write as _;
    let mut file = fs::File::create(ballast).unwrap();
    for size in [1 << 20, 4 << 10, 1] {
        while file.write(&vec![b'x'; size]).is_ok_and(|n| n > 0) {}
    }
}

#[test]
fn frontiers_that_are_read_only_are_waited_for() {
    let home = Home::new();
    let Some(tmpfs) = Tmpfs::mount(&home.path().join("data/frontiers"), "64m") else {
        return;
    };
    let closure = closure();
    let up = begun(&home, &closure);
    tmpfs.remount("ro");
    waits(&up, &["StorageUnavailable"]);
    tmpfs.remount("rw");
    goes_on(up, &closure);
}

#[test]
fn a_root_that_is_read_only_from_the_start_is_refused_in_words() {
    let home = Home::new();
    let Some(tmpfs) = Tmpfs::mount(&home.path().join("data"), "64m") else {
        return;
    };
    let closure = closure();
    let mut up = begun(&home, &closure);
    up.process.kill();
    closure.begin_life();
    tmpfs.remount("ro");
    let ended = Up::try_start(&home, &[])
        .err()
        .expect("it cannot keep anything");
    assert_ne!(ended.code, Some(0));
    assert!(ended.stderr.contains("data"), "{}", ended.stderr);
    assert!(ended.stderr.contains("ead-only"), "{}", ended.stderr);
    tmpfs.remount("rw");
    goes_on(Up::start(&home, &[]), &closure);
}

#[test]
fn frontiers_that_are_moved_away_are_waited_for() {
    let home = Home::new();
    let closure = closure();
    let up = begun(&home, &closure);
    let (here, away) = (home.path().join("data"), home.path().join("away"));
    fs::rename(&here, &away).unwrap();
    waits(&up, &["StorageUnavailable", "FrontierMissing"]);
    assert!(!here.exists(), "a new root was made where one was lost");
    fs::rename(&away, &here).unwrap();
    goes_on(up, &closure);
}

#[test]
fn a_damaged_frontier_is_named_and_goes_on_when_it_is_whole_again() {
    let home = Home::new();
    let closure = closure();
    let mut up = begun(&home, &closure);
    let id = up.resource("web")["spec"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    up.process.kill();
    closure.begin_life();
    let log = home.path().join("data/frontiers").join(id).join("0/wal");
    let mut files: Vec<_> = fs::read_dir(&log)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    files.retain(|file| {
        file.extension().is_some_and(|e| e == "sst") && fs::metadata(file).unwrap().len() > 0
    });
    files.sort();
    let last = files.last().expect("something was written").clone();
    let whole = fs::read(&last).unwrap();
    fs::write(&last, &whole[..whole.len() / 2]).unwrap();
    let up = Up::start(&home, &[]);
    waits(&up, &["FrontierDamaged"]);
    fs::write(&last, &whole).unwrap();
    goes_on(up, &closure);
}

#[test]
fn a_frontier_that_is_gone_is_missing_and_never_a_new_crawl() {
    let home = Home::new();
    let closure = closure();
    let mut up = begun(&home, &closure);
    up.process.kill();
    closure.begin_life();
    let n_asked = closure.n_asked();
    let (here, away) = (home.path().join("data/frontiers"), home.path().join("away"));
    fs::rename(&here, &away).unwrap();
    let up = Up::start(&home, &[]);
    waits(&up, &["FrontierMissing"]);
    assert_eq!(closure.n_asked(), n_asked, "it was begun anew");
    assert!(has_database(&away), "this is how one is told");
    assert!(
        !has_database(&here),
        "a database was made where one is missing"
    );
    if here.exists() {
        fs::remove_dir_all(&here).unwrap();
    }
    fs::rename(&away, &here).unwrap();
    goes_on(up, &closure);
}

/// Returns true if there is a manifest anywhere below a folder, which need not exist.
fn has_database(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut paths = paths.filter(|path| !path.is_symlink());
    paths.any(|path| has_database(&path) || path.extension().is_some_and(|e| e == "manifest"))
}
