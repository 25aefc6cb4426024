//! URLs of a crawl as its user asks for them: how many, which, why, and once more.

use std::collections::BTreeSet;

use crawler_tests::web::{Asked, Method, Site, StatusCode, Web};
use crawler_tests::{PATIENCE, until};
use serde_json::{Value, json};

use crate::server::{Server, text};
use crate::sites::{self, Gate};

/// Opens a site with seven links: one is read, one gets a form, one is gone, one is refused at first, one
/// redirects, and two are not followed.
fn web() -> Web {
    let links = json!([
        {"url": "/a"},
        {"url": "/form", "method": "POST", "body": "n=1", "rule": "leaf"},
        {"url": "/gone"},
        {"url": "/refused"},
        {"url": "/moved"},
        {"url": "http://other.test/x"},
        {"url": "mailto:x@a.test"},
    ]);
    let refused = |asked: Asked| async move {
        match asked.nth {
            1 => Err(StatusCode::FORBIDDEN),
            _ => Ok("[]"),
        }
    };
    Site::new()
        .page("/", links.to_string())
        .page("/a", "[]")
        .page("/form", "[]")
        .handle("/refused", refused)
        .handle("/moved", |_| async {
            (StatusCode::FOUND, [("location", "/target")])
        })
        .page("/target", "[]")
        .open()
}

fn crawled() -> (Web, Server) {
    let (web, server) = (web(), Server::with_puppet());
    server.add("books", &web.url("/"), &[]);
    server.finished("books");
    (web, server)
}

fn paths(urls: &[Value]) -> BTreeSet<String> {
    let path = |url: &Value| {
        let url: url::Url = text(&url["url"]).parse().expect("a URL");
        url.path().to_owned()
    };
    urls.iter().map(path).collect()
}

#[test]
fn totals_and_lists_tell_what_became_of_every_url() {
    let (web, server) = crawled();
    let stats = server.get("/crawler/resource/books/frontier").json();
    assert_eq!((&stats["run"], &stats["seeded"]), (&json!(1), &json!(true)));
    assert_eq!(stats["root_hosts"], json!(["127.0.0.1"]));
    assert_eq!(stats["dead_letters"], 1);
    let counts = &stats["counts"];
    assert_eq!(counts["dead_by_reason"], json!({"status-403": 1}));
    let refused = json!({"out-of-scope": 1, "scheme": 1});
    assert_eq!(counts["refused_links"], refused);
    let numbers = ["parsed", "other_done", "dead", "due", "items"].map(|name| &counts[name]);
    assert_eq!(numbers, [4, 1, 1, 0, 4], "{counts}");
    let said = server.ok(&["frontier", "stats", "books"]);
    assert!(said.contains("\nparsed       4\n"), "{said}");
    assert!(said.contains("status-403 1"), "{said}");

    // Even in the smallest pages, each URL is listed once.
    let (mut all, mut token) = (Vec::new(), String::new());
    loop {
        let page = format!("/crawler/resource/books/frontier/urls?page_size=1&page_token={token}");
        let page = server.get(&page).json();
        let urls = page["urls"].as_array().expect("a list");
        assert!(urls.len() <= 1);
        all.extend(urls.clone());
        token = text(&page["next_page_token"]).to_owned();
        if token.is_empty() {
            break;
        }
    }
    let listed = paths(&all);
    let stored = ["/", "/a", "/form", "/gone", "/moved", "/refused"].map(str::to_owned);
    assert_eq!((all.len(), &listed), (stored.len(), &stored.into()));

    let dead = server.ok(&["frontier", "list", "books", "--state=dead"]);
    assert!(dead.starts_with("dead  status-403 at 20"), "{dead}");
    let ending = format!(" {}\n", web.url("/refused"));
    assert!(
        dead.ends_with(&ending) && dead.lines().count() == 1,
        "{dead}"
    );
    let some = server.cli(&["frontier", "list", "books", "--limit=2"]);
    assert_eq!((some.code, some.stdout.lines().count()), (Some(0), 2));
    let hint = "hint: there are more; show them with --limit 20\n";
    assert_eq!(some.stderr, hint);
    let due = server.ok(&["frontier", "list", "books", "--state=due"]);
    assert_eq!(due, "");
    let refused = server.ok(&["frontier", "list", "books", "--outcome=status-403"]);
    assert_eq!(refused, dead);
    let none = server.cli(&["frontier", "list", "books", "--outcome=gnoe"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), ""));
    let hint =
        "hint: no URL ended as \"gnoe\"; `crawler frontier stats books` shows how they did\n";
    assert_eq!(none.stderr, hint);
    let none = server.cli(&["frontier", "list", "books", "--outcome=dead"]);
    let hint = "hint: no URL ended as \"dead\"; `--state dead` lists those that are dead\n";
    assert_eq!(none.stderr, hint);

    // A list that is cut within a page has the token of its rest.
    let cut = ["frontier", "list", "books", "--outcome=parsed", "-o=json"];
    let cut = server.ok(&[&cut[..], &["--limit=1"]].concat());
    let cut: Value = serde_json::from_str(&cut).expect("it is JSON");
    let token = text(&cut["next_page_token"]);
    let rest = format!("/crawler/resource/books/frontier/urls?page_token={token}");
    let rest = server.get(&rest).json();
    let parsed = [&cut, &rest].map(|page| {
        let urls = page["urls"].as_array().expect("a list").clone();
        urls.into_iter().filter(|url| url["outcome"] == "parsed")
    });
    let parsed: Vec<Value> = parsed.into_iter().flatten().collect();
    let stored = ["/", "/a", "/form", "/moved"].map(str::to_owned);
    assert_eq!((parsed.len(), paths(&parsed)), (4, stored.into()));
}

