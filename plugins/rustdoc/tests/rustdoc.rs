//! The rule on a saved page.

use crawler_plugin_sdk::Page;
use crawler_plugin_sdk::testing::{Trial, check_saved};
use rustdoc::Rustdoc;
use serde_json::json;

const INDEX: &str = "http://docs.test/list/index.html";

fn page() -> Page {
    Page::from_html(INDEX, include_str!("../pages/index.html"))
}

#[test]
fn the_crawl_starts_at_every_address_of_the_list() {
    let trial = Trial::new().param("start", "http://docs.test/a/,\n http://docs.test/b/");
    let outcome = trial.root(Rustdoc::root).unwrap();
    assert_eq!(
        outcome.urls(),
        ["http://docs.test/a/", "http://docs.test/b/"]
    );
}

#[test]
fn a_page_tells_title_headings_and_the_number_of_pages_it_leads_to() {
    let outcome = Trial::new()
        .param("start", INDEX)
        .parse(Rustdoc::page, &page())
        .unwrap();
    assert_eq!(outcome.items[0].item, "page");
    assert_eq!(
        outcome.items[0].value,
        json!({
            "url": INDEX,
            "title": "list - Rust",
            "headings": [
                {"level": 2, "text": "list"},
                {"level": 1, "text": "Crate list"},
                {"level": 2, "text": "Elsewhere"},
            ],
            "links": 4,
        })
    );
}

#[test]
fn links_are_followed_once_and_stay_in_the_folder_of_the_start() {
    let outcome = Trial::new()
        .param("start", INDEX)
        .parse(Rustdoc::page, &page())
        .unwrap();
    let expected = ["index.html", "all.html", "struct.List.html", "node/"];
    assert_eq!(
        outcome.urls(),
        expected.map(|page| format!("http://docs.test/list/{page}"))
    );
}

#[test]
fn below_names_the_paths_that_belong_to_the_site() {
    let trial = Trial::new()
        .param("start", INDEX)
        .param("below", "/src/, /book/");
    let outcome = trial.parse(Rustdoc::page, &page()).unwrap();
    assert_eq!(
        outcome.urls(),
        [
            "http://docs.test/src/list/lib.rs.html",
            "http://docs.test/book/index.html"
        ]
    );
}

#[test]
fn a_start_that_is_no_address_is_told() {
    let error = Trial::new()
        .param("start", "docs")
        .parse(Rustdoc::page, &page())
        .unwrap_err();
    assert_eq!(error.to_string(), "error: relative URL without a base");
}

#[test]
fn saved_calls_give_what_they_gave() {
    check_saved::<Rustdoc>("pages");
}
