//! The log of requests: a span around each, and a line about its end.

use std::time::Duration;

use tokio::time::Instant;
use tracing::Span;

use super::hop::{Hop, Outcome};
use crate::FetchError;

/// Returns the span of one request, its waiting included, for a page also that for its robots.txt.
pub(super) fn span(hop: &Hop) -> Span {
    tracing::debug_span!("request", url = %hop.url)
}

/// Logs one line for each request, sent or not, for `CRAWLER_LOG=info,crawler_fetch=debug`. It belongs in the
/// span of the request, which tells the URL.
pub(super) fn log_outcome(outcome: &Result<Outcome, FetchError>, begun: Instant) {
    if !tracing::enabled!(tracing::Level::DEBUG) {
        return;
    }
    let took = begun.elapsed().as_millis();
    match outcome {
        Ok(Outcome::Received(answer)) => {
            let record = &answer.record;
            let millis = |time: Option<Duration>| time.map(|time| time.as_millis());
            tracing::debug!(
                status = answer.status,
                bytes = record.n_received,
                address = record.address.map(tracing::field::display),
                version = record.version,
                wait_ms = record.waited.as_millis(),
                lookup_ms = millis(record.lookup),
                connect_ms = millis(record.connect),
                first_byte_ms = record.first_byte.as_millis(),
                body_ms = record.body.as_millis(),
                "fetched"
            );
        }
        Ok(Outcome::Redirect { to, status }) => {
            let status = status.as_u16();
            tracing::debug!(status, %to, took_ms = took, "redirected");
        }
        Err(error) => {
            let reason = error.reason();
            tracing::debug!(reason, %error, took_ms = took, "not fetched");
        }
    }
}
