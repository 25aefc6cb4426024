//! Tests of exchanges that are recorded, and of pages that come from a record.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_compression::tokio::write::GzipEncoder;
use async_trait::async_trait;

use super::*;
use crate::tape::Tape;
use crawler_model::exchange::{BodyForm, Exchange, Redirects};

/// Exchanges of one page in memory, in the place of an archive.
#[derive(Debug)]
struct Memory(Vec<Exchange>);

#[async_trait]
impl Recorded for Memory {
    async fn answer(
        &self,
        method: &str,
        url: &Url,
        body: Option<&Bytes>,
        redirects: Option<&Redirects>,
        _most: u64,
    ) -> Result<Option<Exchange>, String> {
        let body = body.cloned().unwrap_or_default();
        let is_it = |exchange: &&Exchange| {
            (exchange.method.as_str(), &exchange.url) == (method, url)
                && exchange.request_body == body
        };
        if let Some(redirects) = redirects {
            let first = &self.0[0];
            let began = (redirects.method.as_str(), &redirects.url, &redirects.body);
            assert_eq!(began, (&first.method[..], &first.url, &first.request_body));
        }
        let of_page = self.0.get(redirects.map_or(0, |redirects| redirects.n));
        Ok(of_page.filter(is_it).cloned())
    }
}

async fn zipped(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzipEncoder::new(Vec::new());
    encoder.write_all(plain).await.unwrap();
    encoder.shutdown().await.unwrap();
    encoder.into_inner()
}

/// Fetches a page from a server and then from its record, and compares the two. Returns the exchanges.
async fn check(web: &Web, request: FetchRequest) -> Vec<Exchange> {
    let tape = Arc::new(Tape::default());
    let recording = FetchRequest {
        tape: Some(Arc::clone(&tape)),
        ..request.clone()
    };
    let first = page(recording).await;
    let n_heard = web.heard().len();
    let exchanges = tape.take();
    assert_eq!(exchanges.len(), n_heard, "each request is on the tape");
    // Neither is the address allowed here, nor is anything asked.
    let settings = FetchSettings::default();
    let replaying = fetcher_with(&[], &[], settings).replaying(Arc::new(Memory(exchanges.clone())));
    assert!(replaying.is_prepared(&request));
    let fetched = replaying.fetch(request).await.unwrap();
    assert_eq!(fetched.host_ready_at, 0);
    let Answer::Page(again) = fetched.answer else {
        panic!("not a page");
    };
    let seen = |page: &Page| {
        let headers = page.headers.iter();
        let headers = headers.map(|(name, value)| format!("{name}: {value}"));
        (
            page.url.clone(),
            page.redirects.clone(),
            (page.status, page.truncated, page.fetched_at),
            headers.collect::<Vec<_>>(),
            page.body.clone(),
            page.metadata(),
        )
    };
    assert_eq!(seen(&again), seen(&first));
    assert_eq!(web.heard().len(), n_heard, "nothing is asked");
    exchanges
}

#[tokio::test]
async fn a_page_from_its_record_is_the_one_from_the_site() {
    let body = zipped(b"<p>hello").await;
    let sent = body.clone();
    let web = Web::new(move |request| {
        let path = request.split(' ').nth(1).unwrap();
        Reply::Close(match path {
            "/1" => answer("302 Found", &["location: /2"], b"here"),
            "/2" => answer("200 OK", &["content-encoding: gzip", "x: y"], &sent),
            _ => answer("404 Not Found", &[], b""),
        })
    })
    .await;
    let exchanges = check(&web, get(web.url("/1"))).await;
    let forms: Vec<_> = exchanges.iter().map(|e| (e.status, e.body_form)).collect();
    assert_eq!(forms, [(302, BodyForm::Unread), (200, BodyForm::Sent)]);
    assert_eq!(exchanges[1].body, body, "as it was sent");
    assert_eq!(exchanges[1].ended_at, 5_000);
}

