//! A data root in a bucket beside one in a folder: the same crawl of the documentation of Rust, and its requests.
//!
//! ```text
//! tests/run bench bucket
//! CRAWLER_BIN=PROGRAM cargo bench -p crawler-tests --bench bucket
//! ```
//!
//! The object store is a server in this process, whose answers are delayed. It shares the processors with the crawl, so
//! a bucket does worse here than on a machine of its own. nginx serves the pages. A crawl is measured from the start of
//! its process to its end, and the places take turns; the first round warms up and is not counted. A crawl of one page
//! shows how long the start and the end of a process take; with a slow store that is long. One column has the rate
//! without that time. Settings, with their defaults:
//!
//! ```text
//! CRAWLER_BUCKET_ROUNDS=3        rounds that are counted
//! CRAWLER_BUCKET_BELOW=/         beginning of the paths that are crawled
//! CRAWLER_BUCKET_FLUSH=200ms     flush-interval of [data]
//! ```

#![expect(clippy::print_stdout, reason = "a benchmark reports to its terminal")]

use std::io::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crawler_testing::s3::{ACCESS_KEY, BUCKET, FaultPlan, RequestCounts, S3Server, SECRET_KEY};
use crawler_tests::nginx::Server;
use crawler_tests::peers::{median, order};
use crawler_tests::process::{Home, Process};
use crawler_tests::{is_benchmark, number, rustdoc, setting};
use task::Task;

#[path = "peers/task.rs"]
mod task;

/// Places of the data root: the delay of the object store's answers, or `None` for a folder.
const PLACES: [Option<Duration>; 4] = [
    None,
    Some(Duration::ZERO),
    Some(Duration::from_millis(5)),
    Some(Duration::from_millis(30)),
];
/// Time that one crawl may take.
const DEADLINE: Duration = Duration::from_secs(600);

/// One measured crawl.
struct Run {
    n_pages: u64,
    took: Duration,
    requests: RequestCounts,
}

fn main() -> ExitCode {
    if !is_benchmark("bucket") {
        return ExitCode::SUCCESS;
    }
    let Some(folder) = rustdoc::folder() else {
        return ExitCode::SUCCESS;
    };
    let Some(server) = Server::start(&folder) else {
        return ExitCode::SUCCESS;
    };
    let text = |name, default: &str| match setting(name) {
        Some(value) => value.to_string_lossy().into_owned(),
        None => default.to_owned(),
    };
    let below = text("CRAWLER_BUCKET_BELOW", "/");
    let flush = text("CRAWLER_BUCKET_FLUSH", "200ms");
    let home = Home::new();
    let task = Task {
        home: &home,
        start: server.base.join("/std/index.html").expect("it is a path"),
        below: &below,
        concurrency: 64,
    };
    println!("{} below {below}, flush-interval {flush}", server.version);
    let single = Task {
        below: "/std/index.html",
        start: task.start.clone(),
        ..task
    };
    let mut runs: [Vec<Run>; PLACES.len()] = Default::default();
    let mut singles: [Vec<f64>; PLACES.len()] = Default::default();
    for round in 0..=number("CRAWLER_BUCKET_ROUNDS", 3) {
        for place in order(PLACES.len(), round as usize) {
            let run = crawl(&task, PLACES[place], &flush);
            let rate = run.n_pages as f64 / run.took.as_secs_f64();
            println!(
                "round {round}, {}: {} pages, {rate:.0}/s",
                name(PLACES[place]),
                run.n_pages
            );
            let one_page = crawl(&single, PLACES[place], &flush);
            if round > 0 {
                singles[place].push(one_page.took.as_secs_f64());
                runs[place].push(run);
            }
        }
    }
    print(&runs, singles.map(median));
    ExitCode::SUCCESS
}

fn name(latency: Option<Duration>) -> String {
    match latency {
        None => "folder".to_owned(),
        Some(latency) => format!("bucket, {} ms", latency.as_millis()),
    }
}

fn crawl(task: &Task<'_>, latency: Option<Duration>, flush: &str) -> Run {
    let folder = tempfile::tempdir_in(task.home.path()).expect("a folder can be made");
    let Some(latency) = latency else {
        let data = folder.path().join("data");
        return measured(
            task::worker(task, folder.path(), &data),
            RequestCounts::default,
        );
    };
    let server = S3Server::start();
    server.set_faults(FaultPlan {
        latency,
        ..FaultPlan::default()
    });
    let mut command = task::worker(task, folder.path(), format!("s3://{BUCKET}/root"));
    let config = std::fs::OpenOptions::new()
        .append(true)
        .open(folder.path().join("crawler.toml"));
    write!(
        config.expect("the config is there"),
        "\n[data]\nendpoint = \"{}\"\nflush-interval = {flush:?}\n",
        server.endpoint()
    )
    .expect("a config can be written");
    command
        .env("AWS_ACCESS_KEY_ID", ACCESS_KEY)
        .env("AWS_SECRET_ACCESS_KEY", SECRET_KEY);
    measured(command, || server.requests())
}

fn measured(mut command: std::process::Command, requests: impl Fn() -> RequestCounts) -> Run {
    let begun = Instant::now();
    let ended = Process::start(&mut command).wait(DEADLINE);
    let took = begun.elapsed();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let n_pages = ended.stderr.rsplit_once(" pages=");
    let n_pages = n_pages.and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok());
    Run {
        n_pages: n_pages.expect("the log tells the number of pages"),
        took,
        requests: requests(),
    }
}

fn print(runs: &[Vec<Run>; PLACES.len()], singles: [f64; PLACES.len()]) {
    let took = |runs: &[Run]| median(runs.iter().map(|run| run.took.as_secs_f64()));
    let n_pages = |runs: &[Run]| median(runs.iter().map(|run| run.n_pages as f64));
    let rates = runs.each_ref().map(|runs| n_pages(runs) / took(runs));
    println!(
        "\n| data root | pages/s | relative to a folder | time for one page | pages/s without that time | relative to a folder | requests for a million pages: PUT | GET | LIST | others |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let net = |place: usize| n_pages(&runs[place]) / (took(&runs[place]) - singles[place]);
    for (place, runs) in runs.iter().enumerate() {
        let million = |count: fn(&RequestCounts) -> u64| {
            let share = runs
                .iter()
                .map(|run| count(&run.requests) as f64 * 1e6 / run.n_pages as f64);
            median(share)
        };
        println!(
            "| {} | {:.0} | {:.2} | {:.2} s | {:.0} | {:.2} | {:.0} | {:.0} | {:.0} | {:.0} |",
            name(PLACES[place]),
            rates[place],
            rates[place] / rates[0],
            singles[place],
            net(place),
            net(place) / net(0),
            million(|n| n.put),
            million(|n| n.get),
            million(|n| n.list),
            million(|n| n.head + n.post + n.delete),
        );
    }
}
