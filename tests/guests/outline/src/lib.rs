//! A plugin as most are written: a tree of the page, selectors, links and headings.

use crawler_plugin_sdk::prelude::*;
use serde::Serialize;

/// What a page is about, and where it leads.
#[derive(Item, Serialize)]
struct Outline {
    headings: Vec<String>,
    links: Vec<String>,
}

/// The plugin.
pub struct Guest;

#[plugin(items(Outline), name = "outline", version = "1.0.0")]
impl Guest {
    fn root(crawl: &mut Crawl) -> Result {
        crawl.follow(crawl.config().require("start")?, Self::PAGE)
    }

    #[rule]
    fn page(page: &Page, crawl: &mut Crawl) -> Result {
        let dom = page.dom();
        let links = dom.attrs_at("a[href]", "href");
        crawl.emit(&Outline {
            headings: dom.texts_at("h1, h2, h3, h4, h5, h6"),
            links: links.into_iter().map(str::to_owned).collect(),
        })
    }
}
