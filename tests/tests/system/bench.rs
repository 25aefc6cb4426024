//! `crawler bench`: all pages of a web, politely, and where the time went.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crawler_tests::process::{Ended, Home, Process};
use crawler_tests::{PATIENCE, guests, repository, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::devtools::BUILD;

/// Returns the command, whose temporary folder is in its home. The rule is built where those of other tests are.
fn command(home: &Home, arguments: &[&str]) -> Command {
    let folder = home.path().join("tmp");
    fs::create_dir_all(&folder).expect("a folder can be made");
    let mut command = home.command(["bench"]);
    command
        .args(arguments)
        .env("TMPDIR", folder)
        .env("CARGO_TARGET_DIR", repository().join("plugins/target"));
    command
}

#[track_caller]
fn run(home: &Home, arguments: &[&str]) -> Ended {
    let ended = Process::start(&mut command(home, arguments)).wait(BUILD);
    check_nothing_is_left(home);
    ended
}

/// Runs a benchmark, which must succeed, and returns its figures.
#[track_caller]
fn figures(home: &Home, arguments: &[&str]) -> Value {
    let ended = run(home, &[arguments, &["--json", "--latency=1ms"]].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    serde_json::from_str(&ended.stdout).expect("the figures are JSON")
}

fn check_nothing_is_left(home: &Home) {
    let left = fs::read_dir(home.path().join("tmp")).expect("it is there");
    let left: Vec<_> = left
        .map(|entry| entry.expect("it is read").path())
        .collect();
    let is_of_bench = |path: &&PathBuf| path.to_string_lossy().contains("crawler-bench-");
    assert_eq!(left.iter().find(is_of_bench), None);
}

/// Returns the process that serves the web of a benchmark.
fn web_of(bench: u32) -> Option<u32> {
    let processes = fs::read_dir("/proc").expect("the system has processes");
    let ids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_web = |id: &u32| {
        let read =
            |file: &str| fs::read_to_string(format!("/proc/{id}/{file}")).unwrap_or_default();
        let parent = format!("PPid:\t{bench}\n");
        read("status").contains(&parent) && read("cmdline").contains("__bench_web")
    };
    ids.into_iter().find(is_web)
}

/// Returns `Some` once a process has ended. Its new parent may take a while to reap it.
fn has_ended(process: u32) -> Option<()> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    (status.is_empty() || status.contains("State:\tZ")).then_some(())
}

/// Returns `Some` once a crawl has opened its frontier on disk.
fn is_crawling(home: &Home) -> Option<()> {
    let folders = fs::read_dir(home.path().join("tmp")).ok()?.flatten();
    let mut data = folders.map(|folder| folder.path().join("data/frontiers"));
    data.any(|data| data.is_dir()).then_some(())
}

/// Checks that each stage took time and came to its end, and that together they have no more than the processor time of
/// the process. The rest of the process is what they leave, so it needs no check. The clocks of the threads and that of the
/// process are read at different moments, so the sum may exceed the whole a little.
#[track_caller]
fn check_stages(figures: &Value) {
    let stages = figures["stages"].as_array().expect("it is a list");
    assert_eq!(stages.len(), 9);
    for stage in stages {
        let is_positive = |field: &str| stage[field].as_f64().is_some_and(|n| n > 0.0);
        for field in ["processor_us_per_page", "times", "p50_us", "p99_us"] {
            assert!(is_positive(field), "{field} of {stage}");
        }
    }
    let of_stages = stages
        .iter()
        .filter_map(|stage| stage["processor_us_per_page"].as_f64());
    let of_stages = of_stages.sum::<f64>();
    let of_process = figures["processor_us_per_page"].as_f64();
    let of_process = of_process.expect("it is a number");
    assert!(of_stages <= 1.01 * of_process, "{of_stages} {of_process}");
    let n_allocations = figures["allocations_per_page"].as_f64();
    assert!(n_allocations.is_some_and(|n| n > 100.0), "{figures}");
}

#[test]
fn a_made_up_web_is_crawled_whole_and_politely() {
    let home = Home::new();
    let on_disk = figures(&home, &["--pages=200", "--hosts=4", "--errors=1%"]);
    for (field, expected) in [
        ("pages", 200),
        ("pages_of_web", 200),
        ("pages_served", 200),
        ("items", 200),
        ("hosts", 4),
        ("early_requests", 0),
        ("forbidden_requests", 0),
    ] {
        assert_eq!(on_disk[field], expected, "{field} of {on_disk}");
    }
    check_stages(&on_disk);
    // The same seed gives the same web, wherever URLs are kept.
    let in_memory = figures(
        &home,
        &["--pages=200", "--hosts=4", "--errors=1%", "--in-memory"],
    );
    assert_eq!(in_memory["frontier"], "memory");
    check_stages(&in_memory);
    for field in ["pages", "items", "requests", "other_outcomes"] {
        assert_eq!(on_disk[field], in_memory[field], "{field}");
    }
    let other = figures(
        &home,
        &["--pages=200", "--hosts=4", "--errors=1%", "--seed=2"],
    );
    assert_ne!(on_disk["body_bytes"], other["body_bytes"]);
}

#[test]
fn delays_are_kept_and_reported_by_the_web() {
    let home = Home::new();
    let small = ["--pages=8", "--hosts=2", "--redirects=50%"];
    let own = figures(&home, &[&small[..], &["--delay=200ms"]].concat());
    let asked = figures(&home, &[&small[..], &["--crawl-delay=200ms"]].concat());
    for figures in [own, asked] {
        assert_eq!(figures["early_requests"], 0, "{figures}");
        // Each host is asked for its robots.txt, and then for four pages.
        let wall_ms = figures["wall_ms"].as_u64().expect("it is a number");
        assert!(wall_ms >= 3 * 200, "{figures}");
    }
}

#[test]
fn a_folder_is_crawled_by_a_rule_of_the_user() {
    let home = Home::new();
    let site = home.path().join("site");
    fs::create_dir(&site).expect("it is new");
    for (name, html) in [
        (
            "index.html",
            "<title>Start</title><h1>One</h1><a href=b.html>B</a>",
        ),
        (
            "b.html",
            "<title>B</title><a href=gone.html>gone</a><a href=/>list</a>",
        ),
        ("c.html", "<title>C</title>"),
    ] {
        fs::write(site.join(name), html).expect("it can be written");
    }
    let plugin = guests::guest("outline");
    let plugin = plugin.to_str().expect("its path is text");
    let figures = figures(&home, &[plugin, "--folder=site"]);
    // The files, and the list that leads to them.
    for field in ["pages", "pages_of_web", "pages_served", "items"] {
        assert_eq!(figures[field], 4, "{field} of {figures}");
    }
    assert_eq!(figures["other_outcomes"]["gone"], 1, "{figures}");
    // A page without links, named by its path, is a crawl of itself.
    let figures = self::figures(&home, &[plugin, "--folder=site", "--param=start=/c.html"]);
    for field in ["pages", "pages_served", "items"] {
        assert_eq!(figures[field], 1, "{field} of {figures}");
    }
}

#[test]
fn a_crawl_that_leaves_pages_out_is_reported_and_no_success() {
    let home = Home::new();
    let ended = run(
        &home,
        &["--pages=50", "--hosts=1", "--max-pages=10", "--latency=0s"],
    );
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    let told = "of 50 pages were not served, parsed and stored";
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
    for told in [
        " pages, ",
        "\n  web           seed 1, 1 host, ",
        "\nguest ",
        "\nother ",
    ] {
        assert!(ended.stdout.contains(told), "{told}: {}", ended.stdout);
    }
}

#[test]
fn ctrl_c_leaves_neither_folder_nor_server() {
    let home = Home::new();
    // The delay alone makes this crawl take more than a day.
    let long = ["--pages=100000", "--hosts=1", "--delay=1s"];
    let mut bench = Process::start(&mut command(&home, &long));
    let web = until("web", PATIENCE, || web_of(bench.id()));
    until("crawl", BUILD, || is_crawling(&home));
    bench.interrupt();
    let ended = bench.wait(PATIENCE);
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    check_nothing_is_left(&home);
    until("end of the web", PATIENCE, || has_ended(web));
}

#[test]
fn a_benchmark_whose_server_is_killed_says_so_at_once() {
    let home = Home::new();
    let long = ["--pages=100000", "--hosts=1", "--delay=1s"];
    let mut bench = Process::start(&mut command(&home, &long));
    let web = until("web", PATIENCE, || web_of(bench.id()));
    until("crawl", BUILD, || is_crawling(&home));
    let web = i32::try_from(web).ok().and_then(Pid::from_raw);
    let web = web.expect("it is an id of a process");
    kill_process(web, Signal::KILL).expect("it can be killed");
    let ended = bench.wait(PATIENCE);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let reported = "the process that serves the web has ended unexpectedly with signal: 9";
    assert!(ended.stderr.contains(reported), "{}", ended.stderr);
    check_nothing_is_left(&home);
}

#[test]
fn a_killed_benchmark_takes_its_server_along() {
    let home = Home::new();
    let mut bench = Process::start(&mut command(&home, &["--pages=100000", "--hosts=1"]));
    let web = until("web", PATIENCE, || web_of(bench.id()));
    bench.kill();
    until("end of the web", PATIENCE, || has_ended(web));
}
