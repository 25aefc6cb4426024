//! Links of a page: all of them, those that meet conditions, and the requests that follow them.

#![allow(clippy::unwrap_used, reason = "a test")]

use crawler_plugin_sdk::prelude::*;
use crawler_plugin_sdk::testing::{Outcome, Trial};
use crawler_plugin_sdk::{Follow, PageLinks};

struct Site;

#[plugin]
impl Site {
    fn root(_: &mut Crawl) -> Result {
        Ok(())
    }

    #[rule]
    fn all(page: &Page, crawl: &mut Crawl) -> Result {
        crawl.follow_links(&page.links(), Follow::by(Self::ALL).priority(3).state("x"))
    }

    #[rule]
    fn books(page: &Page, crawl: &mut Crawl) -> Result {
        let links = page.links().within_host().matching("/books/");
        let follow = Follow::by(Self::BOOKS).state("y");
        crawl.follow_links(&links.not_matching("/books/7"), follow)
    }

    #[rule]
    fn none(page: &Page, crawl: &mut Crawl) -> Result {
        crawl.follow_links(&page.links().matching("no such"), Self::NONE)
    }

    #[rule]
    fn wrong(page: &Page, crawl: &mut Crawl) -> Result {
        crawl.follow_links(&page.links().matching("("), Self::NONE)
    }

    #[rule]
    fn one(page: &Page, crawl: &mut Crawl) -> Result {
        let links = page.links().read()?;
        let next = links
            .iter()
            .find(|link| link.text == "All of  them".replace("  ", " "));
        crawl.follow_link(&next.require("a link")?.link, Self::ONE)
    }
}

const HTML: &str = "<base href=/base/><a name=x>no link</a><a href=books/7.html><b>Seven</b></a>\
    <p><a href=books/8.html#top> All of\n them</a> <a href='books/8.html'>again</a>\
    <a href=mailto:me@a.test>mail</a><a href='http://['>bad</a>\
    <map><area href='/books/9.html'></map><a href=http://www.a.test/books/>www</a>\
    <a href=https://a.test:8443/books/10>port</a><a href>here</a><link href=/books/11>";

fn page() -> Page {
    Page::from_html("http://a.test/x/", HTML)
}

fn parse(rule: fn(&Page, &mut Crawl) -> Result) -> Outcome {
    Trial::new().parse(rule, &page()).unwrap()
}

#[track_caller]
fn check(links: PageLinks<'_>, expected: &[&str]) {
    let links = links.read().unwrap();
    let urls: Vec<_> = links.iter().map(|link| link.url.as_str()).collect();
    assert_eq!(urls, expected);
}

#[test]
fn all_links_are_followed_as_they_stand() {
    let outcome = parse(Site::all);
    let expected = [
        "http://a.test/base/books/7.html",
        "http://a.test/base/books/8.html#top",
        "http://a.test/base/books/8.html",
        "mailto:me@a.test",
        "http://a.test/books/9.html",
        "http://www.a.test/books/",
        "https://a.test:8443/books/10",
        "http://a.test/base/",
    ];
    assert_eq!(outcome.urls(), expected);
    assert_eq!(outcome.bad_urls, ["http://["]);
    let request = &outcome.requests[0];
    assert_eq!(
        (request.rule, request.priority, &*request.state),
        (Site::ALL, 3, &b"x"[..])
    );
}

#[test]
fn links_that_fit_are_followed_once_each() {
    let outcome = parse(Site::books);
    let expected = [
        "http://a.test/base/books/8.html#top",
        "http://a.test/books/9.html",
        "https://a.test:8443/books/10",
    ];
    assert_eq!(outcome.urls(), expected);
    assert_eq!(&*outcome.requests[2].state, b"y");
    assert_eq!(parse(Site::none), Outcome::default());
    assert_eq!(
        parse(Site::one).urls(),
        ["http://a.test/base/books/8.html#top"]
    );
}

#[test]
fn links_are_read_with_address_and_text() {
    let page = page();
    let links = page.links().read().unwrap();
    let texts: Vec<_> = links.iter().map(|link| link.text).collect();
    assert_eq!(texts, ["Seven", "All of them", "", "www", "port", "here"]);
    assert_eq!(links[1].url.as_str(), "http://a.test/base/books/8.html");
    assert_eq!(links[1].link.href(), "books/8.html#top");
    check(
        page.links().filter(|link| link.text == "www"),
        &["http://www.a.test/books/"],
    );
    check(
        page.links().matching("^https:").within_host(),
        &["https://a.test:8443/books/10"],
    );
    check(
        page.links().matching("8").matching("html$"),
        &["http://a.test/base/books/8.html"],
    );
    check(Page::from_html("http://a.test/", "").links(), &[]);
}

#[test]
fn a_pattern_that_is_none_is_a_mistake_of_the_plugin() {
    let error = Trial::new().parse(Site::wrong, &page()).unwrap_err();
    let RuleError::Fatal(why) = &error else {
        panic!("{error}");
    };
    assert!(
        why.starts_with("`(` is no regular expression for links: "),
        "{why}"
    );
}

#[test]
fn what_a_limit_cuts_off_is_logged() {
    let cut = page().with_captures_limit(6);
    let outcome = Trial::new().parse(Site::all, &cut).unwrap();
    assert_eq!(outcome.urls().len(), 2);
    let (_, line) = &outcome.logs[0];
    assert!(
        line.starts_with("what `page.links` reads of this page is cut"),
        "{line}"
    );
}

#[test]
fn of_two_links_to_one_address_the_one_that_fits_counts() {
    let html = "<a href=/7><img></a><a href='/7#top'>Seven</a><a href=/7>Seven</a>";
    let page = Page::from_html("http://a.test/", html);
    let named = page.links().filter(|link| !link.text.is_empty());
    let links = named.read().unwrap();
    let texts: Vec<&str> = links.iter().map(|link| link.text).collect();
    assert_eq!(texts, ["Seven"]);
}
