//! A site of small pages, made up by the server: about 2 kB each, with ten links, most of them to pages that are
//! known already. There the frontier is a larger part of the cost of a page than on the documentation of Rust.

use std::fmt::Write as _;

use axum::Router;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use super::{BELOW, START};

/// Number of links of one page.
const N_LINKS: u64 = 10;
/// Number of those links that lead to pages which no earlier page links to, until all pages are known.
const N_NEW: u64 = 2;
/// Number of paragraphs that fill a page up to its size.
const N_PARAGRAPHS: usize = 12;
const PARAGRAPH: &str = "<p>Each of these pages has a few sentences, so that it is as long as short pages often are.</p>\n";

/// Returns a router for a site of `n_pages` pages.
pub(crate) fn router(n_pages: u64) -> Router {
    Router::new().fallback(move |request: Request| {
        let page = answer(request.uri().path(), n_pages);
        async move { page }
    })
}

fn answer(path: &str, n_pages: u64) -> Response {
    let page = match path.strip_prefix(BELOW) {
        _ if path == START => Some(0),
        Some(name) => name.strip_suffix(".html").and_then(|n| n.parse().ok()),
        None => None,
    };
    match page.filter(|page| *page < n_pages) {
        Some(page) => {
            let html_type = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
            (html_type, html(page, n_pages)).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn html(page: u64, n_pages: u64) -> String {
    let mut html =
        format!("<html><head><title>Page {page}</title></head><body>\n<h1>Page {page}</h1>\n");
    for link in links(page, n_pages) {
        let _infallible = writeln!(html, "<a href=\"{BELOW}{link}.html\">page {link}</a>");
    }
    html.push_str(&PARAGRAPH.repeat(N_PARAGRAPHS));
    html.push_str("</body></html>\n");
    html
}

/// Returns the pages that a page links to: the next new ones, and others all over the site.
fn links(page: u64, n_pages: u64) -> impl Iterator<Item = u64> {
    let new = (1..=N_NEW).map(move |n| page * N_NEW + n);
    let others = (N_NEW..N_LINKS).map(move |n| {
        // Pages before this one are known already, or soon.
        page.wrapping_mul(2_654_435_761).wrapping_add(n * 40_503) % (page + 1)
    });
    new.filter(move |new| *new < n_pages).chain(others)
}
