//! Tests of the identity that requests present, and of their cookies.

use super::*;
use crate::agents::Identity;
use crate::cookies::CookieJar;

/// Returns the lines of a request that begin with this name, in lower case.
fn lines<'a>(request: &'a str, name: &str) -> Vec<&'a str> {
    let of_name = |line: &&str| line.to_ascii_lowercase().starts_with(name);
    request.lines().filter(of_name).collect()
}

#[tokio::test]
async fn a_page_is_asked_for_by_the_name_that_its_crawl_has_and_the_headers_of_its_rule_win() {
    let web = Web::saying(answer("200 OK", &[], b"")).await;
    let identity = Some(Identity {
        user_agent: "shop/1".into(),
        headers: &[("accept", "text/html"), ("accept-language", "en")],
    });
    let plain = get(web.url("/"));
    let named = FetchRequest {
        identity: identity.clone(),
        ..plain.clone()
    };
    let of_rule = FetchRequest {
        headers: vec![
            ("Accept".into(), "image/png".into()),
            ("User-Agent".into(), "own/1".into()),
        ],
        identity,
        ..plain.clone()
    };
    for request in [plain, named, of_rule] {
        page(request).await;
    }
    let heard = web.heard();
    let told = |n: usize| {
        let [agent, accept] = ["user-agent:", "accept:"].map(|name| lines(&heard[n], name));
        let language = lines(&heard[n], "accept-language:");
        [agent, accept, language].concat()
    };
    let own = format!("user-agent: {}", FetchSettings::default().user_agent);
    assert_eq!(told(0), [own.as_str(), "accept: */*"]);
    assert_eq!(
        told(1),
        [
            "user-agent: shop/1",
            "accept: text/html",
            "accept-language: en"
        ]
    );
    assert_eq!(
        told(2),
        [
            "user-agent: own/1",
            "accept: image/png",
            "accept-language: en"
        ]
    );
}

#[tokio::test]
async fn what_a_site_sets_is_sent_with_the_next_request_also_on_the_way_of_a_redirect() {
    let web = Web::new(|request| {
        if request.contains(" /login ") {
            let set = [
                "Location: /home",
                "Set-Cookie: session=1; Path=/",
                "Set-Cookie: a=b",
            ];
            return Reply::Close(answer("302 Found", &set, b""));
        }
        Reply::Close(answer("200 OK", &["Set-Cookie: seen=2; Path=/"], b""))
    });
    let web = web.await;
    let cookies = Arc::new(CookieJar::open(None, &[]));
    let with = |path: &str, own: Option<&str>| FetchRequest {
        cookies: Some(Arc::clone(&cookies)),
        headers: own
            .map(|own| ("Cookie".to_owned(), own.to_owned()))
            .into_iter()
            .collect(),
        ..get(web.url(path))
    };
    page(with("/login", None)).await;
    page(with("/x", None)).await;
    page(with("/y", Some("own=1"))).await;
    page(get(web.url("/z"))).await;
    let mut sent = Vec::new();
    for request in web.heard() {
        let mut cookies: Vec<String> = lines(&request, "cookie:")
            .iter()
            .flat_map(|line| line["cookie: ".len()..].split("; ").map(str::to_owned))
            .collect();
        cookies.sort();
        sent.push(cookies.join(" "));
    }
    let expected = ["", "a=b session=1", "a=b seen=2 session=1", "own=1", ""];
    assert_eq!(sent, expected);
}
