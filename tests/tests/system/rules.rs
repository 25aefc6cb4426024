//! Rules: the parts of their requests, rules that are pushed while the system runs, and the example plugins on
//! whole sites.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crawler::demo::{START, Shop};
use crawler_tests::web::{Asked, IntoResponse as _, Site, StatusCode};
use crawler_tests::{PATIENCE, repository};
use serde_json::{Value, json};

use crate::server::{Server, text};
use crate::sites::{self, Gate};

#[test]
fn s22_a_request_carries_method_headers_depth_priority_rule_and_state() {
    let echo = |asked: Asked| async move {
        let header = asked
            .headers
            .get("x-token")
            .and_then(|value| value.to_str().ok());
        let body = String::from_utf8_lossy(&asked.body).into_owned();
        match (asked.method.as_str(), header, body.as_str()) {
            ("POST", Some("t-1"), "q=books") => r#"[
                {"url": "/low", "priority": -1, "state": "l", "rule": "leaf"},
                {"url": "/plain", "rule": "leaf"},
                {"url": "/high", "priority": 7, "state": "h"}
            ]"#
            .into_response(),
            _ => StatusCode::BAD_REQUEST.into_response(),
        }
    };
    let web = Site::new()
        .handle("/form", echo)
        .page("/low", "not JSON, and nobody minds")
        .page("/plain", "neither")
        .page(
            "/high",
            r#"[{"url": "/deep", "priority": 1, "rule": "leaf", "state": "hd"}]"#,
        )
        .page("/deep", "")
        .open();
    let server = Server::with_puppet();
    let form = web.url("/form");
    let root = json!([{
        "url": form, "method": "POST", "body": "q=books", "headers": {"X-Token": "t-1"}, "state": "r",
    }]);
    let root = format!("root={root}");
    server.ok(&[
        "resource",
        "add",
        "form",
        "--plugin=puppet",
        "--param",
        &root,
        "--concurrency=1",
    ]);
    server.finished("form");
    let order: Vec<String> = web
        .log()
        .into_iter()
        .map(|hit| format!("{} {}", hit.method, hit.path))
        .collect();
    assert_eq!(
        order,
        [
            "POST /form",
            "GET /high",
            "GET /deep",
            "GET /plain",
            "GET /low"
        ]
    );
    let seen = server.records("form").into_iter().map(|record| {
        let item = &record["item"];
        assert_eq!(record["url"], item["url"]);
        json!([item["url"], record["rule"], item["depth"], item["state"]])
    });
    let wanted = [
        ("/deep", "leaf", 2, "hd"),
        ("/form", "branch", 0, "r"),
        ("/high", "branch", 1, "h"),
        ("/low", "leaf", 1, "l"),
        ("/plain", "leaf", 1, ""),
    ];
    let wanted =
        wanted.map(|(path, rule, depth, state)| json!([web.url(path), rule, depth, state]));
    assert_eq!(seen.collect::<Vec<Value>>(), wanted);
}

/// The page at `/again` asks for itself once more; one request in between fails before it is answered.
#[test]
fn s24_pages_are_fetched_once_by_method_url_and_body_unless_they_ask_to_be_reloaded() {
    let n_failures = Arc::new(AtomicU32::new(0));
    let flaky = move |_asked: Asked| {
        let is_first = n_failures.fetch_add(1, Ordering::Relaxed) == 0;
        async move {
            match is_first {
                true => StatusCode::SERVICE_UNAVAILABLE.into_response(),
                false => "[]".into_response(),
            }
        }
    };
    let web = Site::new()
        .page(
            "/",
            r##"[
                {"url": "/one?a=1", "rule": "leaf"},
                {"url": "/one?a=1#part", "rule": "leaf"},
                {"url": "/%6fne?a=1", "rule": "leaf"},
                {"url": "/one?a=1", "method": "POST", "body": "x", "rule": "leaf"},
                {"url": "/one?a=1", "method": "POST", "body": "y", "rule": "leaf"},
                {"url": "/again", "rule": "leaf", "reload": true},
                {"url": "/flaky"},
                {"url": "/first", "priority": 9}
            ]"##,
        )
        .page("/one", "")
        .page("/again", "")
        .handle("/flaky", flaky)
        .page(
            "/first",
            r#"[{"url": "/again", "rule": "leaf", "reload": true}, {"url": "/"}]"#,
        )
        .open();
    let server = Server::with_puppet();
    server.add("once", &web.url("/"), &["--concurrency=1"]);
    let once = server.finished("once");
    let mut asked: Vec<String> = web
        .log()
        .into_iter()
        .map(|hit| format!("{} {}", hit.method, hit.path))
        .collect();
    assert_eq!(asked[..2], ["GET /", "GET /first"]);
    asked.sort();
    let n_asked = |what: &str| asked.iter().filter(|asked| *asked == what).count();
    assert_eq!(n_asked("GET /"), 1);
    assert_eq!(
        (n_asked("GET /one"), n_asked("POST /one")),
        (1, 2),
        "{asked:?}"
    );
    assert_eq!(
        n_asked("GET /again"),
        1,
        "it waited, and a reload changed nothing"
    );
    assert_eq!(
        (n_asked("GET /flaky"), &once["counts"]["retries"]),
        (2, &json!(1))
    );
}

