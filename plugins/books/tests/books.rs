//! The rules on saved pages.

use books::Books;
use crawler_plugin_sdk::Page;
use crawler_plugin_sdk::testing::{Trial, check_saved};
use serde_json::json;

const LIST: &str = "http://shop.test/catalogue/page-1.html";
const BOOK: &str = "http://shop.test/book/7.html";

#[test]
fn the_crawl_starts_at_the_page_that_the_user_gives() {
    let outcome = Trial::new().param("start", LIST).root(Books::root).unwrap();
    assert_eq!(outcome.urls(), [LIST]);
    assert_eq!(outcome.requests[0].rule, Books::LIST);
}

#[test]
fn without_params_the_crawl_starts_at_the_shop_of_the_demo() {
    let outcome = Trial::of::<Books>().root(Books::root).unwrap();
    let start = "http://127.0.0.1:8000/catalogue/page-1.html";
    assert_eq!(outcome.urls(), [start]);
}

#[test]
fn a_list_page_leads_to_its_books_and_to_the_next_list_page() {
    let page = Page::from_html(LIST, include_str!("../pages/list.html"));
    let outcome = Trial::new().parse(Books::list, &page).unwrap();
    let followed = outcome
        .requests
        .iter()
        .map(|r| (r.url.as_str(), r.rule.name()));
    assert_eq!(
        followed.collect::<Vec<_>>(),
        [
            ("http://shop.test/book/7.html", "detail"),
            ("http://shop.test/book/8.html", "detail"),
            ("http://shop.test/catalogue/page-2.html", "list"),
        ]
    );
}

#[test]
fn the_last_list_page_leads_to_books_only() {
    let page = Page::from_html(LIST, include_str!("../pages/last.html"));
    let outcome = Trial::new().parse(Books::list, &page).unwrap();
    assert_eq!(outcome.urls(), ["http://shop.test/book/9.html"]);
}

#[test]
fn a_detail_page_becomes_a_book() {
    let page = Page::from_html(BOOK, include_str!("../pages/book.html"));
    let outcome = Trial::new().parse(Books::detail, &page).unwrap();
    assert_eq!(outcome.items[0].item, "book");
    assert_eq!(
        outcome.items[0].value,
        json!({
            "url": BOOK,
            "title": "The Waves",
            "author": "Virginia Woolf",
            "price_pence": 1234,
            "stock": 7,
            "rating": 4,
            "tags": ["fiction", "poetry"],
            "description": "Six voices & the sea. A day, and a life.",
        })
    );
}

#[test]
fn a_sold_out_book_has_no_stock() {
    let html = include_str!("../pages/book.html").replace("In stock (7)", "Out of stock");
    let outcome = Trial::new()
        .parse(Books::detail, &Page::from_html(BOOK, html))
        .unwrap();
    assert_eq!(outcome.items[0].value["stock"], 0);
}

#[test]
fn a_page_without_an_author_is_an_error_that_names_the_selector() {
    let html = include_str!("../pages/book.html").replace("class=\"author\"", "");
    let error = Trial::new()
        .parse(Books::detail, &Page::from_html(BOOK, html))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "error: the page lacks an element `p.author` for `Book.author`"
    );
}

#[test]
fn saved_calls_give_what_they_gave() {
    check_saved::<Books>("pages");
}
