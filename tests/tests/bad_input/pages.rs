//! Sites that misbehave: the crawl goes on, and the resource tells what became of each page.

use std::future::pending;
use std::io;

use axum::body::{Body, Bytes};
use crawler_tests::web::{IntoResponse as _, Response, Site, StatusCode, Web, header};
use crawler_tests::{PATIENCE, guests, until};
use futures::stream;

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
    let (mut server, web) = (Server::start(), site());
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
    ] {
        server.ok(&["resource", "wait", name, "--timeout=60s"]);
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
    let told = " attempt 1 failed: more than 10 redirects\n";
    assert!(log.contains(told), "{log}");

    // A server that never answers holds up its own crawl only, and that can be deleted at any time.
    assert_eq!(counts("never")["in_flight"], 1);
    server.ok(&["resource", "delete", "never"]);
    until("end of the request", PATIENCE, || {
        let hits = web.log();
        let never = hits.iter().find(|hit| hit.path == "/never")?;
        never.end
    });
    assert!(server.process.is_running());
}

#[test]
fn a_page_of_a_charset_that_does_not_exist_is_read_all_the_same() {
    let (server, web) = (Server::start(), site());
    let hostile = guests::guest("hostile").display().to_string();
    server.ok(&["plugin", "push", &hostile]);
    let root = format!("--param=root={}", web.url("/charset?"));
    let add = ["resource", "add", "text", "--plugin=hostile", &root];
    server.ok(&[&add[..], &["--param=rules=show-page"]].concat());
    server.ok(&["resource", "wait", "text"]);
    let items = server.ok(&["items", "text"]);
    assert!(items.contains(r#""text":"café "#), "{items}");
}
