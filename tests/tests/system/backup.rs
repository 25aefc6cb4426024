//! Backups of `crawler up`.

use crawler_tests::process::Home;
use crawler_tests::{PATIENCE, until};
use serde_json::json;

use crate::server::Server;
use crate::sites::{self, Gate};

#[test]
fn a_crawl_goes_on_from_a_backup_when_everything_else_is_lost() {
    let gate = Gate::closed();
    let web = sites::gated_chain(6, 3, &gate).open();
    let server = Server::with_puppet();
    server.add("books", &web.url("/0"), &[]);
    // Items at the sink are durable.
    until("items", PATIENCE, || {
        (server.items("books").len() == 3).then_some(())
    });
    let other = Home::new();
    let archive = other.path().join("backup").display().to_string();
    let in_use = server.home.run(["backup", &archive]);
    assert_eq!(in_use.code, Some(1), "{}", in_use.stderr);
    assert!(in_use.stderr.contains("is in use by process"));

    let home = server.stop();
    let taken = home.ok(["backup", &archive]);
    let what = taken.strip_prefix("backed up: ").expect("it is told");
    let verified = home.ok(["backup", "verify", &archive]);
    assert_eq!(verified, format!("whole and undamaged: {what}"));
    drop(home);
    let restored = other.ok(["restore", &archive]);
    assert_eq!(restored, format!("restored: {what}"));
    let server = Server::start_in(other, &[]);
    gate.open();
    let after = server.finished("books");
    assert_eq!(after["run"], json!(1));
    let records = server.records("books");
    assert_eq!(records.len(), 6);
    assert!(records.iter().all(|record| record["run"] == 1));
    let fetched = ["/0", "/1", "/2", "/3", "/4"].map(|path| web.count(path));
    assert_eq!(fetched, [1, 1, 1, 2, 1]);
}

#[test]
fn a_damaged_backup_is_told_and_not_restored() {
    let web = sites::chain(3).open();
    let server = Server::with_puppet();
    server.add("books", &web.url("/0"), &[]);
    server.finished("books");
    let home = server.stop();
    home.ok(["backup", "backup"]);
    let cluster = home.path().join("backup/data/cluster.json");
    let text = std::fs::read_to_string(&cluster).expect("it is there");
    std::fs::write(&cluster, text.replace("id", "di")).expect("it is written");
    for arguments in [
        &["backup", "verify", "backup"][..],
        &["restore", "backup", "--data=new"],
    ] {
        let ended = home.run(arguments);
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        let said = "the backup backup is damaged: cluster.json has another digest";
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
    }
}

#[test]
fn a_backup_needs_a_cluster() {
    let home = Home::new();
    let ended = home.run(["backup", "backup"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let said = "there is no store of crawler up in crawler-data";
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
    let made = ["backup", "crawler-data"].map(|name| home.path().join(name).exists());
    assert_eq!(made, [false, false]);
}
