//! Bodies of calls to a worker, gathered within a bound and checked before they are decoded.
//!
//! An entry of a list may have two bytes in a message, and takes a hundred times as many once it is decoded. So each message
//! is walked once, by the functions of the decoder itself, and refused if one of its lists has too many entries. What
//! the walk cannot read is refused here, too: the decoder never gets a message that was not counted to its end.

use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use hyper::body::Frame;
use prost::DecodeError;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use tonic::Status;
use tonic::body::Body;

use crawler_fetch::turns::call::{MAX_ASKS, MAX_NAME};
use crawler_model::crawl::HEADERS_MAX;
use crawler_worker::links::MAX_LINKS;

use super::LINKS_MAX;

/// Bytes of any message to a worker but one with links. The largest one asks for turns of many hosts.
const OTHERS_MAX: usize = 1 << 20;
/// Bytes of an ask beside the name of its host.
const ASK_BYTES: usize = 128;
const _: () = assert!(
    MAX_ASKS * (MAX_NAME + ASK_BYTES) < OTHERS_MAX,
    "asks for turns fit"
);

/// Field of the links in `ApplyLinksRequest`.
const LINKS: u32 = 7;
/// Field of the headers in `ShardLink`.
const HEADERS: u32 = 3;
/// Field of the asks in `TakeTurnsRequest`.
const ASKS: u32 = 3;
/// Bytes before a message: a flag, and the length in four bytes.
const PREFIX: usize = 5;

/// Bounds of the message of one call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bound {
    n_bytes: usize,
    /// Counts the lists of a message. The error says what is too much.
    check: fn(&[u8]) -> Result<(), String>,
}

impl Bound {
    /// Returns the bounds of the call at a path.
    pub(super) fn at(path: &str) -> Self {
        match path.rsplit('/').next() {
            Some("ApplyLinks") => Self {
                n_bytes: LINKS_MAX,
                check: check_links,
            },
            Some("TakeTurns") => Self {
                n_bytes: OTHERS_MAX,
                check: check_asks,
            },
            // The messages of other calls have no lists.
            Some(_) | None => Self {
                n_bytes: OTHERS_MAX,
                check: |_message| Ok(()),
            },
        }
    }
}

/// Body of a call, which comes as a whole once it is checked, or breaks off where it is too large.
pub(super) struct CheckedBody {
    body: Body,
    bound: Bound,
    /// Bytes that have come.
    gathered: BytesMut,
    is_over: bool,
}

impl CheckedBody {
    pub(super) fn new(bound: Bound, body: Body) -> Self {
        Self {
            body,
            bound,
            gathered: BytesMut::new(),
            is_over: false,
        }
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), Status> {
        self.gathered.extend_from_slice(bytes);
        let Some([_flag, length @ ..]) = self.gathered.first_chunk::<PREFIX>() else {
            return Ok(());
        };
        let (n_bytes, max) = (u32::from_be_bytes(*length) as usize, self.bound.n_bytes);
        if n_bytes > max {
            let why = format!("a message of {n_bytes} bytes, at most {max}");
            return Err(Status::out_of_range(why));
        }
        match self.gathered.len() > PREFIX + n_bytes {
            true => Err(Status::invalid_argument("more than one message in a call")),
            false => Ok(()),
        }
    }

    /// Returns all that has come, if it is within the bounds; `None` if nothing has.
    fn whole(&mut self) -> Result<Option<Frame<Bytes>>, Status> {
        let whole = mem::take(&mut self.gathered).freeze();
        let message = whole.get(PREFIX..).unwrap_or_default();
        (self.bound.check)(message).map_err(Status::invalid_argument)?;
        Ok(Some(whole)
            .filter(|whole| !whole.is_empty())
            .map(Frame::data))
    }
}

impl hyper::body::Body for CheckedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        while !this.is_over {
            let frame = ready!(Pin::new(&mut this.body).poll_frame(context));
            let added = match frame {
                // Trailers of a request say nothing.
                Some(Ok(frame)) => this.add(frame.data_ref().map_or(&[][..], |bytes| &bytes[..])),
                Some(Err(status)) => Err(status),
                None => {
                    this.is_over = true;
                    return Poll::Ready(this.whole().transpose());
                }
            };
            if let Err(status) = added {
                this.is_over = true;
                return Poll::Ready(Some(Err(status)));
            }
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.is_over
    }
}

/// Checks the numbers of links, and of the headers of each, in an `ApplyLinksRequest`.
fn check_links(message: &[u8]) -> Result<(), String> {
    let mut n_links = 0;
    each_of(message, LINKS, |link| {
        n_links += 1;
        if n_links > MAX_LINKS {
            return Err(format!("more than {MAX_LINKS} links at once"));
        }
        let mut n_headers = 0;
        each_of(link, HEADERS, |_header| {
            n_headers += 1;
            match n_headers > HEADERS_MAX {
                true => Err(format!("a link with more than {HEADERS_MAX} headers")),
                false => Ok(()),
            }
        })
    })
}

