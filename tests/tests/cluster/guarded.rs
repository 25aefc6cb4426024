//! A cluster that speaks mutual TLS and asks callers for access tokens.

use std::fs;

use crawler_tests::certificates;
use crawler_tests::cluster::{Cluster, Node};
use crawler_tests::process::{Ended, Process};
use crawler_tests::{PATIENCE, guests, until};
use serde_json::Value;

use crate::{chains, goes_on, one_at_a_time};

/// A caller of a master.
struct Caller<'a> {
    cluster: &'a Cluster,
    master: &'a Node,
    token: &'a str,
}

impl Caller<'_> {
    fn command(&self, arguments: &[&str]) -> Process {
        let files =
            ["ca.pem", "node.pem", "node.key"].map(|name| self.cluster.home.path().join(name));
        let [ca, certificate, key] = files;
        let mut command = self.cluster.home.command(arguments);
        command
            .env("CRAWLER_MASTER", format!("https://{}", self.master.grpc))
            .env("CRAWLER_CA", ca)
            .env("CRAWLER_CERTIFICATE", certificate)
            .env("CRAWLER_KEY", key)
            .env("CRAWLER_TOKEN", self.token);
        Process::start(&mut command)
    }

    #[track_caller]
    fn cli(&self, arguments: &[&str]) -> Ended {
        self.command(arguments).wait(PATIENCE)
    }

    #[track_caller]
    fn ok(&self, arguments: &[&str]) -> String {
        let ended = self.cli(arguments);
        assert_eq!(ended.code, Some(0), "{arguments:?}: {}", ended.stderr);
        ended.stdout
    }
}

#[test]
fn s27_a_cluster_with_mutual_tls_and_tokens_crawls_and_tells_who_did_what() {
    let _turn = one_at_a_time();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    certificates::write(cluster.home.path());
    let guarded = ["--require-tokens", "--first-token=first-token"];
    let masters = ["1", "2"].map(|id| cluster.master(id, &guarded));
    let mut workers: Vec<Node> = ["1", "2"].map(|id| cluster.worker(id, &[])).into();
    cluster.registered("master", 2);
    cluster.registered("worker", 2);
    let leader = cluster.leader_beside(&[]);
    let admin = until("the first token", PATIENCE, || {
        let token = fs::read_to_string(cluster.home.path().join("first-token")).ok()?;
        (!token.is_empty()).then(|| token.trim().to_owned())
    });
    let follower = masters.iter().find(|master| master.id != leader).unwrap();
    let caller = |token| Caller {
        cluster: &cluster,
        master: follower,
        token,
    };
    let by_admin = caller(&admin);
    until("the follower knows the token", PATIENCE, || {
        (by_admin.cli(&["node", "list"]).code == Some(0)).then_some(())
    });
    // The follower hands these on to the leader, over TLS and with the token.
    by_admin.ok(&[
        "plugin",
        "push",
        &guests::guest("puppet").display().to_string(),
    ]);
    let token = by_admin.ok(&[
        "access",
        "token",
        "add",
        "alice",
        "--role=operator",
        "--namespace=team",
    ]);
    let by_alice = caller(token.trim());
    until("the follower knows the token of alice", PATIENCE, || {
        (by_alice.cli(&["access", "whoami"]).code == Some(0)).then_some(())
    });
    let web = chains();
    let start = format!("start={}", web.url("/books/0"));
    let add = |name| {
        [
            "resource",
            "add",
            name,
            "--plugin=puppet",
            "--delay=50ms",
            "--param",
            &start,
        ]
    };
    let refused = by_alice.cli(&add("team/books"));
    assert!(
        refused.stderr.contains("puppet is outside"),
        "{}",
        refused.stderr
    );
    let deep = [&add("books")[..], &["--max-depth=4000000000"]].concat();
    by_admin.ok(&deep);
    goes_on(&web, "books", 3);
    // Masters ask workers for numbers and logs, over TLS and with the workers' own tokens.
    until("numbers of the worker", PATIENCE, || {
        let got: Value =
            serde_json::from_str(&by_admin.ok(&["resource", "get", "books", "-o", "json"])).ok()?;
        (got["counts"]["parsed"].as_u64()? >= 3).then_some(())
    });
    by_admin.ok(&["resource", "logs", "books"]);
    // The worker is killed, and the other one goes on.
    let owner = cluster.owners()[0].1.clone();
    let at = workers
        .iter()
        .position(|worker| worker.id == owner)
        .unwrap();
    workers[at].process.kill();
    goes_on(&web, "books", 3);
    by_admin.ok(&["resource", "delete", "books"]);

    // Whoever shows no certificate, or speaks plainly, is nobody.
    let mut command = cluster.home.command(["node", "list"]);
    command
        .env("CRAWLER_MASTER", format!("https://{}", follower.grpc))
        .env("CRAWLER_CA", cluster.home.path().join("ca.pem"))
        .env("CRAWLER_TOKEN", &admin);
    let refused = Process::start(&mut command).wait(PATIENCE);
    assert!(
        refused.stderr.contains("asks for a certificate"),
        "{}",
        refused.stderr
    );
    let plain = follower.cli(&cluster, &["node", "list"]);
    assert_eq!(plain.code, Some(1), "{}", plain.stdout);

    // The record has it all, whichever master is asked.
    let entries = until("the record of who did what", PATIENCE, || {
        let answer: Value =
            serde_json::from_str(&by_admin.ok(&["access", "audit", "-o", "json"])).ok()?;
        let entries = answer["entries"].as_array()?.clone();
        // Each master writes its own entries within a second or two.
        let has_deletion = entries
            .iter()
            .any(|entry| entry["method"] == "DeleteResource" && entry["through"] == "");
        has_deletion.then_some(entries)
    });
    let of = |subject: &str, method: &str, name: &str, result: &str| {
        let is_it = |entry: &&Value| {
            entry["subject"] == subject
                && entry["method"] == method
                && entry["name"] == name
                && entry["result"] == result
                && entry["through"] == ""
        };
        entries.iter().filter(is_it).count()
    };
    assert_eq!(
        of("alice", "AddResource", "team/books", "PERMISSION_DENIED"),
        1,
        "{entries:#?}"
    );
    assert_eq!(of("admin", "AddResource", "books", "OK"), 1, "{entries:#?}");
    assert_eq!(of("admin", "IssueToken", "alice", "OK"), 1, "{entries:#?}");
    assert_eq!(
        of("admin", "DeleteResource", "books", "OK"),
        1,
        "{entries:#?}"
    );
    let text = format!("{entries:?}");
    assert!(
        !text.contains(&admin) && !text.contains(token.trim()),
        "no secret is recorded"
    );
}
