//! The log of requests: a span around each, and a line about its end; and the same for the trace of the page, if it is
//! recorded.

use std::time::Duration;

use reqwest::Method;
use tokio::time::Instant;
use tracing::Span;

use super::hop::{Hop, Outcome};
use crate::FetchError;
use crawler_process::traces;

/// Returns the span of one request, its waiting included, for a page also that for its robots.txt.
pub(super) fn span(hop: &Hop) -> Span {
    tracing::debug_span!("request", url = %hop.url)
}

/// Begins the span of one request in the trace of its page. Names and attributes are those of the conventions for HTTP
/// clients (<https://opentelemetry.io/docs/specs/semconv/http/http-spans/>). No header of the trace is sent to sites.
pub(super) fn trace(hop: &Hop) -> traces::Span {
    let name = match hop.method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        // The conventions have this word for names that a rule may make up.
        _ => "HTTP",
    };
    let span = traces::child_of_kind(name, traces::Kind::Client);
    span.note(|notes| {
        notes
            .text("http.request.method", &hop.method)
            .url("url.full", &hop.url);
        if let Some(host) = hop.url.host_str() {
            notes.text("server.address", host);
        }
        if let Some(port) = hop.url.port_or_known_default() {
            notes.number("server.port", port);
        }
    });
    span
}

/// Notes the outcome of a request in its span of the trace.
pub(super) fn trace_outcome(outcome: &Result<Outcome, FetchError>) {
    traces::note(|notes| {
        let status = match outcome {
            Ok(Outcome::Received(answer)) => {
                notes.number("http.response.body.size", answer.record.n_received);
                if let Some(address) = answer.record.address {
                    notes
                        .text("network.peer.address", address.ip())
                        .number("network.peer.port", address.port());
                }
                answer.status
            }
            Ok(Outcome::Redirect { status, .. }) => status.as_u16(),
            Err(error) => {
                notes.text("error.type", error.reason()).fail(error);
                return;
            }
        };
        notes.number("http.response.status_code", status);
        if status >= 400 {
            notes.text("error.type", status).fail(status);
        }
    });
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
