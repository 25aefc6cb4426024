//! Tests with HTTP/2 servers that misbehave, frame by frame. The client speaks HTTP/2 without TLS.

use tokio::io::{AsyncRead, AsyncWrite};

use super::*;

const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// `:status: 200`, from the static table of HPACK.
const STATUS_200: &[u8] = &[0x88];

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [&length[1..], &[kind, flags, 0, 0, 0, stream]].concat();
    [&head, payload].concat()
}

/// Answers the first request of a connection.
pub(super) async fn serve(
    stream: impl AsyncRead + AsyncWrite,
    answer: Vec<Vec<u8>>,
    again: Option<Vec<u8>>,
) {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let mut preface = [0; 24];
    reader.read_exact(&mut preface).await.unwrap();
    writer.write_all(&frame(SETTINGS, 0, 0, &[])).await.unwrap();
    writer.flush().await.unwrap();
    // The loop looks for the frame that asks for the page.
    loop {
        let mut head = [0; 9];
        reader.read_exact(&mut head).await.unwrap();
        let length = usize::from(head[1]) << 8 | usize::from(head[2]);
        reader.read_exact(&mut vec![0; length]).await.unwrap();
        if head[3] == HEADERS {
            break;
        }
    }
    let mut sent = writer.write_all(&answer.concat()).await;
    let _flushed = writer.flush().await;
    while let (Ok(()), Some(again)) = (&sent, &again) {
        sent = writer.write_all(again).await;
    }
    // The client's reaction is read until it closes.
    let _gone = tokio::io::copy(&mut reader, &mut tokio::io::sink()).await;
}

/// Returns the frames of a page with these bytes.
pub(super) fn whole(body: &[u8]) -> Vec<Vec<u8>> {
    vec![begun(), frame(0, END_STREAM, 1, body)]
}

/// Returns the outcome of a request that is answered with these frames, and then with `again` without end.
async fn outcome(answer: Vec<Vec<u8>>, again: Option<Vec<u8>>) -> Result<Page, FetchError> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let tasks = TaskScope::new();
    tasks.spawn("web", async move {
        let (stream, _) = listener.accept().await.unwrap();
        serve(stream, answer, again).await;
    });
    let settings = FetchSettings {
        timeout: Duration::from_secs(1),
        ..FetchSettings::default()
    };
    let mut fetcher = fetcher_with(&["127.0.0.0/8"], &[], settings.clone());
    let builder = client::builder(&settings, fetcher.resolver.clone());
    fetcher.proxy_pools.direct = builder.http2_prior_knowledge().build().unwrap();
    let fetched = fetcher.fetch(get(url.parse().unwrap())).await;
    match fetched.map_err(|failure| failure.error)?.answer {
        Answer::Page(page) => Ok(*page),
        Answer::Redirect { to } => panic!("led to {to}"),
    }
}

async fn check_reason(answer: Vec<Vec<u8>>, again: Option<Vec<u8>>, reasons: &[&str]) {
    let error = outcome(answer, again).await.unwrap_err();
    assert!(reasons.contains(&error.reason()), "{error}");
    assert!(error.is_transient());
}

fn begun() -> Vec<u8> {
    frame(HEADERS, END_HEADERS, 1, STATUS_200)
}

#[tokio::test]
async fn an_answer_over_http_2_is_a_page() {
    let page = outcome(whole(b"here"), None).await.unwrap();
    assert_eq!((page.status, &page.body[..]), (200, &b"here"[..]));
}

#[tokio::test]
async fn headers_are_counted_over_http_2_too() {
    let head = |n: usize| {
        let header = [0, 1, b'x', 1, b'y'].repeat(n);
        let headers = [STATUS_200, &header].concat();
        vec![frame(HEADERS, END_HEADERS | END_STREAM, 1, &headers)]
    };
    let page = outcome(head(256), None).await.unwrap();
    assert_eq!(page.headers.len(), 256);
    let error = outcome(head(257), None).await.unwrap_err();
    assert_eq!(error.reason(), "headers", "{error}");
}

fn goaway(code: u8) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[0, 0, 0, 0, 0, 0, 0, code])
}

fn reset(code: u8) -> Vec<u8> {
    frame(RST_STREAM, 0, 1, &[0, 0, 0, code])
}

#[tokio::test]
async fn a_connection_or_stream_that_the_server_ends_is_tried_again() {
    check_reason(vec![goaway(0)], None, &["connection"]).await;
    check_reason(vec![goaway(11)], None, &["connection"]).await;
    check_reason(vec![begun(), goaway(11)], None, &["connection"]).await;
    // The codes are: internal error, refused, cancelled.
    for code in [2, 7, 8] {
        check_reason(vec![reset(code)], None, &["connection"]).await;
        check_reason(vec![begun(), reset(code)], None, &["connection"]).await;
    }
}

/// A body that is shorter than its announced length is an error. Without an announced length the part that
/// came passes for a page: the client underneath takes an end without an error code for the end of the page,
/// and does not tell.
#[tokio::test]
async fn an_answer_that_is_broken_off_without_an_error_is_no_page_where_its_length_is_known() {
    // content-length: 9, from the table as well.
    let headers = [STATUS_200, &[0x0f, 0x0d, 1, b'9']].concat();
    let announced = frame(HEADERS, END_HEADERS, 1, &headers);
    for end in [goaway(0), reset(0)] {
        let answer = vec![announced.clone(), end];
        check_reason(answer, None, &["connection"]).await;
    }
    let page = outcome(vec![begun(), goaway(0)], None).await.unwrap();
    assert_eq!((page.status, page.body.len()), (200, 0));
}

/// Some floods end with a closed connection, and the timeout ends the others.
#[tokio::test]
async fn floods_of_frames_end_with_the_connection_or_in_time() {
    let either = &["connection", "timeout"];
    let ping = frame(PING, 0, 0, &[0; 8]);
    let settings = frame(SETTINGS, 0, 0, &[]);
    let empty = frame(0, 0, 1, &[]);
    let many_headers = frame(CONTINUATION, 0, 1, &[0x88; 1_000]);
    check_reason(vec![], Some(ping.repeat(100)), either).await;
    check_reason(vec![], Some(settings.repeat(100)), either).await;
    check_reason(vec![begun()], Some(empty.repeat(100)), either).await;
    let endless_head = frame(HEADERS, 0, 1, STATUS_200);
    check_reason(vec![endless_head], Some(many_headers), either).await;
}

#[tokio::test]
async fn what_is_not_http_2_is_an_error() {
    let beyond_what_was_allowed = frame(0, 0, 1, &[0; 20_000]);
    let of_nobody = frame(0, 0, 9, b"x");
    let no_such_setting = frame(SETTINGS, 0, 0, &[0; 5]);
    let not_packed = frame(HEADERS, END_HEADERS, 1, &[0xff; 40]);
    for bytes in [
        beyond_what_was_allowed,
        of_nobody,
        no_such_setting,
        not_packed,
    ] {
        check_reason(vec![bytes], None, &["connection"]).await;
    }
    check_reason(
        vec![b"HTTP/1.1 400 no\r\n\r\n".to_vec()],
        None,
        &["connection"],
    )
    .await;
}
