//! Test doubles of what a crawl reaches: a frontier with faults, a site and its rules.

use url::Url;

use crawler_model::crawl::{CharsetSource, FetchRecord, Page, PageText, Request};
use crawler_plugin::{CallFailure, CallOutput, CallReport, Usage};

mod frontier;
mod graph;

pub use frontier::FaultyFrontier;
#[cfg(test)]
pub(crate) use frontier::closed;
pub use graph::{Graph, Site, settings, whole};
#[cfg(test)]
pub(crate) use graph::{Kept, in_time, memory, parts};

/// Returns an answer to a request, with a validator and a body of 4 bytes.
pub fn page(url: &Url, requested: &Url, status: u16) -> Box<Page> {
    Box::new(Page {
        url: url.clone(),
        requested_url: requested.clone(),
        status,
        headers: [("etag", "v1")].into_iter().collect(),
        redirects: Vec::new(),
        fetched_at: 1,
        truncated: false,
        body: b"body".as_slice().into(),
        text: PageText {
            charset: "UTF-8",
            source: CharsetSource::Valid,
            decoded: None,
        },
        record: FetchRecord::default(),
    })
}

/// Returns the report of a call that logged and used nothing.
pub fn report(result: Result<CallOutput, CallFailure>) -> CallReport {
    CallReport {
        result,
        logs: Vec::new(),
        n_logs_dropped: 0,
        usage: Usage::default(),
        place: None,
        reads: Vec::new(),
    }
}

/// Returns requests for the links of a page.
pub fn requests(base: &str, links: &[&str]) -> Vec<Request> {
    let base: Url = base.parse().expect("a good URL");
    links
        .iter()
        .map(|link| Request::get(base.join(link).expect("a good link"), "page"))
        .collect()
}
