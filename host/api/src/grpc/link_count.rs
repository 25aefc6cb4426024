//! Counts the links of a call, and the headers of each, while the body of the call comes.
//!
//! A link or a header may have two bytes in a message, and takes a hundred times as many once it is decoded. So the call is
//! refused at the first one too many, before the message is decoded. What is not a message of links, or breaks off in
//! the middle, is left to the decoder to refuse.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tonic::Status;
use tonic::body::Body;

use crawler_model::crawl::HEADERS_MAX;
use crawler_worker::links::MAX_LINKS;

/// Field of the links in `ApplyLinksRequest`.
const LINKS: u64 = 7;
/// Field of the headers in `ShardLink`.
const HEADERS: u64 = 3;
/// Bytes before each message: a flag, and the length in four bytes.
const PREFIX: u8 = 5;

/// Body of a call with links, which breaks off where there are too many.
pub(super) struct CountedLinks {
    body: Body,
    count: LinkCount,
}

impl CountedLinks {
    pub(super) fn new(body: Body) -> Self {
        let count = LinkCount::default();
        Self { body, count }
    }
}

impl hyper::body::Body for CountedLinks {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.body).poll_frame(context));
        let bytes = match &frame {
            Some(Ok(frame)) => frame.data_ref(),
            Some(Err(_)) | None => None,
        };
        if let Some(bytes) = bytes
            && let Err(why) = this.count.add(bytes)
        {
            return Poll::Ready(Some(Err(Status::invalid_argument(why))));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Count of what has come of the messages of a call.
#[derive(Debug, Default)]
struct LinkCount {
    step: Step,
    /// Bytes of the message that are to come.
    message: u64,
    /// Bytes of the link that are to come; `None` between links.
    link: Option<u64>,
    n_links: usize,
    /// Headers of the present link.
    n_headers: usize,
}

/// Part of the encoding that the next byte belongs to.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Prefix of a message: bytes of it that are to come, and its length as far as it is known.
    Prefix(u8, u32),
    /// Number and type of a field.
    Key(Number),
    /// Value of a field that is a number.
    Value(Number),
    /// Length of this field.
    Length(u64, Number),
    /// Bytes that tell nothing.
    Skip(u64),
}

impl Default for Step {
    fn default() -> Self {
        Step::Prefix(PREFIX, 0)
    }
}

/// Number that is encoded in one to ten bytes, as far as it is known.
#[derive(Debug, Clone, Copy, Default)]
struct Number {
    value: u64,
    n_bits: u32,
}

/// Number with one byte more.
enum Grown {
    Whole(u64),
    Part(Number),
    /// It is longer than any number.
    Broken,
}

impl Number {
    fn with(self, byte: u8) -> Grown {
        let Self { value, n_bits } = self;
        if n_bits >= u64::BITS {
            return Grown::Broken;
        }
        let value = value | (u64::from(byte & 0x7f) << n_bits);
        match byte < 0x80 {
            true => Grown::Whole(value),
            false => Grown::Part(Self {
                value,
                n_bits: n_bits + 7,
            }),
        }
    }
}

impl LinkCount {
    /// Counts what is in the next bytes of a body. The error says what is too much.
    fn add(&mut self, bytes: &[u8]) -> Result<(), String> {
        let mut rest = bytes;
        while let Some((byte, later)) = rest.split_first() {
            rest = match self.step {
                Step::Skip(n) => {
                    let n = usize::try_from(n).unwrap_or(usize::MAX).min(rest.len());
                    self.skip(n as u64);
                    &rest[n..]
                }
                Step::Prefix(n_left, length) => {
                    self.prefix(n_left - 1, (length << 8) | u32::from(*byte));
                    later
                }
                Step::Key(number) => {
                    self.pass(1);
                    self.step = match number.with(*byte) {
                        Grown::Whole(key) => self.field(key),
                        Grown::Part(number) => Step::Key(number),
                        Grown::Broken => self.broken(),
                    };
                    later
                }
                Step::Value(number) => {
                    self.pass(1);
                    self.step = match number.with(*byte) {
                        Grown::Whole(_) => self.next_step(),
                        Grown::Part(number) => Step::Value(number),
                        Grown::Broken => self.broken(),
                    };
                    later
                }
                Step::Length(field, number) => {
                    self.pass(1);
                    self.step = match number.with(*byte) {
                        Grown::Whole(length) => self.content(field, length)?,
                        Grown::Part(number) => Step::Length(field, number),
                        Grown::Broken => self.broken(),
                    };
                    later
                }
            };
            if self.message == 0 && !matches!(self.step, Step::Prefix(..)) {
                self.step = self.next_step();
            }
        }
        Ok(())
    }

    fn prefix(&mut self, n_left: u8, length: u32) {
        self.step = match n_left {
            0 => {
                self.message = u64::from(length);
                self.next_step()
            }
            n_left => Step::Prefix(n_left, length),
        };
    }

    fn skip(&mut self, n: u64) {
        self.pass(n);
        self.step = match self.step {
            Step::Skip(all) if all > n => Step::Skip(all - n),
            _ => self.next_step(),
        };
    }

    /// Notes that so many bytes of the message have come.
    fn pass(&mut self, n: u64) {
        self.message = self.message.saturating_sub(n);
        if let Some(link) = &mut self.link {
            *link = link.saturating_sub(n);
        }
    }

