//! Structs that borrow from the page, and the values that they borrow.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::borrow::Cow;
use std::collections::BTreeMap;

use crawler_plugin_sdk::prelude::*;
use crawler_plugin_sdk::{Declared, Plugin, Url};

#[derive(Debug, Extract)]
struct Shelf<'a> {
    #[css("h1")]
    title: &'a str,
    #[css("h2")]
    subtitle: Option<&'a str>,
    #[css("h1", attr = "title")]
    note: Cow<'a, str>,
    #[css("h3", default)]
    rest: &'a str,
    #[css("li", regex = "^by (.+)$")]
    authors: Vec<&'a str>,
    #[css("p", with = split)]
    pair: (&'a str, &'a str),
    #[css("p", with = count)]
    n: usize,
    #[page(url)]
    url: &'a str,
    #[page(url)]
    parsed: Url,
    #[page(state)]
    state: Cow<'a, str>,
    #[rows("article")]
    books: Vec<Book<'a>>,
    #[rows("nav")]
    next: Next,
}

#[derive(Debug, Extract)]
struct Book<'page> {
    #[css("b")]
    title: &'page str,
    #[rows("i")]
    tag: Option<Tag<'page>>,
}

#[derive(Debug, Extract)]
struct Tag<'page> {
    #[css("")]
    text: &'page str,
}

#[derive(Debug, Extract)]
struct Next {
    #[css("a", attr = "href")]
    links: Links,
}

fn split(text: &str) -> Result<(&str, &str)> {
    text.split_once('/').require("two parts")
}

fn count(text: &str) -> Result<usize> {
    Ok(text.len())
}

struct Shop;

#[plugin(reads(Shelf<'_>, Tags<'_> = "all-tags"))]
impl Shop {
    fn root(_: &mut Crawl) -> Result {
        Ok(())
    }

    #[rule]
    fn shelf(page: &Page, crawl: &mut Crawl) -> Result {
        let shelf: Shelf<'_> = page.extract()?;
        crawl.follow_links(&shelf.next.links, Self::SHELF)
    }
}

#[derive(Extract)]
struct Tags<'a> {
    #[css("i")]
    all: Vec<&'a str>,
}

const HTML: &str = "<h1 title='a &amp; b'>The <b>Waves</b></h1><p>one/two</p><li>by Woolf<li>1931\
    <article><b>x</b><i>t</i></article><article><b>y</b></article><nav><a href=?p=2></a></nav>";

fn page() -> Page {
    Page::from_html("http://a.test/x", HTML).with_state("ünder")
}

#[test]
fn texts_are_borrowed_from_the_page() {
    let page = page();
    let shelf: Shelf<'_> = page.extract().unwrap();
    assert_eq!(
        (shelf.title, shelf.subtitle, shelf.rest),
        ("The Waves", None, "")
    );
    assert!(matches!(shelf.note, Cow::Borrowed("a & b")));
    assert_eq!(shelf.authors, ["Woolf"]);
    assert_eq!((shelf.pair, shelf.n), (("one", "two"), 7));
    assert_eq!((shelf.url, &*shelf.state), ("http://a.test/x", "ünder"));
    assert_eq!(shelf.parsed.as_str(), shelf.url);
    let books = shelf.books.iter();
    let books: Vec<_> = books
        .map(|book| (book.title, book.tag.as_ref().map(|tag| tag.text)))
        .collect();
    assert_eq!(books, [("x", Some("t")), ("y", None)]);
}

#[test]
fn no_field_is_a_copy() {
    let page = page();
    let first: Shelf<'_> = page.extract().unwrap();
    let title = first.title;
    drop(first);
    let tags: Tags<'_> = page.extract().unwrap();
    // The page is read once and kept: a second reading has the same text at the same place.
    let second: Shelf<'_> = page.extract().unwrap();
    assert!(std::ptr::eq(title, second.title));
    assert!(std::ptr::eq(page.url(), second.url));
    assert_eq!(tags.all, ["t"]);
    assert!(!page.truncated_by::<Shelf<'_>>().unwrap());
}

#[test]
fn a_plan_is_declared_by_a_struct_that_borrows() {
    let names: Vec<_> = Shop::DESCRIPTION.plans.iter().map(|p| p.name).collect();
    assert_eq!(names, ["shelf", "all-tags"]);
    assert_eq!(<Tags<'_> as Declared>::NAME, "all-tags");
    let outcome = crawler_plugin_sdk::testing::Trial::new();
    let outcome = outcome.parse(Shop::shelf, &page()).unwrap();
    assert_eq!(outcome.urls(), ["http://a.test/x?p=2"]);
}

#[test]
fn json_is_borrowed_from_the_page() {
    let page = Page::from_html("http://a.test/api", r#"{"title": "The Waves"}"#);
    let book: BTreeMap<&str, &str> = page.json().unwrap();
    assert!(
        page.text()
            .as_bytes()
            .as_ptr_range()
            .contains(&book["title"].as_ptr())
    );
    let owned: BTreeMap<String, String> = page.json().unwrap();
    assert_eq!(owned["title"], book["title"]);
}

#[test]
fn what_is_wrong_is_told_as_of_owned_texts() {
    let error = Page::from_html("http://a.test/", "<h1 title=x>x</h1><p>one</p>");
    let error = error.extract::<Shelf<'_>>().unwrap_err().to_string();
    let expected = "error: \"one\" is no value for `Shelf.pair`, read from an element `p`: the page lacks two parts";
    assert_eq!(error, expected);
}
