//! Facts of the machine, and the table of a part: medians of each crawler, and how those of this one compare.

use std::fs;
use std::process::Command;

use crawler_tests::peers::median;

use crate::crawler::Crawler;
use crate::measure::Cost;
use crate::turns::Runs;
use crawler_tests::nginx::Server;

const MIB: f64 = 1_048_576.0;

/// Medians of the crawls of one crawler.
struct Medians {
    n_crawls: usize,
    seconds: f64,
    pages_per_second: f64,
    megabytes_per_second: f64,
    /// Processor time for a page, in milliseconds.
    milliseconds: f64,
    mebibytes: f64,
}

/// Prints what was compared on what.
pub(crate) fn print_machine(server: &Server, crawlers: &[Crawler]) {
    let n_processors = std::thread::available_parallelism().map_or(0, usize::from);
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find(|line| line.starts_with("model name"));
    let model = model.and_then(|line| line.split(": ").nth(1));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let rustc = Command::new("rustc").arg("--version").output();
    let rustc = rustc.map_or_else(
        |_| String::new(),
        |told| String::from_utf8_lossy(&told.stdout).into_owned(),
    );
    println!(
        "{n_processors} processors ({}), Linux {}, {}, {}; crawlers and server share the processors",
        model.unwrap_or("of no known model"),
        kernel.trim(),
        rustc.trim(),
        server.version
    );
    for crawler in crawlers {
        println!("{}: {}", crawler.name, crawler.versions);
    }
}

/// Prints the table of a part. Ratios are those of the medians: more than 1.00 of the pages a second means that
/// the first crawler is faster, more than 1.00 of the processor time that it uses more.
pub(crate) fn print(crawlers: &[Crawler], runs: &Runs, server: &Server) {
    let pages = &runs.found.pages;
    let n_bytes: u64 = pages.keys().map(|url| server.n_bytes(url)).sum();
    println!(
        "{:.1} kB a page; medians; ratios are those of {} to the others",
        n_bytes as f64 / pages.len() as f64 / 1e3,
        crawlers[0].name
    );
    println!(
        "\n| crawler | crawls | pages | items | s | pages/s | MB/s | processor ms a page | most MiB | pages/s, ratio | processor time, ratio |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    let medians = runs.costs.iter();
    let medians: Vec<Medians> = medians
        .map(|costs| medians_of(costs, pages.len() as f64, n_bytes as f64))
        .collect();
    let ours = &medians[0];
    let counted = crawlers.iter().zip(&medians);
    for (crawler, theirs) in counted.filter(|(_, theirs)| theirs.n_crawls > 0) {
        println!(
            "| {} | {} | {} | {} | {:.2} | {:.0} | {:.1} | {:.2} | {:.0} | {:.2} | {:.2} |",
            crawler.name,
            theirs.n_crawls,
            pages.len(),
            runs.found.n_items(),
            theirs.seconds,
            theirs.pages_per_second,
            theirs.megabytes_per_second,
            theirs.milliseconds,
            theirs.mebibytes,
            ours.pages_per_second / theirs.pages_per_second,
            ours.milliseconds / theirs.milliseconds,
        );
    }
}

fn medians_of(costs: &[Cost], n_pages: f64, n_bytes: f64) -> Medians {
    let of = |value: fn(&Cost) -> f64| median(costs.iter().map(value));
    let seconds = of(|cost| cost.wall.as_secs_f64());
    Medians {
        n_crawls: costs.len(),
        seconds,
        // All crawls have the same pages, so the medians of their speeds are those of their times.
        pages_per_second: n_pages / seconds,
        megabytes_per_second: n_bytes / seconds / 1e6,
        milliseconds: 1e3 * of(|cost| cost.processors.as_secs_f64()) / n_pages,
        mebibytes: of(|cost| cost.most_memory as f64) / MIB,
    }
}
