//! Nodes: which are there, since when, and their totals.

use crawler_tests::{PATIENCE, until};
use serde_json::Value;

use crate::server::{Server, text};
use crate::sites::{self, Gate};

fn worker(server: &Server) -> Value {
    // A worker may report its totals between the two calls.
    let list = until("the same at both interfaces", PATIENCE, || {
        let list = server.ok(&["node", "list", "-o", "json"]);
        let list: Value = serde_json::from_str(&list).expect("it is JSON");
        (list == server.get("/crawler/node").json()).then_some(list)
    });
    let nodes = list["nodes"].as_array().expect("it is a list");
    let roles: Vec<&str> = nodes.iter().map(|node| text(&node["role"])).collect();
    assert_eq!(roles, ["master", "worker"]);
    assert_eq!(nodes[0]["totals"], Value::Null);
    nodes[1].clone()
}

#[test]
fn node_list_shows_who_leads_since_when_and_how_much_each_worker_has() {
    let gate = Gate::closed();
    let web = sites::gated_chain(4, 3, &gate).open();
    let server = Server::with_puppet();
    server.add("a", &web.url("/0"), &["--delay=1ms", "--weight=7"]);
    let list = server.ok(&["node", "list"]);
    let rows: Vec<Vec<&str>> = list
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let head = [
        "NODE", "ROLE", "ADDRESS", "LEADS", "LOAD", "WEIGHT", "SINCE", "VERSION",
    ];
    assert_eq!(rows[0], head, "{list}");
    let [master, worker_row] = &rows[1..] else {
        panic!("{list}")
    };
    assert_eq!(
        (&master[..2], master[3]),
        (&["master-1", "master"][..], "leader")
    );
    assert_eq!(&worker_row[..3], ["worker-1", "worker", server.grpc()]);
    assert!(worker_row[3].starts_with("1/"), "{list}");
    assert_eq!(worker_row[4], "7");
    let since = worker_row[5];
    assert!(
        since.len() == 20 && since.starts_with("20") && since.ends_with('Z'),
        "{list}"
    );
    // Three pages are done, and the fourth is held.
    let node = until("the totals of three pages", PATIENCE, || {
        let node = worker(&server);
        (node["totals"]["pages"] == 3).then_some(node)
    });
    assert_eq!(node["totals"]["running"], 1, "{node}");
    assert_eq!(node["weight"], 7);
    gate.open();
    server.finished("a");
    let list = server.ok(&["node", "list"]);
    assert!(!list.contains("WEIGHT"), "{list}");
}

#[test]
fn lists_come_in_pages_and_filtered() {
    let server = Server::start();
    for version in ["1.0.0", "1.1.0", "2.0.0"] {
        server.push("puppet", &[&format!("--as=team/books@{version}")]);
    }
    server.push("puppet", &["--as=other@1.0.0"]);
    let mut versions = Vec::new();
    let mut token = String::new();
    loop {
        let path = format!("/crawler/plugin?prefix=team/&page_size=2&page_token={token}");
        let page = server.get(&path).json();
        let plugins = page["plugins"].as_array().expect("it is a list").clone();
        assert!(plugins.len() <= 2);
        versions.extend(
            plugins
                .iter()
                .map(|plugin| text(&plugin["version"]).to_owned()),
        );
        token = text(&page["next_page_token"]).to_owned();
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(versions, ["1.0.0", "1.1.0", "2.0.0"]);
    let listed = server.ok(&["plugin", "list", "--prefix", "o"]);
    assert!(
        listed.contains("other") && !listed.contains("team/books"),
        "{listed}"
    );
    let first = server.get("/crawler/node?page_size=1").json();
    assert_eq!(first["nodes"][0]["role"], "master");
    let token = text(&first["next_page_token"]);
    let second = server
        .get(&format!("/crawler/node?page_size=1&page_token={token}"))
        .json();
    assert_eq!(second["nodes"][0]["role"], "worker");
    assert_eq!(second["next_page_token"], "");
    let workers = server.ok(&["node", "list", "--role", "worker", "-l", "id=worker-1"]);
    assert!(
        workers.contains("worker-1") && !workers.contains("master-1"),
        "{workers}"
    );
    let added = server.cli(&[
        "resource",
        "add",
        "shop",
        "--plugin=other",
        "--param=start=http://a.test/",
        // No worker has it, so that nothing happens meanwhile.
        "--selector=gpu=true",
    ]);
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    server.ok(&["resource", "pause", "shop"]);
    for (filter, is_there) in [
        ("--phase=paused", true),
        ("--phase=failed", false),
        ("--plugin=other@1.0.0", true),
        ("--prefix=b", false),
    ] {
        let listed = server.ok(&["resource", "list", filter]);
        assert_eq!(listed.contains("shop"), is_there, "{filter}: {listed}");
    }
}

#[test]
fn the_versions_of_all_nodes_are_shown() {
    let server = Server::start();
    let text = server.ok(&["version", "--cluster"]);
    let own = server.home.ok(["version"]);
    assert!(text.starts_with(&own), "{text}");
    let version = own.trim_end().trim_start_matches("crawler ");
    let rows: Vec<Vec<&str>> = text
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().collect())
        .collect();
    let expected = [
        ["NODE", "ROLE", "VERSION"],
        ["master-1", "master", version],
        ["worker-1", "worker", version],
    ];
    assert_eq!(rows, expected);
    let json = server.ok(&["version", "--cluster", "--json"]);
    let json: Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(
        (&json["program"], &json["mixed"]),
        (&version.into(), &false.into())
    );
}
