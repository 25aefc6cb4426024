//! A sink whose faults are shown in the status of the crawl, and whose writes are counted.

use async_trait::async_trait;
use tokio::time::Instant;

use super::crawl_state::CrawlState;
use crawler_crawl::backlog::waiting_for;
use crawler_model::crawl::ItemRecord;
use crawler_model::settings::SinkName;
use crawler_process::telemetry;
use crawler_sink::{Gathering, Sink, SinkError, Written};

/// Sink that shows an error until something was written again.
pub(super) struct ReportingSink<S> {
    sink: S,
    name: SinkName,
    crawl_state: CrawlState,
}

impl<S> ReportingSink<S> {
    pub(super) fn new(sink: S, name: SinkName, crawl_state: CrawlState) -> Self {
        Self {
            sink,
            name,
            crawl_state,
        }
    }
}

#[async_trait]
impl<S: Sink> Sink for ReportingSink<S> {
    async fn write(&mut self, first: u64, items: &[ItemRecord]) -> Result<Written, SinkError> {
        let begun = Instant::now();
        let written = self.sink.write(first, items).await;
        if let Some(meters) = self.crawl_state.meters() {
            let counts = &meters.sinks;
            counts.durations.add(begun.elapsed());
            let result = match &written {
                Ok(written) => {
                    counts.items.add(written.n_items.min(items.len() as u64));
                    counts.rejected.add(written.n_rejected);
                    "ok"
                }
                Err(SinkError::Retry { .. }) => "retry",
                Err(SinkError::Permanent { .. }) => "permanent",
                Err(SinkError::Closed) => "closed",
            };
            counts.writes.add(result, 1);
        }
        let fault = written.as_ref().err();
        let fault = fault.map(|error| {
            let error = telemetry::chain(error);
            format!("{}: {error}", waiting_for(&self.name))
        });
        self.crawl_state.sink_fault(&self.name, fault);
        written
    }

    fn is_cancel_safe(&self) -> bool {
        self.sink.is_cancel_safe()
    }

    fn gathering(&self) -> Gathering {
        self.sink.gathering()
    }
}
