//! Nodes that get their certificates from the CA of their cluster.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crawler_process::clock::{Clock as _, SystemClock};
use crawler_tests::cluster::{Cluster, Node};
use crawler_tests::process::{Ended, Process};
use crawler_tests::{PATIENCE, guests, until};
use serde_json::Value;

use crate::shards::{N_HOSTS, N_PAGES, host, hosts};
use crate::{chains, goes_on, one_at_a_time};

/// Administrator of a cluster, who calls its master over TLS.
struct Admin<'a> {
    cluster: &'a Cluster,
    master: &'a Node,
}

impl Admin<'_> {
    #[track_caller]
    fn ok(&self, arguments: &[&str]) -> String {
        let ca = self.cluster.home.path().join("state-master-1/node/ca.pem");
        let mut command = self.cluster.home.command(arguments);
        command
            .env("CRAWLER_MASTER", format!("https://{}", self.master.grpc))
            .env("CRAWLER_CA", ca);
        let ended = Process::start(&mut command).wait(PATIENCE);
        assert_eq!(ended.code, Some(0), "{arguments:?}: {}", ended.stderr);
        ended.stdout
    }

    /// Makes a join token for workers, writes it to a file of this name, and returns it.
    #[track_caller]
    fn token(&self, file: &str, further: &[&str]) -> String {
        let add = ["node", "join-token", "add", "--role=worker"];
        let token = self.ok(&[&add, further].concat());
        assert!(token.starts_with("crawler-join-"), "it is printed alone");
        self.cluster.home.write(file, &token);
        token.trim().to_owned()
    }
}

/// Starts a worker that cannot join, and returns its end.
#[track_caller]
fn refused(cluster: &Cluster, id: &str, file: &str) -> Ended {
    let mut arguments = cluster.arguments("worker", id);
    arguments.push(format!("--join={file}"));
    let ended = cluster.home.run(arguments);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let folder = cluster.home.path().join(format!("state-worker-{id}/node"));
    assert!(!folder.join("certificate.pem").exists());
    ended
}

/// Crawls in two shards, one on each of two workers, which give each other links over TLS.
#[track_caller]
fn crosses_shards(cluster: &Cluster, admin: &Admin<'_>) {
    cluster.registered("worker", 2);
    // Both workers are free, so each gets a shard.
    admin.ok(&["resource", "delete", "books"]);
    until("the end of books", PATIENCE, || {
        cluster.owners().is_empty().then_some(())
    });
    let web = hosts();
    let port = web.url("/").port().expect("a free one");
    let start = format!("start=http://{}:{port}/0", host(0));
    admin.ok(&[
        "resource",
        "add",
        "parts",
        "--plugin=puppet",
        "--delay=50ms",
        "--max-depth=1000",
        "--scope=*.test",
        "--shards=2",
        "--param",
        &start,
    ]);
    let both = BTreeSet::from(["worker-1", "worker-2"].map(str::to_owned));
    until("a shard on each worker", PATIENCE, || {
        let owners = cluster.owners().into_iter().map(|(_, owner)| owner);
        (owners.collect::<BTreeSet<_>>() == both).then_some(())
    });
    until("the pages of all hosts", PATIENCE, || {
        let items = admin.ok(&["items", "parts"]);
        (items.lines().count() == N_HOSTS * N_PAGES).then_some(())
    });
}

