//! Crawls that end in order and bring nothing, or not what was asked for: exit codes, phases and statistics.

use std::net::TcpListener;

use crawler_tests::guests;
use crawler_tests::process::{Ended, Home};
use crawler_tests::web::{IntoResponse as _, Site, StatusCode, Web, header};
use serde_json::Value;

use crate::server::Server;

/// Crawls with a guest from an address in one process.
fn run(home: &Home, guest: &str, start: &url::Url, more: &[&str]) -> Ended {
    let guest = guests::guest(guest).display().to_string();
    let start = format!("--param=start={start}");
    let allow = "--allow-networks=127.0.0.0/8";
    let run = ["run", &guest, &start, allow, "--max-attempts=1"];
    home.run(run.iter().chain(more))
}

/// Checks exit code and lines of stderr.
#[track_caller]
fn check(ended: &Ended, code: i32, told: &[&str]) {
    assert_eq!(ended.code, Some(code), "{}", ended.stderr);
    for told in told {
        assert!(ended.stderr.contains(told), "{told} in {}", ended.stderr);
    }
}

fn moved() -> Web {
    Site::new()
        .handle("/", |asked| async move {
            let host = asked.headers[header::HOST].to_str().unwrap_or_default();
            let to = host.replace("127.0.0.1", "127.0.0.2");
            (
                StatusCode::MOVED_PERMANENTLY,
                [(header::LOCATION, format!("http://{to}/"))],
            )
                .into_response()
        })
        .page("/leaf", "[]")
        .open()
}

#[test]
fn a_start_that_is_not_there_ends_with_a_code_and_the_status() {
    let (home, web) = (Home::new(), Site::new().open());
    let start = web.url("/nothing");
    let ended = run(&home, "puppet", &start, &["--stats=stats.json"]);
    let told = [
        "1 page, 0 items",
        "outcomes      gone 1",
        "statuses      404: 1",
        &format!("no page       {start}: gone, status 404"),
        "error: no root request gave a page: gone 1",
    ];
    check(&ended, 3, &told);
    let json = std::fs::read_to_string(home.path().join("stats.json")).expect("it is written");
    let stats: Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(stats["statuses"]["404"], 1, "{stats}");
    assert_eq!(stats["lost_roots"][0]["url"], start.as_str(), "{stats}");
}

/// Returns an address at which nobody listens.
fn deserted() -> url::Url {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let address = listener.local_addr().expect("it is bound");
    let url = format!("http://{address}/");
    url.parse().expect("it is whole")
}

#[test]
fn a_dead_start_ends_with_a_code_and_its_reason() {
    let home = Home::new();
    let robots = "User-agent: *\nDisallow: /private";
    let web = Site::new()
        .page("/robots.txt", robots)
        .page("/private", "[]")
        .page("/broken", "not what the rule expects")
        .page("/trap/0-trap", "x")
        .open();
    let check_dead = |ended: &Ended, dead: &url::Url, reason: &str, why: &str| {
        let told = [
            why,
            &format!("{dead} given up after attempt 1: {reason}\n"),
            "1 page, 0 items",
            "outcomes      dead 1",
            &format!("dead          1 {reason}, for example {dead}"),
            &format!("no page       {dead}: {reason}"),
            &format!("error: no root request gave a page: {reason} 1"),
        ];
        check(ended, 3, &told);
        assert_eq!(ended.stdout, "");
    };
    for (start, reason, why) in [
        (
            deserted(),
            "connection",
            "could not be reached, attempt 1: ",
        ),
        (
            web.url("/private"),
            "robots",
            "forbids it: line 2, Disallow: /private",
        ),
        (
            web.url("/broken"),
            "rule-error",
            "error: the page is not the JSON expected: ",
        ),
    ] {
        let ended = run(&home, "puppet", &start, &[]);
        check_dead(&ended, &start, reason, why);
    }
    let root = format!("--param=root={}", web.url("/trap/"));
    let more = ["--param=rules=trap", &root];
    let ended = run(&home, "hostile", &web.url("/trap/"), &more);
    let dead = web.url("/trap/0-trap");
    check_dead(&ended, &dead, "trapped", "ended by the host (trapped)");
}

#[test]
fn one_start_of_two_without_a_page_ends_with_a_code() {
    let server = Server::with_puppet();
    let web = Site::new().page("/here", "[]").open();
    let [here, gone] = ["/here", "/gone"].map(|path| web.url(path).to_string());
    let roots = serde_json::json!([{"url": here, "rule": "leaf"}, {"url": gone, "rule": "leaf"}]);
    let root = format!("--param=root={roots}");
    let told = format!("error: a root request gave no page: {gone}: gone, status 404");
    let ended = run(&Home::new(), "puppet", &web.url("/here"), &[&root]);
    check(&ended, 3, &["1 item", &told]);
    server.add("half", &web.url("/here"), &[&root]);
    check(&server.cli(&["resource", "wait", "half"]), 3, &[&told]);
    assert_eq!(server.in_phase("half", "Finished")["counts"]["parsed"], 1);
    let roots = serde_json::json!([{"url": gone, "rule": "leaf"}]);
    server.add("none", &web.url("/"), &[&format!("--param=root={roots}")]);
    let told = "error: no root request gave a page: gone 1";
    check(&server.cli(&["resource", "wait", "none"]), 3, &[told]);
}

