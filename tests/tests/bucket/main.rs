//! Clusters whose processes share nothing but etcd and a bucket.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crawler_testing::s3::FaultPlan;
use crawler_tests::cluster::{Cluster, Node, faults};
use crawler_tests::http::text;
use crawler_tests::process::Home;
use crawler_tests::web::{Asked, Method, Site, Web};
use crawler_tests::{PATIENCE, soak, until};
use serde_json::Value;

mod moto;
mod namespace;
mod parts;
mod trouble;

/// Config of nodes that report early that the store does not answer.
const IMPATIENT: &str = "[data]\nrequest-timeout = \"3s\"\nretry-timeout = \"2s\"\n";
/// Number of pages of the site.
const N_PAGES: usize = 300;

/// Lets one test run at a time: its processes are enough for one machine.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens a site of pages that lead to each other.
fn site() -> Web {
    site_at((Ipv4Addr::LOCALHOST, 0).into())
}

fn site_at(address: SocketAddr) -> Web {
    let page = |asked: Asked| async move {
        let n: usize = asked.path[1..].parse().expect("pages are numbers");
        let links = [n + 1, n * 7 + 3, n * 13 + 5].map(|n| n % N_PAGES);
        let links = links.map(|n| format!(r#"{{"url": "/{n}"}}"#));
        format!("[{}]", links.join(","))
    };
    Site::new().handle("/*", page).open_at(address)
}

/// Nodes of a cluster, each in a working folder of its own.
struct Machines {
    nodes: BTreeMap<String, (Home, Node)>,
    cluster: Cluster,
}

impl Machines {
    /// Starts masters and workers on a bucket with these faults. If etcd is not installed, it says so and returns
    /// `None`.
    fn new(n_masters: usize, n_workers: usize, plan: FaultPlan) -> Option<Self> {
        let mut machines = Self {
            nodes: BTreeMap::new(),
            cluster: Cluster::new()?.in_bucket(plan),
        };
        for n in 1..=n_masters {
            machines.start("master", n);
        }
        for n in 1..=n_workers {
            machines.start("worker", n);
        }
        machines.cluster.registered("master", n_masters);
        machines.cluster.registered("worker", n_workers);
        machines.cluster.leader_beside(&[]);
        machines.master(1).push(&machines.cluster, "puppet");
        Some(machines)
    }

    fn start(&mut self, role: &str, n: usize) {
        let home = Home::new();
        home.write("crawler.toml", IMPATIENT);
        let allow = ["--allow-networks=127.0.0.0/8"];
        let arguments: &[&str] = if role == "worker" { &allow } else { &[] };
        let node = self
            .cluster
            .start_at(&home, role, &n.to_string(), arguments);
        self.nodes.insert(node.id.clone(), (home, node));
    }

    fn master(&self, n: usize) -> &Node {
        &self.nodes[&format!("master-{n}")].1
    }

    /// Kills a node and removes its working folder, as if its machine were lost.
    fn lose(&mut self, id: &str) {
        let lost = self.nodes.remove(id);
        let (_home, mut node) = lost.expect("the node is there");
        node.process.kill();
    }

    #[track_caller]
    fn add(&self, name: &str, web: &Web, delay_ms: u64) {
        let start = web.url("/0");
        let body = format!(
            r#"{{"name":"{name}","plugin":"puppet","params":{{"start":"{start}"}},"crawl":{{"delay_ms":{delay_ms},"max_depth":1000}}}}"#
        );
        let added = self
            .master(1)
            .http(Method::POST, "/crawler/resource", Some(&body));
        assert_eq!(added.status, 200, "{added:?}");
    }

    fn owner(&self) -> Option<String> {
        let (_, owner) = self.cluster.owners().first()?.clone();
        (!owner.is_empty()).then_some(owner)
    }

    #[track_caller]
    fn pages(&self, name: &str) -> BTreeSet<String> {
        pages(&self.cluster, self.master(1), name)
    }
}

/// Waits for the end of a crawl, and returns the URLs of the pages with items. No item may be stored twice.
#[track_caller]
fn pages(cluster: &Cluster, master: &Node, name: &str) -> BTreeSet<String> {
    let ended = master.cli(cluster, &["resource", "wait", name]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let lines = master.ok(cluster, &["items", name]);
    let urls = lines.lines().map(|line| {
        let item: Value = serde_json::from_str(line).expect("an item is JSON");
        text(&item["url"]).to_owned()
    });
    let urls: Vec<String> = urls.collect();
    let all: BTreeSet<String> = urls.iter().cloned().collect();
    assert_eq!(all.len(), urls.len(), "an item is there twice");
    all
}

fn all_pages(web: &Web) -> BTreeSet<String> {
    (0..N_PAGES)
        .map(|n| web.url(&format!("/{n}")).to_string())
        .collect()
}

#[test]
fn s30_machines_that_share_only_a_bucket_survive_a_lost_one() {
    let _turn = one_at_a_time();
    let Some(mut machines) = Machines::new(3, 4, FaultPlan::default()) else {
        return;
    };
    let web = site();
    machines.add("site", &web, 5);
    let mut follow = machines
        .master(2)
        .command(&machines.cluster, &["items", "site", "--follow"]);
    web.wait_for("a third of the pages", PATIENCE, |log| {
        log.len() > N_PAGES / 3
    });
    let owner = until("an owner", PATIENCE, || machines.owner());
    machines.lose(&owner);
    assert_eq!(machines.pages("site"), all_pages(&web));
    let followed = follow.wait(PATIENCE);
    assert_eq!(followed.code, Some(0), "{}", followed.stderr);
    assert_eq!(followed.stdout.lines().count(), N_PAGES);
    // The new owner fetches only a few pages again that the lost one had fetched.
    assert!(web.log().len() < 2 * N_PAGES, "{}", web.log().len());
    let why = web.url("/7").to_string();
    let why = machines
        .master(3)
        .ok(&machines.cluster, &["frontier", "why", "site", &why]);
    assert!(why.contains("done: parsed"), "{why}");
    // Another run, and its items beside those of the first.
    machines
        .master(1)
        .ok(&machines.cluster, &["resource", "restart", "site"]);
    assert_eq!(machines.pages("site"), all_pages(&web));
    let first = machines
        .master(1)
        .ok(&machines.cluster, &["items", "site", "--run", "1"]);
    assert_eq!(first.lines().count(), N_PAGES);
    machines.master(1).ok(
        &machines.cluster,
        &["resource", "delete", "site", "--purge"],
    );
    let gone = until("the end of its items", PATIENCE, || {
        let ended = machines
            .master(1)
            .cli(&machines.cluster, &["items", "site"]);
        (ended.code != Some(0)).then_some(ended.stderr)
    });
    assert!(gone.contains("site"), "{gone}");
}

#[test]
fn kills_and_faults_of_the_store_lose_no_item() {
    let _turn = one_at_a_time();
    let Some(mut machines) = Machines::new(1, 1, faults()) else {
        return;
    };
    let web = site();
    machines.add("site", &web, 20);
    let n_kills = if soak() { 20 } else { 3 };
    for n in 1..=n_kills {
        let before = web.log().len();
        web.wait_for("further pages", PATIENCE, |log| {
            log.len() > before + N_PAGES / 2 / n_kills
        });
        machines.lose(&format!("worker-{n}"));
        machines.start("worker", n + 1);
    }
    assert_eq!(machines.pages("site"), all_pages(&web));
    let faults = machines.cluster.bucket().requests().faults;
    assert!(faults > 0, "nothing has happened");
}
