//! Delivery of the outbox to the sink: in order, as fast as the sink takes it, and again after an error.
//!
//! If the sink's writes are costly, items gather first, but not while the crawl waits for their delivery.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::end::CrawlEnd;
use super::shared::Shared;
use crawler_process::retry::Backoff;
use crawler_process::stage::Stage;
use crawler_process::telemetry;
use crawler_sink::{Gathering, Sink, SinkError};

/// Number of items of one write. While one write is made durable the next items gather.
const BATCH: usize = 2_000;
/// Time that a cancel-safe write may take after the crawl was told to stop.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// Runs until `no_more` is cancelled and the outbox is empty, or the sink is gone for good. Returns true if
/// all items were delivered.
///
/// After the crawl was told to stop, a failing sink is not tried again, and a cancel-safe write gets [`STOP_GRACE`].
pub(super) async fn drain(
    shared: &Shared,
    mut sink: Box<dyn Sink>,
    no_more: &CancellationToken,
    stop: &CancellationToken,
) -> bool {
    let frontier = &shared.parts.frontier;
    let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(30));
    let mut has_failed = false;
    // Number of items, from the next one on, that the sink is known to have.
    let mut n_known = 0;
    loop {
        let gathering = sink.gathering();
        if !has_failed && n_known == 0 {
            gather(shared, gathering, no_more).await;
        }
        // The flag is read before the outbox: items committed before the end are seen below.
        let is_last_pass = no_more.is_cancelled();
        if is_last_pass && let Err(error) = frontier.settle().await {
            shared.lost_frontier(error);
            return false;
        }
        let max_items = gathering.max_items.max(BATCH).max(n_known as usize);
        let batch = match Stage::Sink.charged(frontier.outbox(max_items)).await {
            Ok(batch) => batch,
            Err(error) => {
                shared.lost_frontier(error);
                return false;
            }
        };
        if batch.items.is_empty() {
            if is_last_pass {
                return true;
            }
            tokio::select! {
                biased;
                () = shared.items.notified() => {}
                () = frontier.outbox_changed() => {}
                () = no_more.cancelled() => {}
            }
            continue;
        }
        let (first, n_given) = (batch.first(), batch.items.len() as u64);
        let is_cancel_safe = sink.is_cancel_safe();
        // A crawl that is paused or given away still shows what it had.
        let given_up = async {
            stop.cancelled().await;
            tokio::time::sleep(STOP_GRACE).await;
        };
        let written = tokio::select! {
            biased;
            written = Stage::Sink.timed(sink.write(first, &batch.items)) => written,
            () = given_up, if is_cancel_safe => return false,
        };
        let error = match written {
            Ok(written) if written.n_items > n_given => {
                if n_given < n_known {
                    shared.end(CrawlEnd::Failed(format!(
                        "the sink has {} items from number {first} on, and the frontier only {n_given}, as if the frontier had been removed; delete the items of the resource, too",
                        written.n_items
                    )));
                    return false;
                }
                n_known = written.n_items;
                continue;
            }
            Ok(written) => {
                backoff.reset();
                (has_failed, n_known) = (false, 0);
                let end = first + written.n_items;
                let cleared = Stage::Sink.charged(frontier.clear_outbox(end, written.mark));
                if let Err(error) = cleared.await {
                    shared.lost_frontier(error);
                    return false;
                }
                shared.progress.notify_one();
                continue;
            }
            Err(SinkError::Closed) => {
                shared.end(CrawlEnd::Unread);
                return false;
            }
            Err(error @ SinkError::Permanent { .. }) => {
                let why = telemetry::chain(&error);
                shared.end(CrawlEnd::Failed(format!(
                    "items cannot be delivered: {why}"
                )));
                return false;
            }
            Err(error @ SinkError::Retry { .. }) => error,
        };
        let error = telemetry::chain(&error);
        shared
            .parts
            .log
            .note("error", format!("items wait for their sink: {error}"));
        tracing::error!(error, "items wait for their sink");
        has_failed = true;
        tokio::select! {
            biased;
            () = stop.cancelled() => return false,
            () = tokio::time::sleep(backoff.next_delay()) => {}
        }
    }
}

/// Waits while items gather for the next write: until there are enough, their time is over, or the crawl waits for
/// them.
async fn gather(shared: &Shared, gathering: Gathering, no_more: &CancellationToken) {
    if gathering.max_wait.is_zero() {
        return;
    }
    let frontier = &shared.parts.frontier;
    // The crawl must not stop for items that only wait for others.
    let max_bytes = shared.max_undelivered(&shared.config().settings) / 2;
    let enough = || {
        frontier.undelivered_bytes() >= gathering.n_bytes.min(max_bytes)
            || frontier.n_undelivered() >= gathering.max_items as u64
    };
    let mut until: Option<Instant> = None;
    while !no_more.is_cancelled() && !shared.is_waiting_for_delivery() && !enough() {
        if until.is_none() && frontier.n_undelivered() > 0 {
            until = Some(Instant::now() + gathering.max_wait);
        }
        let over = async {
            match until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = over => return,
            () = no_more.cancelled() => {}
            () = shared.items.notified() => {}
            () = frontier.outbox_changed() => {}
        }
    }
}
