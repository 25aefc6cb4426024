//! Stages until there is a text: guard, fetch and decode.

use std::hint::black_box;
use std::io;
use std::net::IpAddr;
use std::path::Path;

use async_compression::tokio::bufread::GzipEncoder;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderValue, Response};
use bytes::Bytes;
use crawler_fetch::address_policy::AddressPolicy;
use crawler_fetch::http::{FetchSettings, fuzz};
use crawler_fetch::robots::Rules;
use crawler_fetch::{Answer, charset};
use crawler_model::page::CharsetSource;
use futures::stream;
use tokio::io::AsyncReadExt as _;
use url::Position;

use crate::Repeated;
use crate::sample::{runtime, sample};

/// Bytes that arrive at once.
const PIECE: usize = 4 << 10;
const MAX_BODY: u64 = 8 << 20;

const ROBOTS: &str = "
user-agent: elsewhere
disallow: /

user-agent: *
disallow: /private/
disallow: /search
disallow: /*?sort=
disallow: /*.pdf$
disallow: /cart
allow: /cart/help
disallow: /login
disallow: /api/
allow: /api/docs/
";

/// Judges each link of the page by address policy and robots.txt. Turns of hosts are left to the benchmark `fetch`.
pub(crate) fn guard(_folder: &Path) -> Repeated {
    let links = sample().links();
    let policy = AddressPolicy::new(vec!["10.0.0.0/8".parse().expect("it is a network")]);
    policy.set_own_nodes(["master.bench.test:7001".to_owned()]);
    let address: IpAddr = "93.184.216.34".parse().expect("it is an address");
    let rules = Rules::parse(ROBOTS.as_bytes(), "crawler");
    Box::new(move || {
        for link in &links {
            policy.check(link).expect("it may be asked");
            let judged = policy.check_address(address, link.port_or_known_default());
            judged.expect("it is public");
            black_box(rules.allows(&link[Position::BeforePath..Position::AfterQuery]));
        }
    })
}

/// Makes a page of an answer with a gzip body, without a connection. Its text is decoded too.
pub(crate) fn fetch(_folder: &Path) -> Repeated {
    let page = sample();
    let runtime = runtime();
    let mut body = Vec::new();
    let mut encoder = GzipEncoder::new(page.html.as_bytes());
    let encoded = runtime.block_on(encoder.read_to_end(&mut body));
    encoded.expect("nothing fails in memory");
    let pieces: Vec<Bytes> = body.chunks(PIECE).map(Bytes::copy_from_slice).collect();
    let settings = FetchSettings::default();
    Box::new(move || {
        let pieces = stream::iter(pieces.clone().into_iter().map(Ok::<Bytes, io::Error>));
        let mut response = Response::new(reqwest::Body::wrap_stream(pieces));
        let headers = response.headers_mut();
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html"));
        let answer = fuzz::answer(page.url.clone(), response.into(), &settings, MAX_BODY);
        match runtime.block_on(answer).expect("it can be read") {
            Answer::Page(fetched) => assert_eq!(fetched.body.len(), page.html.len()),
            Answer::Redirect { to } => panic!("it leads to {to}"),
        }
    })
}

/// Decodes the page three times: as UTF-8 by its header and by its own declaration, and in another charset. No charset
/// is guessed: that takes a hundred times as long, and nothing else would be seen beside it.
pub(crate) fn decode(_folder: &Path) -> Repeated {
    let page = sample();
    let utf_8 = Bytes::from(page.html.clone());
    let bodies = [
        (
            utf_8.clone(),
            "text/html; charset=utf-8",
            CharsetSource::Header,
        ),
        (utf_8, "text/html", CharsetSource::Document),
        (
            latin(&page.html),
            "text/html; charset=iso-8859-1",
            CharsetSource::Header,
        ),
    ];
    Box::new(move || {
        for (body, content_type, source) in &bodies {
            let text = charset::decode(body, Some(content_type), page.url.domain());
            assert_eq!(black_box(text).source, *source);
        }
    })
}

fn latin(text: &str) -> Bytes {
    let bytes = text.chars().map(|c| u8::try_from(c).unwrap_or(b'?'));
    bytes.collect::<Vec<u8>>().into()
}