#[tokio::test]
async fn a_page_that_is_asked_twice_has_both_of_its_answers() {
    let n_asked = AtomicUsize::new(0);
    let web = Web::new(move |request| {
        let path = request.split(' ').nth(1).unwrap();
        let to = |path: &str| answer("302 Found", &[&format!("location: {path}")], b"");
        Reply::Close(match (path, n_asked.fetch_add(1, Ordering::Relaxed)) {
            ("/a", 0) => to("/cookie"),
            ("/cookie", _) => to("/a"),
            _ => answer("200 OK", &[], b"page"),
        })
    })
    .await;
    let exchanges = check(&web, get(web.url("/a"))).await;
    let statuses: Vec<_> = exchanges.iter().map(|exchange| exchange.status).collect();
    assert_eq!(statuses, [302, 302, 200]);
}

#[tokio::test]
async fn a_chunked_body_is_recorded_without_its_chunks() {
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n";
    let web = Web::saying(format!("{head}3\r\nabc\r\n0\r\n\r\n")).await;
    let chunked = check(&web, get(web.url("/chunked"))).await;
    assert_eq!(&chunked[0].body[..], b"abc");
}

#[tokio::test]
async fn a_cut_body_and_a_posted_form_are_the_same_from_a_record() {
    let web = Web::saying(answer("404 Not Found", &[], b"abcdefgh")).await;
    let request = FetchRequest {
        method: "POST".into(),
        body: Some(Bytes::from_static(b"q=1")),
        max_body: 5,
        ..get(web.url("/search"))
    };
    let exchanges = check(&web, request).await;
    assert_eq!(exchanges[0].body_form, BodyForm::Cut);
    assert_eq!(&exchanges[0].body[..], b"abcde");
    assert_eq!(&exchanges[0].request_body[..], b"q=1");
}

fn recorded(headers: &[(&str, &str)], body: &'static [u8]) -> (FetchRequest, Arc<Memory>) {
    let url: Url = "http://a.test/".parse().unwrap();
    let header =
        |(name, value): &(&str, &str)| ((*name).to_owned(), Bytes::from((*value).to_owned()));
    let exchange = Exchange {
        url: url.clone(),
        method: "GET".to_owned(),
        request_headers: Vec::new(),
        request_body: Bytes::new(),
        status: 200,
        headers: headers.iter().map(header).collect(),
        body: Bytes::from_static(body),
        body_form: BodyForm::Sent,
        began_at: 7,
        ended_at: 7,
        record: Default::default(),
    };
    (get(url), Arc::new(Memory(vec![exchange])))
}

#[tokio::test]
async fn a_header_that_is_not_valid_is_left_out_of_a_page() {
    let headers = [("bad name", "1"), ("a", "\u{0}"), ("b", "2")];
    let (request, memory) = recorded(&headers, b"page");
    let fetched = fetcher().replaying(memory).fetch(request).await.unwrap();
    let Answer::Page(page) = fetched.answer else {
        panic!("not a page");
    };
    let names: Vec<String> = page
        .headers
        .iter()
        .map(|(name, _)| name.to_owned())
        .collect();
    assert_eq!(
        (names, &page.body[..]),
        (vec!["b".to_owned()], &b"page"[..])
    );
}

#[tokio::test]
async fn a_body_that_cannot_be_decoded_is_not_tried_again() {
    let cut = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x4b";
    let (request, memory) = recorded(&[("content-encoding", "gzip")], cut);
    let failed = fetcher().replaying(memory).fetch(request).await;
    let error = failed.unwrap_err().error;
    assert!(!error.is_transient(), "{error}");
}

#[tokio::test]
async fn a_page_that_is_not_recorded_fails_by_its_own_reason() {
    let fetcher = fetcher().replaying(Arc::new(Memory(Vec::new())));
    let url = "http://a.test/".parse().unwrap();
    let error = fetcher.fetch(get(url)).await.unwrap_err().error;
    assert_eq!(error.reason(), "not-in-archive");
    assert!(!error.is_transient());
}
