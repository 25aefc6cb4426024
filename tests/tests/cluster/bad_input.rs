//! Faults around a cluster, and the errors about them.

use std::net::TcpListener;

use crawler_tests::cluster::{Cluster, Node};
use crawler_tests::etcd::Etcd;
use crawler_tests::etcd::certificates::Certificates;
use crawler_tests::http::text;
use crawler_tests::process::Home;
use crawler_tests::web::Method;
use crawler_tests::{PATIENCE, until};

use crate::{add_endless, chains, goes_on, one_at_a_time, phase};

#[test]
fn f11_a_master_without_etcd_says_so_carries_nothing_out_and_begins_when_it_is_there() {
    let _turn = one_at_a_time();
    let Some(mut etcd) = Etcd::one() else {
        return;
    };
    etcd.kill(0);
    let mut cluster = Cluster::on(etcd);
    let mut master = cluster.master("1", &[]);
    let endpoint = cluster.etcd.endpoints()[0].clone();
    master.process.line("what it waits for", PATIENCE, |line| {
        line.contains("waiting for the store") && line.contains(&endpoint)
    });
    let nodes = master.http(Method::GET, "/crawler/node", None);
    assert_eq!(nodes.status, 503);
    assert!(nodes.text.contains(&endpoint), "{}", nodes.text);
    let add = r#"{"name":"a","plugin":"puppet"}"#;
    let add = master.http(Method::POST, "/crawler/resource", Some(add));
    assert_eq!(add.status, 503, "{add:?}");
    assert!(add.text.contains("does not lead"), "{}", add.text);
    assert_eq!(master.http(Method::GET, "/healthz", None).status, 200);
    assert_eq!(master.cli(&cluster, &["node", "health"]).code, Some(0));
    let joined = master.cli(&cluster, &["node", "health", "--joined"]);
    assert_eq!(joined.code, Some(1));
    let reason = "the process does not belong to the cluster yet";
    assert!(joined.stderr.contains(reason), "{}", joined.stderr);
    let list = master.cli(&cluster, &["node", "list"]);
    assert_eq!(list.code, Some(1));
    assert!(list.stderr.contains(&endpoint), "{}", list.stderr);
    assert!(master.process.is_running());
    cluster.etcd.launch(0);
    cluster.leader_beside(&[]);
    let list = until("an answer", PATIENCE, || {
        let list = master.cli(&cluster, &["node", "list"]);
        (list.code == Some(0)).then_some(list)
    });
    assert!(list.stdout.contains("master-1"), "{}", list.stdout);
    let joined = master.ok(&cluster, &["node", "health", "--joined"]);
    assert_eq!(joined, "belongs to the cluster\n");
}

#[test]
fn a_mute_etcd_is_named_and_the_process_lives_on_until_it_is_stopped() {
    // The server accepts connections, and never answers.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", mute.local_addr().unwrap());
    let home = Home::new();
    let arguments = [
        "master",
        "--id=1",
        "--http=:0",
        "--grpc=:0",
        "--data=data",
        "--state=state",
    ];
    let etcd = format!("--etcd={endpoint}");
    let mut master = home.start(arguments.iter().copied().chain([etcd.as_str()]));
    master.line("what it waits for", PATIENCE, |line| {
        line.contains("WARN") && line.contains(&endpoint)
    });
    assert!(master.is_running());
    master.interrupt();
    assert_eq!(master.wait(PATIENCE).code, Some(0));
}

#[test]
fn the_data_root_of_another_cluster_is_refused() {
    let _turn = one_at_a_time();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let master = cluster.master("1", &[]);
    cluster.registered("master", 1);
    master.stop();
    let other = Cluster::on(Etcd::one().expect("it is installed"));
    let data = format!("--data={}", cluster.home.path().join("data").display());
    let mut foreign = other.master("1", &[&data]);
    let ended = foreign.process.wait(PATIENCE);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("belongs to cluster"),
        "{}",
        ended.stderr
    );
}

