//! Write crawl rules that run as sandboxed WebAssembly components.
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
//! #[derive(serde::Serialize)]
//! struct Book { url: String, title: String }
//!
//! /// The books of a shop.
//! pub struct Books;
//!
//! #[plugin(items(Book), name = "books", version = "1.0.0")]
//! impl Books {
//!     fn root(crawl: &mut Crawl) -> Result {
//!         let start = crawl.config().require("start")?;
//!         crawl.follow(start, Self::LIST)
//!     }
//!
//!     #[rule]
//!     fn list(page: &Page, crawl: &mut Crawl) -> Result {
//!         let dom = page.dom();
//!         crawl.follow_all(dom.attrs_at("article.book a", "href"), Self::DETAIL)?;
//!         crawl.follow_all(dom.attrs_at("li.next a", "href"), Self::LIST)
//!     }
//!
//!     #[rule]
//!     fn detail(page: &Page, crawl: &mut Crawl) -> Result {
//!         let title = page.dom().text_at("h1")?;
//!         crawl.emit(&Book { url: page.url().to_owned(), title })
//!     }
//! }
//! ```
//!
//! - Each `#[rule] fn detail` brings a constant [`Self::DETAIL`](Rule): what a request names as
//!   its parser. A misspelt rule does not compile.
//! - Name and version are those of the cargo package unless the attribute says otherwise.
//! - [`Crawl::follow`] takes addresses as they stand in the page; the crawler resolves relative
//!   ones, drops those it has seen, and keeps to the hosts that the crawl is allowed.
//! - A rule keeps nothing between pages: every call gets a fresh sandbox. What the next page has
//!   to know travels with its request, see [`Request::state`].
//! - What a call hands over counts only if it returns `Ok`. `?` works on any error; which errors
//!   are tried again is told by [`RuleError`].
//!
//! # Set up, build, test, push
//!
//! ```toml
//! [lib]
//! crate-type = ["cdylib", "rlib"] # the component, and a library that tests can link
//!
//! [dependencies]
//! crawler-plugin-sdk = { path = "../plugin-sdk", features = ["dom"] }
//! serde = { version = "1", features = ["derive"] }
//! ```
//!
//! ```text
//! cargo test                                         natively, on saved pages
//! cargo build --release --target wasm32-wasip2       makes target/wasm32-wasip2/release/books.wasm
//! crawler run books.wasm --param start=http://…      once, in this terminal
//! crawler plugin push books.wasm                     to a cluster
//! ```
//!
//! Tests call the rules as they are, see [`testing`]:
//!
//! ```
//! # use crawler_plugin_sdk::prelude::*;
//! # pub struct Books;
//! # #[plugin(name = "books")]
//! # impl Books {
//! #     fn root(_: &mut Crawl) -> Result { Ok(()) }
//! #     #[rule]
//! #     fn list(page: &Page, crawl: &mut Crawl) -> Result {
//! #         crawl.follow_all(page.dom().attrs_at("li.next a", "href"), Self::LIST)
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
//! # Features
//!
//! `dom` gives `Page::dom` and the trait `Select`: HTML with CSS selectors, by [`scraper`]. It
//! adds about 300 kB to the component and is bounded by the call's limits like all else.
//!
//! [`scraper`]: https://docs.rs/scraper

#![deny(missing_docs)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod config;
mod crawl;
#[cfg(feature = "dom")]
mod dom;
mod error;
#[cfg(feature = "dom")]
mod form;
mod log;
mod page;
mod plugin;
mod request;

#[cfg(target_family = "wasm")]
#[doc(hidden)]
pub mod guest;
#[cfg(not(target_family = "wasm"))]
pub mod testing;

pub use config::Config;
pub use crawl::Crawl;
pub use crawler_plugin_sdk_macros::plugin;
#[cfg(feature = "dom")]
pub use dom::Select;
pub use error::{Require, Result, RuleError};
#[cfg(feature = "dom")]
pub use form::Form;
pub use log::Level;
#[doc(hidden)]
pub use log::write as __log;
pub use page::Page;
pub use plugin::{Description, Item, Plugin, Rule};
pub use request::Request;
#[cfg(feature = "dom")]
pub use scraper;
pub use serde_json;
pub use url::Url;

/// What nearly every plugin uses.
pub mod prelude {
    #[cfg(feature = "dom")]
    pub use crate::Select;
    pub use crate::{Crawl, Page, Request, Require, Result, RuleError, plugin};
}
