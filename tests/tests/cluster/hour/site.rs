//! A site whose pages are held back at a limit, so that the numbers of its crawl stand still while the crawl goes on.

use crawler_tests::web::{Asked, Site, Web};
use serde_json::json;
use tokio::sync::watch;

/// Number of leaves that each page of the chain leads to.
const N_LEAVES: usize = 3;
/// One page of the chain in so many leads to a page that makes its rule fail.
const BAD_EVERY: usize = 20;

/// A chain of pages for the guest `puppet`: `/0` leads to its leaves, perhaps to a bad page, and to `/1`.
pub(super) struct HeldSite {
    pub(super) web: Web,
    n_pages: usize,
    /// Number of pages of the chain that are answered. The others wait.
    limit: watch::Sender<usize>,
}

impl HeldSite {
    /// Opens a chain of `n_pages`, of which the first `limit` are answered.
    pub(super) fn open(n_pages: usize, limit: usize) -> Self {
        let (limit, limits) = watch::channel(limit);
        let page = move |asked: Asked| {
            let mut limits = limits.clone();
            async move {
                let name = &asked.path[1..];
                match name.split_once('-') {
                    Some((_, "bad")) => json!([{"url": "/x", "rule": "unknown"}]).to_string(),
                    Some(_) => "[]".to_owned(),
                    None => {
                        let n: usize = name.parse().expect("pages of the chain are numbers");
                        // An error means that the site is gone: nobody reads the answer then.
                        drop(limits.wait_for(|limit| n < *limit).await);
                        links(n, n_pages)
                    }
                }
            }
        };
        Self {
            web: Site::new().handle("/*", page).open(),
            n_pages,
            limit,
        }
    }

    /// Lets all pages through.
    pub(super) fn let_all_through(&self) {
        self.let_through(self.n_pages);
    }

    /// Lets the first `limit` pages of the chain through.
    pub(super) fn let_through(&self, limit: usize) {
        self.limit.send_replace(limit);
    }

    /// Number of pages that a crawl has parsed when it stands still at the limit; each has one item.
    pub(super) fn n_parsed(&self) -> u64 {
        (*self.limit.borrow() * (1 + N_LEAVES)) as u64
    }

    /// Number of pages that a crawl has given up when it stands still at the limit.
    pub(super) fn n_dead(&self) -> u64 {
        self.limit.borrow().div_ceil(BAD_EVERY) as u64
    }

    /// Number of pages in flight when a crawl stands still at the limit.
    pub(super) fn n_in_flight(&self) -> u64 {
        u64::from(*self.limit.borrow() < self.n_pages)
    }
}

/// Returns the page of the chain. The page after it has the lowest priority, so that a crawl that waits for it has
/// nothing else to do.
fn links(n: usize, n_pages: usize) -> String {
    let first = |url: String, rule: &str| json!({"url": url, "rule": rule, "priority": 1});
    let mut links: Vec<_> = (0..N_LEAVES)
        .map(|leaf| first(format!("/{n}-{leaf}"), "leaf"))
        .collect();
    if n.is_multiple_of(BAD_EVERY) {
        links.push(first(format!("/{n}-bad"), "branch"));
    }
    if n + 1 < n_pages {
        links.push(json!({"url": format!("/{}", n + 1)}));
    }
    json!(links).to_string()
}
