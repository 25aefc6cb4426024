//! Archives of crawls: a crawl of an archive gives the items of the crawl that made it, an independent reader finds them
//! whole, and they go with their resource.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crawler_tests::process::{Ended, Home, Process};
use crawler_tests::python::python;
use crawler_tests::web::{Asked, Site, StatusCode};
use crawler_tests::{PATIENCE, guests, until};
use serde_json::Value;

use crate::server::{Server, text};
use crate::sites::{self, Gate};

/// The independent reader.
const WARCIO: &str = "warcio==1.8.0";
const LOCAL: &str = "--allow-networks=127.0.0.0/8";

/// Crawls in the terminal by a guest, and returns what came.
#[track_caller]
fn run(home: &Home, guest: &str, arguments: &[&str]) -> Ended {
    let guest = guests::guest(guest).display().to_string();
    home.run([&["run", guest.as_str()][..], arguments].concat())
}

/// Returns the lines of a text in order: pages that are fetched at once may end in any order.
fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// Returns the archives below a folder, at any depth, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.expect("it is listed").path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}

#[track_caller]
fn check(home: &Home, path: &Path) {
    let path = path.display().to_string();
    let checked = home.ok(["archive", "check", &path]);
    assert!(checked.contains("FAULTS"), "{checked}");
}

