//! Sites that misbehave: the crawl goes on, and the resource tells the outcome of each page.

use std::future::pending;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::thread;

use async_compression::Level;
use async_compression::tokio::bufread::{BrotliEncoder, GzipEncoder, ZstdEncoder};
use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue};
use crawler_tests::http::block_on;
use crawler_tests::process::Home;
use crawler_tests::web::{Asked, IntoResponse as _, Response, Site, StatusCode, Web, header};
use crawler_tests::{PATIENCE, guests, until};
use futures::stream;
use tokio::io::{AsyncRead, AsyncReadExt as _, BufReader};

use crate::server::Server;

fn redirect(to: &'static str) -> Response {
    (StatusCode::FOUND, [(header::LOCATION, to)]).into_response()
}

fn typed(kind: &'static str, body: impl Into<Body>) -> Response {
    ([(header::CONTENT_TYPE, kind)], body.into()).into_response()
}

fn site() -> Web {
    Site::new()
        .handle("/never", |_| pending::<Response>())
        .handle("/early", |_| async {
            let cut = io::Error::other("the site closes the connection");
            let pieces = [Ok(Bytes::from_static(b"<p>half")), Err(cut)];
            typed("text/html", Body::from_stream(stream::iter(pieces)))
        })
        .handle("/round", |_| async { redirect("/round") })
        .handle("/ping", |_| async { redirect("/pong") })
        .handle("/pong", |_| async { redirect("/ping") })
        .handle("/nowhere", |_| async { redirect("http://") })
        .handle("/large", |_| async {
            typed("text/html", vec![b'x'; 20 << 20])
        })
        .handle("/charset", |_| async {
            typed("text/html; charset=klingon", &b"caf\xe9 \xff\xfe"[..])
        })
        .handle("/binary", |_| async {
            typed("text/html", &b"\0\x01\x02"[..])
        })
        .handle("/forbidden", |_| async { StatusCode::FORBIDDEN })
        .handle("/gone", |_| async { StatusCode::GONE })
        .page("/good", "<p>good</p>")
        .open()
}

