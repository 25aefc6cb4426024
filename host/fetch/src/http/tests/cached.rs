//! Tests of the cache that answers in the place of sites.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::cache::CacheSettings;
use crate::cookies::CookieJar;
use tempfile::TempDir;

const DAY: u64 = 24 * 60 * 60 * 1_000;

#[derive(Default)]
struct SetClock(AtomicU64);

impl Clock for SetClock {
    fn unix_nanos(&self) -> u64 {
        self.0.load(Ordering::Relaxed) * 1_000_000
    }
}

/// A folder of answers that several fetchers use one after the other, like runs of a user.
struct Runs {
    folder: TempDir,
    clock: Arc<SetClock>,
    max_age: Option<Duration>,
}

impl Runs {
    fn new() -> Self {
        let clock = Arc::new(SetClock(AtomicU64::new(DAY)));
        Self {
            folder: tempfile::tempdir().unwrap(),
            clock,
            max_age: None,
        }
    }

    fn cache(&self) -> CacheSettings {
        CacheSettings {
            folder: self.folder.path().to_owned(),
            max_age: self.max_age,
            max_bytes: 1 << 20,
        }
    }

    fn fetcher_with(&self, networks: &[&str], settings: FetchSettings) -> HttpFetcher {
        let networks = networks.iter().map(|n| n.parse().unwrap()).collect();
        let address_policy = Arc::new(AddressPolicy::new(networks));
        let throttle = Arc::new(Throttle::new(ThrottleSettings::default()));
        let clock: Arc<dyn Clock> = self.clock.clone();
        let fetcher = HttpFetcher::new(settings, address_policy, throttle, clock).unwrap();
        fetcher.caching(&self.cache()).unwrap()
    }

    fn fetcher(&self) -> HttpFetcher {
        self.fetcher_with(&["127.0.0.0/8"], FetchSettings::default())
    }

    /// Fetches a page as the first one of a run.
    async fn page(&self, request: FetchRequest) -> Page {
        page_of(&self.fetcher(), request).await
    }

    fn later(&self, millis: u64) {
        self.clock.0.fetch_add(millis, Ordering::Relaxed);
    }

    fn files(&self) -> Vec<PathBuf> {
        let files = std::fs::read_dir(self.folder.path()).unwrap();
        files.map(|file| file.unwrap().path()).collect()
    }
}

async fn page_of(fetcher: &HttpFetcher, request: FetchRequest) -> Page {
    match fetcher.fetch(request).await.unwrap().answer {
        Answer::Page(page) => *page,
        Answer::Redirect { to } => panic!("led to {to}"),
    }
}

fn path(request: &str) -> &str {
    request.split(' ').nth(1).unwrap_or_default()
}

/// A body that gzip has made of "hello".
const GZIP: &[u8] = &[
    31, 139, 8, 0, 0, 0, 0, 0, 0, 3, 203, 72, 205, 201, 201, 7, 0, 134, 166, 16, 54, 5, 0, 0, 0,
];

#[tokio::test]
async fn a_later_run_gets_the_same_answers_and_asks_nothing() {
    let web = Web::new(|request| {
        Reply::Close(match path(request) {
            "/1" => answer("302 Found", &["location: /2"], b"gone on"),
            _ => answer(
                "404 Not Found",
                &["content-encoding: gzip", "x: 1", "y: 2", "x: 3"],
                GZIP,
            ),
        })
    })
    .await;
    let runs = Runs::new();
    let first = runs.page(get(web.url("/1"))).await;
    runs.later(5_000);
    let fetcher = runs.fetcher();
    let second = page_of(&fetcher, get(web.url("/1#f"))).await;
    assert_eq!(web.heard().len(), 2);
    assert_eq!(fetcher.n_from_cache(), Some(2));
    for page in [&first, &second] {
        assert_eq!((page.status, &page.body[..]), (404, &b"hello"[..]));
        assert_eq!(page.redirects, [web.url("/1")]);
        assert_eq!(page.record.n_received, GZIP.len() as u64);
        assert_eq!((page.fetched_at, page.truncated), (DAY, false));
        let headers: Vec<_> = page.headers.iter().collect();
        let expected = [("connection", "close"), ("x", "1"), ("x", "3"), ("y", "2")];
        let mut sorted = headers.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, expected);
        assert_eq!(headers, first.headers.iter().collect::<Vec<_>>());
        assert_eq!(page.record.version, Some("1.1"));
    }
    let stored = (first.record.stored_at, second.record.stored_at);
    assert_eq!(stored, (None, Some(DAY)));
}

