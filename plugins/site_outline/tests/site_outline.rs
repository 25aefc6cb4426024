//! The rule on pages.

use crawler_plugin_sdk::Page;
use crawler_plugin_sdk::testing::Trial;
use serde_json::json;
use site_outline::Outlines;

const START: &str = "http://site.test/";

#[test]
fn the_crawl_starts_at_the_page_that_the_user_gives() {
    let outcome = Trial::new()
        .param("start", START)
        .root(Outlines::root)
        .unwrap();
    assert_eq!(outcome.urls(), [START]);
}

#[test]
fn a_page_makes_an_item_and_leads_to_all_of_its_links() {
    let html = "<title>Sea</title><h1>The sea</h1><p><a href=/a>A</a> <a name=top>no link</a>\
                <h2>Waves</h2><a href='b.html'>B</a> <a href='http://other.test/'>C</a>";
    let page = Page::from_html("http://site.test/x/", html);
    let outcome = Trial::new().parse(Outlines::page, &page).unwrap();
    let expected = json!({
        "url": "http://site.test/x/",
        "title": "Sea",
        "headings": ["The sea", "Waves"],
        "n_links": 3,
    });
    assert_eq!(outcome.items.len(), 1);
    assert_eq!(outcome.items[0].value, expected);
    let links = [
        "http://site.test/a",
        "http://site.test/x/b.html",
        "http://other.test/",
    ];
    assert_eq!(outcome.urls(), links);
}

#[test]
fn a_page_without_anything_is_an_empty_outline() {
    let page = Page::from_html(START, "");
    let outcome = Trial::new().parse(Outlines::page, &page).unwrap();
    let expected = json!({"url": START, "title": "", "headings": [], "n_links": 0});
    assert_eq!(outcome.items[0].value, expected);
    assert!(outcome.urls().is_empty());
}
