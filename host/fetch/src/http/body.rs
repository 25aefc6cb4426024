//! The body of an answer: its content-encoding removed, and cut at a limit while it streams.
//!
//! One coding is removed. No request asks for several nested codings, and they serve to hide how large a page
//! becomes. They are refused like unknown codings, because a rule would otherwise take the remaining bytes
//! for a page. The memory of a decoder does not depend on the server: zstd may look back at most 8 MiB (RFC
//! 9659), brotli 16 MiB.

use std::future::ready;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
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
use crate::FetchError;
use crate::tape::Tape;
use crawler_process::memory::MemoryReservation;

/// Value of `accept-encoding` in every request.
pub(super) const ACCEPTED: &str = "gzip, br, zstd, deflate";

/// Maximum memory in bytes that is reserved for a body before any of it has arrived.
const MAX_RESERVED: u64 = 1 << 20;
/// Size in bytes below which a body is copied, so that it does not keep alive a buffer that may be many times
/// as large.
const SMALL: usize = 4 << 10;
/// Window of zstd, as a power of two.
const ZSTD_WINDOW: u32 = 23;

/// Length of the stretch over which the rate of a body is averaged. curl measures in the same way, with a
/// setting for the time (`--speed-time`).
const STRETCH: Duration = Duration::from_secs(10);

/// A body, as far as it was read.
#[derive(Debug)]
pub(super) struct Body {
    /// Body with its content-encoding removed.
    pub(super) body: Bytes,
    /// True if the body was longer than the limit.
    pub(super) truncated: bool,
    /// Number of bytes received, before decoding.
    pub(super) n_received: u64,
}

/// Limit on the length of a body in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Limit {
    /// A longer body is cut.
    Cut(u64),
    /// A longer body is an error, and is not read if its length is announced.
    Whole(u64),
}

