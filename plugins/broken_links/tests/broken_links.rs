//! The rules on saved pages.

use broken_links::BrokenLinks;
use crawler_plugin_sdk::testing::{Trial, check_saved};
use crawler_plugin_sdk::{Level, Page, RuleError};
use serde_json::json;

const START: &str = "http://site.test/";
const INDEX: &str = include_str!("../pages/index.html");

fn trial() -> Trial {
    Trial::of::<BrokenLinks>().param("start", START)
}

fn lost(status: u16) -> Page {
    let page = Page::from_html("http://site.test/lost", include_str!("../pages/lost.html"));
    let page = page.with_status(status).with_referrer(START);
    page.with_state("site.test")
}

#[test]
fn every_request_asks_for_any_status() {
    let root = trial().root(BrokenLinks::root).unwrap();
    let page = Page::from_html(START, INDEX);
    let found = trial().parse(BrokenLinks::check, &page).unwrap();
    let any = [("accept-status".to_owned(), "any".to_owned())];
    for request in root.requests.iter().chain(&found.requests) {
        assert_eq!(request.hints, any, "{}", request.url);
    }
    assert_eq!(found.requests.len(), 4);
}

#[test]
fn a_failure_is_told_with_the_page_that_has_the_link() {
    for status in [404, 403, 500] {
        let found = trial().parse(BrokenLinks::check, &lost(status)).unwrap();
        let expected = json!({"url": "http://site.test/lost", "status": status, "referrer": START});
        assert_eq!(found.items[0].value, expected);
        assert!(found.requests.is_empty());
    }
}

#[test]
fn a_busy_server_is_asked_three_times() {
    for status in [408, 429, 502, 503, 504] {
        for attempt in [1, 2] {
            let page = lost(status).with_attempt(attempt);
            let error = trial().parse(BrokenLinks::check, &page).unwrap_err();
            let is_blocked = matches!(error, RuleError::Blocked(_));
            assert_eq!(is_blocked, status == 429, "{error}");
            let is_retry = matches!(error, RuleError::Retry { .. });
            assert_eq!(is_retry, status != 429, "{error}");
        }
        let page = lost(status).with_attempt(3);
        let found = trial().parse(BrokenLinks::check, &page).unwrap();
        assert_eq!(found.items[0].value["status"], status);
    }
}

#[test]
fn the_host_that_answers_first_is_the_site() {
    let page = Page::from_html("https://www.site.test/", INDEX);
    let found = trial().parse(BrokenLinks::check, &page).unwrap();
    assert_eq!(found.requests.len(), 4);
    assert_eq!(found.requests[0].state, b"www.site.test");
    let page = page.with_state("www.site.test");
    let found = trial().parse(BrokenLinks::check, &page).unwrap();
    assert_eq!(found.requests.len(), 4);
    assert!(found.logs.is_empty());
}

#[test]
fn links_of_other_hosts_are_not_followed() {
    let page = Page::from_html("http://friend.test/", INDEX).with_state("site.test");
    let found = trial().parse(BrokenLinks::check, &page).unwrap();
    assert!(found.requests.is_empty() && found.items.is_empty());
}

#[test]
fn a_first_page_without_links_is_told() {
    let page = Page::from_html(START, "<p>This site needs a browser.");
    let found = trial().parse(BrokenLinks::check, &page).unwrap();
    let line = "the first page, http://site.test/, has no links".to_owned();
    assert_eq!(found.logs, [(Level::Warn, line)]);
    let page = page.with_state("site.test");
    let found = trial().parse(BrokenLinks::check, &page).unwrap();
    assert!(found.logs.is_empty());
}

#[test]
fn saved_calls_give_what_they_gave() {
    check_saved::<BrokenLinks>("pages");
}
