//! Drift quarantine: a shop whose markup or meaning changes in the middle of a crawl, as users see it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crawler_tests::web::{Method, Site, Web};
use crawler_tests::{PATIENCE, until};
use serde_json::{Value, json};

use crate::server::{Server, lines, text};

/// Number of books in the shop.
const N_BOOKS: usize = 200;
/// Number of books of a run that are as before; those that are asked for later are not.
const N_BEFORE: usize = 100;
/// Number of pages after the first bad one by which it has to be found.
const FOUND_WITHIN: usize = 50;

/// Change of the shop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
enum Broken {
    No,
    /// The class of the list of tags was renamed: it is found empty.
    TagsGone,
    /// The price is that of a monthly instalment.
    Instalment,
}

/// Present state of the shop.
#[derive(Default)]
struct Standing {
    broken: AtomicUsize,
    n_asked: AtomicUsize,
}

impl Standing {
    /// Begins a run in which the shop changes in this way.
    fn breaks(&self, broken: Broken) {
        self.n_asked.store(0, Ordering::Relaxed);
        self.broken.store(broken as usize, Ordering::Relaxed);
    }

    /// Returns whether the next book is as before.
    fn next(&self) -> Broken {
        let n_asked = self.n_asked.fetch_add(1, Ordering::Relaxed);
        match self.broken.load(Ordering::Relaxed) {
            _ if n_asked < N_BEFORE => Broken::No,
            1 => Broken::TagsGone,
            2 => Broken::Instalment,
            _ => Broken::No,
        }
    }
}

