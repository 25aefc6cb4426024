//! The HTTP cache for development: what one command has fetched, a later one gets without asking the site.

use std::fs;

use crawler_tests::process::{Ended, Home, Process};
use crawler_tests::web::{Site, Web};
use crawler_tests::{PATIENCE, guests};
use serde_json::Value;

use crate::sites;

const LOCAL: &str = "--allow-networks=127.0.0.0/8";

/// Crawls a chain of pages from its first one and returns the items, in order.
fn crawl(home: &Home, web: &Web, arguments: &[&str]) -> (Vec<Value>, Ended) {
    let puppet = guests::guest("puppet").display().to_string();
    let start = format!("start={}", web.url("/0"));
    let run = ["run", &puppet, "--param", &start, LOCAL];
    let ended = home.run([&run, arguments].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let lines = ended.stdout.lines();
    let items = lines.map(|line| serde_json::from_str(line).expect("each line is JSON"));
    (items.collect(), ended)
}

/// Returns the number of requests so far, those for robots.txt included.
fn n_asked(web: &Web) -> usize {
    web.log().len() + web.robots_log().len()
}

#[test]
fn a_second_run_asks_nothing_and_brings_the_same_items() {
    let web = sites::chain(4).open();
    let home = Home::new();
    let (first, ended) = crawl(&home, &web, &["--cache", "--delay=1s"]);
    assert!(
        ended.stderr.contains("\n  from cache    0 answers\n"),
        "{}",
        ended.stderr
    );
    assert_eq!((first.len(), n_asked(&web)), (4, 5));
    assert!(home.path().join("cache/crawler/http-cache").is_dir());
    // The delay is none of a page that is not asked for.
    let (second, ended) = crawl(&home, &web, &["--cache", "--delay=10m"]);
    assert_eq!((second, n_asked(&web)), (first.clone(), 5));
    assert!(
        ended.stderr.contains("\n  from cache    5 answers\n"),
        "{}",
        ended.stderr
    );
    // Answers as old as this count no more, and without the option there is no cache.
    let (third, _) = crawl(&home, &web, &["--cache", "--cache-age=0s"]);
    assert_eq!((third, n_asked(&web)), (first.clone(), 10));
    let (fourth, ended) = crawl(&home, &web, &[]);
    assert_eq!((fourth, n_asked(&web)), (first, 15));
    assert!(!ended.stderr.contains("from cache"), "{}", ended.stderr);
}

#[test]
fn plugin_fetch_and_shell_take_a_page_from_the_cache() {
    let web = Site::new().page("/", "<h1>Vase</h1>").open();
    let home = Home::new();
    let url = web.url("/").to_string();
    let fetch = |name: &str| {
        let fetch = ["plugin", "fetch", &url, LOCAL, "--cache=kept"];
        home.ok([&fetch[..], &["--rule=detail", "--as", name]].concat())
    };
    let (first, second) = (fetch("first"), fetch("second"));
    assert!(!first.contains("from the cache"), "{first}");
    assert!(second.contains(", from the cache, stored "), "{second}");
    let input = home.write("lines", "h1\n/page\n");
    let input = fs::File::open(input).expect("it was written");
    let mut shell = home.command(["shell", &url, LOCAL, "--cache=kept"]);
    let ended = Process::start_with(&mut shell, input).wait(PATIENCE);
    for part in ["Vase", ", from the cache, stored "] {
        assert!(ended.stdout.contains(part), "{}", ended.stdout);
    }
    assert_eq!(n_asked(&web), 2);
    assert!(home.path().join("kept").is_dir());
}

#[test]
fn a_folder_that_cannot_be_used_is_refused_before_any_fetch() {
    let web = sites::chain(1).open();
    let home = Home::new();
    home.write("file", "");
    let puppet = guests::guest("puppet").display().to_string();
    let start = format!("start={}", web.url("/0"));
    let ended = home.run(["run", &puppet, "--param", &start, LOCAL, "--cache=file"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let why = "cannot keep answers in file, the folder of --cache";
    assert!(ended.stderr.contains(why), "{}", ended.stderr);
    assert_eq!(n_asked(&web), 0);
}