#[test]
fn f31_a_site_that_misbehaves_costs_its_pages_and_the_resource_tells_which_and_why() {
    let home = Home::new();
    home.write("crawler.toml", "[fetch]\nfirst-byte-timeout = '1s'\n");
    let (mut server, web) = (Server::start_in(home, &[]), site());
    let hostile = guests::guest("hostile").display().to_string();
    server.ok(&["plugin", "push", &hostile]);
    let paths = [
        "never",
        "early",
        "round",
        "ping",
        "nowhere",
        "large",
        "charset",
        "binary",
        "forbidden",
        "gone",
        "good",
    ];
    for path in paths {
        let root = format!("--param=root={}", web.url(&format!("/{path}")));
        server.ok(&[
            "resource",
            "add",
            path,
            "--plugin=hostile",
            &root,
            "--max-depth=0",
            "--max-retry-wait=100ms",
        ]);
    }
    let counts = |name: &str| server.json(&format!("/crawler/resource/{name}"))["counts"].clone();
    for (name, field, dead) in [
        ("good", "parsed", "{}"),
        ("large", "parsed", "{}"),
        ("charset", "parsed", "{}"),
        ("binary", "parsed", "{}"),
        ("gone", "other_done", "{}"),
        ("round", "dead", r#"{"redirects":1}"#),
        ("ping", "dead", r#"{"redirects":1}"#),
        ("nowhere", "dead", r#"{"status-302":1}"#),
        ("forbidden", "dead", r#"{"status-403":1}"#),
        ("early", "dead", r#"{"connection":1}"#),
        ("never", "dead", r#"{"timeout":1}"#),
    ] {
        // 0: a page was read; 3: no root request gave one.
        let code = if field == "parsed" { 0 } else { 3 };
        let waited = server.cli(&["resource", "wait", name, "--timeout=60s"]);
        assert_eq!(waited.code, Some(code), "{name}: {}", waited.stderr);
        let phase = if field == "dead" {
            "Failed"
        } else {
            "Finished"
        };
        let resource = server.json(&format!("/crawler/resource/{name}"));
        assert_eq!(resource["phase"], phase, "{name}: {resource}");
        let counts = counts(name);
        assert_eq!(counts[field], 1, "{name}: {counts}");
        assert_eq!(counts["dead_by_reason"].to_string(), dead, "{name}");
    }
    assert_eq!(counts("large")["bytes"], 8 << 20, "cut at limit body");
    assert_eq!(web.count("/early"), 5, "tried again as often as promised");
    let log = server.ok(&["resource", "logs", "early"]);
    let page = web.url("/early");
    for told in [
        format!(" warn ok {page} attempt 1 failed: the connection failed: "),
        format!(" warn ok {page} given up after attempt 5: connection\n"),
    ] {
        assert!(log.contains(&told), "{told} in {log}");
    }
    let log = server.ok(&["resource", "logs", "round"]);
    let told = " attempt 1 failed: more than 10 redirects, which max-redirects of [fetch] allows; the last one is to http://";
    assert!(log.contains(told), "{log}");

    for (name, path, why) in [
        (
            "never",
            "/never",
            "dead: timeout (it took longer than 1s, as set by first-byte-timeout of [fetch] in the config file), given up at ",
        ),
        (
            "early",
            "/early",
            "dead: connection (the connection failed: ",
        ),
        (
            "round",
            "/round",
            "dead: redirects (more than 10 redirects, which max-redirects of [fetch] allows; the last one is to http://",
        ),
    ] {
        let page = web.url(path);
        let told = server.ok(&["frontier", "why", name, page.as_str()]);
        assert!(told.starts_with(why), "{told}");
    }
    let list = server.ok(&["frontier", "list", "never", "--state=dead"]);
    assert!(
        list.contains("(it took longer than 1s, as set by first-byte-timeout"),
        "{list}"
    );
    assert!(server.process.is_running());
}

/// The request for a page ends with its crawl, whatever the page does.
#[test]
fn a_crawl_whose_page_is_never_answered_can_be_deleted_at_any_time() {
    let (server, web) = (Server::start(), site());
    let hostile = guests::guest("hostile").display().to_string();
    server.ok(&["plugin", "push", &hostile]);
    let root = format!("--param=root={}", web.url("/never"));
    server.ok(&["resource", "add", "never", "--plugin=hostile", &root]);
    let never = || web.log().into_iter().find(|hit| hit.path == "/never");
    until("the request", PATIENCE, never);
    server.ok(&["resource", "delete", "never"]);
    until("end of the request", PATIENCE, || never()?.end);
}

/// Returns bodies with their codings, each of which unpacks to 64 MiB of zeros.
async fn bombs() -> Vec<(&'static str, Bytes)> {
    const ZEROS: u64 = 64 << 20;
    async fn read(mut packed: impl AsyncRead + Unpin) -> Bytes {
        let mut bytes = Vec::new();
        let read = packed.read_to_end(&mut bytes).await;
        read.expect("zeros can be packed");
        bytes.into()
    }
    let zeros = || BufReader::new(tokio::io::repeat(0).take(ZEROS));
    let fast = Level::Fastest;
    vec![
        ("gzip", read(GzipEncoder::with_quality(zeros(), fast)).await),
        ("br", read(BrotliEncoder::with_quality(zeros(), fast)).await),
        ("zstd", read(ZstdEncoder::with_quality(zeros(), fast)).await),
        ("identity", Bytes::new()),
    ]
}

/// Forty bodies of each kind are sent, 16 at once.
#[test]
fn what_grows_without_end_takes_no_memory_beyond_the_limits_of_pages() {
    const EACH: u64 = 40;
    const LIMIT: u64 = 8 << 20;
    let bombs = block_on(bombs());
    let (codings, bombs): (Vec<_>, Vec<_>) =
        bombs.iter().map(|bomb| (bomb.0, bomb.clone())).unzip();
    let web = Site::new().handle("/grow", move |asked: Asked| {
        let bomb = bombs
            .iter()
            .find(|(coding, _)| asked.query.starts_with(coding));
        let bomb = bomb.cloned();
        async move {
            let endless =
                stream::repeat_with(|| Ok::<_, io::Error>(Bytes::from_static(&[b'x'; 16_384])));
            match bomb {
                Some((coding, bomb)) if !bomb.is_empty() => {
                    ([(header::CONTENT_ENCODING, coding)], bomb).into_response()
                }
                Some(_) => Body::from_stream(endless).into_response(),
                None => {
                    let large = HeaderValue::from_bytes(&[b'x'; 1 << 20]).expect("it is ASCII");
                    [(HeaderName::from_static("x-large"), large)].into_response()
                }
            }
        }
    });
    let web = web.open();
    let server = Server::start();
    let puppet = guests::guest("puppet").display().to_string();
    server.ok(&["plugin", "push", &puppet]);
    let before = server.peak_memory();
    for kind in codings.iter().copied().chain(["header"]) {
        let page = |n| {
            format!(
                r#"{{"url":"{}?{kind}{n}","rule":"leaf"}}"#,
                web.url("/grow")
            )
        };
        let pages: Vec<String> = (0..EACH).map(page).collect();
        let root = format!("--param=root=[{}]", pages.join(","));
        let in_flight = "--concurrency=16";
        server.ok(&["resource", "add", kind, "--plugin=puppet", in_flight, &root]);
        let waited = server.cli(&["resource", "wait", kind, "--timeout=60s"]);
        let code = if kind == "header" { 3 } else { 0 };
        assert_eq!(waited.code, Some(code), "{kind}: {}", waited.stderr);
        let counts = server.json(&format!("/crawler/resource/{kind}"))["counts"].clone();
        let (parsed, bytes) = match kind {
            "header" => (0, 0),
            _ => (EACH, EACH * LIMIT),
        };
        assert_eq!(
            (&counts["parsed"], &counts["bytes"]),
            (&parsed.into(), &bytes.into()),
            "{kind}"
        );
        let dead = (kind == "header").then_some(EACH);
        assert_eq!(counts["dead_by_reason"]["headers"].as_u64(), dead, "{kind}");
    }
    let grown = server.peak_memory() - before;
    assert!(grown < 400 << 20, "{} MiB", grown >> 20);
}

/// Starts a server at which every second connection ends before it is read. Its first page leads to `n_pages`
/// pages.
fn half_deaf(n_pages: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it listens");
    thread::spawn(move || {
        for nth in 0.. {
            let Ok((mut stream, _)) = listener.accept() else {
                break;
            };
            if nth % 2 == 0 {
                continue;
            }
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
                head.push(byte[0]);
            }
            let links = (0..n_pages).map(|n| format!(r#"{{"url":"/{n}","rule":"leaf"}}"#));
            let (status, body) = match head.starts_with(b"GET / ") {
                _ if head.starts_with(b"GET /robots.txt ") => ("404 Not Found", String::new()),
                true => (
                    "200 OK",
                    format!("[{}]", links.collect::<Vec<_>>().join(",")),
                ),
                false => ("200 OK", String::new()),
            };
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            // A client that has gone connects again.
            let _sent = stream.write_all(&[head, body].concat().into_bytes());
        }
    });
    address
}

#[test]
fn a_server_that_closes_every_second_connection_is_crawled_to_the_end() {
    const N_PAGES: usize = 60;
    let server = Server::start();
    let puppet = guests::guest("puppet").display().to_string();
    server.ok(&["plugin", "push", &puppet]);
    let start = format!("--param=start=http://{}/", half_deaf(N_PAGES));
    let patient = ["--max-attempts=30", "--max-retry-wait=100ms"];
    let add = ["resource", "add", "all", "--plugin=puppet", &start];
    server.ok(&[&add[..], &patient].concat());
    server.ok(&["resource", "wait", "all", "--timeout=100s"]);
    let counts = server.json("/crawler/resource/all")["counts"].clone();
    let parsed = (&counts["parsed"], counts["dead_by_reason"].to_string());
    assert_eq!(parsed, (&(N_PAGES + 1).into(), "{}".to_owned()), "{counts}");
}

#[test]
fn a_page_of_a_charset_that_does_not_exist_is_read_all_the_same() {
    let (server, web) = (Server::start(), site());
    let hostile = guests::guest("hostile").display().to_string();
    server.ok(&["plugin", "push", &hostile]);
    let root = format!("--param=root={}", web.url("/charset?"));
    let add = ["resource", "add", "text", "--plugin=hostile", &root];
    server.ok(&[&add[..], &["--param=rules=show-page,show-record"]].concat());
    server.ok(&["resource", "wait", "text"]);
    let items = server.ok(&["items", "text"]);
    assert!(items.contains(r#""text":"café "#), "{items}");
    // The rule sees the detected charset and how the page was fetched.
    let address = web.address();
    for told in [
        r#""charset":"windows-1254""#,
        r#""charset-source":"detected""#,
        r#""http-version":"1.1""#,
        r#""body-bytes":"7""#,
        &format!(r#""address":"{address}""#),
    ] {
        assert!(items.contains(told), "{told} in {items}");
    }
}
