//! Values that `#[derive(Extract)]` reads of a page, and its errors if the page is not as declared.

#![allow(clippy::unwrap_used, reason = "a test")]

use crawler_plugin_sdk::prelude::*;
use crawler_plugin_sdk::testing::Trial;
use crawler_plugin_sdk::{Declared, Follow, Level, Plugin, Url};

/// A field of every kind.
#[derive(Debug, Extract)]
struct Kinds {
    #[css("h1")]
    title: String,
    #[css("p.code", raw)]
    code: String,
    #[css("div.text", inner)]
    html: String,
    #[css("a.self", attr = "href")]
    url: Url,
    #[css("a.self", attr = "href")]
    link: Link,
    #[css("a.none", attr = "href")]
    none: Option<Link>,
    #[css("b.n")]
    numbers: Vec<i64>,
    #[css("b.n", attr = "data-weight", default)]
    weight: f32,
    #[css("b.n", attr = "data-size", default)]
    size: u8,
    #[css("b.flag", attr = "data-on")]
    flag: Option<bool>,
    #[css("b.flag")]
    sign: char,
    #[css("b.flag", present)]
    has_flag: bool,
    #[css("b.flags", present)]
    has_flags: bool,
    #[css("p.price", with = pence)]
    price: u32,
    #[css("p.price", with = pence)]
    prices: Vec<u32>,
    #[css("p.sale", with = pence)]
    sale: Option<u32>,
    #[css("p.sale", with = pence, default)]
    sale_or_none: u32,
    #[css("i.keyword")]
    r#type: Option<String>,
}

fn pence(text: &str) -> Result<u32> {
    let digits = text.strip_prefix('£').require("a price in pounds")?;
    Ok(digits.replace('.', "").parse()?)
}

/// Fields that are chosen by their texts, and fields that are not in the page.
#[derive(Debug, Extract)]
struct Chosen {
    #[page(url)]
    url: Url,
    #[page(state)]
    number: u32,
    #[css("li", regex = "^Author: (.+)")]
    author: String,
    #[css("li", regex = "^Size: (.+)")]
    size: Option<u32>,
    #[css("li", regex = "[0-9]+", default)]
    first: u32,
    #[css("li", regex = "(a)|b|c")]
    all: Vec<String>,
    #[css("li", regex = "£([0-9.]+)", with = pence_of)]
    price: u32,
    #[css("a", attr = "href", regex = r"/(\d+)\.html")]
    ids: Vec<u8>,
    #[rows("ul")]
    lists: Vec<ChosenList>,
}

#[derive(Debug, Extract)]
struct ChosenList {
    #[css("li", regex = "^Author: (.+)")]
    author: Option<String>,
    #[css("", tag)]
    list: String,
    #[css("> *", tag, regex = "^l(.)$")]
    kinds: Vec<char>,
    #[page(url)]
    url: String,
}

fn pence_of(amount: &str) -> Result<u32> {
    Ok(amount.replace('.', "").parse()?)
}

/// Nested rows, and all ways to hold them.
#[derive(Extract)]
struct Shop {
    #[css("a.next", attr = "href")]
    next: Links,
    #[rows("section")]
    shelves: Vec<Shelf>,
    #[rows("footer")]
    footer: Option<Footer>,
    #[rows("header")]
    header: Footer,
    #[css("h2")]
    names: Vec<String>,
}

#[derive(Extract)]
struct Shelf {
    #[css("", attr = "id")]
    id: String,
    #[css("h2")]
    name: Option<String>,
    #[rows("article")]
    books: Vec<Book>,
    #[css("a.all", attr = "href")]
    all: Links,
}

#[derive(Extract)]
struct Book {
    #[css("> a", attr = "href")]
    url: Link,
    #[css("> a")]
    title: String,
    #[css("li")]
    tags: Vec<String>,
    #[css("b")]
    stars: Option<u8>,
}

#[derive(Extract)]
struct Footer {
    #[css("")]
    text: String,
}

/// Rows with a field that has to be there.
#[derive(Debug, Extract)]
struct Strict {
    #[rows("article")]
    _rows: Vec<StrictRow>,
    #[rows("main")]
    _main: StrictRow,
}

