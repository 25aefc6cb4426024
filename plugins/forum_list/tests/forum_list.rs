//! The rules on a saved page.

use crawler_plugin_sdk::testing::{Trial, check_saved};
use crawler_plugin_sdk::{Page, RuleError};
use forum_list::Forum;
use serde_json::json;

const LIST: &str = "http://forum.test/gardening";

fn page() -> Page {
    Page::from_html(LIST, include_str!("../pages/list.html"))
}

#[test]
fn lists_are_fetched_before_other_pages() {
    let trial = Trial::of::<Forum>().param("start", LIST);
    let outcome = trial.root(Forum::root).unwrap();
    assert_eq!(outcome.urls(), [LIST]);
    assert_eq!(outcome.requests[0].priority, 10);
}

#[test]
fn every_row_is_a_thread_with_an_absolute_address() {
    let outcome = Trial::of::<Forum>().parse(Forum::list, &page()).unwrap();
    let threads: Vec<_> = outcome.items.into_iter().map(|item| item.value).collect();
    assert_eq!(
        threads,
        [
            json!({"url": "http://forum.test/thread/41", "title": "Slugs, again", "author": "marigold", "replies": 12}),
            json!({"url": "http://forum.test/thread/40", "title": "Tomatoes & rain", "author": "old_oak", "replies": 0}),
        ]
    );
}

#[test]
fn reading_ends_after_as_many_list_pages_as_the_user_wants() {
    let trial = Trial::of::<Forum>().param("pages", "3");
    let second = trial.parse(Forum::list, &page().with_depth(1)).unwrap();
    assert_eq!(second.urls(), ["http://forum.test/gardening?page=2"]);
    let third = trial.parse(Forum::list, &page().with_depth(2)).unwrap();
    assert!(third.urls().is_empty());
}

#[test]
fn a_captcha_counts_as_a_refusal_of_the_site() {
    let page = Page::from_html(LIST, r#"<form id="captcha"></form>"#);
    let error = Trial::of::<Forum>().parse(Forum::list, &page).unwrap_err();
    assert_eq!(error, RuleError::blocked("the forum asks for a captcha"));
}

#[test]
fn a_count_that_is_no_number_is_an_error() {
    let html = include_str!("../pages/list.html").replace(">12", ">many");
    let error = Trial::of::<Forum>()
        .parse(Forum::list, &Page::from_html(LIST, html))
        .unwrap_err();
    assert_eq!(
        error,
        RuleError::unexpected(
            "\"many\" is no value for `Thread.replies`, read from an element `td.replies`: invalid digit found in string"
        )
    );
}

#[test]
fn saved_calls_give_what_they_gave() {
    check_saved::<Forum>("pages");
}
