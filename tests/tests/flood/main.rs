//! A flood of hostile clients at the listeners of a master, for minutes, with an honest crawl beside it: memory stays
//! bounded, calls are answered soon, and the crawl finds everything.
//!
//! Everything is on loopback, of a bounded number, and ends with the test.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crawler_api::client::Client;
use crawler_process::task::TaskScope;
use crawler_tests::closure::{Closure, Plan, Visit};
use crawler_tests::process::Home;
use crawler_tests::random::Random;
use crawler_tests::up::Up;
use crawler_tests::web::{Site, Web};
use crawler_tests::{PATIENCE, guests, pass, skipped, soak, soak_time};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

mod attacks;

use attacks::{Attack, Flood};

/// Duration of the flood, in full and in short.
const FULL: Duration = Duration::from_secs(600);
const SHORT: Duration = Duration::from_secs(8);
/// Deadline of the crawl, with a program that was built without optimisation.
const DEADLINE: Duration = Duration::from_secs(600);
/// Largest number of bytes that the server may have in memory at any time.
const MEMORY_MAX: u64 = 1 << 30;
/// Longest time to answer `node list`, in full. In the short form other tests use the machine too.
const ANSWER_MAX: Duration = Duration::from_secs(1);
/// Number of files that are open beside the connections of the flood.
const OTHER_FILES: u64 = 500;
/// Number of pages of the plugin that traps, in one run.
const N_TRAPS: usize = 1_000;

/// Smallest number of clients of each kind in the short form: more than may push a plugin at once.
const MIN_EACH: usize = 8;
/// Number of clients of each kind at once, in full.
const ATTACKS: [(Attack, usize); 8] = [
    (Attack::IdleHttp, 1_000),
    (Attack::IdleGrpc, 1_000),
    (Attack::SlowHead, 100),
    (Attack::SlowUpload, 16),
    (Attack::HugeJson, 4),
    (Attack::RandomProtobuf, 8),
    (Attack::StalledReader, 448),
    (Attack::StalledBody, 64),
];

#[test]
fn a_flood_of_clients_leaves_memory_bounded_and_calls_quick() {
    let is_full = soak();
    let time = soak_time().unwrap_or(if is_full { FULL } else { SHORT });
    let part = part_of_all(if is_full { 1 } else { 10 });
    let mut random = Random::new("flood");
    let closure = Closure::open(Plan {
        n_pages: if is_full { 1_000 } else { 200 },
        seed: random.below(1 << 32),
        max_depth: 40,
        pace: Duration::from_millis(30),
    });
    let home = Home::new();
    // In the short form the stall timeout is short, so that silent clients are cut soon enough to be seen.
    let stall = if is_full { "10s" } else { "2s" };
    // All clients are at one address, and are to be as many as those of many addresses.
    let stall = format!("--stall-timeout={stall}");
    let up = Up::start(&home, &[&stall, "--api-streams=0"]);
    for guest in ["puppet", "hostile"] {
        up.ok([
            "plugin",
            "push",
            &guests::guest(guest).display().to_string(),
        ]);
    }
    let traps = site();
    begin_traps(&up, &traps);

    let word = |mark| up.process.word_after(mark, PATIENCE);
    let grpc = word("grpc=");
    let flood = Arc::new(Flood::new(&word("http="), &grpc));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    let entered = runtime.enter();
    let scope = TaskScope::new();
    for (attack, n) in ATTACKS {
        flood.begin(attack, n.div_ceil(part).max(MIN_EACH.min(n)), &scope);
    }
    let add = ["resource", "add", "web", "--plugin=puppet"].map(str::to_owned);
    up.ok(add.into_iter().chain(closure.arguments()));

    let begun = Instant::now();
    let (mut largest, mut n_lists, mut n_runs) = (0, 0, 1);
    // Longest time of a list, and when it was measured.
    let mut slowest = (Duration::ZERO, Duration::ZERO);
    let mut is_finished = false;
    while begun.elapsed() < time || !is_finished {
        assert!(begun.elapsed() < time + DEADLINE, "{}", up.resource("web"));
        let asked = Instant::now();
        let nodes = runtime.block_on(nodes(&grpc));
        assert_eq!(nodes, 2, "a master and a worker");
        slowest = slowest.max((asked.elapsed(), begun.elapsed()));
        n_lists += 1;
        largest = largest.max(memory(&up, "VmRSS:"));
        if n_lists % 10 == 0 {
            is_finished = up.resource("web")["phase"] == "Finished";
            if up.resource("traps")["phase"] == "Finished" {
                up.ok(["resource", "restart", "traps"]);
                n_runs += 1;
            }
        }
        pass(Duration::from_millis(100));
    }
    let traps_given_up = up.resource("traps")["counts"]["dead_by_reason"].clone();
    let failed = scope.failed();
    let cut = runtime.block_on(scope.stop(PATIENCE));
    drop(entered);
    let peak = memory(&up, "VmHWM:");
    let (slowest, at) = slowest;
    println!(
        "{:.0?} with a part of 1/{part}: {n_lists} lists of nodes, the slowest in {slowest:.1?} at {at:.0?}; at most \
         {} MiB, {} MiB at the peak; {n_runs} runs of traps, the last with {traps_given_up}\n{}",
        begun.elapsed(),
        largest >> 20,
        peak >> 20,
        flood.told(),
    );
    assert!(!failed.is_cancelled(), "an attack panicked");
    assert_eq!(
        cut,
        Vec::<String>::new(),
        "attacks end when they are told to"
    );
    assert!(peak < MEMORY_MAX, "{peak} bytes in memory");
    let answer_max = if is_full { ANSWER_MAX } else { 10 * ANSWER_MAX };
    assert!(slowest < answer_max, "a list of nodes took {slowest:?}");
    for (attack, _) in ATTACKS {
        assert!(flood.n_outcomes(attack) > 0, "{attack:?} came to nothing");
    }
    check_items(&closure, &up.ok(["items", "web"]));
    up.stop();
}

