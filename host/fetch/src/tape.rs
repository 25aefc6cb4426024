//! Tape of a fetch: the exchanges with sites that it is made of, for an archive.
//!
//! A request that has a tape records each hop: the request as it was sent, and the answer with its body as it was
//! received, after the transfer-encoding. A request without one costs nothing. Exchanges that fail leave nothing.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use reqwest::header::{self, HeaderMap};
use reqwest::{Request, Response};
use tokio::time::Instant;
use url::Url;

use crawler_model::crawl::UnixMillis;
use crawler_model::exchange::{BodyForm, Exchange, SentHeader};
use crawler_model::page::FetchRecord;
use crawler_process::memory::MemoryReservation;

/// Tape of one fetch.
#[derive(Debug, Default)]
pub struct Tape(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    begun: Option<Begun>,
    ended: Vec<Exchange>,
    /// Memory of encoded bodies. Decoded ones count as those of their pages.
    held: Vec<MemoryReservation>,
}

/// Exchange whose answer has begun.
#[derive(Debug)]
struct Begun {
    exchange: Exchange,
    sent_at: Instant,
    encoded: Option<Encoded>,
}

/// Body before its content-encoding is removed.
#[derive(Debug)]
struct Encoded {
    bytes: BytesMut,
    max: u64,
    held: MemoryReservation,
}

/// Request as it is sent, with what the client adds to it.
#[derive(Debug)]
pub(crate) struct SentRequest {
    url: Url,
    method: String,
    headers: Vec<SentHeader>,
    body: Bytes,
    sent_at: Instant,
}

impl SentRequest {
    /// Returns what is sent of a request at this moment. The client adds host, length and, where they are absent, `accept` and the
    /// user agent. Values of `authorization` are left out: they are secrets of the operator or of a rule.
    pub(crate) fn of(request: &Request, user_agent: &str) -> Self {
        let (url, body) = (request.url(), request.body());
        let body = body.and_then(|body| body.as_bytes());
        let body = body.map(Bytes::copy_from_slice).unwrap_or_default();
        let own = |name: &str, value: &str| (name.to_owned(), Bytes::from(value.to_owned()));
        let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
        let mut headers = vec![own("host", host)];
        headers.extend(sent_headers(request.headers()));
        headers.retain(|(name, _)| name != header::AUTHORIZATION.as_str());
        for (name, value) in [(header::ACCEPT, "*/*"), (header::USER_AGENT, user_agent)] {
            if !request.headers().contains_key(&name) {
                headers.push(own(name.as_str(), value));
            }
        }
        if request.body().is_some() {
            headers.push(own("content-length", &body.len().to_string()));
        }
        let mut url = url.clone();
        url.set_fragment(None);
        Self {
            url,
            method: request.method().to_string(),
            headers,
            body,
            sent_at: Instant::now(),
        }
    }
}

impl Tape {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a request and the head of its answer. An earlier exchange that did not end is forgotten.
    pub(crate) fn begin(&self, request: SentRequest, response: &Response) {
        let SentRequest {
            url,
            method,
            headers,
            body,
            sent_at,
        } = request;
        let exchange = Exchange {
            url,
            method,
            request_headers: headers,
            request_body: body,
            status: response.status().as_u16(),
            headers: sent_headers(response.headers()).collect(),
            body: Bytes::new(),
            body_form: BodyForm::Unread,
            began_at: 0,
            ended_at: 0,
            record: FetchRecord::default(),
        };
        self.state().begun = Some(Begun {
            exchange,
            sent_at,
            encoded: None,
        });
    }

    /// Records the encoded body that is about to come. If it is longer than `max` bytes, the decoded one is recorded in
    /// its place, so that a small page cannot bring a large body along.
    pub(crate) fn expect_encoded(&self, max: u64, held: MemoryReservation) {
        if let Some(begun) = &mut self.state().begun {
            begun.encoded = Some(Encoded {
                bytes: BytesMut::new(),
                max,
                held,
            });
        }
    }

    /// Adds a piece of the encoded body.
    pub(crate) fn add(&self, piece: &Bytes) {
        let mut state = self.state();
        let Some(begun) = &mut state.begun else {
            return;
        };
        if let Some(encoded) = &mut begun.encoded {
            let n = (encoded.bytes.len() + piece.len()) as u64;
            if n > encoded.max {
                begun.encoded = None;
                return;
            }
            encoded.bytes.extend_from_slice(piece);
            encoded.held.set(n);
        }
    }

    /// Notes the body as a page has it.
    pub(crate) fn set_body(&self, body: &Bytes, is_encoded: bool, is_cut: bool) {
        let mut state = self.state();
        let Some(begun) = &mut state.begun else {
            return;
        };
        let encoded = begun.encoded.take();
        let (exchange, mut held) = (&mut begun.exchange, None);
        (exchange.body, exchange.body_form) = match (is_cut, is_encoded, encoded) {
            (true, _, _) => (body.clone(), BodyForm::Cut),
            (false, false, _) => (body.clone(), BodyForm::Sent),
            (false, true, Some(encoded)) => {
                held = Some(encoded.held);
                (encoded.bytes.freeze(), BodyForm::Sent)
            }
            (false, true, None) => (body.clone(), BodyForm::Decoded),
        };
        state.held.extend(held);
    }

