//! The books of a shop: list pages lead to details and to the next list page. Without params it is the shop of
//! `crawler demo --site-only --port 8000`.

use crawler_plugin_sdk::prelude::*;

/// Links are followed as they stand; the crawler makes them absolute and drops known ones.
#[derive(Extract)]
struct List {
    #[css("article.book h3 a", attr = "href")]
    books: Links,
    #[css("li.next a", attr = "href")]
    next: Links,
}

/// Book of a detail page. A part that is missing ends the call with an error that names its selector.
#[derive(Extract, Item, serde::Serialize)]
struct Book {
    #[page(url)]
    url: String,
    #[css("h1")]
    title: String,
    #[css("p.author")]
    author: String,
    #[css("p.price", regex = r"^£(\d+\.\d\d)$", with = pence)]
    price_pence: u32,
    #[css("p.stock", with = stock)]
    stock: u32,
    #[css("p.rating", attr = "data-stars")]
    rating: u8,
    #[css("ul.tags li")]
    tags: Vec<String>,
    #[css("#description")]
    description: String,
}

/// The plugin.
pub struct Books;

#[plugin(
    items(Book),
    reads(List, Book),
    params(start(
        about = "Address of the first list page",
        default = "http://127.0.0.1:8000/catalogue/page-1.html"
    ))
)]
impl Books {
    /// The first list page.
    pub fn root(crawl: &mut Crawl) -> Result {
        let start = crawl.config().require("start")?;
        crawl.follow(start, Self::LIST)
    }

    /// Books first, then the next list page.
    #[rule]
    pub fn list(page: &Page, crawl: &mut Crawl) -> Result {
        let list: List = page.extract()?;
        crawl.follow_links(&list.books, Self::DETAIL)?;
        crawl.follow_links(&list.next, Self::LIST)
    }

    /// One book.
    #[rule]
    pub fn detail(page: &Page, crawl: &mut Crawl) -> Result {
        crawl.emit(&page.extract::<Book>()?)
    }
}

/// Reads `12.34` as 1234.
fn pence(pounds: &str) -> Result<u32> {
    Ok(pounds.replace('.', "").parse()?)
}

/// Reads `In stock (7)` as 7, and `Out of stock` as 0.
fn stock(text: &str) -> Result<u32> {
    let count = text.strip_prefix("In stock (");
    let count = count.and_then(|rest| rest.strip_suffix(')'));
    let count = count.or((text == "Out of stock").then_some("0"));
    Ok(count.require("a count of books in stock")?.parse()?)
}
