//! A sink whose faults are shown in the status of the crawl.

use async_trait::async_trait;

use super::live::Live;
use crawler_model::crawl::ItemRecord;
use crawler_model::frontier::SinkMark;
use crawler_process::telemetry;
use crawler_sink::{Sink, SinkError};

/// Sink that shows an error until something was written again.
pub(super) struct ToldSink<S> {
    sink: S,
    live: Live,
}

impl<S> ToldSink<S> {
    pub(super) fn new(sink: S, live: Live) -> Self {
        Self { sink, live }
    }
}

#[async_trait]
impl<S: Sink> Sink for ToldSink<S> {
    async fn write(&mut self, items: &[ItemRecord]) -> Result<Option<SinkMark>, SinkError> {
        let written = self.sink.write(items).await;
        let fault = written.as_ref().err();
        self.live.sink_fault(fault.map(|error| {
            let error = telemetry::chain(error);
            format!("items wait for their sink: {error}")
        }));
        written
    }
}
