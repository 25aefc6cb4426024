//! The rule on saved and made pages.

use crawler_plugin_sdk::Page;
use crawler_plugin_sdk::Result;
use crawler_plugin_sdk::testing::{Outcome, Trial, check_saved};
use serde_json::json;
use table::Tables;

const HEAD: &str =
    "<tr><th rowspan=2>Peak<th rowspan=2>Range<th colspan=2>Height<th rowspan=2>First ascent
    <tr><th>ft<th>m";

fn read(head: &str, body: &str) -> Result<Outcome> {
    let html = format!("<table id=peaks><thead>{head}<tbody>{body}</table>");
    let page = Page::from_html("http://gallery.test/peaks.html", html);
    Trial::new().parse(Tables::peaks, &page)
}

#[test]
fn a_column_is_found_by_its_name_wherever_it_is() {
    let found = read(
        HEAD,
        "<tr><td>K2<td>Karakoram<td>28,251<td>8,611 [3]<td>1954",
    )
    .unwrap();
    let expected = json!({
        "name": "K2", "range": "Karakoram", "metres": 8611, "feet": 28251, "first_ascent": 1954,
    });
    assert_eq!(found.items[0].value, expected);
}

#[test]
fn a_cell_counts_in_every_row_and_column_that_it_spans() {
    let body = "<tr><td>A<td rowspan=0>Alps<td colspan=2>1,000<td rowspan=2>–
        <tr><td>B<td>7<td>2
        <tr><td>C<td rowspan=9 colspan=1>8<td>3<td>1900";
    let found = read(HEAD, body).unwrap();
    let fields = |n: usize| {
        ["name", "range", "feet", "metres", "first_ascent"]
            .map(|field| found.items[n].value[field].clone())
    };
    assert_eq!(json!(fields(0)), json!(["A", "Alps", 1000, 1000, null]));
    assert_eq!(json!(fields(1)), json!(["B", "Alps", 7, 2, null]));
    assert_eq!(json!(fields(2)), json!(["C", "Alps", 8, 3, 1900]));
}

#[test]
fn a_column_that_is_gone_is_an_error_that_names_it() {
    let error = read(
        &HEAD.replace("<th>m", "<th>metres"),
        "<tr><td>K2<td>Karakoram<td>1<td>2<td>–",
    );
    let why = "error: the page lacks a column \"Height m\"";
    assert_eq!(error.unwrap_err().to_string(), why);
}

#[test]
fn a_malformed_row_is_an_error_that_tells_row_and_column() {
    let good = "<tr><td>K2<td>Karakoram<td>1<td>2<td>–";
    for (bad, why) in [
        (
            "<tr><td>B<td>Alps<td>7<td>2",
            "a cell in row 2, column \"First ascent\"",
        ),
        ("<tr>", "a cell in row 2, column \"Range\""),
        (
            "<tr><td>B<td>Alps<td>7<td>high<td>–",
            "a number in row 2, column \"Height m\", which has \"high\"",
        ),
        (
            "<tr><td>B<td>Alps<td>7<td>2<td>?",
            "a number in row 2, column \"First ascent\", which has \"?\"",
        ),
    ] {
        let error = read(HEAD, &format!("{good}{bad}")).unwrap_err();
        assert_eq!(error.to_string(), format!("error: the page lacks {why}"));
    }
}

#[test]
fn a_table_that_is_missing_or_cut_is_an_error() {
    let page = |html: &str| Page::from_html("http://gallery.test/peaks.html", html);
    let error = |page: &Page| {
        let error = Trial::new().parse(Tables::peaks, page);
        error.unwrap_err().to_string()
    };
    let why = "error: the page lacks a table#peaks with a head";
    assert_eq!(error(&page("<table id=hills></table>")), why);
    for n_captures in 1..=60 {
        let cut = page(include_str!("../pages/peaks.html")).with_captures_limit(n_captures);
        assert!(error(&cut).contains("captures"), "{}", error(&cut));
    }
}

#[test]
fn saved_calls_give_what_they_gave() {
    check_saved::<Tables>("pages");
}
