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
