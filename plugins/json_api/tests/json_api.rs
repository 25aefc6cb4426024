//! The rules on saved answers.

use crawler_plugin_sdk::Page;
use crawler_plugin_sdk::testing::{Trial, check_saved};
use json_api::JsonApi;
use serde_json::json;

const BOOKS: &str = "http://gallery.test/api/books";

fn trial() -> Trial {
    Trial::new().param("api", "http://gallery.test/api/")
}

fn books(answer: &str) -> Page {
    Page::from_html(BOOKS, answer)
}

#[test]
fn every_request_asks_for_json() {
    let trial = trial();
    let root = trial.root(JsonApi::root).unwrap();
    assert_eq!(root.urls(), [BOOKS]);
    let page = books(r#"{"books": [{"id": 7, "title": "Lays", "author": 70}], "next": "8"}"#);
    let found = trial.parse(JsonApi::books, &page).unwrap();
    let json = [("accept".to_owned(), "application/json".to_owned())];
    for request in root.requests.iter().chain(&found.requests) {
        assert_eq!(request.headers, json, "{}", request.url);
    }
    let urls = [
        "http://gallery.test/api/authors/70",
        &format!("{BOOKS}?cursor=8"),
    ];
    assert_eq!(found.urls(), urls);
}

#[test]
fn an_api_may_be_given_with_a_slash_at_its_end_or_without() {
    let page = books(r#"{"books": [{"id": 7, "title": "Lays", "author": 70}], "next": "8"}"#);
    for (api, at) in [
        ("http://a.test/v1", "http://a.test/v1"),
        ("http://a.test/v1/", "http://a.test/v1"),
        ("http://a.test", "http://a.test"),
        ("http://a.test/", "http://a.test"),
    ] {
        let trial = Trial::new().param("api", api);
        let root = trial.root(JsonApi::root).unwrap();
        assert_eq!(root.urls(), [format!("{at}/books")]);
        let found = trial.parse(JsonApi::books, &page).unwrap();
        let expected = ["authors/70", "books?cursor=8"].map(|path| format!("{at}/{path}"));
        assert_eq!(found.urls(), expected);
    }
}

#[test]
fn a_cursor_is_encoded_and_replaces_the_one_before() {
    let page = Page::from_html(
        &format!("{BOOKS}?cursor=a"),
        r#"{"books": [], "next": "b&c= +"}"#,
    );
    let found = trial().parse(JsonApi::books, &page).unwrap();
    assert_eq!(found.urls(), [format!("{BOOKS}?cursor=b%26c%3D+%2B")]);
}

#[test]
fn what_may_be_missing_is_null_or_empty() {
    let page = books(r#"{"books": [{"id": 7, "title": "Lays", "author": 70, "pages": 9}]}"#);
    let found = trial().parse(JsonApi::books, &page).unwrap();
    let expected = json!({"id": 7, "title": "Lays", "author": 70, "year": null, "tags": []});
    assert_eq!(found.items[0].value, expected);
}

#[test]
fn a_missing_field_is_an_error_that_names_it() {
    let page = books(r#"{"books": [{"id": 7, "author": 70}]}"#);
    let error = trial().parse(JsonApi::books, &page).unwrap_err();
    let why = "error: the page is not the JSON expected: missing field `title`";
    assert!(error.to_string().starts_with(why), "{error}");
}

#[test]
fn saved_calls_give_what_they_gave() {
    check_saved::<JsonApi>("pages");
}
