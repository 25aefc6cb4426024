//! SDK for crawl rules that run as sandboxed WebAssembly components.
//!
//! A plugin is one `impl` block: `root` gives the first requests, and every `#[rule]` turns one
//! page into items and further requests. The crawler fetches, schedules, retries and stores;
//! a rule only reads the page it is given.
//!
//! # A complete plugin
//!
//! ```
//! use crawler_plugin_sdk::prelude::*;
//!
//! /// What a list page is read for.
//! #[derive(Extract)]
//! struct List {
//!     #[css("article.book h3 a", attr = "href")]
//!     books: Links,
//!     #[css("li.next a", attr = "href")]
//!     next: Links,
//! }
//!
//! /// What a detail page is read for.
//! #[derive(Extract)]
//! struct Detail {
//!     #[css("h1")]
//!     title: String,
//!     #[css("p.price", with = pence)]
//!     pence: u32,
//!     #[css("ul.tags li")]
//!     tags: Vec<String>,
//! }
//!
//! fn pence(price: &str) -> Result<u32> {
//!     let digits = price.strip_prefix('£').require("a price in pounds")?;
//!     Ok(digits.replace('.', "").parse()?)
//! }
//!
//! #[derive(Item, serde::Serialize)]
//! struct Book { url: String, title: String, pence: u32, tags: Vec<String> }
//!
//! /// The books of a shop.
//! pub struct Books;
//!
//! #[plugin(
//!     items(Book),
//!     reads(List, Detail),
//!     params(start(about = "Address of the first list page")),
//!     name = "books",
//!     version = "1.0.0"
//! )]
//! impl Books {
//!     fn root(crawl: &mut Crawl) -> Result {
//!         let start = crawl.config().require("start")?;
//!         crawl.follow(start, Self::LIST)
//!     }
//!
//!     #[rule]
//!     fn list(page: &Page, crawl: &mut Crawl) -> Result {
//!         let list: List = page.extract()?;
//!         crawl.follow_links(&list.books, Self::DETAIL)?;
//!         crawl.follow_links(&list.next, Self::LIST)
//!     }
//!
//!     #[rule]
//!     fn detail(page: &Page, crawl: &mut Crawl) -> Result {
//!         let Detail { title, pence, tags } = page.extract()?;
//!         crawl.emit(&Book { url: page.url().to_owned(), title, pence, tags })
//!     }
//! }
//! ```
//!
//! - Each `#[rule] fn detail` adds a constant [`Self::DETAIL`](Rule), by which a request names its rule. A
//!   misspelt rule does not compile.
//! - Name and version are those of the cargo package unless the attribute says otherwise.
//! - The params that users give are declared, see [`Param`]: the crawler refuses a resource that lacks `start`, or
//!   that has a misspelt param. A plugin that declares none takes any.
//! - The fields that are read of a page are declared, see [`Extract`]: the crawler reads them in one pass, outside
//!   of the sandbox, and the rule gets typed values. [`Links`] do not even enter the sandbox.
//! - [`Crawl::follow`] takes addresses as they stand in the page. The crawler resolves relative ones, drops those
//!   it has seen, and keeps to the hosts that the crawl is allowed. It resolves them against the URL of the page;
//!   only [`Links`] are resolved against its `<base href>` too.
//! - A rule keeps nothing between pages: every call gets a fresh sandbox. State for the next page travels with its
//!   request, see [`Request::state`].
//! - The results of a call count only if it returns `Ok`. `?` works on any error; [`RuleError`] tells which errors
//!   are tried again.
//!
//! # Set up, build, test, push
//!
//! `crawler plugin new shop` makes all of this, with rules, saved pages and a test:
//!
//! ```toml
//! [lib]
//! crate-type = ["cdylib", "rlib"] # the component, and a library that tests can link
//!
//! [dependencies]
//! crawler-plugin-sdk = "0.1"
//! serde = { version = "1", features = ["derive"] }
//!
//! [patch.crates-io]
//! crawler-plugin-sdk = { path = "sdk" }
//! ```
//!
//! The folder `sdk` is a copy of this crate and of those that it needs, as no registry has them yet. With it, the
//! folder of a plugin builds on any machine that has Rust and the target, by the crawler and by cargo alone.
//! `crawler plugin sdk` replaces it by that of the crawler that is installed.
//!
//! ```text
//! cargo test                                         natively, on saved pages
//! crawler plugin test                                the same in the sandbox, and what each call used
//! crawler shell http://…                             tries selectors on a page
//! crawler plugin fetch http://… --rule detail        saves another page
//! crawler plugin test --mangle                       what becomes of it on pages with mistakes
//! crawler plugin check                               what a master says of it
//! crawler plugin diff shop@0.1.0 .                   how it differs from another version
//! crawler run . --param start=http://…               once, in this terminal
//! crawler plugin push .                              to a cluster
//! ```
//!
//! [`testing::check_saved`] makes saved calls again. Tests may also call the rules as they are, see [`testing`]:
//!
//! ```
//! # use crawler_plugin_sdk::prelude::*;
//! # pub struct Books;
//! # #[derive(Extract)]
//! # struct List { #[css("li.next a", attr = "href")] next: Links }
//! # #[plugin(name = "books", reads(List))]
//! # impl Books {
//! #     fn root(_: &mut Crawl) -> Result { Ok(()) }
//! #     #[rule]
//! #     fn list(page: &Page, crawl: &mut Crawl) -> Result {
//! #         crawl.follow_links(&page.extract::<List>()?.next, Self::LIST)
//! #     }
//! # }
//! use crawler_plugin_sdk::testing::Trial;
//!
//! let html = r#"<li class="next"><a href="page-2.html">next</a></li>"#;
//! let page = Page::from_html("http://shop.test/catalogue/page-1.html", html);
//! let outcome = Trial::new().parse(Books::list, &page).unwrap();
//! assert_eq!(outcome.urls(), ["http://shop.test/catalogue/page-2.html"]);
//! ```
//!
//! # For how long a component runs
//!
//! The boundary between a plugin and the crawler, `rules.wit`, is frozen as `crawler:rules@0.1.0`: a component
//! that was built for it, in any language, runs on every later crawler as it is. A component that was built with
//! the SDK of a later crawler may need functions that an earlier crawler lacks. The earlier crawler refuses it
//! when it is pushed, and names both versions.
//!
//! # Further
//!
//! [`tutorial`] goes from nothing to a crawl on a cluster. [`cookbook`] has recipes: pagination, forms, JSON
//! APIs, logins, files. [`from_scrapy`] has the words of Scrapy beside those of this crate. [`languages`] is for
//! rules in JavaScript and Python.
//!
//! # Features
//!
//! Feature `dom` adds `Page::dom` and the trait `Select`: the page as a tree in the sandbox, by [`scraper`]. They
//! serve tasks that [`Extract`] cannot declare: selectors that look ahead, forms, steps from element to element.
//! The feature adds about 300 kB to the component, and the call's limits hold for it as for everything else.
//!
//! [`scraper`]: https://docs.rs/scraper

