//! The broken links of a site: each with its address, its status and the page that has it.
//!
//! The site is the host that answers the first request, which may redirect to another name: `http://site.test/` to
//! `https://www.site.test/`. Setting `scope` has to admit that name too. Links to other hosts are checked where
//! `scope` admits these hosts, and none of their links is followed.
//!
//! Some links come to no rule and make no item. A host that gives no answer, an address that robots.txt forbids and
//! a redirect without end are dead letters: `crawler frontier list NAME --state dead` shows them. A link that is out
//! of scope or too long is never asked for.
//!
//! A server may be busy (408, 429, 502 to 504), so such a page is broken only if a third attempt ends like this.
//! With `--max-attempts` below 3 it ends as a dead letter instead. Setting `--unchanged` has to stay at `parse`: with
//! `skip` a page that is unchanged leads nowhere, and each link that was once found broken is asked for in all later
//! runs, although no page may have it any more.

use crawler_plugin_sdk::{prelude::*, warn};

/// Number of attempts at a page whose server is busy.
const ATTEMPTS: u32 = 3;

#[derive(Item, serde::Serialize)]
struct BrokenLink<'p> {
    /// Address of the link. If the link redirects to another scheme, host or port, the address that it leads to.
    url: &'p str,
    /// Status of the answer.
    status: u16,
    /// Address of the first page that has the link. `None` for the page that the crawl starts with.
    referrer: Option<&'p str>,
}

/// The plugin.
pub struct BrokenLinks;

#[plugin(
    items(BrokenLink<'_>),
    params(start(about = "Address of the first page of the site"))
)]
impl BrokenLinks {
    /// The first page may be broken too.
    pub fn root(crawl: &mut Crawl) -> Result {
        let start = crawl.config().require("start")?;
        crawl.request(Request::get(start, Self::CHECK).accept_any_status())
    }

    /// A page of the site leads to further links; a failure is what the crawl looks for.
    #[rule]
    pub fn check(page: &Page, crawl: &mut Crawl) -> Result {
        let may_wait = page.attempt() < ATTEMPTS;
        match page.status() {
            200..=299 => follow(page, crawl),
            429 if may_wait => Err(RuleError::blocked("status 429")),
            status @ (408 | 502..=504) if may_wait => {
                Err(RuleError::retry(format!("status {status}")))
            }
            status => crawl.emit(&BrokenLink {
                url: page.requested_url(),
                status,
                referrer: page.referrer(),
            }),
        }
    }
}

/// Follows the links of a page if it is of the site. Each request carries the host of the site; the first one, which
/// finds it out, carries nothing.
fn follow(page: &Page, crawl: &mut Crawl) -> Result {
    let url = page.join("")?;
    let host = url.host_str().unwrap_or_default();
    let is_first = page.state().is_empty();
    if !is_first && page.state() != host.as_bytes() {
        return Ok(());
    }
    let links = page.links();
    if is_first && links.read()?.is_empty() {
        warn!("the first page, {}, has no links", page.url());
    }
    let follow = Follow::by(BrokenLinks::CHECK)
        .accept_any_status()
        .state(host);
    crawl.follow_links(&links, follow)
}
