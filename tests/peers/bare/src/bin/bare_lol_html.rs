//! A bare loop of reqwest and lol_html, which reads a page in one pass and makes no tree.
//!
//! It tells addresses and texts as they are written, so entities are replaced here.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::sync::LazyLock;

use bare::{Item, Reading, Scope, Task, crawl, folded};
use lol_html::html_content::{Element, TextChunk};
use lol_html::{ElementContentHandlers, HtmlRewriter, Selector, Settings};
use url::Url;

static TITLE: LazyLock<Selector> = LazyLock::new(|| selector("title"));
static HEADING: LazyLock<Selector> = LazyLock::new(|| selector("h1, h2, h3, h4, h5, h6"));
static LINK: LazyLock<Selector> = LazyLock::new(|| selector("a[href]"));

#[tokio::main]
async fn main() {
    crawl(&Task::from_arguments(), read).await;
}

fn selector(css: &str) -> Selector {
    css.parse().expect("a fixed selector parses")
}

fn read(body: &[u8], url: &Url, scope: &Scope) -> Reading {
    let (n_titles, title) = (Cell::new(0), RefCell::new(String::new()));
    let (n_headings, hrefs) = (Cell::new(0), RefCell::new(Vec::new()));
    let count = |n: &Cell<usize>| n.set(n.get() + 1);
    let of_title = ElementContentHandlers::default()
        .element(|_: &mut Element<'_, '_>| {
            count(&n_titles);
            Ok(())
        })
        .text(|text: &mut TextChunk<'_>| {
            // Drawings inside the page have titles of their own.
            if n_titles.get() == 1 {
                title.borrow_mut().push_str(text.as_str());
            }
            Ok(())
        });
    let of_heading = ElementContentHandlers::default().element(|_: &mut Element<'_, '_>| {
        count(&n_headings);
        Ok(())
    });
    let of_link = ElementContentHandlers::default().element(|a: &mut Element<'_, '_>| {
        hrefs.borrow_mut().extend(a.get_attribute("href"));
        Ok(())
    });
    let settings = Settings::new()
        .with_strict(false)
        .append_element_content_handler((Cow::Borrowed(&*TITLE), of_title))
        .append_element_content_handler((Cow::Borrowed(&*HEADING), of_heading))
        .append_element_content_handler((Cow::Borrowed(&*LINK), of_link));
    let mut rewriter = HtmlRewriter::new(settings, |_: &[u8]| {});
    let written = rewriter.write(body);
    written.and_then(|()| rewriter.end()).expect("it is read");
    let hrefs = hrefs.into_inner();
    let hrefs: Vec<Cow<'_, str>> = hrefs
        .iter()
        .map(|href| htmlize::unescape_attribute(href.as_str()))
        .collect();
    let paths = scope.paths(url, hrefs.iter().map(|href| &**href));
    let title = title.into_inner();
    let item = Item {
        url: url.as_str().to_owned(),
        title: folded(&htmlize::unescape(title.as_str())),
        headings: n_headings.get(),
        links: paths.len(),
    };
    (item, paths)
}
