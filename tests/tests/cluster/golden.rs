//! A cluster as an earlier version left it: nodes of today go on where that version stopped.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crawler_tests::guests::frozen;
use crawler_tests::repository;
use serde_json::Value;

use super::*;

/// Address at which the site was crawled; no other test has it.
const SITE: &str = "127.77.3.1:27731";
const PAGES: [&str; 3] = ["page-1", "page-2", "page-3"];
const N_BOOKS: usize = 12;

fn golden(path: &str) -> PathBuf {
    repository().join("tests/golden/cluster-1").join(path)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("it can be made");
    for entry in fs::read_dir(from).expect("it is there") {
        let entry = entry.expect("it can be read");
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        match from.is_dir() {
            true => copy(&from, &to),
            false => drop(fs::copy(from, to).expect("it can be copied")),
        }
    }
}

/// Sets up a store and a data root as the earlier version left them.
fn left_behind() -> Option<(Cluster, BTreeMap<String, String>)> {
    let cluster = Cluster::new()?;
    let records = fs::read_to_string(golden("etcd.json")).expect("it is there");
    let records: BTreeMap<String, String> = serde_json::from_str(&records).expect("it is JSON");
    for (key, value) in &records {
        cluster.etcd.ctl(&["put", "--", key, value]);
    }
    let data = cluster.home.path().join("data");
    copy(&golden("data"), &data);
    let plugin: Value =
        serde_json::from_str(&records["/crawler/plugins/books/0.1.0"]).expect("it is JSON");
    let plugins = data.join("plugins");
    fs::create_dir_all(&plugins).expect("it can be made");
    let bytes = plugins.join(format!("{}.wasm", text(&plugin["digest"])));
    fs::copy(frozen("books-rust.wasm"), bytes).expect("it can be copied");
    Some((cluster, records))
}

fn resource(master: &Node, name: &str) -> Value {
    let path = format!("/crawler/resource/{name}");
    master.http(Method::GET, &path, None).json()
}

/// Returns the titles of the items of a resource's present run, each as often as it occurs.
fn titles(cluster: &Cluster, master: &Node, name: &str) -> Vec<String> {
    let items = master.ok(cluster, &["items", name]);
    let title = |line: &str| {
        let item: Value = serde_json::from_str(line).expect("an item is JSON");
        text(&item["title"]).to_owned()
    };
    let mut titles: Vec<String> = items.lines().map(title).collect();
    titles.sort();
    titles
}

fn all_books() -> Vec<String> {
    let mut books: Vec<String> = (1..=N_BOOKS).map(|n| format!("Book {n}")).collect();
    books.sort();
    books
}

#[test]
fn a_cluster_of_an_earlier_version_goes_on() {
    let _turn = one_at_a_time();
    let Some((cluster, records)) = left_behind() else {
        return;
    };
    let site = Site::new().folder(golden("site"));
    let web = site.open_at(SITE.parse().expect("it is an address"));
    let master = cluster.master("1", &[]);
    cluster.leader_beside(&[]);
    let worker = cluster.worker("1", &["--allow-ports=27731"]);
    cluster.registered("worker", 1);

    // The phases are as before, and ids are the same, digit by digit.
    let phases = [
        ("done", "Finished", 12),
        ("failed", "Failed", 0),
        ("paused", "Paused", 4),
        ("twice", "Finished", 12),
        ("waiting", "Pending", 0),
    ];
    for (name, phase, n_items) in phases {
        let shown = resource(&master, name);
        assert_eq!(shown["phase"], phase, "{shown}");
        assert_eq!(shown["counts"]["items"], n_items, "{shown}");
        let record = &records[&format!("/crawler/resources/{name}")];
        let id = text(&shown["spec"]["id"]);
        assert!(record.contains(&format!("\"id\":{id},")), "{record}");
    }
    assert_eq!(titles(&cluster, &master, "done"), all_books());
    let stored = resource(&master, "waiting")["reason"].clone();
    assert!(text(&stored).contains("lacks label gpu"), "{stored}");

    // A crawl goes on with the pages that it has not fetched yet.
    master.ok(&cluster, &["resource", "resume", "paused"]);
    master.ok(&cluster, &["resource", "wait", "paused", "--timeout=60s"]);
    assert_eq!(titles(&cluster, &master, "paused"), all_books());
    let asked: Vec<String> = web.log().into_iter().map(|hit| hit.path).collect();
    let distinct: BTreeSet<&String> = asked.iter().collect();
    assert_eq!(distinct.len(), asked.len(), "{asked:?}");
    assert_eq!(asked.len(), PAGES.len() + N_BOOKS - 5, "{asked:?}");

    // A finished resource runs again, and so does one with two shards.
    for name in ["done", "twice"] {
        master.ok(&cluster, &["resource", "restart", name]);
        master.ok(&cluster, &["resource", "wait", name, "--timeout=60s"]);
        assert_eq!(titles(&cluster, &master, name), all_books());
        let record = cluster
            .record(&format!("resources/{name}"))
            .expect("it is stored");
        // The record is rewritten in today's form.
        assert!(record["id"].is_string(), "{record}");
    }

    // What was waiting waits for a worker that was not there.
    let other = cluster.worker("2", &["--label=gpu=true", "--allow-ports=27731"]);
    master.ok(&cluster, &["resource", "wait", "waiting", "--timeout=60s"]);
    assert_eq!(titles(&cluster, &master, "waiting"), all_books());
    master.ok(&cluster, &["resource", "delete", "failed"]);
    other.stop();
    worker.stop();
}
