//! Statistics of a run, which each command shows in the same words and in the same JSON.

use std::fs;

use crawler_tests::guests;
use crawler_tests::process::Home;
use crawler_tests::web::{Site, StatusCode, Web};
use serde_json::{Value, json};

use crate::devtools::{build, fetch_crates};
use crate::server::Server;

const FINISHED: &str = "nothing is left to fetch";

/// Opens a site of two pages, one that is forbidden, and a link to another host.
fn web() -> Web {
    let links = ["/leaf", "/forbidden", "http://other.test/"];
    let links = links.map(|url| json!({"url": url, "rule": "leaf"}));
    Site::new()
        .page("/", json!(links).to_string())
        .page("/leaf", "[]")
        .handle("/forbidden", |_| async { StatusCode::FORBIDDEN })
        .open()
}

#[track_caller]
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// Returns the pages per second of a run of three pages.
#[track_caller]
fn rate(statistics: &Value) -> f64 {
    let took_ms = statistics["took_ms"].as_f64().expect("a number");
    let rate = 3.0 * 1_000.0 / took_ms.max(1.0);
    let told = statistics["rate"].as_f64().expect("a number");
    assert!((told - rate).abs() < 0.001, "{statistics}");
    rate
}

#[test]
fn wait_get_list_and_stats_tell_the_same_of_a_run() {
    let (web, server) = (web(), Server::with_puppet());
    // Three pages take more than a second, so that a list knows their rate.
    let slow = ["--max-attempts=1", "--delay=600ms"];
    server.add("books", &web.url("/"), &slow);
    let waited = parsed(&server.ok(&["resource", "wait", "books", "-o", "json"]));
    let numbers = ["parsed", "dead"].map(|name| &waited["counts"][name]);
    assert_eq!(numbers, [2, 1], "{waited}");
    assert_eq!(waited["end"], FINISHED, "{waited}");
    assert_eq!(
        waited["refused_hosts"],
        json!({"out-of-scope": {"other.test": 1}})
    );
    let forbidden = web.url("/forbidden");
    assert_eq!(
        waited["dead_examples"],
        json!({"status-403": forbidden.as_str()})
    );
    let rate = rate(&waited);

    let got = parsed(&server.ok(&["resource", "get", "books", "-o", "json"]));
    assert_eq!(got["statistics"], waited);
    assert_eq!(
        (&got["phase"], &got["spec"]["name"]),
        (&json!("Finished"), &json!("books"))
    );
    let stats = parsed(&server.ok(&["resource", "stats", "books", "-o", "json"]));
    for field in ["end", "rate", "took_ms", "statuses"] {
        assert_eq!(stats[field], waited[field], "{field}");
    }

    let got = server.ok(&["resource", "get", "books"]);
    let shown = format!("\nrate       {rate:.1} pages/s\n");
    assert!(got.contains(&shown), "{got}");
    let end = format!("; {FINISHED}");
    for text in [&got, &server.ok(&["resource", "wait", "books"])] {
        let mut lines = text.lines();
        let run = lines.find(|line| line.starts_with("  run  "));
        assert!(run.is_some_and(|line| line.ends_with(&end)), "{text}");
    }
    let list = server.ok(&["resource", "list"]);
    let mut lines = list.lines().map(|line| line.split_whitespace().collect());
    let (head, row): (Vec<&str>, Vec<&str>) = lines.next().zip(lines.next()).expect("two lines");
    let cell = |name: &str| {
        row.get(
            head.iter()
                .position(|head| *head == name)
                .expect("it is there"),
        )
    };
    let rate = format!("{rate:.1}/s");
    let expected = [Some("3"), Some("1"), Some("2"), Some(rate.as_str()), None];
    let cells = ["PAGES", "DEAD", "ITEMS", "RATE", "LEFT"].map(|name| cell(name).copied());
    assert_eq!(cells, expected, "{list}");
}

