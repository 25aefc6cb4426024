//! The rules on saved pages.

use crawler_plugin_sdk::testing::{Trial, check_saved};
use crawler_plugin_sdk::{Page, RuleError};
use login::Login;

const ORDERS: &str = "http://gallery.test/account/orders";
const FORM: &str = include_str!("../pages/form.html");

fn trial() -> Trial {
    let trial = Trial::new().param("start", ORDERS);
    trial.param("user", "ann").param("password", "p & q")
}

#[test]
fn a_form_in_place_of_orders_is_filled_in() {
    let page = Page::from_html(ORDERS, FORM);
    let found = trial().parse(Login::orders, &page).unwrap();
    let request = &found.requests[0];
    assert_eq!((&*request.method, request.rule), ("POST", Login::ANSWER));
    let body = String::from_utf8_lossy(request.body.as_deref().unwrap());
    let token = body.strip_prefix("token=t%2F").unwrap();
    assert!(token.ends_with("&user=ann&password=p+%26+q"), "{body}");
    assert!(found.items.is_empty());
}

#[test]
fn every_field_that_the_page_fills_in_is_sent() {
    let hidden = "<input type=hidden name=next value=/orders><input type=hidden name=csrf value=7>";
    let html = FORM.replace("<button>", &format!("{hidden}<button>"));
    let page = Page::from_html(ORDERS, html);
    let found = trial().parse(Login::orders, &page).unwrap();
    let body = String::from_utf8_lossy(found.requests[0].body.as_deref().unwrap()).into_owned();
    assert!(body.starts_with("token="), "{body}");
    assert!(body.ends_with("&next=%2Forders&csrf=7"), "{body}");
}

#[test]
fn a_page_without_the_form_its_fields_or_orders_is_an_error() {
    let no_field = FORM.replace("name=\"user\"", "name=\"email\"");
    for (html, why) in [
        (
            no_field.as_str(),
            "the page lacks a field \"user\" in form#login",
        ),
        (
            "<h1>Maintenance</h1>",
            "the page has neither form#login nor table.orders",
        ),
    ] {
        let page = Page::from_html(ORDERS, html);
        let error = trial().parse(Login::orders, &page).unwrap_err();
        assert_eq!(error.to_string(), format!("error: {why}"));
    }
    let empty = Page::from_html(ORDERS, "<table class=orders><tbody></tbody></table>");
    let found = trial().parse(Login::orders, &empty).unwrap();
    assert!(found.items.is_empty() && found.requests.is_empty());
}

#[test]
fn after_the_login_the_page_is_asked_for_again() {
    let asked = format!("{ORDERS}?page=3");
    let page = Page::from_html("http://gallery.test/account/", "<h1>Welcome");
    let page = page.with_state(&*asked);
    let found = trial().parse(Login::answer, &page).unwrap();
    assert_eq!(found.urls(), [asked]);
    assert!(found.requests[0].reload);
}

#[test]
fn a_refusal_is_fatal_and_tells_why() {
    for (html, why) in [
        ("<p class=error>Wrong name.</p>", "Wrong name."),
        ("", "it shows the form again"),
    ] {
        let html = format!("<form id=login>{html}</form>");
        let page = Page::from_html(ORDERS, html).with_state(ORDERS);
        let error = trial().parse(Login::answer, &page).unwrap_err();
        assert_eq!(
            error,
            RuleError::fatal(format!("the login is refused: {why}"))
        );
    }
}

#[test]
fn saved_calls_give_what_they_gave() {
    check_saved::<Login>("pages");
}
