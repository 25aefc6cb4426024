//! Counts of the requests of a fetcher, for the metrics of its process.
//!
//! A request is one hop: a redirect is followed by another. Requests for a robots.txt count too, and so do those that were
//! not sent, with the reason.

use tokio::time::Instant;

use super::hop::Outcome;
use super::{HttpFetcher, request_log};
use crate::FetchError;
use crawler_process::metrics::{Count, Durations, WordCounts};

/// Counts of a fetcher since its start.
#[derive(Debug, Default)]
pub struct FetchCounts {
    /// Requests by their result: the class of the status, such as `2xx`, `cached` for an answer of the cache, or the
    /// [reason](FetchError::reason) of the failure.
    pub requests: WordCounts,
    /// Bytes of bodies that were received, before their content encoding was removed.
    pub received: Count,
    /// Waits for the turn of a host.
    pub waits: Durations,
    /// Lookups of names.
    pub lookups: Durations,
    /// Connections that were made, with the lookup.
    pub connects: Durations,
    /// Times from the request to the head of its answer, with the connection.
    pub first_bytes: Durations,
    /// Times from the head of an answer to the end of its body.
    pub bodies: Durations,
}

impl HttpFetcher {
    /// Returns the counts of the requests since the start of the fetcher.
    pub fn counts(&self) -> &FetchCounts {
        &self.counts
    }

    /// Returns the number of hosts whose clocks are known.
    pub fn n_known_hosts(&self) -> usize {
        self.throttle.n_hosts()
    }

    /// Counts and logs the outcome of a request, and notes it in the trace.
    pub(super) fn note_outcome(&self, outcome: &Result<Outcome, FetchError>, begun: Instant) {
        self.counts.note(outcome);
        request_log::trace_outcome(outcome);
        request_log::log_outcome(outcome, begun);
    }
}

impl FetchCounts {
    fn note(&self, outcome: &Result<Outcome, FetchError>) {
        let answer = match outcome {
            Ok(Outcome::Received(answer)) => answer,
            Ok(Outcome::Redirect { .. }) => return self.requests.add("3xx", 1),
            Err(error) => return self.requests.add(error.reason(), 1),
        };
        let record = &answer.record;
        if record.stored_at.is_some() {
            return self.requests.add("cached", 1);
        }
        self.requests.add(class_of(answer.status), 1);
        self.received.add(record.n_received);
        self.waits.add(record.waited);
        if let Some(lookup) = record.lookup {
            self.lookups.add(lookup);
        }
        if let Some(connect) = record.connect {
            self.connects.add(connect);
        }
        self.first_bytes.add(record.first_byte);
        self.bodies.add(record.body);
    }
}

/// Returns the class of a status.
fn class_of(status: u16) -> &'static str {
    match status / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        5 => "5xx",
        _ => "other-status",
    }
}
