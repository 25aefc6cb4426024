//! The body of an answer: its content-encoding removed, and cut at a limit while it streams.
//!
//! One coding is removed. Several, one within the other, are asked for by nobody and serve to hide how
//! large a page becomes; together with unknown ones they are refused, because a rule could only take
//! what they leave for a page. What a decoder sets aside does not depend on what the server says: 8
//! MiB are the most that zstd may look back (RFC 9659), 16 MiB what brotli can.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Poll, ready};
use std::time::Duration;

use async_compression::tokio::bufread::{
    BrotliDecoder, DeflateDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder,
};
use async_compression::zstd::DParameter;
use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt as _, TryStreamExt as _, stream};
use reqwest::header::{self, HeaderMap};
use reqwest::{Method, Response};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _};
use tokio::time::Instant;
use tokio_util::io::StreamReader;

use super::{FetchSettings, failed};
use crate::fetch::FetchError;

/// What every request says of the codings that are understood.
pub(super) const ACCEPTED: &str = "gzip, br, zstd, deflate";

/// The most that is set aside for a body before any of it has come.
const MAX_RESERVED: u64 = 1 << 20;
/// As a power of two: how far zstd may look back.
const ZSTD_WINDOW: u32 = 23;

/// So long a part of a body has the least rate on the average: curl measures like that, too, with a
/// setting for the time (`--speed-time`).
const STRETCH: Duration = Duration::from_secs(10);

/// A body, as far as it was read.
#[derive(Debug)]
pub(super) struct Body {
    /// Content-encoding removed.
    pub(super) body: Bytes,
    /// It was longer than the limit.
    pub(super) truncated: bool,
    /// Bytes, before that was removed.
    pub(super) n_received: u64,
}

/// The body of an answer to such a request, with these codings in it.
pub(super) async fn read(
    response: Response,
    method: &Method,
    codings: &[String],
    settings: &FetchSettings,
    max_body: u64,
) -> Result<Body, FetchError> {
    let is_about_another = *method == Method::HEAD || response.status() == 304;
    let announced = response.headers().get(header::CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let announced = announced.filter(|_| !is_about_another && codings.is_empty());
    let expected = response.content_length().unwrap_or(0);
    let reserved = expected.min(max_body).min(MAX_RESERVED);
    let n_received = AtomicU64::new(0);
    let chunks = response.bytes_stream().map_err(io::Error::other);
    let mut raw = StreamReader::new(metered(chunks, settings.min_rate, &n_received));
    let failed = |error: io::Error| match error.downcast::<reqwest::Error>() {
        Ok(error) => failed::in_client(error, settings),
        Err(error) => match error.downcast::<FetchError>() {
            Ok(error) => error,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => short(),
            Err(error) => FetchError::Encoding {
                encoding: codings.join(", "),
                why: error.to_string(),
            },
        },
    };
    // Nothing is nothing in any coding.
    if raw.fill_buf().await.map_err(failed)?.is_empty() {
        return match announced {
            None | Some(0) => Ok(Body {
                body: Bytes::new(),
                truncated: false,
                n_received: 0,
            }),
            Some(_) => Err(short()),
        };
    }
    let mut decoded = decoded(raw, codings).await.map_err(failed)?;
    // One byte more than the limit tells whether there is more.
    let mut body = BytesMut::with_capacity(usize::try_from(reserved + 1).unwrap_or(0));
    let mut whole = (&mut decoded).take(max_body.saturating_add(1));
    while whole.read_buf(&mut body).await.map_err(failed)? > 0 {}
    let limit = usize::try_from(max_body).unwrap_or(usize::MAX);
    let truncated = body.len() > limit;
    // A stream of HTTP/2 that the server breaks off without an error code ends like one that is over.
    if !truncated && announced.is_some_and(|announced| (body.len() as u64) < announced) {
        return Err(short());
    }
    body.truncate(limit);
    Ok(Body {
        body: body.freeze(),
        truncated,
        n_received: n_received.load(Ordering::Relaxed),
    })
}

fn short() -> FetchError {
    FetchError::Connection {
        why: "the body ended before what was announced or encoded".to_owned(),
    }
}

/// A body as it comes, counted; an error once a stretch of it has less than the least rate.
fn metered(
    mut body: impl Stream<Item = io::Result<Bytes>> + Send + Unpin,
    min_rate: u64,
    n_received: &AtomicU64,
) -> impl Stream<Item = io::Result<Bytes>> + Send + Unpin {
    let least = min_rate.saturating_mul(STRETCH.as_secs());
    let mut end = Box::pin(tokio::time::sleep(STRETCH));
    let mut n = 0;
    stream::poll_fn(move |context| {
        loop {
            if let Poll::Ready(chunk) = body.poll_next_unpin(context) {
                if let Some(Ok(chunk)) = &chunk {
                    n += chunk.len() as u64;
                    n_received.fetch_add(chunk.len() as u64, Ordering::Relaxed);
                }
                return Poll::Ready(chunk);
            }
            ready!(end.as_mut().poll(context));
            if n < least {
                let (time, least) = (STRETCH, min_rate);
                let slow = FetchError::TooSlow { n, time, least };
                return Poll::Ready(Some(Err(io::Error::other(slow))));
            }
            n = 0;
            end.as_mut().reset(Instant::now() + STRETCH);
        }
    })
}

/// What was done to the body, in this order.
pub(super) fn codings(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(header::CONTENT_ENCODING).iter();
    let values = values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let values: Vec<String> = values.collect();
    let codings = values.iter().flat_map(|value| value.split(','));
    let codings = codings.map(|coding| coding.trim().to_ascii_lowercase());
    let codings = codings.filter(|coding| !coding.is_empty() && coding != "identity");
    codings.collect()
}

async fn decoded<'a>(
    mut raw: impl AsyncBufRead + Send + Unpin + 'a,
    codings: &[String],
) -> io::Result<Box<dyn AsyncRead + Send + Unpin + 'a>> {
    let coding = match codings {
        [] => return Ok(Box::new(raw)),
        [coding] => coding.as_str(),
        _ => {
            let n = codings.len();
            return Err(io::Error::other(format!(
                "{n} codings one within the other"
            )));
        }
    };
    Ok(match coding {
        "gzip" | "x-gzip" => {
            let mut decoder = GzipDecoder::new(raw);
            // One after the other are one body (RFC 1952, 2.2).
            decoder.multiple_members(true);
            Box::new(decoder)
        }
        "br" => Box::new(BrotliDecoder::new(raw)),
        "zstd" => {
            let window = DParameter::window_log_max(ZSTD_WINDOW);
            let mut decoder = ZstdDecoder::with_params(raw, &[window]);
            decoder.multiple_members(true);
            Box::new(decoder)
        }
        // Some servers leave out the zlib header, as browsers know.
        "deflate" if is_zlib(raw.fill_buf().await?) => Box::new(ZlibDecoder::new(raw)),
        "deflate" => Box::new(DeflateDecoder::new(raw)),
        _ => return Err(io::Error::other("it is none of those that were asked for")),
    })
}

