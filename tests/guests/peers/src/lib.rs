//! The rule that `tests/run bench peers` crawls with: the title of a page, its headings and links counted. It follows
//! links as plugin `rustdoc` does, and shares that part with it.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, DefaultHasher};

use crawler_plugin_sdk::prelude::*;
use serde::Serialize;

#[path = "../../../../plugins/rustdoc/src/link.rs"]
mod link;

/// Fields that the crawler reads of a page.
#[derive(Extract)]
struct Read {
    /// The first title, because drawings inside the page have titles of their own.
    #[css("title", default)]
    title: String,
    #[css("h1, h2, h3, h4, h5, h6", tag)]
    headings: Vec<String>,
    #[css("a", attr = "href")]
    hrefs: Vec<String>,
}

/// Content of a page.
#[derive(Item, Serialize)]
struct Item {
    url: String,
    title: String,
    headings: usize,
    links: usize,
}

/// A set whose hashes need no random keys.
type Distinct<T> = HashSet<T, BuildHasherDefault<DefaultHasher>>;

/// The plugin.
pub struct Guest;

#[plugin(items(Item), reads(Read), name = "peers", version = "1.0.0")]
impl Guest {
    fn root(crawl: &mut Crawl) -> Result {
        crawl.follow(crawl.config().require("start")?, Self::PAGE)
    }

    #[rule]
    fn page(page: &Page, crawl: &mut Crawl) -> Result {
        let read: Read = page.extract()?;
        let below = crawl.config().require("below")?;
        let belongs = |path: &String| {
            (path.ends_with(".html") || path.ends_with('/')) && path.starts_with(&*below)
        };
        let base = page.join("")?;
        let mut addresses = Distinct::default();
        let hrefs = read.hrefs.iter().map(|href| link::address(href));
        let hrefs = hrefs.filter(|href| addresses.insert(*href));
        let mut seen = Distinct::default();
        let is_first = |path: &String| seen.insert(path.clone());
        let paths = hrefs.filter_map(|href| link::path(&base, href));
        let links: Vec<String> = paths.filter(belongs).filter(is_first).collect();
        let title = read.title.split_whitespace().collect::<Vec<_>>();
        crawl.emit(&Item {
            url: page.url().to_owned(),
            title: title.join(" "),
            headings: read.headings.len(),
            links: links.len(),
        })?;
        crawl.follow_all(links, Self::PAGE)
    }
}
