//! Broken links: requests whose failures come to a rule, with the page that has the link.
//!
//! By default no rule sees a failure: the crawler tries it again or gives it up. A request that accepts any status
//! brings each answer to its rule, and [`Page::referrer`](crate::Page::referrer) tells the first page that has the
//! link. The answer of a busy server is one of them, so the rule asks again before it calls a link broken:
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
//!             429 | 502..=504 if page.attempt() < 3 => Err(RuleError::blocked("the server is busy")),
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
//! Redirects are followed. To see them too, add `.accept_status(301)` and the like. Some links never come to a rule. A
//! host that gives no answer, an address that robots.txt forbids and a redirect without end are dead letters, which
//! `crawler frontier list NAME --state dead` shows. A link that is out of scope or too long is not asked for. The
//! plugin `plugins/broken_links` checks the links to other hosts too, without following theirs.
//!
//! Setting `--unchanged` has to stay at `parse`. With `skip` a page that is unchanged leads nowhere, and a link that
//! was once found broken is asked for in all later runs.
