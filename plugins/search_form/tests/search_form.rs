//! The rules on saved pages.

use crawler_plugin_sdk::Page;
use crawler_plugin_sdk::testing::{Trial, check_saved};
use search_form::SearchForm;

const START: &str = "http://gallery.test/library/";
const FORM: &str = include_str!("../pages/form.html");

fn trial(searches: &str) -> Trial {
    let trial = Trial::of::<SearchForm>().param("start", START);
    trial.param("searches", searches)
}

#[test]
fn each_search_is_a_request_with_the_fields_of_the_form() {
    let page = Page::from_html(START, FORM);
    let trial = trial("sea, north  wind ,,a&b");
    let found = trial.parse(SearchForm::form, &page).unwrap();
    let url = |words: &str| format!("{START}results?lang=en&q={words}&sort=year");
    assert_eq!(found.urls(), ["sea", "north++wind", "a%26b"].map(url));
    assert_eq!(found.requests[1].state, b"north  wind");
}

#[test]
fn a_form_that_is_posted_is_posted() {
    let html = FORM.replace("action=\"results\"", "action=find method=POST");
    let page = Page::from_html(START, html);
    let found = trial("sea").parse(SearchForm::form, &page).unwrap();
    let request = &found.requests[0];
    assert_eq!(
        (&*request.method, &*request.url),
        ("POST", "http://gallery.test/library/find")
    );
    assert_eq!(
        request.body.as_deref(),
        Some(&b"lang=en&q=sea&sort=year"[..])
    );
}

#[test]
fn a_form_without_the_field_is_an_error_that_names_it() {
    let page = Page::from_html(START, FORM);
    let trial = trial("sea").param("field", "words");
    let error = trial.parse(SearchForm::form, &page).unwrap_err();
    let why = "error: the page lacks a field \"words\" in its form";
    assert_eq!(error.to_string(), why);
}

#[test]
fn the_words_reach_every_page_of_results() {
    let html =
        "<ol class=results><li><a href=/7>The Waves</a></ol><a rel=next href='?page=2'>2</a>";
    let page = Page::from_html("http://gallery.test/library/results", html);
    let page = page.with_state("the sea");
    let found = trial("").parse(SearchForm::results, &page).unwrap();
    assert_eq!(found.items[0].value["search"], "the sea");
    assert_eq!(found.requests[0].state, b"the sea");
}

#[test]
fn saved_calls_give_what_they_gave() {
    check_saved::<SearchForm>("pages");
}
