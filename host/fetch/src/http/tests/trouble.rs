//! Tests of hosts that are in trouble, or ask to be left alone.

use super::*;

#[tokio::test]
async fn a_host_that_asks_for_it_is_left_alone_by_all_its_pages() {
    let web = Web::new(|request| match request.contains(" /busy ") {
        true => Reply::Close(answer("429 Too Many", &["Retry-After: 90"], b"")),
        false => Reply::Close(answer("200 OK", &[], b"")),
    });
    let web = web.await;
    let fetcher = fetcher();
    let now = StoppedClock.unix_millis();
    let fetched = fetcher.fetch(get(web.url("/busy"))).await.unwrap();
    // The clock of the host does not stop.
    let is_near = |at: UnixMillis| (now + 85_000..=now + 90_000).contains(&at);
    assert!(is_near(fetched.host_ready_at), "{}", fetched.host_ready_at);
    for robots in [Robots::Ignore, Robots::Obey] {
        let request = FetchRequest {
            robots,
            ..get(web.url("/"))
        };
        let failure = fetcher.fetch(request).await.unwrap_err();
        let FetchError::Paused { host, .. } = &failure.error else {
            panic!("{failure}")
        };
        assert_eq!(*host, web.address.to_string());
        assert!(is_near(failure.host_ready_at), "{}", failure.host_ready_at);
    }
    assert_eq!(web.heard().len(), 1);
}

#[tokio::test]
async fn a_pause_from_before_the_opening_is_kept() {
    let (web, fetcher) = (Web::saying(answer("200 OK", &[], b"")).await, fetcher());
    let until = StoppedClock.unix_millis() + 90_000;
    fetcher.rest(&web.address.to_string(), until);
    let failure = fetcher.fetch(get(web.url("/"))).await.unwrap_err();
    let error = &failure.error;
    assert!(matches!(error, FetchError::Paused { .. }), "{error}");
    assert!((until - 5_000..=until).contains(&failure.host_ready_at));
    assert!(web.heard().is_empty());
}

#[tokio::test]
async fn a_busy_host_is_left_alone_even_if_a_rule_takes_its_answer() {
    for status in ["429 Too Many", "503 Busy"] {
        let web = Web::saying(answer(status, &["Retry-After: 90"], b"")).await;
        let mut request = get(web.url("/"));
        request.accept_status = "any".parse().unwrap();
        let fetched = fetcher().fetch(request).await.unwrap();
        let at_least = StoppedClock.unix_millis() + 85_000;
        assert!(fetched.host_ready_at >= at_least, "{status}");
    }
}

#[tokio::test]
async fn a_redirect_that_would_wait_for_the_rate_of_its_host_is_a_page_of_its_own() {
    let web = Web::new(|request| match request.contains(" /from ") {
        true => Reply::Close(answer("301 Moved", &["Location: /to"], b"")),
        false => Reply::Close(answer("200 OK", &[], b"")),
    });
    let web = web.await;
    let counted = |path: &str| FetchRequest {
        host_rate: "1/h".parse().unwrap(),
        ..get(web.url(path))
    };
    let fetcher = fetcher();
    let fetched = fetcher.fetch(counted("/from")).await.unwrap();
    let Answer::Redirect { to } = fetched.answer else {
        panic!("it would be asked for again and again")
    };
    assert_eq!(to, web.url("/to"));
    let failure = fetcher.fetch(counted("/to")).await.unwrap_err();
    assert_eq!(failure.error.reason(), "paused");
    assert_eq!(web.heard().len(), 1);
}

#[tokio::test]
async fn a_redirect_that_would_wait_and_leads_back_is_tried_again_as_a_whole_and_counted() {
    let web = Web::new(|request| match request.contains(" /from ") {
        true => Reply::Close(answer("301 Moved", &["Location: /back"], b"")),
        false => Reply::Close(answer("301 Moved", &["Location: /from"], b"")),
    });
    let web = web.await;
    let counted = |rate: &str, method: &str| FetchRequest {
        host_rate: rate.parse().unwrap(),
        method: method.to_owned().into(),
        ..get(web.url("/from"))
    };
    let failure = fetcher().fetch(counted("2/h", "GET")).await.unwrap_err();
    assert_eq!(failure.error.reason(), "interrupted", "{failure}");
    assert!(failure.error.is_transient());
    assert!(failure.host_ready_at > StoppedClock.unix_millis() + 3_000_000);
    let web = Web::saying(answer("307 Again", &["Location: /to"], b"")).await;
    let post = FetchRequest {
        url: web.url("/from"),
        ..counted("1/h", "POST")
    };
    let failure = fetcher().fetch(post).await.unwrap_err();
    assert_eq!(
        (failure.error.reason(), web.heard().len()),
        ("interrupted", 1)
    );
}

#[tokio::test]
async fn a_robots_txt_that_waits_for_its_host_is_no_missing_one() {
    let web = Web::new(|request| match request.contains(" /robots.txt ") {
        true => Reply::Close(answer("301 Moved", &["Location: /rules"], b"")),
        false => Reply::Close(answer("200 OK", &[], b"")),
    });
    let web = web.await;
    let request = FetchRequest {
        host_rate: "1/h".parse().unwrap(),
        robots: Robots::Obey,
        ..get(web.url("/"))
    };
    let failure = fetcher().fetch(request).await.unwrap_err();
    assert_eq!(failure.error.reason(), "paused");
    assert!(failure.host_ready_at > StoppedClock.unix_millis() + 3_000_000);
}
