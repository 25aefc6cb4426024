//! The threads of a forum, list page by list page.
//!
//! Params: `start`, the address of the first list page; `pages`, how many list pages to read
//! (10 unless said otherwise).

use crawler_plugin_sdk::prelude::*;
use serde::Serialize;

/// One line of a list page.
#[derive(Serialize)]
struct Thread {
    url: String,
    title: String,
    author: String,
    replies: u32,
}

/// The plugin.
pub struct Forum;

#[plugin(items(Thread))]
impl Forum {
    /// Lists come before anything else on the host: they change while they are read.
    pub fn root(crawl: &mut Crawl) -> Result {
        let start = crawl.config().require("start")?;
        crawl.request(Request::get(start, Self::LIST).priority(10))
    }

    /// The first list page has depth 0, each further one is a link away from the one before.
    #[rule]
    pub fn list(page: &Page, crawl: &mut Crawl) -> Result {
        let dom = page.dom();
        // Some forums refuse with a form and status 200.
        if dom.first("form#captcha").is_some() {
            return Err(RuleError::blocked("the forum asks for a captcha"));
        }
        for row in dom.all("table.threads tr.thread") {
            crawl.emit(&Thread {
                url: page.join(row.attr_at("td.title a", "href")?)?.into(),
                title: row.text_at("td.title a")?,
                author: row.text_at("td.author")?,
                replies: row.text_at("td.replies")?.parse()?,
            })?;
        }
        let n_pages: u32 = crawl.config().parse("pages")?.unwrap_or(10);
        match dom.attr_at("a[rel=next]", "href") {
            Ok(next) if page.depth() + 1 < n_pages => {
                crawl.request(Request::get(next, Self::LIST).priority(10))
            }
            _ => Ok(()),
        }
    }
}
