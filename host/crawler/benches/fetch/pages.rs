//! One page and a robots.txt.

use axum::Router;
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse as _;
use axum::routing::get;

/// Size of the page, which is that of many pages.
pub(crate) const PAGE_BYTES: usize = 16 << 10;

pub(crate) fn router() -> Router {
    let line = "<p>A line of a page, as there are many.</p>\n";
    let page: &'static [u8] = line.repeat(PAGE_BYTES / line.len() + 1).into_bytes().leak();
    let page = &page[..PAGE_BYTES];
    let html = (header::CONTENT_TYPE, "text/html; charset=utf-8");
    let answer = move |asked: HeaderMap| async move {
        // A client that shows the cookie does not get it again, as on real sites.
        match asked.contains_key(header::COOKIE) {
            true => ([html], page).into_response(),
            false => {
                let cookie = (header::SET_COOKIE, "session=1; Path=/");
                ([html, cookie], page).into_response()
            }
        }
    };
    Router::new().route("/page", get(answer)).route(
        "/robots.txt",
        get(|| async { "User-agent: *\nDisallow: /x\n" }),
    )
}
