//! The pages of a static documentation site: title, headings, and where the links lead.
//!
//! Params: `start`, addresses separated by commas or white space; `below`, prefixes of the paths
//! that belong to the site, separated alike (the folders of `start` unless said otherwise).

mod link;
mod markup;
mod scan;

use crawler_plugin_sdk::prelude::*;
use crawler_plugin_sdk::{Config, Url};
use serde::Serialize;

use scan::{Distinct, Heading, Scan};

/// What a page is about, and how much it points at.
#[derive(Serialize)]
struct DocPage {
    url: String,
    title: String,
    headings: Vec<Heading>,
    links: usize,
}

/// The plugin.
pub struct Rustdoc;

#[plugin(items(DocPage = "page"))]
impl Rustdoc {
    /// All starting pages in one batch.
    pub fn root(crawl: &mut Crawl) -> Result {
        let start = crawl.config().require("start")?;
        crawl.follow_all(split(&start), Self::PAGE)
    }

    /// Documentation has pages of 8 MB and 26 000 links: one pass without a tree, and every
    /// address once, before it is resolved and again after.
    #[rule]
    pub fn page(page: &Page, crawl: &mut Crawl) -> Result {
        let scan = Scan::of(page.text());
        let below = below(&crawl.config())?;
        let belongs = |path: &String| {
            (path.ends_with(".html") || path.ends_with('/'))
                && below.iter().any(|prefix| path.starts_with(prefix))
        };
        let base = page.join("")?;
        let paths = scan.hrefs.iter().filter_map(|href| link::path(&base, href));
        let mut seen = Distinct::default();
        let is_first = |path: &String| seen.insert(path.clone());
        let links: Vec<String> = paths.filter(belongs).filter(is_first).collect();
        crawl.emit(&DocPage {
            url: page.url().to_owned(),
            title: scan.title,
            headings: scan.headings,
            links: links.len(),
        })?;
        crawl.follow_all(links, Self::PAGE)
    }
}

fn split(list: &str) -> impl Iterator<Item = &str> {
    list.split([',', ' ', '\t', '\n', '\r'])
        .filter(|part| !part.is_empty())
}

/// The prefixes of param `below`, or the folders of param `start`.
fn below(config: &Config<'_>) -> Result<Vec<String>> {
    if let Some(below) = config.get("below") {
        return Ok(split(&below).map(str::to_owned).collect());
    }
    let start = config.require("start")?;
    let folder = |start| -> Result<String> {
        // `.` is the folder of any address.
        Ok(Url::parse(start)?.join(".")?.path().to_owned())
    };
    split(&start).map(folder).collect()
}