/// Reads the body of an answer to a request with this method, encoded with these codings. The bytes read so
/// far are charged to the account. If there is a tape, it gets them as they are received.
pub(super) async fn read(
    response: Response,
    method: &Method,
    codings: &[String],
    settings: &FetchSettings,
    limit: Limit,
    mut held: MemoryReservation,
    tape: Option<&Tape>,
) -> Result<Body, FetchError> {
    let (Limit::Cut(max_body) | Limit::Whole(max_body)) = limit;
    let is_about_another = *method == Method::HEAD || response.status() == 304;
    let announced = response.headers().get(header::CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let announced = announced.filter(|_| !is_about_another && codings.is_empty());
    if let (Limit::Whole(max), Some(announced)) = (limit, announced)
        && announced > max
    {
        return Err(FetchError::FileSize { max });
    }
    let expected = response.content_length().unwrap_or(0);
    let reserved = expected.min(max_body).min(MAX_RESERVED);
    let n_received = AtomicU64::new(0);
    let chunks = response.bytes_stream().map_err(io::Error::other);
    let chunks = chunks.inspect_ok(move |chunk| {
        if let Some(tape) = tape {
            tape.add(chunk);
        }
    });
    let mut chunks = metered(chunks, settings.min_rate, &n_received);
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
    // One byte more than the limit tells if there is more.
    let enough = max_body.saturating_add(1);
    let mut body = match codings {
        [] => joined(chunks, reserved, enough, &mut held)
            .await
            .map_err(failed)?,
        _ => match first(&mut chunks).await.map_err(failed)? {
            // An empty body is valid in every coding.
            None => Bytes::new(),
            Some(first) => {
                let raw = StreamReader::new(stream::once(ready(Ok(first))).chain(chunks));
                let mut body = BytesMut::with_capacity(usize::try_from(reserved).unwrap_or(0));
                let decoded = decoded(raw, codings).await.map_err(failed)?;
                let mut whole = decoded.take(enough);
                while whole.read_buf(&mut body).await.map_err(failed)? > 0 {
                    held.set(body.len() as u64);
                }
                body.freeze()
            }
        },
    };
    let max_length = usize::try_from(max_body).unwrap_or(usize::MAX);
    let truncated = body.len() > max_length;
    if let (Limit::Whole(max), true) = (limit, truncated) {
        return Err(FetchError::FileSize { max });
    }
    // An HTTP/2 stream that the server breaks off without an error code ends like a complete one.
    if !truncated && announced.is_some_and(|announced| (body.len() as u64) < announced) {
        return Err(short());
    }
    body.truncate(max_length);
    Ok(Body {
        body,
        truncated,
        n_received: n_received.load(Ordering::Relaxed),
    })
}

/// Returns the first chunk that is not empty. Returns `None` if there is none.
async fn first(
    chunks: &mut (impl Stream<Item = io::Result<Bytes>> + Unpin),
) -> io::Result<Option<Bytes>> {
    loop {
        match chunks.try_next().await? {
            Some(empty) if empty.is_empty() => {}
            chunk => return Ok(chunk),
        }
    }
}

/// Joins the chunks until there are `enough` bytes. Most pages come in one chunk, which is not copied.
async fn joined(
    mut chunks: impl Stream<Item = io::Result<Bytes>> + Unpin,
    reserved: u64,
    enough: u64,
    held: &mut MemoryReservation,
) -> io::Result<Bytes> {
    let is_enough = |n: usize| n as u64 >= enough;
    let Some(only) = first(&mut chunks).await? else {
        return Ok(Bytes::new());
    };
    // A chunk keeps the whole buffer alive that was read with it.
    let alone = |only: Bytes| match only.len() < SMALL {
        true => Bytes::copy_from_slice(&only),
        false => only,
    };
    if is_enough(only.len()) {
        return Ok(alone(only));
    }
    let Some(second) = first(&mut chunks).await? else {
        return Ok(alone(only));
    };
    let reserved = usize::try_from(reserved).unwrap_or(0);
    let mut all = BytesMut::with_capacity(reserved.max(only.len() + second.len()));
    all.extend_from_slice(&only);
    all.extend_from_slice(&second);
    drop((only, second));
    while !is_enough(all.len())
        && let Some(chunk) = chunks.try_next().await?
    {
        all.extend_from_slice(&chunk);
        held.set(all.len() as u64);
    }
    Ok(all.freeze())
}

fn short() -> FetchError {
    FetchError::Connection {
        why: "the body ended before what was announced or encoded".to_owned(),
    }
}

/// Counts the bytes of a body as they arrive, and fails once a stretch of it is slower than the minimum rate.
fn metered(
    mut body: impl Stream<Item = io::Result<Bytes>> + Send + Unpin,
    min_rate: u64,
    n_received: &AtomicU64,
) -> impl Stream<Item = io::Result<Bytes>> + Send + Unpin {
    let least = min_rate.saturating_mul(STRETCH.as_secs());
    // The clock starts with the first wait: bytes that are there already need no clock.
    let mut end = None;
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
            let end = end.get_or_insert_with(|| Box::pin(tokio::time::sleep(STRETCH)));
            std::task::ready!(end.as_mut().poll(context));
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

/// Returns the codings that were applied to the body, in this order.
pub(super) fn codings(headers: &HeaderMap) -> Vec<String> {
    if !headers.contains_key(header::CONTENT_ENCODING) {
        return Vec::new();
    }
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
    let [coding] = codings else {
        let n = codings.len();
        return Err(io::Error::other(format!(
            "{n} codings one within the other"
        )));
    };
    Ok(match coding.as_str() {
        "gzip" | "x-gzip" => {
            let mut decoder = GzipDecoder::new(raw);
            // Consecutive members form one body (RFC 1952, 2.2).
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
        // Some servers leave out the zlib header; browsers accept that, too.
        "deflate" if is_zlib(raw.fill_buf().await?) => Box::new(ZlibDecoder::new(raw)),
        "deflate" => Box::new(DeflateDecoder::new(raw)),
        _ => return Err(io::Error::other("it is none of those that were asked for")),
    })
}

/// Returns true if a stream begins like zlib: method 8, and a window that zlib knows.
fn is_zlib(begin: &[u8]) -> bool {
    begin
        .first()
        .is_some_and(|first| first & 0x0f == 8 && first >> 4 <= 7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_process::memory::Account;

    #[tokio::test]
    async fn chunks_are_one_body_as_far_as_it_is_wanted() {
        let large = "x".repeat(SMALL);
        for (chunks, enough, expected) in [
            (&[][..], 9, String::new()),
            (&["", ""], 9, String::new()),
            (&["ab"], 9, "ab".to_owned()),
            (
                &["", "ab", "", "", "c", "", "def", ""],
                9,
                "abcdef".to_owned(),
            ),
            (&["abc", "def"], 6, "abcdef".to_owned()),
            (&["abc", "def", "g"], 6, "abcdef".to_owned()),
            (&["abcdef", "g"], 6, "abcdef".to_owned()),
            (&[&large, "g"], 6, large.clone()),
            (&[&large], 1 << 20, large.clone()),
        ] {
            let all: Vec<_> = chunks
                .iter()
                .map(|c| Ok(Bytes::from(c.to_string())))
                .collect();
            let account = Account::default();
            let mut held = account.reserve(0);
            let body = joined(stream::iter(all), 3, enough, &mut held);
            assert_eq!(body.await.unwrap(), expected, "{chunks:?}");
        }
        let broken = [Ok(Bytes::from("a")), Err(io::Error::other("reset"))];
        let mut held = Account::default().reserve(0);
        let broken = joined(stream::iter(broken), 0, 9, &mut held);
        assert!(broken.await.is_err());
    }

    #[tokio::test]
    async fn a_body_counts_while_it_is_read() {
        let account = Account::default();
        let mut held = account.reserve(0);
        let (give, chunks) = tokio::sync::mpsc::channel(4);
        let chunks = tokio_stream::wrappers::ReceiverStream::new(chunks);
        let mut body = Box::pin(joined(chunks, 0, u64::MAX, &mut held));
        for _ in 0..3 {
            give.try_send(Ok(Bytes::from(vec![0; 1 << 20]))).unwrap();
        }
        assert!(futures::poll!(&mut body).is_pending());
        assert!(account.bytes() >= 3 << 20, "{}", account.bytes());
        drop(give);
        assert_eq!(body.as_mut().await.unwrap().len(), 3 << 20);
        drop(body);
        drop(held);
        assert_eq!(account.bytes(), 0);
    }

    /// Returns a body that sends `n` bytes every `every` seconds.
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

        // Many bytes at once do not make up for a stretch without any.
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
