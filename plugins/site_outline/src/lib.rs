//! The outline of every page: its title, its headings and the number of its links. All links are followed, as far as
//! the scope of the crawl goes.
//!
//! `crawler bench` crawls with this rule, because it does what most rules do: it reads a page once, makes an item of
//! it, and leaves its links to the crawler.

use crawler_plugin_sdk::prelude::*;

/// Outline of a page.
#[derive(Extract)]
struct Reading {
    #[css("title", default)]
    title: String,
    #[css("h1, h2, h3")]
    headings: Vec<String>,
    #[css("a[href]", attr = "href")]
    hrefs: Vec<String>,
    #[css("a[href]", attr = "href")]
    links: Links,
}

#[derive(Item, serde::Serialize)]
struct Outline<'p> {
    url: &'p str,
    /// Title of the page. Empty if it has none.
    title: String,
    headings: Vec<String>,
    /// Number of the links, repeated ones included.
    n_links: usize,
}

/// The plugin.
pub struct Outlines;

#[plugin(
    items(Outline<'_>),
    reads(Reading),
    params(start(about = "Address of the first page"))
)]
impl Outlines {
    /// The page from which all others are reached.
    pub fn root(crawl: &mut Crawl) -> Result {
        let start = crawl.config().require("start")?;
        crawl.follow(start, Self::PAGE)
    }

    /// One item, and all links of the page.
    #[rule]
    pub fn page(page: &Page, crawl: &mut Crawl) -> Result {
        let reading: Reading = page.extract()?;
        crawl.emit(&Outline {
            url: page.url(),
            title: reading.title,
            headings: reading.headings,
            n_links: reading.hrefs.len(),
        })?;
        crawl.follow_links(&reading.links, Self::PAGE)
    }
}