#[test]
fn s22_links_deeper_than_the_limit_are_counted_and_not_followed() {
    let web = sites::chain(9).open();
    let server = Server::with_puppet();
    server.add("shallow", &web.url("/0"), &["--max-depth=2"]);
    let shallow = server.finished("shallow");
    assert_eq!(web.log().len(), 3);
    assert_eq!(shallow["counts"]["refused_links"], json!({"max-depth": 1}));
}

#[test]
fn s23_rules_are_pushed_while_others_run_and_no_process_starts_again() {
    let gate = Gate::closed();
    let web = sites::gated_chain(3, 1, &gate).open();
    let server = Server::start();
    let start = format!("start={}", web.url("/0"));
    let refused = server.cli(&[
        "resource",
        "add",
        "books",
        "--plugin=rules",
        "--param",
        &start,
    ]);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.stderr.contains("there is no plugin rules"),
        "{}",
        refused.stderr
    );

    server.push("puppet", &["--as=rules@1.0.0"]);
    server.ok(&[
        "resource",
        "add",
        "old",
        "--plugin=rules",
        "--param",
        &start,
    ]);
    web.wait_for("second page", PATIENCE, |log| log.len() == 2);
    server.push("puppet", &["--as=rules@1.1.0"]);
    let end = format!("start={}", web.url("/2"));
    server.ok(&["resource", "add", "new", "--plugin=rules", "--param", &end]);
    let new = server.finished("new");
    let old = server.resource("old");
    assert_eq!(
        (&old["phase"], &old["plugin_version"]),
        (&json!("Running"), &json!("1.0.0"))
    );
    assert_eq!(new["plugin_version"], "1.1.0");
    gate.open();
    server.finished("old");
    assert_eq!(server.items("old").len(), 3);
}

#[test]
fn f28_a_page_of_two_bytes_is_a_page() {
    let web = sites::chain(1).open();
    let server = Server::with_puppet();
    server.add("tiny", &web.url("/0"), &[]);
    let counts = server.finished("tiny")["counts"].clone();
    assert_eq!(
        (&counts["parsed"], &counts["bytes"], &counts["dead"]),
        (&json!(1), &json!(2), &json!(0))
    );
}

#[test]
fn s28_the_book_shop_is_read_whole() {
    let server = Server::start();
    let shop = server.home.start(["demo", "--site-only"]);
    let line = shop.answer("address", PATIENCE, |line| {
        line.starts_with("a crawl starts at ")
    });
    let start = line.trim_start_matches("a crawl starts at ");
    let base = start.trim_end_matches(START).parse().expect("a URL");
    server.push("books", &[]);
    server.ok(&[
        "resource",
        "add",
        "books",
        "--param",
        &format!("start={start}"),
    ]);
    let books = server.finished("books");
    assert_eq!(server.items("books"), Shop::new().truth(&base));
    assert_eq!(books["counts"]["parsed"], Shop::new().n_pages());
    assert_eq!(books["counts"]["dead"], 0);
}

