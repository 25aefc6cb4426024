//! Delivery of the outbox to the sink: in order, as fast as the sink takes it, and again after an error.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::end::CrawlEnd;
use super::shared::Shared;
use crawler_process::retry::Backoff;
use crawler_process::stage::Stage;
use crawler_process::telemetry;
use crawler_sink::{Sink, SinkError};

/// Number of items of one write. While one write is made durable the next items gather.
const BATCH: usize = 2_000;

/// Runs until `no_more` is cancelled and the outbox is empty, or the sink is gone for good. Returns true if
/// all items were delivered.
///
/// A failing sink is not waited for when the crawl was told to stop.
pub(super) async fn drain(
    shared: &Shared,
    mut sink: Box<dyn Sink>,
    no_more: &CancellationToken,
    stop: &CancellationToken,
) -> bool {
    let frontier = &shared.parts.frontier;
    let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(30));
    loop {
        // The flag is read before the outbox: items committed before the end are seen below.
        let is_last_pass = no_more.is_cancelled();
        if is_last_pass && let Err(error) = frontier.settle().await {
            shared.lost_frontier(error);
            return false;
        }
        let batch = match Stage::Sink.charged(frontier.outbox(BATCH)).await {
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
        let error = match Stage::Sink.timed(sink.write(&batch.items)).await {
            Ok(mark) => {
                backoff.reset();
                let cleared = Stage::Sink.charged(frontier.clear_outbox(batch.end, mark));
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
        tokio::select! {
            biased;
            () = stop.cancelled() => return false,
            () = tokio::time::sleep(backoff.next_delay()) => {}
        }
    }
}
