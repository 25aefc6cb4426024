//! A sink whose faults are shown in the status of the crawl.

use async_trait::async_trait;

use super::Live;
use crate::model::crawl::ItemRecord;
use crate::model::frontier::SinkMark;
use crate::sink::{Sink, SinkError};
use crate::telemetry;

/// Sink that shows an error until something was written again.
pub(super) struct ToldSink {
    pub(super) sink: Box<dyn Sink>,
    pub(super) live: Live,
}

#[async_trait]
impl Sink for ToldSink {
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
