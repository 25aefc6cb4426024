//! Crawls in several parts, and the life of a resource, with processes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, UNIX_EPOCH};

use crawler_tests::cluster::{Cluster, Node};
use crawler_tests::http::text;
use crawler_tests::web::{Asked, HeaderMap, Hit, IntoResponse as _, Method, Site, StatusCode, Web};
use crawler_tests::{PATIENCE, until};
use serde_json::Value;

use crate::{add_endless, chains, goes_on, one_at_a_time, phase, three_masters, two_workers};

/// Number of hosts of the web: names of one server, which workers know from their config file.
pub(crate) const N_HOSTS: usize = 64;
/// Number of pages of each host.
pub(crate) const N_PAGES: usize = 5;
/// Delay between two requests to one host.
const DELAY: Duration = Duration::from_millis(50);

pub(crate) fn host(n: usize) -> String {
    format!("h{}.test", n % N_HOSTS)
}

/// Opens 64 hosts whose pages lead to each other: each page to the next of its host, to the first of the next
/// host, and to one of a host far away.
pub(crate) fn hosts() -> Web {
    let page = async |asked: Asked| {
        let (name, port) = name_and_port(&asked.headers);
        let of_name = name
            .strip_prefix('h')
            .and_then(|rest| rest.strip_suffix(".test"));
        let n = of_name.and_then(|n| n.parse::<usize>().ok());
        let page = asked.path[1..].parse::<usize>().ok();
        let (Some(n), Some(page)) = (n, page) else {
            return StatusCode::NOT_FOUND.into_response();
        };
        let link = |n: usize, page: usize| {
            format!(
                r#"{{"url": "http://{}:{port}/{}"}}"#,
                host(n),
                page % N_PAGES
            )
        };
        let links = [link(n, page + 1), link(n + 1, 0), link(n * 7 + 3, page)];
        format!("[{}]", links.join(",")).into_response()
    };
    Site::new().handle("/*", page).open()
}

/// Name and port of the server that was asked for.
fn name_and_port(headers: &HeaderMap) -> (String, String) {
    let asked = headers.get("host").and_then(|host| host.to_str().ok());
    let (name, port) = asked
        .and_then(|host| host.split_once(':'))
        .unwrap_or_default();
    (name.to_owned(), port.to_owned())
}

/// Returns the requests to each host.
fn by_host(web: &Web) -> BTreeMap<String, Vec<Hit>> {
    let mut by_host: BTreeMap<String, Vec<Hit>> = BTreeMap::new();
    for hit in web.log() {
        let (name, _) = name_and_port(&hit.headers);
        by_host.entry(name).or_default().push(hit);
    }
    by_host
}

#[track_caller]
fn add(master: &Node, name: &str, start: &str, shards: u32) {
    let delay = DELAY.as_millis();
    let body = format!(
        r#"{{"name":"{name}","plugin":"puppet","params":{{"start":"{start}"}},
            "crawl":{{"delay_ms":{delay},"max_depth":1000,"scope":["*.test"]}},"placement":{{"shards":{shards}}}}}"#
    );
    let answer = master.http(Method::POST, "/crawler/resource", Some(&body));
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// Returns the items of a finished crawl: the values of each page, without its depth, which is that of the link
/// that came first. No item occurs twice.
#[track_caller]
fn items(cluster: &Cluster, master: &Node, name: &str) -> BTreeSet<String> {
    until(&format!("the end of {name}"), PATIENCE, || {
        (phase(master, name) == "Finished").then_some(())
    });
    let lines = master.ok(cluster, &["items", name]);
    let urls: Vec<String> = lines
        .lines()
        .map(|line| {
            let item: Value = serde_json::from_str(line).expect("an item is JSON");
            text(&item["url"]).to_owned()
        })
        .collect();
    let all: BTreeSet<String> = urls.iter().cloned().collect();
    assert_eq!(all.len(), urls.len(), "an item is there twice");
    all
}

/// Returns the times of requests to one host that came too soon, by the fake web's log.
fn early(log: &[Hit]) -> Vec<Instant> {
    // The tolerance covers the clocks of two threads of one machine, and the time that a request is on its way.
    let tolerance = Duration::from_millis(15);
    let times = log.windows(2);
    let early = times
        .filter(|two| two[1].start.saturating_duration_since(two[0].start) + tolerance < DELAY);
    early.map(|two| two[1].start).collect()
}

