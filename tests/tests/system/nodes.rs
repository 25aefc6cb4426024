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
