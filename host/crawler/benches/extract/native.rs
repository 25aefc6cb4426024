//! The same work without a sandbox: the headings of a page as JSON, and its links made absolute.

use std::borrow::Cow;
use std::cell::RefCell;
use std::hint::black_box;

use ::lol_html::html_content::{Element, TextChunk};
use ::lol_html::{ElementContentHandlers, HtmlRewriter, Settings};
use ::scraper::{Html, Selector};
use serde_json::json;
use url::Url;

use super::Found;

/// Headings of a page, and addresses of its links.
type Read = (Vec<String>, Vec<Url>);

/// Returns a reader of all pages with one of the functions below. Its findings are collected once, without
/// being timed.
pub(crate) fn reader<'p>(
    pages: &'p [(String, String)],
    read: fn(&str, &str) -> Read,
) -> impl FnMut() -> Found + 'p {
    let mut found = Found::default();
    for (url, html) in pages {
        let (headings, links) = read(url, html);
        found.add(
            headings.iter().map(String::as_str),
            links.iter().map(Url::as_str),
        );
    }
    move || {
        for (url, html) in pages {
            let (headings, links) = read(url, html);
            black_box(json!({ "url": url, "headings": headings }).to_string());
            black_box(links);
        }
        found.clone()
    }
}

const HEADINGS_CSS: &str = "h1, h2, h3, h4, h5, h6";
const LINKS_CSS: &str = "a[href]";

thread_local! {
    static HEADINGS: Selector = selector(HEADINGS_CSS);
    static LINKS: Selector = selector(LINKS_CSS);
    static HEADINGS_OF_PASS: ::lol_html::Selector = HEADINGS_CSS.parse().expect("it parses");
    static LINKS_OF_PASS: ::lol_html::Selector = LINKS_CSS.parse().expect("it parses");
}

fn selector(css: &str) -> Selector {
    Selector::parse(css).expect("a fixed selector parses")
}

/// Reads a page with a document tree.
pub(crate) fn scraper(url: &str, html: &str) -> Read {
    let dom = Html::parse_document(html);
    let base = Url::parse(url).expect("it is an address");
    let headings = HEADINGS.with(|headings| {
        let texts = dom.select(headings).map(|element| {
            let text: String = element.text().collect();
            folded(&text)
        });
        texts.collect()
    });
    let links = LINKS.with(|links| {
        let hrefs = dom.select(links).filter_map(|element| element.attr("href"));
        hrefs
            .filter_map(|href| base.join(href.trim()).ok())
            .collect()
    });
    (headings, links)
}

/// Reads a page in one pass, with handlers written for it. Unlike the others it takes the page as written,
/// and misreads pages that omit end tags.
pub(crate) fn lol_html(url: &str, html: &str) -> Read {
    let base = Url::parse(url).expect("it is an address");
    let headings: RefCell<Vec<String>> = RefCell::default();
    let mut links = Vec::new();
    let begin = |_: &mut Element<'_, '_>| {
        headings.borrow_mut().push(String::new());
        Ok(())
    };
    let add = |chunk: &mut TextChunk<'_>| {
        if let Some(last) = headings.borrow_mut().last_mut() {
            last.push_str(chunk.as_str());
        }
        Ok(())
    };
    let link = |a: &mut Element<'_, '_>| {
        let href = a.get_attribute("href").unwrap_or_default();
        let href = htmlize::unescape_attribute(&*href);
        links.extend(base.join(href.trim()).ok());
        Ok(())
    };
    let of_headings = ElementContentHandlers::default().element(begin).text(add);
    let of_links = ElementContentHandlers::default().element(link);
    // They are parsed once, like those of the other readers.
    let headings_of_pass = HEADINGS_OF_PASS.with(Clone::clone);
    let links_of_pass = LINKS_OF_PASS.with(Clone::clone);
    let settings = Settings::new()
        .with_strict(false)
        .append_element_content_handler((Cow::Borrowed(&headings_of_pass), of_headings))
        .append_element_content_handler((Cow::Borrowed(&links_of_pass), of_links));
    let mut rewriter = HtmlRewriter::new(settings, |_: &[u8]| {});
    let written = rewriter.write(html.as_bytes());
    written.and_then(|()| rewriter.end()).expect("it is read");
    // The text of a heading is joined before it is decoded, so that no entity is cut.
    let text = |text: &String| folded(&htmlize::unescape(text.as_str()));
    let headings = headings.borrow().iter().map(text).collect();
    (headings, links)
}

fn folded(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for word in text.split_ascii_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.push_str(word);
    }
    folded
}
