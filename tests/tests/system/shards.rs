//! Crawls in several parts on one machine: their pace, their numbers, their life.

use std::collections::BTreeSet;

use crawler_tests::process::Home;
use crawler_tests::web::{Asked, Method, Site, StatusCode};
use crawler_tests::{PATIENCE, until};
use serde_json::{Value, json};

use crate::server::{Server, text};
use crate::sites::{self, Gate};

/// Number of hosts, so large that each of 32 shards has some.
const N_HOSTS: usize = 512;

/// Starts a master and a worker that know many hosts by name.
fn server() -> Server {
    let home = Home::new();
    let hosts = (0..N_HOSTS).map(|n| format!("\"h{n}.test\" = \"127.0.0.1\"\n"));
    let config = format!("[hosts]\n{}", hosts.collect::<String>());
    home.write("crawler.toml", &config);
    let server = Server::start_in(home, &["--config=crawler.toml"]);
    server.push("puppet", &[]);
    server
}

/// Returns the links of a page that leads to the page `/host` of each host.
fn to_all_hosts(asked: &Asked) -> String {
    let host = asked
        .headers
        .get("host")
        .and_then(|host| host.to_str().ok());
    let (_, port) = host.and_then(|host| host.split_once(':')).expect("a port");
    let links = (0..N_HOSTS).map(|n| json!({"url": format!("http://h{n}.test:{port}/host")}));
    Value::Array(links.collect()).to_string()
}

fn in_flight(resource: &Value) -> Vec<u64> {
    let shards = resource["shards"].as_array().expect("a list");
    let in_flight = shards.iter().map(|shard| &shard["counts"]["in_flight"]);
    in_flight.map(|n| n.as_u64().expect("a number")).collect()
}

#[test]
fn each_shard_has_as_many_pages_under_way_as_its_resource_allows() {
    let gate = Gate::closed();
    let held = gate.clone();
    let web = Site::new()
        .handle("/", async |asked| to_all_hosts(&asked))
        .handle("/host", move |_| {
            let held = held.clone();
            async move {
                held.pass().await;
                "[]"
            }
        })
        .open();
    let server = server();
    let scope = ["--shards=4", "--concurrency=3", "--scope=*"];
    server.add("wide", &web.url("/"), &scope);
    until("three pages in each shard", PATIENCE, || {
        (in_flight(&server.resource("wide")) == [3; 4]).then_some(())
    });
    web.wait_for("their requests", PATIENCE, |log| {
        log.iter().filter(|hit| hit.path == "/host").count() >= 12
    });
    // Another crawl of the same worker comes to its end meanwhile, so more requests would be under way by now.
    let other = sites::chain(10).open();
    server.add("other", &other.url("/0"), &[]);
    server.finished("other");
    assert_eq!(in_flight(&server.resource("wide")), [3; 4]);
    assert_eq!(web.count("/host"), 12);
    gate.open();
    let wide = server.finished("wide");
    assert_eq!(wide["counts"]["parsed"], json!(N_HOSTS + 1));
    assert_eq!(web.count("/host"), N_HOSTS);
}

#[test]
fn a_resource_of_32_shards_is_crawled_restarted_and_deleted_as_one() {
    let web = Site::new()
        .handle("/", async |asked| to_all_hosts(&asked))
        .handle("/host", async |_| "[]")
        .open();
    let server = server();
    let flags = ["--shards=32", "--scope=*", "--delay=1ms"];
    server.add("wide", &web.url("/"), &flags);
    for run in [1, 2_usize] {
        let wide = server.finished("wide");
        assert_eq!(wide["run"], json!(run));
        assert_eq!(wide["counts"]["parsed"], json!(N_HOSTS + 1));
        let shards = wide["shards"].as_array().expect("a list");
        let has_own = |shard: &Value| {
            shard["state"] == "finished" && shard["counts"]["parsed"].as_u64() > Some(0)
        };
        assert!(shards.len() == 32 && shards.iter().all(has_own), "{wide}");
        assert_eq!(web.count("/host"), run * N_HOSTS);
        let items = server.items("wide");
        let urls: BTreeSet<&str> = items.iter().map(|item| text(&item["url"])).collect();
        assert_eq!(urls.len(), N_HOSTS + 1);
        if run == 1 {
            server.ok(&["resource", "restart", "wide"]);
            until("the second run", PATIENCE, || {
                (server.resource("wide")["run"] == 2).then_some(())
            });
        }
    }
    let shown = server.ok(&["resource", "get", "wide"]);
    for n in 0..32 {
        let line = format!("\nshard {n:<4} worker-1, epoch ");
        assert!(shown.contains(&line), "{shown}");
    }
    let id = text(&server.resource("wide")["spec"]["id"]).to_owned();
    let folder = server.home.path().join("crawler-data/items").join(&id);
    assert!(folder.is_dir());
    server.ok(&["resource", "delete", "wide", "--purge"]);
    until("end of the items", PATIENCE, || {
        (!folder.exists()).then_some(())
    });
    let gone = server.http(Method::GET, "/crawler/resource/wide", None);
    assert_eq!(gone.status, 404, "{gone:?}");
    assert_eq!(server.load(), 0);
}

#[test]
fn a_running_shard_is_told_with_its_owner_epoch_and_last_errors() {
    let gate = Gate::closed();
    let held = gate.clone();
    let web = Site::new()
        .page("/", r#"[{"url": "/refused"}, {"url": "/late"}]"#)
        .handle("/refused", async |_| StatusCode::FORBIDDEN)
        .handle("/late", move |_| {
            let held = held.clone();
            async move {
                held.pass().await;
                "[]"
            }
        })
        .open();
    let server = Server::with_puppet();
    server.add("books", &web.url("/"), &["--delay=1ms"]);
    let shard = until("an error that is told", PATIENCE, || {
        let shard = server.resource("books")["shards"][0].clone();
        let counts = &shard["counts"];
        let errors = shard["last_errors"].as_array().map_or(0, Vec::len);
        let is_there = counts["parsed"] == 1 && counts["dead"] == 1 && counts["due"] == 1;
        (is_there && errors > 0).then_some(shard)
    });
    let known = json!([
        shard["shard"],
        shard["owner"],
        shard["epoch"],
        shard["state"],
        shard["reason"],
        shard["live"]
    ]);
    assert_eq!(known, json!([0, "worker-1", 1, "assigned", "", true]));
    let error = &shard["last_errors"][0];
    let refused = web.url("/refused");
    assert_eq!(error["url"], refused.as_str());
    let message = "given up after attempt 1: status-403";
    assert_eq!(
        (&error["level"], &error["message"]),
        (&json!("warn"), &json!(message))
    );
    let shown = server.ok(&["resource", "get", "books"]);
    let line = "\nshard 0    worker-1, epoch 1, assigned, 2 pages, 1 waiting\nlog ";
    assert!(shown.contains(line), "{shown}");
    assert!(
        shown.contains(&format!("warn {refused} {message}\n")),
        "{shown}"
    );
    gate.open();
    server.finished("books");
}
