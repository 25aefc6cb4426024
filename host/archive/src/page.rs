//! The records of a page: for each exchange the request, the answer, and a metadata record. A crash may leave a request
//! without its answer, which tells nothing. An answer without its request could be taken for that to another one.
//!
//! An answer becomes a `revisit` record without its body if the site said that the page is not modified (304), or if
//! this writer has recorded the same payload before. The second kind names the record that has the payload. Pages that a
//! later run finds unchanged are recorded whole, so that the archive of a run needs no other.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;

use super::about;
use super::http::{answer_head, request_head};
use super::record::{Record, format_date, format_digest, new_id};
use crawler_model::canonical::canonical;
use crawler_model::exchange::{BodyForm, Exchange, Redirects};
use crawler_model::id::{Digest, RunningDigest};
use crawler_process::memory::MemoryReservation;

/// Bytes of the payloads' places that a writer remembers. When there are more, it begins anew.
const KNOWN_MAX: usize = 1 << 20;
/// Profiles of revisit records, by ISO 28500:2017, 6.7.
const IDENTICAL: &str = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";
const NOT_MODIFIED: &str = "http://netpreserve.org/warc/1.1/revisit/server-not-modified";

/// Field of an answer to a request that redirects of the same page led to; see [`format_redirects`].
const REDIRECTS: &str = "Crawler-Redirects";

/// A page that is to be archived: its exchanges in order, redirects included.
#[derive(Debug)]
pub struct PageRecord {
    /// Exchanges with the site.
    pub exchanges: Vec<Exchange>,
    /// Facts about the request.
    pub about: About,
    /// Memory of the exchanges, counted until the record is written or given up.
    pub held: MemoryReservation,
}

impl PageRecord {
    /// Returns the redirects that led to the exchange with this index; `None` for the first one.
    pub(crate) fn redirects(&self, n: usize) -> Option<Redirects> {
        let first = self.exchanges.first().filter(|_| n > 0)?;
        Some(Redirects {
            method: first.method.clone(),
            url: first.url.clone(),
            body: first.request_body.clone(),
            n,
        })
    }
}

/// Facts about the request for a page that the request itself does not have.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// Name of the rule.
    pub rule: Arc<str>,
    /// Number of links from the root requests.
    pub depth: u32,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Priority of the request.
    pub priority: i32,
    /// State that the request carries.
    pub state: Bytes,
    /// URL of the page whose link first led here.
    pub referrer: Option<Arc<str>>,
}

/// Record that has a payload.
#[derive(Debug)]
struct Original {
    id: String,
    url: String,
    date: String,
}

/// Payloads that a writer has recorded, by their digests.
#[derive(Debug, Default)]
pub(crate) struct KnownPayloads {
    originals: HashMap<Digest, Original>,
    n_bytes: usize,
}

impl KnownPayloads {
    /// Forgets all payloads.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    fn insert(&mut self, digest: Digest, original: Original) {
        let Original { id, url, date } = &original;
        let n_bytes = size_of::<(Digest, Original)>() + id.len() + url.len() + date.len();
        if self.n_bytes + n_bytes > KNOWN_MAX {
            self.clear();
        }
        self.n_bytes += n_bytes;
        self.originals.insert(digest, original);
    }
}

