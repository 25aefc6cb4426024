//! A crawl while it runs: changed, followed, deleted.

use std::time::{Duration, Instant};

use crawler_tests::web::{Method, Site, StatusCode, shortest_pause};
use crawler_tests::{PATIENCE, until};
use serde_json::json;

use crate::server::{Server, lines, pass, text};
use crate::sites::{self, Gate};

/// Number of pages that no test reaches.
const ENDLESS: usize = 1_000_000_000;
/// Flag that lets a crawl follow them; it would end at page 50.
const DEEP: &str = "--max-depth=4000000000";
/// Time after its deletion within which a crawl stops asking.
const QUIET_AFTER: Duration = Duration::from_secs(2);
/// Tolerance: the site and the crawler read their clocks at different moments.
const CLOCK_STEP: Duration = Duration::from_millis(5);

#[test]
fn an_update_changes_the_pace_and_the_end_of_a_running_crawl() {
    let delay = Duration::from_millis(300);
    let web = sites::chain(ENDLESS).open();
    let server = Server::with_puppet();
    let quick = ["--delay=1ms", "--concurrency=1", DEEP];
    server.add("walk", &web.url("/0"), &quick);
    let log = web.wait_for("quick pages", PATIENCE, |log| log.len() >= 10);
    assert!(shortest_pause(&log) < Some(delay));

    let said = server.ok(&["resource", "update", "walk", "--delay=300ms"]);
    assert_eq!(said, "resource walk changed; generation 2\n");
    // The first pages were under way when the setting changed.
    let n_before = web.log().len() + 2;
    let log = web.wait_for("slow pages", PATIENCE, |log| log.len() >= n_before + 4);
    let pause = shortest_pause(&log[n_before..]);
    assert!(pause >= Some(delay - CLOCK_STEP), "{pause:?}");

    server.ok(&["resource", "update", "walk", "--max-pages=1"]);
    let walk = server.finished("walk");
    assert_eq!((&walk["generation"], &walk["run"]), (&json!(3), &json!(1)));
    assert_eq!(
        walk["spec"]["crawl"],
        json!({"delay_ms": 300, "concurrency": 1, "max_pages": 1, "max_depth": 4_000_000_000_u32})
    );
    assert_eq!(web.count("/0"), 1);
}

#[test]
fn f39_a_deleted_crawl_asks_for_nothing_more_and_starts_anew_when_added_again() {
    let web = sites::chain(ENDLESS).open();
    let server = Server::with_puppet();
    server.add("walk", &web.url("/0"), &["--delay=5ms", DEEP]);
    web.wait_for("some pages", PATIENCE, |log| log.len() >= 60);
    let first = server.resource("walk")["spec"]["id"].clone();
    assert_eq!(server.ok(&["resource", "delete", "walk"]), "deleted walk\n");
    let deleted = Instant::now();
    assert_eq!(
        server
            .http(Method::GET, "/crawler/resource/walk", None)
            .status,
        404
    );
    pass(QUIET_AFTER + Duration::from_secs(1));
    let late = web
        .log()
        .into_iter()
        .filter(|hit| hit.start > deleted + QUIET_AFTER)
        .count();
    assert_eq!(late, 0);
    assert_eq!(server.load(), 0);

    // The items of the deleted crawl are read by its id.
    let id = text(&first).to_owned();
    let items = server.items(&id);
    assert!(items.len() >= 59, "{}", items.len());
    assert!(
        items
            .iter()
            .any(|item| item["url"] == web.url("/0").as_str())
    );

    server.add("walk", &web.url("/0"), &["--max-pages=3"]);
    let walk = server.finished("walk");
    assert_ne!(walk["spec"]["id"], first);
    assert_eq!((&walk["generation"], &walk["run"]), (&json!(1), &json!(1)));
    assert_eq!(web.count("/0"), 2);
    assert_eq!(
        (server.items("walk").len(), server.items(&id).len()),
        (3, items.len())
    );

    // With --purge the items go too.
    let id = text(&walk["spec"]["id"]).to_owned();
    let folder = server.home.path().join("crawler-data/items").join(&id);
    assert!(folder.is_dir());
    server.ok(&["resource", "delete", "walk", "--purge"]);
    until("end of the folder", PATIENCE, || {
        (!folder.exists()).then_some(())
    });
    let gone = server.http(Method::GET, &format!("/crawler/resource/{id}/items"), None);
    assert_eq!(gone.status, 404, "{gone:?}");
}

#[test]
fn a_watched_list_is_shown_again_when_it_changes() {
    let web = sites::chain(3).open();
    let server = Server::with_puppet();
    let watching = server.command(&["resource", "list", "--watch"]);
    watching.answer("head", PATIENCE, |line| line.starts_with("RESOURCE"));
    server.add("books", &web.url("/0"), &[]);
    watching.answer("end", PATIENCE, |line| {
        line.starts_with("books ") && line.contains("Finished")
    });
}

#[test]
fn items_are_followed_while_they_come_until_the_run_is_over() {
    let gate = Gate::closed();
    let web = sites::gated_chain(4, 2, &gate).open();
    let server = Server::with_puppet();
    server.add("books", &web.url("/0"), &[]);
    let mut following = server.command(&["items", "books", "--follow"]);
    for path in ["/0", "/1"] {
        let url = web.url(path);
        following.answer("item", PATIENCE, |line| {
            line.contains(&format!("\"{url}\""))
        });
    }
    assert!(following.is_running());
    gate.open();
    let ended = following.wait(PATIENCE);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let urls: Vec<String> = lines(&ended.stdout)
        .iter()
        .map(|item| text(&item["url"]).to_owned())
        .collect();
    assert_eq!(
        urls,
        ["/0", "/1", "/2", "/3"].map(|path| web.url(path).to_string())
    );
    // A run that is over brings nothing more.
    assert_eq!(server.ok(&["items", "books", "--follow"]), ended.stdout);
}

#[test]
fn logs_are_followed_while_they_come_until_the_crawl_is_over() {
    let gate = Gate::closed();
    let held = gate.clone();
    let web = Site::new()
        .page("/", r#"[{"url": "/refused"}, {"url": "/late"}]"#)
        .handle("/refused", |_| async { StatusCode::FORBIDDEN })
        .handle("/late", move |_| {
            let held = held.clone();
            async move {
                held.pass().await;
                StatusCode::METHOD_NOT_ALLOWED
            }
        })
        .open();
    let server = Server::with_puppet();
    server.add("books", &web.url("/"), &[]);
    let mut following = server.command(&["resource", "logs", "books", "--follow"]);
    let line = following.answer("line", PATIENCE, |line| line.contains("/refused"));
    assert!(
        line.ends_with("given up after attempt 1: status-403"),
        "{line}"
    );
    assert!(following.is_running());
    gate.open();
    let ended = following.wait(PATIENCE);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(
        ended
            .stdout
            .lines()
            .filter(|line| line.contains("/late"))
            .count(),
        1,
        "{}",
        ended.stdout
    );
    let counts = server.finished("books")["counts"].clone();
    let expected = json!({"status-403": 1, "status-405": 1});
    assert_eq!(counts["dead_by_reason"], expected);
}
