//! Pages of a static documentation site: title, headings, and the targets of the links.

mod link;

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, DefaultHasher};

use crawler_plugin_sdk::Config;
use crawler_plugin_sdk::prelude::*;
use serde::Serialize;

/// Content of a page of documentation.
#[derive(Extract)]
struct Doc {
    /// Title of the page: the first one, since drawings inside the page have titles of their own.
    #[css("title", with = folded, default)]
    title: String,
    #[rows("h1, h2, h3, h4, h5, h6")]
    headings: Vec<Heading>,
    #[css("a", attr = "href")]
    hrefs: Vec<String>,
}

#[derive(Extract, Item, Serialize)]
struct Heading {
    #[css("", tag, regex = "[1-6]")]
    level: u8,
    #[css("", with = folded)]
    text: String,
}

/// Folds white space, also spaces that do not break.
fn folded(text: &str) -> Result<String> {
    Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Subject of a page, and how much it points at.
#[derive(Item, Serialize)]
struct DocPage {
    url: String,
    title: String,
    headings: Vec<Heading>,
    links: usize,
}

/// A set whose hashes need no random keys: the same page costs the same every time.
type Distinct<T> = HashSet<T, BuildHasherDefault<DefaultHasher>>;

/// The plugin.
pub struct Rustdoc;

// Only a resource grants this limit, by `--limit captures=1000000`. It exceeds the links and headings of any page, and
// `crawler plugin check` shows it to those who add the resource.
#[plugin(
    items(DocPage = "page"),
    reads(Doc),
    limits(captures = 1_000_000),
    params(
        start(about = "Addresses of the starting pages, separated by commas or white space"),
        below(
            about = "Prefixes of the paths that belong to the site, separated alike; the folders of start if not given",
            optional
        )
    )
)]
impl Rustdoc {
    /// Requests all starting pages in one batch.
    pub fn root(crawl: &mut Crawl) -> Result {
        let start = crawl.config().require("start")?;
        crawl.follow_all(split(&start), Self::PAGE)
    }

    /// Follows every address once, before it is resolved and again after, because documentation has pages of 8 MB
    /// and 26 000 links.
    #[rule]
    pub fn page(page: &Page, crawl: &mut Crawl) -> Result {
        let doc: Doc = page.extract()?;
        let below = below(&crawl.config())?;
        let belongs = |path: &String| {
            (path.ends_with(".html") || path.ends_with('/'))
                && below.iter().any(|prefix| path.starts_with(prefix))
        };
        let base = page.join("")?;
        let mut addresses = Distinct::default();
        let hrefs = doc.hrefs.iter().map(|href| link::address(href));
        let hrefs = hrefs.filter(|href| addresses.insert(*href));
        let mut seen = Distinct::default();
        let is_first = |path: &String| seen.insert(path.clone());
        let paths = hrefs.filter_map(|href| link::path(&base, href));
        let links: Vec<String> = paths.filter(belongs).filter(is_first).collect();
        crawl.emit(&DocPage {
            url: page.url().to_owned(),
            title: doc.title,
            headings: doc.headings,
            links: links.len(),
        })?;
        crawl.follow_all(links, Self::PAGE)
    }
}

fn split(list: &str) -> impl Iterator<Item = &str> {
    list.split([',', ' ', '\t', '\n', '\r'])
        .filter(|part| !part.is_empty())
}

/// Returns the prefixes of param `below`, or the folders of param `start`.
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
