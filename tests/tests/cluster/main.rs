//! Masters and workers as processes of their own, on a real etcd. Claims are checked at their effects: with
//! etcdctl, in the answers, in the log of the fake web.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crawler_tests::cluster::{Cluster, Node};
use crawler_tests::http::{Answer, text};
use crawler_tests::web::{Asked, Hit, Method, Site, Web};
use crawler_tests::{PATIENCE, until};
use serde_json::Value;

mod backup;
mod bad_input;
mod calls;
mod course;
mod etcd_users;
mod golden;
mod guarded;
mod hour;
mod joining;
mod masters;
mod outage;
mod recovery;
mod shards;
mod upgrade;
mod workers;

/// Lets one test run at a time: its processes are enough for one machine.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Flag that lets a crawl follow endless chains.
const DEEP: &str = "--max-depth=4000000000";

/// Opens endless chains of pages, one for each first part of a path: `/books/0`, `/books/1`, ….
fn chains() -> Web {
    let page = |asked: Asked| async move {
        let (chain, n) = asked.path.rsplit_once('/').expect("paths have two parts");
        let n: u64 = n.parse().expect("pages are numbers");
        format!(r#"[{{"url": "{chain}/{}"}}]"#, n + 1)
    };
    Site::new().handle("/*", page).open()
}

/// Opens a chain of pages that ends: `/0`, `/1` and so on.
fn chain(n_pages: usize) -> Web {
    let page = move |asked: Asked| async move {
        let n: usize = asked.path[1..].parse().expect("pages are numbers");
        match n + 1 {
            next if next < n_pages => format!(r#"[{{"url": "/{next}"}}]"#),
            _ => "[]".to_owned(),
        }
    };
    Site::new().handle("/*", page).open()
}

/// Adds a crawl of a chain that ends, with one page each 50 ms.
#[track_caller]
fn add_chain(master: &Node, name: &str, web: &Web) {
    let start = web.url("/0");
    let body = format!(
        r#"{{"name":"{name}","plugin":"puppet","params":{{"start":"{start}"}},"crawl":{{"delay_ms":50,"max_depth":1000}}}}"#
    );
    let answer = master.http(Method::POST, "/crawler/resource", Some(&body));
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// Waits until a crawl of a chain has finished, and checks that it has an item for each page.
#[track_caller]
fn check_chain(cluster: &Cluster, master: &Node, name: &str, web: &Web, n_pages: usize) {
    until(&format!("the end of {name}"), PATIENCE, || {
        (phase(master, name) == "Finished").then_some(())
    });
    let items = master.ok(cluster, &["items", name]);
    let urls = items.lines().map(|line| {
        let item: Value = serde_json::from_str(line).expect("an item is JSON");
        text(&item["url"]).to_owned()
    });
    let mut urls: Vec<String> = urls.collect();
    urls.sort_unstable();
    let all = (0..n_pages).map(|n| web.url(&format!("/{n}")).to_string());
    let mut all: Vec<String> = all.collect();
    all.sort_unstable();
    assert_eq!(urls, all);
}

/// Returns the requests of one chain.
fn of_chain<'a>(log: &'a [Hit], name: &'a str) -> impl Iterator<Item = &'a Hit> {
    let start = format!("/{name}/");
    log.iter().filter(move |hit| hit.path.starts_with(&start))
}

/// Adds an endless crawl of the chain of its name, with one page each 50 ms.
#[track_caller]
fn add_endless(master: &Node, name: &str, web: &Web) -> Answer {
    let start = web.url(&format!("/{name}/0"));
    let body = format!(
        r#"{{"name":"{name}","plugin":"puppet","params":{{"start":"{start}"}},"crawl":{{"delay_ms":50,"max_depth":4000000000}}}}"#
    );
    let answer = master.http(Method::POST, "/crawler/resource", Some(&body));
    assert_eq!(answer.status, 200, "{answer:?}");
    answer
}

/// Waits for `n_more` further requests of a chain.
#[track_caller]
fn goes_on(web: &Web, name: &str, n_more: usize) {
    let before = of_chain(&web.log(), name).count();
    web.wait_for(&format!("further pages of {name}"), PATIENCE, |log| {
        of_chain(log, name).count() >= before + n_more
    });
}

/// Starts three masters, all registered, and pushes the guest `puppet` through the last.
#[track_caller]
fn three_masters(cluster: &Cluster) -> Vec<Node> {
    let masters: Vec<Node> = ["1", "2", "3"].map(|id| cluster.master(id, &[])).into();
    cluster.registered("master", 3);
    cluster.leader_beside(&[]);
    masters[2].push(cluster, "puppet");
    masters
}

/// Takes the master that leads out of these. Masters that have ended do not count, though their keys may still
/// exist.
#[track_caller]
fn take_leader(cluster: &Cluster, masters: &mut Vec<Node>, gone: &[&str]) -> Node {
    let leader = cluster.leader_beside(gone);
    let place = masters.iter().position(|master| master.id == leader);
    masters.remove(place.expect("one of them leads"))
}

/// Starts two workers, and waits until they are registered.
#[track_caller]
fn two_workers(cluster: &Cluster) -> Vec<Node> {
    let workers = ["1", "2"].map(|id| cluster.worker(id, &[])).into();
    cluster.registered("worker", 2);
    workers
}

/// Returns the phase of a resource, as a master tells it.
#[track_caller]
fn phase(master: &Node, name: &str) -> String {
    let path = format!("/crawler/resource/{name}");
    let resource = master.http(Method::GET, &path, None);
    assert_eq!(resource.status, 200, "{resource:?}");
    text(&resource.json()["phase"]).to_owned()
}

/// Returns a second more than the time that a lease lives without renewals.
fn lease_and_a_second() -> Duration {
    crawler_tests::cluster::LEASE_TTL + Duration::from_secs(1)
}