#[test]
fn a_wait_tells_why_a_crawl_has_failed() {
    let server = Server::with_puppet();
    let web = Site::new().handle("/", |_| async { StatusCode::FORBIDDEN });
    let web = web.open();
    server.add("dead", &web.url("/"), &[]);
    let waited = server.cli(&["resource", "wait", "dead", "-o", "json"]);
    assert_eq!(waited.code, Some(3), "{}", waited.stderr);
    let end = "the crawl failed: every root request was given up: status-403 1; \
               `crawler frontier redrive dead` tries them again";
    assert_eq!(parsed(&waited.stdout)["end"], end);
}

#[test]
fn a_run_writes_what_it_refused_gave_up_and_never_matched() {
    let home = Home::new();
    let links = ["/forbidden", "http://other.test/"];
    let links = links
        .map(|url| format!(r#"<article class="book"><h3><a href="{url}">x</a></h3></article>"#));
    let web = Site::new()
        .page("/", links.concat())
        .handle("/forbidden", |_| async { StatusCode::FORBIDDEN })
        .open();
    let books = guests::guest("books").display().to_string();
    let start = format!("--param=start={}", web.url("/"));
    let run = ["run", &books, &start, "--allow-networks=127.0.0.0/8"];
    let more = ["--max-attempts=1", "--stats=stats.json"];
    home.ok(run.iter().chain(&more));
    let stats = fs::read_to_string(home.path().join("stats.json"));
    let stats = parsed(&stats.expect("it is written"));
    assert_eq!(
        stats["plans"]["list"]["unmatched"],
        json!(["next"]),
        "{stats}"
    );
    assert_eq!(stats["plans"]["list"]["matched"]["books"], 1, "{stats}");
    let refused = json!({"out-of-scope": {"other.test": 1}});
    assert_eq!(stats["refused_hosts"], refused);
    let dead = json!({"status-403": web.url("/forbidden").as_str()});
    assert_eq!(stats["dead_examples"], dead);
    assert_eq!(stats["end"], FINISHED);
    assert!(
        stats["rate"].as_f64().is_some_and(|rate| rate > 0.0),
        "{stats}"
    );
}

#[test]
fn a_run_that_reaches_its_limit_says_so() {
    let (home, web) = (Home::new(), web());
    let puppet = guests::guest("puppet").display().to_string();
    let start = format!("--param=start={}", web.url("/"));
    let run = ["run", &puppet, &start, "--allow-networks=127.0.0.0/8"];
    let ended = home.run(run.iter().chain(&["--max-pages=1", "--stats=stats.json"]));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let end = "--max-pages 1 is reached, and 2 URLs are left";
    let first = format!("; {end}\n");
    assert!(ended.stderr.contains(&first), "{}", ended.stderr);
    let stats = fs::read_to_string(home.path().join("stats.json"));
    assert_eq!(parsed(&stats.expect("it is written"))["end"], end);
}

#[test]
fn the_demo_ends_with_the_statistics_of_its_crawl() {
    fetch_crates();
    let home = Home::new();
    let ended = build(&mut home.command(["demo", "--stats=stats.json"]));
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let said = &ended.stdout;
    let mut lines = said
        .lines()
        .skip_while(|line| !line.starts_with("420 pages, 400 items, "));
    let first = lines.next().unwrap_or_default();
    assert!(first.ends_with(&format!("; {FINISHED}")), "{said}");
    let block: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    let expected = [
        "  outcomes      parsed 420",
        "  statuses      200: 420",
        "  items         book 400",
    ];
    assert_eq!(block, expected, "{said}");
    let stats = fs::read_to_string(home.path().join("stats.json"));
    let stats = parsed(&stats.expect("it is written"));
    assert_eq!(
        (&stats["counts"]["parsed"], &stats["end"]),
        (&json!(420), &json!(FINISHED))
    );
    assert_eq!(stats["kinds"]["book"]["items"], 400, "{stats}");
}
