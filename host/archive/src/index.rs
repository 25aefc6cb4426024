//! Pages of archives by URL, for a crawl without a network. The archives stay where they are; the index is in memory.
//!
//! A request is answered by its method, its URL and its body. One that redirects of its page led to gets the answer that
//! was recorded in the page whose first answer counts, if there is one. Of several answers of this program the one of the
//! latest run counts, of those one that began a page, of those the one of the latest life of the frontier, and of those
//! the last: clocks of machines differ.
//! Archives of other programs have no such order; the answer with the latest date counts.
//!
//! A `revisit` record of a payload gives its own head with the payload of the other record. One of a page that was not
//! modified (304) is passed over: an earlier answer has the page.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;

use bytes::Bytes;
use url::Url;

use super::error::{ReadError, damaged};
use super::page::format_redirects;
use super::read::{DEFAULT_MAX_RECORD, Head, Records};
use super::source::{self, Source};
use crawler_model::canonical::canonical;
use crawler_model::crawl::UnixMillis;
use crawler_model::exchange::{Exchange, Redirects};
use crawler_model::id::{Digest, RunningDigest};
use crawler_model::page::FetchRecord;
use entry::{Found, Life, Record, record};
use stored::{metadata, stored};

mod entry;
mod stored;

/// Description of the fault that another record is at the place of one.
const OTHER: &str = "it is not what it was when it was indexed";
/// Number of faults that are told one by one.
const MAX_TOLD: usize = 100;

/// Half of a sha256, which identifies a request, a record or a payload.
type Key = [u8; 16];

/// Pages of archives by URL.
#[derive(Debug)]
pub struct RecordedPages {
    sources: Vec<(Source, Option<Life>)>,
    answers: HashMap<Key, Place>,
    /// Records that have a payload, by its digest.
    payloads: HashMap<Key, Place>,
    run_started_at: Option<UnixMillis>,
    /// Number of records that begin a further file within a file.
    n_further: usize,
    damage: Vec<String>,
}

/// Place of a record.
#[derive(Debug, Clone, Copy)]
struct Place {
    source: u32,
    offset: u64,
    at: UnixMillis,
    /// True if no redirect of its page led to the request.
    is_first: bool,
    /// True if this is a further entry of the answer: for another spelling of the URL, or for the redirects of its page.
    is_alias: bool,
}

impl RecordedPages {
    /// Reads the archives that these paths name, those in folders included. What follows a damaged record in a file is
    /// left out, and told by [`damage`](Self::damage).
    ///
    /// # Errors
    ///
    /// A file cannot be read, or there are more than `max` answers, a bound set by this option.
    pub fn open(paths: &[PathBuf], max: u64, setting: &'static str) -> Result<Self, ReadError> {
        let mut pages = Self {
            sources: Vec::new(),
            answers: HashMap::new(),
            payloads: HashMap::new(),
            run_started_at: None,
            n_further: 0,
            damage: Vec::new(),
        };
        for path in source::files(paths)? {
            match source::open(&path) {
                Ok(opened) => {
                    for warc in opened.warcs {
                        pages.add(warc, max, setting)?;
                    }
                }
                Err(error @ ReadError::Damaged { .. }) => pages.tell(error.to_string()),
                Err(error) => return Err(error),
            }
        }
        Ok(pages)
    }

    /// Returns the number of requests that are answered.
    pub fn n_answers(&self) -> u64 {
        let own = self.answers.values().filter(|place| !place.is_alias);
        own.count() as u64
    }

    /// Returns the time at which the last of the archived runs began, if an archive tells it.
    pub fn run_started_at(&self) -> Option<UnixMillis> {
        self.run_started_at
    }

    /// Returns what is damaged, and was left out.
    pub fn damage(&self) -> &[String] {
        &self.damage
    }

    fn tell(&mut self, why: String) {
        if self.damage.len() < MAX_TOLD {
            self.damage.push(why);
        }
    }

