//! The fake web is asked over plain sockets, so that nothing between hides what it does.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use super::*;
use crate::PATIENCE;

fn ask(web: &Web, path: &str) -> String {
    let mut stream = TcpStream::connect(web.address()).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: web\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_folder_is_served_as_a_web_server_does() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("sub")).unwrap();
    fs::write(folder.path().join("sub/index.html"), "index").unwrap();
    fs::write(folder.path().join("a b.html"), "spaced").unwrap();
    fs::write(folder.path().join("robots.txt"), "no").unwrap();
    let web = Site::new().folder(folder.path().join("sub")).open();
    assert!(ask(&web, "/%2e%2e/a%20b.html").starts_with("HTTP/1.1 404"));
    assert!(ask(&web, "/..%2fa%20b.html").starts_with("HTTP/1.1 404"));
    let web = Site::new().folder(folder.path()).open();
    assert!(ask(&web, "/sub/").ends_with("index"));
    assert!(ask(&web, "/sub").contains("location: /sub/"));
    assert!(ask(&web, "/a%20b.html").ends_with("spaced"));
    assert!(ask(&web, "/robots.txt").starts_with("HTTP/1.1 404"));
    assert!(ask(&web, "/nothing").starts_with("HTTP/1.1 404"));
}

#[test]
fn the_longest_path_that_fits_is_asked() {
    let web = Site::new()
        .handle("/deep/*", |asked| async move {
            format!("below {} {}", asked.path, asked.query)
        })
        .page("/deep/one", "one")
        .handle("/twice", |asked| async move { asked.nth.to_string() })
        .open();
    assert!(ask(&web, "/deep/two?x=1").ends_with("below /deep/two x=1"));
    assert!(ask(&web, "/deep/one").ends_with("one"));
    assert!(ask(&web, "/twice").ends_with('1'));
    assert!(ask(&web, "/twice").ends_with('2'));
    assert_eq!(web.count("/twice"), 2);
}

#[test]
fn a_robots_txt_is_what_the_test_says_and_has_a_log_of_its_own() {
    let web = Site::new().page("/*", "page").open();
    assert!(ask(&web, "/x").ends_with("page"));
    assert!(ask(&web, "/robots.txt").starts_with("HTTP/1.1 404"));
    let n_requests = (web.log().len(), web.robots_log().len());
    assert_eq!((n_requests, web.count("/robots.txt")), ((1, 1), 0));
    let web = Site::new().page("/robots.txt", "rules").open();
    assert!(ask(&web, "/robots.txt").ends_with("rules"));
}

#[test]
fn the_log_has_every_request_with_its_times() {
    let web = Site::new().page("/", "x").open();
    ask(&web, "/");
    ask(&web, "/other?q");
    let log = web.wait_for("two ends", PATIENCE, |log| {
        log.iter().filter(|hit| hit.end.is_some()).count() == 2
    });
    assert_eq!(log[0].status, Some(StatusCode::OK));
    assert_eq!(
        (log[1].path.as_str(), log[1].query.as_str()),
        ("/other", "q")
    );
    assert_eq!(log[1].status, Some(StatusCode::NOT_FOUND));
    assert!(log[0].end.unwrap() <= log[1].start);
    assert_eq!(most_at_once(&log), 1);
    assert!(shortest_pause(&log).is_some());
}

#[test]
fn requests_that_overlap_are_seen_in_the_log() {
    let gate = Arc::new(tokio::sync::Barrier::new(2));
    let web = Site::new()
        .handle("/*", move |_| {
            let gate = Arc::clone(&gate);
            async move {
                gate.wait().await;
            }
        })
        .open();
    std::thread::scope(|scope| {
        scope.spawn(|| ask(&web, "/one"));
        scope.spawn(|| ask(&web, "/two"));
    });
    assert_eq!(most_at_once(&web.log()), 2);
    assert_eq!(shortest_pause(&web.log()), Some(Duration::ZERO));
}

#[test]
fn a_client_that_goes_away_ends_its_request_without_a_status() {
    let web = Site::new()
        .handle("/slow", |_| std::future::pending::<StatusCode>())
        .open();
    let mut stream = TcpStream::connect(web.address()).unwrap();
    write!(stream, "GET /slow HTTP/1.1\r\nHost: web\r\n\r\n").unwrap();
    web.wait_for("request", PATIENCE, |log| log.len() == 1);
    drop(stream);
    let log = web.wait_for("end", PATIENCE, |log| log[0].end.is_some());
    assert_eq!(log[0].status, None);
}

#[test]
fn sites_apart_have_ports_that_nobody_is_given() {
    let ips = [[127, 0, 0, 1], [127, 0, 0, 2], [127, 0, 0, 2]];
    let webs = ips.map(|ip| Site::new().open_apart(ip.into()));
    let ports: std::collections::BTreeSet<u16> =
        webs.iter().map(|web| web.address().port()).collect();
    assert_eq!(ports.len(), webs.len());
    assert!(ports.iter().all(|port| *port < 30_000), "{ports:?}");
}
