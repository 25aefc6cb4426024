//! Links that belong to the site: paths below a folder that name a page.

use ahash::AHashSet;
use url::Url;

/// The pages that belong to a crawl.
#[derive(Debug, Clone)]
pub struct Scope {
    start: Url,
    below: String,
}

impl Scope {
    /// Makes a scope of the pages on the site of `start` whose paths begin with `below`.
    pub fn new(start: &Url, below: &str) -> Self {
        Self {
            start: start.clone(),
            below: below.to_owned(),
        }
    }

    /// Returns the paths of the different pages that links of a page lead to. An address is looked at once, before it
    /// is resolved and again after, because there are pages with thousands of links.
    pub fn paths<'a>(&self, base: &Url, hrefs: impl Iterator<Item = &'a str>) -> Vec<String> {
        let addresses: AHashSet<&str> = hrefs.map(address).collect();
        let paths = addresses.into_iter();
        let paths = paths.filter_map(|address| self.path(base, address));
        let paths: AHashSet<String> = paths.collect();
        paths.into_iter().collect()
    }

    /// Returns the path that a link leads to if it belongs to the crawl.
    fn path(&self, base: &Url, href: &str) -> Option<String> {
        let path = match is_plain(href) {
            true => resolve(base.path(), href),
            false => {
                let url = base.join(href).ok()?;
                (url.origin() == self.start.origin()).then(|| url.path().to_owned())?
            }
        };
        let is_page = path.ends_with(".html") || path.ends_with('/');
        (is_page && path.starts_with(&self.below)).then_some(path)
    }
}

/// Returns a link without query and fragment. White space around an address is no part of it.
fn address(href: &str) -> &str {
    let end = href.bytes().position(|c| matches!(c, b'?' | b'#'));
    href[..end.unwrap_or(href.len())].trim_ascii()
}

/// Returns true if nothing in the link has a meaning beyond that of a path. Nearly all links are of this kind, and a
/// parser of URLs would cost ten times as much.
fn is_plain(href: &str) -> bool {
    let is_plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'/' | b'.' | b'-' | b'_');
    !href.is_empty() && !href.starts_with("//") && href.bytes().all(is_plain)
}

fn resolve(base: &str, href: &str) -> String {
    let (folder, segments) = match href.strip_prefix('/') {
        Some(segments) => ("", segments),
        None => (&base[..base.rfind('/').unwrap_or(0)], href),
    };
    let mut path = String::with_capacity(folder.len() + href.len() + 1);
    path.push_str(folder);
    for segment in segments.split('/') {
        match segment {
            "." => {}
            ".." => path.truncate(path.rfind('/').unwrap_or(0)),
            _ => {
                path.push('/');
                path.push_str(segment);
            }
        }
    }
    if matches!(segments.rsplit('/').next(), Some("." | "..")) {
        path.push('/');
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_link_leads_where_the_url_parser_says() {
        let base: Url = "http://docs.test/std/vec/index.html".parse().unwrap();
        for href in [
            "a.html",
            "./a.html",
            "../a.html",
            "../../../a.html",
            "/",
            "/a/../b/",
            ".",
            "..",
            "a//b.html",
        ] {
            assert!(is_plain(href));
            assert_eq!(
                resolve(base.path(), href),
                base.join(href).unwrap().path(),
                "{href}"
            );
        }
    }

    #[test]
    fn a_page_counts_once_and_other_sites_do_not() {
        let base: Url = "http://docs.test/std/index.html".parse().unwrap();
        let hrefs = [
            "a.html",
            "a.html#x",
            "./a.html?y",
            "//docs.test/std/a.html",
            "//other.test/std/a.html",
            "../core/a.html",
            "style.css",
            "",
        ];
        let mut paths = Scope::new(&base, "/std/").paths(&base, hrefs.into_iter());
        paths.sort();
        assert_eq!(paths, ["/std/a.html", "/std/index.html"]);
    }
}