#[test]
fn a_file_of_statistics_does_not_hide_how_a_crawl_ended() {
    let (home, web) = (Home::new(), Site::new().open());
    let start = web.url("/nothing");
    let ended = run(&home, "puppet", &start, &["--stats=nowhere/stats.json"]);
    check(&ended, 1, &["error: cannot create nowhere/stats.json"]);
    let late = ["--stats=nowhere/stats.json", "--confinement=off"];
    let ended = run(&home, "puppet", &start, &late);
    check(&ended, 3, &["error: no root request gave a page: gone 1"]);
    let same = ["--stats=./a.json", "--output=a.json"];
    let ended = run(&home, "puppet", &start, &same);
    check(&ended, 2, &["--output and --stats are the same file"]);
}

#[test]
fn a_start_that_redirects_out_of_scope_names_the_way_out() {
    let (home, web) = (Home::new(), moved());
    let ended = run(&home, "puppet", &web.url("/"), &[]);
    let told = [
        "not followed  1 out-of-scope: 127.0.0.2 1",
        "which is not followed; start there, or add its host with --scope 127.0.0.2",
    ];
    check(&ended, 3, &told);
}

#[test]
fn a_crawl_whose_start_is_dead_has_failed_until_it_is_redriven() {
    let server = Server::with_puppet();
    let web = Site::new().handle("/", |asked| async move {
        match asked.nth {
            1 => StatusCode::FORBIDDEN.into_response(),
            _ => "[]".into_response(),
        }
    });
    let web = web.open();
    server.add("dead", &web.url("/"), &[]);
    let waited = server.cli(&["resource", "wait", "dead"]);
    let told = [
        "error: resource dead failed: every root request was given up: status-403 1",
        "`crawler frontier redrive dead` tries them again",
    ];
    check(&waited, 3, &told);
    let said = &waited.stdout;
    assert!(said.contains("statuses      403: 1"), "{said}");
    assert!(
        said.contains("dead          1 status-403, for example"),
        "{said}"
    );
    assert_eq!(server.in_phase("dead", "Failed")["counts"]["dead"], 1);
    server.ok(&["frontier", "redrive", "dead"]);
    server.finished("dead");
    let said = server.ok(&["resource", "wait", "dead"]);
    assert!(said.contains("resource dead finished: 1 page"), "{said}");
    let stats = server.ok(&["resource", "stats", "dead", "-o", "json"]);
    let stats: Value = serde_json::from_str(&stats).expect("it is JSON");
    assert_eq!(stats["counts"]["parsed"], 1, "{stats}");
    assert_eq!(
        stats["kinds"]["visit"]["always_empty"][0], "state",
        "{stats}"
    );
    assert_eq!(stats["lost_roots"], serde_json::json!([]), "{stats}");
}

#[test]
fn a_limit_that_leaves_a_start_untried_is_no_failure() {
    let server = Server::with_puppet();
    let web = Site::new().handle("/", |_| async { StatusCode::FORBIDDEN });
    let web = web.open();
    let [one, other] = ["/", "/other"].map(|path| web.url(path).to_string());
    let roots = serde_json::json!([{"url": one, "rule": "leaf"}, {"url": other, "rule": "leaf"}]);
    let roots = format!("--param=root={roots}");
    server.add("limited", &web.url("/"), &[&roots, "--max-pages=1"]);
    let waited = server.cli(&["resource", "wait", "limited"]);
    let told = "error: no root request gave a page: status-403 1";
    check(&waited, 3, &[told]);
    let seen = server.in_phase("limited", "Finished");
    assert_eq!(seen["counts"]["due"], 1, "{seen}");
}

#[test]
fn statistics_of_several_shards_with_a_limit_are_whole() {
    let home = Home::new();
    let hosts = (0..8).map(|n| format!("\"h{n}.test\" = \"127.0.0.1\"\n"));
    let config = format!("[hosts]\n{}", hosts.collect::<String>());
    home.write("crawler.toml", &config);
    let server = Server::start_in(home, &["--config=crawler.toml"]);
    server.push("puppet", &[]);
    let web = Site::new().page("/", "").page("/page", "").open();
    let port = web.url("/").port().expect("a port");
    let root = (0..8).flat_map(|host| (0..8).map(move |n| (host, n)));
    let root = root.map(|(host, n)| {
        let url = format!("http://h{host}.test:{port}/page?{n}");
        serde_json::json!({"url": url, "rule": "leaf"})
    });
    let root = Value::Array(root.collect());
    let root = format!("--param=root={root}");
    server.add(
        "wide",
        &web.url("/"),
        &[&root, "--shards=2", "--max-pages=12", "--delay=0s"],
    );
    server.ok(&["resource", "wait", "wide"]);
    let stats = server.ok(&["resource", "stats", "wide", "-o", "json"]);
    let stats: Value = serde_json::from_str(&stats).expect("it is JSON");
    let parsed = stats["counts"]["parsed"].as_u64().expect("a number");
    assert!(parsed >= 2, "{stats}");
    assert_eq!(stats["statuses"]["200"], parsed, "{stats}");
    assert_eq!(stats["kinds"]["visit"]["items"], parsed, "{stats}");
}

