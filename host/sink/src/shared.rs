//! A sink that several lives of one crawl write to, one after the other.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Mutex;

use super::{Sink, SinkError, Written};
use crawler_model::crawl::ItemRecord;

/// Sink that can be shared: clones write to the same one.
#[derive(Clone)]
pub struct SharedSink {
    sink: Arc<Mutex<Box<dyn Sink>>>,
}

impl SharedSink {
    /// Wraps a sink so that it can be shared.
    pub fn new(sink: Box<dyn Sink>) -> Self {
        Self {
            sink: Arc::new(Mutex::new(sink)),
        }
    }
}

#[async_trait]
impl Sink for SharedSink {
    async fn write(&mut self, first: u64, items: &[ItemRecord]) -> Result<Written, SinkError> {
        self.sink.lock().await.write(first, items).await
    }
}