#[test]
fn a_join_token_buys_a_worker_a_certificate_and_no_more() {
    let _turn = one_at_a_time();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let home = &cluster.home;
    home.write("sealing.key", &"0123456789abcdef".repeat(2));
    let names: String = (0..N_HOSTS)
        .map(|n| format!("\"{}\" = \"127.0.0.1\"\n", host(n)))
        .collect();
    let config = format!("[cluster]\nsealing-key = \"sealing.key\"\n[hosts]\n{names}");
    home.write("crawler.toml", &config);
    // The first master issues its own certificate.
    let master = cluster.master("1", &[]);
    cluster.registered("master", 1);
    let admin = Admin {
        cluster: &cluster,
        master: &master,
    };
    let first = admin.token("one", &["--nodes=worker-1"]);
    let mut worker = cluster.worker("1", &["--join=one"]);
    cluster.registered("worker", 1);
    for record in ["nodes/master/master-1", "nodes/worker/worker-1"] {
        let record = cluster.record(record).expect("it is registered");
        assert_eq!(record["tls"], true, "{record}");
    }
    for file in ["certificate.pem", "key.pem", "ca.pem"] {
        let path = home.path().join("state-worker-1/node").join(file);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    // Master and worker work together over TLS.
    admin.ok(&[
        "plugin",
        "push",
        &guests::guest("puppet").display().to_string(),
    ]);
    let web = chains();
    let start = format!("start={}", web.url("/books/0"));
    admin.ok(&[
        "resource",
        "add",
        "books",
        "--plugin=puppet",
        "--delay=50ms",
        "--max-depth=4000000000",
        "--param",
        &start,
    ]);
    goes_on(&web, "books", 3);

    // The token is spent. The worker does not need it any more.
    worker.process.kill();
    let again = cluster.worker("1", &["--join=one"]);
    again.process.line("a word about --join", PATIENCE, |line| {
        line.contains("--join is ignored")
    });
    goes_on(&web, "books", 3);

    // Of two workers, one can use a token for one of them.
    admin.token("any", &[]);
    let mut second = cluster.worker("2", &["--join=any"]);
    crosses_shards(&cluster, &admin);
    let spent = refused(&cluster, "3", "any");
    assert!(spent.stderr.contains("has been used"), "{}", spent.stderr);
    admin.token("other", &["--nodes=worker-9"]);
    let other = refused(&cluster, "4", "other");
    assert!(
        other
            .stderr
            .contains("is for worker-9, and this node is worker-4"),
        "{}",
        other.stderr
    );
    admin.token("zone", &["--label=zone=eu"]);
    let without = refused(&cluster, "4", "zone");
    assert!(without.stderr.contains("zone=eu"), "{}", without.stderr);
    admin.token("short", &["--valid-for=1s"]);
    let listed = || -> Value {
        let listed = admin.ok(&["node", "join-token", "list", "-o", "json"]);
        serde_json::from_str(&listed).expect("it is JSON")
    };
    let tokens = listed()["tokens"].as_array().unwrap().clone();
    let ends = tokens.iter().map(|token| token["expires_at"].as_u64());
    let end = ends.min().flatten().expect("each token has an end");
    until("the end of a token", PATIENCE, || {
        (SystemClock.unix_millis() > end).then_some(())
    });
    let late = refused(&cluster, "5", "short");
    assert!(late.stderr.contains("has expired"), "{}", late.stderr);
    let of_nine = tokens.iter().find(|token| token["nodes"] == "worker-9");
    let id = of_nine.and_then(|token| token["id"].as_str()).unwrap();
    admin.ok(&["node", "join-token", "revoke", id]);
    assert_eq!(
        listed()["tokens"].as_array().unwrap().len(),
        tokens.len() - 1
    );

    // A master with another key makes no second CA.
    home.write("other.key", &"f".repeat(64));
    home.write("other.toml", "[cluster]\nsealing-key = \"other.key\"\n");
    let mut arguments = cluster.arguments("master", "2");
    arguments.push("--config=other.toml".to_owned());
    let wrong = home.run(arguments);
    assert_eq!(wrong.code, Some(1));
    assert!(wrong.stderr.contains("does not open"), "{}", wrong.stderr);

    // A worker whose certificates were revoked comes back with nothing from before.
    second.process.kill();
    admin.ok(&["node", "revoke", "worker-2"]);
    for (join, why) in [(None, "was revoked"), (Some("any"), "were revoked")] {
        let mut arguments = cluster.arguments("worker", "2");
        arguments.extend(join.map(|file| format!("--join={file}")));
        let ended = home.run(arguments);
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        assert!(ended.stderr.contains(why), "{}", ended.stderr);
    }

    // What was issued and refused is recorded, without secrets.
    let entries = until("the record of who did what", PATIENCE, || {
        let audit = admin.ok(&["access", "audit", "-o", "json"]);
        let answer: Value = serde_json::from_str(&audit).ok()?;
        let entries = answer["entries"].as_array()?.clone();
        let is_there = |method: &str, name: &str, result: &str| {
            entries.iter().any(|entry| {
                entry["method"] == method && entry["name"] == name && entry["result"] == result
            })
        };
        let all = is_there("JoinCluster", "worker-1", "OK")
            && is_there("JoinCluster", "worker-2", "OK")
            && is_there("RenewCertificate", "master-1", "OK")
            && is_there("IssueJoinToken", "worker-1", "OK")
            && is_there("RevokeNode", "worker-2", "OK")
            && entries
                .iter()
                .any(|entry| entry["result"] == "PERMISSION_DENIED");
        all.then_some(entries)
    });
    let secret = first.split('-').nth(3).unwrap();
    assert!(!format!("{entries:?}").contains(secret));
    let stored = cluster.dump("access/");
    assert!(!stored.contains(secret) && !stored.contains("PRIVATE KEY"));
}
