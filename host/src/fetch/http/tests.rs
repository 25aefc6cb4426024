//! The fetcher against a server on loopback that answers by rote, also with what is not HTTP.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Instant;

use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::fetch::gate::GateSettings;
use crate::model::frontier::Validators;
use crate::model::settings::{DEFAULT_MAX_CRAWL_DELAY, Robots};
use crate::task::TaskScope;

mod robots;

/// "hello " 10 000 times, gzip.
const SMALL_ARCHIVE: &str = "1f8b0800000000000203edc4310d00000803302b9823e15882ff0f1b1cedd1e9646b6cdbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb6df7ce304293460ea0000";

/// What the server does with a request.
enum Reply {
    Close(Vec<u8>),
    Hang(Vec<u8>),
    Reset,
}

/// A server that takes down each request and answers it by rote, one to a connection.
struct Web {
    address: SocketAddr,
    heard: Arc<Mutex<Vec<(Instant, String)>>>,
    _tasks: TaskScope,
}

impl Web {
    async fn new(reply: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tasks, heard) = (TaskScope::new(), Arc::<Mutex<Vec<_>>>::default());
        let noted = Arc::clone(&heard);
        tasks.spawn("web", async move {
            let mut hung = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let request = read_request(&mut stream).await;
                noted
                    .lock()
                    .unwrap()
                    .push((Instant::now(), request.clone()));
                match reply(&request) {
                    Reply::Close(bytes) => {
                        // A client that has read as far as it wants closes the connection.
                        let _cut = stream.write_all(&bytes).await;
                    }
                    Reply::Hang(bytes) => {
                        stream.write_all(&bytes).await.unwrap();
                        hung.push(stream);
                    }
                    Reply::Reset => stream.set_zero_linger().unwrap(),
                }
            }
        });
        Self {
            address,
            heard,
            _tasks: tasks,
        }
    }

    /// Answers every request with this.
    async fn saying(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::new(move |_| Reply::Close(answer.clone())).await
    }

    fn url(&self, path: &str) -> Url {
        format!("http://{}{path}", self.address).parse().unwrap()
    }

    fn heard(&self) -> Vec<String> {
        let heard = self.heard.lock().unwrap();
        heard.iter().map(|(_, request)| request.clone()).collect()
    }
}

async fn read_request(stream: &mut TcpStream) -> String {
    let mut request = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return text;
            }
        }
        if stream.read_buf(&mut request).await.unwrap() == 0 {
            return text;
        }
    }
}

fn answer(status: &str, headers: &[&str], body: &[u8]) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {status}\r\nconnection: close\r\n");
    for header in headers {
        text += &format!("{header}\r\n");
    }
    text += &format!("Content-Length: {}\r\n\r\n", body.len());
    [text.as_bytes(), body].concat()
}

struct StoppedClock;

impl Clock for StoppedClock {
    fn unix_nanos(&self) -> u64 {
        5_000_000_000
    }
}

fn fetcher_with(networks: &[&str], own: &[String], settings: FetchSettings) -> HttpFetcher {
    let guard = Guard::new(networks.iter().map(|n| n.parse().unwrap()).collect());
    guard.set_own_nodes(own.to_vec());
    HttpFetcher::new(
        settings,
        Arc::new(guard),
        Arc::new(Gate::new(GateSettings::default())),
        Arc::new(StoppedClock),
    )
    .unwrap()
}

fn fetcher() -> HttpFetcher {
    fetcher_with(&["127.0.0.0/8"], &[], FetchSettings::default())
}

fn get(url: Url) -> FetchRequest {
    FetchRequest {
        url,
        names_port: false,
        method: "GET".into(),
        headers: Vec::new(),
        body: None,
        max_body: 1 << 20,
        delay: None,
        unless: None,
        robots: Robots::Ignore,
        max_crawl_delay: DEFAULT_MAX_CRAWL_DELAY,
    }
}

async fn page(request: FetchRequest) -> Page {
    match fetcher().fetch(request).await.unwrap().answer {
        Answer::Page(page) => *page,
        Answer::Elsewhere { to } => panic!("led to {to}"),
    }
}

async fn error(request: FetchRequest) -> FetchError {
    fetcher().fetch(request).await.unwrap_err().error
}