#![deny(missing_docs)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod accept_status;
mod config;
#[cfg(doc)]
pub mod cookbook;
mod crawl;
#[cfg(feature = "dom")]
mod dom;
mod error;
mod extract;
mod follow;
#[cfg(feature = "dom")]
mod form;
#[cfg(doc)]
pub mod from_scrapy;
mod item;
mod kept;
mod log;
mod page;
mod param;
mod plugin;
mod request;
#[cfg(doc)]
#[doc = include_str!("languages.md")]
pub mod languages {}
#[cfg(doc)]
#[doc = include_str!("tutorial.md")]
pub mod tutorial {}

#[cfg(target_family = "wasm")]
#[doc(hidden)]
pub mod guest;
#[cfg(not(target_family = "wasm"))]
pub mod testing;

pub use chrono;
pub use config::Config;
pub use crawl::Crawl;
pub use crawler_plugin_sdk_macros::{Extract, Item, plugin};
#[cfg(feature = "dom")]
pub use dom::Select;
pub use error::{Require, Result, RuleError};
#[doc(hidden)]
pub use extract::derived as __extract;
pub use extract::{
    Amount, Capture, Currency, Date, DateTime, Declared, Extract, Link, Links, Money, PageLink,
    PageLinks, Value,
};
pub use follow::{Follow, FollowLinks};
#[cfg(feature = "dom")]
pub use form::Form;
pub use item::Item;
#[doc(hidden)]
pub use item::derived as __item;
pub use kept::Kept;
pub use log::Level;
#[doc(hidden)]
pub use log::write as __log;
pub use page::Page;
pub use param::Param;
pub use plugin::{Description, ItemKind, Plan, Plugin, PluginItem, Rule};
pub use request::Request;
pub use schemars;
#[cfg(feature = "dom")]
pub use scraper;
pub use serde_json;
pub use url::Url;

/// Names that nearly every plugin uses.
pub mod prelude {
    #[cfg(feature = "dom")]
    pub use crate::Select;
    pub use crate::{
        Crawl, Date, DateTime, Extract, Follow, Item, Link, Links, Money, Page, Request, Require,
        Result, RuleError, Url, plugin,
    };
}
