//! Totals of all crawls of this worker, of what its process has done, and its latest events, in the store for all nodes to
//! read.
//!
//! The totals are written when a crawl begins, waits, goes on or ends, and every half minute, but never more
//! often than once a second: every one of these writes is a write of the whole cluster. While the record has events, which
//! make it several times as large, there are 5 seconds between two writes. The record is under the node's lease, so that of
//! a worker that is gone is never read.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::parts::AgentParts;
use crawler_model::status::WorkerStatus;
use crawler_process::telemetry;
use crawler_store::catalog::encode;
use crawler_store::lease::Term;
use crawler_store::{Outcome, StoreError, Txn};

/// The longest time between two writes.
const AT_LEAST_EVERY: Duration = Duration::from_secs(30);
/// The shortest time between two writes.
const AT_MOST_EVERY: Duration = Duration::from_secs(1);
/// The shortest time after a write with events.
const AFTER_EVENTS: Duration = Duration::from_secs(5);

/// Writes the totals until `stop`.
pub(super) async fn run(parts: Arc<AgentParts>, stop: CancellationToken) {
    let _stopped = stop.run_until_cancelled(write_on_changes(&parts)).await;
}

async fn write_on_changes(parts: &AgentParts) {
    let mut registered = parts.registered.clone();
    let mut has_failed = false;
    loop {
        let mut pause = AT_MOST_EVERY;
        let term = registered.borrow_and_update().clone();
        if let Some(term) = term.filter(Term::is_held) {
            let written = write(parts, &term).await;
            match &written {
                Ok(true) => pause = AFTER_EVENTS,
                Ok(false) => {}
                Err(error) if !has_failed => {
                    let error = telemetry::chain(error);
                    tracing::warn!(error, "the worker's totals cannot be told");
                }
                Err(_) => {}
            }
            has_failed = written.is_err();
        }
        tokio::time::sleep(pause).await;
        tokio::select! {
            biased;
            () = parts.crawls.changed() => {}
            Ok(()) = registered.changed() => {}
            () = tokio::time::sleep(AT_LEAST_EVERY - pause) => {}
        }
    }
}

/// Writes the totals. Returns true if they have events.
async fn write(parts: &AgentParts, term: &Term) -> Result<bool, StoreError> {
    let node = &parts.node;
    let crawls = parts.crawls.status(None);
    let since_start = parts.crawls.since_start();
    let at = parts.clock.unix_millis();
    let mut status = WorkerStatus::of(node.incarnation, at, &crawls, since_start);
    status.events = parts.crawls.events();
    let key = parts.catalog.keys().status(&node.id);
    let txn = Txn::new().put_leased(key, encode(&status), term.id());
    match parts.catalog.store().commit(txn).await? {
        Outcome::Done(_) => parts.crawls.events_written(&status.events),
        // The next write repeats all of it.
        Outcome::Lost(_) | Outcome::Unknown => {}
    }
    Ok(!status.events.is_empty())
}