async fn check_connection_error(web: Web, expected: &str) {
    let error = error(get(web.url("/"))).await;
    assert_eq!(error.reason(), "connection", "{error}");
    assert!(
        error.is_transient() && error.to_string().contains(expected),
        "{error}"
    );
}

#[tokio::test]
async fn f28_a_small_body_is_a_page_like_any_other() {
    let body = "<p>grün";
    let web = Web::saying(answer(
        "200 OK",
        &["Content-Type: text/html"],
        body.as_bytes(),
    ))
    .await;
    let page = page(get(web.url("/a?b#c"))).await;
    assert_eq!((page.status, page.text().as_ref()), (200, body));
    assert_eq!(
        (page.url.clone(), page.requested_url),
        (web.url("/a?b"), page.url)
    );
    assert_eq!((page.truncated, page.fetched_at), (false, 5_000));
    let heard = &web.heard()[0];
    assert!(heard.starts_with("GET /a?b HTTP/1.1\r\n"), "{heard}");
    let agent = format!("user-agent: crawler/{}\r\n", env!("CARGO_PKG_VERSION"));
    assert!(heard.contains(&agent), "{heard}");
}

#[tokio::test]
async fn f30_method_body_and_status_are_what_they_are() {
    let web = Web::saying(answer("503 Busy", &["Retry-After: 7"], b"later")).await;
    let mut request = get(web.url("/search"));
    request.method = "POST".into();
    request.headers = vec![("X-Rule".into(), "one".into())];
    request.body = Some(Bytes::from_static(b"q=1"));
    let page = page(request).await;
    assert_eq!((page.status, &page.body[..]), (503, &b"later"[..]));
    assert_eq!(page.header("retry-after"), Some("7"));
    let heard = &web.heard()[0];
    assert!(heard.starts_with("POST /search "), "{heard}");
    assert!(
        heard.contains("x-rule: one\r\n") && heard.ends_with("\r\n\r\nq=1"),
        "{heard}"
    );
}

#[tokio::test]
async fn f30_a_body_is_cut_at_the_limit_and_marked() {
    let web = Web::saying(answer("200 OK", &[], &[b'x'; 5_000])).await;
    for (max_body, expected) in [
        (4_999, (4_999, true)),
        (5_000, (5_000, false)),
        (0, (0, true)),
    ] {
        let mut request = get(web.url("/"));
        request.max_body = max_body;
        let page = page(request).await;
        assert_eq!((page.body.len(), page.truncated), expected);
    }
}

#[tokio::test]
async fn a_body_without_end_is_cut_too() {
    let endless =
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n5\r\nworld\r\n";
    let web = Web::new(|_| Reply::Hang(endless.to_vec())).await;
    let mut request = get(web.url("/"));
    request.max_body = 7;
    let page = page(request).await;
    assert_eq!((&page.body[..], page.truncated), (&b"hellowo"[..], true));
}

#[tokio::test]
async fn compression_is_removed_before_a_body_is_measured() {
    let archive = hex::decode(SMALL_ARCHIVE).unwrap();
    assert!(archive.len() < 1_000);
    let web = Web::saying(answer("200 OK", &["content-encoding: gzip"], &archive)).await;
    let mut request = get(web.url("/"));
    assert_eq!(page(request.clone()).await.body, b"hello ".repeat(10_000));
    request.max_body = 1_000;
    let page = page(request).await;
    assert_eq!((page.body.len(), page.truncated), (1_000, true));
    let heard = web.heard()[0].clone();
    for coding in ["gzip", "br", "zstd", "deflate"] {
        assert!(heard.contains(coding), "{heard}");
    }
}

#[tokio::test]
async fn headers_keep_their_order_and_are_bounded() {
    let web = Web::saying(answer(
        "200 OK",
        &["X-B: 1", "X-A: 2", "x-big: 0123456789"],
        b"",
    ))
    .await;
    let settings = FetchSettings {
        max_header_bytes: 10 + 5 + 4 + 4,
        ..FetchSettings::default()
    };
    for (settings, n) in [(FetchSettings::default(), 5), (settings, 3)] {
        let fetcher = fetcher_with(&["127.0.0.0/8"], &[], settings);
        let Answer::Page(page) = fetcher.fetch(get(web.url("/"))).await.unwrap().answer else {
            panic!("not a page");
        };
        let names: Vec<_> = page.headers.iter().map(|(name, _)| name.as_str()).collect();
        let all = ["connection", "x-b", "x-a", "x-big", "content-length"];
        assert_eq!(names, all[..n]);
    }
}