#[test]
fn f20_records_that_do_not_decode_and_foreign_keys_stop_nothing_else() {
    let _turn = one_at_a_time();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    for (key, value) in [
        ("/crawler/resources/broken", "{"),
        ("/crawler/resources/later", r#"{"id":7,"format":9}"#),
        ("/crawler/shards/x/y", "?"),
        (
            "/crawler/shards/7/0",
            r#"{"resource":"later","state":{"state":"dreaming"}}"#,
        ),
        ("/crawler/nodes/worker/worker-9", "not a node"),
        ("/crawler/assignments/worker-1/7/0", "[]"),
        ("/crawler/assignments/nobody", ""),
        ("/crawler/election/foreign", "what is this"),
        ("/crawler/deleting/7", "0"),
        ("/crawlerish", "beside it"),
    ] {
        cluster.etcd.ctl(&["put", key, value]);
    }
    let master = cluster.master("1", &[]);
    let worker = cluster.worker("1", &[]);
    until("a leader", PATIENCE, || {
        let list = master.cli(&cluster, &["node", "list"]);
        (list.stdout.contains("leader") && list.stdout.contains("worker-1")).then_some(())
    });
    master.push(&cluster, "puppet");
    let web = chains();
    add_endless(&master, "a", &web);
    goes_on(&web, "a", 3);
    assert_eq!(phase(&master, "a"), "Running");
    for told in [
        "resources/broken",
        "resources/later",
        "shards/7/0",
        "nodes/worker/worker-9",
        "assignments/worker-1/7/0",
        "election/foreign",
        "deleting/7",
    ] {
        master.process.line(told, PATIENCE, |line| {
            line.contains("ERROR") && line.contains(told)
        });
    }
    // A key below a known prefix that names no shard belongs to nobody, and is not reported.
    for silent in ["shards/x/y", "assignments/nobody"] {
        let lines = master.process.stderr();
        let told = lines.iter().find(|line| line.contains(silent));
        assert_eq!(told, None);
    }
    worker.process.line("its broken record", PATIENCE, |line| {
        line.contains("ERROR") && line.contains("assignments/worker-1/7/0")
    });
    assert_eq!(
        cluster
            .etcd
            .ctl(&["get", "--print-value-only", "/crawlerish"])
            .trim(),
        "beside it"
    );
}

#[test]
fn ids_and_addresses_that_cannot_be_are_refused_with_what_to_write() {
    let home = Home::new();
    let long = format!("--id={}", "x".repeat(300));
    for (arguments, expected) in [
        (vec!["worker", "--id=a b"], r#"has ' '"#),
        (vec!["worker", &long], "at most 128 are allowed"),
        (vec!["master", "--id="], "write a short one, like --id=2"),
        (vec!["master", "--grpc=0.0.0.0:0"], "--insecure"),
        (
            vec!["master", "--grpc=0.0.0.0:0", "--insecure"],
            "--advertise",
        ),
        (
            vec!["worker", "--etcd=127.0.0.1:2379"],
            "no http:// or https:// URL",
        ),
        (vec!["master", "--pprof=0.0.0.0:9981"], "--pprof :9981"),
        (vec!["worker", "--label=gpu"], "KEY=VALUE"),
        (vec!["worker", "--lease-ttl=10ms"], "at least 1s"),
        (
            vec!["master", "--keep-revisions=5"],
            "or 0 where etcd compacts itself",
        ),
    ] {
        let ended = home.run(&arguments);
        assert!(
            matches!(ended.code, Some(1 | 2)),
            "{arguments:?}: {ended:?}"
        );
        assert!(
            ended.stderr.contains(expected),
            "{arguments:?}: {}",
            ended.stderr
        );
    }
}

/// Starts a master with this table in its config file.
fn with_etcd_table(cluster: &Cluster, id: &str, table: &str) -> Node {
    let config = cluster
        .home
        .write(&format!("{id}.toml"), &format!("[etcd]\n{table}"));
    cluster.master(id, &[&format!("--config={}", config.display())])
}

#[test]
fn etcd_behind_certificates_is_reached_with_those_of_the_config_file() {
    let _turn = one_at_a_time();
    let Some(certificates) = Certificates::new() else {
        return;
    };
    let Some(etcd) = Etcd::with_certificates(certificates.clone()) else {
        return;
    };
    let cluster = Cluster::on(etcd);
    let (certificate, key) = certificates.client();
    for (name, text) in [
        ("ca.pem", certificates.ca()),
        ("client.pem", certificate),
        ("client.key", key),
    ] {
        cluster.home.write(name, &String::from_utf8(text).unwrap());
    }
    let mut stranger = with_etcd_table(&cluster, "1", "ca = 'ca.pem'");
    stranger.process.line("what is wrong", PATIENCE, |line| {
        line.contains("ERROR") && line.contains("waiting for the store")
    });
    assert!(stranger.process.is_running());
    let known = "ca = 'ca.pem'\ncertificate = 'client.pem'\nkey = 'client.key'";
    let _known = with_etcd_table(&cluster, "2", known);
    cluster.registered("master", 1);
    assert_eq!(cluster.leader_beside(&[]), "master-2");
}

#[test]
fn etcd_behind_a_password_is_reached_with_that_of_the_config_file() {
    let _turn = one_at_a_time();
    let Some(etcd) = Etcd::one() else {
        return;
    };
    for arguments in [
        &["user", "add", "root:secret"][..],
        &["user", "grant-role", "root", "root"],
        &["auth", "enable"],
    ] {
        etcd.ctl(arguments);
    }
    let cluster = Cluster::on(etcd);
    cluster.home.write("right", "secret\n");
    cluster.home.write("wrong", "guessed\n");
    let mut wrong = with_etcd_table(&cluster, "1", "user = 'root'\npassword-file = 'wrong'");
    wrong.process.line("what is wrong", PATIENCE, |line| {
        line.contains("ERROR") && line.contains("check user and password-file in [etcd]")
    });
    let nodes = wrong.http(Method::GET, "/crawler/node", None);
    assert_eq!(nodes.status, 503, "{nodes:?}");
    assert!(nodes.text.contains("password-file"), "{}", nodes.text);
    let list = wrong.cli(&cluster, &["node", "list"]);
    assert!(list.stderr.contains("password-file"), "{}", list.stderr);
    assert!(wrong.process.is_running());
    let right = with_etcd_table(&cluster, "2", "user = 'root'\npassword-file = 'right'");
    until("its answer", PATIENCE, || {
        let list = right.cli(&cluster, &["node", "list"]);
        (list.stdout.contains("leader") && !list.stdout.contains("master-1")).then_some(())
    });
}

#[test]
fn f12_ids_with_dashes_and_an_address_nobody_can_reach_are_told_as_they_are() {
    let _turn = one_at_a_time();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let leader = cluster.master("a-b-c-2", &["--advertise=127.0.0.1:1"]);
    cluster.registered("master", 1);
    assert_eq!(cluster.leader_beside(&[]), "master-a-b-c-2");
    let other = cluster.master("3", &[]);
    cluster.registered("master", 2);
    let list = other.ok(&cluster, &["node", "list"]);
    assert!(
        list.contains("master-a-b-c-2") && list.contains("127.0.0.1:1 "),
        "{list}"
    );
    // The call cannot be forwarded: the answer names the leader, and nothing is carried out here.
    let begun = std::time::Instant::now();
    let add = other.http(
        Method::POST,
        "/crawler/resource",
        Some(r#"{"name":"a","plugin":"puppet"}"#),
    );
    assert_eq!(add.status, 503, "{add:?}");
    assert!(
        add.text
            .contains("master-a-b-c-2 leads and does not answer"),
        "{add:?}"
    );
    assert!(begun.elapsed() < PATIENCE);
    assert!(cluster.keys("resources/").is_empty());
    leader.stop();
}

#[test]
fn a_worker_fetches_nothing_from_etcd_or_from_nodes_whatever_is_allowed() {
    let _turn = one_at_a_time();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let master = cluster.master("1", &[]);
    cluster.registered("master", 1);
    let worker = cluster.worker("1", &[]);
    cluster.registered("worker", 1);
    cluster.leader_beside(&[]);
    master.push(&cluster, "puppet");
    let outcome = |name: &str, start: &str| {
        let start = format!("start={start}");
        let add = [
            "resource",
            "add",
            name,
            "--plugin=puppet",
            "--param",
            &start,
        ];
        master.ok(&cluster, &add);
        until(&format!("the end of {name}"), PATIENCE, || {
            let is_over = ["Failed", "Finished"].contains(&phase(&master, name).as_str());
            is_over.then_some(())
        });
        let urls = format!("/crawler/resource/{name}/frontier/urls");
        let urls = master.http(Method::GET, &urls, None).json();
        text(&urls["urls"][0]["reason"]).to_owned()
    };
    // The worker looks each second until it has seen the masters, and does not report when it has.
    let mut n_tries = 0;
    until("a worker that knows the master", PATIENCE, || {
        n_tries += 1;
        let found = outcome(
            &format!("master-{n_tries}"),
            &format!("http://{}/", master.grpc),
        );
        (found == "own-node").then_some(())
    });
    let etcd = format!("{}/version", cluster.etcd.endpoints()[0]);
    for (name, url) in [
        ("etcd", etcd),
        ("http-of-master", format!("http://{}/healthz", master.http)),
        ("itself", format!("http://{}/healthz", worker.http)),
    ] {
        assert_eq!(outcome(name, &url), "own-node");
        let letters = format!("/crawler/resource/{name}/frontier/urls?state=dead");
        let letters = master.http(Method::GET, &letters, None).json();
        assert!(letters.to_string().contains("own-node"), "{letters}");
    }
}