/// Checks the number of asks in a `TakeTurnsRequest`.
fn check_asks(message: &[u8]) -> Result<(), String> {
    let mut n_asks = 0;
    each_of(message, ASKS, |_ask| {
        n_asks += 1;
        match n_asks > MAX_ASKS {
            true => Err(format!("more than {MAX_ASKS} hosts at once")),
            false => Ok(()),
        }
    })
}

/// Hands on the content of each entry of a list, which is the field of this number. Stops at the first error.
fn each_of<'a>(
    message: &'a [u8],
    list: u32,
    mut each: impl FnMut(&'a [u8]) -> Result<(), String>,
) -> Result<(), String> {
    let broken = |error: DecodeError| error.to_string();
    let mut rest = message;
    while !rest.is_empty() {
        let (field, wire_type) = decode_key(&mut rest).map_err(broken)?;
        match wire_type {
            WireType::LengthDelimited if field == list => {
                let n_bytes = decode_varint(&mut rest).map_err(broken)?;
                let n_bytes = usize::try_from(n_bytes).unwrap_or(usize::MAX);
                let Some((entry, later)) = rest.split_at_checked(n_bytes) else {
                    return Err("a field is longer than its message".to_owned());
                };
                each(entry)?;
                rest = later;
            }
            WireType::StartGroup | WireType::EndGroup => {
                return Err("messages to a worker have no groups".to_owned());
            }
            WireType::Varint
            | WireType::SixtyFourBit
            | WireType::LengthDelimited
            | WireType::ThirtyTwoBit => {
                skip_field(wire_type, field, &mut rest, DecodeContext::default())
                    .map_err(broken)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::poll_fn;

    use futures::stream;
    use prost::Message as _;
    use tonic::Code;

    use super::*;
    use crawler_proto as proto;

    fn call(links: Vec<proto::ShardLink>) -> Vec<u8> {
        let call = proto::ApplyLinksRequest {
            resource_id: u64::MAX,
            shard: 3,
            epoch: 1 << 40,
            run: 2,
            from: 4,
            first: 9,
            links,
        };
        call.encode_to_vec()
    }

    fn link(n_headers: usize) -> proto::ShardLink {
        let header = proto::LinkHeader {
            name: "accept".to_owned(),
            value: String::new(),
        };
        proto::ShardLink {
            url: "http://a.test/".to_owned(),
            // It looks like links.
            body: Some([0x3a, 0].repeat(600)),
            headers: vec![header; n_headers],
            priority: -7,
            state: vec![7; 4],
            reload: true,
            ..proto::ShardLink::default()
        }
    }

    fn asks(n_asks: usize) -> Vec<u8> {
        let ask = proto::TurnAsk {
            // It looks like asks.
            host: "\u{1a}\0".repeat(MAX_NAME / 2),
            delay_ms: u64::MAX,
            wanted: true,
            in_flight: true,
            ended: Some(proto::TurnEnd {
                ago_ms: u64::MAX,
                pause_ms: u64::MAX,
            }),
        };
        let call = proto::TakeTurnsRequest {
            worker: "worker-1".to_owned(),
            incarnation: u64::MAX,
            asks: vec![ask; n_asks],
        };
        call.encode_to_vec()
    }

    /// Returns a message with its prefix.
    fn framed(message: &[u8]) -> Vec<u8> {
        let length = u32::try_from(message.len()).unwrap();
        [&[0], &length.to_be_bytes()[..], message].concat()
    }

    /// Returns what is left of a body that comes in pieces of this size.
    async fn passed(path: &str, bytes: &[u8], size: usize) -> Result<Vec<u8>, Status> {
        let pieces = bytes.chunks(size).map(Bytes::copy_from_slice);
        let pieces: Vec<_> = pieces.map(Ok::<_, Infallible>).collect();
        let body = axum::body::Body::from_stream(stream::iter(pieces));
        let mut body = CheckedBody::new(Bound::at(path), Body::new(body));
        let mut passed = Vec::new();
        loop {
            let frame =
                poll_fn(|context| hyper::body::Body::poll_frame(Pin::new(&mut body), context));
            match frame.await.transpose()? {
                Some(frame) => passed.extend(frame.into_data().unwrap()),
                None => return Ok(passed),
            }
        }
    }

    async fn refused(path: &str, sent: &[u8]) -> Status {
        passed(path, sent, 7).await.unwrap_err()
    }

    #[test]
    fn r03_links_and_headers_beyond_their_bounds_are_refused() {
        let empty = proto::ShardLink::default();
        for links in [
            Vec::new(),
            vec![link(3), link(2)],
            vec![empty.clone(); MAX_LINKS],
            vec![link(HEADERS_MAX); 3],
        ] {
            assert_eq!(check_links(&call(links)), Ok(()));
        }
        let many = check_links(&call(vec![empty; MAX_LINKS + 1]));
        assert_eq!(many, Err("more than 500 links at once".to_owned()));
        let long = check_links(&call(vec![link(1), link(HEADERS_MAX + 1)]));
        assert_eq!(long, Err("a link with more than 64 headers".to_owned()));
        // Fields of later versions are passed over.
        let mut later = call(vec![link(1)]);
        later.extend([0x79, 1, 2, 3, 4, 5, 6, 7, 8]);
        later.extend([0x7d, 1, 2, 3, 4]);
        later.extend(call(vec![link(2)]));
        proto::ApplyLinksRequest::decode(&later[..]).unwrap();
        assert_eq!(check_links(&later), Ok(()));
    }

    #[test]
    fn r03_asks_for_turns_beyond_their_bound_are_refused() {
        let most = asks(MAX_ASKS);
        assert!(most.len() <= OTHERS_MAX, "{}", most.len());
        assert_eq!(check_asks(&most), Ok(()));
        let many = check_asks(&asks(MAX_ASKS + 1));
        assert_eq!(many, Err("more than 1024 hosts at once".to_owned()));
    }

    #[test]
    fn r03_a_group_does_not_hide_links() {
        let group = [0x7b, 0x3a, 0x01, 0x0f, 0x7c];
        let hidden = [&group[..], &[0x3a, 0].repeat(MAX_LINKS + 1)[..]].concat();
        let decoded = proto::ApplyLinksRequest::decode(&hidden[..]).unwrap();
        assert_eq!(decoded.links.len(), MAX_LINKS + 1);
        check_links(&hidden).unwrap_err();
        let hidden = [&group[..], &[0x1a, 0].repeat(MAX_ASKS + 1)[..]].concat();
        let decoded = proto::TakeTurnsRequest::decode(&hidden[..]).unwrap();
        assert_eq!(decoded.asks.len(), MAX_ASKS + 1);
        check_asks(&hidden).unwrap_err();
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for broken in [
            // The key, the type and the length of a field that cannot be.
            &[0xff; 12][..],
            &[0x3f, 1],
            &[0x3a, 0xff, 0xff, 0xff, 0xff, 0x0f],
            // A link that ends in the middle of a field.
            &[0x3a, 2, 0x1a, 9, 0, 0],
        ] {
            proto::ApplyLinksRequest::decode(broken).unwrap_err();
            check_links(broken).unwrap_err();
        }
    }

    #[tokio::test]
    async fn a_body_within_its_bounds_arrives_as_it_was_sent() {
        for (path, message) in [
            ("/CrawlerWorker/ApplyLinks", call(vec![link(3); 9])),
            ("/CrawlerWorker/TakeTurns", asks(9)),
            ("/CrawlerWorker/GetStatus", Vec::new()),
        ] {
            let sent = framed(&message);
            for size in [1, 3, 1_000, sent.len()] {
                let passed = passed(path, &sent, size).await.unwrap();
                assert_eq!(passed, sent, "{path} in pieces of {size}");
            }
        }
        // The service tells that the message is missing.
        let nothing = passed("/CrawlerWorker/GetStatus", &[], 1).await;
        assert_eq!(nothing.unwrap(), Vec::<u8>::new());
    }

    #[tokio::test]
    async fn r03_a_body_beyond_its_bounds_is_refused_as_it_comes() {
        let (links, turns) = ("/CrawlerWorker/ApplyLinks", "/CrawlerWorker/TakeTurns");
        let empty = proto::ShardLink::default();
        let many = framed(&call(vec![empty; MAX_LINKS + 1]));
        let refusal = refused(links, &many).await;
        assert_eq!(refusal.code(), Code::InvalidArgument, "{refusal}");
        // It is refused by the length that it tells, before the message comes.
        for (path, max) in [
            (links, LINKS_MAX),
            (turns, OTHERS_MAX),
            ("/CrawlerWorker/ReadLogs", OTHERS_MAX),
        ] {
            let length = u32::try_from(max + 1).unwrap();
            let prefix = [&[0], &length.to_be_bytes()[..]].concat();
            let refusal = refused(path, &prefix).await;
            assert_eq!(refusal.code(), Code::OutOfRange, "{refusal}");
        }
        let twice = framed(&asks(1)).repeat(2);
        let refusal = refused(turns, &twice).await;
        assert_eq!(refusal.message(), "more than one message in a call");
    }
}