#[tokio::test]
async fn a_body_without_length_ends_with_the_connection() {
    let web = Web::saying("HTTP/1.1 200 OK\r\n\r\nall of it").await;
    assert_eq!(&page(get(web.url("/"))).await.body[..], b"all of it");
}

#[tokio::test]
async fn a_redirect_within_the_host_is_followed() {
    let web = Web::new(|request| {
        let path = request.split(' ').nth(1).unwrap();
        Reply::Close(match path {
            "/1" => answer("301 Moved", &["location: /2#there"], b"here"),
            "/2" => answer("307 Again", &["location: 3"], b""),
            _ => answer("200 OK", &[], b"end"),
        })
    })
    .await;
    let page = page(get(web.url("/1#here"))).await;
    assert_eq!(
        (page.url, page.requested_url),
        (web.url("/3"), web.url("/1"))
    );
    assert_eq!(page.redirects, [web.url("/1"), web.url("/2")]);
    assert_eq!(&page.body[..], b"end");
}

#[tokio::test]
async fn a_page_that_has_not_changed_is_not_sent_again() {
    let web = Web::new(|request| {
        let is_known = request.contains("if-none-match: \"v1\"\r\n")
            && request.contains("if-modified-since: Fri, 20 Nov 2026 08:00:00 GMT\r\n");
        Reply::Close(if is_known {
            answer("304 Not Modified", &["etag: \"v1\""], b"")
        } else {
            answer("200 OK", &[], b"all")
        })
    })
    .await;
    let known = FetchRequest {
        unless: Some(Validators {
            etag: Some("\"v1\"".into()),
            last_modified: Some("Fri, 20 Nov 2026 08:00:00 GMT".into()),
            content: None,
        }),
        ..get(web.url("/"))
    };
    let same = page(known).await;
    assert_eq!((same.status, same.body.len()), (304, 0));
    assert_eq!(page(get(web.url("/"))).await.status, 200);
}

/// What is known is known of the URL that was asked for.
#[tokio::test]
async fn a_condition_is_not_handed_on_to_where_a_redirect_leads() {
    let web = Web::new(|request| {
        Reply::Close(if request.starts_with("GET /moved ") {
            answer("302 Found", &["location: /new"], b"")
        } else {
            answer("200 OK", &[], b"all")
        })
    })
    .await;
    let mut request = get(web.url("/moved"));
    request.unless = Some(Validators {
        etag: Some("\"v1\"".into()),
        last_modified: Some("Fri, 20 Nov 2026 08:00:00 GMT".into()),
        content: None,
    });
    assert_eq!(page(request).await.status, 200);
    let heard = web.heard();
    assert!(heard[0].contains("if-none-match: \"v1\""), "{}", heard[0]);
    assert!(!heard[1].contains("\r\nif-"), "{}", heard[1]);
}

#[tokio::test]
async fn a_redirect_keeps_the_method_as_browsers_do() {
    for (status, method, expected) in [
        ("301", "POST", "GET"),
        ("302", "POST", "GET"),
        ("302", "PUT", "PUT"),
        ("303", "PUT", "GET"),
        ("303", "HEAD", "HEAD"),
        ("307", "POST", "POST"),
        ("308", "POST", "POST"),
    ] {
        let first = answer(&format!("{status} x"), &["location: /next"], b"");
        let web = Web::new(move |request| {
            let is_next = request.contains(" /next ");
            Reply::Close(if is_next {
                answer("200 OK", &[], b"")
            } else {
                first.clone()
            })
        })
        .await;
        let mut request = get(web.url("/"));
        request.method = method.into();
        request.headers = vec![("content-type".into(), "text/x-test".into())];
        request.body = (method != "HEAD").then(|| Bytes::from_static(b"q=1"));
        page(request).await;
        let next = web.heard()[1].clone();
        assert!(
            next.starts_with(&format!("{expected} /next ")),
            "{status} {method}: {next}"
        );
        let keeps_body = expected == method && method != "HEAD";
        assert_eq!(
            next.ends_with("q=1"),
            keeps_body,
            "{status} {method}: {next}"
        );
        assert!(
            keeps_body || method == "HEAD" || !next.contains("text/x-test"),
            "{next}"
        );
    }
}

