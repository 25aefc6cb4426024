//! The rules on saved pages.

use broken_links::BrokenLinks;
use crawler_plugin_sdk::Page;
use crawler_plugin_sdk::testing::{Trial, check_saved};
use serde_json::json;

const START: &str = "http://site.test/";

fn trial() -> Trial {
    Trial::of::<BrokenLinks>().param("start", START)
}

#[test]
fn every_request_asks_for_any_status() {
    let root = trial().root(BrokenLinks::root).unwrap();
    let page = Page::from_html(START, include_str!("../pages/index.html"));
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
        let page = Page::from_html("http://site.test/lost", include_str!("../pages/lost.html"));
        let page = page.with_status(status).with_referrer(START);
        let found = trial().parse(BrokenLinks::check, &page).unwrap();
        let expected = json!({"url": "http://site.test/lost", "status": status, "referrer": START});
        assert_eq!(found.items[0].value, expected);
        assert!(found.requests.is_empty());
    }
}

#[test]
fn links_of_other_hosts_are_not_followed() {
    let page = Page::from_html("http://friend.test/", include_str!("../pages/index.html"));
    let found = trial().parse(BrokenLinks::check, &page).unwrap();
    assert!(found.requests.is_empty() && found.items.is_empty());
}

#[test]
fn saved_calls_give_what_they_gave() {
    check_saved::<BrokenLinks>("pages");
}
