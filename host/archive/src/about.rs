//! Facts about a fetch that are neither in the request nor in the answer: fields of a metadata record, to and fro.
//!
//! `via` and `fetchTimeMs` are names of the standard and of other crawlers. All others begin with `crawler-`, and are
//! what a rule sees of a page besides the answer.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use super::page::About;
use super::record::warc_fields;
use crawler_model::crawl::UnixMillis;
use crawler_model::exchange::Exchange;
use crawler_model::page::FetchRecord;

/// Name of the field with the time at which a page was fetched. Its presence tells that this program wrote the record.
const FETCHED_AT: &str = "crawler-fetched-at-ms";

/// Returns the content of the metadata record of an exchange.
pub(crate) fn fields(exchange: &Exchange, about: &About) -> Bytes {
    let record = &exchange.record;
    let millis = |time: Duration| time.as_millis().to_string();
    let state = (!about.state.is_empty()).then(|| STANDARD.encode(&about.state));
    let all = [
        ("via", about.referrer.as_deref().map(str::to_owned)),
        ("fetchTimeMs", Some(millis(record.first_byte + record.body))),
        ("crawler-rule", Some(about.rule.to_string())),
        ("crawler-depth", Some(about.depth.to_string())),
        ("crawler-attempt", Some(about.attempt.to_string())),
        ("crawler-priority", Some(about.priority.to_string())),
        ("crawler-state", state),
        (FETCHED_AT, Some(exchange.ended_at.to_string())),
        ("crawler-address", record.address.map(|a| a.to_string())),
        ("crawler-http-version", record.version.map(str::to_owned)),
        ("crawler-proxy", record.proxy.as_deref().map(str::to_owned)),
        ("crawler-wait-ms", Some(millis(record.waited))),
        ("crawler-lookup-ms", record.lookup.map(millis)),
        ("crawler-connect-ms", record.connect.map(millis)),
        ("crawler-first-byte-ms", Some(millis(record.first_byte))),
        ("crawler-body-ms", Some(millis(record.body))),
        ("crawler-body-bytes", Some(record.n_received.to_string())),
    ];
    let known = all.into_iter();
    let known: Vec<_> = known
        .filter_map(|(name, value)| Some((name, value?)))
        .collect();
    warc_fields(&known)
}

/// Parses such a content: the time at which the page was fetched, and the record of the fetch. Returns `None` for that
/// of another program. Fields that cannot be parsed are left out.
pub(crate) fn parse(text: &str) -> Option<(UnixMillis, FetchRecord)> {
    let field = |name: &str| {
        let mut values = text.lines().filter_map(|line| line.split_once(':'));
        values.find_map(|(key, value)| (key == name).then(|| value.trim()))
    };
    let fetched_at = field(FETCHED_AT)?.parse().ok()?;
    let millis = |name| Some(Duration::from_millis(field(name)?.parse().ok()?));
    let record = FetchRecord {
        waited: millis("crawler-wait-ms").unwrap_or_default(),
        lookup: millis("crawler-lookup-ms"),
        connect: millis("crawler-connect-ms"),
        first_byte: millis("crawler-first-byte-ms").unwrap_or_default(),
        body: millis("crawler-body-ms").unwrap_or_default(),
        n_received: field("crawler-body-bytes")
            .and_then(|n| n.parse().ok())
            .unwrap_or(0),
        address: field("crawler-address").and_then(|address| address.parse().ok()),
        version: field("crawler-http-version").and_then(version),
        proxy: field("crawler-proxy").map(Into::into),
        stored_at: None,
    };
    Some((fetched_at, record))
}

/// Returns a version of HTTP as rules see it.
fn version(text: &str) -> Option<&'static str> {
    ["0.9", "1.0", "1.1", "2"]
        .into_iter()
        .find(|known| *known == text)
}
