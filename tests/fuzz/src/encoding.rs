//! A body with a content-encoding: the first line is the limit of the body in bytes and the header's value,
//! as in `65536 gzip`; the rest is the body.

use std::io;
use std::pin::Pin;

use async_compression::Level::Fastest;
use async_compression::tokio::bufread::{
    BrotliEncoder, DeflateEncoder, GzipEncoder, ZlibEncoder, ZstdEncoder,
};
use axum::http;
use bytes::Bytes;
use crawler_fetch::http::{FetchSettings, fuzz};
use crawler_fetch::{Answer, FetchError};
use futures::stream;
use reqwest::header::{CONTENT_ENCODING, CONTENT_LENGTH, HeaderValue};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use url::Url;

use super::{block_on, first_line};

/// Limit if the first line has none.
const LIMIT: u16 = u16::MAX;

/// Checks that a body is the one that was encoded, up to its limit, that a body that was cut on its way does not
/// count as a shorter page, and that the pieces in which it arrives make no difference.
pub fn encoding(data: &[u8]) {
    let (first, body) = first_line(data);
    let n_digits = first.iter().take_while(|b| b.is_ascii_digit()).count();
    let (limit, coding) = first.split_at(n_digits);
    let limit = std::str::from_utf8(limit)
        .ok()
        .and_then(|limit| limit.parse().ok());
    let limit = usize::from(limit.unwrap_or(LIMIT));
    let Ok(coding) = HeaderValue::from_bytes(coding.trim_ascii()) else {
        return;
    };

    let whole = read(&coding, body, usize::MAX, limit);
    let pieces = read(&coding, body, 3, limit);
    match (&pieces, &whole) {
        // A fault beyond the limit may be seen or not, because the rest may have arrived already.
        (Ok(found), Err(_)) | (Err(_), Ok(found)) if found.truncated => {}
        _ => assert_eq!(pieces, whole, "it hangs on the pieces that it comes in"),
    }
    if let Ok(found) = whole {
        assert!(found.body.len() <= limit);
        assert!(!found.truncated || found.body.len() == limit);
    }
    match encoder(coding.to_str().unwrap_or_default(), body) {
        Some(encoder) => round_trip(&coding, encoder, body, limit),
        None => plain(body, limit),
    }
}

/// Result of reading an answer.
#[derive(Debug, PartialEq)]
struct Found {
    body: Bytes,
    truncated: bool,
}

fn read(
    coding: &HeaderValue,
    body: &[u8],
    piece: usize,
    limit: usize,
) -> Result<Found, &'static str> {
    let mut response = http::Response::new(in_pieces(body, piece));
    response
        .headers_mut()
        .insert(CONTENT_ENCODING, coding.clone());
    received(response, limit)
}

fn in_pieces(body: &[u8], piece: usize) -> reqwest::Body {
    let pieces: Vec<io::Result<Bytes>> = body
        .chunks(piece)
        .map(|piece| Ok(Bytes::copy_from_slice(piece)))
        .collect();
    reqwest::Body::wrap_stream(stream::iter(pieces))
}

fn received(response: http::Response<reqwest::Body>, limit: usize) -> Result<Found, &'static str> {
    let url: Url = "http://a.test/".parse().expect("it is a URL");
    let settings = FetchSettings::default();
    let answer = fuzz::answer(url, response.into(), &settings, limit as u64);
    match block_on(answer) {
        Ok(Answer::Page(page)) => Ok(Found {
            body: page.body,
            truncated: page.truncated,
        }),
        Ok(Answer::Redirect { to }) => panic!("it leads to {to}"),
        Err(error @ (FetchError::Encoding { .. } | FetchError::Connection { .. })) => {
            Err(error.reason())
        }
        Err(error) => panic!("{error}"),
    }
}

/// Returns an encoder for the coding that the header names.
fn encoder<'a>(coding: &str, body: &'a [u8]) -> Option<Pin<Box<dyn AsyncRead + 'a>>> {
    Some(match coding {
        "gzip" | "x-gzip" => Box::pin(GzipEncoder::with_quality(body, Fastest)),
        "br" => Box::pin(BrotliEncoder::with_quality(body, Fastest)),
        "zstd" => Box::pin(ZstdEncoder::with_quality(body, Fastest)),
        // The coding is used with its header and without.
        "deflate" if body.len().is_multiple_of(2) => {
            Box::pin(ZlibEncoder::with_quality(body, Fastest))
        }
        "deflate" => Box::pin(DeflateEncoder::with_quality(body, Fastest)),
        _ => return None,
    })
}

fn round_trip(
    coding: &HeaderValue,
    mut encoder: Pin<Box<dyn AsyncRead + '_>>,
    body: &[u8],
    limit: usize,
) {
    let mut encoded = Vec::new();
    block_on(encoder.read_to_end(&mut encoded)).expect("nothing fails in memory");
    assert_eq!(read(coding, &encoded, 5, limit), Ok(cut(body, limit)));
    for n in [encoded.len() / 2, encoded.len() - 1] {
        // Empty input is an empty body in any coding.
        if let (1.., Ok(found)) = (n, read(coding, &encoded[..n], 5, limit)) {
            assert!(found.truncated, "{n} of {} bytes are a page", encoded.len());
            assert_eq!(found, cut(body, limit));
        }
    }
    // Several streams one after the other are one body (RFC 1952, 2.2; RFC 8878, 3.1).
    if matches!(coding.as_bytes(), b"gzip" | b"zstd") {
        let twice = [encoded.as_slice(), &encoded].concat();
        let expected = cut(&[body, body].concat(), limit);
        assert_eq!(read(coding, &twice, 5, limit), Ok(expected));
    }
}

fn cut(body: &[u8], limit: usize) -> Found {
    Found {
        body: Bytes::copy_from_slice(&body[..body.len().min(limit)]),
        truncated: body.len() > limit,
    }
}

/// Checks a body without a coding, with its length announced, and with one byte more announced than there is.
fn plain(body: &[u8], limit: usize) {
    let announcing = |length: usize| {
        let mut response = http::Response::new(in_pieces(body, 5));
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
        received(response, limit)
    };
    assert_eq!(announcing(body.len()), Ok(cut(body, limit)));
    let expected = match body.len() > limit {
        true => Ok(cut(body, limit)),
        false => Err("connection"),
    };
    assert_eq!(announcing(body.len() + 1), expected);
}
