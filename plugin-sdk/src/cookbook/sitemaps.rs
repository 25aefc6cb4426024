//! Recipes for sitemaps and feeds.
//!
//! A sitemap is a page whose addresses are texts:
//!
//! ```
//! use crawler_plugin_sdk::prelude::*;
//! use crawler_plugin_sdk::testing::Trial;
//!
//! #[derive(Extract)]
//! struct Sitemap {
//!     #[css("sitemap > loc")]
//!     maps: Vec<String>,
//!     #[css("url > loc")]
//!     pages: Vec<String>,
//! }
//!
//! pub struct Site;
//!
//! #[plugin(reads(Sitemap))]
//! impl Site {
//!     fn root(crawl: &mut Crawl) -> Result {
//!         crawl.follow("http://shop.test/sitemap.xml", Self::SITEMAP)
//!     }
//!
//!     #[rule]
//!     fn sitemap(page: &Page, crawl: &mut Crawl) -> Result {
//!         let sitemap: Sitemap = page.extract()?;
//!         crawl.follow_all(sitemap.maps, Self::SITEMAP)?;
//!         let books = sitemap.pages.into_iter().filter(|url| url.contains("/books/"));
//!         crawl.follow_all(books, Self::BOOK)
//!     }
//!
//!     #[rule]
//!     fn book(page: &Page, crawl: &mut Crawl) -> Result {
//!         // …
//! #         let _ = (page, crawl);
//!         Ok(())
//!     }
//! }
//!
//! let xml = "<?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>\
//!     <url><loc>http://shop.test/books/7?a=1&amp;b=2</loc></url><url><loc>http://shop.test/help</loc></url></urlset>";
//! let page = Page::from_html("http://shop.test/sitemap.xml", xml);
//! let outcome = Trial::new().parse(Site::sitemap, &page)?;
//! assert_eq!(outcome.urls(), ["http://shop.test/books/7?a=1&b=2"]);
//! # Ok::<(), RuleError>(())
//! ```
//!
//! A sitemap may have 50 000 addresses in 50 MB. By default a call may hand over 2 000 requests. A call that hands
//! over more fails, and none of its requests is followed: raise the limit with `crawler resource add … --limit
//! requests=20000`, and with `--limit body=50MiB` if the body is longer than 8 MiB. A limit above ten times the
//! default has to be allowed by whoever runs the crawler: `crawler up --limit-ceiling requests=50000`. A sitemap
//! that is a gzip file itself (`sitemap.xml.gz`) arrives as it is; a crate like `flate2` unpacks it in the rule.
//!
//! Atom is read the same way (`entry link`, attribute `href`). Markup is read as HTML, in which `link` has no
//! content. For RSS use `item > guid`, or a parser of XML such as the crate `quick-xml` on
//! [`Page::text`](crate::Page::text).
