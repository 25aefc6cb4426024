//! Tests of the treatment of redirects.

use async_trait::async_trait;

use super::*;
use crate::FetchSlot;

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
async fn f30_a_redirect_is_an_answer_if_its_status_is_named() {
    let web = Web::new(|request| {
        let path = request.split(' ').nth(1).unwrap();
        Reply::Close(match path {
            "/1" => answer("302 Found", &["location: /2"], b""),
            "/2" => answer("301 Moved", &["location: http://b.test/"], b"moved"),
            _ => answer("404 Not Found", &[], b"end"),
        })
    })
    .await;
    let mut request = get(web.url("/1"));
    request.accept_status = "301".parse().unwrap();
    let found = page(request).await;
    assert_eq!((found.status, found.url.path()), (301, "/2"));
    assert_eq!(found.header("location"), Some("http://b.test/"));
    assert_eq!(found.redirects, [web.url("/1")]);
    assert_eq!(&found.body[..], b"moved");
    // Any status of an answer is wanted, and the redirect is followed to one.
    let mut request = get(web.url("/1"));
    request.accept_status = "any".parse().unwrap();
    let fetched = fetcher().fetch(request).await.unwrap();
    let Answer::Redirect { to } = fetched.answer else {
        panic!("the redirect is followed")
    };
    assert_eq!(to.as_str(), "http://b.test/");
}

/// The validators are those of the URL that was requested.
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
    request.validators = Some(Validators {
        etag: Some("\"v1\"".into()),
        last_modified: Some("Fri, 20 Nov 2026 08:00:00 GMT".into()),
        ..Validators::default()
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
    let message = format!(
        "more than 10 redirects, which max-redirects of [fetch] allows; the last one is to {}",
        web.url("/again")
    );
    assert_eq!(error.to_string(), message);
    assert_eq!(web.heard().len(), 11);
}

#[tokio::test]
async fn a_redirect_to_another_host_is_for_the_caller() {
    let other = Web::saying(answer("200 OK", &[], b"")).await;
    let location = format!("location: {}#x", other.url("/there"));
    let web = Web::saying(answer("302 Found", &[&location], b"")).await;
    let fetched = fetcher().fetch(get(web.url("/"))).await.unwrap();
    let Answer::Redirect { to } = fetched.answer else {
        panic!("followed");
    };
    assert_eq!((to, other.heard().len()), (other.url("/there"), 0));
}

/// Otherwise headers of a rule would go from https to http, where they can be read on the way.
#[tokio::test]
async fn r08_a_redirect_to_another_scheme_is_for_the_caller() {
    let web = Web::new(|request| {
        let host = request.lines().find_map(|line| line.strip_prefix("host: "));
        let location = format!("location: https://{}/there", host.unwrap());
        Reply::Close(answer("302 Found", &[&location], b""))
    })
    .await;
    let mut to = web.url("/there");
    to.set_scheme("https").unwrap();
    let fetched = fetcher().fetch(get(web.url("/"))).await.unwrap();
    assert!(matches!(fetched.answer, Answer::Redirect { to: other } if other == to));
    assert_eq!(web.heard().len(), 1);
}

#[tokio::test]
async fn a_redirect_to_an_address_that_is_not_public_reaches_nothing() {
    let hidden = "location: http://[::ffff:169.254.169.254]/latest/meta-data/";
    let web = Web::saying(answer("302 Found", &[hidden], b"")).await;
    let fetched = fetcher().fetch(get(web.url("/"))).await.unwrap();
    let Answer::Redirect { to } = fetched.answer else {
        panic!("followed");
    };
    assert_eq!(error(get(to)).await.reason(), "address-denied");
}

#[tokio::test]
async fn a_redirect_within_the_host_to_a_url_that_is_too_long_is_not_followed() {
    let path = "x".repeat(3_000);
    let location = format!("location: /{path}#part");
    let web = Web::saying(answer("302 Found", &[&location], b"")).await;
    let error = error(get(web.url("/"))).await;
    assert_eq!(error.reason(), "max-url-length");
    let text = error.to_string();
    assert!(
        text.contains("setting max-url-length allows 2048"),
        "{text}"
    );
    assert_eq!(web.heard().len(), 1);
}

#[tokio::test]
async fn a_redirect_without_a_target_is_a_page() {
    let web = Web::saying(answer("302 Found", &[], b"where to?")).await;
    assert_eq!(page(get(web.url("/"))).await.status, 302);
}

/// Records what happens to a place.
#[derive(Debug, Default)]
struct Noted(Mutex<Vec<&'static str>>);

#[async_trait]
impl FetchSlot for Noted {
    fn release(&self) {
        self.0.lock().unwrap().push("left");
    }

    async fn acquire(&self) {
        self.0.lock().unwrap().push("taken");
    }
}

#[tokio::test]
async fn a_redirect_that_waits_for_its_host_gives_up_its_place() {
    let web = Web::new(|request| {
        Reply::Close(match request.starts_with("GET /moved ") {
            true => answer("302 Found", &["location: /new"], b""),
            false => answer("200 OK", &[], b"all"),
        })
    })
    .await;
    for (delay, expected) in [(0, [].as_slice()), (100, &["left", "taken"])] {
        let slot = Arc::new(Noted::default());
        let request = FetchRequest {
            delay: Some(Duration::from_millis(delay)),
            slot: Some(slot.clone()),
            ..get(web.url("/moved"))
        };
        let page = page(request).await;
        assert_eq!(page.redirects, [web.url("/moved")]);
        assert_eq!(*slot.0.lock().unwrap(), expected, "{delay} ms");
    }
}