#[test]
fn a_wait_and_a_get_do_without_statistics_that_are_away() {
    let server = Server::with_puppet();
    let web = Site::new().page("/", "[]").open();
    server.add("books", &web.url("/"), &[]);
    server.finished("books");
    let data = server.home.path().join("crawler-data");
    std::fs::rename(data.join("frontiers"), data.join("away")).expect("a folder");
    let unread = "statistics cannot be read: ";
    let waited = server.cli(&["resource", "wait", "books"]);
    check(&waited, 0, &[unread]);
    let said = &waited.stdout;
    assert!(said.contains("resource books finished: 1 page"), "{said}");
    let got = server.cli(&["resource", "get", "books"]);
    check(&got, 0, &[unread]);
    let got = server.cli(&["resource", "get", "books", "-o", "json"]);
    check(&got, 0, &[unread]);
    let got: Value = serde_json::from_str(&got.stdout).expect("it is JSON");
    assert_eq!(
        (&got["phase"], &got["statistics"]),
        (&"Finished".into(), &Value::Null)
    );
    // A condition that cannot be checked does not pass.
    let waited = server.cli(&["resource", "wait", "books", "--fail-on=empty=url"]);
    let told = "error: --fail-on empty=url cannot be checked: statistics cannot be read";
    check(&waited, 1, &[told]);
    let waited = server.cli(&["resource", "wait", "books", "--fail-on=items=1"]);
    check(&waited, 3, &["the crawl has 1 item"]);
}

#[test]
fn a_run_in_which_nothing_has_changed_is_a_success() {
    let server = Server::with_puppet();
    let web = Site::new().handle("/", |asked| async move {
        let tag = [(header::ETAG, "\"v1\"")];
        match asked.headers.contains_key(header::IF_NONE_MATCH) {
            true => (StatusCode::NOT_MODIFIED, tag).into_response(),
            false => (tag, "[]").into_response(),
        }
    });
    let web = web.open();
    server.add("books", &web.url("/"), &["--unchanged=skip"]);
    server.finished("books");
    server.ok(&["resource", "restart", "books"]);
    server.ok(&["resource", "wait", "books"]);
    let server = server.killed_and_started_again();
    let waited = server.ok(&["resource", "wait", "books"]);
    assert!(waited.contains("outcomes      not-modified 1"), "{waited}");
    assert!(waited.contains("statuses      304: 1"), "{waited}");
}

#[test]
fn conditions_of_fail_on_decide_about_the_exit_code() {
    let home = Home::new();
    let links = r#"[{"url":"/leaf","rule":"leaf"},{"url":"/forbidden","rule":"leaf"}]"#;
    let web = Site::new()
        .page("/", links)
        .page("/leaf", "[]")
        .handle("/forbidden", |_| async { StatusCode::FORBIDDEN })
        .open();
    let run = |conditions: &str| {
        let conditions = format!("--fail-on={conditions}");
        run(&home, "puppet", &web.url("/"), &[&conditions])
    };
    check(
        &run("dead=2,dead=50%,empty=url,items=1"),
        0,
        &["always empty  visit: state"],
    );
    let told = "error: --fail-on dead=30%: 1 of 3 pages was given up";
    check(&run("dead=2,dead=30%"), 3, &[told]);
    let told = "error: --fail-on empty=state: field state is empty in every item visit";
    check(&run("empty=state"), 3, &[told]);
    let told = "error: --fail-on empty=prise: no item has a field prise";
    check(&run("empty=prise"), 3, &[told]);
    let refused = run("dead=none");
    check(&refused, 2, &["dead takes a number from 1 on"]);
    // The same holds for a crawl in a cluster.
    let server = Server::with_puppet();
    server.add("books", &web.url("/"), &["--max-attempts=1"]);
    server.ok(&["resource", "wait", "books", "--fail-on=dead=2"]);
    let waited = server.cli(&["resource", "wait", "books", "--fail-on=items=2"]);
    check(
        &waited,
        3,
        &["error: --fail-on items=2: the crawl has 2 items"],
    );
    let list = server.ok(&["resource", "list"]);
    assert!(list.contains("PAGES  DEAD  ITEMS  RATE"), "{list}");
    let shown = server.ok(&["resource", "get", "books"]);
    assert!(
        shown.contains("dead          1 status-403, for example"),
        "{shown}"
    );
}

#[test]
fn a_selector_that_never_matches_is_named() {
    let home = Home::new();
    let html = r#"<article class="book"><h3><a href="/nothing">x</a></h3></article>"#;
    let web = Site::new().page("/", html).open();
    let ended = run(&home, "books", &web.url("/"), &[]);
    check(&ended, 0, &["unmatched     list: next\n"]);
    let ended = run(&home, "books", &web.url("/"), &["--fail-on=unmatched"]);
    let told = "error: --fail-on unmatched: selector next of plan list never matched";
    check(&ended, 3, &[told]);
}