#[tokio::test]
async fn a_redirect_loop_ends() {
    let web = Web::saying(answer("302 Found", &["location: /again"], b"")).await;
    let error = error(get(web.url("/"))).await;
    assert_eq!(error.to_string(), "more than 10 redirects");
    assert_eq!(web.heard().len(), 11);
}

#[tokio::test]
async fn a_redirect_to_another_host_is_for_the_caller() {
    let other = Web::saying(answer("200 OK", &[], b"")).await;
    let location = format!("location: {}#x", other.url("/there"));
    let web = Web::saying(answer("302 Found", &[&location], b"")).await;
    let fetched = fetcher().fetch(get(web.url("/"))).await.unwrap();
    let Answer::Elsewhere { to } = fetched.answer else {
        panic!("followed");
    };
    assert_eq!((to, other.heard().len()), (other.url("/there"), 0));
}

#[tokio::test]
async fn a_redirect_to_an_address_that_is_not_public_reaches_nothing() {
    let hidden = "location: http://[::ffff:169.254.169.254]/latest/meta-data/";
    let web = Web::saying(answer("302 Found", &[hidden], b"")).await;
    let fetched = fetcher().fetch(get(web.url("/"))).await.unwrap();
    let Answer::Elsewhere { to } = fetched.answer else {
        panic!("followed");
    };
    assert_eq!(error(get(to)).await.reason(), "address-denied");
}

#[tokio::test]
async fn a_redirect_without_a_target_is_a_page() {
    let web = Web::saying(answer("302 Found", &[], b"where to?")).await;
    assert_eq!(page(get(web.url("/"))).await.status, 302);
}

#[tokio::test]
async fn nothing_reaches_an_address_that_was_not_allowed() {
    let web = Web::saying(answer("200 OK", &[], b"")).await;
    let port = web.address.port();
    let fetcher = fetcher_with(&[], &[], FetchSettings::default());
    for host in ["127.0.0.1", "localhost", "2130706433", "[::ffff:7f00:1]"] {
        let url: Url = format!("http://{host}:{port}/").parse().unwrap();
        let error = fetcher.fetch(get(url)).await.unwrap_err().error;
        assert_eq!(error.reason(), "address-denied", "{host}: {error}");
        assert!(error.to_string().contains("--allow-networks"), "{error}");
    }
    assert_eq!(web.heard(), [""; 0]);
}

#[tokio::test]
async fn a_host_of_the_config_is_at_its_address_and_judged_like_any_other() {
    let web = Web::saying(answer("200 OK", &[], b"here")).await;
    let url: Url = format!("http://Shop.test:{}/a", web.address.port())
        .parse()
        .unwrap();
    let settings = || FetchSettings {
        hosts: [("shop.test".to_owned(), vec![web.address.ip()])].into(),
        ..FetchSettings::default()
    };
    let denied = fetcher_with(&[], &[], settings());
    let error = denied.fetch(get(url.clone())).await.unwrap_err().error;
    assert_eq!(error.reason(), "address-denied", "{error}");
    let allowed = fetcher_with(&["127.0.0.0/8"], &[], settings());
    // Inside the allowed networks, known without asking anybody: no delay, and several at once.
    assert!(allowed.per_host(&url, None) > 1);
    let Ok(Fetched {
        answer: Answer::Page(page),
        ..
    }) = allowed.fetch(get(url)).await
    else {
        panic!("no page")
    };
    assert_eq!(&page.body[..], b"here");
    assert!(
        web.heard()[0].contains("host: shop.test:"),
        "{:?}",
        web.heard()
    );
}

#[tokio::test]
async fn nothing_reaches_an_own_node_by_address_or_name() {
    let web = Web::saying(answer("200 OK", &[], b"")).await;
    let other = Web::saying(answer("200 OK", &[], b"")).await;
    let own = [web.address.to_string()];
    let fetcher = fetcher_with(&["127.0.0.0/8"], &own, FetchSettings::default());
    for host in ["127.0.0.1", "127.0.0.2", "localhost"] {
        let url: Url = format!("http://{host}:{}/", web.address.port())
            .parse()
            .unwrap();
        let error = fetcher.fetch(get(url)).await.unwrap_err().error;
        assert_eq!(error.reason(), "own-node", "{host}: {error}");
    }
    assert_eq!(web.heard(), [""; 0]);
    let url = format!("http://localhost:{}/", other.address.port());
    fetcher.fetch(get(url.parse().unwrap())).await.unwrap();
}

