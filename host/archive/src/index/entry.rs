//! Contents of records, as far as the index needs them: answers, the requests that they answer, and beginnings of files.

use std::io::{self, BufRead};

use url::Url;

use super::stored::text_of;
use super::{Key, Place, half, key, payload_of};
use crate::http::MessageHead;
use crate::read::Head;
use crate::record::parse_date;
use crate::writer::{EPOCH, FILE, RUN, RUN_STARTED};
use crawler_model::canonical::canonical;
use crawler_model::crawl::UnixMillis;
use crawler_model::id::RunningDigest;

/// Maximum number of related records that a record may name; further ones are not looked at.
const MAX_RELATED: usize = 4;

/// File of this program that records are from, by the order in which such files are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Life {
    pub(super) run: u64,
    epoch: u64,
    file: u64,
}

/// An answer whose request may still come.
pub(super) struct Found {
    pub(super) related: Vec<Key>,
    pub(super) url: Key,
    /// Canonical form of the URL, if that is another.
    pub(super) canonical: Option<Key>,
    /// Key of the redirects of the same page that led to the request, if there are some. The index makes it that of the
    /// redirects within this one page.
    pub(super) redirects: Option<Key>,
    pub(super) place: Place,
}

/// Contents of a record, as far as the index needs them.
pub(super) enum Record {
    Answer {
        found: Found,
        payload: Option<Key>,
    },
    /// A request: its records, and method and body if it is not a plain GET.
    Request {
        related: Vec<Key>,
        form: Option<(String, Key)>,
    },
    /// The beginning of a file.
    Info {
        life: Option<Life>,
        run_started_at: Option<UnixMillis>,
    },
    Other,
}

/// Returns the keys of a record and of those that it names.
fn related(head: &Head) -> Vec<Key> {
    let own = head.get("warc-record-id").into_iter();
    let all = own.chain(head.all("warc-concurrent-to").take(MAX_RELATED));
    all.map(|id| key(id.as_bytes())).collect()
}

/// Returns what the index needs of a record.
pub(super) fn record(
    head: &Head,
    block: &mut dyn BufRead,
    source: u32,
    offset: u64,
) -> io::Result<Record> {
    let payload = payload_of(head);
    match head.kind() {
        "response" | "revisit" if head.is_http() => {
            let is_revisit = head.kind() == "revisit";
            let profile = head.get("warc-profile").unwrap_or_default();
            if is_revisit && !profile.ends_with("/identical-payload-digest") {
                return Ok(Record::Other);
            }
            let url = head.target().and_then(|target| Url::parse(target).ok());
            let (Some(url), Some(at)) = (url, head.get("warc-date").and_then(parse_date)) else {
                return Ok(Record::Other);
            };
            let (exact, canonical) = (&url[..url::Position::AfterQuery], canonical(&url));
            let other = (canonical != exact).then(|| key(canonical.as_bytes()));
            let redirects = head.get("crawler-redirects");
            let place = Place {
                source,
                offset,
                at,
                is_first: redirects.is_none(),
                is_alias: false,
            };
            let found = Found {
                related: related(head),
                url: key(exact.as_bytes()),
                canonical: other,
                redirects: redirects.map(|text| key(text.as_bytes())),
                place,
            };
            let payload = payload.filter(|_| !is_revisit && head.get("warc-truncated").is_none());
            Ok(Record::Answer { found, payload })
        }
        "request" if head.is_http() => {
            let message = MessageHead::read(block)?;
            let mut body = RunningDigest::default();
            let mut n_bytes = 0;
            loop {
                let piece = block.fill_buf()?;
                if piece.is_empty() {
                    break;
                }
                body.add(piece);
                let n = piece.len();
                n_bytes += n;
                block.consume(n);
            }
            let Some(method) = message.method() else {
                return Ok(Record::Other);
            };
            let is_plain = n_bytes == 0 && method == "GET";
            let form = || (method.chars().take(40).collect(), half(body.digest()));
            Ok(Record::Request {
                related: related(head),
                form: (!is_plain).then(form),
            })
        }
        "warcinfo" => {
            let text = text_of(block)?;
            let number = |name: &str| -> Option<u64> {
                let mut fields = text.lines().filter_map(|line| line.split_once(':'));
                let (_, value) = fields.find(|(key, _)| *key == name)?;
                value.trim().parse().ok()
            };
            let life = || {
                Some(Life {
                    run: number(RUN)?,
                    epoch: number(EPOCH)?,
                    file: number(FILE)?,
                })
            };
            Ok(Record::Info {
                life: life(),
                run_started_at: number(RUN_STARTED),
            })
        }
        _ => Ok(Record::Other),
    }
}
