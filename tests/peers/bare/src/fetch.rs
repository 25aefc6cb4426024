//! The loop: fetch, read, follow links that were not seen before.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::sync::Arc;

use ahash::AHashSet;
use reqwest::Client;
use tokio::task::JoinSet;
use url::Url;

use crate::{Reading, Scope, Task};

/// Values that all pages of a crawl share.
struct Shared<F> {
    client: Client,
    scope: Scope,
    read: F,
}

/// Crawls to the end.
///
/// A page is read in the task that fetched it, and not on a thread for blocking work: the threads of the runtime are
/// as many as there are processors, and more of them would only take turns.
///
/// # Panics
///
/// Panics if a page cannot be fetched or an item cannot be written: what was measured would be another crawl.
pub async fn crawl<F>(task: &Task, read: F)
where
    F: Fn(&[u8], &Url, &Scope) -> Reading + Send + Sync + 'static,
{
    let shared = Arc::new(Shared {
        // Connections are kept and used again; there are no more of them than pages in flight.
        client: Client::builder()
            .no_proxy()
            .http1_only()
            .pool_max_idle_per_host(task.concurrency)
            .build()
            .expect("the client has no odd settings"),
        scope: Scope::new(&task.start, &task.below),
        read,
    });
    let mut seen = AHashSet::from([task.start.path().to_owned()]);
    let mut waiting = vec![task.start.clone()];
    let mut running = JoinSet::new();
    let mut items = BufWriter::new(File::create(&task.output).expect("OUTPUT can be made"));
    loop {
        while running.len() < task.concurrency
            && let Some(url) = waiting.pop()
        {
            running.spawn(page(shared.clone(), url));
        }
        let Some(page) = running.join_next().await else {
            break;
        };
        let Some((item, paths)) = page.expect("no page panics") else {
            continue;
        };
        item.write(&mut items);
        for path in paths {
            if !seen.contains(&path) {
                let mut url = task.start.clone();
                url.set_path(&path);
                url.set_query(None);
                waiting.push(url);
                seen.insert(path);
            }
        }
    }
    items.flush().expect("OUTPUT can be written");
}

/// Fetches a page; `None` if there is none.
async fn page<F>(shared: Arc<Shared<F>>, url: Url) -> Option<Reading>
where
    F: Fn(&[u8], &Url, &Scope) -> Reading,
{
    let answer = shared.client.get(url.clone()).send().await;
    let answer = answer.unwrap_or_else(|error| panic!("{url} cannot be fetched: {error:?}"));
    if !answer.status().is_success() {
        return None;
    }
    let body = answer.bytes().await;
    let body = body.unwrap_or_else(|error| panic!("{url} does not come whole: {error:?}"));
    Some((shared.read)(&body, &url, &shared.scope))
}
