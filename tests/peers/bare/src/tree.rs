//! Reading of a page from a document tree, by scraper.

use scraper::{Html, Selector};
use url::Url;

use crate::{Item, Reading, Scope, folded};

/// Selectors that are parsed once.
#[derive(Debug)]
pub struct Tree {
    title: Selector,
    heading: Selector,
    link: Selector,
}

impl Default for Tree {
    fn default() -> Self {
        let parse = |css| Selector::parse(css).expect("a fixed selector parses");
        Self {
            title: parse("title"),
            heading: parse("h1, h2, h3, h4, h5, h6"),
            link: parse("a[href]"),
        }
    }
}

impl Tree {
    /// Reads a page.
    pub fn read(&self, body: &[u8], url: &Url, scope: &Scope) -> Reading {
        let page = Html::parse_document(&String::from_utf8_lossy(body));
        let links = page.select(&self.link).filter_map(|a| a.attr("href"));
        let paths = scope.paths(url, links);
        let title: Option<String> = page.select(&self.title).next().map(|e| e.text().collect());
        let item = Item {
            url: url.as_str().to_owned(),
            title: folded(&title.unwrap_or_default()),
            headings: page.select(&self.heading).count(),
            links: paths.len(),
        };
        (item, paths)
    }
}
