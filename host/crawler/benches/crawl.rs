//! A whole crawl of the documentation of Rust from a server on loopback: rules in the sandbox, compared with
//! a bare loop of reqwest and scraper, which has no limits, no politeness, no retries and no sandbox.
//!
//! The sandboxed crawl keeps its URLs durably, as a worker does, or in memory, as `crawler run` does. All of
//! them follow the same links with the same number of pages in flight and write one line for each page. They
//! take turns, so that a busy machine slows all of them equally; ratios are medians over the rounds.
//! Processor time is that of this process: the server is another.
//!
//! ```text
//! cargo bench -p crawler --bench crawl                     the documentation of Rust
//! cargo bench -p crawler --bench crawl -- small            20 000 pages of 2 kB: three kinds of frontier
//! cargo bench -p crawler --bench crawl -- small PAGES      one round with this many pages
//! cargo bench -p crawler --bench crawl -- traces           20 000 pages of 2 kB: traces of 1 % of them, and none
//! cargo bench -p crawler --bench crawl -- traces PAGES     the same with this many pages
//! ```

use std::time::{Duration, Instant};

use crawler_testing::otlp::Receiver;
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
#[path = "crawl/small.rs"]
mod small;

/// Number of crawls of each kind, after one that warms up.
const N_ROUNDS: usize = 9;
/// Number of small pages.
const N_SMALL: u64 = 20_000;
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
    /// Time that the opening of its frontier took.
    opening: Duration,
}

/// Counts of a crawl.
struct Harvest {
    n_pages: u64,
    n_bytes: u64,
    /// Time that the opening of its frontier took.
    opening: Duration,
}

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [loopback::SERVE, "small", n_pages] => {
            let n_pages = n_pages.parse().expect("a number of pages");
            loopback::serve(small::router(n_pages));
        }
        [loopback::SERVE, folder] => loopback::serve(site::router(folder.as_ref())),
        ["small"] => small_pages(N_SMALL, N_ROUNDS),
        ["traces"] => traces(N_SMALL),
        ["traces", n_pages] => traces(n_pages.parse().expect("a number of pages")),
        ["small", n_pages] => small_pages(n_pages.parse().expect("a number of pages"), 1),
        _ => documentation(),
    }
}

#[expect(clippy::print_stdout, reason = "a benchmark reports to its terminal")]
fn documentation() {
    let Some(folder) = site::folder() else {
        println!("left out: the documentation is not installed (rustup component add rust-docs)");
        return;
    };
    let server = loopback::Server::start(&[folder.as_os_str()]);
    let runtime = Runtime::new().expect("a runtime starts");
    let start = server.base.join(START).expect("it is a path");
    let crawler = runtime.block_on(sandboxed::Crawler::new());
    let in_memory = || measured(&runtime, || crawler.crawl(&start, Kept::InMemory));
    let durably = || measured(&runtime, || crawler.crawl(&start, Kept::Durably));
    let bare = || measured(&runtime, || bare::crawl(&start, sandboxed::CONCURRENCY));
    let [durably, in_memory, bare] = rounds([&durably, &in_memory, &bare], N_ROUNDS);
    println!("durable    {}", told(&durably));
    println!("in memory  {}", told(&in_memory));
    println!("bare       {}", told(&bare));
    compare("durable to bare", &durably, &bare);
    compare("durable to in memory", &durably, &in_memory);
}

/// Compares the frontier in memory with the durable one, whose objects are in memory or in a folder.
#[expect(clippy::print_stdout, reason = "a benchmark reports to its terminal")]
fn small_pages(n_pages: u64, n_rounds: usize) {
    let server = loopback::Server::start(&["small".as_ref(), n_pages.to_string().as_ref()]);
    let runtime = Runtime::new().expect("a runtime starts");
    let start = server.base.join(START).expect("it is a path");
    let crawler = runtime.block_on(sandboxed::Crawler::new());
    let in_memory = || measured(&runtime, || crawler.crawl(&start, Kept::InMemory));
    let objects = || measured(&runtime, || crawler.crawl(&start, Kept::InMemoryObjects));
    let folder = || measured(&runtime, || crawler.crawl(&start, Kept::Durably));
    let [in_memory, objects, folder] = rounds([&in_memory, &objects, &folder], n_rounds);
    let n_all = 1 + n_pages;
    assert_eq!(folder[0].n_pages, n_all, "the first page leads to all");
    for (name, crawls) in [
        ("in memory                 ", &in_memory),
        ("durable, objects in memory", &objects),
        ("durable, in a folder      ", &folder),
    ] {
        let opening = median(crawls.iter().map(|crawl| crawl.opening.as_secs_f64()));
        println!(
            "{name}  {}  opened in {:.1} ms",
            told(crawls),
            1e3 * opening
        );
    }
    compare("objects in memory to in memory", &objects, &in_memory);
    compare("in a folder to in memory", &folder, &in_memory);
    compare("objects in memory to in a folder", &objects, &folder);
}

/// Compares crawls of which 1 % of the pages are recorded and sent to a receiver with crawls without traces, in pairs. The
/// receiver is in this process, so its work counts as that of the crawl.
#[expect(clippy::print_stdout, reason = "a benchmark reports to its terminal")]
fn traces(n_pages: u64) {
    let server = loopback::Server::start(&["small".as_ref(), n_pages.to_string().as_ref()]);
    let runtime = Runtime::new().expect("a runtime starts");
    let start = server.base.join(START).expect("it is a path");
    let crawler = runtime.block_on(sandboxed::Crawler::new());
    let receiver = Receiver::start();
    let off = || measured(&runtime, || crawler.crawl(&start, Kept::Durably));
    let on = || measured(&runtime, || crawler.crawl_traced(&start, &receiver));
    let [on, off] = rounds([&on, &off], N_ROUNDS);
    let n_crawls = on.len() as u64 + 1;
    let n_spans = receiver.spans().len() as u64;
    println!("traces of 1 %  {}", told(&on));
    println!("no traces      {}", told(&off));
    println!("{} spans of each crawl", n_spans / n_crawls);
    assert!(n_spans > 0, "pages were recorded");
    compare("traces of 1 % to none", &on, &off);
}

/// Runs each kind of crawl once to warm up, and then in rounds.
fn rounds<const N: usize>(crawls: [&dyn Fn() -> Crawled; N], n_rounds: usize) -> [Vec<Crawled>; N] {
    let began = Instant::now();
    let warm = crawls.map(|crawl| crawl());
    let found = warm.map(|crawled| (crawled.n_pages, crawled.n_bytes));
    assert_eq!(found, [found[0]; N], "all find the same pages");
    let mut rounds: [Vec<Crawled>; N] = std::array::from_fn(|_| Vec::new());
    for round in 0..n_rounds {
        if began.elapsed() >= ENOUGH {
            break;
        }
        // The order rotates: each kind finds the machine as the others left it.
        for n in 0..N {
            let n = (n + round) % N;
            rounds[n].push(crawls[n]());
        }
    }
    rounds
}

#[expect(clippy::print_stdout, reason = "a benchmark reports to its terminal")]
fn compare(name: &str, ours: &[Crawled], theirs: &[Crawled]) {
    let ratio = |of: fn(&Crawled) -> Duration| {
        let pairs = ours.iter().zip(theirs);
        median(pairs.map(|(ours, theirs)| of(theirs).as_secs_f64() / of(ours).as_secs_f64()))
    };
    let processors = ratio(|crawled| crawled.processors);
    println!(
        "{name}: {:.3}x the pages/s, {:.3}x the time of the processors a page ({} rounds)",
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
        opening: harvest.opening,
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
