//! The rules on saved pages.

use crawler_plugin_sdk::Page;
use crawler_plugin_sdk::testing::{Trial, check_saved};
use serde_json::json;
use several_hosts::SeveralHosts;

const PRODUCT: &str = "http://gallery.test/shop/tea";
const REVIEWS: &str = "http://reviews.test/tea";

fn product() -> Page {
    let html =
        format!("<h1>Tea</h1><p class=price>£6.20</p><a class=reviews href={REVIEWS}>Reviews</a>");
    Page::from_html(PRODUCT, html)
}

#[test]
fn an_item_is_made_of_two_pages() {
    let found = Trial::new()
        .parse(SeveralHosts::product, &product())
        .unwrap();
    assert!(found.items.is_empty());
    let request = &found.requests[0];
    assert_eq!(
        (&*request.url, request.rule),
        (REVIEWS, SeveralHosts::REVIEWS)
    );
    let html = "<article class=review><span class=stars data-stars=5></span><p>Fresh.</article>";
    let page = Page::from_html(REVIEWS, html).with_state(request.state.clone());
    let found = Trial::new().parse(SeveralHosts::reviews, &page).unwrap();
    let expected = json!({
        "url": PRODUCT,
        "name": "Tea",
        "price": {"amount": "6.20", "currency": "GBP"},
        "reviews": [{"stars": 5, "text": "Fresh."}],
    });
    assert_eq!(found.items[0].value, expected);
}

#[test]
fn a_product_may_have_no_page_of_reviews() {
    let found = Trial::new()
        .parse(SeveralHosts::product, &product())
        .unwrap();
    let request = &found.requests[0];
    assert_eq!(
        request.hints,
        [("accept-status".to_owned(), "404".to_owned())]
    );
    let page = Page::from_html(REVIEWS, "<h1>Not found").with_status(404);
    let page = page.with_state(request.state.clone());
    let found = Trial::new().parse(SeveralHosts::reviews, &page).unwrap();
    assert_eq!(found.items[0].value["reviews"], json!([]));
}

#[test]
fn a_product_without_a_link_to_reviews_is_an_item_at_once() {
    for html in ["", "<a class=reviews>No reviews yet</a>"] {
        let html = format!("<h1>Tea</h1><p class=price>£6.20</p>{html}");
        let page = Page::from_html(PRODUCT, html);
        let found = Trial::new().parse(SeveralHosts::product, &page).unwrap();
        assert!(found.requests.is_empty());
        assert_eq!(found.items.len(), 1);
        let product = &found.items[0].value;
        assert_eq!(
            (&product["name"], &product["reviews"]),
            (&json!("Tea"), &json!([]))
        );
    }
}

#[test]
fn saved_calls_give_what_they_gave() {
    check_saved::<SeveralHosts>("pages");
}
