//! Spider, the crawler of the crate `spider`, with the item of each page read by scraper.
//!
//! Spider finds links by a parser of its own; items are for its user to read. Settings, and why:
//!
//! - as many pages in flight as the others, no delay, no robots.txt, no depth, no second attempts: nothing makes
//!   it wait;
//! - a whitelist keeps it below the folder, as others do;
//! - items are read in the callback that sees each page in the task that fetched it. A subscription would send a copy
//!   of each page through a channel that drops pages if its reader is slow.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use bare::{Scope, Task, Tree};
use spider::page::Page;
use spider::website::Website;
use url::Url;

#[tokio::main]
async fn main() {
    let task = Task::from_arguments();
    let items = File::create(&task.output).expect("OUTPUT can be made");
    let items = Arc::new(Mutex::new(BufWriter::new(items)));
    let mut website = Website::new(task.start.as_str());
    website
        .with_whitelist_url(Some(vec![whitelist(&task).into()]))
        .with_concurrency_limit(Some(task.concurrency))
        .with_delay(0)
        .with_respect_robots_txt(false)
        .with_depth(0)
        .with_retry(0)
        .with_user_agent(Some("peers"))
        .with_no_control_thread(true);
    let (tree, scope) = (Tree::default(), Scope::new(&task.start, &task.below));
    let written = items.clone();
    let read = move |page: &Page| {
        if page.status_code.is_success() {
            let url: Url = page.get_url().parse().expect("it was fetched");
            let (item, _) = tree.read(page.get_html_bytes_u8(), &url, &scope);
            let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
            item.write(&mut *written);
        }
        true
    };
    website.with_on_should_crawl_callback_closure(Some(read));
    website.crawl().await;
    let mut items = items.lock().unwrap_or_else(PoisonError::into_inner);
    items.flush().expect("OUTPUT can be written");
}

/// Returns an expression for the pages that belong to the crawl.
fn whitelist(task: &Task) -> String {
    let mut site = task.start.clone();
    site.set_path(&task.below);
    site.set_query(None);
    let literal = site.as_str().replace('.', r"\.");
    format!(r"^{literal}([^?#]*(\.html|/))?$")
}
