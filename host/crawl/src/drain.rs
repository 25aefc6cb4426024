//! Delivery of the outbox to the sinks: to each in order, as fast as it takes the items, and again after an error. A
//! sink that is slow or fails holds back no other.
//!
//! If the writes of a sink are costly, items gather first, but not while the crawl waits for their delivery.

use std::convert::Infallible;
use std::time::Duration;

use futures::future::join_all;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::backlog;
use super::end::CrawlEnd;
use super::shared::Shared;
use crawler_frontier::OutboxBatch;
use crawler_model::settings::SinkName;
use crawler_process::retry::Backoff;
use crawler_process::stage::Stage;
use crawler_process::telemetry;
use crawler_sink::{Gathering, Sink, SinkError};

/// Number of items of one write. While one write is made durable the next items gather.
const BATCH: usize = 2_000;
/// Time for which items are delivered after the crawl was told to stop.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// A sink of a crawl. The frontier was opened for all sinks of the crawl.
pub struct NamedSink {
    /// Name under which the frontier keeps its position.
    pub name: SinkName,
    /// The sink.
    pub sink: Box<dyn Sink>,
}

/// Runs until `no_more` is cancelled and no item waits for any sink, or each sink is gone for good. Returns true if
/// all sinks have all items. It may be called again if there are more.
///
/// After the crawl was told to stop, a failing sink is not tried again, no write begins after [`STOP_GRACE`], and a
/// cancel-safe one is given up then.
pub(super) async fn drain(
    shared: &Shared,
    sinks: &mut [NamedSink],
    no_more: &CancellationToken,
    stop: &CancellationToken,
) -> bool {
    let wakes: Vec<Notify> = sinks.iter().map(|_| Notify::new()).collect();
    let is_gone = &CancellationToken::new();
    let is_over = &CancellationToken::new();
    let deliveries = sinks.iter_mut().zip(&wakes).map(move |(sink, wake)| {
        let delivery = SinkDelivery {
            shared,
            name: sink.name.clone(),
            wake,
            no_more,
            stop,
            is_gone,
            is_over,
            n_known: 0,
            last_error: None,
        };
        delivery.run(&mut *sink.sink)
    });
    tokio::select! {
        biased;
        ended = join_all(deliveries) => ended.into_iter().all(|is_drained| is_drained),
        never = wake_all(shared, &wakes) => match never {},
        never = end_grace(stop, is_over) => match never {},
    }
}

/// Cancels `is_over` once the time after a stop is over.
async fn end_grace(stop: &CancellationToken, is_over: &CancellationToken) -> Infallible {
    stop.cancelled().await;
    tokio::time::sleep(STOP_GRACE).await;
    is_over.cancel();
    std::future::pending().await
}

/// Tells all deliveries that there may be more items, or that the crawl waits for them.
async fn wake_all(shared: &Shared, wakes: &[Notify]) -> Infallible {
    loop {
        tokio::select! {
            biased;
            () = shared.items.notified() => {}
            () = shared.parts.frontier.outbox_changed() => {}
        }
        wakes.iter().for_each(Notify::notify_one);
    }
}

/// Delivery to one sink.
struct SinkDelivery<'a> {
    shared: &'a Shared,
    name: SinkName,
    /// Signals that there may be more items, or that the crawl waits for them.
    wake: &'a Notify,
    no_more: &'a CancellationToken,
    stop: &'a CancellationToken,
    /// Cancelled once a sink is gone for good. The crawl ends then, and does not wait for others that fail.
    is_gone: &'a CancellationToken,
    /// Cancelled once the time after a stop is over. A crawl that is paused or given away still shows what it had, if that
    /// does not take longer.
    is_over: &'a CancellationToken,
    /// Number of items, from the next one on, that the sink is known to have.
    n_known: u64,
    /// Error of the last write, if it has failed. The log of the crawl has it.
    last_error: Option<String>,
}

