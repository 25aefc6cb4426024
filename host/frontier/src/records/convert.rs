//! Conversions between records and values of the model.

use std::sync::Arc;

use bytes::Bytes;

use super::{Header, Host, RequestRecord, Stage, State, Trouble, ValidatorsRecord};
use crate::workbench::{self, Cursor, HostHealth, QueuePosition};
use crawler_model::accept_status::AcceptStatus;
use crawler_model::crawl::{Done, Request, UnixMillis};
use crawler_model::frontier::{ContentHash, DelaySource, HostState, Validators};
use crawler_model::id::Run;
use crawler_model::parsed_by::ParsedBy;
use crawler_model::visit::Visit;

impl Host {
    /// Returns true if this run has, or had, a URL of the host. The record may also exist for its clock
    /// alone, from an earlier run or another shard.
    pub(crate) fn is_of(&self, run: Run) -> bool {
        let is_met = !self.lanes.is_empty() || self.has_answered || self.trouble.is_some();
        self.run == run.0 && is_met
    }

    /// Returns the health of the host in the run of the record.
    pub(crate) fn health(&self) -> HostHealth {
        let trouble = self.trouble.clone().map(workbench::FailureStreak::from);
        let mut health = HostHealth::restored(!self.lanes.is_empty(), self.has_answered, trouble);
        health.delay_by = self.delay_by();
        health
    }

    /// Returns the origin of the delay. Origins that only a later version knows become the default.
    pub(crate) fn delay_by(&self) -> DelaySource {
        let place = usize::try_from(self.delay_by).unwrap_or(usize::MAX);
        DelaySource::ALL.get(place).copied().unwrap_or_default()
    }

    /// Returns what the host waits for at a moment.
    pub(crate) fn state(&self, now: UnixMillis) -> HostState {
        let is_given_up = self.trouble.as_ref().map(|trouble| trouble.is_given_up);
        HostState::of(!self.lanes.is_empty(), self.clock > now, is_given_up)
    }

    /// Returns the starts of the lanes of that run.
    pub(crate) fn cursors(&self) -> Vec<Cursor> {
        let lanes = self.lanes.iter();
        let cursors = lanes.map(|lane| Cursor {
            priority: lane.priority,
            at: QueuePosition {
                due: lane.due,
                entry: lane.entry,
            },
        });
        cursors.collect()
    }
}

impl From<workbench::FailureStreak> for Trouble {
    fn from(trouble: workbench::FailureStreak) -> Self {
        Self {
            n: trouble.n,
            reason: trouble.reason,
            is_given_up: trouble.is_given_up,
        }
    }
}

impl From<Trouble> for workbench::FailureStreak {
    fn from(record: Trouble) -> Self {
        Self {
            n: record.n,
            reason: record.reason,
            is_given_up: record.is_given_up,
        }
    }
}

impl From<&Request> for RequestRecord {
    fn from(request: &Request) -> Self {
        let header = |(name, value): &(String, String)| Header {
            name: name.clone(),
            value: value.clone(),
        };
        let url = request.url.as_str();
        let referrer = request.referrer.as_deref().unwrap_or_default();
        let n_shared = n_shared(url, referrer);
        Self {
            url: url.to_owned(),
            method: match &*request.method {
                "GET" => String::new(),
                method => method.to_owned(),
            },
            headers: request.headers.iter().map(header).collect(),
            body: request.body.clone(),
            rule: request.rule.to_string(),
            priority: request.priority,
            state: request.state.clone(),
            reload: request.reload,
            accept_status: request.accept_status.to_string(),
            referrer_shared: u32::try_from(n_shared).expect("a URL is shorter than 4 GiB"),
            referrer: referrer[n_shared..].to_owned(),
            keep_body: request.keep_body,
        }
    }
}

/// Returns the number of bytes that two URLs have in common at their beginning. Most links are found on their own
/// host, so a record keeps only the rest of a referrer.
fn n_shared(url: &str, referrer: &str) -> usize {
    let pairs = url.bytes().zip(referrer.bytes());
    let n_equal = pairs.take_while(|(one, other)| one == other).count();
    referrer.floor_char_boundary(n_equal)
}

impl RequestRecord {
    /// Decodes the referrer.
    fn referrer(&self) -> Result<Option<Arc<str>>, String> {
        let n_shared = usize::try_from(self.referrer_shared).unwrap_or(usize::MAX);
        let Some(shared) = self.url.get(..n_shared) else {
            return Err(format!("URL {:?} has no {n_shared} bytes", self.url));
        };
        let referrer = [shared, &self.referrer].concat();
        Ok(Some(referrer)
            .filter(|referrer| !referrer.is_empty())
            .map(Into::into))
    }

    /// Decodes the request. The error tells what is wrong with the record.
    pub(crate) fn into_request(self) -> Result<Request, String> {
        let url = url::Url::parse(&self.url).map_err(|e| format!("URL {:?}: {e}", self.url))?;
        let accept_status = AcceptStatus::from_kept(&self.accept_status);
        let accept_status = accept_status.map_err(|why| format!("accept-status {why}"))?;
        let referrer = self.referrer()?;
        Ok(Request {
            url,
            method: match self.method.as_str() {
                "" => "GET".into(),
                _ => self.method.into(),
            },
            headers: self
                .headers
                .into_iter()
                .map(|h| (h.name, h.value))
                .collect(),
            body: self.body,
            rule: self.rule.into(),
            priority: self.priority,
            state: self.state,
            reload: self.reload,
            accept_status,
            keep_body: self.keep_body,
            referrer,
        })
    }
}

