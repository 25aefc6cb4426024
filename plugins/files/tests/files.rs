//! The rules on saved pages.

use crawler_plugin_sdk::Page;
use crawler_plugin_sdk::testing::{Trial, check_saved};
use files::Files;
use serde_json::json;

const PICTURE: &[u8] = include_bytes!("../pages/picture.png");

#[test]
fn only_files_are_kept() {
    let html = include_str!("../pages/index.html");
    let page = Page::from_html("http://site.test/", html);
    let found = Trial::new().parse(Files::page, &page).unwrap();
    for request in &found.requests {
        let is_kept = request
            .hints
            .contains(&("keep-body".to_owned(), "true".to_owned()));
        assert_eq!(is_kept, request.rule == Files::FILE, "{}", request.url);
    }
    assert_eq!(found.requests.len(), 4);
}

#[test]
fn an_item_names_the_digest() {
    let page = Page::from_html("http://site.test/img/7.png", PICTURE);
    let page = page.with_header("content-type", "image/png");
    let found = Trial::new().parse(Files::file, &page.with_kept("ab12"));
    let expected = json!({
        "url": "http://site.test/img/7.png",
        "referrer": null,
        "digest": "ab12",
        "media_type": "image/png",
        "size": PICTURE.len(),
    });
    assert_eq!(found.unwrap().items[0].value, expected);
}

#[test]
fn a_page_in_place_of_a_file_is_an_error() {
    for kind in ["text/html; charset=utf-8", "application/xhtml+xml"] {
        let page = Page::from_html("http://site.test/img/7.png", "<h1>Log in</h1>");
        let page = page.with_header("content-type", kind).with_kept("ab12");
        let error = Trial::new().parse(Files::file, &page).unwrap_err();
        let why = "error: the site sends a page in HTML instead of a file";
        assert_eq!(error.to_string(), why);
    }
}

#[test]
fn saved_calls_give_what_they_gave() {
    check_saved::<Files>("pages");
}