/// Whether a stream begins as zlib does: method 8, and a window that zlib knows.
fn is_zlib(begin: &[u8]) -> bool {
    begin
        .first()
        .is_some_and(|first| first & 0x0f == 8 && first >> 4 <= 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A body of so many bytes in every so many seconds.
    fn steady(n: usize, every: u64) -> impl Stream<Item = io::Result<Bytes>> + Send + Unpin {
        let chunks = stream::unfold((), move |()| async move {
            tokio::time::sleep(Duration::from_secs(every)).await;
            Some((Ok(Bytes::from(vec![0; n])), ()))
        });
        chunks.boxed()
    }

    #[track_caller]
    fn is_slow(error: io::Error, expected: u64) {
        let slow: FetchError = error.downcast().unwrap();
        let FetchError::TooSlow { n, time, least } = slow else {
            panic!("{slow}");
        };
        assert_eq!((n, time), (expected, STRETCH));
        assert!(n < least * STRETCH.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_below_the_least_rate_ends_after_a_stretch_and_one_above_goes_on() {
        let begun = Instant::now();
        let n_received = AtomicU64::new(0);
        let mut slow = metered(steady(1, 1), 100, &n_received);
        let error = loop {
            if let Err(error) = slow.next().await.unwrap() {
                break error;
            }
        };
        // The chunk of the last second and the end of the stretch come at the same moment.
        assert!((9..=10).contains(&n_received.load(Ordering::Relaxed)));
        is_slow(error, n_received.load(Ordering::Relaxed));
        assert!(begun.elapsed() < STRETCH + Duration::from_secs(2));

        // Much at once does not make up for a stretch with nothing.
        let seldom = metered(steady(1_500, 15), 75, &n_received);
        let error = seldom.take(3).try_collect::<Vec<_>>().await.unwrap_err();
        is_slow(error, 0);
        let fast = metered(steady(1_000, 9), 100, &n_received);
        let chunks: Vec<_> = fast.take(20).try_collect().await.unwrap();
        assert_eq!(chunks.len(), 20);
        let any = metered(steady(1, 3_600), 0, &n_received);
        let chunks: Vec<_> = any.take(3).try_collect().await.unwrap();
        assert_eq!(chunks.len(), 3);
    }
}
