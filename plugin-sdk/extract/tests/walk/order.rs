//! Every order of two and of three elements whose end tags may be left out, in every place that matters.

use super::differences::Exception::{IgnoredTablePart, MovedOutOfTable, OpenedAgain};
use super::differences::check;

const ELEMENTS: [&str; 29] = [
    "li", "dd", "dt", "p", "option", "optgroup", "tbody", "thead", "tfoot", "tr", "td", "th",
    "colgroup", "col", "caption", "rt", "rp", "rb", "h1", "h2", "a", "button", "div", "ul", "dl",
    "select", "table", "ruby", "span",
];

/// Places of an order: the tags before it, and the tag that ends the place.
const PLACES: [(&str, &str); 7] = [
    ("", "</body>"),
    ("<ul>", "</ul>"),
    ("<dl>", "</dl>"),
    ("<table>", "</table>"),
    ("<table><tr>", "</table>"),
    ("<select>", "</select>"),
    ("<ruby>", "</ruby>"),
];

/// Returns pages with these elements in all places: with the end of the place and text behind it, and without.
fn pages(doctype: &'static str, order: String) -> impl Iterator<Item = String> {
    PLACES.into_iter().flat_map(move |(start, end)| {
        let page = format!("{doctype}<html><body>{start}{order}");
        [format!("{page}{end}4"), page]
    })
}

fn orders_of_two(doctype: &'static str) -> impl Iterator<Item = String> {
    let orders = ELEMENTS.iter().flat_map(|a| {
        let order = move |b| format!("<{a}>1<{b}>2");
        ELEMENTS.iter().map(order)
    });
    orders.flat_map(move |order| pages(doctype, order))
}

fn orders_of_three(first: &'static [&str]) -> impl Iterator<Item = String> {
    let orders = first.iter().flat_map(|a| {
        ELEMENTS.iter().flat_map(move |b| {
            let order = move |c| format!("<{a}>1<{b}>2<{c}>3");
            ELEMENTS.iter().map(order)
        })
    });
    orders.flat_map(|order| pages("<!doctype html>", order))
}

#[test]
fn orders_of_two_give_the_tree_of_a_browser() {
    let exceptions = [
        (IgnoredTablePart, 4_320),
        (MovedOutOfTable, 3_670),
        (OpenedAgain, 313),
    ];
    check(orders_of_two("<!doctype html>"), &exceptions);
}

#[test]
fn orders_of_two_give_the_tree_of_a_browser_in_quirks_mode() {
    let exceptions = [
        (IgnoredTablePart, 4_320),
        (MovedOutOfTable, 3_670),
        (OpenedAgain, 313),
    ];
    check(orders_of_two(""), &exceptions);
}

// The test is in two halves, so that they run at the same time.

#[test]
fn orders_of_three_give_the_tree_of_a_browser() {
    let exceptions = [
        (IgnoredTablePart, 101_610),
        (MovedOutOfTable, 53_202),
        (OpenedAgain, 4_397),
    ];
    check(orders_of_three(&ELEMENTS[..15]), &exceptions);
}

#[test]
fn more_orders_of_three_give_the_tree_of_a_browser() {
    let exceptions = [
        (IgnoredTablePart, 56_160),
        (MovedOutOfTable, 62_916),
        (OpenedAgain, 8_542),
    ];
    check(orders_of_three(&ELEMENTS[15..]), &exceptions);
}

/// Elements whose start tags may be left out too, and some that imply these elements.
const OF_DOCUMENTS: [&str; 10] = [
    "html", "head", "body", "title", "meta", "p", "li", "table", "tr", "div",
];

/// Beginnings of a document, each with the tag that ends it.
const BEGINNINGS: [(&str, &str); 7] = [
    ("", "</html>"),
    ("<html>", "</html>"),
    ("<head>", "</head>"),
    ("<html><head>", "</head>"),
    ("<head></head>", "</html>"),
    ("<body>", "</body>"),
    ("<html><head></head><body>", "</body></html>"),
];

#[test]
fn orders_of_what_documents_are_made_of_give_the_tree_of_a_browser() {
    let orders = OF_DOCUMENTS.iter().flat_map(|a| {
        OF_DOCUMENTS.iter().flat_map(move |b| {
            let three = move |c| format!("<{a}>1<{b}>2<{c}>3");
            let three = OF_DOCUMENTS.iter().map(three);
            [format!("<{a}><{b}>")].into_iter().chain(three)
        })
    });
    let pages = orders.flat_map(|order| {
        BEGINNINGS.into_iter().flat_map(move |(start, end)| {
            let page = format!("<!doctype html>{start}{order}");
            [format!("{page}{end}4"), page]
        })
    });
    let exceptions = [(IgnoredTablePart, 3_304), (MovedOutOfTable, 3_577)];
    check(pages, &exceptions);
}
