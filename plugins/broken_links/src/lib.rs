//! The broken links of a site: each with its address, its status and the page that has it.
//!
//! Links to other hosts are checked where setting `scope` admits these hosts, and no link of theirs is followed. A
//! host that gives no answer at all makes no item: `crawler frontier list NAME --state dead` shows its links.

use crawler_plugin_sdk::prelude::*;

#[derive(Item, serde::Serialize)]
struct BrokenLink<'p> {
    /// Address of the link.
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
        if !matches!(page.status(), 200..=299) {
            return crawl.emit(&BrokenLink {
                url: page.requested_url(),
                status: page.status(),
                referrer: page.referrer(),
            });
        }
        match is_own(page, crawl)? {
            true => crawl.follow_links(&page.links(), Follow::by(Self::CHECK).accept_any_status()),
            false => Ok(()),
        }
    }
}

/// True if a page is of the host that the crawl starts at.
fn is_own(page: &Page, crawl: &Crawl) -> Result<bool> {
    let start: Url = crawl.config().parse("start")?.require("param start")?;
    Ok(page.join("")?.host() == start.host())
}
