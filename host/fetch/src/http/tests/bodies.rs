//! Tests of how much of a body is kept, and which codings are removed.

use async_compression::tokio::bufread::{
    BrotliEncoder, DeflateEncoder, GzipEncoder, ZlibEncoder, ZstdEncoder,
};
use tokio::io::AsyncRead;

use super::*;

/// The text "hello " 10 000 times, as gzip.
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
async fn a_file_is_whole_or_an_error() {
    let file = |max_file, url: Url| FetchRequest {
        max_body: 2,
        max_file: Some(max_file),
        ..get(url)
    };
    let (small, unsized_body) = (
        answer("200 OK", &["content-type: text/plain"], b"hello"),
        "HTTP/1.1 200 OK\r\n\r\nhello",
    );
    let web = Web::saying(small).await;
    let whole = page(file(5, web.url("/"))).await;
    assert_eq!((&whole.body[..], whole.truncated), (&b"hello"[..], false));
    // More than `max_body` is not decoded.
    assert_eq!(whole.text.charset, charset::BINARY);
    let unsized_web = Web::saying(unsized_body).await;
    for url in [web.url("/"), unsized_web.url("/")] {
        let error = error(file(4, url)).await;
        assert!(matches!(error, FetchError::FileSize { max: 4 }), "{error}");
        assert_eq!((error.reason(), error.is_transient()), ("max-file", false));
    }
    // What a site says of a failure is a page, and cut like one.
    let failing = Web::saying(answer("404 Not Found", &[], b"hello")).await;
    let cut = page(file(9, failing.url("/"))).await;
    assert_eq!((&cut.body[..], cut.truncated), (&b"he"[..], true));
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
async fn archives_one_after_the_other_are_one_body() {
    let archive = hex::decode(SMALL_ARCHIVE).unwrap().repeat(2);
    let web = Web::saying(answer("200 OK", &["content-encoding: gzip"], &archive)).await;
    let page = page(get(web.url("/"))).await;
    assert_eq!(page.body, b"hello ".repeat(20_000));
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
        validators: Some(Validators {
            etag: Some("\"v1\"".into()),
            last_modified: Some("Fri, 20 Nov 2026 08:00:00 GMT".into()),
            ..Validators::default()
        }),
        ..get(web.url("/"))
    };
    let same = page(known).await;
    assert_eq!((same.status, same.body.len()), (304, 0));
    assert_eq!(page(get(web.url("/"))).await.status, 200);
}

type Compress = fn(&[u8]) -> Box<dyn AsyncRead + Unpin + '_>;

const CODINGS: [(&str, Compress); 4] = [
    ("gzip", |plain| Box::new(GzipEncoder::new(plain))),
    ("br", |plain| Box::new(BrotliEncoder::new(plain))),
    ("zstd", |plain| Box::new(ZstdEncoder::new(plain))),
    ("deflate", |plain| Box::new(ZlibEncoder::new(plain))),
];

async fn all(mut reader: impl AsyncRead + Unpin) -> Vec<u8> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).await.unwrap();
    bytes
}

#[tokio::test]
async fn a_bomb_of_any_coding_is_cut_at_the_limit_like_the_page_it_would_be() {
    let plain = vec![0; 32 << 20];
    for (coding, compress) in CODINGS {
        let archive = all(compress(&plain)).await;
        assert!(archive.len() < 64 << 10, "{coding}: {}", archive.len());
        let header = format!("content-encoding: {coding}");
        let web = Web::saying(answer("200 OK", &[&header], &archive)).await;
        let page = page(get(web.url("/"))).await;
        assert_eq!(
            (page.body.len(), page.truncated),
            (1 << 20, true),
            "{coding}"
        );
        assert!(page.body.iter().all(|&byte| byte == 0), "{coding}");
        let names = page.headers.iter().map(|(name, _)| name);
        assert_eq!(names.collect::<Vec<_>>(), ["connection"], "{coding}");
    }
}

/// The limit applies to what is kept, not to what was received: the archive is not read to its end.
#[tokio::test]
async fn an_archive_without_end_is_cut_too() {
    // A stored block of zlib that is not the last, with 1 000 bytes.
    let block = [&[0, 0xe8, 0x03, 0x17, 0xfc][..], &[b'x'; 1_000]].concat();
    let head = b"HTTP/1.1 200 OK\r\ncontent-encoding: deflate\r\n\r\n\x78\x9c".to_vec();
    let web = Web::new(move |_| Reply::Endless(head.clone(), block.clone(), Duration::ZERO)).await;
    let page = page(get(web.url("/"))).await;
    assert_eq!((page.body.len(), page.truncated), (1 << 20, true));
}