#[test]
fn s20_four_shards_on_two_workers_give_the_items_of_one_though_a_worker_is_killed() {
    let _turn = one_at_a_time();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let masters = three_masters(&cluster);
    let config: String = (0..N_HOSTS)
        .map(|n| format!("\"{}\" = \"127.0.0.1\"\n", host(n)))
        .collect();
    cluster
        .home
        .write("hosts.toml", &format!("[hosts]\n{config}"));
    let mut workers = ["1", "2"].map(|id| cluster.worker(id, &["--config=hosts.toml"]));
    cluster.registered("worker", 2);
    let web = hosts();
    let url = |n: usize, page: usize| {
        let port = web.url("/").port().expect("a free one");
        format!("http://{}:{port}/{page}", host(n))
    };
    let start = url(0, 0);
    add(&masters[0], "parts", &start, 4);
    let owners: BTreeMap<String, usize> =
        cluster
            .owners()
            .into_iter()
            .fold(BTreeMap::new(), |mut sums, (_, owner)| {
                *sums.entry(owner).or_default() += 1;
                sums
            });
    assert_eq!(
        owners,
        [("worker-1".into(), 2), ("worker-2".into(), 2)].into()
    );
    until("a third of the crawl", PATIENCE, || {
        (web.log().len() > N_HOSTS * N_PAGES / 3).then_some(())
    });
    let killed_at = Instant::now();
    workers[0].process.kill();
    let parts = items(&cluster, &masters[1], "parts");
    assert_eq!(parts.len(), N_HOSTS * N_PAGES);
    // At most one request per host and hand-over is early, and none if nothing is handed over.
    let by_host = by_host(&web);
    assert_eq!(by_host.len(), N_HOSTS);
    for (host, log) in by_host {
        let early = early(&log);
        let is_after = early.iter().all(|at| *at > killed_at);
        assert!(early.len() <= 1 && is_after, "{host}: {early:?} of {log:?}");
    }
    add(&masters[2], "whole", &start, 1);
    assert_eq!(items(&cluster, &masters[0], "whole"), parts);
    // The state of the parts that was told while they ran is still told.
    let told = masters[0].ok(&cluster, &["resource", "get", "parts", "-o", "json"]);
    let told: Value = serde_json::from_str(&told).expect("an answer is JSON");
    assert_eq!(told["shards"].as_array().map(Vec::len), Some(4));
    assert_eq!(told["counts"]["parsed"], (N_HOSTS * N_PAGES) as u64);
    let stats = masters[0].ok(&cluster, &["frontier", "stats", "parts", "-o", "json"]);
    let stats: Value = serde_json::from_str(&stats).expect("an answer is JSON");
    assert_eq!(stats["counts"]["parsed"], (N_HOSTS * N_PAGES) as u64);
    let far = url(40, 3);
    let why = masters[0].ok(&cluster, &["frontier", "why", "parts", &far]);
    assert!(why.contains("done: parsed"), "{why}");
}