#[tokio::test]
async fn an_answer_from_the_cache_takes_no_turn_of_its_host() {
    let web = Web::saying(answer("200 OK", &[], b"page")).await;
    let runs = Runs::new();
    let fetcher = runs.fetcher();
    let request = FetchRequest {
        delay: Some(Duration::from_secs(600)),
        requester: Requester {
            crawl: Requester::new_crawl(),
            max_wait: Some(Duration::ZERO),
        },
        ..get(web.url("/"))
    };
    let first = fetcher.fetch(request.clone()).await.unwrap();
    assert_eq!(first.host_ready_at, DAY + 600_000);
    for _ in 0..2 {
        let again = fetcher.fetch(request.clone()).await.unwrap();
        assert_eq!(again.host_ready_at, 0);
    }
    assert_eq!(web.heard().len(), 1);
}

#[tokio::test]
async fn a_cookie_of_a_stored_answer_is_set_like_that_of_a_new_one() {
    let web = Web::new(|request| {
        Reply::Close(match path(request) {
            "/in" => answer("200 OK", &["set-cookie: a=1", "set-cookie: b=2"], b""),
            _ => answer("200 OK", &[], b"page"),
        })
    })
    .await;
    let runs = Runs::new();
    for _ in 0..2 {
        let (fetcher, jar) = (runs.fetcher(), Arc::new(CookieJar::open(None, &[])));
        for page in ["/in", "/page"] {
            let request = FetchRequest {
                cookies: Some(Arc::clone(&jar)),
                ..get(web.url(page))
            };
            page_of(&fetcher, request).await;
        }
        let sent = jar.header(&web.url("/page"));
        assert_eq!(sent.as_deref(), Some("a=1; b=2"));
    }
    assert_eq!(web.heard().len(), 2);
    // Without cookies it is another request.
    runs.page(get(web.url("/page"))).await;
    assert_eq!(web.heard().len(), 3);
}

#[tokio::test]
async fn what_may_be_over_soon_is_asked_for_again() {
    for (status, n_asked) in [
        ("200 OK", 1),
        ("404 Not Found", 1),
        ("206 Partial", 2),
        ("403 Forbidden", 2),
        ("429 Slow", 2),
        ("503 Busy", 2),
    ] {
        let web = Web::saying(answer(status, &[], b"x")).await;
        let runs = Runs::new();
        for _ in 0..2 {
            runs.page(get(web.url("/"))).await;
        }
        assert_eq!(web.heard().len(), n_asked, "{status}");
    }
}

#[tokio::test]
async fn only_whole_bodies_are_stored_and_they_are_cut_like_new_ones() {
    let web = Web::saying(answer("200 OK", &[], b"0123456789")).await;
    let runs = Runs::new();
    let cut = FetchRequest {
        max_body: 4,
        ..get(web.url("/"))
    };
    for _ in 0..2 {
        assert!(runs.page(cut.clone()).await.truncated);
    }
    assert_eq!((web.heard().len(), runs.files().len()), (2, 0));
    runs.page(get(web.url("/"))).await;
    let account = Account::default();
    let again = FetchRequest {
        account: account.clone(),
        ..cut.clone()
    };
    let again = runs.page(again).await;
    assert_eq!((again.truncated, &again.body[..]), (true, &b"0123"[..]));
    assert_eq!(account.bytes(), 0);
    let kept = |max_file| FetchRequest {
        max_file: Some(max_file),
        ..cut.clone()
    };
    let error = runs.fetcher().fetch(kept(9)).await.unwrap_err().error;
    assert_eq!(error.reason(), "max-file");
    assert_eq!(runs.page(kept(10)).await.body.len(), 10);
    assert_eq!(web.heard().len(), 3);
}

#[tokio::test]
async fn a_body_that_breaks_off_is_not_stored() {
    let short = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc";
    let web = Web::saying(&short[..]).await;
    let runs = Runs::new();
    for n_asked in 1..=2 {
        let failed = runs.fetcher().fetch(get(web.url("/"))).await;
        assert_eq!(failed.unwrap_err().error.reason(), "connection");
        assert_eq!((web.heard().len(), runs.files().len()), (n_asked, 0));
    }
}

