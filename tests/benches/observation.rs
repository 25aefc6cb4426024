//! Cost of being looked at: metrics that are read, traces, and a page that is open.
//!
//! ```text
//! tests/run bench observation
//! CRAWLER_BIN=PROGRAM cargo bench -p crawler-tests --bench observation
//! ```
//!
//! The first part compares the processor time per page of three `crawler up` that take turns: one is left alone, one is asked
//! for its metrics every second, and one sends the traces of 1 % of its pages to a receiver in this process. The first round
//! warms up and is not counted. Idle ones only keep their leases meanwhile. Pages per second are shown too; they also depend
//! on the site and the receiver, which have the same cores.
//!
//! The second part has an etcd, a master and a worker. Each resource has a host of its own, which gets a request every ten
//! seconds. The processor time of the master is measured without a page, with one in a browser at the overview and at the
//! list of the resources, and without one again. Then resources are added that no worker may have, and the metrics of both
//! processes are read once the master is quiet. Without etcd, Node.js or Chromium, what needs it is left out. Settings, with
//! their defaults:
//!
//! ```text
//! CRAWLER_OBSERVATION_ROUNDS=7         rounds that are counted
//! CRAWLER_OBSERVATION_PAGES=40000      pages of a crawl
//! CRAWLER_OBSERVATION_RESOURCES=1000   resources that are crawled while the page is open
//! CRAWLER_OBSERVATION_ALL=10000        resources whose metrics are read
//! CRAWLER_OBSERVATION_SECONDS=60       time of each look at the processor; a master looks at all records once a minute
//! ```

#![expect(clippy::print_stdout, reason = "a benchmark reports to its terminal")]

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crawler_testing::otlp::Receiver;
use crawler_tests::chromium::Dialogue;
use crawler_tests::cluster::{Cluster, Node};
use crawler_tests::http::ask;
use crawler_tests::peers::{median, order};
use crawler_tests::process::Home;
use crawler_tests::up::Up;
use crawler_tests::web::{Asked, Method, Site, Web};
use crawler_tests::{guests, is_benchmark, number, pass, repository, until};
use serde_json::{Value, json};

#[path = "common/cpu.rs"]
mod cpu;
#[path = "common/ring.rs"]
mod ring;

/// Time between two reads of the metrics.
const SCRAPE: Duration = Duration::from_secs(1);
/// Number of times that the metrics of a process with many resources are read.
const N_READS: usize = 20;
/// Time until all resources are crawled.
const DEADLINE: Duration = Duration::from_secs(300);

fn main() -> ExitCode {
    if !is_benchmark("observation") {
        return ExitCode::SUCCESS;
    }
    compare();
    look();
    ExitCode::SUCCESS
}

/// Compares crawls that are left alone with those that are looked at.
fn compare() {
    let n_pages = number("CRAWLER_OBSERVATION_PAGES", 40_000);
    let receiver = Receiver::start();
    let homes = [Home::new(), Home::new(), Home::new()];
    let traces = format!(
        "[traces]\nendpoint = '{}'\nsample = 0.01\n",
        receiver.endpoint()
    );
    homes[2].write("traces.toml", &traces);
    let config = homes[2].path().join("traces.toml").display().to_string();
    let names = ["alone", "metrics read", "traces sent"];
    let arguments: [&[&str]; 3] = [&[], &[], &["--config", &config]];
    let sides: Vec<Up> = homes
        .iter()
        .zip(arguments)
        .map(|(home, arguments)| {
            let up = Up::start(home, arguments);
            up.ok([
                "plugin",
                "push",
                &guests::guest("puppet").display().to_string(),
            ]);
            up
        })
        .collect();
    let mut ratios = [Vec::new(), Vec::new()];
    for round in 0..=number("CRAWLER_OBSERVATION_ROUNDS", 7) {
        let mut times = [0.0; 3];
        for at in order(sides.len(), round as usize) {
            let up = &sides[at];
            let before = cpu::used(up.process.id());
            let crawl = || {
                ring::crawl(&format!("site-{round}"), n_pages, |arguments| {
                    up.ok(arguments);
                })
            };
            let rate = match at {
                1 => while_read(&metrics_of(up), crawl),
                _ => crawl(),
            };
            let used = cpu::used(up.process.id()) - before;
            times[at] = used.as_secs_f64() * 1e6 / n_pages as f64;
            println!(
                "round {round}, {}: {:.1} us of processor a page, {rate:.0} pages/s",
                names[at], times[at]
            );
        }
        if round > 0 {
            for (n, ratios) in ratios.iter_mut().enumerate() {
                ratios.push(times[n + 1] / times[0]);
            }
        }
    }
    assert!(receiver.n_calls() > 0, "no trace was sent");
    println!(
        "processor time, to the one that is left alone; medians of the ratios within a round:"
    );
    for (name, ratios) in names[1..].iter().zip(ratios) {
        let (least, most) = spread(&ratios);
        println!("  {name}: {:.3} ({least:.3} to {most:.3})", median(ratios));
    }
}

