//! Title, headings and links of a page in one pass, without building a tree.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, DefaultHasher};

use serde::Serialize;

use crate::markup::{Part, Parts, decode};

/// `<h1>` to `<h6>`.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Heading {
    pub(crate) level: u8,
    pub(crate) text: String,
}

/// A set whose hashes need no random keys: the same page costs the same every time.
pub(crate) type Distinct<T> = HashSet<T, BuildHasherDefault<DefaultHasher>>;

/// What one page holds.
#[derive(Default)]
pub(crate) struct Scan<'a> {
    pub(crate) title: String,
    pub(crate) headings: Vec<Heading>,
    /// Of `a`, each once, without query and fragment.
    pub(crate) hrefs: Vec<Cow<'a, str>>,
    seen: Distinct<&'a str>,
}

impl<'a> Scan<'a> {
    pub(crate) fn of(html: &'a str) -> Self {
        let mut scan = Scan::default();
        // The element whose text is being read, and that text.
        let mut open: Option<(&str, String)> = None;
        for part in Parts::of(html) {
            match part {
                Part::Text(text) => {
                    if let Some((_, read)) = &mut open {
                        read.push_str(&decode(text));
                    }
                }
                Part::Start {
                    name,
                    href: Some(href),
                } if is(name, "a") => scan.link(href),
                Part::Start { name, .. } => {
                    if is(name, "title") || level(name).is_some() {
                        open = Some((name, String::new()));
                    }
                }
                Part::End(name) => {
                    if let Some((_, text)) = open.take_if(|(open, _)| is(name, open)) {
                        scan.close(name, &text);
                    }
                }
            }
        }
        scan
    }

    fn link(&mut self, href: &'a str) {
        let end = href.bytes().position(|c| matches!(c, b'?' | b'#'));
        // White space around an address is no part of it.
        let address = href[..end.unwrap_or(href.len())].trim_ascii();
        if self.seen.insert(address) {
            self.hrefs.push(decode(address));
        }
    }

    fn close(&mut self, name: &str, text: &str) {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        match level(name) {
            Some(level) => self.headings.push(Heading { level, text }),
            // Drawings inside the page have titles of their own.
            None if self.title.is_empty() => self.title = text,
            None => {}
        }
    }
}

fn is(name: &str, expected: &str) -> bool {
    name.eq_ignore_ascii_case(expected)
}

/// 1 for `h1`.
fn level(name: &str) -> Option<u8> {
    match name.as_bytes() {
        [b'h' | b'H', digit @ b'1'..=b'6'] => Some(digit - b'0'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(html: &str, title: &str, headings: &[(u8, &str)], hrefs: &[&str]) {
        let scan = Scan::of(html);
        assert_eq!(scan.title, title);
        let found: Vec<_> = scan
            .headings
            .iter()
            .map(|h| (h.level, h.text.as_str()))
            .collect();
        assert_eq!(found, headings);
        assert_eq!(scan.hrefs, hrefs);
    }

    #[test]
    fn text_is_decoded_and_folded_across_elements() {
        check("<title>a &amp;\n b</title>", "a & b", &[], &[]);
        check(
            "<h2>Vec&lt;<b>T</b>&gt;  <i>\n</i>x</h2>",
            "",
            &[(2, "Vec<T> x")],
            &[],
        );
    }

    #[test]
    fn an_address_counts_once_whatever_query_and_fragment() {
        check(
            "<a href='b.html#x'><a href='b.html?y'><a href=b.html><a name=c>",
            "",
            &[],
            &["b.html"],
        );
        check(
            "<A HREF='?a=1&amp;b'><a href='x&amp;y/'>",
            "",
            &[],
            &["", "x&y/"],
        );
    }

    #[test]
    fn what_looks_like_tags_inside_text_is_text() {
        check(
            "<script>'<a href=x><h1>no</h1>'</script><h1>yes</h1>",
            "",
            &[(1, "yes")],
            &[],
        );
        check(
            "<!-- <a href=x> --><textarea><a href=y></textarea>",
            "",
            &[],
            &[],
        );
    }

    #[test]
    fn only_the_first_title_is_that_of_the_page() {
        check(
            "<title>page</title><svg><title>drawing</title></svg>",
            "page",
            &[],
            &[],
        );
    }

    #[test]
    fn the_scan_finds_what_a_full_parser_finds() {
        use crawler_plugin_sdk::{Page, Select as _};

        let html = include_str!("../tests/pages/index.html");
        let scan = Scan::of(html);
        let dom = Page::from_html("http://docs.test/", html).dom();
        assert_eq!(scan.title, dom.text_at("title").unwrap());
        let headings: Vec<_> = scan.headings.iter().map(|h| h.text.clone()).collect();
        assert_eq!(headings, dom.texts_at("h1, h2, h3, h4, h5, h6"));
        let mut hrefs = dom.attrs_at("a[href]", "href");
        hrefs
            .iter_mut()
            .for_each(|href| *href = href.split('#').next().unwrap());
        let mut seen = Distinct::default();
        hrefs.retain(|href| seen.insert(*href));
        assert_eq!(scan.hrefs, hrefs);
    }

    #[test]
    fn broken_markup_ends_without_a_panic() {
        let html = "<p>é<a href=\"x\"é ='y' = z/><!-- --><?é?></é><a href='ü'><h1>ü&#xffffff;&é;<";
        for at in (0..html.len()).filter(|at| html.is_char_boundary(*at)) {
            Scan::of(&html[..at]);
            Scan::of(&html[at..]);
        }
        check(html, "", &[], &["x", "ü"]);
    }
}
