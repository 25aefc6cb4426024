//! How much of a body is kept, and what of its coding is removed.

use super::*;

/// "hello " 10 000 times, gzip.
const SMALL_ARCHIVE: &str = "1f8b0800000000000203edc4310d00000803302b9823e15882ff0f1b1cedd1e9646b6cdbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb66ddbb6df7ce304293460ea0000";

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
async fn a_body_without_length_ends_with_the_connection() {
    let web = Web::saying("HTTP/1.1 200 OK\r\n\r\nall of it").await;
    assert_eq!(&page(get(web.url("/"))).await.body[..], b"all of it");
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
