//! Data folders that cannot be used, belong to somebody else or are damaged, and ports that are taken: the message
//! says what is wrong, where, and which flag or action is the way out.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crawler_tests::PATIENCE;
use crawler_tests::process::{Ended, Home};

use crate::Differences;
use crate::server::{Server, failure};

fn up(home: &Home, flags: &[&str]) -> Ended {
    home.run(["up", "--http=:0", "--grpc=:0"].iter().chain(flags))
}

#[test]
fn a_folder_that_cannot_keep_data_is_refused_and_the_flag_named() {
    let home = Home::new();
    home.write("file", "");
    let way_out = "name a folder that this user can write to with --data";
    let mut differences = Differences::default();
    for (flag, why) in [
        (
            "--data=file",
            format!("cannot keep data in file; {way_out}: Not a directory (os error 20)"),
        ),
        (
            "--data=file/below",
            format!("cannot keep data in file/below; {way_out}: Not a directory (os error 20)"),
        ),
        (
            "--data=/proc/crawler",
            format!("cannot keep data in /proc/crawler; {way_out}: No such file or directory (os error 2)"),
        ),
        (
            "--data=ftp://host/x",
            "cannot keep data in ftp://host/x: URLs of data roots begin with file://, s3://, gs:// or az://; name a folder, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX with --data".into(),
        ),
    ] {
        differences.compare(flag, &failure(&up(&home, &[flag])), &format!("1: {why}"));
    }
    differences.assert_none();
}

#[test]
fn a_folder_or_port_that_is_in_use_names_its_holder_or_its_flag() {
    let server = Server::start();
    let home = &server.home;
    let store = home.path().join("data/store");
    let store = store.canonicalize().expect("the store is there");
    let mut differences = Differences::default();
    differences.compare(
        "--data",
        &failure(&up(home, &["--data=data"])),
        &format!(
            "1: the state in {} is in use by process {}; stop it, or choose another folder with --data",
            store.display(),
            server.process.id()
        ),
    );
    for (flag, address) in [("--http", &server.http), ("--grpc", &server.grpc)] {
        let other = match flag {
            "--http" => "--grpc=:0",
            _ => "--http=:0",
        };
        let taken = format!("{flag}={address}");
        let ended = home.run(["up", "--data=other", other, &taken]);
        differences.compare(
            flag,
            &failure(&ended),
            &format!("1: cannot listen on {address}; choose another address with {flag}, or port 0 for a free one: Address already in use (os error 98)"),
        );
    }
    differences.assert_none();
    assert!(
        !home.path().join("other").exists(),
        "nothing half-written stays"
    );
    assert_eq!(server.http("GET /healthz", "", b"").status, 200);
}

/// Returns a folder with some state in it, whose process has ended.
fn with_state() -> Home {
    let mut server = Server::start();
    server.process.interrupt();
    assert_eq!(server.process.wait(PATIENCE).code, Some(0));
    server.home
}

/// Copies the state, so that each damage is done to a whole one.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("the folder is there") {
        let entry = entry.expect("an entry can be read");
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).expect("a file can be copied")),
        }
    }
}

type Damage = fn(&Path);

#[test]
fn a_damaged_state_is_refused_with_the_place_and_the_way_out_and_is_left_as_it_was() {
    let home = with_state();
    let whole = home.path().join("data");
    let id = fs::read_to_string(whole.join("cluster.json")).expect("the cluster has an id");
    let id: serde_json::Value = serde_json::from_str(&id).expect("it is JSON");
    let id = id["id"].as_str().expect("it is text").to_owned();
    let way_out = "restore the folder from a copy, or start anew in another one with --data";
    let cases: [(&str, Damage, String); 6] = [
        (
            "flipped",
            |data| {
                let path = data.join("store/store.log");
                let log = OpenOptions::new().read(true).write(true).open(path);
                let log = log.expect("the log is there");
                let mut byte = [0];
                log.read_exact_at(&mut byte, 60).expect("it has more bytes");
                log.write_all_at(&[byte[0] ^ 1], 60).expect("it can be written");
            },
            format!("the store's log LOG is damaged at byte 45: a frame does not match its checksum; {way_out}"),
        ),
        (
            "text",
            |data| fs::write(data.join("store/store.log"), "hello, I am text\n").expect("written"),
            format!("the store's log LOG is damaged at byte 0: not the header of a store's log; {way_out}"),
        ),
        (
            "empty",
            |data| fs::write(data.join("store/store.log"), "").expect("written"),
            format!("the store's log LOG is damaged at byte 0: no header; {way_out}"),
        ),
        (
            "foreign",
            |data| fs::write(data.join("cluster.json"), r#"{"id":"another"}"#).expect("written"),
            format!("the data root DATA belongs to cluster another, and this is cluster {id}; name another one with --data"),
        ),
        (
            "cut-id",
            |data| fs::write(data.join("cluster.json"), r#"{"id""#).expect("written"),
            "cluster.json in the data root DATA does not decode: EOF while parsing an object at line 1 column 5; restore it, or name another data root with --data".into(),
        ),
        (
            "folder-for-log",
            |data| {
                fs::remove_file(data.join("store/store.log")).expect("removed");
                fs::create_dir(data.join("store/store.log")).expect("made");
            },
            "cannot open LOG: Is a directory (os error 21)".into(),
        ),
    ];
    let mut differences = Differences::default();
    for (name, damage, why) in cases {
        let data = home.path().join(name);
        copy(&whole, &data);
        damage(&data);
        let log = fs::read(data.join("store/store.log")).unwrap_or_default();
        let shown = data
            .canonicalize()
            .expect("it is there")
            .display()
            .to_string();
        let expected = why
            .replace("LOG", &format!("{shown}/store/store.log"))
            .replace("DATA", &shown);
        let ended = up(&home, &[&format!("--data={name}")]);
        differences.compare(name, &failure(&ended), &format!("1: {expected}"));
        let after = fs::read(data.join("store/store.log")).unwrap_or_default();
        assert!(after == log, "{name}: the evidence was changed");
    }
    differences.assert_none();
}

#[test]
fn a_log_that_a_crash_cut_short_is_told_and_opened() {
    let home = with_state();
    let log = home.path().join("data/store/store.log");
    let file = OpenOptions::new().write(true).open(&log);
    let file = file.expect("the log is there");
    let n_bytes = file.metadata().expect("it has a length").len();
    file.set_len(n_bytes - 3).expect("it can be cut");
    let process = home.start(["up", "--http=:0", "--grpc=:0", "--data=data"]);
    process.word_after("listening grpc=", PATIENCE);
    let shown = log.canonicalize().expect("it is there");
    let warning = process.line("warning", PATIENCE, |line| line.contains(" WARN "));
    let start = format!(
        "WARN dropped the end of the log, which a crash cut short path={} n_bytes=",
        shown.display()
    );
    assert!(warning.contains(&start), "{warning}");
}