#[tokio::test]
async fn another_request_is_another_entry() {
    let web = Web::saying(answer("200 OK", &[], b"x")).await;
    let runs = Runs::new();
    let usual = get(web.url("/"));
    let agent = FetchRequest {
        headers: vec![("User-Agent".into(), "other/1".into())],
        ..usual.clone()
    };
    let post = |body: &'static str| FetchRequest {
        method: "POST".into(),
        body: Some(Bytes::from_static(body.as_bytes())),
        ..usual.clone()
    };
    let requests = [usual.clone(), agent, post("q=1"), post("q=2")];
    for _ in 0..2 {
        for request in &requests {
            runs.page(request.clone()).await;
        }
    }
    assert_eq!(web.heard().len(), requests.len());
    let named = FetchSettings {
        user_agent: "named/1".into(),
        ..FetchSettings::default()
    };
    page_of(&runs.fetcher_with(&["127.0.0.0/8"], named), usual).await;
    assert_eq!(web.heard().len(), requests.len() + 1);
}

#[tokio::test]
async fn a_run_that_allows_less_does_not_see_what_was_fetched() {
    let web = Web::saying(answer("200 OK", &[], b"x")).await;
    let runs = Runs::new();
    // The address of a name is judged only once the cache has no answer.
    let settings = FetchSettings {
        hosts: BTreeMap::from([("site.test".to_owned(), vec![web.address.ip()])]),
        ..FetchSettings::default()
    };
    let url = format!("http://site.test:{}/", web.address.port());
    let request = FetchRequest {
        names_port: true,
        ..get(url.parse().unwrap())
    };
    let open = runs.fetcher_with(&["127.0.0.0/8"], settings.clone());
    page_of(&open, request.clone()).await;
    let strict = runs.fetcher_with(&[], settings);
    let refused = strict.fetch(request).await.unwrap_err().error;
    assert_eq!(refused.reason(), "address-denied");
    assert_eq!(strict.n_from_cache(), Some(0));
}

#[tokio::test]
async fn a_followed_redirect_is_no_page_for_a_rule_that_wants_it() {
    let web = Web::new(|request| {
        Reply::Close(match path(request) {
            "/1" => answer("301 Moved", &["location: /2"], b"moved"),
            _ => answer("200 OK", &[], b"end"),
        })
    })
    .await;
    let runs = Runs::new();
    let wanting = FetchRequest {
        accept_status: "301".parse().unwrap(),
        ..get(web.url("/1"))
    };
    runs.page(get(web.url("/1"))).await;
    for _ in 0..2 {
        let moved = runs.page(wanting.clone()).await;
        assert_eq!((moved.status, &moved.body[..]), (301, &b"moved"[..]));
    }
    // The answer with its body serves both.
    assert_eq!(&runs.page(get(web.url("/1"))).await.body[..], b"end");
    assert_eq!(web.heard().len(), 3);
}

#[tokio::test]
async fn an_unwanted_content_type_is_refused_without_asking_again() {
    let web = Web::saying(answer("200 OK", &["content-type: image/png"], b"png")).await;
    let runs = Runs::new();
    let html = FetchRequest {
        content_types: "text/html".parse().unwrap(),
        ..get(web.url("/"))
    };
    for _ in 0..2 {
        let refused = runs.fetcher().fetch(html.clone()).await.unwrap_err().error;
        assert_eq!(refused.reason(), "content-type");
    }
    assert_eq!(web.heard().len(), 1);
    assert_eq!(&runs.page(get(web.url("/"))).await.body[..], b"png");
}

#[tokio::test]
async fn another_attempt_asks_the_site_and_its_answer_counts() {
    let n_asked = AtomicU64::new(0);
    let web = Web::new(move |_| {
        let n = n_asked.fetch_add(1, Ordering::Relaxed);
        Reply::Close(answer("200 OK", &[], n.to_string().as_bytes()))
    })
    .await;
    let runs = Runs::new();
    let again = FetchRequest {
        asks_site: true,
        ..get(web.url("/"))
    };
    for (request, body) in [
        (get(web.url("/")), "0"),
        (again, "1"),
        (get(web.url("/")), "1"),
    ] {
        assert_eq!(runs.page(request).await.text(), body);
    }
}

#[tokio::test]
async fn no_condition_is_sent_with_a_cache() {
    let web = Web::saying(answer("200 OK", &[], b"x")).await;
    let request = FetchRequest {
        validators: Some(Validators {
            etag: Some("\"a\"".into()),
            ..Validators::default()
        }),
        ..get(web.url("/"))
    };
    Runs::new().page(request).await;
    assert!(!web.heard()[0].contains("if-none-match"));
}