    /// Returns the step behind a field, or behind a message.
    fn next_step(&mut self) -> Step {
        if self.message == 0 {
            self.link = None;
            return Step::default();
        }
        if self.link == Some(0) {
            self.link = None;
        }
        Step::Key(Number::default())
    }

    /// Returns the step that passes over the rest of a message which no decoder takes.
    fn broken(&self) -> Step {
        Step::Skip(self.message)
    }

    /// Returns the step behind the key of a field.
    fn field(&mut self, key: u64) -> Step {
        match key & 7 {
            0 => Step::Value(Number::default()),
            1 => Step::Skip(8),
            2 => Step::Length(key >> 3, Number::default()),
            // The marks of a group, which is skipped field by field.
            3 | 4 => self.next_step(),
            5 => Step::Skip(4),
            _ => self.broken(),
        }
    }

    /// Counts a field of this length, and returns the step behind the length.
    fn content(&mut self, field: u64, length: u64) -> Result<Step, String> {
        match self.link {
            None if field == LINKS => {
                self.n_links += 1;
                if self.n_links > MAX_LINKS {
                    return Err(format!("more than {MAX_LINKS} links at once"));
                }
                (self.link, self.n_headers) = (Some(length), 0);
                return Ok(self.next_step());
            }
            Some(_) if field == HEADERS => {
                self.n_headers += 1;
                if self.n_headers > HEADERS_MAX {
                    return Err(format!("a link with more than {HEADERS_MAX} headers"));
                }
            }
            Some(_) | None => {}
        }
        Ok(match length {
            0 => self.next_step(),
            length => Step::Skip(length),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_proto as proto;
    use prost::Message as _;

    fn call(links: Vec<proto::ShardLink>) -> proto::ApplyLinksRequest {
        proto::ApplyLinksRequest {
            resource_id: u64::MAX,
            shard: 3,
            epoch: 1 << 40,
            run: 2,
            from: 4,
            first: 9,
            links,
        }
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

    /// Returns a message with its prefix.
    fn framed(message: &[u8]) -> Vec<u8> {
        let length = u32::try_from(message.len()).unwrap();
        [&[0], &length.to_be_bytes()[..], message].concat()
    }

    /// Counts bytes that come in pieces of each of these sizes, with the same result.
    #[track_caller]
    fn counted(bytes: &[u8]) -> Result<(usize, usize), String> {
        let in_pieces = |size: usize| {
            let mut count = LinkCount::default();
            for piece in bytes.chunks(size) {
                count.add(piece)?;
            }
            Ok((count.n_links, count.n_headers))
        };
        let whole = in_pieces(bytes.len());
        for size in [1, 2, 3, 7, 1_000] {
            assert_eq!(in_pieces(size), whole, "in pieces of {size}");
        }
        whole
    }

    fn counted_call(links: Vec<proto::ShardLink>) -> Result<(usize, usize), String> {
        counted(&framed(&call(links).encode_to_vec()))
    }

    #[test]
    fn links_and_headers_are_counted_as_they_come() {
        assert_eq!(counted_call(Vec::new()), Ok((0, 0)));
        assert_eq!(counted_call(vec![link(0)]), Ok((1, 0)));
        assert_eq!(counted_call(vec![link(3), link(2)]), Ok((2, 2)));
        let empty = proto::ShardLink::default();
        let many = vec![empty.clone(); MAX_LINKS];
        assert_eq!(counted_call(many), Ok((MAX_LINKS, 0)));
        let full = vec![link(HEADERS_MAX); 3];
        assert_eq!(counted_call(full), Ok((3, HEADERS_MAX)));
        // Fields of later versions are passed over, whatever their types are.
        let mut later = call(vec![link(1)]).encode_to_vec();
        later.extend([0x79, 1, 2, 3, 4, 5, 6, 7, 8]);
        later.extend([0x7d, 1, 2, 3, 4]);
        later.extend([0x7b, 0x08, 1, 0x7c]);
        later.extend(call(vec![empty]).encode_to_vec());
        proto::ApplyLinksRequest::decode(&later[..]).unwrap();
        assert_eq!(counted(&framed(&later)), Ok((2, 0)));
    }

    #[test]
    fn r03_links_and_headers_beyond_their_bounds_are_refused() {
        let empty = proto::ShardLink::default();
        let many = counted_call(vec![empty; MAX_LINKS + 1]);
        assert_eq!(many, Err("more than 500 links at once".to_owned()));
        let long = counted_call(vec![link(1), link(HEADERS_MAX + 1)]);
        assert_eq!(long, Err("a link with more than 64 headers".to_owned()));
        // Links of several messages of one call count together.
        let half = vec![proto::ShardLink::default(); MAX_LINKS / 2 + 1];
        let half = framed(&call(half).encode_to_vec());
        counted(&half).unwrap();
        counted(&[half.clone(), half].concat()).unwrap_err();
    }

    #[test]
    fn what_is_no_message_is_left_to_the_decoder() {
        for broken in [
            // The key, the type and the length of a field that cannot be.
            &[0xff; 12][..],
            &[0x3f, 1],
            &[0x3a, 0xff, 0xff, 0xff, 0xff, 0x0f],
            // A link that ends in the middle of a field.
            &[0x3a, 2, 0x1a, 9, 0, 0],
        ] {
            proto::ApplyLinksRequest::decode(broken).unwrap_err();
            counted(&framed(broken)).unwrap();
        }
        counted(&[1, 2]).unwrap();
    }
}