    fn add(&mut self, warc: Source, max: u64, setting: &'static str) -> Result<(), ReadError> {
        let too_many = || ReadError::TooMany { max, setting };
        let (mut found, mut requests) = (Vec::new(), HashMap::new());
        let mut records = Records::of(&warc, DEFAULT_MAX_RECORD)?;
        self.sources.push((warc.clone(), None));
        let mut life = None;
        // Record of the last request.
        let mut asked = None;
        // Place of the answer that began the page: the records of a page are one behind the other.
        let mut began = None;
        loop {
            let source = u32::try_from(self.sources.len() - 1).map_err(|_| too_many())?;
            let offset = records.at();
            match records.next(|head, block| record(head, block, source, offset)) {
                Ok(Some(read)) => match read.value {
                    Record::Answer {
                        found: mut one,
                        payload,
                    } => {
                        match one.redirects {
                            None => began = Some(one.place),
                            Some(redirects) => {
                                one.redirects = began.map(|began| page_key(&began, &redirects));
                            }
                        }
                        if let Some(payload) = payload {
                            self.payloads.entry(payload).or_insert(one.place);
                        }
                        // Whether it answers a GET or a form cannot be told without its request.
                        let has_request = || asked.is_some_and(|id| one.related.contains(&id));
                        match life.is_none() || has_request() {
                            true => found.push(one),
                            false => self.tell(without_request(&warc, offset)),
                        }
                    }
                    Record::Request { related, form } => {
                        asked = related.first().copied();
                        if let Some(form) = form {
                            for id in related {
                                requests.insert(id, form.clone());
                            }
                        }
                    }
                    Record::Info {
                        life: own,
                        run_started_at,
                    } => {
                        self.run_started_at = self.run_started_at.max(run_started_at);
                        life = own;
                        // Several files may be one after the other in one.
                        self.sources.push((warc.clone(), own));
                        self.n_further += usize::from(offset > 0);
                    }
                    Record::Other => {}
                },
                Ok(None) => break,
                Err(error @ ReadError::Damaged { .. }) => {
                    self.tell(error.to_string());
                    break;
                }
                Err(error) => return Err(error),
            }
            let n = self.answers.len() + found.len() + requests.len() + self.n_further;
            // Answers that do not count any more have payloads, too.
            if n.max(self.payloads.len()) as u64 > max {
                return Err(too_many());
            }
        }
        for Found {
            related,
            url,
            canonical,
            redirects,
            place,
        } in found
        {
            let request = related.iter().find_map(|id| requests.get(id));
            let (method, body) = match request {
                Some((method, body)) => (method.as_str(), *body),
                None => ("GET", key(b"")),
            };
            let own = request_key(method, &url, &body);
            self.insert(own, place);
            let alias = Place {
                is_alias: true,
                ..place
            };
            if let Some(redirects) = redirects {
                self.insert(redirected_key(&own, &redirects), alias);
            }
            if let Some(canonical) = canonical {
                self.insert(request_key(method, &canonical, &body), alias);
            }
        }
        Ok(())
    }

    /// Inserts an answer, unless a later one is there. The answer to the request itself goes before that to another
    /// spelling of it.
    fn insert(&mut self, key: Key, place: Place) {
        let present = self.answers.get(&key);
        let rank = |place: &Place| {
            let (_, life) = self.sources[place.source as usize];
            let at = life.map_or(place.at, |_| 0);
            let run = life.map(|life| life.run);
            (!place.is_alias, run, place.is_first, life, at)
        };
        if present.is_none_or(|present| rank(&place) >= rank(present)) {
            self.answers.insert(key, place);
        }
    }

    /// Returns the exchange that answers the first request of a page, with at least `most` bytes of the body if it has as
    /// many. Returns `None` if there is none.
    ///
    /// # Errors
    ///
    /// Fails as [`answer_after`](Self::answer_after) does.
    pub fn answer(
        &self,
        method: &str,
        url: &Url,
        body: Option<&Bytes>,
        most: u64,
    ) -> Result<Option<Exchange>, ReadError> {
        self.answer_after(None, method, url, body, most)
    }

