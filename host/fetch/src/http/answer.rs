//! The page of an answer, after the redirects that led to it.

use url::Url;

use super::hop::{Hop, Received};
use crate::charset;
use crawler_model::crawl::{Page, UnixMillis};
use crawler_model::page::PageText;
use crawler_process::stage::Stage;

/// Returns true if a hop can become a page of its own: it requests a URL that no earlier hop did.
pub(super) fn is_new_page(hop: &Hop, on_the_way: &[Url]) -> bool {
    hop.is_plain() && !on_the_way.contains(&hop.url)
}

/// Returns the page of an answer. A body of more than `max_text` bytes is not decoded.
pub(super) fn page(
    url: Url,
    redirects: Vec<Url>,
    answer: Received,
    fetched_at: UnixMillis,
    max_text: u64,
) -> Page {
    let content_type = answer.headers.get("content-type");
    let decode = || charset::decode(&answer.body, content_type, url.domain());
    let text = match answer.body.len() as u64 <= max_text {
        true => Stage::Decode.measured(decode),
        false => PageText::binary(),
    };
    Page {
        requested_url: redirects.first().unwrap_or(&url).clone(),
        url,
        status: answer.status,
        redirects,
        fetched_at,
        truncated: answer.truncated,
        text,
        headers: answer.headers,
        body: answer.body,
        record: answer.record,
    }
}