#[tokio::test]
async fn an_answer_is_asked_for_again_at_its_age() {
    let web = Web::saying(answer("200 OK", &[], b"x")).await;
    let runs = Runs {
        max_age: Some(Duration::from_secs(60)),
        ..Runs::new()
    };
    for (later, n_asked) in [(0, 1), (59_999, 1), (1, 2), (59_999, 2), (60_000, 3)] {
        runs.later(later);
        runs.page(get(web.url("/"))).await;
        assert_eq!(web.heard().len(), n_asked, "{later}");
    }
    // The clock is set back: nobody knows how old the answer is.
    runs.clock.0.store(DAY - 1, Ordering::Relaxed);
    runs.page(get(web.url("/"))).await;
    assert_eq!(web.heard().len(), 4);
    assert_eq!(runs.files().len(), 1);
}

#[tokio::test]
async fn a_torn_file_is_asked_for_again() {
    let web = Web::saying(answer("200 OK", &[], b"page")).await;
    let runs = Runs::new();
    for n_asked in 1..=3 {
        assert_eq!(runs.page(get(web.url("/"))).await.text(), "page");
        assert_eq!(web.heard().len(), n_asked);
        let [file] = &runs.files()[..] else {
            panic!("{:?}", runs.files());
        };
        let bytes = std::fs::read(file).unwrap();
        std::fs::write(file, &bytes[..bytes.len() - 1]).unwrap();
    }
}

#[tokio::test]
async fn robots_are_stored_for_a_day_and_obeyed() {
    let web = Web::new(|request| {
        Reply::Close(match path(request) {
            "/robots.txt" => answer("200 OK", &[], b"User-agent: *\nDisallow: /no"),
            _ => answer("200 OK", &[], b"page"),
        })
    })
    .await;
    let runs = Runs::new();
    let obeying = |path: &str| FetchRequest {
        robots: Robots::Obey,
        ..get(web.url(path))
    };
    for (later, n_asked) in [(0, 2), (DAY - 1, 2), (1, 3)] {
        runs.later(later);
        runs.page(obeying("/yes")).await;
        let refused = runs.fetcher().fetch(obeying("/no")).await.unwrap_err();
        assert_eq!(refused.error.reason(), "robots");
        let heard = web.heard();
        assert_eq!(heard.len(), n_asked, "{heard:?}");
    }
    assert_eq!(path(&web.heard()[2]), "/robots.txt");
}

#[tokio::test]
async fn kept_robots_do_not_say_that_the_host_has_answered() {
    let web = Web::saying(answer("404 Not Found", &[], b"")).await;
    let runs = Runs::new();
    let request = FetchRequest {
        robots: Robots::Obey,
        ..get(web.url("/"))
    };
    for has_answered in [true, false] {
        let prepared = runs.fetcher().prepare(request.clone()).await.unwrap();
        assert_eq!(prepared.has_answered, has_answered);
    }
    assert_eq!(web.heard().len(), 1);
}

#[tokio::test]
async fn a_page_is_fetched_although_it_cannot_be_stored() {
    let web = Web::saying(answer("200 OK", &[], b"page")).await;
    let runs = Runs::new();
    let fetcher = runs.fetcher();
    std::fs::remove_dir_all(runs.folder.path()).unwrap();
    for n_asked in 1..=2 {
        assert_eq!(page_of(&fetcher, get(web.url("/"))).await.text(), "page");
        assert_eq!(web.heard().len(), n_asked);
    }
    // The failures before do not count once the folder can be used again.
    std::fs::create_dir(runs.folder.path()).unwrap();
    for _ in 0..2 {
        assert_eq!(page_of(&fetcher, get(web.url("/"))).await.text(), "page");
        assert_eq!(web.heard().len(), 3);
    }
}

#[tokio::test]
async fn a_folder_that_cannot_be_used_is_told_at_once() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let settings = CacheSettings {
        folder: file.path().join("cache"),
        max_age: None,
        max_bytes: 1 << 20,
    };
    let error = fetcher().caching(&settings).unwrap_err();
    let message = format!(
        "cannot keep answers in {}, the folder of --cache",
        settings.folder.display()
    );
    assert_eq!(error.to_string(), message);
}
