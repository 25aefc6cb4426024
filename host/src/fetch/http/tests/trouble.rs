//! Hosts that are in trouble, or ask to be left alone.

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