impl From<&Validators> for ValidatorsRecord {
    fn from(validators: &Validators) -> Self {
        let content = validators.content.as_ref();
        let parsed_by = validators.parsed_by.as_ref();
        Self {
            etag: validators.etag.clone(),
            last_modified: validators.last_modified.clone(),
            content: content.map(|hash| Bytes::copy_from_slice(&hash.0)),
            parsed_by: parsed_by.map(|hash| Bytes::copy_from_slice(&hash.0)),
            visited_at: validators.visit.map_or(0, |visit| visit.at),
            interval: validators.visit.map_or(0, |visit| visit.interval_ms),
        }
    }
}

impl From<ValidatorsRecord> for Validators {
    fn from(record: ValidatorsRecord) -> Self {
        let content = record.content.and_then(|bytes| bytes[..].try_into().ok());
        let parsed_by = record.parsed_by.and_then(|bytes| bytes[..].try_into().ok());
        Self {
            etag: record.etag,
            last_modified: record.last_modified,
            content: content.map(ContentHash),
            parsed_by: parsed_by.map(ParsedBy),
            visit: (record.visited_at > 0).then_some(Visit {
                at: record.visited_at,
                interval_ms: record.interval,
            }),
        }
    }
}

impl From<Done> for Stage {
    fn from(done: Done) -> Self {
        match done {
            Done::Parsed => Stage::Parsed,
            Done::Skipped => Stage::Skipped,
            Done::NotModified | Done::NotDue => Stage::NotModified,
            Done::Redirected => Stage::Redirected,
            Done::Duplicate => Stage::Duplicate,
            Done::Gone => Stage::Gone,
            Done::Denied => Stage::Denied,
        }
    }
}

impl Stage {
    /// Returns how a URL ended, as far as the stage tells, or `None` if it is due or dead.
    fn done(self) -> Option<Done> {
        match self {
            Stage::Due | Stage::Dead => None,
            Stage::Parsed => Some(Done::Parsed),
            Stage::Skipped => Some(Done::Skipped),
            Stage::NotModified => Some(Done::NotModified),
            Stage::Redirected => Some(Done::Redirected),
            Stage::Duplicate => Some(Done::Duplicate),
            Stage::Gone => Some(Done::Gone),
            Stage::Denied => Some(Done::Denied),
        }
    }
}

impl State {
    /// Returns how the URL ended, or `None` if it is due or dead.
    pub(crate) fn done(&self) -> Option<Done> {
        match self.stage().done() {
            Some(Done::NotModified) if self.is_not_due => Some(Done::NotDue),
            done => done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message as _;

    #[test]
    fn a_record_without_referrer_and_statuses_is_a_usual_request() {
        let plain = Request::get("http://a.test/x".parse().unwrap(), "page");
        let mut linked = plain.clone();
        linked.referrer = Some("http://a.test/list".into());
        linked.accept_status = "any".parse().unwrap();
        let [small, large] = [&plain, &linked].map(RequestRecord::from);
        // Each costs a tag and a length, and the text. A referrer has one more number, and no text for what it has
        // in common with the URL.
        let more = 2 + 2 + "list".len() + 2 + "any".len();
        assert_eq!(large.encoded_len(), small.encoded_len() + more);
        assert_eq!(small.into_request().unwrap(), plain);
        assert_eq!(large.clone().into_request().unwrap(), linked);
        let bad = RequestRecord {
            accept_status: "4xx".to_owned(),
            ..large.clone()
        };
        let why = bad.into_request().unwrap_err();
        assert!(why.starts_with("accept-status has \"4xx\""), "{why}");
        let bad = RequestRecord {
            referrer_shared: 99,
            ..large
        };
        let why = bad.into_request().unwrap_err();
        assert_eq!(why, "URL \"http://a.test/x\" has no 99 bytes");
    }

    #[test]
    fn any_referrer_is_read_back_as_it_was() {
        for referrer in [
            "http://a.test/shop/7",
            "http://a.test/shop/7?page=2",
            "http://a.test/",
            "http://a.test/shop/é",
            "https://b.test/",
            "h",
        ] {
            let mut request = Request::get("http://a.test/shop/7".parse().unwrap(), "page");
            request.referrer = Some(referrer.into());
            let read = RequestRecord::from(&request).into_request().unwrap();
            assert_eq!(read, request);
        }
    }

    #[test]
    fn origins_of_delays_keep_their_numbers() {
        let words = ["setting", "robots", "other-crawl", "answers", "trouble"];
        for (number, word) in (0..).zip(words) {
            let record = Host {
                delay_by: number,
                ..Host::default()
            };
            let origin = record.delay_by();
            assert_eq!((origin.as_str(), origin as u32), (word, number));
        }
        let later = Host {
            delay_by: 99,
            ..Host::default()
        };
        assert_eq!(later.delay_by(), DelaySource::Setting);
    }
}
