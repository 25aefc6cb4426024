//! This crawler beside others on the documentation of Rust, each of them a process of its own at its best settings.
//!
//! ```text
//! tests/run bench peers
//! CRAWLER_BIN=PROGRAM cargo bench -p crawler-tests --bench peers
//! ```
//!
//! CRAWLER_BIN names the program of this crawler. `tests/run` builds it as it is shipped, unless the variable is set: then
//! it measures that program, such as one of an earlier version.
//!
//! nginx serves the pages. All crawlers start on the same page, follow the same links, have as many pages in flight, and
//! write the same item for each page. A crawl is measured from the start of its process to its end. They take turns,
//! so that a busy machine slows all of them: each round begins with the next one, and every other round goes backwards. The
//! first round warms up, and is not counted. Scrapy, which uses one processor, crawls in that round only, and large pages
//! only; there it is counted.
//!
//! After every crawl its pages and items are compared with those of the first one. If they differ, or if a crawl fails, its
//! part is void: the first differences are shown, and no figures of the part are.
//!
//! There are two parts. One is `/std/`, with pages of 54 kB on average. The other is everything that links lead to
//! from there, with pages of 16 kB. Settings, with their defaults:
//!
//! ```text
//! CRAWLER_PEERS_ROUNDS=5         rounds on /std/; 0: this part is left out
//! CRAWLER_PEERS_ROUNDS_ALL=3     rounds on the whole documentation; 0: this part is left out
//! CRAWLER_PEERS_CONCURRENCY=64   pages in flight, at most 64: this crawler asks a host for no more at once
//! ```

#![expect(clippy::print_stdout, reason = "a benchmark reports to its terminal")]

use std::process::ExitCode;

use crawler_tests::nginx::Server;
use crawler_tests::process::Home;
use crawler_tests::{is_benchmark, number, rustdoc};

#[path = "peers/crawler.rs"]
mod crawler;
#[path = "peers/measure.rs"]
mod measure;
#[path = "peers/table.rs"]
mod table;
#[path = "peers/task.rs"]
mod task;
#[path = "peers/turns.rs"]
mod turns;

/// A closed part of the site.
struct Part {
    name: &'static str,
    /// Beginning of the paths that belong to it.
    below: &'static str,
    n_rounds: u64,
    /// True if crawlers that crawl once do it here.
    with_single: bool,
}

/// Page on which all crawls start.
const START: &str = "/std/index.html";

fn main() -> ExitCode {
    if !is_benchmark("peers") {
        return ExitCode::SUCCESS;
    }
    let parts = [
        Part {
            name: "large pages",
            below: "/std/",
            n_rounds: number("CRAWLER_PEERS_ROUNDS", 5),
            with_single: true,
        },
        Part {
            name: "small pages",
            below: "/",
            n_rounds: number("CRAWLER_PEERS_ROUNDS_ALL", 3),
            with_single: false,
        },
    ];
    let concurrency = number("CRAWLER_PEERS_CONCURRENCY", 64).clamp(1, 64);
    let Some(folder) = rustdoc::folder() else {
        return ExitCode::SUCCESS;
    };
    let Some(server) = Server::start(&folder) else {
        return ExitCode::SUCCESS;
    };
    let home = Home::new();
    let crawlers = crawler::all(&home);
    table::print_machine(&server, &crawlers);
    let mut is_void = false;
    for part in parts.iter().filter(|part| part.n_rounds > 0) {
        let task = task::Task {
            home: &home,
            start: server.base.join(START).expect("it is a path"),
            below: part.below,
            concurrency,
        };
        println!("\n{}: {START} and below {}", part.name, part.below);
        match turns::take(&crawlers, &task, part) {
            Ok(runs) => table::print(&crawlers, &runs, &server),
            Err(void) => {
                is_void = true;
                println!("VOID: {void}");
            }
        }
    }
    match is_void {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
}
