//! The threads of a forum, list page by list page.

use crawler_plugin_sdk::prelude::*;

#[derive(Extract)]
struct List {
    /// True if the forum refuses: some do so with a form and status 200.
    #[css("form#captcha", present)]
    is_refusal: bool,
    #[rows("table.threads tr.thread")]
    threads: Vec<Thread>,
    #[css("a[rel=next]", attr = "href")]
    next: Links,
}

#[derive(Extract, Item, serde::Serialize)]
struct Thread {
    #[css("td.title a", attr = "href")]
    url: Url,
    #[css("td.title a")]
    title: String,
    #[css("td.author")]
    author: String,
    #[css("td.replies")]
    replies: u32,
}

/// The plugin.
pub struct Forum;

#[plugin(
    items(Thread),
    reads(List),
    params(
        start(about = "Address of the first list page"),
        pages(about = "Number of list pages to read", default = "10")
    )
)]
impl Forum {
    /// Lists come before anything else on the host: they change while they are read.
    pub fn root(crawl: &mut Crawl) -> Result {
        crawl.request(Request::get(crawl.config().require("start")?, Self::LIST).priority(10))
    }

    /// The first list page has depth 0, each further one is a link away from the one before.
    #[rule]
    pub fn list(page: &Page, crawl: &mut Crawl) -> Result {
        let list: List = page.extract()?;
        crawl.emit_all(&list.threads)?;
        let n_pages: u32 = crawl.config().parse("pages")?.require("param pages")?;
        match page.depth() + 1 < n_pages {
            _ if list.is_refusal => Err(RuleError::blocked("the forum asks for a captcha")),
            true => crawl.follow_links(&list.next, Follow::by(Self::LIST).priority(10)),
            false => Ok(()),
        }
    }
}