/// Returns the records of an exchange, within the file whose warcinfo record has this id. Their date is the one at which
/// the request was sent, as the standard has it (ISO 28500:2017, 5.4).
pub(crate) fn records(
    exchange: &Exchange,
    redirects: Option<&Redirects>,
    about: &About,
    info_id: &str,
    known: &mut KnownPayloads,
) -> [Record; 3] {
    let ids = [new_id(), new_id(), new_id()];
    let [answer_id, request_id, metadata_id] = &ids;
    let url = exchange.url.as_str();
    let address = exchange
        .record
        .address
        .map(|address| address.ip().to_string());
    let common = |record: Record| {
        record
            .with("WARC-Target-URI", url)
            .with("WARC-Warcinfo-ID", info_id)
    };
    let answer = common(answer_record(exchange, answer_id, known))
        .with_some("WARC-IP-Address", address.clone())
        .with("WARC-Concurrent-To", request_id.as_str())
        .with("WARC-Concurrent-To", metadata_id.as_str())
        .with_some(REDIRECTS, redirects.map(format_redirects));
    let body = exchange.request_body.clone();
    let digest = format_digest(Digest::of(&body));
    let head = request_head(exchange);
    let kind = "application/http;msgtype=request";
    let request = Record::new(
        "request",
        request_id,
        exchange.began_at,
        kind,
        vec![head, body],
    );
    let request = common(request)
        .with("WARC-Payload-Digest", digest)
        .with_some("WARC-IP-Address", address)
        .with("WARC-Concurrent-To", answer_id.as_str());
    let block = vec![about::fields(exchange, about)];
    let kind = "application/warc-fields";
    let metadata = Record::new("metadata", metadata_id, exchange.began_at, kind, block);
    let metadata = common(metadata)
        .with("WARC-Refers-To", answer_id.as_str())
        .with("WARC-Concurrent-To", answer_id.as_str());
    [request, answer, metadata]
}

/// Returns the value of the field that tells one answer to a request from those of other pages: the number of redirects,
/// and a digest of the request that the page began with.
pub(crate) fn format_redirects(redirects: &Redirects) -> String {
    let mut digest = RunningDigest::default();
    digest.add(Digest::of(canonical(&redirects.url).as_bytes()).as_bytes());
    digest.add(Digest::of(&redirects.body).as_bytes());
    digest.add(redirects.method.as_bytes());
    format!("{} {}", redirects.n, format_digest(digest.digest()))
}

fn answer_record(exchange: &Exchange, id: &str, known: &mut KnownPayloads) -> Record {
    let head = answer_head(exchange);
    let (at, body) = (exchange.began_at, exchange.body.clone());
    let kind = "application/http;msgtype=response";
    if exchange.status == 304 {
        return Record::new("revisit", id, at, kind, vec![head]).with("WARC-Profile", NOT_MODIFIED);
    }
    let digest = Digest::of(&body);
    let is_whole = matches!(exchange.body_form, BodyForm::Sent | BodyForm::Decoded);
    let is_kept = is_whole && !body.is_empty();
    if let Some(original) = known.originals.get(&digest).filter(|_| is_kept) {
        return Record::new("revisit", id, at, kind, vec![head])
            .with("WARC-Profile", IDENTICAL)
            .with("WARC-Payload-Digest", format_digest(digest))
            .with("WARC-Refers-To", original.id.as_str())
            .with("WARC-Refers-To-Target-URI", original.url.as_str())
            .with("WARC-Refers-To-Date", original.date.as_str());
    }
    if is_kept {
        let original = Original {
            id: id.to_owned(),
            url: exchange.url.to_string(),
            date: format_date(at),
        };
        known.insert(digest, original);
    }
    let truncated = match exchange.body_form {
        BodyForm::Sent | BodyForm::Decoded => None,
        BodyForm::Cut => Some("length".to_owned()),
        BodyForm::Unread => Some("unspecified".to_owned()),
    };
    Record::new("response", id, at, kind, vec![head, body])
        .with("WARC-Payload-Digest", format_digest(digest))
        .with_some("WARC-Truncated", truncated)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_remembered_within_their_bound() {
        let mut known = KnownPayloads::default();
        let url = "x".repeat(KNOWN_MAX / 10);
        for n in 0..100_u8 {
            let original = Original {
                id: String::new(),
                url: url.clone(),
                date: String::new(),
            };
            known.insert(Digest::of(&[n]), original);
            assert!(known.n_bytes <= KNOWN_MAX);
            assert!((1..10).contains(&known.originals.len()), "{n}");
        }
        known.clear();
        assert_eq!((known.n_bytes, known.originals.len()), (0, 0));
    }
}