#[derive(Debug, Extract)]
struct StrictRow {
    #[css("b")]
    _count: u32,
    #[css("a", attr = "href")]
    _href: String,
    #[css("", attr = "id")]
    _id: Option<u8>,
    #[css("i", with = pence)]
    _price: Vec<u32>,
}

struct Reader;

#[plugin(
    name = "reader",
    version = "1.0.0",
    reads(Kinds, Shop = "whole-shop", Strict, Chosen)
)]
impl Reader {
    fn root(_: &mut Crawl) -> Result {
        Ok(())
    }

    #[rule]
    fn shop(page: &Page, crawl: &mut Crawl) -> Result {
        let shop: Shop = page.extract()?;
        let follow = Follow::by(Self::SHOP).priority(3).state("next");
        crawl.follow_links(&shop.next, follow.reload().hint("a", "b"))?;
        for shelf in &shop.shelves {
            crawl.follow_links(&shelf.all, Self::SHOP)?;
            let books = shelf.books.iter().filter(|book| book.stars.is_some());
            books
                .into_iter()
                .try_for_each(|book| crawl.follow_link(&book.url, Self::SHOP))?;
        }
        Ok(())
    }

    #[rule]
    fn twice(page: &Page, _: &mut Crawl) -> Result {
        page.extract::<Shop>()?;
        page.extract::<Shop>()?;
        Ok(())
    }
}

const KINDS: &str = r#"
<h1> The
  <b>Wav</b>es &amp; all</h1>
<p class=code>a
  b</p><div class=text>x &amp; <b>y</b></div>
<a class=self href="../7.html?a=1&amp;b=2">7</a><a class=none>no href</a>
<b class=n data-weight=" 1.5 "> 7 </b><b class=n>-8</b><b class=n>&nbsp;9</b>
<b class=flag data-on=true>ä</b>
<p class=price>£12.34<p class=price>£5.00
"#;

const SHOP: &str = r#"
<base href="/base/">
<header>Books</header>
<section id=s1><h2>Novels</h2>
  <article><a href="1.html">One</a><ul><li>x<li>y</ul><b>4</b></article>
  <article><span><a href="no.html">not a child</a></span><a href="2.html">Two</a></article>
  <a class=all href="novels">all</a>
</section>
<section id=s2></section>
<section id=s3>
  <article><a href="http://[">Three</a><li>z<b>1</b></article>
  <a class=all href="rest">all</a><a class=all href="old">old</a>
</section>
<h2>Outside</h2>
<a class=next href="?page=2">next</a><a class=next>no href</a><a class=next href="//b.test/">other</a>
"#;

fn page(html: &str) -> Page {
    Page::from_html("http://a.test/x/y/page.html", html)
}

/// Returns the error of a page that lacks something.
fn strict_error(html: &str) -> String {
    page(html).extract::<Strict>().unwrap_err().to_string()
}

