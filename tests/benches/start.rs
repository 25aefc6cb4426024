//! Time to the first page: after a restart of `crawler up` in the middle of a crawl, and after the push of a new plugin.
//!
//! ```text
//! tests/run bench start
//! CRAWLER_BIN=PROGRAM cargo bench -p crawler-tests --bench start
//! ```
//!
//! Each page of the site leads to the next one and to nothing else, and comes 5 ms after it is asked for, which the figures
//! include. A page is parsed, and its link is in the frontier, when the next one is asked for. A restart is measured from the
//! start of the process, with the code that an earlier start compiled, in a crawl of some hundred pages that was stopped
//! cleanly. A push is measured from the start of the process that pushes, through that of `resource add`; each plugin is a Rust
//! plugin with bytes of its own, so that none is compiled before. The first of each warms up and is not counted. Settings,
//! with their defaults:
//!
//! ```text
//! CRAWLER_START_ROUNDS=7   times that each is measured
//! ```

#![expect(clippy::print_stdout, reason = "a benchmark reports to its terminal")]

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use axum::response::Html;
use crawler_tests::peers::median;
use crawler_tests::process::Home;
use crawler_tests::up::Up;
use crawler_tests::web::{Asked, Site, Web};
use crawler_tests::{PATIENCE, guests, is_benchmark, number};

fn main() -> ExitCode {
    if !is_benchmark("start") {
        return ExitCode::SUCCESS;
    }
    let n_rounds = number("CRAWLER_START_ROUNDS", 7);
    report("restart of up to the first page", time_starts(n_rounds));
    report(
        "push of a new plugin to the first page",
        time_pushes(n_rounds),
    );
    ExitCode::SUCCESS
}

fn report(what: &str, times: Vec<Duration>) {
    let millis: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e3).collect();
    let (least, most) = millis
        .iter()
        .fold((f64::MAX, 0.0_f64), |(least, most), &time| {
            (least.min(time), most.max(time))
        });
    println!(
        "{what}: median {:.0} ms ({least:.0} to {most:.0})",
        median(millis)
    );
}

/// Returns the times from a start of `up` to its first page, in the middle of one crawl.
fn time_starts(n_rounds: u64) -> Vec<Duration> {
    let home = Home::new();
    let web = open_site();
    let mut up = Up::start(&home, &[]);
    let plugin = guests::guest("books");
    up.ok(["plugin", "push", &plugin.display().to_string()]);
    add(&up, "books", "books", &web);
    second_page_at(&web, 0);
    let mut times = Vec::new();
    for round in 0..=n_rounds {
        up.stop();
        // A page that the stop has cut off is asked for again, so only the second request shows that a page was parsed.
        let n_known = web.log().len();
        let begun = Instant::now();
        up = Up::start(&home, &[]);
        let time = second_page_at(&web, n_known) - begun;
        if round > 0 {
            times.push(time);
        }
    }
    times
}

/// Returns the times from the push of a plugin that was not compiled before to the first page of a resource with it.
fn time_pushes(n_rounds: u64) -> Vec<Duration> {
    let home = Home::new();
    let up = Up::start(&home, &[]);
    let mut times = Vec::new();
    for round in 0..=n_rounds {
        let web = open_site();
        let plugin = plugin_of(&home, round).display().to_string();
        let begun = Instant::now();
        let name = format!("--as=new@1.0.{round}");
        // `Up::ok` looks for the end every 20 ms, and that wait would be measured too.
        let pushed = up.client(["plugin", "push", &plugin, &name]).output();
        let pushed = pushed.expect("the program starts");
        assert!(pushed.status.success(), "{pushed:?}");
        let resource = format!("books-{round}");
        add(&up, &resource, "new", &web);
        let time = second_page_at(&web, 0) - begun;
        if round > 0 {
            times.push(time);
        }
        up.ok(["resource", "pause", &resource]);
        up.wait_for(&resource, "pause", PATIENCE, |seen| {
            seen["phase"] == "Paused"
        });
    }
    times
}

fn add(up: &Up, resource: &str, plugin: &str, web: &Web) {
    let plugin = format!("--plugin={plugin}");
    let start = format!("start={}", web.url("/catalogue/page-1.html"));
    let arguments = [
        "resource",
        "add",
        resource,
        &plugin,
        "--delay=0s",
        "--max-depth=4000000000",
        "--param",
        &start,
    ];
    up.ok(arguments);
}

/// Waits for the second of the pages that are asked for after the first `n_known`, and returns when it was asked for.
fn second_page_at(web: &Web, n_known: usize) -> Instant {
    let log = web.wait_for("the second page", PATIENCE, |log| log.len() > n_known + 1);
    log[n_known + 1].start
}

/// Writes the example plugin with a custom section that no other round has, and returns its path.
fn plugin_of(home: &Home, round: u64) -> PathBuf {
    let mut bytes = fs::read(guests::guest("books")).expect("the plugin was built");
    let content = format!("\x05round{round}");
    bytes.push(0);
    bytes.push(u8::try_from(content.len()).expect("it is short"));
    bytes.extend(content.bytes());
    let path = home.path().join(format!("round-{round}.wasm"));
    fs::write(&path, bytes).expect("a file can be written");
    path
}

/// Opens an endless list of books, of which each page leads to the next one and to nothing else.
fn open_site() -> Web {
    let page = |asked: Asked| async move {
        let digits: String = asked.path.chars().filter(char::is_ascii_digit).collect();
        let next = digits.parse::<u64>().expect("pages are numbers") + 1;
        // A page takes about this long on a fast network.
        tokio::time::sleep(Duration::from_millis(5)).await;
        Html(format!(
            "<!DOCTYPE html><html lang=\"en\"><title>Shop</title><ul><li class=\"next\"><a href=\"page-{next}.html\">next</a></li></ul>"
        ))
    };
    Site::new().handle("/*", page).open()
}