#[test]
fn every_url_is_told_why_it_was_or_was_not_fetched() {
    let (web, server) = crawled();
    let why = |url: &str, flags: &[&str]| {
        let said = server.ok(&[&["frontier", "why", "books", url], flags].concat());
        said.lines().next().unwrap_or_default().to_owned()
    };
    let here = |path: &str| web.url(path).to_string();
    let unseen = "unseen: no page of run 1 has led to it so far";
    for (url, flags, begins) in [
        (here("/a"), &[][..], "done: parsed at 20"),
        (here("/a#part"), &[], "done: parsed at 20"),
        (here("/gone"), &[], "done: gone at 20"),
        (here("/target"), &[], "done: a redirect led to it in run 1"),
        (here("/refused"), &[], "dead: status-403, given up at 20"),
        (here("/form"), &[], unseen),
        (
            here("/form"),
            &["--method=post", "--body=n=1"],
            "done: parsed at 20",
        ),
        (here("/form"), &["--method=POST", "--body=n=2"], unseen),
        (here("/nowhere"), &[], unseen),
        (
            "http://other.test/x".to_owned(),
            &[],
            "refused: other.test is out of scope, which is 127.0.0.1; `crawler resource update books --scope other.test` widens it",
        ),
        ("mailto:x@a.test".to_owned(), &[], "refused: only http"),
    ] {
        let said = why(&url, flags);
        assert!(said.starts_with(begins), "{url} {flags:?}: {said}");
    }
    let path = format!(
        "/crawler/resource/books/frontier/why?url={}",
        web.url("/refused")
    );
    let answer = server.get(&path).json();
    assert_eq!(answer["state"], "dead");
    let entry = &answer["entry"];
    assert_eq!(
        (&entry["reason"], &entry["depth"], &entry["rule"]),
        (&json!("status-403"), &json!(1), &json!("branch"))
    );
}