#[tokio::test]
async fn codings_go_by_any_name_that_servers_use() {
    let plain = &b"plain"[..];
    let raw_deflate = all(DeflateEncoder::new(plain)).await;
    let gzip = all(GzipEncoder::new(plain)).await;
    for (name, archive) in [
        ("GZip", &gzip[..]),
        ("x-gzip", &gzip),
        ("identity, gzip", &gzip),
        (" gzip ,", &gzip),
        ("deflate", &raw_deflate),
        ("identity", plain),
        ("", plain),
        ("gzip", b""),
        ("br", b""),
    ] {
        let header = format!("content-encoding: {name}");
        let web = Web::saying(answer("200 OK", &[&header], archive)).await;
        let page = page(get(web.url("/"))).await;
        let expected = if archive.is_empty() { archive } else { plain };
        assert_eq!(page.body, expected, "{name:?}");
    }
}

#[track_caller]
fn check_encoding(error: &FetchError, encoding: &str, expected: &str) {
    assert_eq!(error.reason(), "content-encoding", "{error}");
    assert!(!error.is_transient());
    let text = error.to_string();
    assert!(text.contains(encoding) && text.contains(expected), "{text}");
}

#[tokio::test]
async fn codings_within_codings_and_unknown_ones_are_refused_by_name() {
    let once = all(GzipEncoder::new(&b"plain"[..])).await;
    let twice = all(GzipEncoder::new(&once[..])).await;
    let ten = ["gzip"; 10].join(", ");
    let within = "one within the other";
    for (headers, encoding, expected) in [
        (&["content-encoding: gzip, gzip"][..], "gzip, gzip", within),
        (
            &["content-encoding: gzip", "content-encoding: gzip"],
            "gzip, gzip",
            within,
        ),
        (&[&format!("content-encoding: {ten}")], &ten, within),
        (&["content-encoding: br, GZIP"], "br, gzip", within),
        (&["content-encoding: lzma"], "lzma", "none of those"),
    ] {
        let web = Web::saying(answer("200 OK", headers, &twice)).await;
        check_encoding(&error(get(web.url("/"))).await, encoding, expected);
    }
}

#[tokio::test]
async fn a_body_that_is_not_what_its_coding_says_is_an_error_and_no_garbage() {
    for (coding, _) in CODINGS {
        let header = format!("content-encoding: {coding}");
        let web = Web::saying(answer("200 OK", &[&header], &b"<p>plain</p>".repeat(9))).await;
        check_encoding(&error(get(web.url("/"))).await, coding, "");
    }
}

/// The connection may have been cut, so another attempt may succeed.
#[tokio::test]
async fn an_archive_that_ends_early_is_tried_again() {
    // zlib reports an early end like other faults.
    for (coding, compress) in &CODINGS[..3] {
        let whole = all(compress(b"a page that is somewhat longer than a few bytes")).await;
        let header = format!("content-encoding: {coding}");
        let web = Web::saying(answer("200 OK", &[&header], &whole[..whole.len() - 9])).await;
        let error = error(get(web.url("/"))).await;
        assert_eq!(error.reason(), "connection", "{coding}: {error}");
        assert!(error.is_transient());
    }
}

/// A decoder allocates the window before it decodes anything.
#[tokio::test]
async fn zstd_sets_no_more_aside_than_http_allows() {
    // A frame with this window, and a raw last block of one byte.
    let frame = |window: u8| [0x28, 0xb5, 0x2f, 0xfd, 0, window, 9, 0, 0, b'x'];
    let zstd = &["content-encoding: zstd"];
    let (of_8_mib, of_128_mib) = (frame(13 << 3), frame(17 << 3));
    let web = Web::saying(answer("200 OK", zstd, &of_8_mib)).await;
    assert_eq!(&page(get(web.url("/"))).await.body[..], b"x");
    let web = Web::saying(answer("200 OK", zstd, &of_128_mib)).await;
    check_encoding(&error(get(web.url("/"))).await, "zstd", "memory");
}

#[tokio::test]
async fn the_body_of_a_page_of_another_kind_is_not_read() {
    let begin = "HTTP/1.1 200 OK\r\ncontent-type: video/mp4\r\ncontent-length: 9999\r\n\r\n";
    let web = Web::new(move |request| match request.contains(" /missing ") {
        true => Reply::Close(answer("404 Not", &["content-type: video/mp4"], b"")),
        false => Reply::Hang(begin.into()),
    });
    let web = web.await;
    let wanted = |path: &str| FetchRequest {
        content_types: "text/*".parse().unwrap(),
        ..get(web.url(path))
    };
    // The request would hang if the body were read.
    let error = error(wanted("/film")).await;
    let expected = "it is \"video/mp4\", which setting content-types leaves out";
    assert_eq!(
        (error.to_string().as_str(), error.reason()),
        (expected, "content-type")
    );
    assert!(!error.is_transient());
    // An error page of a site may be of any content type.
    assert_eq!(page(wanted("/missing")).await.status, 404);
}
