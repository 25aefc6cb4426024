//! Statuses that rules ask for, and the pages that link to a page.

use std::sync::atomic::{AtomicBool, Ordering};

use crawler_tests::web::{Asked, Method, Site, StatusCode};
use serde_json::json;

use crate::server::Server;

#[test]
fn s29_the_link_checker_finds_broken_links_and_referrers() {
    let answer = |status: StatusCode| move |_: Asked| async move { status };
    let moved = |to: &str| {
        let to = to.to_owned();
        move |_: Asked| {
            let to = to.clone();
            async move { (StatusCode::MOVED_PERMANENTLY, [("location", to)]) }
        }
    };
    // Busy at first.
    let is_ready = AtomicBool::new(false);
    let busy = move |_: Asked| {
        let status = match is_ready.swap(true, Ordering::Relaxed) {
            true => StatusCode::OK,
            false => StatusCode::SERVICE_UNAVAILABLE,
        };
        async move { status }
    };
    let friend = Site::new().handle("/vanished", answer(StatusCode::NOT_FOUND));
    let friend = friend.open_apart([127, 0, 0, 2].into());
    let vanished = friend.url("/vanished");
    let web = Site::new()
        .page(
            "/",
            "<a href=fine>1</a> <a href=lost>2</a> <a href=secret>3</a> <a href=moved>4</a> <a href=moved-away>5</a> <a href=moved-too>6</a> <a href=away>8</a> <a href=away-too>9</a>",
        )
        .page("/fine", "<a href=/lost>once more</a> <a href=/broken>7</a> <a href=/busy>10</a>")
        .handle("/lost", answer(StatusCode::NOT_FOUND))
        .handle("/secret", answer(StatusCode::FORBIDDEN))
        .handle("/broken", answer(StatusCode::INTERNAL_SERVER_ERROR))
        .handle("/moved", moved("/target"))
        .page("/target", "")
        .handle("/moved-away", moved("/nowhere"))
        .handle("/moved-too", moved("/nowhere"))
        .handle("/nowhere", answer(StatusCode::GONE))
        .handle("/away", moved(vanished.as_str()))
        .handle("/away-too", moved(vanished.as_str()))
        .handle("/busy", busy)
        .open();
    let server = Server::start();
    server.push("broken_links", &[]);
    let start = format!("start={}", web.url("/"));
    let scope = format!("--scope={}", friend.address());
    server.ok(&["resource", "add", "broken_links", "--param", &start, &scope]);
    let counts = &server.finished("broken_links")["counts"];
    let numbers = ["parsed", "other_done", "dead", "retries"].map(|name| &counts[name]);
    assert_eq!(numbers, [10, 2, 0, 1], "{counts}");
    let mut found = server.items("broken_links");
    found.sort_by_key(|item| item["url"].to_string());
    let link = |path: &str, status: u16, referrer: &str| json!({"url": web.url(path), "status": status, "referrer": web.url(referrer)});
    let expected = [
        link("/broken", 500, "/fine"),
        link("/lost", 404, "/"),
        // Both links are broken, although they lead to one place.
        link("/moved-away", 410, "/"),
        link("/moved-too", 410, "/"),
        link("/secret", 403, "/"),
        // A redirect to another host is a request of its own, and there is one for both links.
        json!({"url": vanished, "status": 404, "referrer": web.url("/")}),
    ];
    assert_eq!(found, expected);
    // A status that is accepted is not tried again unless the rule says so.
    for path in ["/broken", "/lost", "/secret", "/target"] {
        let n_asked = web.log().iter().filter(|hit| hit.path == path).count();
        assert_eq!(n_asked, 1, "{path}");
    }
    let url = web.url("/broken").to_string();
    let why = server.ok(&["frontier", "why", "broken_links", &url]);
    let origin = format!(
        "depth 2, rule check, first linked from {}\n",
        web.url("/fine")
    );
    assert!(why.ends_with(&origin), "{why}");
    let urls = server.http(
        Method::GET,
        "/crawler/resource/broken_links/frontier/urls",
        None,
    );
    let urls = urls.json();
    let referrers = urls["urls"].as_array().expect("a list").iter();
    let none = referrers.filter(|url| url["referrer"] == "");
    let roots: Vec<_> = none.map(|url| url["url"].clone()).collect();
    assert_eq!(roots, [json!(web.url("/"))]);
}
