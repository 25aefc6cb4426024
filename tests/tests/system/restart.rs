//! `up` restarted on the same folder: finished runs stay, and interrupted ones go on; and runs that begin because
//! a user asked for them.

use std::collections::BTreeSet;

use crawler_tests::web::{Method, Site};
use crawler_tests::{PATIENCE, until};
use serde_json::json;

use crate::server::{Server, lines, text};
use crate::sites::{self, Gate};

#[test]
fn plugins_resources_and_items_are_there_after_a_restart() {
    let web = sites::chain(5).open();
    let server = Server::with_puppet();
    server.add("books", &web.url("/0"), &["--limit=memory=8MiB"]);
    let before = server.finished("books");
    let (items, plugins) = (server.records("books"), server.get("/crawler/plugin").text);
    assert_eq!(items.len(), 5);

    let server = Server::start_in(server.stop(), &[]);
    assert_eq!(server.get("/crawler/plugin").text, plugins);
    assert_eq!(server.resource("books"), before);
    assert_eq!(server.records("books"), items);
    // The plugin's bytes are kept too: a new resource runs them.
    server.add("again", &web.url("/0"), &[]);
    server.finished("again");
    assert_eq!(web.log().len(), 10);
}

#[test]
fn the_log_and_messages_of_rules_are_there_after_a_restart_and_a_redrive() {
    let links: Vec<_> = (1..=12).map(|n| json!({"url": format!("/{n}")})).collect();
    let mut site = Site::new().page("/0", json!(links).to_string());
    for n in 1..=12 {
        site = site.page(&format!("/{n}"), r#"[{"url": "/x", "rule": "gone"}]"#);
    }
    let web = site.open();
    let server = Server::with_puppet();
    server.add("books", &web.url("/0"), &[]);
    server.finished("books");
    let logs = |server: &Server| server.ok(&["resource", "logs", "books"]);
    let told = |logs: &str| {
        let lines = logs
            .lines()
            .filter(|line| line.ends_with("no rule is called gone"));
        let lines: Vec<bool> = lines.map(|line| line.contains("(and 11 more)")).collect();
        lines
    };
    let before = logs(&server);
    assert_eq!(told(&before), [true], "{before}");

    let server = Server::start_in(server.stop(), &[]);
    assert_eq!(logs(&server), before);
    let url = web.url("/7").to_string();
    let why = server.ok(&["frontier", "why", "books", &url]);
    assert!(why.contains("rule-error (no rule is called gone)"), "{why}");
    server.ok(&["frontier", "redrive", "books"]);
    until("dead again", PATIENCE, || {
        (told(&logs(&server)) == [true, true]).then_some(())
    });
    assert!(logs(&server).starts_with(&before));
}

#[test]
fn f23_a_crawl_that_was_cut_off_goes_on_in_the_same_run_and_its_items_appear_once() {
    let gate = Gate::closed();
    let web = sites::gated_chain(6, 3, &gate).open();
    let server = Server::with_puppet();
    server.add("books", &web.url("/0"), &[]);
    web.wait_for("page that is held back", PATIENCE, |log| log.len() == 4);
    // Items at the sink are durable.
    until("items", PATIENCE, || {
        (server.items("books").len() == 3).then_some(())
    });
    let before = server.resource("books");
    assert_eq!(
        (&before["phase"], &before["run"]),
        (&json!("Running"), &json!(1))
    );

    let server = server.killed_and_started_again();
    gate.open();
    let after = server.finished("books");
    assert_eq!(
        (&after["run"], &after["generation"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(after["spec"]["id"], before["spec"]["id"]);
    assert_eq!(after["counts"]["items"], 6);
    check_items(&server, 6, 1);
    let fetched = ["/0", "/1", "/2", "/3", "/4"].map(|path| web.count(path));
    assert_eq!(fetched, [1, 1, 1, 2, 1]);
    // Its robots.txt is kept.
    assert_eq!(web.robots_log().len(), 1);
}

#[test]
fn a_budget_of_pages_is_for_the_whole_run_however_often_the_process_is_killed() {
    let gates = [Gate::closed(), Gate::closed()];
    let web = sites::chain_of_gates(100, [(2, &gates[0]), (5, &gates[1])]).open();
    let mut server = Server::with_puppet();
    server.add("books", &web.url("/0"), &["--max-pages=7"]);
    for (gate, n_pages, n_requests) in [(&gates[0], 2, 3), (&gates[1], 5, 7)] {
        web.wait_for("page that is held back", PATIENCE, |log| {
            log.len() == n_requests
        });
        // Items at the sink are durable.
        until("items", PATIENCE, || {
            (server.items("books").len() == n_pages).then_some(())
        });
        server = server.killed_and_started_again();
        gate.open();
    }
    let after = server.finished("books");
    assert_eq!(
        (&after["run"], &after["counts"]["parsed"]),
        (&json!(1), &json!(7))
    );
    check_items(&server, 7, 1);
    let fetched = ["/1", "/2", "/4", "/5", "/6", "/7"].map(|path| web.count(path));
    assert_eq!(fetched, [1, 2, 1, 2, 1, 0]);
}

#[test]
fn a_new_run_begins_when_it_is_asked_for_over_or_under_way() {
    let gate = Gate::closed();
    let web = sites::gated_chain(6, 3, &gate).open();
    let server = Server::with_puppet();
    server.add("books", &web.url("/0"), &[]);
    web.wait_for("page that is held back", PATIENCE, |log| log.len() == 4);
    let restart = ["resource", "restart", "books"];
    assert_eq!(server.ok(&restart), "resource books restarted; run 2\n");
    gate.open();
    let second = server.finished("books");
    assert_eq!(second["run"], 2);
    assert_eq!(second["counts"]["parsed"], 6);
    assert_eq!(web.count("/0"), 2);
    check_items(&server, 6, 2);
    let place = server.records("books")[3]["position"].clone();

    let path = "/crawler/resource/books/restart";
    let answer = server.http(Method::POST, path, Some("{}"));
    assert_eq!((answer.status, &answer.json()["run"]), (200, &json!(3)));
    let third = server.finished("books");
    assert_eq!(
        (&third["run"], &third["counts"]["parsed"]),
        (&json!(3), &json!(6))
    );
    check_items(&server, 6, 3);
    // A client that was reading the run before goes on reading in it.
    let path = "/crawler/resource/books/items?envelope&follow&after=";
    let rest = lines(&server.get(&format!("{path}{}", text(&place))).text);
    let rest = rest
        .iter()
        .map(|record| (text(&record["url"]).to_owned(), record["run"].clone()));
    let expected = ["/4", "/5"].map(|path| (web.url(path).to_string(), json!(2)));
    assert_eq!(rest.collect::<Vec<_>>(), expected);
    assert_eq!(third["spec"]["id"], second["spec"]["id"]);
}

#[test]
fn a_frontier_that_is_missing_is_told_and_given_up_only_by_a_restart() {
    let gate = Gate::closed();
    let web = sites::gated_chain(6, 3, &gate).open();
    let server = Server::with_puppet();
    server.add("books", &web.url("/0"), &[]);
    until("items", PATIENCE, || {
        (server.items("books").len() == 3).then_some(())
    });
    let server = server.killed_while(|home| {
        std::fs::remove_dir_all(home.join("crawler-data/frontiers")).expect("a folder");
    });
    gate.open();
    // Until the crawl is assigned again, it waits with this reason.
    let reason = until("the reason", PATIENCE, || {
        let books = server.in_phase("books", "Pending");
        let reason = text(&books["reason"]).to_owned();
        reason
            .starts_with("FrontierMissing: the frontier ")
            .then_some(reason)
    });
    assert!(reason.ends_with("`crawler resource restart`"), "{reason}");
    let stats = server.cli(&["frontier", "stats", "books"]);
    assert_eq!(stats.stderr, format!("error: {reason}\n"));
    assert_eq!(web.count("/0"), 1, "no crawl begins unasked");

    server.ok(&["resource", "restart", "books"]);
    assert_eq!(server.finished("books")["run"], 2);
    check_items(&server, 6, 2);
}

#[test]
fn items_are_followed_through_a_kill_of_the_server_and_each_comes_once() {
    let gates = [Gate::closed(), Gate::closed()];
    let web = sites::chain_of_gates(48, [(16, &gates[0]), (32, &gates[1])]).open();
    let mut server = Server::with_puppet();
    server.add("books", &web.url("/0"), &[]);
    let mut following = server.command(&["items", "books", "--follow"]);
    for (gate, last) in gates.iter().zip([15, 31]) {
        let url = format!("\"{}\"", web.url(&format!("/{last}")));
        following.answer("item", PATIENCE, |line| line.contains(&url));
        server = server.killed_and_started_again();
        gate.open();
    }
    let ended = following.wait(PATIENCE);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let urls = lines(&ended.stdout).into_iter();
    let urls: Vec<String> = urls.map(|item| text(&item["url"]).to_owned()).collect();
    let expected: Vec<_> = (0..48)
        .map(|n| web.url(&format!("/{n}")).to_string())
        .collect();
    assert_eq!(urls, expected);
    assert!(
        ended.stderr.starts_with("waiting for the master: "),
        "{}",
        ended.stderr
    );
    assert_eq!(server.finished("books")["run"], 1);
}

#[test]
fn events_are_followed_through_a_kill_of_the_server() {
    let web = sites::chain(1).open();
    let mut server = Server::with_puppet();
    server.add("books", &web.url("/0"), &[]);
    server.finished("books");
    let mut following = server.command(&["resource", "events", "books", "--follow"]);
    following.answer("event", PATIENCE, |line| line.contains("finished"));
    server = server.killed_and_started_again();
    server.ok(&["resource", "pause", "books"]);
    following.answer("event", PATIENCE, |line| line.contains("paused"));
    server.ok(&["resource", "delete", "books"]);
    let ended = following.wait(PATIENCE);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let kinds = ended.stdout.lines().skip(1);
    let kinds: Vec<_> = kinds
        .filter_map(|line| line.split_whitespace().nth(1))
        .collect();
    let expected = ["added", "placed", "finished", "paused", "deleted"];
    assert_eq!(kinds, expected, "{}", ended.stdout);
    let waited = ended.stderr.starts_with("waiting for the master: ");
    assert!(waited, "{}", ended.stderr);
}

/// Checks that there are `n_items` items, one for each page, all of this run.
#[track_caller]
fn check_items(server: &Server, n_items: usize, run: u64) {
    let records = server.records("books");
    let urls: BTreeSet<&str> = records.iter().map(|record| text(&record["url"])).collect();
    assert_eq!((records.len(), urls.len()), (n_items, n_items));
    assert!(records.iter().all(|record| record["run"] == run));
}