/// Returns the page of a book, with the markup that the plugin `books` reads.
fn book(n: usize, broken: Broken) -> String {
    let mixed = (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let pence = 1_000 + mixed % 4_000;
    let pence = if broken == Broken::Instalment {
        pence / 24
    } else {
        pence
    };
    let tags = if broken == Broken::TagsGone {
        "labels"
    } else {
        "tags"
    };
    format!(
        "<h1>Book {n} of {mixed}</h1><p class=\"author\">Author {}</p>\
         <p class=\"price\">£{}.{:02}</p><p class=\"stock\">In stock ({})</p>\
         <p class=\"rating\" data-stars=\"{}\"></p>\
         <ul class=\"{tags}\"><li>one</li><li>two</li></ul>\
         <div id=\"description\">A book about {mixed}.</div>",
        mixed % 30,
        pence / 100,
        pence % 100,
        mixed % 20,
        1 + mixed % 5,
    )
}

fn shop(standing: &Arc<Standing>) -> Web {
    let links = (1..=N_BOOKS).map(|n| {
        format!(
            "<article class=\"book\"><h3><a href=\"/book/{n}.html\">Book {n}</a></h3></article>"
        )
    });
    let standing = standing.clone();
    Site::new()
        .page("/", links.collect::<String>())
        .handle("/book/*", move |asked| {
            let n = asked
                .path
                .trim_start_matches("/book/")
                .trim_end_matches(".html");
            let html = book(n.parse().unwrap_or_default(), standing.next());
            async move { axum_html(html) }
        })
        .open()
}

fn axum_html(html: String) -> ([(&'static str, &'static str); 1], String) {
    ([("content-type", "text/html; charset=utf-8")], html)
}

/// Returns true for an item of a changed page.
fn is_bad(item: &Value) -> bool {
    let has_tags = item["tags"].as_array().is_some_and(|tags| !tags.is_empty());
    !has_tags
        || item["price_pence"]
            .as_u64()
            .is_none_or(|pence| pence < 1_000)
}

/// Starts a crawler whose resource has had one good run.
fn started(standing: &Arc<Standing>) -> (Server, Web) {
    let web = shop(standing);
    let server = Server::start();
    server.push("books", &[]);
    let start = format!("start={}", web.url("/"));
    let add = ["resource", "add", "shop", "--plugin=books", "--param"];
    let settings = [start.as_str(), "--concurrency=4", "--drift=normal"];
    server.ok(&[&add[..], &settings[..]].concat());
    server.finished("shop");
    assert_eq!(
        server.items("shop").len(),
        N_BOOKS,
        "nothing is known before"
    );
    (server, web)
}

fn next_run(server: &Server, standing: &Standing, broken: Broken) {
    standing.breaks(broken);
    server.ok(&["resource", "restart", "shop"]);
    server.finished("shop");
}

fn holds(server: &Server) -> Vec<Value> {
    let listed = server.get("/crawler/resource/shop/quarantine").json();
    listed["holds"].as_array().expect("a list of holds").clone()
}

#[test]
fn what_changes_in_the_middle_of_a_crawl_reaches_no_sink() {
    for (broken, field) in [
        (Broken::TagsGone, "tags"),
        (Broken::Instalment, "price_pence"),
    ] {
        let standing = Arc::new(Standing::default());
        let (server, _web) = started(&standing);
        next_run(&server, &standing, broken);
        let delivered = server.items("shop");
        assert!(!delivered.iter().any(is_bad), "{broken:?}");
        let holds = holds(&server);
        assert_eq!(holds.len(), 1, "{holds:?}");
        assert_eq!(
            (text(&holds[0]["kind"]), text(&holds[0]["field"])),
            ("book", field)
        );
        let n_held = holds[0]["items"].as_u64().expect("a number") as usize;
        assert_eq!(n_held + delivered.len(), N_BOOKS, "{broken:?}");
        assert!(n_held <= N_BOOKS - N_BEFORE + FOUND_WITHIN, "{n_held}");
        assert_eq!(server.resource("shop")["counts"]["held"], n_held);
        let list = server.ok(&["quarantine", "list", "shop"]);
        assert!(list.contains(field), "{list}");
        let shown = lines(&server.ok(&["quarantine", "show", "shop", "0.1", "--limit=1000"]));
        assert_eq!(shown.len(), n_held);
        assert!(shown.iter().any(is_bad));
        until("the event", PATIENCE, || {
            let events = server.ok(&["resource", "events", "shop"]);
            (events.contains("items-held") && events.contains(field)).then_some(())
        });
        // What is dropped comes no more, and a good run goes through.
        let dropped = server.ok(&["quarantine", "drop", "shop"]);
        assert_eq!(dropped, format!("{n_held} items of shop will be dropped\n"));
        until("an empty quarantine", PATIENCE, || {
            let held = server.resource("shop")["counts"]["held"].as_u64();
            (held == Some(0)).then_some(())
        });
        server.finished("shop");
        assert_eq!(server.items("shop").len(), delivered.len());
        next_run(&server, &standing, Broken::No);
        assert_eq!(server.items("shop").len(), N_BOOKS);
    }
}

#[test]
fn released_items_are_delivered_once_whoever_is_killed() {
    let standing = Arc::new(Standing::default());
    let (server, _web) = started(&standing);
    next_run(&server, &standing, Broken::Instalment);
    assert!(server.items("shop").len() < N_BOOKS);
    let server = server.killed_and_started_again();
    assert_eq!(holds(&server).len(), 1, "they survive the process");
    let released = server.ok(&["quarantine", "release", "shop", "0.1"]);
    assert!(released.ends_with("will be released\n"), "{released}");
    let server = server.killed_and_started_again();
    until("all items", PATIENCE, || {
        let n_items = server.items("shop").len();
        assert!(n_items <= N_BOOKS, "no item comes twice");
        (n_items == N_BOOKS).then_some(())
    });
    server.finished("shop");
    assert!(holds(&server).is_empty());
}

#[test]
fn twenty_unchanged_runs_are_delivered_whole() {
    let standing = Arc::new(Standing::default());
    let (server, _web) = started(&standing);
    for run in 2..=21 {
        next_run(&server, &standing, Broken::No);
        assert_eq!(server.items("shop").len(), N_BOOKS, "run {run}");
        assert!(holds(&server).is_empty(), "run {run}");
    }
}

#[test]
fn decisions_that_make_no_sense_are_refused_with_the_way_out() {
    let standing = Arc::new(Standing::default());
    let (server, _web) = started(&standing);
    let refused = server.cli(&["quarantine", "release", "shop"]);
    assert_ne!(refused.code, Some(0));
    assert!(
        refused.stderr.contains("resource shop holds no items"),
        "{}",
        refused.stderr
    );
    let refused = server.cli(&["quarantine", "show", "shop", "0.7"]);
    assert!(
        refused.stderr.contains("resource shop has no hold 0.7"),
        "{}",
        refused.stderr
    );
    let path = "/crawler/resource/shop/quarantine";
    for (body, status) in [
        (json!({"action": "keep"}), 400),
        (json!({}), 400),
        (json!({"action": "drop", "hold": "7"}), 400),
        (json!({"action": "drop", "hold": "0.7"}), 412),
    ] {
        let answer = server.http(Method::POST, path, Some(&body.to_string()));
        assert_eq!(answer.status, status, "{body}: {answer:?}");
    }
}
