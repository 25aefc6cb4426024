//! Users of etcd with bounded rights: those that the book tells to make are enough for a crawl, and for no more.

use std::fs;
use std::process::Command;

use crawler_tests::cluster::Cluster;
use crawler_tests::etcd::Etcd;
use crawler_tests::process::Process;
use crawler_tests::web::{Asked, Method, Site, Web};
use crawler_tests::{PATIENCE, repository, until};

use crate::{of_chain, one_at_a_time, phase};

/// Page of the book with the commands.
const PAGE: &str = "host/docs/src/operate/etcd.md";
/// Beginnings of the commands that make users.
const MAKES_USERS: [&str; 3] = ["etcdctl user ", "etcdctl role ", "etcdctl auth "];

/// Opens chains of four pages.
fn four_pages() -> Web {
    let page = |asked: Asked| async move {
        let (chain, n) = asked.path.rsplit_once('/').expect("paths have two parts");
        let n: u64 = n.parse().expect("pages are numbers");
        match n {
            0..3 => format!(r#"[{{"url": "{chain}/{}"}}]"#, n + 1),
            _ => "[]".to_owned(),
        }
    };
    Site::new().handle("/*", page).open()
}

/// Runs the commands of the page, in the home of the cluster.
#[track_caller]
fn make_users(cluster: &Cluster) {
    let page = fs::read_to_string(repository().join(PAGE)).expect("the page is there");
    let commands = page.lines().filter_map(|line| line.strip_prefix("$ "));
    let makes_users = |command: &&str| MAKES_USERS.iter().any(|begin| command.starts_with(begin));
    let commands: Vec<&str> = commands.filter(makes_users).collect();
    assert!(commands.len() > 15, "{commands:?}");
    for command in commands {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", command])
            .env("ETCDCTL_API", "3")
            .env("ETCDCTL_ENDPOINTS", cluster.etcd.endpoints().join(","))
            .current_dir(cluster.home.path());
        let ended = Process::start(&mut shell).wait(PATIENCE);
        assert_eq!(ended.code, Some(0), "{command}: {}", ended.stderr);
    }
}

#[test]
fn f29_a_user_of_one_worker_crawls_and_writes_nothing_of_others() {
    let _turn = one_at_a_time();
    let Some(etcd) = Etcd::one() else {
        return;
    };
    let mut cluster = Cluster::on(etcd);
    fs::create_dir(cluster.home.path().join("etcd")).unwrap();
    for user in ["root", "master", "worker-1"] {
        let file = format!("etcd/{user}.password");
        let table = format!("[etcd]\nuser = '{user}'\npassword-file = '{file}'\n");
        cluster.home.write(&file, &format!("secret-of-{user}\n"));
        cluster.home.write(&format!("{user}.toml"), &table);
    }
    make_users(&cluster);
    cluster.etcd.log_in("root:secret-of-root");

    // A worker may not write the id of the cluster, so it waits for a master.
    let worker = cluster.worker("1", &["--config=worker-1.toml"]);
    worker.process.line("what it waits for", PATIENCE, |line| {
        line.contains("waiting to belong to the cluster")
            && line.contains("a master has to write it")
    });
    let master = cluster.master("1", &["--config=master.toml"]);
    cluster.registered("worker", 1);
    cluster.leader_beside(&[]);
    master.push(&cluster, "puppet");
    let web = four_pages();
    let start = web.url("/books/0");
    let body = format!(
        r#"{{"name":"books","plugin":"puppet","params":{{"start":"{start}"}},"crawl":{{"delay_ms":0}}}}"#
    );
    let added = master.http(Method::POST, "/crawler/resource", Some(&body));
    assert_eq!(added.status, 200, "{added:?}");
    until("the end of the crawl", PATIENCE, || {
        (phase(&master, "books") == "Finished").then_some(())
    });
    assert_eq!(of_chain(&web.log(), "books").count(), 4);
    worker.stop();

    let by_worker = |arguments: &[&str]| {
        let user = "--user=worker-1:secret-of-worker-1";
        cluster.etcd.try_ctl(&[&[user][..], arguments].concat())
    };
    for key in [
        "access/node-secret",
        "access/tokens/x",
        "assignments/worker-2/1/0",
        "cluster",
        "draining/worker-1",
        "election/1",
        "ids",
        "nodes/master/master-1",
        "nodes/worker/worker-10",
        "nodes/worker/worker-2",
        "plugins/puppet/1.0.0",
        "reserved/worker/worker-2",
        "resources/books",
        "status/worker-2",
    ] {
        let refused = by_worker(&["put", &format!("/crawler/{key}"), "{}"]);
        let why = &refused.stderr;
        assert!(why.contains("permission denied"), "{key}: {why}");
    }
    let refused = by_worker(&["get", "--prefix", "/crawler/access/tokens/"]);
    let why = &refused.stderr;
    assert!(why.contains("permission denied"), "{why}");
    // The user is known. The book tells that it may write the records of all shards.
    for key in ["status/worker-1", "shards/1/0"] {
        let written = by_worker(&["put", &format!("/crawler/{key}"), "{}"]);
        assert_eq!(written.code, Some(0), "{key}: {}", written.stderr);
    }
}
