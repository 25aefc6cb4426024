//! Recipes for tasks that most crawls share, each compiled and tested. `// …` stands for code that is specific to
//! a site. The lines that try a rule, from `use crawler_plugin_sdk::testing::Trial` and a page on, belong in a
//! test of the plugin.
//!
//! - [Pagination](#pagination)
//! - [Lists that lead to details](#lists-that-lead-to-details)
//! - [All links of a site](#all-links-of-a-site)
//! - [JSON APIs](#json-apis)
//! - [Sitemaps and feeds](sitemaps)
//! - [Searches and forms](#searches-and-forms)
//! - [A login](#a-login)
//! - [Files](#files)
//! - [Several hosts](#several-hosts)
//! - [Broken links](broken_links)
//! - [A site that refuses with status 200](#a-site-that-refuses-with-status-200)
//! - [Data in scripts](items#data-in-scripts)
//! - [Dates and prices](items#dates-and-prices)
//! - [Items checked and enriched](items#items-checked-and-enriched)
//!
//! # Pagination
//!
//! A link to the next page is followed without being read by the rule:
//!
//! ```
//! use crawler_plugin_sdk::prelude::*;
//! use crawler_plugin_sdk::testing::Trial;
//!
//! #[derive(Extract)]
//! struct List {
//!     #[rows("li.quote")]
//!     quotes: Vec<Quote>,
//!     #[css("a[rel=next]", attr = "href")]
//!     next: Links,
//! }
//!
//! #[derive(Extract, Item, serde::Serialize)]
//! struct Quote {
//!     #[css("q")]
//!     text: String,
//! }
//!
//! pub struct Quotes;
//!
//! #[plugin(items(Quote), reads(List))]
//! impl Quotes {
//!     fn root(crawl: &mut Crawl) -> Result {
//!         crawl.follow("http://quotes.test/", Self::LIST)
//!     }
//!
//!     #[rule]
//!     fn list(page: &Page, crawl: &mut Crawl) -> Result {
//!         let list: List = page.extract()?;
//!         crawl.emit_all(&list.quotes)?;
//!         crawl.follow_links(&list.next, Self::LIST)
//!     }
//! }
//!
//! let html = "<ul><li class=quote><q>To be</q><li class=quote><q>or not</q></ul><a rel=next href='?p=2'>more</a>";
//! let page = Page::from_html("http://quotes.test/", html);
//! let outcome = Trial::new().parse(Quotes::list, &page)?;
//! assert_eq!(outcome.items.len(), 2);
//! assert_eq!(outcome.urls(), ["http://quotes.test/?p=2"]);
//! # Ok::<(), RuleError>(())
//! ```
//!
//! A page may tell only the number of pages. Then the rule of the first page requests all others: they are fetched
//! side by side, as far as the delay of the host allows.
//!
//! ```
//! # use crawler_plugin_sdk::prelude::*;
//! # use crawler_plugin_sdk::testing::Trial;
//! #[derive(Extract)]
//! struct Count {
//!     #[css("p.pages", regex = r"of (\d+)")]
//!     n_pages: u32,
//! }
//! # pub struct Quotes;
//! # #[plugin(reads(Count))]
//! # impl Quotes {
//! #     fn root(_: &mut Crawl) -> Result { Ok(()) }
//!
//! #[rule]
//! fn first(page: &Page, crawl: &mut Crawl) -> Result {
//!     let Count { n_pages } = page.extract()?;
//!     crawl.follow_all((2..=n_pages).map(|n| format!("?p={n}")), Self::LIST)
//! }
//! #     #[rule]
//! #     fn list(_: &Page, _: &mut Crawl) -> Result { Ok(()) }
//! # }
//! # let page = Page::from_html("http://quotes.test/", "<p class=pages>Page 1 of 3");
//! # let outcome = Trial::new().parse(Quotes::first, &page)?;
//! # assert_eq!(outcome.urls(), ["http://quotes.test/?p=2", "http://quotes.test/?p=3"]);
//! # Ok::<(), RuleError>(())
//! ```
//!
//! # Lists that lead to details
//!
//! Data that only the list has travels with the request, and becomes a field of the detail:
//!
//! ```
//! use crawler_plugin_sdk::prelude::*;
//! use crawler_plugin_sdk::testing::Trial;
//!
//! #[derive(Extract)]
//! struct Shelf {
//!     #[css("h1")]
//!     genre: String,
//!     #[css("article a", attr = "href")]
//!     books: Links,
//! }
//!
//! #[derive(Extract, Item, serde::Serialize)]
//! struct Book {
//!     #[page(url)]
//!     url: String,
//!     #[page(state)]
//!     genre: String,
//!     #[css("h1")]
//!     title: String,
//! }
//!
//! pub struct Shop;
//!
//! #[plugin(items(Book), reads(Shelf, Book))]
//! impl Shop {
//!     fn root(crawl: &mut Crawl) -> Result {
//!         crawl.follow("http://shop.test/poetry/", Self::SHELF)
//!     }
//!
//!     #[rule]
//!     fn shelf(page: &Page, crawl: &mut Crawl) -> Result {
//!         let shelf: Shelf = page.extract()?;
//!         crawl.follow_links(&shelf.books, Follow::by(Self::BOOK).state(shelf.genre))
//!     }
//!
//!     #[rule]
//!     fn book(page: &Page, crawl: &mut Crawl) -> Result {
//!         crawl.emit(&page.extract::<Book>()?)
//!     }
//! }
//!
//! let shelf = Page::from_html("http://shop.test/poetry/", "<h1>Poetry</h1><article><a href=7.html>Lays</a></article>");
//! let outcome = Trial::new().parse(Shop::shelf, &shelf)?;
//! assert_eq!(outcome.requests[0].state, b"Poetry");
//! let book = Page::from_html("http://shop.test/poetry/7.html", "<h1>Lays</h1>").with_state("Poetry");
//! let outcome = Trial::new().parse(Shop::book, &book)?;
//! assert_eq!(outcome.items[0].value["genre"], "Poetry");
//! # Ok::<(), RuleError>(())
//! ```
//!
//! # All links of a site
//!
//! [`Page::links`](crate::Page::links) needs no selector. Links that are told apart by their addresses go to
//! different rules. The crawler judges each address once, outside of the sandbox, so that a page with ten thousand links
//! costs less than a twentieth of the fuel of a call:
//!
//! ```
//! # use crawler_plugin_sdk::prelude::*;
//! # use crawler_plugin_sdk::testing::Trial;
//! # pub struct Site;
//! # #[plugin]
//! # impl Site {
//! #     fn root(_: &mut Crawl) -> Result { Ok(()) }
//! #[rule]
//! fn any(page: &Page, crawl: &mut Crawl) -> Result {
//!     const DETAIL: &str = r"/product/\d+$";
//!     let links = || page.links().within_host();
//!     crawl.follow_links(&links().matching(DETAIL), Self::PRODUCT)?;
//!     crawl.follow_links(&links().not_matching(DETAIL), Self::ANY)
//! }
//! #     #[rule]
//! #     fn product(_: &Page, _: &mut Crawl) -> Result { Ok(()) }
//! # }
//! # let html = "<a href=/product/7>7</a> <a href=/new>new</a> <a href=http://ads.test/>ad</a>";
//! # let outcome = Trial::new().parse(Site::any, &Page::from_html("http://shop.test/", html))?;
//! # assert_eq!(outcome.urls(), ["http://shop.test/product/7", "http://shop.test/new"]);
//! # assert_eq!(outcome.requests[1].rule, Site::ANY);
//! # Ok::<(), RuleError>(())
//! ```
//!
//! # JSON APIs
//!
//! [`Page::json`](crate::Page::json) reads the answer; a cursor goes into the next request:
//!
//! ```
//! use crawler_plugin_sdk::prelude::*;
//! use crawler_plugin_sdk::testing::Trial;
//!
//! #[derive(serde::Deserialize)]
//! struct Answer {
//!     results: Vec<Offer>,
//!     cursor: Option<String>,
//! }
//!
//! #[derive(Item, serde::Deserialize, serde::Serialize)]
//! struct Offer {
//!     id: u64,
//!     price: f64,
//! }
//!
//! pub struct Offers;
//!
//! #[plugin(items(Offer))]
//! impl Offers {
//!     fn root(crawl: &mut Crawl) -> Result {
//!         crawl.request(Self::after(None))
//!     }
//!
//!     #[rule]
//!     fn offers(page: &Page, crawl: &mut Crawl) -> Result {
//!         let answer: Answer = page.json()?;
//!         crawl.emit_all(&answer.results)?;
//!         answer.cursor.map_or(Ok(()), |cursor| crawl.request(Self::after(Some(&cursor))))
//!     }
//! }
//!
//! impl Offers {
//!     fn after(cursor: Option<&str>) -> Request {
//!         let body = crawler_plugin_sdk::serde_json::json!({"per_page": 100, "after": cursor}).to_string();
//!         Request::post("http://api.test/offers", body, Self::OFFERS)
//!             .header("content-type", "application/json")
//!     }
//! }
//!
//! let json = r#"{"results": [{"id": 7, "price": 1.5}], "cursor": "x8"}"#;
//! let page = Page::from_html("http://api.test/offers", json);
//! let outcome = Trial::new().parse(Offers::offers, &page)?;
//! assert_eq!(outcome.items[0].value["id"], 7);
//! let body = outcome.requests[0].body.as_deref().unwrap_or_default();
//! assert_eq!(body, br#"{"after":"x8","per_page":100}"#);
//! # Ok::<(), RuleError>(())
//! ```
//!
//! The body is part of the identity of a request: requests with different bodies are all fetched, and none is
//! fetched twice.
//!
//! # Searches and forms
//!
//! A form whose fields are known is a request:
//!
//! ```
//! # use crawler_plugin_sdk::{Rule, prelude::*};
//! fn search(words: &str, crawl: &mut Crawl, results: Rule) -> Result {
//!     crawl.request(Request::form("/search", [("q", words), ("sort", "price")], results))
//! }
//! ```
//!
//! A form with hidden fields is read from its page, with feature `dom`, see [`Form`](crate::Form):
//!
//! ```
//! # use crawler_plugin_sdk::{Rule, prelude::*};
//! # #[cfg(feature = "dom")]
//! fn search(words: &str, page: &Page, crawl: &mut Crawl, results: Rule) -> Result {
//!     let form = page.dom().form_at("form#search")?;
//!     crawl.request(form.set("q", words).request(results))
//! }
//! ```
//!
//! # A login
//!
//! A crawl keeps its cookies, also over restarts, so that one page can log in and lead to the rest. A resource
//! that lacks a declared param without a default is refused when it is added. Everyone who may read the resource
//! can read its params. A site that takes basic or bearer authorization gets it from setting `credentials`, which
//! names a secret of the workers.
//!
//! ```
//! # use crawler_plugin_sdk::prelude::*;
//! # use crawler_plugin_sdk::testing::Trial;
//! pub struct Account;
//!
//! #[plugin(params(user(about = "Account name"), password(about = "Password of the account")))]
//! impl Account {
//!     fn root(crawl: &mut Crawl) -> Result {
//!         let config = crawl.config();
//!         let fields = [("user", config.require("user")?), ("password", config.require("password")?)];
//!         crawl.request(Request::form("http://shop.test/login", fields, Self::WELCOME))
//!     }
//!
//!     #[rule]
//!     fn welcome(page: &Page, crawl: &mut Crawl) -> Result {
//!         if page.url().ends_with("/login") {
//!             return Err(RuleError::fatal("user or password is wrong"));
//!         }
//!         crawl.follow("/orders", Self::ORDERS)
//!     }
//!
//!     #[rule]
//!     fn orders(_: &Page, _: &mut Crawl) -> Result {
//!         Ok(())
//!     }
//! }
//! # let trial = Trial::new().param("user", "ann").param("password", "p & q");
//! # let body = trial.root(Account::root)?.requests[0].body.clone();
//! # assert_eq!(body.as_deref(), Some(&b"user=ann&password=p+%26+q"[..]));
//! # let page = Page::from_html("http://shop.test/account", "");
//! # assert_eq!(trial.parse(Account::welcome, &page)?.urls(), ["http://shop.test/orders"]);
//! # let page = Page::from_html("http://shop.test/login", "");
//! # assert!(trial.parse(Account::welcome, &page).is_err());
//! # Ok::<(), RuleError>(())
//! ```
//!
//! # Files
//!
//! The crawler keeps a body as a file if its request asks for that, and the item names the file by its digest. What
//! the rule does not read of it does not enter the sandbox. The plugin `plugins/files` keeps the images and PDFs of a
//! site:
//!
//! ```
//! # use crawler_plugin_sdk::prelude::*;
//! # use crawler_plugin_sdk::testing::Trial;
//! #[derive(Extract)]
//! struct Album {
//!     #[css("img", attr = "src")]
//!     pictures: Links,
//! }
//!
//! #[derive(Item, serde::Serialize)]
//! struct Picture<'p> {
//!     url: &'p str,
//!     file: &'p str,
//!     kind: Option<&'p str>,
//!     bytes: u64,
//! }
//! # pub struct Pictures;
//! # #[plugin(items(Picture<'_>), reads(Album))]
//! # impl Pictures {
//! #     fn root(_: &mut Crawl) -> Result { Ok(()) }
//!
//! #[rule]
//! fn album(page: &Page, crawl: &mut Crawl) -> Result {
//!     let album: Album = page.extract()?;
//!     crawl.follow_links(&album.pictures, Follow::by(Self::PICTURE).keep_body())
//! }
//!
//! #[rule]
//! fn picture(page: &Page, crawl: &mut Crawl) -> Result {
//!     let kept = page.kept().require("a file")?;
//!     crawl.emit(&Picture { url: page.url(), file: kept.digest, kind: kept.media_type, bytes: kept.size })
//! }
//! # }
//! # let page = Page::from_html("http://files.test/a.png", [0x89, b'P']).with_header("content-type", "image/png");
//! # let outcome = Trial::new().parse(Pictures::picture, &page.with_kept("6d8f"))?;
//! # assert_eq!(outcome.items[0].value["file"], "6d8f");
//! # assert_eq!(outcome.items[0].value["kind"], "image/png");
//! # Ok::<(), RuleError>(())
//! ```
//!
//! Without [`keep_body`](crate::Request::keep_body), [`Page::body`](crate::Page::body) has the bytes up to limit
//! `body`, and nothing is stored.
//!
//! # Several hosts
//!
//! A crawl keeps to the hosts of its root requests. Setting `scope` of a resource adds hosts: `crawler resource
//! add … --scope img.shop.test,api.shop.test`. A plugin that needs more hosts declares them, and `crawler plugin
//! check` shows them; the declaration grants nothing:
//!
//! ```
//! # use crawler_plugin_sdk::{Plugin, prelude::*};
//! # pub struct Shop;
//! #[plugin(hosts("img.shop.test", "api.shop.test"))]
//! impl Shop {
//! #     fn root(_: &mut Crawl) -> Result { Ok(()) }
//! #     #[rule]
//! #     fn image(_: &Page, _: &mut Crawl) -> Result { Ok(()) }
//!     // …
//! }
//! # assert_eq!(Shop::DESCRIPTION.hosts.len(), 2);
//! ```
//!
//! # A site that refuses with status 200
//!
//! The crawler recognizes status 429 and 503 itself. A refusal that only the text of a page shows has to be
//! reported by the rule:
//!
//! ```
//! # use crawler_plugin_sdk::prelude::*;
//! # use crawler_plugin_sdk::testing::Trial;
//! # pub struct Shop;
//! # #[plugin]
//! # impl Shop {
//! #     fn root(_: &mut Crawl) -> Result { Ok(()) }
//! #[rule]
//! fn list(page: &Page, crawl: &mut Crawl) -> Result {
//!     if page.text().contains("unusual traffic") {
//!         // Tried again later, by another agent or proxy where the crawl has several.
//!         return Err(RuleError::blocked("the site asks who we are"));
//!     }
//!     // …
//! #     let _ = crawl;
//!     Ok(())
//! }
//! # }
//! # let page = Page::from_html("http://shop.test/", "We have seen unusual traffic");
//! # let error = Trial::new().parse(Shop::list, &page).unwrap_err();
//! # assert!(matches!(error, RuleError::Blocked(_)));
//! ```

pub mod broken_links;
pub mod items;
pub mod sitemaps;