impl SinkDelivery<'_> {
    /// Returns true if all items were delivered.
    async fn run(mut self, sink: &mut dyn Sink) -> bool {
        let shared = self.shared;
        let frontier = &shared.parts.frontier;
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(30));
        // Items of the last write, if the sink took none of them and only left a mark.
        let mut marked: Option<OutboxBatch> = None;
        loop {
            let gathering = sink.gathering();
            if self.last_error.is_none() && self.n_known == 0 {
                self.gather(gathering).await;
            }
            // The flag is read before the outbox: items committed before the end are seen below.
            let is_last_pass = self.no_more.is_cancelled();
            if is_last_pass && let Err(error) = frontier.settle().await {
                shared.lost_frontier(error);
                return false;
            }
            let max_items = gathering.max_items.max(BATCH).max(self.n_known as usize);
            let batch = match marked.take() {
                Some(batch) => Ok(batch),
                None => {
                    let read = frontier.outbox(&self.name, max_items);
                    Stage::Sink.charged(read).await
                }
            };
            let batch = match batch {
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
                    () = self.wake.notified() => {}
                    () = self.no_more.cancelled() => {}
                }
                continue;
            }
            let (first, n_given) = (batch.first(), batch.items.len() as u64);
            let is_cancel_safe = sink.is_cancel_safe();
            if self.is_over.is_cancelled() {
                return self.give_up();
            }
            let is_over = self.is_over;
            let begun = shared.parts.tracer.moment();
            let written = tokio::select! {
                biased;
                written = Stage::Sink.timed(sink.write(first, &batch.items)) => written,
                () = is_over.cancelled(), if is_cancel_safe => return self.give_up(),
            };
            let error = match written {
                Ok(written) if written.n_items > n_given => {
                    if n_given < self.n_known {
                        self.end(CrawlEnd::Failed(format!(
                            "{} has {} items from number {first} on, and the frontier only {n_given}, as if the frontier had been removed; delete the items of the resource, too",
                            self.shown(),
                            written.n_items
                        )));
                        return false;
                    }
                    self.n_known = written.n_items;
                    continue;
                }
                Ok(written) => {
                    backoff.reset();
                    (self.last_error, self.n_known) = (None, 0);
                    let end = first + written.n_items;
                    let (tracer, items) = (&shared.parts.tracer, &batch.items);
                    let items = &items[..written.n_items as usize];
                    let undelivered = &shared.undelivered;
                    undelivered.delivered(tracer, &self.name, items, begun);
                    let cleared = frontier.clear_outbox(&self.name, end, written.mark);
                    if let Err(error) = Stage::Sink.charged(cleared).await {
                        shared.lost_frontier(error);
                        return false;
                    }
                    if written.n_items == 0 {
                        // The sink writes no item before its mark is durable.
                        if let Err(error) = frontier.settle().await {
                            shared.lost_frontier(error);
                            return false;
                        }
                        // The same items are for the next write, unless the sink wants more of them.
                        let wanted = sink.gathering();
                        let is_enough = wanted.max_wait.is_zero() && wanted.max_items <= max_items;
                        marked = is_enough.then_some(batch);
                    }
                    shared.progress.notify_one();
                    continue;
                }
                Err(SinkError::Closed) => {
                    self.end(CrawlEnd::Unread);
                    return false;
                }
                Err(error @ SinkError::Permanent { .. }) => {
                    let why = telemetry::chain(&error);
                    let to = match self.name.is_lines() {
                        true => String::new(),
                        false => format!(" to {}", self.shown()),
                    };
                    self.end(CrawlEnd::Failed(format!(
                        "items cannot be delivered{to}: {why}"
                    )));
                    return false;
                }
                Err(error @ SinkError::Retry { .. }) => error,
            };
            drop(batch);
            let error = telemetry::chain(&error);
            let waiting = backlog::waiting_for(&self.name);
            let is_new = self.last_error.as_ref() != Some(&error);
            if is_new {
                let line = format!("{waiting}: {error}");
                shared.parts.log.note("error", line);
            }
            tracing::error!(sink = %self.name, error, is_new, "items wait for their sink");
            self.last_error = Some(error);
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return false,
                () = self.is_gone.cancelled() => return false,
                () = tokio::time::sleep(backoff.next_delay()) => {}
            }
        }
    }

    /// Leaves the items that the sink does not have to the next opening, because a stop waits no longer.
    fn give_up(&self) -> bool {
        let waiting = self.shared.parts.frontier.undelivered(&self.name);
        let n = waiting.n_items;
        tracing::warn!(sink = %self.name, n, "the crawl stops before its sink has all items");
        false
    }

    /// Ends the crawl because the sink is gone for good.
    fn end(&self, end: CrawlEnd) {
        self.shared.end(end);
        self.is_gone.cancel();
    }

    /// Returns the sink as messages name it.
    fn shown(&self) -> String {
        match self.name.is_lines() {
            true => "the sink".to_owned(),
            false => format!("sink {}", self.name),
        }
    }

    /// Waits while items gather for the next write: until there are enough, their time is over, or the crawl waits for
    /// them.
    async fn gather(&self, gathering: Gathering) {
        if gathering.max_wait.is_zero() {
            return;
        }
        let (shared, no_more) = (self.shared, self.no_more);
        // The crawl must not stop for items that only wait for others.
        let max_bytes = shared.max_undelivered(&shared.config().settings) / 2;
        let waiting = || shared.parts.frontier.undelivered(&self.name);
        let enough = || {
            let waiting = waiting();
            waiting.n_bytes >= gathering.n_bytes.min(max_bytes)
                || waiting.n_items >= gathering.max_items as u64
        };
        let mut until: Option<Instant> = None;
        while !no_more.is_cancelled() && !shared.is_waiting_for_delivery() && !enough() {
            if until.is_none() && waiting().n_items > 0 {
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
                () = self.wake.notified() => {}
            }
        }
    }
}
