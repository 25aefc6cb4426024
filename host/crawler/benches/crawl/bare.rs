//! The obvious loop: fetch with reqwest, read with scraper, follow unseen links.

use std::collections::{HashSet, VecDeque};
use std::io::{BufWriter, Write as _};
use std::time::Duration;

use scraper::{ElementRef, Html, Selector};
use tokio::task::JoinSet;
use url::Url;

use super::{Harvest, belongs};

/// Content of one page.
struct Page {
    n_bytes: u64,
    links: Vec<Url>,
    item: String,
}

struct Selectors {
    title: Selector,
    heading: Selector,
    link: Selector,
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the loop without the crawler's parts"
)]
pub(crate) async fn crawl(start: &Url, concurrency: u32) -> Harvest {
    let client = reqwest::Client::new();
    let mut seen = HashSet::from([start.clone()]);
    let mut waiting = VecDeque::from([start.clone()]);
    let mut running = JoinSet::new();
    let mut items = BufWriter::new(tempfile::tempfile().expect("a file can be made"));
    let mut harvest = Harvest {
        n_pages: 0,
        n_bytes: 0,
        opening: Duration::ZERO,
    };
    loop {
        while running.len() < concurrency as usize
            && let Some(url) = waiting.pop_front()
        {
            running.spawn(page(client.clone(), url, start.clone()));
        }
        let Some(page) = running.join_next().await else {
            break;
        };
        harvest.n_pages += 1;
        let Some(page) = page.expect("no page panics") else {
            continue;
        };
        harvest.n_bytes += page.n_bytes;
        writeln!(items, "{}", page.item).expect("the file can be written");
        for link in page.links {
            if seen.insert(link.clone()) {
                waiting.push_back(link);
            }
        }
    }
    let items = items.into_inner().expect("the file can be written");
    items.sync_all().expect("the file can be synced");
    harvest
}

/// Fetches a page; `None` if it does not exist.
async fn page(client: reqwest::Client, url: Url, start: Url) -> Option<Page> {
    thread_local! {
        static SELECTORS: Selectors = Selectors::new();
    }
    let answer = client.get(url.clone()).send().await.expect("it is served");
    if !answer.status().is_success() {
        return None;
    }
    let text = answer.text().await.expect("it is sent to its end");
    Some(SELECTORS.with(|selectors| selectors.page(&text, &url, &start)))
}

impl Selectors {
    fn new() -> Self {
        let parse = |css| Selector::parse(css).expect("a fixed selector parses");
        Self {
            title: parse("title"),
            heading: parse("h1, h2, h3, h4, h5, h6"),
            link: parse("a[href]"),
        }
    }

    fn page(&self, html: &str, url: &Url, start: &Url) -> Page {
        let dom = Html::parse_document(html);
        let mut seen = HashSet::new();
        let links: Vec<Url> = dom
            .select(&self.link)
            .filter_map(|a| url.join(a.attr("href")?).ok())
            .map(|mut link| {
                link.set_fragment(None);
                link.set_query(None);
                link
            })
            .filter(|link| belongs(link, start) && seen.insert(link.clone()))
            .collect();
        let headings: Vec<_> = dom
            .select(&self.heading)
            .map(|heading| {
                let level = &heading.value().name()[1..];
                serde_json::json!({ "level": level, "text": text(heading) })
            })
            .collect();
        let title = dom.select(&self.title).next().map(text);
        let item = serde_json::json!({
            "url": url, "title": title, "headings": headings, "links": links.len(),
        });
        Page {
            n_bytes: html.len() as u64,
            links,
            item: item.to_string(),
        }
    }
}

fn text(element: ElementRef<'_>) -> String {
    let text: String = element.text().collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