#[test]
fn a_paused_crawl_asks_for_nothing_and_a_drained_worker_has_nothing() {
    let _turn = one_at_a_time();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let masters = three_masters(&cluster);
    let workers = two_workers(&cluster);
    let web = chains();
    for name in ["a", "b"] {
        add_endless(&masters[0], name, &web);
        goes_on(&web, name, 3);
    }
    let paused = masters[1].ok(&cluster, &["resource", "pause", "a"]);
    assert_eq!(paused.trim(), "resource a is paused");
    until("a given back", PATIENCE, || {
        cluster
            .owners()
            .iter()
            .all(|(name, owner)| name != "a" || owner.is_empty())
            .then_some(())
    });
    let n_asked = web
        .log()
        .iter()
        .filter(|hit| hit.path.starts_with("/a/"))
        .count();
    goes_on(&web, "b", 10);
    let n_now = web
        .log()
        .iter()
        .filter(|hit| hit.path.starts_with("/a/"))
        .count();
    assert_eq!(n_now, n_asked);
    assert_eq!(phase(&masters[2], "a"), "Paused");
    masters[2].ok(&cluster, &["resource", "resume", "a"]);
    goes_on(&web, "a", 3);
    // The crawl went on where it was.
    assert_eq!(web.count("/a/0"), 1);
    let drained = masters[0].ok(&cluster, &["node", "drain", "worker-1"]);
    assert!(drained.starts_with("worker-1 drains; "), "{drained}");
    until("nothing on the first", PATIENCE, || {
        let owners = cluster.owners();
        (owners.len() == 2 && owners.iter().all(|(_, owner)| owner == "worker-2")).then_some(())
    });
    for name in ["a", "b"] {
        goes_on(&web, name, 3);
        let path = format!("/{name}/0");
        assert_eq!(web.count(&path), 1);
    }
    // The last worker may drain too; the answer says what becomes of its crawls.
    let drained = masters[0].ok(&cluster, &["node", "drain", "worker-2"]);
    assert_eq!(
        drained.trim(),
        "worker-2 drains; nobody else takes its 2 crawls, which wait until somebody does"
    );
    until("both waiting", PATIENCE, || {
        let waits = |name| phase(&masters[0], name) == "Pending";
        (waits("a") && waits("b")).then_some(())
    });
    masters[0].ok(&cluster, &["node", "drain", "worker-1", "--undo"]);
    for name in ["a", "b"] {
        goes_on(&web, name, 3);
    }
    drop(workers);
}

#[test]
fn s19_a_name_that_is_added_and_deleted_a_hundred_times_shows_nothing_of_its_lives_before() {
    let _turn = one_at_a_time();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let masters = three_masters(&cluster);
    let _workers = two_workers(&cluster);
    let web = chains();
    add_endless(&masters[0], "load", &web);
    let mut ids = BTreeSet::new();
    let began = Instant::now();
    for n in 0..100 {
        let master = &masters[n % 3];
        let life = format!("life-{n}");
        let start = web.url(&format!("/{life}/0"));
        // A life has one shard after one of two: nothing takes the place of the second.
        let shards = 1 + n / 10 % 2;
        let body = format!(
            r#"{{"name":"again","plugin":"puppet","params":{{"start":"{start}"}},
                "crawl":{{"delay_ms":0,"max_pages":3,"max_depth":1000}},
                "placement":{{"shards":{shards}}}}}"#
        );
        let since = UNIX_EPOCH.elapsed().expect("a clock of today").as_millis();
        let added = master.http(Method::POST, "/crawler/resource", Some(&body));
        assert_eq!(added.status, 200, "{added:?}");
        let seen = masters[(n + 1) % 3].http(Method::GET, "/crawler/resource/again", None);
        let seen = seen.json();
        assert!(ids.insert(text(&seen["spec"]["id"]).to_owned()));
        // Now and then the crawl reaches its items, which are those of this life alone.
        if n % 10 == 0 {
            let own = items(&cluster, master, "again");
            let of_life = |url: &&String| url.contains(&format!("/{life}/"));
            assert_eq!(own.iter().filter(of_life).count(), own.len(), "{own:?}");
            assert!(!own.is_empty());
            let logs = master.http(Method::GET, "/crawler/resource/again/logs", None);
            let lines: Vec<Value> = logs
                .text
                .lines()
                .map(|line| serde_json::from_str(line).expect("a line is JSON"))
                .collect();
            let is_own = |line: &Value| {
                line["at"]
                    .as_u64()
                    .is_some_and(|at| u128::from(at) >= since)
            };
            assert!(!lines.is_empty() && lines.iter().all(is_own), "{lines:?}");
            let urls = master.ok(&cluster, &["frontier", "list", "again"]);
            let is_own = |url: &str| url.starts_with(&format!("{n}/"));
            assert!(urls.split("/life-").skip(1).all(is_own), "{urls}");
        }
        let name = Some(r#"{"name":"again"}"#);
        let deleted = masters[(n + 2) % 3].http(Method::DELETE, "/crawler/resource", name);
        assert_eq!(deleted.status, 200, "{deleted:?}");
    }
    assert_eq!(ids.len(), 100);
    assert!(began.elapsed() < PATIENCE * 4, "{:?}", began.elapsed());
    goes_on(&web, "load", 5);
}