#[test]
fn each_kind_of_field_is_read_as_it_says() {
    let kinds: Kinds = page(KINDS).extract().unwrap();
    assert_eq!(kinds.title, "The Waves & all");
    assert_eq!(kinds.code, "a\n  b");
    assert_eq!(kinds.html, "x &amp; <b>y</b>");
    assert_eq!(kinds.url.as_str(), "http://a.test/x/7.html?a=1&b=2");
    assert_eq!(kinds.link.href(), "../7.html?a=1&b=2");
    assert_eq!(kinds.link.absolute().unwrap(), kinds.url);
    assert!(kinds.none.is_none());
    assert_eq!(kinds.numbers, [7, -8, 9]);
    assert_eq!((kinds.weight, kinds.size), (1.5, 0));
    assert_eq!((kinds.flag, kinds.sign), (Some(true), 'ä'));
    assert_eq!((kinds.has_flag, kinds.has_flags), (true, false));
    assert_eq!((kinds.price, kinds.prices), (1234, vec![1234, 500]));
    assert_eq!((kinds.sale, kinds.sale_or_none), (None, 0));
    assert_eq!(kinds.r#type, None);
    assert_eq!(format!("{:?}", kinds.link), r#"Link("../7.html?a=1&b=2")"#);
}

#[test]
fn texts_are_chosen_and_cut_by_patterns_and_the_page_tells_of_itself() {
    let html = "<ul><li>Year: 1931<li>Author: Woolf<li>Author: Joyce<li>c a b £12.34</ul><ul></ul>\
        <a href=/x/7.html>7</a><a href=/x/>x</a><a href=/8.html>8</a>";
    let chosen: Chosen = page(html).with_state("42").extract().unwrap();
    assert_eq!(
        (chosen.url.as_str(), chosen.number),
        ("http://a.test/x/y/page.html", 42)
    );
    assert_eq!((&*chosen.author, chosen.size), ("Woolf", None));
    assert_eq!((chosen.first, chosen.price), (1931, 1234));
    // The value is the group if it matched, or else the whole match.
    assert_eq!(chosen.all, ["a", "c", "c"]);
    assert_eq!(chosen.ids, [7, 8]);
    let authors: Vec<_> = chosen
        .lists
        .iter()
        .map(|list| list.author.as_deref())
        .collect();
    assert_eq!(authors, [Some("Woolf"), None]);
    assert_eq!(chosen.lists[1].url, chosen.url.as_str());
    assert_eq!(chosen.lists[0].list, "ul");
    assert_eq!(chosen.lists[0].kinds, ['i'; 4]);
    assert!(chosen.lists[1].kinds.is_empty());
}

#[test]
fn what_no_pattern_chooses_is_missing_and_what_one_cuts_is_quoted() {
    let error = |state: &str, html: &str| {
        let chosen = page(html).with_state(state).extract::<Chosen>();
        chosen.unwrap_err().to_string()
    };
    assert_eq!(
        error("1", "<li>Year: 1931"),
        "error: the page lacks an element `li` that matches `^Author: (.+)` for `Chosen.author`"
    );
    assert_eq!(
        error("1", "<li>Author: x<li>Size: large"),
        "error: \"large\" is no value for `Chosen.size`, read from an element `li` that matches `^Size: (.+)`: invalid digit found in string"
    );
    assert_eq!(
        error("one", ""),
        "error: \"one\" is no value for `Chosen.number`, read from the page's state: invalid digit found in string"
    );
}

#[test]
fn rows_nest_and_each_has_its_own_values() {
    let shop: Shop = page(SHOP).extract().unwrap();
    let ids: Vec<_> = shop.shelves.iter().map(|shelf| &*shelf.id).collect();
    assert_eq!(ids, ["s1", "s2", "s3"]);
    let names: Vec<_> = shop.shelves.iter().map(|s| s.name.as_deref()).collect();
    assert_eq!(names, [Some("Novels"), None, None]);
    let books = |n: usize| {
        let books = shop.shelves[n].books.iter();
        books
            .map(|book| {
                (
                    book.url.href(),
                    &*book.title,
                    book.tags.join(" "),
                    book.stars,
                )
            })
            .collect::<Vec<_>>()
    };
    let first = [
        ("1.html", "One", "x y".to_owned(), Some(4)),
        ("2.html", "Two", String::new(), None),
    ];
    assert_eq!(books(0), first);
    assert_eq!(books(1), []);
    assert_eq!(books(2)[0].1, "Three");
    assert!(shop.footer.is_none());
    assert_eq!(shop.header.text, "Books");
    assert_eq!(shop.names, ["Novels", "Outside"]);
}

#[test]
fn rows_that_lie_in_each_other_keep_their_values_apart() {
    let html = "<header></header><section id=a><article><a href=1>one</a><section id=b>\
        <article><a href=2>two</a></article></section><li>late</article></section>";
    let shop: Shop = page(html).extract().unwrap();
    let titles = |n: usize| {
        let books = shop.shelves[n].books.iter();
        books
            .map(|book| (&*book.title, book.tags.len()))
            .collect::<Vec<_>>()
    };
    assert_eq!(shop.shelves[0].id, "a");
    assert_eq!((titles(0), titles(1)), (vec![("one", 1)], vec![("two", 0)]));
}

#[test]
fn links_are_followed_relative_to_what_the_page_says() {
    let outcome = Trial::new().parse(Reader::shop, &page(SHOP)).unwrap();
    let urls = [
        "http://a.test/base/?page=2",
        "http://b.test/",
        "http://a.test/base/novels",
        "http://a.test/base/1.html",
        "http://a.test/base/rest",
        "http://a.test/base/old",
    ];
    assert_eq!(outcome.urls(), urls);
    assert_eq!(outcome.bad_urls, ["http://["]);
    let next = &outcome.requests[1];
    assert_eq!((next.method.as_str(), next.rule), ("GET", Reader::SHOP));
    assert_eq!(
        (next.priority, &*next.state, next.reload),
        (3, &b"next"[..], true)
    );
    assert_eq!(next.hints, [("a".to_owned(), "b".to_owned())]);
    let plain = &outcome.requests[2];
    assert_eq!(
        (plain.priority, plain.state.len(), plain.reload),
        (0, 0, false)
    );
}

#[test]
fn a_base_that_is_no_address_is_not_looked_at() {
    for base in ["", "<base href='http://['>"] {
        let html = format!("{base}{KINDS}");
        let kinds: Kinds = page(&html).extract().unwrap();
        assert_eq!(kinds.url.path(), "/x/7.html");
    }
}

#[test]
fn what_is_missing_is_told_with_row_selector_type_and_field() {
    let check = |html: &str, expected: &str| {
        assert_eq!(strict_error(html), format!("error: {expected}"));
    };
    check("", "the page lacks an element `main` for `Strict._main`");
    check(
        "<main></main>",
        "row 1 of `main` lacks an element `b` for `StrictRow._count`",
    );
    check(
        "<article><b>1</b><a href=x></a></article><article><b>1</b><a></a></article>",
        "row 2 of `article` lacks an attribute `href` of `a` for `StrictRow._href`",
    );
    let error = page("").extract::<Kinds>().unwrap_err();
    let expected = "the page lacks an element `h1` for `Kinds.title`";
    assert_eq!(error, RuleError::unexpected(expected));
}

#[test]
fn what_does_not_parse_is_told_with_the_text_and_the_reason() {
    let check = |html: &str, expected: &str| {
        assert_eq!(strict_error(html), format!("error: {expected}"));
    };
    check(
        "<main><b>four</b></main>",
        r#""four" is no value for `StrictRow._count`, read from an element `b`: invalid digit found in string"#,
    );
    check(
        "<main id=x><b>4</b><a href=x></a></main>",
        r#""x" is no value for `StrictRow._id`, read from its attribute `id`: invalid digit found in string"#,
    );
    check(
        "<main><b>4</b><a href=x></a><i>£1</i><i>$2</i></main>",
        r#""$2" is no value for `StrictRow._price`, read from an element `i`: the page lacks a price in pounds"#,
    );
    let long = strict_error(&format!("<main><b>{}</b></main>", "ä".repeat(100)));
    let expected = format!("error: \"{}\"… is no value", "ä".repeat(40));
    assert!(long.starts_with(&expected), "{long}");
}

#[test]
fn what_a_limit_cuts_off_is_logged_and_told_and_named_as_the_cause() {
    let cut = page(SHOP).with_captures_limit(7);
    let error = Trial::new().parse(Reader::shop, &cut).unwrap_err();
    let error = error.to_string();
    assert!(
        error.ends_with("is cut by limit captures or capture-bytes"),
        "{error}"
    );
    assert!(cut.truncated_by::<Shop>().unwrap());
    assert!(!page(SHOP).truncated_by::<Shop>().unwrap());

    let enough = page(SHOP).with_captures_limit(4);
    let outcome = Trial::new().parse(Reader::twice, &enough).unwrap();
    let warning =
        "what `whole-shop` reads of this page is cut: limit captures or capture-bytes is used up";
    assert_eq!(outcome.logs, [(Level::Warn, warning.to_owned())]);
}

#[test]
fn plans_have_the_names_that_the_attribute_gives_them() {
    let names = Reader::DESCRIPTION.plans.iter().map(|plan| plan.name);
    let names: Vec<_> = names.collect();
    assert_eq!(names, ["kinds", "whole-shop", "strict", "chosen"]);
    assert_eq!(<Shop as Declared>::NAME, "whole-shop");
}
