//! Tests of findings about a host before its first page.

use async_trait::async_trait;

use super::*;
use crate::Prepared;
use crate::robots::RobotsStore;
use crawler_model::robots::KeptRobots;

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

/// A store of one robots.txt.
#[derive(Debug, Default)]
struct OneRobots(Mutex<Option<KeptRobots>>);

#[async_trait]
impl RobotsStore for OneRobots {
    async fn kept(&self, _url: &Url) -> Option<KeptRobots> {
        self.0.lock().unwrap().clone()
    }

    fn keep(&self, _url: &Url, robots: KeptRobots) {
        *self.0.lock().unwrap() = Some(robots);
    }
}

#[tokio::test]
async fn a_site_is_not_asked_again_for_the_robots_that_were_kept() {
    let web = with_robots().await;
    let store = Arc::new(OneRobots::default());
    let request = |path| FetchRequest {
        robots_store: Some(store.clone()),
        delay: Some(Duration::ZERO),
        ..crawling(web.url(path))
    };
    let prepare = async || fetcher().prepare(request("/")).await.unwrap();
    assert!(prepare().await.has_answered);
    let kept = store.0.lock().unwrap().clone().unwrap();
    let origin = web.url("/").origin().ascii_serialization();
    assert_eq!(
        (&kept.origin, kept.at),
        (&origin, StoppedClock.unix_millis())
    );
    // Another process needs nothing of the site.
    assert_eq!(prepare().await, Prepared::default());
    let failure = fetcher().fetch(request("/x")).await.unwrap_err();
    assert_eq!(failure.error.reason(), "robots");
    assert_eq!(web.heard().len(), 1);
    let unusable = [
        KeptRobots {
            origin: "https://other.test".to_owned(),
            ..kept.clone()
        },
        KeptRobots {
            agent: "another".to_owned(),
            ..kept.clone()
        },
        // The clock was set back since.
        KeptRobots {
            at: kept.at + 1,
            ..kept
        },
    ];
    for (n_asked, kept) in (2..).zip(unusable) {
        *store.0.lock().unwrap() = Some(kept);
        assert!(prepare().await.has_answered);
        assert_eq!(web.heard().len(), n_asked);
    }
}

#[tokio::test]
async fn a_robots_file_is_kept_if_it_is_not_too_long() {
    for (length, is_kept) in [
        (KeptRobots::MAX_FILE, true),
        (KeptRobots::MAX_FILE + 1, false),
    ] {
        let web = Web::saying(answer("200 OK", &[], &b"#".repeat(length))).await;
        let store = Arc::new(OneRobots::default());
        let request = FetchRequest {
            robots_store: Some(store.clone()),
            ..crawling(web.url("/"))
        };
        fetcher().prepare(request).await.unwrap();
        assert_eq!(store.0.lock().unwrap().is_some(), is_kept, "{length}");
    }
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
