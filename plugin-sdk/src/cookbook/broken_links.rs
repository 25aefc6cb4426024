//! Broken links: requests whose failures come to a rule, with the page that has the link.
//!
//! Without being asked, no rule sees a failure: the crawler tries it again or gives it up. A request that accepts any
//! status brings each answer to its rule, and [`Page::referrer`](crate::Page::referrer) tells the first page that has
//! the link:
//!
//! ```
//! use crawler_plugin_sdk::prelude::*;
//! use crawler_plugin_sdk::testing::Trial;
//!
//! #[derive(Item, serde::Serialize)]
//! struct BrokenLink<'p> {
//!     url: &'p str,
//!     status: u16,
//!     referrer: Option<&'p str>,
//! }
//!
//! pub struct BrokenLinks;
//!
//! #[plugin(items(BrokenLink<'_>))]
//! impl BrokenLinks {
//!     fn root(crawl: &mut Crawl) -> Result {
//!         crawl.request(Request::get("http://site.test/", Self::CHECK).accept_any_status())
//!     }
//!
//!     #[rule]
//!     fn check(page: &Page, crawl: &mut Crawl) -> Result {
//!         match page.status() {
//!             200..=299 => crawl.follow_links(&page.links(), Follow::by(Self::CHECK).accept_any_status()),
//!             status => crawl.emit(&BrokenLink {
//!                 url: page.requested_url(),
//!                 status,
//!                 referrer: page.referrer(),
//!             }),
//!         }
//!     }
//! }
//!
//! let page = Page::from_html("http://site.test/lost", "").with_status(404).with_referrer("http://site.test/");
//! let outcome = Trial::new().parse(BrokenLinks::check, &page)?;
//! assert_eq!(outcome.items[0].value["referrer"], "http://site.test/");
//! # Ok::<(), RuleError>(())
//! ```
//!
//! Redirects are followed. To see them too, add `.accept_status(301)` and the like. A link whose host gives no answer
//! comes to no rule: `crawler frontier list NAME --state dead` shows it. The plugin `plugins/broken_links` checks the
//! links to other hosts too, without following theirs.
