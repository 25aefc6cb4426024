//! The documentation of Rust as a site: thousands of pages that were not written for crawlers. A walk that shares
//! no code with the crawler says what a crawl of them must find.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use scraper::{ElementRef, Html, Selector};
use url::Url;

use crate::skipped;
use crate::web::{Site, Web, file_of};

/// Parts of the documentation that make a crawl of about a thousand pages.
pub const BELOW: [&str; 4] = [
    "/error_codes/",
    "/rust-by-example/",
    "/reference/",
    "/book/",
];
/// Pages from which all of [`BELOW`] is reached.
pub const STARTS: [&str; 4] = [
    "/error_codes/error-index.html",
    "/rust-by-example/index.html",
    "/reference/index.html",
    "/book/index.html",
];

/// Content that a page is known to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Truth {
    /// Text of the first `title` element, with single spaces.
    pub title: String,
    /// Level and text of every `h1` to `h6`, in the order of the page, with single spaces.
    pub headings: Vec<(u8, String)>,
}

/// Folder of the documentation. If it is not installed, a line says so, and it is `None`.
pub fn folder() -> Option<PathBuf> {
    let asked = Command::new("rustc").args(["--print", "sysroot"]).output();
    let asked = asked.unwrap_or_else(|e| panic!("rustc does not start: {e}"));
    let sysroot = String::from_utf8_lossy(&asked.stdout);
    let folder = Path::new(sysroot.trim()).join("share/doc/rust/html");
    if folder.join("index.html").is_file() {
        return Some(folder);
    }
    skipped(
        "rustdoc",
        "the documentation of Rust is not installed (rustup component add rust-docs)",
    );
    None
}

/// Returns the documentation as a site on loopback.
pub fn site(folder: &Path) -> Site {
    Site::new().folder(folder)
}

/// Opens [`site`] if the documentation is installed.
pub fn open() -> Option<(PathBuf, Web)> {
    let folder = folder()?;
    let web = site(&folder).open();
    Some((folder, web))
}

/// Reads every page that links lead to from `starts`, straight from the folder: paths that end with `.html` or a
/// slash and start with one of `below`, on the host of `base`, without fragment and query. Links to files that are
/// missing are left out. The pages are returned by URL.
pub fn walk(folder: &Path, base: &Url, starts: &[&str], below: &[&str]) -> BTreeMap<String, Truth> {
    walk_where(folder, base, starts, below, |_| true)
}

/// Reads only those pages whose paths meet the condition `may`, including the starts.
pub fn walk_where(
    folder: &Path,
    base: &Url,
    starts: &[&str],
    below: &[&str],
    may: impl Fn(&str) -> bool,
) -> BTreeMap<String, Truth> {
    let mut pages = BTreeMap::new();
    let mut waiting: VecDeque<Url> = starts
        .iter()
        .map(|start| base.join(start).expect("starts are paths"))
        .collect();
    let selectors = Selectors::new();
    while let Some(url) = waiting.pop_front() {
        if pages.contains_key(url.as_str()) || !may(url.path()) {
            continue;
        }
        let Some(text) = read(folder, url.path()) else {
            continue;
        };
        let page = Html::parse_document(&text);
        let links = page
            .select(&selectors.link)
            .filter_map(|a| url.join(a.attr("href")?.trim()).ok());
        waiting.extend(links.filter_map(|link| followed(link, base, below)));
        pages.insert(url.into(), selectors.truth(&page));
    }
    pages
}

fn read(folder: &Path, path: &str) -> Option<String> {
    let mut file = file_of(folder, path)?;
    if path.ends_with('/') {
        file.push("index.html");
    }
    fs::read(file)
        .ok()
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn followed(mut link: Url, base: &Url, below: &[&str]) -> Option<Url> {
    link.set_fragment(None);
    link.set_query(None);
    let path = link.path();
    let is_page = path.ends_with(".html") || path.ends_with('/');
    let is_below = below.iter().any(|start| path.starts_with(start));
    (is_page && is_below && link.origin() == base.origin()).then_some(link)
}

struct Selectors {
    link: Selector,
    title: Selector,
    heading: Selector,
}

impl Selectors {
    fn new() -> Self {
        let parse = |selector| Selector::parse(selector).expect("a fixed selector parses");
        Self {
            link: parse("a[href]"),
            title: parse("title"),
            heading: parse("h1, h2, h3, h4, h5, h6"),
        }
    }

    fn truth(&self, page: &Html) -> Truth {
        Truth {
            title: page
                .select(&self.title)
                .next()
                .map(text)
                .unwrap_or_default(),
            headings: page
                .select(&self.heading)
                .map(|heading| (heading.value().name().as_bytes()[1] - b'0', text(heading)))
                .collect(),
        }
    }
}

fn text(element: ElementRef<'_>) -> String {
    let text: String = element.text().collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn a_walk_follows_links_below_and_nothing_else() {
        let folder = tree(&[
            (
                "in/index.html",
                "<title>In</title><h2>A &amp;\n <i>B</i></h2><a href='a.html?q#f'></a><a href='../out.html'></a>\
                 <a href='missing.html'></a><a href='style.css'></a><a href='//other.test/in/a.html'></a>",
            ),
            ("in/a.html", "<title>A</title><a href='.'>index</a>"),
            ("out.html", "<title>Out</title>"),
        ]);
        let base = "http://docs.test/".parse().unwrap();
        let pages = walk(folder.path(), &base, &["/in/index.html"], &["/in/"]);
        let urls: Vec<&str> = pages.keys().map(String::as_str).collect();
        assert_eq!(
            urls,
            [
                "http://docs.test/in/",
                "http://docs.test/in/a.html",
                "http://docs.test/in/index.html"
            ]
        );
        let index = &pages["http://docs.test/in/"];
        assert_eq!(
            (index.title.as_str(), index.headings.as_slice()),
            ("In", [(2, "A & B".to_owned())].as_slice())
        );
    }

    #[test]
    fn the_documentation_has_about_a_thousand_pages_in_its_smaller_parts() {
        let Some(folder) = folder() else { return };
        let base = "http://docs.test/".parse().unwrap();
        let start = std::time::Instant::now();
        let pages = walk(&folder, &base, &STARTS, &BELOW);
        println!("{} pages in {:.1?}", pages.len(), start.elapsed());
        assert!((800..2_000).contains(&pages.len()), "{}", pages.len());
        for start in STARTS {
            assert!(
                !pages[base.join(start).unwrap().as_str()].title.is_empty(),
                "{start}"
            );
        }
    }
}
