//! One page and a robots.txt.

use axum::Router;
use axum::http::header;
use axum::routing::get;

/// As long as many pages are.
pub(crate) const PAGE_BYTES: usize = 16 << 10;

pub(crate) fn router() -> Router {
    let line = "<p>A line of a page, as there are many.</p>\n";
    let page: &'static [u8] = line.repeat(PAGE_BYTES / line.len() + 1).into_bytes().leak();
    let page = &page[..PAGE_BYTES];
    let html = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::SET_COOKIE, "session=1; Path=/"),
    ];
    Router::new()
        .route("/page", get(move || async move { (html, page) }))
        .route(
            "/robots.txt",
            get(|| async { "User-agent: *\nDisallow: /x\n" }),
        )
}
