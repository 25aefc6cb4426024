//! Pages that break readers of HTML, under a rule that declares its fields: each gives its items or costs itself
//! alone, with the limit and the way out in the log.

use std::collections::BTreeSet;

use axum::response::Html;
use crawler_tests::guests;
use crawler_tests::web::{Asked, Site, Web};
use serde_json::Value;

use crate::server::Server;

/// Name of a page, and its content between the heading and the link to the page behind it.
type Page = (&'static str, fn() -> String);

const PAGES: [Page; 10] = [
    ("many-attributes", || {
        let attributes: String = (0..1_000_000).map(|n| format!(" a{n}")).collect();
        format!("<p{attributes}>")
    }),
    ("long-attribute", || {
        format!("<a href='/{}'>long</a>", "x".repeat(8 << 20))
    }),
    ("unclosed", || {
        "<table><tr><td><b><i><select><ul><li>".repeat(1_000)
    }),
    ("nul", || "\0 <\0p a\0=\0> &#0; <!--\0-->".to_owned()),
    ("lone", || "< << <1 </ </ > &".to_owned()),
    ("script", || "<script>'<!--<script>".to_owned()),
    ("letters", || "\u{feff}caf\u{e9} \u{1f600}".to_owned()),
    ("long", || "<p>text".repeat(1 << 20)),
    ("huge", || "<p>some words</p>".repeat(50_000_000 / 17)),
    ("deep", || "<div>".repeat(40_000)),
];

/// Opens a site with a page that leads to all of these, and one page behind each.
fn site() -> Web {
    let page = async |asked: Asked| {
        let name = asked.path.trim_start_matches('/').to_owned();
        if name.is_empty() {
            let links = PAGES.map(|(name, _)| format!("<a href='/{name}'>{name}</a>"));
            return Html(links.concat());
        }
        let found = PAGES.iter().find(|(of, _)| *of == name);
        let middle = found.map(|(_, make)| make()).unwrap_or_default();
        let behind = found.map(|_| format!("<a href='/behind-{name}'>on</a>"));
        let behind = behind.unwrap_or_default();
        Html(format!("<h1>{name}</h1>{behind}{middle}"))
    };
    Site::new().handle("/*", page).open()
}

#[test]
fn pages_that_cannot_be_read_cost_themselves_alone_and_the_log_names_the_way_out() {
    let (server, web) = (Server::start(), site());
    let outline = guests::guest("outline").display().to_string();
    server.ok(&["plugin", "push", &outline]);
    let start = format!("--param=start={}", web.url("/"));
    let add = ["resource", "add", "soup", "--plugin=outline", &start];
    let limits = [
        "--limit=body=64MiB",
        "--limit=cpu=2s",
        "--limit=timeout=20s",
    ];
    server.ok(&[&add[..], &limits, &["--delay=0ms"]].concat());
    server.ok(&["resource", "wait", "soup", "--timeout=100s"]);
    // The peak is a few times the longest page, however many elements it has.
    let peak = server.peak_memory();
    assert!(peak < 256 << 20, "{peak}");

    let items = server.ok(&["items", "soup"]);
    let read: BTreeSet<String> = items
        .lines()
        .map(|line| {
            let item: Value = serde_json::from_str(line).expect("an item is JSON");
            let url = item["url"].as_str().expect("a URL");
            url.rsplit('/').next().unwrap_or_default().to_owned()
        })
        .filter(|name| !name.starts_with("xxx"))
        .collect();
    let mut expected = BTreeSet::from([String::new()]);
    for (name, _) in PAGES {
        expected.extend([name.to_owned(), format!("behind-{name}")]);
    }
    // Nothing counts of a page that is not read to its end.
    expected.retain(|name| !name.ends_with("deep"));
    assert_eq!(read, expected);
    let counts = server.json("/crawler/resource/soup")["counts"].clone();
    let dead = serde_json::json!({"rule-error": 1});
    assert_eq!(counts["dead_by_reason"], dead, "{counts}");
    let log = server.ok(&["resource", "logs", "soup"]);
    let address = |name: &str| web.url(&format!("/{name}")).to_string();
    for told in [
        format!(
            "{} error: too many elements are open in each other: reading the page takes more than \
             2097152 bytes, a 32nd of limit memory, 4 MiB at the most; raise it with --limit \
             memory=VALUE, or skip the page",
            address("deep")
        ),
        format!(
            "{} what `read` reads of this page is cut: limit captures or capture-bytes is used up",
            address("long-attribute")
        ),
    ] {
        assert!(log.contains(&told), "{told} in {log}");
    }
}