#[tokio::test]
async fn a_name_without_address_cannot_be_resolved() {
    let error = error(get("http://no-such-name.invalid/".parse().unwrap())).await;
    assert_eq!(error.reason(), "resolve", "{error}");
    assert!(error.is_transient());
}

#[tokio::test]
async fn a_connection_that_breaks_is_told_with_its_whole_cause() {
    let short = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort";
    check_connection_error(
        Web::saying(short).await,
        "end of file before message length",
    )
    .await;
    check_connection_error(Web::saying("").await, "connection closed before message").await;
    check_connection_error(
        Web::saying("220 smtp ready\r\n").await,
        "invalid HTTP version",
    )
    .await;
    check_connection_error(Web::new(|_| Reply::Reset).await, "reset").await;
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", gone.local_addr().unwrap());
    drop(gone);
    let error = error(get(url.parse().unwrap())).await;
    assert_eq!(error.reason(), "connection");
    assert!(error.to_string().contains("refused"), "{error}");
}

#[tokio::test]
async fn an_answer_that_takes_too_long_is_given_up() {
    let settings = FetchSettings {
        timeout: Duration::from_millis(200),
        ..FetchSettings::default()
    };
    let fetcher = fetcher_with(&["127.0.0.0/8"], &[], settings);
    for begun in ["", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"] {
        let web = Web::new(move |_| Reply::Hang(begun.into())).await;
        let failure = fetcher.fetch(get(web.url("/"))).await.unwrap_err();
        assert_eq!(failure.error.reason(), "timeout", "{failure}");
        assert!(failure.error.is_transient());
    }
}

#[tokio::test]
async fn every_hop_waits_for_its_hosts_turn() {
    let web = Web::new(|request| {
        let is_first = request.starts_with("GET / ");
        let headers: &[&str] = if is_first { &["location: /next"] } else { &[] };
        Reply::Close(answer(
            if is_first { "302 x" } else { "200 OK" },
            headers,
            b"",
        ))
    })
    .await;
    let delay = Duration::from_millis(150);
    let mut request = get(web.url("/"));
    request.delay = Some(delay);
    let fetched = fetcher().fetch(request).await.unwrap();
    assert_eq!(fetched.host_ready_at, 5_150);
    let heard = web.heard.lock().unwrap();
    assert!(heard[1].0 - heard[0].0 >= delay, "{heard:?}");
}

#[tokio::test]
async fn requests_that_cannot_be_sent_are_refused_before_they_are() {
    let web = Web::saying(answer("200 OK", &[], b"")).await;
    let check = async |change: fn(&mut FetchRequest)| {
        let mut request = get(web.url("/"));
        change(&mut request);
        assert_eq!(error(request).await.reason(), "bad-request");
    };
    check(|request| request.method = "CONNECT".into()).await;
    check(|request| request.method = "G ET".into()).await;
    for (name, value) in [
        ("Host", "x"),
        ("content-length", "1"),
        ("x y", "1"),
        ("x", "a\r\nb: c"),
    ] {
        let mut request = get(web.url("/"));
        request.headers = vec![(name.into(), value.into())];
        assert_eq!(error(request).await.reason(), "bad-request", "{name}");
    }
    assert_eq!(web.heard(), [""; 0]);
}

#[tokio::test]
async fn requests_run_side_by_side_only_without_a_delay() {
    let fetcher = fetcher();
    let (inside, outside) = ("http://127.0.0.1/", "http://example.org/");
    let second = Some(Duration::from_secs(1));
    for (host, delay, expected) in [
        (inside, None, 64),
        ("http://localhost/", None, 64),
        (inside, second, 1),
        (outside, None, 1),
        (outside, Some(Duration::ZERO), 64),
    ] {
        let host = host.parse().unwrap();
        assert_eq!(fetcher.per_host(&host, delay), expected, "{host} {delay:?}");
    }
}

mod ports;

#[test]
fn a_user_agent_that_is_no_header_is_named() {
    let settings = FetchSettings {
        user_agent: "a\nb".into(),
        ..FetchSettings::default()
    };
    let error = HttpFetcher::new(
        settings,
        Arc::default(),
        Arc::default(),
        Arc::new(StoppedClock),
    )
    .unwrap_err();
    assert!(error.to_string().contains(r#""a\nb""#), "{error}");
}
