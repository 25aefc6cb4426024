//! A whole crawl of the documentation of Rust from a server on loopback: rules in the sandbox, compared with
//! a bare loop of reqwest and scraper, which has no limits, no politeness, no retries and no sandbox.
//!
//! The sandboxed crawl keeps its URLs durably, as a worker does, or in memory, as `crawler run` does. All of
//! them follow the same links with the same number of pages in flight and write one line for each page. They
//! take turns, so that a busy machine slows all of them equally; ratios are medians over the rounds.
//! Processor time is that of this process: the server is another.

use std::time::{Duration, Instant};

use sandboxed::Kept;
use tokio::runtime::Runtime;
use url::Url;

#[path = "crawl/bare.rs"]
mod bare;
#[path = "../tests/engine/components.rs"]
mod components;
#[path = "common/frontier.rs"]
mod frontier;
#[path = "common/loopback.rs"]
mod loopback;
#[path = "crawl/sandboxed.rs"]
mod sandboxed;
#[path = "crawl/site.rs"]
mod site;

/// Number of crawls of each kind, after one that warms up.
const N_ROUNDS: usize = 9;
/// Time after which no further round begins.
const ENOUGH: Duration = Duration::from_secs(70);
/// Page on which crawls start. All links that are followed are below its folder.
const START: &str = "/std/index.html";
const BELOW: &str = "/std/";

/// Counts of a crawl, and its cost.
struct Crawled {
    n_pages: u64,
    n_bytes: u64,
    wall: Duration,
    processors: Duration,
}

/// Counts of a crawl.
struct Harvest {
    n_pages: u64,
    n_bytes: u64,
}

#[expect(clippy::print_stdout, reason = "a benchmark reports to its terminal")]
fn main() {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some(loopback::SERVE) {
        let folder = arguments.next().expect("a folder follows");
        return loopback::serve(site::router(folder.as_ref()));
    }
    let Some(folder) = site::folder() else {
        println!("left out: the documentation is not installed (rustup component add rust-docs)");
        return;
    };
    let server = loopback::Server::start(Some(&folder));
    let runtime = Runtime::new().expect("a runtime starts");
    let start = server.base.join(START).expect("it is a path");
    let crawler = runtime.block_on(sandboxed::Crawler::new());
    let in_memory = || measured(&runtime, || crawler.crawl(&start, Kept::InMemory));
    let durably = || measured(&runtime, || crawler.crawl(&start, Kept::Durably));
    let bare = || measured(&runtime, || bare::crawl(&start, sandboxed::CONCURRENCY));
    let crawls: [&dyn Fn() -> Crawled; 3] = [&durably, &in_memory, &bare];

    let began = Instant::now();
    let warm = crawls.map(|crawl| crawl());
    let found = warm.map(|crawled| (crawled.n_pages, crawled.n_bytes));
    assert_eq!(found, [found[0]; 3], "all find the same pages");
    let mut rounds: [Vec<Crawled>; 3] = Default::default();
    for round in 0..N_ROUNDS {
        if began.elapsed() >= ENOUGH {
            break;
        }
        // The order rotates: each kind finds the machine as the others left it.
        for n in 0..crawls.len() {
            let n = (n + round) % crawls.len();
            rounds[n].push(crawls[n]());
        }
    }
    let [durably, in_memory, bare] = &rounds;
    println!("durable    {}", told(durably));
    println!("in memory  {}", told(in_memory));
    println!("bare       {}", told(bare));
    compare("durable to bare", durably, bare);
    compare("durable to in memory", durably, in_memory);
}

#[expect(clippy::print_stdout, reason = "a benchmark reports to its terminal")]
fn compare(name: &str, ours: &[Crawled], theirs: &[Crawled]) {
    let ratio = |of: fn(&Crawled) -> Duration| {
        let pairs = ours.iter().zip(theirs);
        median(pairs.map(|(ours, theirs)| of(theirs).as_secs_f64() / of(ours).as_secs_f64()))
    };
    let processors = ratio(|crawled| crawled.processors);
    println!(
        "{name}: {:.2}x the pages/s, {:.2}x the time of the processors a page ({} rounds)",
        ratio(|crawled| crawled.wall),
        1.0 / processors,
        ours.len()
    );
}

fn measured<F: Future<Output = Harvest>>(runtime: &Runtime, crawl: impl Fn() -> F) -> Crawled {
    let (began, used) = (Instant::now(), processor_time());
    let harvest = runtime.block_on(crawl());
    Crawled {
        n_pages: harvest.n_pages,
        n_bytes: harvest.n_bytes,
        wall: began.elapsed(),
        processors: processor_time() - used,
    }
}

/// Returns the processor time of all threads of this process.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).expect("it grows from zero")
}

fn told(crawls: &[Crawled]) -> String {
    let pages = |of: fn(&Crawled) -> Duration| {
        median(
            crawls
                .iter()
                .map(|c| c.n_pages as f64 / of(c).as_secs_f64()),
        )
    };
    let wall = pages(|crawled| crawled.wall);
    let per_page = crawls[0].n_bytes as f64 / crawls[0].n_pages as f64;
    format!(
        "{:5} pages  {wall:6.0} pages/s  {:6.1} MB/s  {:5.2} ms of a processor per page",
        crawls[0].n_pages,
        wall * per_page / 1e6,
        1e3 / pages(|crawled| crawled.processors),
    )
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Returns true if a link leads to a page of the crawl, as plugin `rustdoc` decides it.
fn belongs(link: &Url, start: &Url) -> bool {
    let path = link.path();
    (path.ends_with(".html") || path.ends_with('/'))
        && path.starts_with(BELOW)
        && link.origin() == start.origin()
}