    /// Ends an exchange that succeeded at this moment.
    pub(crate) fn end(&self, ended_at: UnixMillis, record: FetchRecord) {
        let mut state = self.state();
        if let Some(Begun {
            exchange, sent_at, ..
        }) = state.begun.take()
        {
            let took = u64::try_from(sent_at.elapsed().as_millis()).unwrap_or(u64::MAX);
            state.ended.push(Exchange {
                began_at: ended_at.saturating_sub(took),
                ended_at,
                record,
                ..exchange
            });
        }
    }

    /// Adds an exchange that has ended, for fetchers that have no sites.
    pub fn push(&self, exchange: Exchange) {
        self.state().ended.push(exchange);
    }

    /// Forgets an exchange that failed.
    pub(crate) fn discard(&self) {
        self.state().begun = None;
    }

    /// Takes the exchanges so far, in order.
    pub fn take(&self) -> Vec<Exchange> {
        std::mem::take(&mut self.state().ended)
    }
}

/// Iterates over headers as they are sent.
fn sent_headers(headers: &HeaderMap) -> impl Iterator<Item = SentHeader> {
    let all = headers.iter();
    all.map(|(name, value)| {
        let value = Bytes::copy_from_slice(value.as_bytes());
        (name.as_str().to_owned(), value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_process::memory::Account;
    use hyper::http;
    use reqwest::Method;
    use reqwest::header::HeaderValue;

    fn begun() -> Tape {
        let url: Url = "http://a.test:8000/x?y#z".parse().unwrap();
        let mut request = Request::new(Method::POST, url);
        let secret = HeaderValue::from_static("Bearer secret");
        request.headers_mut().insert("authorization", secret);
        let cookie = HeaderValue::from_static("a=1");
        request.headers_mut().insert("cookie", cookie);
        *request.body_mut() = Some("q=1".into());
        let response = http::Response::builder().status(201).header("etag", "v");
        let response = Response::from(response.body("").unwrap());
        let tape = Tape::default();
        tape.begin(SentRequest::of(&request, "crawler/1"), &response);
        tape
    }

    #[test]
    fn a_request_is_recorded_as_the_client_sends_it_without_secrets() {
        let tape = begun();
        tape.set_body(&Bytes::from_static(b"page"), false, false);
        tape.end(7, FetchRecord::default());
        let [exchange] = &tape.take()[..] else {
            panic!("one exchange");
        };
        assert_eq!(exchange.url.as_str(), "http://a.test:8000/x?y");
        let text = |(name, value): &SentHeader| format!("{name}: {}", value.escape_ascii());
        let headers: Vec<String> = exchange.request_headers.iter().map(text).collect();
        let expected = [
            "host: a.test:8000",
            "cookie: a=1",
            "accept: */*",
            "user-agent: crawler/1",
            "content-length: 3",
        ];
        assert_eq!(headers, expected);
        assert_eq!(&exchange.request_body[..], b"q=1");
        assert_eq!((exchange.status, exchange.ended_at), (201, 7));
        assert_eq!(exchange.header("ETag"), Some("v"));
        assert_eq!(
            (&exchange.body[..], exchange.body_form),
            (&b"page"[..], BodyForm::Sent)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_exchange_begins_when_its_request_is_sent() {
        let tape = begun();
        tokio::time::advance(std::time::Duration::from_millis(300)).await;
        tape.end(1_000, FetchRecord::default());
        let exchange = tape.take().remove(0);
        assert_eq!((exchange.began_at, exchange.ended_at), (700, 1_000));
    }

    #[test]
    fn an_encoded_body_is_recorded_within_its_bound() {
        for (max, expected, form) in [
            (4, &b"abcd"[..], BodyForm::Sent),
            (3, b"decoded", BodyForm::Decoded),
        ] {
            let (tape, account) = (begun(), Account::default());
            tape.expect_encoded(max, account.reserve(0));
            tape.add(&Bytes::from_static(b"ab"));
            tape.add(&Bytes::from_static(b"cd"));
            tape.set_body(&Bytes::from_static(b"decoded"), true, false);
            tape.end(7, FetchRecord::default());
            let counted = if form == BodyForm::Sent { 4 } else { 0 };
            assert_eq!(account.bytes(), counted);
            let exchange = tape.take().remove(0);
            assert_eq!((&exchange.body[..], exchange.body_form), (expected, form));
            drop(tape);
            assert_eq!(account.bytes(), 0);
        }
    }

    #[test]
    fn failed_exchanges_leave_nothing_and_unread_bodies_are_told() {
        let tape = begun();
        tape.discard();
        tape.end(7, FetchRecord::default());
        assert!(tape.take().is_empty());
        let tape = begun();
        tape.end(7, FetchRecord::default());
        assert_eq!(tape.take()[0].body_form, BodyForm::Unread);
    }
}