#[test]
fn a_url_that_waits_in_a_crawl_that_has_stopped_is_told_why_it_waits() {
    let (web, server) = (web(), Server::with_puppet());
    server.add("books", &web.url("/"), &["--max-pages=1"]);
    server.finished("books");
    let url = web.url("/a").to_string();
    let why = || server.ok(&["frontier", "why", "books", &url]);
    let said = why();
    let begins = "due: not tried yet, as soon as its turn comes; nothing is fetched now: run 1 is over, for --max-pages or --max-bytes left no room; raise the one that binds, and `crawler resource restart books` begins anew\n";
    assert!(said.starts_with(begins), "{said}");

    let gate = Gate::closed();
    let web = sites::gated_chain(4, 2, &gate).open();
    server.add("walk", &web.url("/0"), &[]);
    until("request for /2", PATIENCE, || {
        (web.count("/2") == 1).then_some(())
    });
    server.ok(&["resource", "pause", "walk"]);
    let url = web.url("/2").to_string();
    let said = server.ok(&["frontier", "why", "walk", &url]);
    let paused =
        "; nothing is fetched now: the crawl is paused; `crawler resource resume walk` goes on\n";
    assert!(said.contains(paused), "{said}");
}

#[test]
fn the_hosts_of_a_crawl_are_told_as_they_are_now() {
    let gate = Gate::closed();
    let web = sites::gated_chain(4, 2, &gate).open();
    let server = Server::with_puppet();
    server.add("walk", &web.url("/0"), &[]);
    web.wait_for("page that is held back", PATIENCE, |log| log.len() == 3);
    let host = || {
        let page = server.get("/crawler/resource/walk/hosts").json();
        page["hosts"][0].clone()
    };
    until("page in flight", PATIENCE, || {
        let host = host();
        ([&host["due"], &host["in_flight"]] == [1, 1]).then_some(())
    });
    let listed = server.ok(&["resource", "hosts", "walk"]);
    assert!(listed.contains(", 1 in flight"), "{listed}");
    let hosts = || server.resource("walk")["shards"][0]["hosts_by_state"].clone();
    assert_eq!(hosts(), json!({"ready": 1}));
    let shown = server.ok(&["resource", "get", "walk"]);
    assert!(shown.contains("\nhosts      1: ready 1\n"), "{shown}");
    // Calls of the rule have used something of each limit that is measured.
    let memory = server.resource("walk")["shards"][0]["limits_used"]["memory"].clone();
    let [used, limit] = [&memory["used"], &memory["limit"]].map(|n| n.as_u64().unwrap_or(0));
    assert!(0 < used && used < limit, "{memory}");
    assert!(shown.contains("\nlimit use  "), "{shown}");
    let share = format!("memory {} % of 64MiB", used * 100 / limit);
    assert!(shown.contains(&share), "{shown}");
    let listed = server.get("/crawler/resource").json();
    let shard = &listed["resources"][0]["shards"][0];
    assert_eq!(
        [&shard["limits_used"], &shard["hosts_by_state"]],
        [&json!({}); 2],
        "not in lists"
    );
    server.ok(&["resource", "pause", "walk"]);
    gate.open();
    until("the end of the crawl", PATIENCE, || {
        host()["in_flight"].is_null().then_some(())
    });
    assert_eq!(hosts(), json!({}));
}

#[test]
fn f26_what_was_given_up_is_tried_again_in_the_same_run_and_nothing_else_is() {
    let (web, server) = crawled();
    let refused = server.cli(&["frontier", "redrive", "books", "--reason=timeout"]);
    assert_eq!(refused.code, Some(1));
    assert_eq!(
        refused.stderr,
        "error: run 1 of resource books has no dead letters given up for timeout\nhint: there are status-403 (1)\n"
    );
    let said = server.ok(&["frontier", "redrive", "books", "--reason=status-403"]);
    assert_eq!(said, "1 dead letter of books will be tried again\n");
    let books = server.finished("books");
    assert_eq!(books["run"], 1);
    assert_eq!(books["counts"]["dead"], 0);
    assert_eq!(books["counts"]["parsed"], 5);
    let fetched = ["/", "/a", "/form", "/gone", "/refused"].map(|path| web.count(path));
    assert_eq!(fetched, [1, 1, 1, 1, 2]);
    let items = server.items("books");
    assert_eq!((items.len(), paths(&items).len()), (5, 5));
    let path = "/crawler/resource/books/frontier/redrive";
    let again = server.http(Method::POST, path, Some("{}"));
    assert_eq!(
        again.problem(),
        "412 FAILED_PRECONDITION: run 1 of resource books has no dead letters"
    );
}
