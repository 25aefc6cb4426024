//! The bundled book shop: a small web site that is the same on every machine, so that a first crawl
//! needs no network and its result can be compared with the truth.
//!
//! [`Shop::new`] makes up the books from a fixed seed, [`serve`] renders them on request, and [`Shop::truth`]
//! returns the items that a crawl of the shop must bring. The `books` plugin relies on the markup of the
//! pages; `demo/html.rs` keeps it. The text that the terminal shows about a crawl is built in [`report`];
//! starting servers and printing is left to `cli`.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use url::Url;

mod books;
mod html;
pub mod report;

pub use html::START;

/// Number of books on one page of the catalogue.
const PER_PAGE: usize = 20;

/// The shop with its whole stock.
#[derive(Debug)]
pub struct Shop {
    books: Vec<books::Book>,
}

impl Default for Shop {
    fn default() -> Self {
        Self::new()
    }
}

impl Shop {
    /// Returns the shop; every call returns the same.
    pub fn new() -> Self {
        Self {
            books: books::all(),
        }
    }

    /// Returns the number of books.
    pub fn n_books(&self) -> usize {
        self.books.len()
    }

    /// Returns the number of pages that a crawl fetches: the catalogue, and one page for each book.
    pub fn n_pages(&self) -> usize {
        self.n_catalogue_pages() + self.books.len()
    }

    /// Returns the items that a crawl of the shop at `base` must bring, in the order of their URLs.
    pub fn truth(&self, base: &Url) -> Vec<Value> {
        let mut items: Vec<(String, Value)> = self
            .books
            .iter()
            .map(|book| {
                let mut url = base.clone();
                url.set_path(&html::book_path(book));
                let item = json!({
                    "url": url.as_str(),
                    "title": book.title,
                    "author": book.author,
                    "price_pence": book.price_pence,
                    "stock": book.stock,
                    "rating": book.rating,
                    "tags": book.tags,
                    "description": book.description,
                });
                (url.into(), item)
            })
            .collect();
        items.sort_by(|(one, _), (other, _)| one.cmp(other));
        items.into_iter().map(|(_, item)| item).collect()
    }

    fn n_catalogue_pages(&self) -> usize {
        self.books.len().div_ceil(PER_PAGE)
    }

    /// Returns the content type and the text of the page at a path.
    fn page(&self, path: &str) -> Option<(&'static str, String)> {
        const HTML: &str = "text/html; charset=utf-8";
        if path == "/" {
            return Some((HTML, html::start(self.books.len())));
        }
        if path == "/robots.txt" {
            return Some(("text/plain", "User-agent: *\nAllow: /\n".to_owned()));
        }
        if let Some(n) = numbered(path, "/catalogue/page-") {
            let books = self.books.chunks(PER_PAGE).nth(n.checked_sub(1)?)?;
            return Some((HTML, html::catalogue(n, self.n_catalogue_pages(), books)));
        }
        let book = self.books.get(numbered(path, "/book/")?.checked_sub(1)?)?;
        Some((HTML, html::book(book)))
    }
}

/// Parses the number in `<before>NUMBER.html`. It must be written as the shop writes it: `007` is another
/// path.
fn numbered(path: &str, before: &str) -> Option<usize> {
    let digits = path.strip_prefix(before)?.strip_suffix(".html")?;
    digits
        .parse()
        .ok()
        .filter(|n: &usize| n.to_string() == digits)
}

/// Answers requests for the shop's pages until `stop` is cancelled.
pub async fn serve(
    listener: TcpListener,
    shop: Arc<Shop>,
    stop: CancellationToken,
) -> io::Result<()> {
    let answer = move |uri: Uri| {
        let page = shop.page(uri.path());
        async move { respond(page) }
    };
    axum::serve(listener, Router::new().fallback(get(answer)))
        .with_graceful_shutdown(stop.cancelled_owned())
        .await
}

fn respond(page: Option<(&'static str, String)>) -> Response {
    match page {
        Some((content_type, text)) => {
            ([(header::CONTENT_TYPE, content_type)], text).into_response()
        }
        None => (
            StatusCode::NOT_FOUND,
            "there is no such page in this shop\n",
        )
            .into_response(),
    }
}

#[cfg(test)]
mod tests;
