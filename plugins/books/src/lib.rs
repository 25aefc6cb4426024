//! The books of a shop: list pages lead to details and to the next list page.
//!
//! Param `start`: the address of the first list page.

use crawler_plugin_sdk::prelude::*;
use serde::Serialize;

/// What a detail page tells.
#[derive(Serialize)]
struct Book {
    url: String,
    title: String,
    author: String,
    price_pence: u32,
    stock: u32,
    rating: u8,
    tags: Vec<String>,
    description: String,
}

/// The plugin.
pub struct Books;

#[plugin(items(Book))]
impl Books {
    /// The first list page, as the user gives it.
    pub fn root(crawl: &mut Crawl) -> Result {
        let start = crawl.config().require("start")?;
        crawl.follow(start, Self::LIST)
    }

    /// Links are followed as they stand; the crawler makes them absolute and drops known ones.
    #[rule]
    pub fn list(page: &Page, crawl: &mut Crawl) -> Result {
        let dom = page.dom();
        crawl.follow_all(dom.attrs_at("article.book h3 a", "href"), Self::DETAIL)?;
        crawl.follow_all(dom.attrs_at("li.next a", "href"), Self::LIST)
    }

    /// A part that is missing ends the call with an error that names its selector.
    #[rule]
    pub fn detail(page: &Page, crawl: &mut Crawl) -> Result {
        let dom = page.dom();
        crawl.emit(&Book {
            url: page.url().to_owned(),
            title: dom.text_at("h1")?,
            author: dom.text_at("p.author")?,
            price_pence: pence(&dom.text_at("p.price")?)?,
            stock: stock(&dom.text_at("p.stock")?)?,
            rating: dom.attr_at("p.rating", "data-stars")?.parse()?,
            tags: dom.texts_at("ul.tags li"),
            description: dom.text_at("#description")?,
        })
    }
}

/// `£12.34` as 1234.
fn pence(price: &str) -> Result<u32> {
    let (pounds, pence) = price
        .strip_prefix('£')
        .and_then(|p| p.split_once('.'))
        .require("a price like £12.34")?;
    Ok(pounds.parse::<u32>()? * 100 + pence.parse::<u32>()?)
}

/// `In stock (7)` as 7, `Out of stock` as 0.
fn stock(text: &str) -> Result<u32> {
    if text == "Out of stock" {
        return Ok(0);
    }
    let count = text
        .strip_prefix("In stock (")
        .and_then(|rest| rest.strip_suffix(')'));
    Ok(count.require("a count of books in stock")?.parse()?)
}
