//! Tests of the fetcher against a server on loopback with canned answers, some of which are not HTTP.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Instant;

use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::charset;
use crate::throttle::{Requester, ThrottleSettings};
use crawler_model::crawl::{Page, UnixMillis};
use crawler_model::frontier::{DelaySource, Validators};
use crawler_model::settings::{DEFAULT_MAX_CRAWL_DELAY, DEFAULT_MAX_URL_LENGTH, Robots};
use crawler_process::memory::Account;
use crawler_process::task::TaskScope;

mod addresses;
mod bodies;
mod broken;
mod cached;
mod http2;
mod identity;
mod ports;
mod post;
mod prepare;
mod proxies;
mod reach;
mod recorded;
mod records;
mod redirects;
mod robots;
mod shared;
mod tls;
mod trouble;

/// Reaction of the server to a request.
enum Reply {
    Close(Vec<u8>),
    Hang(Vec<u8>),
    /// Sends the first part, and then the second again and again, with a pause between, until the client closes.
    Endless(Vec<u8>, Vec<u8>, Duration),
    Reset,
}

/// A server that records each request and sends a canned answer, one on each connection.
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
                        // A client that has read enough closes the connection.
                        let _cut = stream.write_all(&bytes).await;
                    }
                    Reply::Hang(bytes) => {
                        stream.write_all(&bytes).await.unwrap();
                        hung.push(stream);
                    }
                    Reply::Endless(begin, again, pause) => {
                        let mut sent = stream.write_all(&begin).await;
                        while sent.is_ok() {
                            tokio::time::sleep(pause).await;
                            sent = stream.write_all(&again).await;
                        }
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

    /// Creates a server that gives this answer to every request.
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
    let address_policy = AddressPolicy::new(networks.iter().map(|n| n.parse().unwrap()).collect());
    address_policy.set_own_nodes(own.to_vec());
    HttpFetcher::new(
        settings,
        Arc::new(address_policy),
        Arc::new(Throttle::new(ThrottleSettings::default())),
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
        identity: None,
        cookies: None,
        body: None,
        max_url_length: DEFAULT_MAX_URL_LENGTH,
        proxy: None,
        credentials: Default::default(),
        accept_status: Default::default(),
        content_types: Default::default(),
        max_body: 1 << 20,
        max_file: None,
        delay: None,
        random_delay: Duration::ZERO,
        host_rate: Default::default(),
        validators: None,
        asks_site: false,
        robots: Robots::Ignore,
        robots_store: None,
        max_crawl_delay: DEFAULT_MAX_CRAWL_DELAY,
        account: Account::default(),
        requester: Requester::waiting(),
        slot: None,
        tape: None,
    }
}

async fn page(request: FetchRequest) -> Page {
    match fetcher().fetch(request).await.unwrap().answer {
        Answer::Page(page) => *page,
        Answer::Redirect { to } => panic!("led to {to}"),
    }
}

async fn error(request: FetchRequest) -> FetchError {
    fetcher().fetch(request).await.unwrap_err().error
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
        let names: Vec<_> = page.headers.iter().map(|(name, _)| name).collect();
        let all = ["connection", "x-b", "x-a", "x-big", "content-length"];
        assert_eq!(names, all[..n]);
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
    for method in [
        "TRACE",
        "G ET",
        "GET\r\nx: 1",
        "GET / HTTP/1.1\r\n\r\n",
        "",
        "G\0T",
    ] {
        let mut request = get(web.url("/"));
        request.method = method.into();
        assert_eq!(error(request).await.reason(), "bad-request", "{method:?}");
    }
    for (name, value) in [
        ("Host", "x"),
        ("content-length", "1"),
        ("x y", "1"),
        ("x", "a\r\nb: c"),
        ("x", "a\nb: c"),
        ("x", "a\rb: c"),
        ("x", "a\0"),
        ("x: 1\r\ny", "1"),
        ("x\n", "1"),
        ("x:", "1"),
        ("", "1"),
        ("transfer-encoding", "chunked"),
    ] {
        let mut request = get(web.url("/"));
        request.headers = vec![(name.into(), value.into())];
        assert_eq!(error(request).await.reason(), "bad-request", "{name}");
    }
    let mut request = get(web.url("/"));
    request.validators = Some(Validators {
        etag: Some("\"a\"\r\nx: 1".into()),
        ..Validators::default()
    });
    assert_eq!(error(request).await.reason(), "bad-request");
    assert_eq!(web.heard(), [""; 0]);
}

#[tokio::test]
async fn no_line_of_a_request_comes_from_its_url() {
    let web = Web::saying(answer("200 OK", &[], b"")).await;
    let text = web
        .url("/a\r\nx: 1\r\n%0d%0ay: 1?q=\r\n\tz: 1 \0#\r\nw: 1")
        .to_string();
    assert!(!text.contains(['\r', '\n', '\0', ' ']), "{text}");
    page(get(text.parse().unwrap())).await;
    let heard = web.heard()[0].to_lowercase();
    let injected = heard
        .lines()
        .skip(1)
        .any(|line| line.starts_with(['x', 'y', 'z', 'w']));
    assert!(!injected, "{heard}");
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
        let kept = delay.unwrap_or(match host.as_str() == outside {
            true => Duration::from_secs(1),
            false => Duration::ZERO,
        });
        assert_eq!(fetcher.delay(&host, delay), kept, "{host}");
    }
}

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