    /// Returns the exchange that answers a request which these redirects of the same page led to, with at least `most`
    /// bytes of the body if it has as many. Returns `None` if there is none.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is not what it was when the index was made.
    pub fn answer_after(
        &self,
        redirects: Option<&Redirects>,
        method: &str,
        url: &Url,
        body: Option<&Bytes>,
        most: u64,
    ) -> Result<Option<Exchange>, ReadError> {
        let body_key = key(body.map(|body| &body[..]).unwrap_or_default());
        let of_page = redirects.and_then(|redirects| {
            // An earlier attempt, life or run may have come here, too, and its answer does not count.
            let began = self.place(&redirects.method, &redirects.url, &key(&redirects.body))?;
            let redirects = page_key(began, &key(format_redirects(redirects).as_bytes()));
            let exact = exact_key(method, url, &body_key);
            self.answers.get(&redirected_key(&exact, &redirects))
        });
        let of_any = || self.place(method, url, &body_key);
        let Some(place) = of_page.or_else(of_any) else {
            return Ok(None);
        };
        let source = self.source(place);
        let mut records = Records::at_offset(source, place.offset, DEFAULT_MAX_RECORD)?;
        let read = records.next(|head, block| {
            check_target(head, url)?;
            stored(head, block, most)
        })?;
        let missing = || ReadError::at(source.name(), place.offset, damaged("it is gone"));
        let mut stored = read.ok_or_else(missing)?.value;
        let metadata = metadata(&mut records, &stored.id)?;
        if let Some(payload) = stored.elsewhere {
            let original = self.payloads.get(&payload);
            let Some(original) = original else {
                let why = damaged("the record that has its payload is not in the archive");
                return Err(ReadError::at(source.name(), place.offset, why));
            };
            let source = self.source(original);
            let mut records = Records::at_offset(source, original.offset, DEFAULT_MAX_RECORD)?;
            let read = records.next(|head, block| match payload_of(head) == Some(payload) {
                true => stored::stored(head, block, most),
                false => Err(damaged(OTHER)),
            })?;
            let Some(read) = read else {
                return Err(ReadError::at(
                    source.name(),
                    original.offset,
                    damaged("it is gone"),
                ));
            };
            (stored.body, stored.is_cut) = (read.value.body, read.value.is_cut);
        }
        let (ended_at, record) = metadata.unwrap_or_else(|| (place.at, FetchRecord::default()));
        let times = (place.at, ended_at);
        Ok(Some(stored.exchange(method, url, times, record)))
    }

    /// Returns the place of the answer that counts for a request whose body has this key.
    fn place(&self, method: &str, url: &Url, body: &Key) -> Option<&Place> {
        let exact = self.answers.get(&exact_key(method, url, body));
        let of_alias = || {
            let url = key(canonical(url).as_bytes());
            self.answers.get(&request_key(method, &url, body))
        };
        exact.or_else(of_alias)
    }

    fn source(&self, place: &Place) -> &Source {
        &self.sources[place.source as usize].0
    }
}

/// Checks that a record is still the one that was indexed: a file that was open may have been completed without a damaged
/// record.
fn check_target(head: &Head, url: &Url) -> io::Result<()> {
    let target = head.target().and_then(|target| Url::parse(target).ok());
    match target.is_some_and(|target| canonical(&target) == canonical(url)) {
        true => Ok(()),
        false => Err(damaged(OTHER)),
    }
}

/// Returns the fault of an answer at this offset.
fn without_request(warc: &Source, offset: u64) -> String {
    let name = warc.name();
    format!("{name} at byte {offset}: the request of an answer is missing, so that it is left out")
}

/// Returns the key of some bytes.
fn key(bytes: &[u8]) -> Key {
    half(Digest::of(bytes))
}

fn half(digest: Digest) -> Key {
    let mut key = [0; 16];
    key.copy_from_slice(&digest.as_bytes()[..16]);
    key
}

/// Returns the key of the payload that a record has or names.
fn payload_of(head: &Head) -> Option<Key> {
    let digest = head.get("warc-payload-digest")?;
    Some(key(digest.to_ascii_lowercase().as_bytes()))
}

/// Returns the key of a request with this method, and with a URL and a body that have these keys.
fn request_key(method: &str, url: &Key, body: &Key) -> Key {
    let mut digest = RunningDigest::default();
    digest.add(url);
    digest.add(body);
    digest.add(method.as_bytes());
    half(digest.digest())
}

/// Returns the key of a request to exactly this URL, with a body that has this key.
fn exact_key(method: &str, url: &Url, body: &Key) -> Key {
    let url = &url[..url::Position::AfterQuery];
    request_key(method, &key(url.as_bytes()), body)
}

/// Returns the key of redirects, which have this key, within the page that the answer at this place began.
fn page_key(began: &Place, redirects: &Key) -> Key {
    let (source, offset) = (began.source.to_be_bytes(), began.offset.to_be_bytes());
    key(&[&source[..], &offset[..], &redirects[..]].concat())
}

/// Returns the key of a request, which has this key, after redirects of its page that have this key.
fn redirected_key(request: &Key, redirects: &Key) -> Key {
    key(&[&request[..], &redirects[..]].concat())
}
