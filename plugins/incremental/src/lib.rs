//! The articles of a news site that is crawled again and again: each run gives those that are new or have changed.
//!
//! The rules are those of any list with details; setting `--unchanged skip` does the rest. The crawler keeps a
//! hash of the body of each page, and its headers `etag` and `last-modified` if the site sends them.
//! `crawler resource restart NAME` begins the next run, which asks for every page that the last one knew. It sends the
//! `etag` as `if-none-match`, and the `last-modified` as `if-modified-since`. A page that the site answers with 304,
//! or that has the same body, is not parsed and gives no items. A page with neither header is downloaded each time, and
//! its hash decides.
//!
//! Everything that an article is made of has to be in its own page, as state would not count as a change. The answer to a
//! request that asks for `reload`, or whose method is not `GET`, is always parsed.
//!
//! `crawler items NAME` has the items of the last run, and `--run N` those of an earlier one. A page that differs
//! each time it is asked for, because a clock or a counter is in it, gives its items in every run.

use crawler_plugin_sdk::prelude::*;

#[derive(Extract)]
struct List {
    #[css("article h2 a", attr = "href")]
    articles: Links,
    #[css("a[rel=next]", attr = "href")]
    older: Links,
}

#[derive(Extract, Item, serde::Serialize)]
struct Article {
    #[page(url)]
    url: String,
    #[css("h1")]
    title: String,
    #[css("time.published", attr = "datetime")]
    published: DateTime,
    /// Time of the last correction. `None` for an article that is new.
    #[css("time.corrected", attr = "datetime")]
    corrected: Option<DateTime>,
    #[css("main > p")]
    paragraphs: Vec<String>,
}

/// The plugin.
pub struct Incremental;

#[plugin(
    items(Article),
    reads(List, Article),
    params(start(about = "Address of the first list page"))
)]
impl Incremental {
    /// The newest articles.
    pub fn root(crawl: &mut Crawl) -> Result {
        let start = crawl.config().require("start")?;
        crawl.follow(start, Self::LIST)
    }

    /// Lists come first: articles move from page to page while they are read.
    #[rule]
    pub fn list(page: &Page, crawl: &mut Crawl) -> Result {
        let List { articles, older } = page.extract()?;
        crawl.follow_links(&older, Follow::by(Self::LIST).priority(1))?;
        crawl.follow_links(&articles, Self::ARTICLE)
    }

    /// One article that is new or has changed.
    #[rule]
    pub fn article(page: &Page, crawl: &mut Crawl) -> Result {
        crawl.emit(&page.extract::<Article>()?)
    }
}