/// Returns a saved page of an example plugin.
fn page(plugin: &str, name: &str) -> String {
    let path = repository()
        .join("plugins")
        .join(plugin)
        .join("pages")
        .join(name);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn s28_a_forum_is_read_list_by_list() {
    let web = Site::new()
        .handle("/gardening", |asked| async move {
            let first = page("forum_list", "list.html");
            axum::response::Html(match asked.query.as_str() {
                "" => first,
                _ => first
                    .replace("/thread/4", "/thread/3")
                    .replace("?page=2", "?page=3"),
            })
        })
        .open();
    let server = Server::start();
    server.push("forum_list", &[]);
    let start = format!("start={}", web.url("/gardening"));
    server.ok(&[
        "resource",
        "add",
        "forum_list",
        "--param",
        &start,
        "--param",
        "pages=2",
    ]);
    server.finished("forum_list");
    let thread = |n: u32, title: &str, author: &str, replies: u32| json!({"url": web.url(&format!("/thread/{n}")), "title": title, "author": author, "replies": replies});
    let wanted = [
        thread(30, "Tomatoes & rain", "old_oak", 0),
        thread(31, "Slugs, again", "marigold", 12),
        thread(40, "Tomatoes & rain", "old_oak", 0),
        thread(41, "Slugs, again", "marigold", 12),
    ];
    assert_eq!(server.items("forum_list"), wanted);
    let asked: Vec<String> = web.log().into_iter().map(|hit| hit.query).collect();
    assert_eq!(asked, ["", "page=2"]);
}

#[test]
fn s28_books_are_read_in_three_steps_and_keep_the_tag_that_led_to_them() {
    const NOVELS: &str = "/tag/%E5%B0%8F%E8%AF%B4";
    const POEMS: &str = "/tag/%E8%AF%97%E6%AD%8C";
    let plugin = "douban_book_list";
    let book = |title: &str| page(plugin, "book.html").replace("边城", title);
    let web = Site::new()
        .page("/tag/", page(plugin, "tags.html"))
        .handle(NOVELS, move |asked| async move {
            // Addresses of the saved page that name a host are made relative.
            let list = page(plugin, "list.html").replace("http://books.test", "");
            axum::response::Html(match asked.query.as_str() {
                "" => list,
                _ => list
                    .replace("/subject/1/", "/subject/3/")
                    .replace("span class=\"next\"", "span"),
            })
        })
        .page(
            POEMS,
            "<li class=subject-item><h2><a href=/subject/4/>一</a></h2></li>",
        )
        .page("/subject/1/", book("边城"))
        .page(
            "/subject/2/",
            book("围城").replace("出版社", "").replace("8.8", ""),
        )
        .page("/subject/3/", book("活着"))
        .page("/subject/4/", book("诗经"))
        .open();
    let server = Server::start();
    server.push(plugin, &[]);
    let start = format!("start={}", web.url("/tag/"));
    server.ok(&[
        "resource",
        "add",
        plugin,
        "--param",
        &start,
        "--concurrency=1",
    ]);
    server.finished(plugin);
    let book = |n: u32, tag: &str, title: &str, publisher: Option<&str>, score: Option<f32>| {
        json!({
            "url": web.url(&format!("/subject/{n}/")), "tag": tag, "title": title,
            "author": "沈从文", "publisher": publisher, "score": score,
        })
    };
    let (publisher, score) = (Some("河畔书局"), Some(8.8));
    let wanted = [
        book(1, "小说", "边城", publisher, score),
        book(2, "小说", "围城", None, None),
        book(3, "小说", "活着", publisher, score),
        book(4, "诗歌", "诗经", publisher, score),
    ];
    let mut items = server.items(plugin);
    for item in &mut items {
        // The number is as short as the plugin wrote it: 8.8, not the nearest number of twice the size.
        item["score"] = json!(item["score"].as_f64().map(|score| score as f32));
    }
    assert_eq!(items, wanted);
    let rules = server.records(plugin);
    assert!(rules.iter().all(|record| text(&record["rule"]) == "detail"));
    // A detail found on a list comes before the next list of the tag.
    let log = web.log();
    let place = |path: &str, query: &str| {
        log.iter()
            .position(|hit| hit.path == path && hit.query == query)
            .expect("it was asked for")
    };
    assert!(place("/subject/1/", "") < place(NOVELS, "start=20&type=T"));
    assert_eq!(log.len(), 8);
}
