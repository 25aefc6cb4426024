//! Tests of findings about a host before its first page.

use super::*;
use crate::Prepared;

/// Returns a request of a crawl, which must not wait for anything.
fn crawling(url: Url) -> FetchRequest {
    FetchRequest {
        robots: Robots::Obey,
        delay: Some(Duration::from_secs(60)),
        requester: Requester {
            crawl: Requester::new_crawl(),
            max_wait: Some(Duration::ZERO),
        },
        ..get(url)
    }
}

async fn with_robots() -> Web {
    Web::new(|request| {
        Reply::Close(match request.starts_with("GET /robots.txt ") {
            true => answer("200 OK", &[], b"user-agent: *\ndisallow: /x"),
            false => answer("200 OK", &[], b"page"),
        })
    })
    .await
}

#[tokio::test]
async fn a_host_is_prepared_once_and_its_page_waits_for_its_turn() {
    let (web, fetcher) = (with_robots().await, fetcher());
    let request = crawling(web.url("/"));
    assert!(!fetcher.is_prepared(&request));
    let minute_on = StoppedClock.unix_millis() + 60_000;
    let prepared = fetcher.prepare(request.clone()).await.unwrap();
    assert_eq!(
        prepared,
        Prepared {
            host_ready_at: minute_on,
            delay_by: DelaySource::Setting,
            has_answered: true
        }
    );
    assert!(fetcher.is_prepared(&request));
    // The host is not asked for what is known.
    let again = fetcher.prepare(request.clone()).await.unwrap();
    assert_eq!(again, Prepared::default());
    let failure = fetcher.fetch(request).await.unwrap_err();
    assert!(
        failure.error.is_held() && !failure.is_of_host,
        "{failure:?}"
    );
    assert!(failure.host_ready_at > StoppedClock.unix_millis() + 59_000);
    assert_eq!(web.heard().len(), 1);
}

#[tokio::test]
async fn what_is_forbidden_is_told_by_the_fetch() {
    let (web, fetcher) = (with_robots().await, fetcher());
    let request = crawling(web.url("/x"));
    assert!(fetcher.prepare(request.clone()).await.is_ok());
    let failure = fetcher.fetch(request).await.unwrap_err();
    assert_eq!(failure.error.reason(), "robots");
}

#[tokio::test]
async fn a_host_that_cannot_be_reached_is_told_from_a_page_that_fails() {
    let crawling = |url| FetchRequest {
        delay: Some(Duration::ZERO),
        ..crawling(url)
    };
    let fetcher = fetcher();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = listener.local_addr().unwrap();
    drop(listener);
    let refused: Url = format!("http://{closed}/").parse().unwrap();
    let failure = fetcher
        .prepare(crawling(refused.clone()))
        .await
        .unwrap_err();
    assert_eq!(
        (failure.error.reason(), failure.is_of_host),
        ("connection", true)
    );
    // Without a robots.txt the page itself fails.
    let failure = fetcher.fetch(get(refused)).await.unwrap_err();
    assert_eq!(
        (failure.error.reason(), failure.is_of_host),
        ("connection", true)
    );
    let broken = Web::new(|_| Reply::Reset).await;
    let failure = fetcher.fetch(get(broken.url("/"))).await.unwrap_err();
    assert_eq!(
        (failure.error.reason(), failure.is_of_host),
        ("connection", false)
    );
    let busy = Web::saying(answer("503 Busy", &[], b"")).await;
    let failure = fetcher.prepare(crawling(busy.url("/"))).await.unwrap_err();
    assert_eq!(
        (failure.error.reason(), failure.is_of_host),
        ("robots-unavailable", true)
    );
    // An error that no further attempt can mend concerns the page alone.
    let node = fetcher_with(&[], &[], FetchSettings::default());
    let failure = node.prepare(crawling(busy.url("/"))).await.unwrap_err();
    assert!(
        !failure.is_of_host && !failure.error.is_transient(),
        "{failure:?}"
    );
}
