//! The same work twice: the headings and links of a page, read by the crawler as declared, and read from a tree in
//! the sandbox. A third rule tells links apart by their addresses.

use crawler_plugin_sdk::prelude::*;
use serde::Serialize;

/// Fields that the crawler reads of a page.
#[derive(Extract)]
struct Read {
    #[css("h1, h2, h3, h4, h5, h6")]
    headings: Vec<String>,
    #[css("a", attr = "href")]
    links: Links,
}

/// Subject of a page.
#[derive(Item, Serialize)]
struct Outline {
    url: String,
    headings: Vec<String>,
}

/// The plugin.
pub struct Guest;

#[plugin(items(Outline), reads(Read), name = "outline", version = "2.0.0")]
impl Guest {
    fn root(crawl: &mut Crawl) -> Result {
        crawl.follow(crawl.config().require("start")?, Self::DECLARED)
    }

    #[rule]
    fn declared(page: &Page, crawl: &mut Crawl) -> Result {
        let Read { headings, links } = page.extract()?;
        let url = page.url().to_owned();
        crawl.emit(&Outline { url, headings })?;
        crawl.follow_links(&links, Self::DECLARED)
    }

    #[rule]
    fn tree(page: &Page, crawl: &mut Crawl) -> Result {
        let dom = page.dom();
        let headings = dom.texts_at("h1, h2, h3, h4, h5, h6");
        let url = page.url().to_owned();
        crawl.emit(&Outline { url, headings })?;
        crawl.follow_all(dom.attrs_at("a[href]", "href"), Self::TREE)
    }

    /// The recipe "All links of a site" of the cookbook.
    #[rule]
    fn site(page: &Page, crawl: &mut Crawl) -> Result {
        const LIBRARY: &str = r"/library/[a-z0-9.]+\.html$";
        let links = || page.links().within_host();
        crawl.follow_links(&links().matching(LIBRARY), Self::DECLARED)?;
        crawl.follow_links(&links().not_matching(LIBRARY), Self::SITE)
    }
}
