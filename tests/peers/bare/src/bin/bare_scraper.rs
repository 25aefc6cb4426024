//! A bare loop of reqwest and scraper.

use bare::{Task, Tree, crawl};

#[tokio::main]
async fn main() {
    let tree = Tree::default();
    let read = move |body: &[u8], url: &_, scope: &_| tree.read(body, url, scope);
    crawl(&Task::from_arguments(), read).await;
}