fn spread(ratios: &[f64]) -> (f64, f64) {
    let spread = |(least, most): (f64, f64), ratio: &f64| (least.min(*ratio), most.max(*ratio));
    ratios.iter().fold((f64::MAX, 0.0), spread)
}

fn metrics_of(up: &Up) -> String {
    let http = up.process.word_after("http=", DEADLINE);
    format!("http://{http}/metrics")
}

/// Does some work while metrics are read again and again.
fn while_read<R>(metrics: &str, work: impl FnOnce() -> R) -> R {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                assert_eq!(ask(Method::GET, metrics, None).status, 200);
                pass(SCRAPE);
            }
        });
        // Also if the work panics: the scope waits for the reader.
        let _over = Over(&is_over);
        work()
    })
}

/// Tells a reader that the work is over, when it is dropped.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Measures the processor time of a master whose page is open, and its metrics.
fn look() {
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let master = cluster.master("1", &["--api-rate=0"]);
    let worker = cluster.worker("1", &[]);
    cluster.registered("worker", 1);
    cluster.leader_beside(&[]);
    master.push(&cluster, "puppet");
    let web = open_site();
    let n_crawled = number("CRAWLER_OBSERVATION_RESOURCES", 1_000);
    for n in 0..n_crawled {
        add(&master, n, &web, &json!({}));
    }
    until("a request of each resource", DEADLINE, || {
        (web.count("/0") as u64 >= n_crawled).then_some(())
    });
    // What the additions have begun is over by the second look.
    let alone = [share(&master), share(&master)][1];
    println!("{n_crawled} resources: the master uses {alone:.2} % of a core without a page");
    let script = repository().join("tests/tests/cluster/hour/page.mjs");
    let address = format!("http://{}", master.http);
    if let Some(mut page) = Dialogue::start(&script, &[&address]) {
        for view in ["#/", "#/resources"] {
            let shown = page.ask(view);
            let used = share(&master);
            println!(
                "with the page open at {view}: {used:.2} %, {:.2} % more ({} bytes are shown)",
                used - alone,
                shown.len()
            );
        }
        page.close();
        println!("without a page again: {:.2} %", share(&master));
    }
    for n in n_crawled..number("CRAWLER_OBSERVATION_ALL", 10_000) {
        add(&master, n, &web, &json!({"selector": {"gpu": "absent"}}));
    }
    share(&master);
    for node in [&master, &worker] {
        let url = format!("http://{}/metrics", node.http);
        let mut n_bytes = 0;
        let times = (0..N_READS).map(|_| {
            let begun = Instant::now();
            n_bytes = ask(Method::GET, &url, None).text.len();
            begun.elapsed().as_secs_f64() * 1e3
        });
        let time = median(times);
        println!("metrics of {}: {time:.1} ms, {n_bytes} bytes", node.id);
    }
}

/// Opens a site on all addresses of loopback. Each of its pages leads to the next one.
fn open_site() -> Web {
    let page = |asked: Asked| async move {
        let n: u64 = asked.path[1..].parse().expect("pages are numbers");
        format!(r#"[{{"url": "/{}"}}]"#, n + 1)
    };
    let site = Site::new().handle("/*", page);
    site.open_at(([0, 0, 0, 0], 0).into())
}

/// Adds a resource with a host of its own.
fn add(master: &Node, n: u64, web: &Web, placement: &Value) {
    let (third, last) = (n / 250, n % 250 + 1);
    let start = format!("http://127.1.{third}.{last}:{}/0", web.address().port());
    let resource = json!({
        "name": format!("site-{n:05}"),
        "plugin": "puppet",
        "params": {"start": start},
        "crawl": {"delay_ms": 10_000, "max_depth": u32::MAX},
        "placement": placement,
    });
    let body = resource.to_string();
    let answer = master.http(Method::POST, "/crawler/resource", Some(&body));
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// Returns the share of a core in percent that a process uses in some time.
fn share(node: &Node) -> f64 {
    let pid = node.process.id();
    let wanted = Duration::from_secs(number("CRAWLER_OBSERVATION_SECONDS", 60));
    let (before, begun) = (cpu::used(pid), Instant::now());
    pass(wanted);
    let used = cpu::used(pid) - before;
    100.0 * used.as_secs_f64() / begun.elapsed().as_secs_f64()
}