#[test]
fn a_crawl_of_an_archive_gives_the_same_items() {
    let home = Home::new();
    let mut demo = home.start(["demo", "--site-only"]);
    let mark = "a crawl starts at ";
    let told = demo.answer("the shop's start", PATIENCE, |line| line.starts_with(mark));
    let start = told.rsplit(' ').next().unwrap_or_default();
    let param = format!("--param=start={start}");
    let archived = ["--archive=warc", "--archives=pages", LOCAL, &param];
    let first = run(&home, "books", &archived);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    assert_eq!(first.stdout.lines().count(), 400);
    demo.kill();
    // Neither the shop nor the network that it was in is there.
    let again = run(&home, "books", &["--from-archive=pages", &param]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert_eq!(sorted(&again.stdout), sorted(&first.stdout));
    check(&home, &home.path().join("pages"));
}

#[test]
fn pages_that_were_not_archived_are_counted_and_not_fetched() {
    let web = sites::chain(3).open();
    let home = Home::new();
    let start = format!("--param=start={}", web.url("/0"));
    let bounded = [
        "--archive=warc",
        "--archives=pages",
        "--max-pages=2",
        LOCAL,
        &start,
    ];
    let first = run(&home, "puppet", &bounded);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    let files = files(&home.path().join("pages"));
    let names: Vec<_> = files.iter().map(|file| file.extension()).collect();
    assert_eq!(names, [Some(OsStr::new("gz"))], "{files:?}");
    let n_asked = web.log().len();
    let again = run(
        &home,
        "puppet",
        &["--from-archive=pages", "--stats=stats.json", LOCAL, &start],
    );
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert_eq!(again.stdout, first.stdout);
    let stats = fs::read_to_string(home.path().join("stats.json")).expect("it was written");
    assert!(stats.contains("\"not-in-archive\""), "{stats}");
    assert_eq!(web.log().len(), n_asked, "nothing is asked");
    // A root request that is not there is no success.
    let other = format!("--param=start={}", web.url("/7"));
    let missing = run(&home, "puppet", &["--from-archive=pages", &other]);
    assert_eq!(missing.code, Some(3), "{}", missing.stderr);
    assert!(
        missing.stderr.contains("not-in-archive"),
        "{}",
        missing.stderr
    );
}

#[test]
fn a_crawl_of_an_archive_waits_for_no_other_answer() {
    let busy = |_: Asked| async move {
        // Longer than this test has patience.
        let later = [("retry-after", "300")];
        (StatusCode::SERVICE_UNAVAILABLE, later, "busy")
    };
    let web = Site::new()
        .page("/0", r#"[{"url": "/1"}]"#)
        .handle("/1", busy)
        .open();
    let home = Home::new();
    let start = format!("--param=start={}", web.url("/0"));
    let once = [
        "--archive=warc",
        "--archives=pages",
        "--max-attempts=1",
        LOCAL,
        &start,
    ];
    let first = run(&home, "puppet", &once);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    let replay = ["--from-archive=pages", "--stats=stats.json", &start];
    let again = run(&home, "puppet", &replay);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    let stats = fs::read_to_string(home.path().join("stats.json")).expect("it was written");
    assert!(stats.contains("\"status-503\""), "{stats}");
}

#[test]
fn an_independent_reader_finds_an_archive_whole() {
    let home = Home::new();
    let Some(python) = python(home.path(), "warcio", &[WARCIO]) else {
        return;
    };
    let same = |_: Asked| async move { ([("content-type", "text/html")], "[]") };
    let web = Site::new()
        .page("/0", r#"[{"url": "/1"}, {"url": "/2"}]"#)
        .handle("/1", same)
        .handle("/2", same)
        .open();
    let start = format!("--param=start={}", web.url("/0"));
    let archived = ["--archive=warc", "--archives=pages", LOCAL, &start];
    let ended = run(&home, "puppet", &archived);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let [file] = &files(&home.path().join("pages"))[..] else {
        panic!("one file");
    };
    let warcio = |words: &[&str]| {
        let mut command = Command::new(&python);
        command.arg("-m").arg("warcio.cli").args(words).arg(file);
        Process::start(&mut command).wait(PATIENCE)
    };
    let checked = warcio(&["check", "-v"]);
    assert_eq!(
        checked.code,
        Some(0),
        "{}{}",
        checked.stdout,
        checked.stderr
    );
    let n_passed = checked.stdout.matches("digest pass").count();
    // For each of three pages a request, a metadata record and, but for the revisit, an answer; and the head of the file.
    assert_eq!(n_passed, 9, "{}", checked.stdout);
    let index = warcio(&["index", "-f", "warc-type,warc-target-uri,http:status"]);
    assert_eq!(index.code, Some(0), "{}", index.stderr);
    let count = |kind: &str| index.stdout.matches(&format!("\"{kind}\"")).count();
    let kinds = ["warcinfo", "response", "request", "metadata", "revisit"].map(count);
    assert_eq!(kinds, [1, 2, 3, 3, 1], "{}", index.stdout);
}

#[test]
fn a_forged_or_cut_archive_is_told_with_its_place() {
    let web = sites::chain(2).open();
    let home = Home::new();
    let start = format!("--param=start={}", web.url("/0"));
    run(
        &home,
        "puppet",
        &["--archive=warc", "--archives=pages", LOCAL, &start],
    );
    let file = files(&home.path().join("pages")).remove(0);
    let bytes = fs::read(&file).expect("it was written");
    fs::write(&file, &bytes[..bytes.len() - 5]).expect("it is cut");
    let path = file.display().to_string();
    let cut = home.run(["archive", "check", &path]);
    assert_eq!(cut.code, Some(1), "{}", cut.stderr);
    assert!(cut.stdout.contains(" at byte "), "{}", cut.stdout);
    assert!(
        cut.stdout.contains("the file ends within a record"),
        "{}",
        cut.stdout
    );
    assert!(cut.stderr.contains("1 fault in 1 file"), "{}", cut.stderr);
}

#[test]
fn an_archive_survives_a_kill_and_goes_with_a_purge() {
    let gate = Gate::closed();
    let web = sites::gated_chain(4, 2, &gate).open();
    let server = Server::with_puppet();
    server.add("books", &web.url("/0"), &["--archive=warc"]);
    web.wait_for("the page that is held back", PATIENCE, |log| {
        log.iter().any(|hit| hit.path == "/2")
    });
    let server = server.killed_and_started_again();
    gate.open();
    let resource = server.finished("books");
    let id = text(&resource["spec"]["id"]);
    let folder = server.home.path().join("crawler-data/archives").join(id);
    // The owner completes its files when it gives the shard back.
    until("complete files", PATIENCE, || {
        let files = files(&folder);
        let is_complete = |file: &PathBuf| file.extension().is_some_and(|ending| ending == "gz");
        (files.len() == 2 && files.iter().all(is_complete)).then_some(())
    });
    check(&server.home, &folder);
    let archive = folder.display().to_string();
    let wacz = server
        .home
        .ok(["archive", "wacz", &archive, "-o", "books.wacz"]);
    assert!(wacz.contains("2 WARC files"), "{wacz}");
    assert_eq!(files(&folder).len(), 2, "they stay as they are");
    check(&server.home, &server.home.path().join("books.wacz"));
    let items = server.items("books");
    let start = format!("--param=start={}", web.url("/0"));
    let again = run(
        &server.home,
        "puppet",
        &["--from-archive=books.wacz", &start],
    );
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    let again = again.stdout.lines();
    let again = again.map(|line| serde_json::from_str::<Value>(line).expect("an item is JSON"));
    let in_order = |items: Vec<Value>| {
        let mut items: Vec<String> = items.iter().map(Value::to_string).collect();
        items.sort_unstable();
        items
    };
    assert_eq!(in_order(again.collect()), in_order(items));
    server.ok(&["resource", "delete", "books", "--purge"]);
    until("end of the archive", PATIENCE, || {
        (!folder.exists()).then_some(())
    });
}
