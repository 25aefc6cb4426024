//! Growth with workers: pages per second of two workers on two cores, beside one worker on one.
//!
//! ```text
//! tests/run bench workers
//! CRAWLER_BIN=PROGRAM cargo bench -p crawler-tests --bench workers
//! ```
//!
//! There are two clusters. The small one runs on core 0. The large one runs on cores 0 and 1, and each of its workers on
//! one of them, where `taskset` keeps it. The etcd, the master and the site of a cluster run on all of its cores. Cores 0
//! and 1 must not be threads of one core. A crawl has four shards, two for each worker of the large cluster, with as many
//! hosts in each. Their pages lead to each other, so that workers send links to each other too. The time of a crawl ends
//! with the last page that is asked for. The clusters take turns, and the other one only keeps its leases meanwhile. The
//! first round warms up and is not counted. Settings, with their defaults:
//!
//! ```text
//! CRAWLER_WORKERS_ROUNDS=5      rounds that are counted
//! CRAWLER_WORKERS_PAGES=40000   pages of a crawl
//! ```

#![expect(clippy::print_stdout, reason = "a benchmark reports to its terminal")]

use std::process::{Command, ExitCode};

use crawler_tests::cluster::{Cluster, Node};
use crawler_tests::peers::{median, order};
use crawler_tests::{is_benchmark, number, skipped};

#[path = "common/ring.rs"]
mod ring;

/// Sides of the comparison: name, and the core of each worker.
const SIDES: [(&str, &[&str]); 2] = [("one worker", &["0"]), ("two workers", &["0", "1"])];

/// A cluster on its cores.
struct Side {
    name: &'static str,
    cores: String,
    cluster: Cluster,
    master: Node,
    _workers: Vec<Node>,
}

fn main() -> ExitCode {
    if !is_benchmark("workers") {
        return ExitCode::SUCCESS;
    }
    // A core that is not there is not missed beside one that is.
    let missing = ["0", "1"].into_iter().find_map(|core| pin(core).err());
    if let Some(why) = missing {
        skipped("taskset", &why);
        return ExitCode::SUCCESS;
    }
    let [Some(one), Some(two)] = SIDES.map(|(name, cores)| Side::start(name, cores)) else {
        return ExitCode::SUCCESS;
    };
    let sides = [one, two];
    let n_pages = number("CRAWLER_WORKERS_PAGES", 40_000);
    let mut ratios = Vec::new();
    for round in 0..=number("CRAWLER_WORKERS_ROUNDS", 5) {
        let mut rates = [0.0; SIDES.len()];
        for at in order(sides.len(), round as usize) {
            rates[at] = sides[at].pages(round, n_pages);
            println!(
                "round {round}, {}: {:.0} pages/s",
                sides[at].name, rates[at]
            );
        }
        if round > 0 {
            ratios.push(rates[1] / rates[0]);
        }
    }
    println!(
        "median of the ratios within a round, two workers to one: {:.2}",
        median(ratios)
    );
    ExitCode::SUCCESS
}

impl Side {
    /// Starts a cluster with one worker on each of these cores. If etcd is not installed, it says so and returns `None`.
    fn start(name: &'static str, cores: &[&str]) -> Option<Self> {
        let all = cores.join(",");
        move_to(&all);
        let cluster = Cluster::new()?;
        let master = cluster.master("1", &["--api-rate=0"]);
        let workers = cores.iter().map(|core| {
            move_to(core);
            cluster.worker(core, &[])
        });
        let workers: Vec<Node> = workers.collect();
        move_to(&all);
        cluster.registered("worker", cores.len());
        cluster.leader_beside(&[]);
        master.push(&cluster, "puppet");
        Some(Self {
            name,
            cores: all,
            cluster,
            master,
            _workers: workers,
        })
    }

    /// Crawls a site, and returns its pages per second.
    fn pages(&self, round: u64, n_pages: u64) -> f64 {
        move_to(&self.cores);
        ring::crawl(&format!("site-{round}"), n_pages, |arguments| {
            self.master.ok(&self.cluster, arguments);
        })
    }
}

fn move_to(cores: &str) {
    pin(cores).unwrap_or_else(|why| panic!("{why}"));
}

/// Pins all threads of this process to these cores. The site and all processes that start later inherit that. A program
/// counts the cores that it may use when it starts.
fn pin(cores: &str) -> Result<(), String> {
    let own = std::process::id().to_string();
    let ended = Command::new("taskset")
        .args(["--all-tasks", "--cpu-list", "--pid", cores, &own])
        .output()
        .map_err(|e| format!("taskset, of util-linux, does not start: {e}"))?;
    match ended.status.success() {
        true => Ok(()),
        false => Err(format!(
            "this process may not run on cores {cores}: {}",
            String::from_utf8_lossy(&ended.stderr).trim()
        )),
    }
}