/// Returns the number by which all attacks are divided, so that the limit of open files suffices.
fn part_of_all(wanted: usize) -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current < limit.maximum {
        let raised = Rlimit {
            current: limit.maximum,
            ..limit
        };
        if setrlimit(Resource::Nofile, raised).is_ok() {
            limit = raised;
        }
    }
    let n_all: usize = ATTACKS.iter().map(|(_, n)| n).sum();
    let files = limit.current.map_or(usize::MAX, |files| {
        usize::try_from(files.saturating_sub(OTHER_FILES)).unwrap_or(usize::MAX)
    });
    let needed = n_all.div_ceil(files.max(1));
    if needed > wanted {
        skipped(
            "flood-in-full",
            &format!("the open files (ulimit -n) suffice for 1/{needed} of {n_all} connections"),
        );
    }
    wanted.max(needed)
}

/// Opens a site with a page for every path.
fn site() -> Web {
    let page = |_| async { axum::response::Html("<p>a page</p>") };
    Site::new().handle("/*", page).open()
}

/// Begins a crawl whose every page traps, in a function whose demangled name takes gigabytes.
fn begin_traps(up: &Up, web: &Web) {
    let root = format!("--param=root={}", web.url("/"));
    let rules = format!(
        "--param=rules={}",
        vec!["trap-in-long-name"; N_TRAPS].join(",")
    );
    let add = [
        "resource",
        "add",
        "traps",
        "--plugin=hostile",
        &root,
        &rules,
    ];
    let gently = ["--delay=0s", "--concurrency=2"];
    up.ok(add.iter().chain(&gently));
}

/// Returns the number of nodes, asked as the command line does, with a connection of its own.
async fn nodes(grpc: &str) -> usize {
    let client = Client::connect(&format!("http://{grpc}")).await;
    let client = client.expect("gRPC answers");
    let nodes = client.nodes(crawler_proto::ListNodesRequest::default());
    nodes.await.expect("nodes are listed").len()
}

/// Returns bytes of memory, as the system counts them.
fn memory(up: &Up, what: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", up.process.id()));
    let status = status.expect("the server lives");
    let line = status.lines().find_map(|line| line.strip_prefix(what));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kib: u64 = kib
        .and_then(|kib| kib.parse().ok())
        .expect("it is told in kB");
    kib << 10
}

/// Checks that all items are there, each once.
#[track_caller]
fn check_items(closure: &Closure, lines: &str) {
    let items = Visit::read(lines);
    let found: BTreeSet<Visit> = items.iter().cloned().collect();
    assert_eq!(found.len(), items.len(), "an item is there twice");
    let known = closure.items();
    let missing: Vec<_> = known.difference(&found).take(10).collect();
    let surplus: Vec<_> = found.difference(&known).take(10).collect();
    assert!(
        missing.is_empty() && surplus.is_empty(),
        "{} of {} items; missing {missing:?}, surplus {surplus:?}",
        found.len(),
        known.len()
    );
}
